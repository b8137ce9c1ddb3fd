"""Matches, intervals and tables."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from evaluation import block_bootstrap, match_json, play_match, progress, tabletop, wilson
from evaluation.cli import evaluate
from kimble_env import Game, choose, find_rules
from kimble_env.errors import AgentError, KimbleError
from kimble_env.features import play_weighted_batch
from kimble_env.opponents import Agent, WeightAgent, make_agent
from kimble_env.rules import Rules


class Asked:
    """A weight vector behind a door that the compiled way cannot see through."""

    def __init__(self, rules: Rules, spec: str = "mixed") -> None:
        self.inner = make_agent(spec, rules)
        self.spec = f"asked {spec}"

    def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        return self.inner.act(positions, keys)


def first_move(game):  # type: ignore[no-untyped-def]
    return game.legal_moves[0]


# --------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("wins", "games", "confidence", "low", "high"),
    [
        # roots of (share - p)^2 = z^2 p (1 - p) / games, from textbooks and by hand
        (15, 148, 0.95, 0.0624, 0.1605),  # Newcombe 1998, table I, method 3: 81/263, 15/148, …
        (81, 263, 0.95, 0.2553, 0.3662),
        (0, 20, 0.95, 0.0000, 0.1611),
        (1, 29, 0.95, 0.0061, 0.1718),
        (5, 10, 0.95, 0.2366, 0.7634),
        (10, 10, 0.95, 0.7225, 1.0000),
    ],
)
def test_wilson_known_values(
    wins: float, games: int, confidence: float, low: float, high: float
) -> None:
    assert wilson(wins, games, confidence) == pytest.approx((low, high), abs=5e-5)


def test_wilson_bounds_solve_their_equation() -> None:
    for wins, games in ((3, 17), (250.5, 1000), (9999, 20000)):
        for p in wilson(wins, games, 0.95):
            z = abs(wins / games - p) / math.sqrt(p * (1 - p) / games)
            assert z == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize("arguments", [(1, 0), (3, 2), (-1, 2), (1, 2, 0.0), (1, 2, 1.0)])
def test_wilson_refuses_what_cannot_be(arguments: tuple[float, ...]) -> None:
    with pytest.raises(KimbleError):
        wilson(*arguments)


def test_the_bootstrap_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    for trial in range(200):
        blocks = rng.binomial(4, 0.3, 150) / 4
        low, high = block_bootstrap(blocks, resamples=400, seed=trial)
        hits += low <= 0.3 <= high
    assert 0.88 < hits / 200 < 0.99
    assert block_bootstrap(blocks, seed=1) == block_bootstrap(blocks, seed=1)
    assert block_bootstrap(np.full(9, 0.25)) == (0.25, 0.25)
    with pytest.raises(KimbleError, match="at least one block"):
        block_bootstrap(np.empty(0))


# ------------------------------------------------------------------------------------------ matches


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske"])
def test_agents_asked_from_python_play_the_same_games_as_compiled(rules: str) -> None:
    compiled = play_match(["mixed", "random", "cautious", "random:mask"], rules, games=120)
    mixed = play_match([Asked, "random", "cautious", "random:mask"], rules, games=120)
    assert (compiled.winners == mixed.winners).all()
    assert (compiled.plies == mixed.plies).all()
    everyone = [
        lambda rules, spec=spec: Asked(rules, spec)
        for spec in ("mixed", "random", "cautious", "random:mask")
    ]
    asked = play_match(everyone, rules, games=120)
    assert (compiled.plies == asked.plies).all()


def test_equal_results_for_any_number_of_threads_and_any_number_of_games() -> None:
    line_up = ["cautious", "random", "mixed"]
    one = play_match(line_up, "norske", games=3000, seed=5, threads=1)
    two = play_match(line_up, "norske", games=3000, seed=5, threads=2)
    three = play_match(line_up, "norske", games=6000, seed=5, threads=3)
    assert (one.winners == two.winners).all()
    assert (one.plies == two.plies).all()
    assert (one.plies == three.plies[:1000]).all()
    other = play_match(line_up, "norske", games=3000, seed=6)
    assert (one.plies != other.plies).any()
    asked = [play_match([Asked, "random"], "kimble", games=200, threads=t) for t in (1, 2)]
    assert (asked[0].plies == asked[1].plies).all()


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske", "kimble[two_colours=yes]"])
@pytest.mark.parametrize("spec", ["random", "mixed"])
def test_an_agent_against_itself_is_at_par(rules: str, spec: str) -> None:
    for players in (2,) if "two_colours" in rules else (2, 3, 4):
        result = play_match([spec] * players, rules, games=600)
        # The same agent at every seat plays the same game in every rotation: exactly par.
        assert [result.share(k) for k in range(players)] == pytest.approx([1 / players] * players)
        assert (result.plies == result.plies[:, :1]).all()


def test_parity_within_the_interval_when_the_choices_differ() -> None:
    class Other:
        """The same play as ``random``, with other random numbers."""

        def __init__(self, rules: Rules) -> None:
            self.inner = make_agent("random", rules)

        def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
            return self.inner.act(positions, keys * np.uint64(0x9E3779B97F4A7C15))

    result = play_match(["random", Other], "kimble", games=3000, seed=2)
    low, high = result.bootstrap(0, confidence=0.999)
    assert low <= 0.5 <= high
    assert (result.plies[:, 0] != result.plies[:, 1]).any()


def test_every_rotation_meets_the_same_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seat's n-th throw shows the same face in every game of a block, whoever sits there."""
    faces: dict[tuple[int, int, int], list[int]] = {}
    played = tabletop.play_batch

    def watch(states: np.ndarray, *rest: object) -> None:
        for s in states:
            seat = int(s["seat"])
            place = (int(s["seed"]), seat, int(s["throw_count"][seat]))
            faces.setdefault(place, []).append(int(s["die"]))
        played(states, *rest)

    monkeypatch.setattr(tabletop, "play_batch", watch)
    result = play_match([Asked, first_move], "kimble", games=16, seed=4)
    assert (result.plies[:, 0] != result.plies[:, 1]).all()  # other games on the same dice
    assert len({seed for seed, _, _ in faces}) == 8
    assert all(len(set(seen)) == 1 for seen in faces.values())
    assert sum(len(seen) == 2 for seen in faces.values()) > 100


