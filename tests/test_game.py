"""``Game``: what each call does and leaves behind, and that misuse changes nothing."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kimble_env import (
    Event,
    Game,
    GameOverError,
    GameRecord,
    IllegalMoveError,
    IllegalThrowError,
    KimbleError,
    NotationError,
    PositionError,
    Result,
    RulesError,
    find_rules,
    write_record,
)
from kimble_env import kernel as k

RULE_SETS = (
    "kimble",
    "kombat",
    "norske",
    "kimble[two_colours=yes]",
    "kombat[die=popomatic,play_for_places=yes]",
    "norske[max_turns=30,play_for_places=yes]",
    "kimble[board=ludo52,max_sixes=2,pieces=2]",
)


def playing(rules: str, seed: int, calls: int) -> Game:
    """A game after some calls, with moves drawn from a generator of its own."""
    game, rng = Game(rules, seed=seed), random.Random(seed)
    for _ in range(calls):
        if game.over:
            break
        step(game, rng)
    return game


def step(game: Game, rng: random.Random) -> None:
    """Throw, or play any legal move."""
    if game.die is None:
        game.throw()
    else:
        game.play(rng.choice(game.legal_moves))


def moves(game: Game) -> list[str]:
    return [str(move) for move in game.legal_moves]


# ----------------------------------------------------------------------- the examples of the design


def test_example_of_the_issue():
    game = Game.from_text("norske R3,20/B0/Y-/G- R 4 1")
    assert [str(m) for m in game.legal_moves] == ["20-24"]


@pytest.mark.parametrize(
    ("start", "die", "end"),
    [
        ("norske R-/B-/Y-/G- R - 3", 2, "norske R-/B-/Y-/G- R - 2"),
        ("norske R-/B-/Y-/G- R - 2", 2, "norske R-/B-/Y-/G- R - 1"),
        ("norske R-/B-/Y-/G- R - 1", 2, "norske R-/B-/Y-/G- B - 3"),
    ],
)
def test_throw_without_a_legal_move_is_over_at_once(start, die, end):
    game = Game.from_text(start)
    assert game.throw(die) == die
    assert game.legal_moves == []
    assert game.die is None
    assert game.to_text() == end


@pytest.mark.parametrize(
    ("start", "move", "end"),
    [
        ("norske R3/B0/Y-/G- R 4 1", "3-7", "norske R-/B0/Y-/G- B - 1"),
        ("kimble R10/B-/Y-/G- R 6 1", "pass", "kimble R10/B-/Y-/G- R - 1"),
    ],
)
def test_play_leaves_the_position_before_the_next_throw(start, move, end):
    game = Game.from_text(start)
    game.play(move)
    assert game.to_text() == end
    assert game.legal_moves == []


def test_finished_game_shows_the_winner():
    game = Game.from_text("kimble R27,29,30,31/B3/Y-/G- R 1 1")
    game.play("27-28")
    assert game.to_text() == "kimble R28,29,30,31/B3/Y-/G- R * 0"
    assert game.result == Result("won", 0, (0,))
    assert (game.over, game.winner, game.die) == (True, 0, None)
    assert game.legal_moves == []
    assert game.chance_outcomes == []


def test_finished_game_of_two_colours_shows_the_seat_that_finished():
    text = "kimble[two_colours=yes] R28,29,30,31/B-/Y27,28,29,30/G- Y 4 1"
    game = Game.from_text(text)
    game.play("27-31")
    assert game.to_text() == "kimble[two_colours=yes] R28,29,30,31/B-/Y28,29,30,31/G- Y * 0"
    assert game.result == Result("won", 2, (0, 2))


def test_a_game_of_the_readme():
    game = Game("norske", seed=7)
    while not game.result:
        game.throw()
        if game.legal_moves:
            game.play(game.legal_moves[0])
    assert game.to_text().endswith("* 0")
    assert str(game.result) == f"{('red', 'blue', 'yellow', 'green')[game.winner]} wins"


def test_legal_moves_come_in_order_and_print_as_their_texts():
    game = Game.from_text("kimble R20,3/B-/Y-/G- R 6 1")
    assert moves(game) == ["enter", "3-9", "20-26", "pass"]
    assert [m.action for m in game.legal_moves] == [0, 4, 21, 33]
    assert [(m.source, m.target) for m in game.legal_moves] == [
        (-1, 0), (3, 9), (20, 26), (None, None),
    ]  # fmt: skip


def test_pass_alone_counts_as_a_legal_move():
    game = Game.from_text("kimble R-/B-/Y-/G- R - 1")
    assert game.throw(3) == 3
    assert moves(game) == ["pass"]
    assert game.to_text() == "kimble R-/B-/Y-/G- R 3 1"


def test_a_move_is_played_as_itself_its_text_or_its_code():
    ends = set()
    for pick in (lambda m: m, str, lambda m: m.action, lambda m: np.int16(m.action)):
        game = Game.from_text("norske R3,20/B-/Y-/G- R 4 1")
        game.play(pick(game.legal_moves[1]))
        ends.add(game.to_text())
    assert ends == {"norske R3,24/B-/Y-/G- B - 3"}


# ----------------------------------------------------------------------------------- what one reads


def test_properties_of_a_position():
    game = Game.from_text("norske R3,20/B0x2/Y-/GH R 4 1", seed=5)
    assert (game.seat, game.die, game.throws, game.plies, game.seed) == (0, 4, 1, 0, 5)
    assert game.pieces == {
        0: (-1, -1, 3, 20), 1: (-1, -1, 0, 0), 2: (-1, -1, -1, -1), 3: (-1, -1, -1, 32),
    }  # fmt: skip
    assert game.rules == find_rules("norske")
    assert (game.over, game.winner, game.result, game.events) == (False, None, None, [])


def test_lists_handed_out_are_the_callers():
    game = Game.from_text("norske R3,20/B-/Y-/G- R 4 1")
    game.legal_moves.clear()
    game.pieces.clear()
    game.state["die"] = 0
    assert moves(game) == ["3-7", "20-24"]
    assert game.to_text() == "norske R3,20/B-/Y-/G- R 4 1"


@pytest.mark.parametrize(
    ("start", "move", "battle", "events"),
    [
        ("norske R3/B1/Y-/G- R 5 1", "3-8", None, [Event("loss", 1, 1, "captured", 0)]),
        ("norske R3/B0/Y-/G- R 4 1", "3-7", None, [Event("loss", 0, 1, "protected", 1)]),
        ("norske R29,31/B-/Y-/G- R 2 1", "29-31", None, [Event("loss", 0, 1, "own_collision", 0)]),
        ("norske R29x2,Hx2/B-/Y-/G- R 3 1", "29-H", None, [Event("arrival", 0, 2)]),
        ("norske R-/B-/Y-/G7x2 R 6 3", "enter", None, [Event("loss", 3, 2, "captured", 0)]),
        ("kombat R3/B1/Y-/G- R 5 1", "3-8", (1, 5), [Event("loss", 0, 1, "battle", 1)]),
        ("kombat R3/B1/Y-/G- R 5 1", "3-8", (6, 1), [Event("loss", 1, 1, "battle", 0)]),
        ("kombat R3/B1/Y-/G- R 5 1", "3-8", (3, 4),
         [Event("loss", 0, 1, "battle", 1), Event("loss", 1, 1, "battle", 0)]),
        ("kimble R3/B1/Y-/G- R 5 1", "pass", None, []),
    ],
)  # fmt: skip
def test_events_of_a_move(start, move, battle, events):
    game = Game.from_text(start)
    game.play(move, battle)
    assert game.events == events
    if not game.over:
        game.throw(1)
        assert game.events == [], "events are those of the last call"


def test_events_as_tuples_and_words():
    loss, arrival = Event("loss", 0, 1, "own_collision", 0), Event("arrival", 3, 2)
    assert loss.as_tuple() == ("loss", 0, 1, "own_collision")
    assert arrival.as_tuple() == ("arrival", 3, 2)
    assert str(loss) == "red loses 1 piece (own collision)"
    assert str(arrival) == "green brings 2 pieces home"


def test_chance_outcomes_of_the_uniform_die():
    game = Game("kimble", seed=1)
    assert game.chance_outcomes == [(die, 1 / 6) for die in range(1, 7)]
    game.throw(3)
    assert game.chance_outcomes == []


def test_chance_outcomes_of_the_dome():
    game = Game.from_text("kimble[die=popomatic] R-/B-/Y-/G- R - 1 face=2")
    assert dict(game.chance_outcomes) == {
        1: 0.16325, 2: 0.108, 3: 0.16325, 4: 0.16325, 5: 0.239, 6: 0.16325,
    }  # fmt: skip
    game = Game.from_text("kimble[die=popomatic] R-/B-/Y-/G- R - 1")
    assert game.chance_outcomes == [(die, 1 / 6) for die in range(1, 7)]


def test_battle_outcomes():
    game = Game.from_text("kombat R3/B1/Y-/G- R 5 1")
    outcomes = game.battle_outcomes("3-8")
    assert [dice for dice, _ in outcomes] == [(a, d) for a in range(1, 7) for d in range(1, 7)]
    assert all(p == pytest.approx(1 / 36) for _, p in outcomes)
    assert game.starts_battle("3-8")
    assert game.battle_outcomes("pass") == []
    assert not game.starts_battle("pass")


def test_battle_outcomes_of_the_dome():
    game = Game.from_text("kombat[die=popomatic] R3/B1/Y-/G- R 5 1")
    outcomes = dict(game.battle_outcomes("3-8"))
    assert math.isclose(sum(outcomes.values()), 1)
    assert outcomes[5, 5] == pytest.approx(0.108 * 0.108)
    assert outcomes[2, 5] == pytest.approx(0.239 * 0.239)
    assert outcomes[2, 1] == pytest.approx(0.239 * 0.16325)


def test_odds_of_battles_are_those_of_the_rules():
    """R18: net +1 21/5/10, net +2 26/4/6, net +3 30/3/3 of 36."""
    for text, odds in (
        ("kombat R3/B1/Y-/G- R 5 1", (21, 5, 10)),  # in the defender's sector
        ("kombat R12/B9/Y-/G- R 4 1", (26, 4, 6)),  # in yellow's
        ("kombat R0/B-/Y-/G9 R 2 1", (30, 3, 3)),  # in the attacker's
    ):
        game, seen = Game.from_text(text), Counter()
        move = next(m for m in moves(game) if m != "pass")
        for dice, _ in game.battle_outcomes(move):
            after = game.copy()
            after.play(move, dice)
            lost = tuple(sorted(event.seat for event in after.events))
            seen["tie" if len(lost) == 2 else "loss" if 0 in lost else "win"] += 1
        assert (seen["win"], seen["tie"], seen["loss"]) == odds


def test_pictures():
    game = playing("norske", 3, 60)
    assert "Red" in str(game)
    assert game._repr_svg_().startswith("<svg")
    assert repr(game) == f"Game.from_text({game.to_text()!r})"


# --------------------------------------------------------------------------- random state and seeds


def dice_of_seats(game: Game, choose: Callable[[Game], Any], throws: int) -> dict[int, list[int]]:
    """Play on with a policy and return the dice that each seat threw."""
    dice: dict[int, list[int]] = {seat: [] for seat in game.rules.seats}
    for _ in range(throws):
        if game.over:
            break
        seat = game.seat
        dice[seat].append(game.throw())
        if game.legal_moves:
            game.play(choose(game))
    return dice


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske"])
def test_dice_of_a_seat_do_not_depend_on_decisions(rules):
    rng = random.Random(1)
    policies = [
        lambda game: game.legal_moves[0],
        lambda game: game.legal_moves[-1],
        lambda game: rng.choice(game.legal_moves),
    ]
    games = [Game(rules, seed=11) for _ in policies]
    pairs = zip(games, policies, strict=True)
    runs = [dice_of_seats(game, choose, 150) for game, choose in pairs]
    assert len({game.to_text() for game in games}) == 3, "the policies play the same"
    for seat in range(4):
        rows = [run[seat] for run in runs]
        common = min(map(len, rows))
        assert common > 8
        assert rows[0][:common] == rows[1][:common] == rows[2][:common]
    columns = [tuple(runs[0][seat][:20]) for seat in range(4)]
    assert len(set(columns)) == 4, "two seats throw the same dice"


def test_battle_dice_are_a_stream_of_their_own():
    """Whether and how often red fights does not move the dice that red throws."""
    dice = []
    for battles in (0, 3):
        game = Game.from_text("kombat R3/B1/Y-/G- R 5 1", seed=9)
        for _ in range(battles):
            fight = Game.from_state(game.rules, game.state)
            fight.play("3-8")
            game = Game.from_state(game.rules, _with_pieces_of(game, fight))
        game.play("pass")
        dice.append([throw_and_pass(game) for _ in range(40)])
    assert dice[0] == dice[1]


def _with_pieces_of(game: Game, after: Game) -> np.ndarray:
    """The position of ``game`` with the stream counters of ``after``."""
    state = game.state
    assert after.state["battle_count"][0, 0] > state["battle_count"][0, 0]
    state["battle_count"] = after.state["battle_count"]
    return state


def throw_and_pass(game: Game) -> int:
    die = game.throw()
    game.play("pass")
    return die


def test_given_dice_count_in_the_stream():
    """A die given by hand stands for the one that would have been drawn."""
    drawn, given = Game("kimble", seed=4), Game("kimble", seed=4)
    first = [throw_and_pass(drawn) for _ in range(30)]
    given.throw(first[0])
    given.play("pass")
    assert [throw_and_pass(given) for _ in range(29)] == first[1:]


def test_equal_seeds_agree_and_others_differ():
    def run(seed: int | None) -> list[int]:
        game = Game("kimble", seed=seed)
        return [game.seat, *(throw_and_pass(game) for _ in range(30))]

    assert run(5) == run(5) == run(np.int64(5))
    assert run(5) != run(6)
    assert run(None) != run(None)
    assert run(2**64 - 1) != run(0)


def test_unseeded_game_can_be_repeated_by_the_seed_it_drew():
    game = Game("norske")
    assert 0 <= game.seed < 2**53
    again = Game("norske", seed=game.seed)
    rngs = random.Random(1), random.Random(1)
    for _ in range(40):
        step(game, rngs[0])
        step(again, rngs[1])
    assert again.snapshot() == game.snapshot()


def test_a_seed_makes_game_0_of_a_batch():
    rules = find_rules("kimble")
    states = k.empty_states(3)
    keys = np.zeros(3, np.uint64)
    k.game_keys(np.uint64(7), 0, keys)
    k.new_game_batch(states, rules.array, np.ones((3, 4), np.int8), keys, np.zeros((0, 2), np.int8))
    game = Game("kimble", seed=7)
    assert states[:1].tobytes() == game.state.tobytes()
    actions = np.zeros(3, np.int64)
    k.throw_batch(states, rules.array, np.zeros(3, np.int8), actions)
    assert game.throw() == states["die"][0]


def test_position_text_with_a_seed():
    text = "kimble R-/B-/Y-/G- R - 1"
    dice = [[throw_and_pass(game) for _ in range(20)] for game in (
        Game.from_text(text, seed=3), Game.from_text(text, seed=3), Game.from_text(text, seed=4),
        Game.from_text(text), Game.from_text(text),
    )]  # fmt: skip
    assert dice[0] == dice[1]
    assert len({tuple(row) for row in dice}) == 4


# ------------------------------------------------------------------------------------ how dice fall


def within(count: int, n: int, p: float) -> bool:
    """Is a count of n within 4.5 standard deviations of what probability p makes likely?"""
    return abs(count - n * p) <= 4.5 * math.sqrt(n * p * (1 - p))


def test_uniform_die_is_uniform():
    game, n = Game("kimble", seed=1), 30_000
    dice = [throw_and_pass(game) for _ in range(n)]
    faces = Counter(dice)
    pairs = Counter(pairwise(dice))
    assert all(within(faces[face], n, 1 / 6) for face in range(1, 7))
    assert all(within(pairs[a, b], n, 1 / 36) for a in range(1, 7) for b in range(1, 7))


@pytest.mark.parametrize("rules", ["kimble", "norske"])
def test_dome_repeats_itself_over_seats(rules):
    """R10: same face .108, opposite .239, the others equal; the dome goes round the table."""
    game, n = Game(rules, die="popomatic", seed=2), 30_000
    faces, same, opposite, other = Counter(), 0, 0, Counter()
    last, seats = int(game.state["face"][0]) or None, set()
    for _ in range(n):
        seats.add(game.seat)
        die = game.throw()
        if game.legal_moves:
            game.play(game.legal_moves[-1])
        faces[die] += 1
        if last:
            same += die == last
            opposite += die == 7 - last
            other[last, die] += die not in (last, 7 - last)
        last = die
        if game.over:
            game = Game(rules, die="popomatic", seed=game.seed + 1)
            last = int(game.state["face"][0]) or None
    assert seats == {0, 1, 2, 3}
    assert within(same, n, 0.108)
    assert within(opposite, n, 0.239)
    assert all(within(faces[face], n, 1 / 6) for face in range(1, 7))
    assert all(within(count, n, 0.16325 / 6) for count in other.values() if count)


def test_dome_runs_on_over_starter_throws_and_battles():
    starters, battles = Counter(), Counter()
    for seed in range(3000):
        game = Game("kimble", die="popomatic", seed=seed)
        faces = [face for _, face in game.starter_dice]
        assert game.state["face"][0] == faces[-1]
        faces.append(game.throw())
        for a, b in pairwise(faces):
            starters["same" if a == b else "opposite" if a + b == 7 else "other"] += 1
        game = Game.from_text("kombat[die=popomatic] R3/B1/Y-/G- R 5 1", seed=seed)
        game.play("3-8")
        attack, defence = game.state["last_battle"][0].tolist()
        for a, b in ((5, attack), (attack, defence), (defence, game.throw())):
            battles["same" if a == b else "opposite" if a + b == 7 else "other"] += 1
    for seen in (starters, battles):
        n = seen.total()
        assert within(seen["same"], n, 0.108)
        assert within(seen["opposite"], n, 0.239)


def test_battle_dice_are_uniform():
    seen = Counter()
    for seed in range(6000):
        game = Game.from_text("kombat R3/B1/Y-/G- R 5 1", seed=seed)
        game.play("3-8")
        seen[tuple(game.state["last_battle"][0].tolist())] += 1
    assert all(within(seen[a, d], 6000, 1 / 36) for a in range(1, 7) for d in range(1, 7))


# --------------------------------------------------------------------------------------- who starts


def highest_roller(seats: tuple[int, ...], dice: tuple[tuple[int, int], ...]) -> int:
    """R8, by hand: rounds of throws, clockwise, of those tied for the highest."""
    rows, left = list(dice), list(seats)
    while len(left) > 1:
        throws = [rows.pop(0) for _ in left]
        assert [seat for seat, _ in throws] == left
        best = max(face for _, face in throws)
        left = [seat for seat, face in throws if face == best]
    assert rows == []
    return left[0]


@pytest.mark.parametrize("seats", ["RBYG", "RY", "BYG"])
def test_highest_roll_starts_and_ties_throw_again(seats):
    numbers = tuple("RBYG".index(letter) for letter in seats)
    starts, ties = Counter(), 0
    for seed in range(2000):
        game = Game("kimble", seats=seats, seed=seed)
        assert game.seat == highest_roller(numbers, game.starter_dice)
        ties += len(game.starter_dice) > len(seats)
        starts[game.seat] += 1
    assert ties > 100
    assert all(within(starts[seat], 2000, 1 / len(seats)) for seat in numbers)


def test_with_two_colours_the_two_players_throw():
    for seed in range(200):
        game = Game("kimble", two_colours=True, seed=seed)
        assert game.seat == highest_roller((0, 1), game.starter_dice)


@pytest.mark.parametrize("seats", ["RBYG", "BG"])
def test_norske_starter_is_drawn_by_lot(seats):
    starts = Counter()
    for seed in range(2000):
        game = Game("norske", seats=seats, seed=seed)
        assert game.starter_dice == ()
        assert game.throws == 3
        starts["RBYG"[game.seat]] += 1
    assert set(starts) == set(seats)
    assert all(within(starts[letter], 2000, 1 / len(seats)) for letter in seats)


def test_starter_dice_move_no_other_dice():
    """Starter throws have streams of their own, so a fixed starter throws the same dice."""
    free = Game("kimble", seed=3)
    fixed = Game("kimble", seed=3, starter="RBYG"[free.seat])
    assert [throw_and_pass(free) for _ in range(30)] == [throw_and_pass(fixed) for _ in range(30)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"players": 2}, "R-/Y-"),
        ({"players": 3}, "R-/B-/Y-"),
        ({"seats": "BG"}, "B-/G-"),
        ({"seats": (1, 2, 3)}, "B-/Y-/G-"),
        ({}, "R-/B-/Y-/G-"),
    ],
)
def test_who_plays(options, text):
    assert Game("norske", seed=1, **options).to_text().split(" ")[1] == text


# ---------------------------------------------------------------------------- undo, copies, pickles


@pytest.mark.parametrize("rules", RULE_SETS)
def test_undo_takes_everything_back_and_redo_gives_the_same_dice(rules):
    game, rng = Game(rules, seed=2), random.Random(2)
    before = [game.snapshot()]
    for _ in range(80):
        if game.over:
            break
        step(game, rng)
        before.append(game.snapshot())
    last = game.copy()
    done = last.record().entries
    for snapshot in reversed(before[:-1]):
        game.undo()
        assert game.snapshot() == snapshot
    with pytest.raises(KimbleError, match="nothing to undo"):
        game.undo()
    rng = random.Random(2)
    for _ in range(len(before) - 1):
        step(game, rng)
    assert game.snapshot() == before[-1]
    assert game.record().entries == done


def test_undo_takes_a_win_and_a_removal_back():
    game = Game.from_text("kimble R27,29,30,31/B3/Y-/G- R 1 1")
    game.play("27-28")
    game.undo()
    assert (game.over, game.result, moves(game)) == (False, None, ["27-28", "pass"])
    game = Game.from_text("norske R3/B5/Y-/G- R 4 1")
    game.remove_seat("R")
    game.undo()
    assert game.to_text() == "norske R3/B5/Y-/G- R 4 1"


def test_undo_of_a_throw_keeps_the_events_before_it():
    game = Game.from_text("norske R3/B1/Y-/G- R 5 1")
    game.play("3-8")
    game.throw(2)
    game.undo()
    assert game.events == [Event("loss", 1, 1, "captured", 0)]


def through_json(game: Game) -> Game:
    return Game.from_snapshot(json.loads(json.dumps(game.snapshot())))


def through_pickle(game: Game) -> Game:
    again = pickle.loads(pickle.dumps(game))
    assert isinstance(again, Game)
    return again


COPIES = [Game.copy, copy.copy, copy.deepcopy, through_pickle, through_json]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("calls", [0, 41, 60])
def test_copies_play_on_alike_and_apart(rules, calls, copied):
    game = playing(rules, 8, calls)
    again = copied(game)
    before = game.snapshot()
    assert again.snapshot() == before
    rngs = random.Random(3), random.Random(3)
    for _ in range(60):
        if game.over:
            break
        step(game, rngs[0])
        assert copied(game).to_text() == game.to_text()
    assert again.snapshot() == before, "the copy moved with the original"
    for _ in range(60):
        if again.over:
            break
        step(again, rngs[1])
    assert again.snapshot() == game.snapshot()
    for _ in range(len(again.snapshot()["calls"])):
        again.undo()
    assert again.to_text() == Game(rules, seed=8).to_text()


def test_restore_makes_a_game_another():
    game, other = playing("norske", 1, 50), playing("kombat", 2, 30)
    snapshot = other.snapshot()
    game.restore(json.loads(json.dumps(snapshot)))
    assert game.snapshot() == snapshot
    step_a, step_b = random.Random(1), random.Random(1)
    for _ in range(20):
        step(game, step_a)
        step(other, step_b)
    assert game.to_text() == other.to_text()


def test_snapshot_of_a_game_from_a_record_without_seed():
    game = Game.from_state(find_rules("kimble"), playing("kimble", 5, 20).state)
    assert game.seed is None
    throw = game.die is None
    again = through_json(game)
    assert again.seed is None
    for one in (game, again):
        if not throw:
            one.play(one.legal_moves[0])
    assert [throw_and_pass(game) for _ in range(9)] == [throw_and_pass(again) for _ in range(9)]


def test_from_state_takes_a_copy_and_its_own_seed():
    game = playing("norske", 5, 31)
    state = game.state
    again = Game.from_state(game.rules, state[0])
    state["seat"] = 3
    assert again.to_text() == game.to_text()
    seeded = [Game.from_state(game.rules, game.state, seed=seed) for seed in (1, 1, 2)]
    dice = []
    for one in seeded:
        if one.die:
            one.play(one.legal_moves[0])
        dice.append([one.throw() for _ in range(1)] + one.state["seed"].tolist())
    assert dice[0] == dice[1] != dice[2]


# -------------------------------------------------------------------------------- damaged snapshots


def change(snapshot: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**snapshot, **changes}


BAD_SNAPSHOTS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda s: None, "a snapshot is a mapping with format"),
    (lambda s: [s], "a snapshot is a mapping with format"),
    (lambda s: {}, "a snapshot is a mapping with format"),
    (lambda s: change(s, format="kimble-snapshot/0"), "a snapshot is a mapping with format"),
    (lambda s: {key: s[key] for key in s if key not in ("calls", "seed")}, "'seed' is missing"),
    (lambda s: change(s, extra=1), "unknown key 'extra'"),
    (lambda s: change(s, rules="ludo"), "unknown rule set"),
    (lambda s: change(s, rules=3), "cannot read rules 3"),
    (lambda s: change(s, seats=[0]), "at least two seats must play"),
    (lambda s: change(s, seats=[0, 2]), "play, but the rules say"),
    (lambda s: change(s, seats=None), "seats must be letters or numbers"),
    (lambda s: change(s, seed="x"), "seed must be a whole number"),
    (lambda s: change(s, starter_dice=[[0]]), "a starter die is (seat, face)"),
    (lambda s: change(s, starter_dice=[[0, 9]]), "a starter die must be a whole number 1..6"),
    (lambda s: change(s, starter_dice=5), "starter_dice must be a list"),
    (lambda s: change(s, start={}), "start must have exactly the fields"),
    (lambda s: change(s, start=None), "start must have exactly the fields"),
    (lambda s: change(s, start=change(s["start"], die="x")), "start field die must be int8"),
    (lambda s: change(s, start=change(s["start"], die=[1])), "start field die must be int8"),
    (lambda s: change(s, start=change(s["start"], die=1.0)), "start field die must be int8"),
    (lambda s: change(s, start=change(s["start"], die=300)), "start field die must be int8"),
    (lambda s: change(s, start=change(s["start"], seed=2**64)), "start field seed must be uint64"),
    (lambda s: change(s, start=change(s["start"], pieces=[[1], 2])), "start field pieces must be"),
    (lambda s: change(s, start=change(s["start"], throws=9)), "the throws left of"),
    (lambda s: change(s, start=change(s["start"], last_seat=9)), "last_seat must lie in -1..3"),
    (lambda s: change(s, start=change(s["start"], event_count=3)), "event_count must lie in 0..2"),
    (lambda s: change(s, start=change(s["start"], event_count=1)), "must be kind, seat, count"),
    (lambda s: change(s, start=change(s["start"], status=7)), "status must be 0, 1 or 2"),
    (lambda s: change(s, calls=3), "calls must be a list"),
    (lambda s: change(s, calls=[["jump"]]), "call 1: unknown call ['jump']"),
    (lambda s: change(s, calls=[7]), "call 1: unknown call 7"),
    (lambda s: change(s, calls=[["throw", 7]]), "call 1: the die must be a whole number 1..6"),
    (lambda s: change(s, calls=[["throw", None]]), "call 1: the die must be"),
    (lambda s: change(s, calls=[["play", "3-8", None]]), "call 1: "),
    (lambda s: change(s, calls=[["out", "X"]]), "call 1: a seat is a number 0..3"),
    (lambda s: change(s, calls=s["calls"][:-1]), "snapshot: its calls lead to"),
]


@pytest.mark.parametrize(("damage", "fault"), BAD_SNAPSHOTS)
def test_damaged_snapshot_is_refused_and_changes_nothing(damage, fault):
    good = playing("norske", 6, 25).snapshot()
    bad = damage(json.loads(json.dumps(good)))
    game = playing("kimble", 1, 7)
    before = game.snapshot()
    with pytest.raises(KimbleError) as caught:
        game.restore(bad)
    assert fault in str(caught.value)
    assert game.snapshot() == before
    with pytest.raises(KimbleError):
        Game.from_snapshot(bad)


# ------------------------------------------------------------------------------------------ records


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("calls", [0, 1, 30, 4000])
def test_record_replays_to_the_same_game(rules, calls):
    game = playing(rules, 12, calls)
    record = game.record()
    assert record.rules == str(game.rules)
    again = Game.from_record(record)
    assert again.to_text() == game.to_text()
    assert again.record() == record
    assert again.state["throw_count"].tolist() == game.state["throw_count"].tolist()
    if not game.over:
        rngs = random.Random(1), random.Random(1)
        for _ in range(10):
            step(game, rngs[0])
            step(again, rngs[1])
        assert again.to_text() == game.to_text(), "future dice differ"


def test_a_whole_record_has_a_line_per_throw():
    game = playing("kombat", 3, 5000)
    record = game.record(("a", "b", "c", "d"))
    lines = [json.loads(line) for line in record.to_lines()]
    assert lines[0]["start"] == Game("kombat", seed=3).to_text()
    assert lines[0]["players"] == ["a", "b", "c", "d"]
    assert lines[0]["seed"] == 3
    assert len(lines) == game.plies + 2
    assert lines[-1]["result"]["winner"] == "RBYG"[game.winner]
    battles = [line for line in lines[1:-1] if line["battle"]]
    assert battles
    assert all(line["events"] for line in battles)
    assert [line["die"] for line in lines[1:-1]] == [entry.die for entry in record.entries]


def test_record_comes_from_a_file_or_lines(tmp_path):
    game = playing("norske", 3, 77)
    path = tmp_path / "game.jsonl"
    write_record(game.record(), path)
    for source in (path, str(path), game.record().to_lines()):
        assert Game.from_record(source).to_text() == game.to_text()


def test_record_of_a_game_that_began_with_a_die():
    game = Game.from_text("norske R3/B5/Y-/G- R 4 1", seed=1)
    assert Game.from_record(game.record()).to_text() == game.to_text()
    game.play("3-7")
    entry = game.record().entries[0]
    assert (entry.seat, entry.die, entry.move) == (0, 4, "3-7")
    assert Game.from_record(game.record()).to_text() == game.to_text()


def test_record_with_seats_going_out():
    game = Game.from_text("norske R3/B7/Y9/G- R - 1", seed=1)
    game.throw(4)
    game.remove_seat("G")
    game.play("3-7")
    game.remove_seat("B")  # was to throw
    game.throw(2)
    game.remove_seat("Y")  # had thrown; red is left and wins
    record = game.record()
    assert [json.loads(line) for line in record.to_lines()[1:-1]] == [
        {"out": "G", "die": 4},
        {"seat": "R", "die": 4, "move": "3-7", "battle": None, "events": []},
        {"out": "B", "die": None},
        {"out": "Y", "die": 2},
    ]
    assert game.result == Result("won", 0, (), (3, 1, 2))
    assert Game.from_record(record).snapshot() == game.snapshot()


def test_replay_needs_no_random_generator():
    record = playing("kombat", 3, 5000).record()
    other = GameRecord(**{**record.__dict__, "seed": 999})
    assert Game.from_record(other).to_text() == Game.from_record(record).to_text()


def tampered(number: int, **changes: Any) -> Callable[[list[Any]], None]:
    def tamper(lines: list[Any]) -> None:
        lines[number].update(changes)

    return tamper


def drop(number: int) -> Callable[[list[Any]], None]:
    return lambda lines: lines.pop(number)


# kombat R3/B1/Y-/G- R - 1: 1 R 5 3-8 battle 3:4, 2 B 6 enter, 3 B 2 pass, 4 Y 3 pass
TAMPERED = [
    (tampered(0, rules="kimble"), "rules 'kimble' but start"),
    (tampered(0, start="kombat R3/B1/Y-/G- B - 1"), "entry 1: blue is to throw"),
    (tampered(0, start="kombat R3/B1/Y-/G- Q - 1"), "the seat to act"),
    (tampered(0, players=["a"]), "4 players, named ('a',)"),
    (tampered(0, starter_dice=[["R", 3]]), "starter dice ((0, 3),) are not whole rounds"),
    (tampered(0, starter_dice=[["R", 3], ["B", 4], ["Y", 1], ["G", 1]]),
     "by the starter dice blue begins, not red"),
    (tampered(1, die=4), "entry 1: '3-8' is not legal for red with a 4; legal: 3-7, pass"),
    (tampered(1, move="3-9"), "entry 1: '3-9' is not legal"),
    (tampered(1, move=None), "entry 1: no move is recorded, but legal are: 3-8, pass"),
    (tampered(1, battle=None), "entry 1: 3-8 starts a battle, but no battle dice are recorded"),
    (tampered(1, battle=[6, 1]), "entry 1: the events are (('loss', 1, 1, 'battle'),), the record"),
    (tampered(1, events=[]), "entry 1: the events are"),
    (tampered(1, seat="Y"), "entry 1: red is to throw, the record says yellow"),
    (tampered(2, die=5), "entry 2: 'enter' is not legal for blue with a 5"),
    (tampered(3, battle=[1, 2]), "entry 3: pass starts no battle"),
    (tampered(4, events=[["arrival", "R", 1]]), "entry 4: the events are ()"),
    (tampered(5, result={"status": "won", "winner": "R", "places": "R", "out": ""}),
     "the game's is None"),
    (drop(3), "entry 3: blue is to throw, the record says yellow"),
    (lambda lines: lines.insert(1, {"out": "R", "die": 3}), "entry 2: blue is to throw"),
    (lambda lines: lines.insert(2, {"out": "R", "die": 3}), "entry 3: the die is 3, the record"),
    (lambda lines: lines.insert(2, {"out": "X", "die": None}), "out must be one letter of RBYG"),
]  # fmt: skip


@pytest.mark.parametrize(("tamper", "fault"), TAMPERED)
def test_tampered_record_is_refused(tamper, fault):
    game = Game.from_text("kombat R3/B1/Y-/G- R - 1", seed=2)
    for die, move in ((5, "3-8"), (6, "enter"), (2, "pass"), (3, "pass")):
        game.throw(die)
        game.play(move, (3, 4) if move == "3-8" else None)
    lines = [json.loads(line) for line in game.record().to_lines()]
    assert Game.from_record(map(json.dumps, lines)).to_text() == game.to_text()
    tamper(lines)
    with pytest.raises(KimbleError) as caught:
        Game.from_record(map(json.dumps, lines))
    assert fault in str(caught.value)


def test_record_that_goes_on_after_the_end_is_refused():
    game = Game.from_text("kimble R27,29,30,31/B3/Y-/G- R 1 1")
    game.play("27-28")
    lines = game.record().to_lines()
    lines.insert(2, lines[1])
    with pytest.raises(NotationError, match="entry 2: cannot throw: the game is over"):
        Game.from_record(lines)


def test_starter_dice_of_a_lot_are_refused():
    lines = [json.loads(line) for line in Game("norske", seed=1).record().to_lines()]
    lines[0]["starter_dice"] = [["R", 4]]
    with pytest.raises(NotationError, match="starter=random throws no starter dice"):
        Game.from_record(map(json.dumps, lines))


# ---------------------------------------------------------------------------- a team goes out (R34)


def test_a_seat_that_is_to_act_goes_out():
    game = Game.from_text("norske R3,H/B5/Y-/G- R 4 1")
    game.remove_seat(0)
    assert game.to_text() == "norske RH/B5/Y-/G- B - 1 out=R"
    assert game.events == []


def test_a_die_of_another_is_judged_on_the_new_position():
    game = Game.from_text("norske R3,20/B0/Y-/G- R 4 1")
    assert moves(game) == ["20-24"]
    game.remove_seat("blue")
    assert moves(game) == ["3-7", "20-24"]
    assert game.to_text() == "norske R3,20/B-/Y-/G- R 4 1 out=B"


def test_turns_of_a_seat_that_is_out_are_skipped():
    game = Game.from_text("norske R3/B5/Y-/G- R - 1")
    game.remove_seat("B")
    game.throw(2)
    game.play("3-5")
    assert game.seat == 2


def test_the_last_seat_left_wins():
    game = Game.from_text("norske R3/B5 R - 1")
    game.remove_seat(0)
    assert game.result == Result("won", 1, (), (0,))
    assert game.to_text() == "norske R-/B5 B * 0 out=R"


# ------------------------------------------------------------------------------------------ cut off


def test_max_turns_cuts_off_without_a_winner():
    game = Game("kimble", max_turns=3, starter="R", seed=1)
    for _ in range(3):
        game.throw(2)
        game.play("pass")
    assert game.to_text() == "kimble[max_turns=3,starter=R] R-/B-/Y-/G- G - 1 turn=3"
    assert game.result == Result("truncated", None)
    assert game.result.truncated
    assert str(game.result) == "cut off, no winner"
    assert (game.over, game.winner) == (True, None)
    assert Game.from_text(game.to_text()).over
    with pytest.raises(GameOverError):
        game.throw()


def test_a_throw_without_a_move_can_be_the_last():
    game = Game.from_text("norske[max_turns=9] R-/B-/Y-/G- R - 1 turn=8")
    game.throw(3)
    assert game.over
    assert game.result == Result("truncated", None)


def test_playing_for_places_goes_on_to_the_last():
    game, rng = Game("kimble", play_for_places=True, seed=4), random.Random(4)
    while not game.over:
        game.throw()
        options = [m for m in game.legal_moves if str(m) != "pass"] or game.legal_moves
        game.play(rng.choice(options))
    assert len(game.result.places) == 3
    assert game.winner == game.result.places[0]
    text = game.to_text()
    assert text.endswith("places=" + "".join("RBYG"[seat] for seat in game.result.places))
    assert Game.from_text(text).result == game.result


# ------------------------------------------------------------------------------------------- misuse

TO_THROW = "kombat R3/B1/Y-/G- R - 1"
TO_PLAY = "kombat R3/B1/Y-/G- R 5 1"
OVER = "kombat R28,29,30,31/B1/Y-/G- R * 0"
COLOURS = "kimble[two_colours=yes] R3/B-/Y-/G- R - 1"
PLACES = "norske[play_for_places=yes] RHx4/B5/Y3/G- B - 1 places=R out=G"

MISUSE: list[tuple[str, Callable[[Game], Any], type[Exception], str]] = [
    (TO_THROW, lambda g: g.throw(0), IllegalThrowError, "must be a whole number 1..6, got 0"),
    (TO_THROW, lambda g: g.throw(7), IllegalThrowError, "got 7"),
    (TO_THROW, lambda g: g.throw(2.0), IllegalThrowError, "got 2.0"),
    (TO_THROW, lambda g: g.throw(True), IllegalThrowError, "got True"),
    (TO_THROW, lambda g: g.throw("3"), IllegalThrowError, "got '3'"),
    (TO_THROW, lambda g: g.throw(10**30), IllegalThrowError, "whole number 1..6"),
    (TO_THROW, lambda g: g.play("3-8"), IllegalMoveError, "red must throw before playing '3-8'"),
    (TO_THROW, lambda g: g.play("pass"), IllegalMoveError, "red must throw before playing 'pass'"),
    (TO_THROW, lambda g: g.play(0), IllegalMoveError,
     "red must throw before playing action 0 (enter)"),
    (TO_THROW, lambda g: g.battle_outcomes("3-8"), IllegalMoveError, "red must throw"),
    (TO_THROW, lambda g: g.starts_battle("3-8"), IllegalMoveError, "red must throw"),
    (TO_PLAY, lambda g: g.throw(), IllegalThrowError,
     "red has thrown 5 and must play one of: 3-8, pass"),
    (TO_PLAY, lambda g: g.throw(3), IllegalThrowError, "red has thrown 5"),
    (TO_PLAY, lambda g: g.play("3-9"), IllegalMoveError,
     "'3-9' is not legal for red with a 5; legal: 3-8, pass"),
    (TO_PLAY, lambda g: g.play("enter"), IllegalMoveError, "'enter' is not legal for red"),
    (TO_PLAY, lambda g: g.play("4-9"), IllegalMoveError, "'4-9' is not legal for red"),
    (TO_PLAY, lambda g: g.play(""), IllegalMoveError, "'' is not legal"),
    (TO_PLAY, lambda g: g.play(34), IllegalMoveError, "action 34 is not legal"),
    (TO_PLAY, lambda g: g.play(-1), IllegalMoveError, "action -1 is not legal"),
    (TO_PLAY, lambda g: g.play(10**30), IllegalMoveError, "is not legal"),
    (TO_PLAY, lambda g: g.play(True), IllegalMoveError, "text or an action code, got True"),
    (TO_PLAY, lambda g: g.play(4.0), IllegalMoveError, "a Move, a text or an action code, got 4.0"),
    (TO_PLAY, lambda g: g.play(None), IllegalMoveError, "text or an action code, got None"),
    (TO_PLAY, lambda g: g.play(["3-8"]), IllegalMoveError, "a Move, a text or an action code"),
    (TO_PLAY, lambda g: g.play(Game.from_text("kombat R3/B- R 4 1").legal_moves[0]),
     IllegalMoveError, "'3-7' is not legal for red with a 5"),
    (TO_PLAY, lambda g: g.play("pass", (1, 2)), IllegalMoveError, "pass starts no battle"),
    (TO_PLAY, lambda g: g.play("3-8", (1, 7)), IllegalThrowError, "the defender's die must be"),
    (TO_PLAY, lambda g: g.play("3-8", (0, 1)), IllegalThrowError, "the attacker's die must be"),
    (TO_PLAY, lambda g: g.play("3-8", (1,)), IllegalThrowError, "battle dice are (attacker"),
    (TO_PLAY, lambda g: g.play("3-8", 4), IllegalThrowError, "battle dice are (attacker"),
    (TO_PLAY, lambda g: g.play("3-8", "34"), IllegalThrowError, "battle dice are"),
    (TO_PLAY, lambda g: g.battle_outcomes("3-9"), IllegalMoveError, "'3-9' is not legal"),
    (TO_PLAY, lambda g: g.starts_battle(7), IllegalMoveError,
     "action 7 (6-11) is not legal"),
    (TO_PLAY, lambda g: g.remove_seat(4), KimbleError, "a seat is a number 0..3"),
    (TO_PLAY, lambda g: g.remove_seat("r"), KimbleError, "a seat is a number 0..3"),
    (TO_PLAY, lambda g: g.remove_seat(True), KimbleError, "a seat is a number 0..3"),
    (TO_PLAY, lambda g: g.remove_seat(None), KimbleError, "a seat is a number 0..3"),
    ("kombat R3/B1 R - 1", lambda g: g.remove_seat("G"), KimbleError, "green does not play"),
    (PLACES, lambda g: g.remove_seat("R"), KimbleError, "red has finished"),
    (PLACES, lambda g: g.remove_seat("G"), KimbleError, "green is out already"),
    (COLOURS, lambda g: g.remove_seat("R"), KimbleError, "with two_colours no seat goes out"),
    (OVER, lambda g: g.throw(), GameOverError, "cannot throw: the game is over (red wins)"),
    (OVER, lambda g: g.throw(3), GameOverError, "the game is over"),
    (OVER, lambda g: g.play("pass"), GameOverError, "cannot play: the game is over (red wins)"),
    (OVER, lambda g: g.remove_seat("B"), GameOverError, "cannot remove a seat: the game is over"),
    (TO_THROW, lambda g: g.undo(), KimbleError, "there is nothing to undo"),
    (TO_THROW, lambda g: g.record(["a"]), KimbleError, "expected the names of 4 players"),
    (TO_THROW, lambda g: g.record([1, 2, 3, 4]), KimbleError, "expected the names of 4 players"),
    (TO_THROW, lambda g: g.restore({}), NotationError, "a snapshot is a mapping"),
]  # fmt: skip


@pytest.mark.parametrize(("start", "misuse", "error", "fault"), MISUSE)
def test_misuse_is_named_and_changes_nothing(start, misuse, error, fault):
    game = Game.from_text(start, seed=3)
    before, state, legal = game.snapshot(), game.state.tobytes(), moves(game)
    with pytest.raises(KimbleError) as caught:
        misuse(game)
    assert type(caught.value) is error
    assert fault in str(caught.value)
    assert game.snapshot() == before
    assert game.state.tobytes() == state
    assert moves(game) == legal
    if not game.over and not legal:
        game.throw()


@pytest.mark.parametrize(
    ("make", "error", "fault"),
    [
        (lambda: Game("ludo"), RulesError, "unknown rule set 'ludo'"),
        (lambda: Game("kimble", wings=1), RulesError, "unknown option 'wings'"),
        (lambda: Game("kimble", players=9), RulesError, "players must be 2, 3 or 4"),
        (lambda: Game("kimble", players=[2]), RulesError, "players must be 2, 3 or 4, got [2]"),
        (lambda: Game("kimble", players=2.0), RulesError, "players must be 2, 3 or 4, got 2.0"),
        (lambda: Game("kimble", players=True), RulesError, "players must be 2, 3 or 4"),
        (lambda: Game("kimble", seed=-1), KimbleError, "seed must be a whole number 0..2**64-1"),
        (lambda: Game("kimble", seed=2**64), KimbleError, "seed must be"),
        (lambda: Game("kimble", seed=1.5), KimbleError, "seed must be"),
        (lambda: Game("kimble", seed=True), KimbleError, "seed must be"),
        (lambda: Game("kimble", seed="x"), KimbleError, "seed must be"),
        (lambda: Game.from_text(TO_THROW, seed=-1), KimbleError, "seed must be"),
        (lambda: Game.from_text("norske R-/B-/Y-/G- R 4 3"), PositionError, "has no legal move"),
        (lambda: Game.from_state("kimble", None), KimbleError, "rules must be Rules, got str"),
        (lambda: Game.from_state(find_rules("kimble"), None), PositionError, "one record of STATE"),
        (lambda: Game.from_state(find_rules("kimble", players=2), Game("kimble").state),
         PositionError, "the seats (0, 1, 2, 3) play, but the rules say (0, 2)"),
        (lambda: Game.from_state(find_rules("kimble"), k.empty_states(1)), PositionError,
         "fewer than two seats play"),
        (lambda: Game.from_record([]), NotationError, "expected one game, got 0"),
        (lambda: Game.from_record(None), NotationError, "a path or lines, got NoneType"),
        (lambda: Game.from_record(["x"]), NotationError, "record line 1: not JSON"),
        (lambda: Game.from_snapshot({}), NotationError, "a snapshot is a mapping"),
    ],
)  # fmt: skip
def test_game_that_cannot_be_made(make, error, fault):
    with pytest.raises(KimbleError) as caught:
        make()
    assert type(caught.value) is error
    assert fault in str(caught.value)


def test_errors_are_value_errors():
    with pytest.raises(ValueError, match="nothing to undo"):
        Game("kimble").undo()
