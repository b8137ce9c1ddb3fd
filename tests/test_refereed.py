"""The Norske game with its referee: what gates the board, who goes out, who wins, what replays."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kimble_env import Game, GameOverError, IllegalMoveError, IllegalThrowError, KimbleError
from kimble_env import kernel as k
from kimble_env.errors import RulesError
from kimble_env.kernel import STATE
from kimble_env.ledger import (
    ClockError,
    GatedError,
    LedgerFormatError,
    MatchOverError,
    RulingError,
)
from kimble_env.refereed import RefereedGame
from kimble_env.rules import R_HOLD_WIN, find_rules

R, B, Y, G = range(4)


def refereed(text: str, **words: Any) -> RefereedGame:
    return RefereedGame.from_text(text, seed=1, **words)


def drink(game: RefereedGame, member: int = 0) -> None:
    """Empty the first cup owed, in ten seconds, from wherever it stands."""
    referee = game.referee
    first = referee.state.front
    assert first is not None
    seat, left = first.seat, first.left
    while (front := referee.state.front) and (front.number, front.left) == (first.number, left):
        t, phase = referee.now + 1, referee.state.phase(front)
        if phase == "drinker":
            referee.drinker(t, seat, member)
        elif phase in ("pour", "break") and not front.poured + front.ready:
            assert front.drinker is not None
            referee.pour(t, seat, front.drinker)
        elif phase in ("table", "break") and not front.ready:
            referee.table(t, seat)
        elif phase in ("start", "break"):
            referee.start(t, seat)
        else:
            referee.end(t + 9, seat)


def drink_all(game: RefereedGame) -> None:
    while game.referee.gated:
        drink(game)


def unchanged(game: RefereedGame, error: type[Exception], call: Callable[[], Any]) -> str:
    """Check that a call raises and changes nothing; return its message."""
    before = (json.dumps(game.snapshot()), game.to_text(), game.state.tobytes())
    with pytest.raises(error) as caught:
        call()
    assert (json.dumps(game.snapshot()), game.to_text(), game.state.tobytes()) == before
    return str(caught.value)


# -------------------------------------------------------------------------------------- the gate


def test_a_hit_gates_the_board_until_it_is_drunk() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    game.play("3-8", at=10)
    assert game.referee.owed(B) == 1
    message = unchanged(game, GatedError, lambda: game.throw(at=20))
    assert "blue owes 1 cup (hit): choose who drinks" in message
    drink(game)
    game.throw(4, at=30)


def test_a_battery_owes_all_its_cups() -> None:
    game = refereed("norske R9/B4x3,20/Y-/G- R 2 1")
    game.play("9-11")
    assert [(ob.seat, ob.cups) for ob in game.referee.state.obligations] == [(B, 3)]


def test_an_own_loss_and_an_arrival_owe_too() -> None:
    game = refereed("norske R3/B0/Y-/G- R 4 1")
    game.play("3-7")
    assert game.referee.owed(R) == 1
    game = refereed("norske R29x2/B-/Y-/G- R 3 1")
    game.play("29-H")
    assert [(ob.cause, ob.cups) for ob in game.referee.state.obligations] == [("home", 2)]


def test_a_move_waits_while_a_partner_decides() -> None:
    game = refereed("norske R3/B20/Y-/G- R 4 1")
    game.referee.unable(5, G, 0)
    assert "whether to go on alone" in unchanged(game, GatedError, lambda: game.play("3-7", at=6))
    game.referee.go_on(7, G)
    game.play("3-7", at=8)


def test_entries_allow_drinks_to_be_opened() -> None:
    game = refereed("norske R-/B-/Y-/G- R 6 3", teams={"R": ["beer", "vichy"]})
    with pytest.raises(KimbleError, match="one for each of its 0 entries"):
        game.referee.open(0, R, 0)
    game.play("enter")
    game.referee.open(1, R, 0)
    assert (
        RefereedGame.from_text("norske R0x2,H/B-/Y-/G- R - 1").referee.state.teams[R].entries == 3
    )


def test_wrong_calls_change_nothing() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    unchanged(game, IllegalThrowError, game.throw)
    unchanged(game, IllegalMoveError, lambda: game.play("4-9"))
    unchanged(game, RulingError, game.undo)
    unchanged(game, RulingError, lambda: game.remove_seat("B"))
    game.play("3-8", at=7)
    drink(game)
    unchanged(game, ClockError, lambda: game.throw(at=7))
    unchanged(game, ClockError, lambda: game.throw(at=1.5))  # type: ignore[arg-type]
    unchanged(game, IllegalThrowError, lambda: game.throw(7, at=99))
    with pytest.raises(RulesError, match="needs rules with a home"):
        Game("kimble", referee=True)
    with pytest.raises(LedgerFormatError, match="no cups"):
        RefereedGame.from_record(game.record())


# --------------------------------------------------------------------------------- going out (R34)


def test_a_team_that_declines_leaves_the_board() -> None:
    game = refereed("norske R3/B1,9,H/Y-/G- R 5 1")
    game.play("3-8", at=0)
    game.referee.drinker(1, B, 0)
    game.referee.unable(2, B, 0)
    game.referee.decline(3, B)
    assert game.to_text() == "norske R8/BH/Y-/G- Y - 3 out=B"
    unchanged(game, KimbleError, lambda: game.referee.leave(5, B, 1))


def test_the_last_team_left_wins() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    for seat in (B, Y, G):
        game.referee.unable(seat, seat, 0)
        assert not game.over
        game.referee.unable(seat, seat, 1)
    assert game.winner == R
    assert game.referee.winner == R
    unchanged(game, GameOverError, game.throw)


def test_a_die_already_thrown_is_judged_on_the_new_position() -> None:
    game = refereed("norske R3,20/B0/Y-/G- R 4 1")  # only 20-24, for blue's start is protected
    game.referee.ruling(0, "fighting", do="team_out", seat="B")
    assert [str(move) for move in game.legal_moves] == ["3-7", "20-24"]
    game = refereed("norske R3/B20/Y-/G- R 4 1")
    game.referee.ruling(0, "fighting", do="team_out", seat="R")
    assert game.to_text() == "norske R-/B20/Y-/G- B - 1 out=R"


def test_time_alone_can_put_a_team_out_before_a_throw() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    game.referee.unable(0, B, 1)
    game.referee.go_on(0, B)
    game.play("3-8", at=1)
    game.referee.pour(2, B, 0)
    game.referee.table(2, B)
    game.referee.start(2, B)
    unchanged(game, GatedError, lambda: game.throw(at=47))
    unchanged(game, IllegalThrowError, lambda: game.throw(9, at=48))
    game.throw(5, at=48)  # late from second 48 on: blue is out, and it is yellow's turn
    assert game.to_text() == "norske R8/B-/Y-/G- Y - 2 out=B"
    assert [entry["call"] for entry in game.log[-2:]] == ["tick", "throw"]


# ------------------------------------------------------------------------------------- winning (L6)


def test_the_game_is_won_when_the_last_piece_is_drunk() -> None:
    game = refereed("norske R29x2,Hx2/B-/Y-/G- R 3 1")
    game.play("29-H", at=0)
    assert not game.over
    assert game.waits_for_cups
    assert game.to_text() == "norske RHx4/B-/Y-/G- R - 0"
    unchanged(game, GatedError, game.throw)
    drink(game)
    assert not game.over
    drink(game)
    assert game.winner == game.referee.winner == R
    assert game.to_text() == "norske RHx4/B-/Y-/G- R * 0"
    unchanged(game, GameOverError, game.throw)
    game.referee.unable(100, B, 0)  # life goes on at the table, the board rests
    game.referee.decline(100, B)
    assert game.to_text() == "norske RHx4/B-/Y-/G- R * 0"


def test_ledger_8_on_the_board_no_win_and_play_goes_on() -> None:
    game = refereed("norske R30,Hx3/B4/Y-/G- R 2 1")
    game.play("30-H", at=0)
    game.referee.drinker(0, R, 0)
    game.referee.unable(1, R, 0)
    unchanged(game, GatedError, lambda: game.throw(at=2))
    game.referee.decline(3, R)
    assert not game.over
    assert game.winner is None
    assert game.to_text() == "norske RHx4/B4/Y-/G- B - 1 out=R"
    assert Game.from_text(game.to_text()).seat == B  # a position that can be
    game.throw(4, at=5)
    game.play("4-8", at=6)
    with pytest.raises(KimbleError, match="only the log"):
        game.record()
    assert RefereedGame.from_log(game.log).to_text() == game.to_text()


def test_another_team_going_out_meanwhile_does_not_make_the_waiting_one_win() -> None:
    game = refereed("norske R30,Hx3/B-/Y- R 2 1")
    game.play("30-H", at=0)
    for member in (0, 1):
        game.referee.unable(1, B, member)
    assert not game.over
    drink(game)
    assert game.winner == R
    game = refereed("norske R30,Hx3/B- R 2 1")
    game.play("30-H", at=0)
    for member in (0, 1):
        game.referee.unable(1, R, member)
    assert game.winner == game.referee.winner == B


def test_win_at_home() -> None:
    game = refereed("norske[win_at=home] R30,Hx3/B-/Y-/G- R 2 1")
    game.play("30-H", at=0)
    assert game.winner == game.referee.winner == R
    drink(game)  # owed all the same


def test_play_for_places() -> None:
    game = refereed("norske[play_for_places=yes] R30,Hx3/B30,Hx3/Y- R 2 1")
    game.play("30-H", at=0)
    drink(game)
    assert not game.over
    assert game.seat == B
    game.throw(2)
    game.play("30-H")
    drink(game)
    assert game.over
    assert game.result is not None
    assert game.result.places == (R, B)
    assert game.referee.state.places == [R, B]
    with pytest.raises(MatchOverError):
        game.referee.throw(500, Y)


# ------------------------------------------------------------------------------------------ rulings


def test_a_ruling_takes_board_and_ledger_back() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    entries, text = len(game.log), game.to_text()
    game.play("3-8", at=5)
    drink(game)
    game.throw(6)
    game.referee.ruling(60, "the wrong cup was moved", back_to=entries)
    assert game.to_text() == text
    assert not game.referee.gated
    assert game.record().entries[0].move is None  # type: ignore[union-attr]
    game.play("3-8", at=61)
    assert game.referee.owed(B) == 1
    again = RefereedGame.from_log(game.log)
    assert again.state.tobytes() == game.state.tobytes()
    game.referee.ruling(70, "no, the first was right", back_to=entries + 1)
    assert game.to_text() == again.to_text()


def test_a_ruling_puts_cups_elsewhere() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    game.play("3-8", at=5)
    game.referee.ruling(
        6, "the field was 9", position="norske R9/B-/Y-/G- B - 3", do="drop", seat="B"
    )
    assert game.to_text() == "norske R9/B-/Y-/G- B - 3"
    game.throw(6, at=7)
    game.play("enter", at=8)
    assert game.record().start == "norske R9/B-/Y-/G- B - 3"
    assert Game.from_record(game.record()).to_text() == game.to_text()
    assert RefereedGame.from_log(game.log).to_text() == game.to_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"position": "norske R9/B- B - 3"}, "played by norske"),
        ({"position": "norske[pieces=2] R9/B-/Y-/G- B - 3"}, "played by norske"),
        ({"position": "nonsense"}, "position: "),
        ({"position": "norske R9,H/B-/Y-/G- B - 3"}, "red has 1 home, in the ledger 0"),
        ({"position": "norske R9/B-/Y-/G- R - 1 out=B"}, "blue is out on the board only"),
        ({"put": {"teams/R/home": 1}}, "red has 0 home, in the ledger 1"),
        ({"put": {"places": ["G"]}}, "places are"),
    ],
)
def test_rulings_after_which_board_and_ledger_disagree(words: Any, message: str) -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    assert message in unchanged(game, RulingError, lambda: game.referee.ruling(9, "so", **words))


def test_a_ruling_brings_a_team_back() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    game.referee.ruling(0, "fighting", do="team_out", seat="B")
    assert "position= sets the board" in unchanged(
        game, RulingError, lambda: game.referee.ruling(1, "mercy", do="team_in", seat="B")
    )
    game.referee.ruling(1, "mercy", do="team_in", seat="B", position="norske R3/B1/Y-/G- R 5 1")
    game.play("3-8", at=2)
    assert game.referee.owed(B) == 1


# ------------------------------------------------------------------- copies, logs, random matches


def some_calls(game: RefereedGame, rng: random.Random, calls: int) -> None:
    """Play on; people drink, fail, decide, and sometimes the referee rules."""
    for _ in range(calls):
        if game.over:
            return
        referee, t = game.referee, game.referee.now + rng.choice((0, 1, 3))
        if referee.state.undecided():
            seat = referee.state.undecided()[0]
            rng.choice((referee.go_on, referee.go_on, referee.decline))(t, seat)
        elif referee.gated and rng.random() < 0.04:
            front = referee.state.front
            assert front is not None
            playing = [i for i in (0, 1) if referee.state.teams[front.seat].members[i].playing]
            fail = rng.choice((referee.unable, referee.vomit))
            fail(t, front.seat, rng.choice(playing))
        elif referee.gated:
            drink(game, next(i for i in (0, 1) if _front_member(game, i).playing))
        elif rng.random() < 0.01:
            referee.ruling(t, "an error", back_to=max(1, len(game.log) - rng.randrange(6)))
        elif game.die is None:
            game.throw(at=t)
        else:
            game.play(rng.choice(game.legal_moves), at=t)


def _front_member(game: RefereedGame, index: int) -> Any:
    front = game.referee.state.front
    assert front is not None
    return game.referee.state.teams[front.seat].members[index]


@pytest.mark.parametrize("seed", range(6))
def test_random_matches_replay_copy_and_stay_sound(seed: int) -> None:
    rng = random.Random(seed)
    options = {"pieces": 2, "play_for_places": seed % 3 == 1}
    options["win_at"] = "home" if seed % 3 == 2 else "drunk"
    game = Game("norske", seed=seed, referee=True, **options)
    assert isinstance(game, RefereedGame)
    for _ in range(12):
        some_calls(game, rng, 25)
        log = json.loads(json.dumps(game.log))
        twins = [RefereedGame.from_log(log), game.copy(), pickle.loads(pickle.dumps(game))]
        twins += [RefereedGame.from_snapshot(json.loads(json.dumps(game.snapshot())))]
        for twin in twins:
            assert twin.state.tobytes() == game.state.tobytes()
            assert twin.referee == game.referee
        if not game.over:
            before = game.state.tobytes()
            some_calls(twins[0], random.Random(99), 5)
            some_calls(twins[1], random.Random(99), 5)
            assert twins[0].state.tobytes() == twins[1].state.tobytes()
            assert game.state.tobytes() == before
        if not game.waits_for_cups:
            faults = np.zeros(1, np.int64)
            k.faults_batch(game.state, game.rules.array, faults)
            assert faults[0] == 0
        state, s = game.referee.state, game.state[0]
        for seat, team in state.teams.items():
            assert team.home == (s["pieces"][seat] == game.rules.board.home).sum()
        assert game.over == game.referee.over
        if game.over:
            assert game.winner == state.winner


def test_restore_and_damaged_snapshots() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    other = copy.deepcopy(game)
    game.play("3-8", at=3)
    snapshot = game.snapshot()
    other.restore(snapshot)
    assert other.referee == game.referee
    drink(other)
    other.throw(1, at=60)
    assert game.referee.gated
    for damage in ({"format": "x"}, {"more": 1}, {"log": []}, {"log": [{}]}):
        unchanged(game, LedgerFormatError, lambda d=damage: game.restore({**snapshot, **d}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda log: log.clear(), "begins with format"),
        (lambda log: log[0].pop("seed"), "line 1"),
        (lambda log: log[0].update(rules="kimble"), "line 1"),
        (lambda log: log[0]["start"].update(seat=9), "line 1"),
        (lambda log: log[0]["referee"]["state"]["teams"]["R"].update(home=1), "line 1"),
        (lambda log: log[1].update(die=3), "line 3"),
        (lambda log: log[1].pop("die"), "line 2"),
        (lambda log: log[2].pop("t"), "line 3"),
        (lambda log: log[2].update(text="4-9"), "line 3"),
        (lambda log: log[2].update(events=[]), "line 3"),
        (lambda log: log[3].update(member=1, seat="R"), "line 4"),
        (lambda log: log.append("end"), "has a time and a call"),
    ],
)
def test_a_damaged_log_is_refused(damage: Callable[[Any], Any], message: str) -> None:
    game = refereed("norske R3/B1/Y-/G- R - 1")
    game.throw(5, at=1)
    game.play("3-8", at=2)
    drink(game)
    log = game.log
    damage(log)
    with pytest.raises(LedgerFormatError, match=message):
        RefereedGame.from_log(log)


# ----------------------------------------------------------- the ledger leaves the board as it was


def test_with_and_without_a_referee_the_same_games_are_played() -> None:
    for seed in range(3):
        plain, game = Game("norske", seed=seed), Game("norske", seed=seed, referee=True)
        assert isinstance(game, RefereedGame)
        rng = random.Random(seed)
        while not plain.over:
            if plain.die is None:
                assert plain.throw() == game.throw()
            else:
                move = rng.choice(plain.legal_moves)
                plain.play(move)
                game.play(str(move))
                assert [e.as_tuple() for e in plain.events] == [e.as_tuple() for e in game.events]
                if plain.over:
                    assert not game.over
                drink_all(game)
            assert plain.to_text() == game.to_text()
        assert plain.record() == game.record()
        assert plain.result == game.result
        owed = {seat: team.owed for seat, team in game.referee.state.teams.items()}
        counted = plain.state["lost"][0] + plain.state["arrived"][0]
        assert owed == dict(enumerate(counted.tolist()))  # cups are lost + arrived (R33)


@pytest.mark.parametrize(
    "text", ["norske", "norske[play_for_places=yes]", "norske[max_turns=150,pieces=2]"]
)
def test_holding_the_win_and_giving_it_at_once_changes_nothing_over_50000_plies(text: str) -> None:
    """Ledger off against the ledger's kernel path: field by field the same records."""
    rules, games = find_rules(text), 64
    hold = rules.array.copy()
    hold[R_HOLD_WIN] = 1
    hold.setflags(write=False)
    plain, plies, round_ = k.empty_states(games), 0, 0
    actions, dice = np.zeros(games, np.int64), np.zeros(games, np.int8)
    no_battle, log = np.zeros((games, 2), np.int8), np.zeros((256, 2), np.int8)
    held = k.empty_states(games)
    rng = np.random.default_rng(5)
    while plies < 50_000:
        if not (plain["status"] == k.RUNNING).any():
            keys = np.zeros(games, np.uint64)
            k.game_keys(np.uint64(round_), 0, keys)
            k.new_game_batch(plain, rules.array, np.ones((games, 4), np.int8), keys, log)
            held = np.frombuffer(bytearray(plain.tobytes()), STATE)
            round_ += 1
        running = np.flatnonzero(plain["status"] == k.RUNNING)
        a, b = plain[running], held[running]
        k.throw_batch(a, rules.array, dice[: len(a)], actions[: len(a)])
        k.throw_batch(b, hold, dice[: len(b)], actions[: len(b)])
        choice = [_choose(int(bits), rng) for bits in actions[: len(a)]]
        moving = np.flatnonzero(np.array(choice) >= 0)
        played = np.array(choice, np.int16)[moving]
        am, bm = a[moving], b[moving]
        k.play_batch(am, rules.array, played, no_battle[: len(am)])
        k.play_batch(bm, hold, played, no_battle[: len(bm)])
        waiting = (bm["status"] == k.RUNNING) & (bm["throws"] == 0)
        k.settle_finish_batch(bm, hold, np.where(waiting, bm["seat"], -1).astype(np.int8))
        a[moving], b[moving] = am, bm
        assert (a == b).all()
        plain[running], held[running] = a, b
        plies += len(running)
    assert round_ > 1, "no game came to its end"