def test_rotations_and_seats() -> None:
    result = play_match(["mixed", "random", "random", "random"], "kimble", games=4001)
    assert result.games == 4004  # whole blocks
    assert result.agents == ("mixed", "random", "random (2)", "random (3)")
    assert result.seating.tolist() == [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]
    by_seat = [result.share_at(0, place) for place in range(4)]
    assert np.mean(by_seat) == pytest.approx(result.share(0))
    assert min(by_seat) > 0.3
    assert result.place_names() == ("R", "B", "Y", "G")
    assert sum(result.share(k) for k in range(4)) == pytest.approx(1)
    two = play_match(["mixed", "random"], "kimble[two_colours=yes]", games=400)
    assert two.place_names() == ("RY", "BG")
    assert two.share(0) > 0.6


def test_the_winner_is_credited_to_who_sat_there() -> None:
    """An agent that always passes never wins, wherever it sits."""
    lazy = 'weights:{"pass": 1}'
    result = play_match(["random", lazy, "random"], "kimble", games=300)
    assert result.share(1) == 0
    assert [result.share_at(1, place) for place in range(3)] == [0, 0, 0]
    assert result.truncated == 0


def test_endless_games_are_cut_off_counted_and_shared() -> None:
    lazy = 'weights:{"pass": 1}'
    result = play_match([lazy, lazy, lazy], "kimble", games=30, cap=250)
    assert result.truncated == 30
    assert (result.plies == 250).all()
    assert [result.share(k) for k in range(3)] == pytest.approx([1 / 3] * 3)
    assert match_json(result)["truncated_share"] == 1
    asked = play_match([Asked, lazy], "kimble", games=20, cap=90)
    same = play_match(["mixed", lazy], "kimble", games=20, cap=90)
    assert (asked.winners == same.winners).all()
    assert 0 < same.truncated < 20


def test_max_turns_of_the_rules_cut_off_too() -> None:
    result = play_match(["random", "random"], "kimble[max_turns=10]", games=20)
    assert result.truncated == 20
    assert result.share(0) == 0.5


def test_functions_and_own_seats_play_matches() -> None:
    result = play_match([first_move, "random"], find_rules("kombat", seats="BG"), games=8)
    assert result.agents[0] == "first_move"
    assert result.place_names() == ("B", "G")
    assert result.truncated == 0


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    play_match(["random"] * 2, games=9000, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (9000, 9000)
    assert len(calls) == 3
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": ["random"]}, "2 to 4 agents, got 1"),
        ({"agents": ["random"] * 5}, "2 to 4 agents, got 5"),
        ({"agents": ["random"] * 3, "rules": find_rules("kimble")}, "for 4 players, but 3"),
        ({"agents": ["random"] * 3, "rules": "kimble[two_colours=yes]"}, "for 2 players, but 3"),
        ({"games": 0}, "games must be a whole number of at least 1, got 0"),
        ({"games": 1.5}, "games must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 1 << 63}, "seed must be below"),
        ({"cap": 0}, "cap must be"),
        ({"threads": 0}, "threads must be"),
        ({"agents": ["random", "nobody"]}, "unknown agent 'nobody'"),
        ({"rules": "poker"}, "unknown rule set"),
    ],
)
def test_misuse_is_named(arguments: dict[str, object], message: str) -> None:
    call: dict[str, object] = {"agents": ["random", "random"], "games": 4, **arguments}
    with pytest.raises(KimbleError, match=message):
        play_match(**call)  # type: ignore[arg-type]


def test_an_agent_that_cheats_stops_the_match() -> None:
    def cheat(game):  # type: ignore[no-untyped-def]
        return "pass"

    with pytest.raises(KimbleError, match=r"agent .*cheat.* answers 'pass'; legal moves"):
        play_match([cheat, "random"], "norske", games=8)


# ------------------------------------------------------------------------- what else was recorded


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske"])
def test_counted_play_is_the_engine_s_own(rules: str) -> None:
    """Counting choices changes no game: the engine's own loop gives the same records."""
    table = tabletop.Table(
        find_rules(rules),
        tabletop.make_agents(["cautious", "random", "mixed", "random"], find_rules(rules)),
    )
    counted, plain = table.deal(3, 0, 60), table.deal(3, 0, 60)
    table.play(counted, 5000, 1)
    seating = np.tile(table.seating, (60, 1))
    play_weighted_batch(plain, table.rules.array, table.weights, seating, 5000)
    assert (counted == plain).all()


@pytest.mark.parametrize("rules", ["kimble", "norske"])
def test_tallies_are_what_a_slow_count_gives(rules: str) -> None:
    """Counted again move by move, from the events that ``Game`` reports."""
    found = find_rules(rules, players=2)
    passing = 'weights:{"pass": 1, "progress": 0.1}'
    result = play_match([passing, "random"], found, games=6, seed=9)
    asked = play_match([lambda rules: Asked(rules, passing), "random"], found, games=6, seed=9)
    assert (result.tallies == asked.tallies).all()
    agents = tabletop.make_agents([passing, "random"], found)
    slow = np.zeros((2, len(tabletop.TALLIES)), int)
    for i, state in enumerate(tabletop.Table(found, agents).deal(9, 0, 3)):
        who = dict(zip(found.seats, ((0, 1), (1, 0))[i % 2], strict=True))
        game = Game.from_state(found, np.array([state], state.dtype))
        while not game.over:
            slow_throw(game, who, agents, slow)
    assert slow.tolist() == result.tallies.tolist()
    assert result.tallies[:, :5].min() >= 0
    assert result.per_game(0, "throws") == slow[0, 0] / 6
    assert result.pass_share(0) == slow[0, 2] / slow[0, 1]