def test_the_examples_of_the_referees_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "referee.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/referee.md", "exec"), {"__name__": "page"})
    said = capsys.readouterr().out
    assert "no throw yet: blue owes 1 cup (hit): choose who drinks" in said
    assert "blue, B1: the cup is empty after 38 s" in said


def _choose(bits: int, rng: np.random.Generator) -> int:
    moves = [n for n in range(34) if bits >> n & 1]
    return int(rng.choice(moves)) if moves else -1


def test_nothing_is_legal_while_gated_in_the_middle_of_a_die() -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    assert [str(move) for move in game.legal_moves] == ["3-8"]
    game.referee.unable(1, "B", 0)
    assert game.legal_moves == []
    assert game.copy().legal_moves == []
    with pytest.raises(GatedError):
        game.play("3-8", at=2)
    game.referee.go_on(3, "B")
    assert [str(move) for move in game.legal_moves] == ["3-8"]
    game.play("3-8", at=4)


def test_the_last_cup_wins_on_the_board_though_the_partner_is_undecided() -> None:
    game = refereed("norske R30,Hx3/B1/Y-/G- R 2 1")
    game.play("30-H", at=0)
    referee = game.referee
    referee.drinker(1, "R", 0)
    referee.pour(1, "R", 0)
    referee.table(1, "R")
    referee.start(2, "R")
    referee.unable(3, "R", 1)
    referee.end(20, "R")
    assert game.winner == referee.winner == R
    assert game.over
    assert game.legal_moves == []
    assert RefereedGame.from_log(game.log).winner == R


@pytest.mark.parametrize(
    ("put", "words"),
    [
        ({"settings/win_at": "home"}, "win_at=drunk, not home"),
        ({"settings/late": "referee"}, "late=out, not referee"),
        ({"settings/pieces": 3}, "pieces=4, not 3"),
        ({"settings/play_for_places": True}, "play_for_places=False, not True"),
    ],
)
def test_a_ruling_cannot_play_by_other_rules_than_the_board(
    put: dict[str, Any], words: str
) -> None:
    game = refereed("norske R3/B1/Y-/G- R 5 1")
    log = game.log
    with pytest.raises(RulingError, match=words):
        game.referee.ruling(1, "agreed", put=put)
    assert game.log == log
    game.referee.ruling(1, "measured again", put={"settings/cups": "equal"})