def slow_throw(game: Game, who: dict[int, int], agents: list[Agent], slow: np.ndarray) -> None:
    """Play one throw and count it by hand."""
    agent = who[int(game.state["seat"][0])]
    game.throw()
    slow[agent, 0] += 1
    if not game.legal_moves:
        return
    move = game.legal_moves[0]
    if len(game.legal_moves) > 1:
        move = choose(agents[agent], game)
        slow[agent, 1] += 1
        slow[agent, 2] += str(move) == "pass"
    game.play(move)
    for event in game.events:
        if event.kind == "arrival":
            slow[who[event.seat], 5] += event.count
            continue
        slow[who[event.seat], 4] += event.count
        if event.by != event.seat:
            slow[who[event.by], 3] += event.count


def test_seatings_of_one_s_own() -> None:
    """One against three over all arrangements is the line-up of four names, added up."""
    one = play_match(["mixed", "random"], games=400, seatings=tabletop.arrangements([1, 3]))
    four = play_match(["mixed", "random", "random", "random"], games=400)
    assert one.seating.shape == (4, 4)
    assert one.share(0) == pytest.approx(four.share(0))
    assert (one.par(0), one.par(1)) == (0.25, 0.75)
    assert one.tallies[1].tolist() == four.tallies[1:].sum(axis=0).tolist()
    assert one.share_at(1, 0) == pytest.approx(np.mean([four.share_at(k, 0) for k in (1, 2, 3)]))
    assert len(tabletop.arrangements([2, 2])) == 6
    assert len(tabletop.arrangements([1, 1, 1, 1])) == 24
    stalled = play_match(
        ['weights:{"pass": 1}', 'weights:{"pass": 2}'], games=4, cap=50,
        seatings=tabletop.arrangements([1, 3]),
    )  # fmt: skip
    assert stalled.share(0) == 0.25
    later = play_match(["mixed", "random"], games=20, first=100, seatings=[[0, 1]])
    early = play_match(["mixed", "random"], games=120, seatings=[[0, 1]])
    assert (later.plies == early.plies[100:]).all()
    for wrong in ([[0, 0]], [[0, 2]], [0, 1], [[0.0, 1.0]], [[0], [1]], "no"):
        with pytest.raises(KimbleError, match="seatings must be whole numbers"):
            play_match(["mixed", "random"], games=4, seatings=wrong)


OWN_AGENT = """
def lazy(game):
    return game.legal_moves[-1]
"""


def test_equal_results_for_any_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_AGENT, encoding="utf-8")
    line_up = [f"{tmp_path / 'mine.py'}:lazy", "random"]
    calls: list[tuple[int, int]] = []
    one = play_match(line_up, "norske", games=24, seed=3)
    two = play_match(
        line_up, "norske", games=24, seed=3, workers=2,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    assert (one.winners == two.winners).all()
    assert (one.plies == two.plies).all()
    assert (one.tallies == two.tallies).all()
    assert one.agents == two.agents
    assert calls[-1] == (24, 24)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_what_cannot_be_sent_to_workers_is_named() -> None:
    with pytest.raises(KimbleError, match=r"cannot be sent to worker processes .*workers=1"):
        play_match([lambda game: game.legal_moves[0], "random"], games=4, workers=2)
    for workers in (0, 1.5, True):
        with pytest.raises(KimbleError, match="workers must be a whole number"):
            play_match(["random", "random"], games=4, workers=workers)  # type: ignore[arg-type]
    assert play_match(["random", "random"], games=4, workers=2).games == 4  # none is needed


def test_an_agent_that_fails_in_a_worker_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def bad(game):\n    return 'no'\n", encoding="utf-8")
    with pytest.raises(KimbleError, match=r"agent .*bad.* answers 'no'"):
        play_match([f"{tmp_path / 'bad.py'}:bad", "random"], games=8, workers=1)
    with pytest.raises(KimbleError, match=r"agent .*bad.* answers 'no'"):
        play_match([f"{tmp_path / 'bad.py'}:bad", "random"], games=8, workers=2)


def test_progress_within_a_batch_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabletop, "_REPORT_EVERY", 0.0)
    calls: list[int] = []
    play_match([first_move, "random"], games=16, progress=lambda done, total: calls.append(done))
    assert len(calls) > 10
    assert calls == sorted(calls)
    assert calls[-1] == 16


# ------------------------------------------------------------------------------------- the command


def test_evaluate_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(["cautious", "random"], "norske", players=4, games=400, seed=7, json=True)
    out, err = capsys.readouterr()
    assert err == ""
    data = json.loads(out)
    assert data.pop("seconds") >= 0
    assert data == json.loads(json.dumps(match_json(result)))
    assert data["format"] == "kimble-match-1"
    assert (data["rules"], data["players"], data["games"], data["seed"]) == ("norske", 4, 400, 7)
    assert [a["agent"] for a in data["agents"]] == [
        "cautious",
        "random",
        "random (2)",
        "random (3)",
    ]
    first = data["agents"][0]
    assert first["wilson95"][0] < first["win_share"] < first["wilson95"][1]
    assert set(first["win_share_by_seat"]) == {"R", "B", "Y", "G"}
    assert sum(a["wins"] for a in data["agents"]) + data["truncated"] == 400


def test_evaluate_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(["mixed", "random"], "kombat", games=200, progress=True)
    out, err = capsys.readouterr()
    for text in ("kombat, 2 players, 200 games", "par 50.0 %", "mixed", "random", "95 % interval"):
        assert text in out
    assert "at R" in out
    assert "at Y" in out
    assert "Cut off after 5,000 throws: 0.00 %" in " ".join(out.split())
    assert "games/s" in err or err.strip() == ""


def test_what_agents_print_is_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "talks.py"
    own.write_text("def play(game):\n    print('thinking')\n    return game.legal_moves[0]\n")
    for workers in (1, 2):
        evaluate([f"{own}:play", "random"], games=4, json=True, workers=workers)
        out, err = capfd.readouterr()
        assert json.loads(out)["games"] == 4
        assert "thinking" in err


def test_progress_in_a_pipe_is_told_in_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    evaluate(["mixed", "random"], games=9000, json=True)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"playing: 9,000 of 9,000 games, [\d,]+ games/s, 0:00 left", lines[-1])
    evaluate(["mixed", "random"], games=200, json=True, progress=False)
    assert capsys.readouterr().err == ""


def test_evaluate_reads_its_line_up() -> None:
    def lineup(*specs: str, **options: object) -> tuple[str, ...]:
        return evaluate(specs, games=4, json=True, **options).agents  # type: ignore[arg-type]

    assert lineup("random") == ("random", "random (2)")
    assert lineup("random", "mixed", "runner") == ("random", "mixed", "runner")
    assert lineup("mixed", "random", players=3) == ("mixed", "random", "random (2)")
    assert len(lineup("mixed", rules=find_rules("kimble", players=3))) == 3
    assert len(lineup("mixed", rules="kimble[two_colours=yes]")) == 2
    assert len(lineup("mixed", "random", rules=find_rules("kimble"), players=2)) == 2


def test_pieces_is_short_for_the_option() -> None:
    result = evaluate(["random"], "kimble", games=2, pieces=2, json=True)
    assert str(result.rules) == "kimble[pieces=2]"
    with pytest.raises(KimbleError, match="pieces is given twice"):
        evaluate(["random"], "kimble[pieces=3]", games=2, pieces=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"specs": []}, "1 to 4 agents, got 0"),
        ({"specs": ["random"] * 3, "players": 2}, "3 agents are given for 2 players"),
        ({"players": 5}, "players must be 2, 3 or 4"),
        ({"rules": "kimble[two_colours=yes]", "players": 4}, "is for 2 players, but players=4"),
        ({"specs": ["nobody"]}, "unknown agent"),
    ],
)
def test_evaluate_misuse(
    arguments: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call: dict[str, object] = {"specs": ["random"], "games": 4, **arguments}
    with pytest.raises(KimbleError, match=message):
        evaluate(**call)  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""


def test_weight_agents_need_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(WeightAgent, "act", never)
    assert play_match(["mixed", "random"], games=8).games == 8
    with pytest.raises(AgentError, match="AssertionError: asked"):
        play_match(["mixed", Asked], games=8)
