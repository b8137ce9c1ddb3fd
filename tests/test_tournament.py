"""Tournaments that survive a kill, ratings that recover the truth, and plans."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaluation import ladder, ratings
from evaluation.cli import compare, evaluate, plan, tournament
from evaluation.match import play_match
from evaluation.planner import games_needed, half_width_of, measured_needs, typical_needs
from evaluation.record import RecordError, read_lines
from evaluation.report import summarise
from evaluation.statistics import confidence_sequence
from evaluation.tabletop import arrangements
from evaluation.tournament import (
    KINDS,
    Tournament,
    adopt_record,
    choose_kinds,
    make_settings,
    play_tournament,
    read_tournament,
)
from kimble_env.errors import KimbleError
from kimble_env.opponents import make_agent
from kimble_env.rules import find_rules

ROOT = Path(__file__).resolve().parent.parent
THREE = ["random", "cautious", "mixed"]


def same(one: Tournament, two: Tournament) -> bool:
    return all(
        (a.places == b.places).all()
        and a.lengths == b.lengths
        and a.plies == b.plies
        and (a.tallies == b.tallies).all()
        for a, b in zip(one.pairings, two.pairings, strict=True)
    )


# ---------------------------------------------------------------------------------- what is played


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_pairing_is_the_match_at_the_same_tables(players: int, tmp_path: Path) -> None:
    settings = make_settings(["random", "mixed"], "kombat", players, seed=4)
    played = play_tournament(settings, tmp_path / "t.jsonl", 200)
    assert sum(len(arrangements([int(k[0]), int(k[2])])) for k in KINDS[players]) == (
        2**players - 2
    )
    pairing = played.pairings[0]
    match = play_match(
        ["random", "mixed"], "kombat", pairing.places.size, settings.dice(0),
        seatings=settings.seatings,
    )  # fmt: skip
    assert (pairing.places == match.places).all()
    assert (pairing.tallies == match.tallies).all()
    assert pairing.plies == match.plies.sum()
    assert sum(pairing.lengths.values()) == match.games
    assert played.matrix()[1, 0] == pytest.approx(match.share(1))
    alone = played.against(1, 0, KINDS[players][0])
    rows = [sum(row) == 1 for row in settings.seatings.tolist()]
    assert alone is not None
    assert alone[0] == pytest.approx((match.winners[:, rows] == 1).mean())
    assert alone[1][0] < alone[0] < alone[1][1]
    assert alone[2] == match.winners[:, rows].size


def test_kinds_come_with_their_mirror_images() -> None:
    assert choose_kinds(4, ["1v3"]) == ("1v3", "3v1")
    assert choose_kinds(3, None) == ("1v2", "2v1")
    with pytest.raises(KimbleError, match="unknown tables for 3 players: 2v2; known: 1v2, 2v1"):
        choose_kinds(3, ["2v2"])


def test_only_pairings_with_a_yardstick(tmp_path: Path) -> None:
    settings = make_settings(THREE, players=2, against=["random"])
    assert settings.pairs == ((0, 1), (0, 2))
    played = play_tournament(settings, tmp_path / "t.jsonl", 40)
    assert math.isnan(played.matrix()[1, 2])
    assert played.against(1, 2) is None
    assert len(ratings.rate(played, resamples=5)) == 3


# --------------------------------------------------------------------------------------- the record


def test_resumed_and_extended_it_is_the_same_tournament(tmp_path: Path) -> None:
    settings = make_settings(THREE, "norske", 3, seed=2)
    whole = play_tournament(settings, tmp_path / "whole.jsonl", 900)
    path = tmp_path / "parts.jsonl"
    for games in (60, 300, 900):
        parts = play_tournament(settings, path, games)
    assert same(whole, parts)
    before = path.read_bytes()
    assert same(play_tournament(settings, path, 100), whole)  # nothing to do
    assert path.read_bytes() == before
    assert parts.games == 900 * 3


def test_every_torn_end_is_played_again(tmp_path: Path) -> None:
    settings = make_settings(["random", "mixed"], players=2)
    whole = play_tournament(settings, tmp_path / "whole.jsonl", 300)
    data = (tmp_path / "whole.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    assert len(lines) >= 3
    last = len(data) - len(lines[-1])
    path = tmp_path / "torn.jsonl"
    for cut in (last, last + 1, last + len(lines[-1]) // 2, len(data) - 2, len(data) - 1):
        path.write_bytes(data[:cut])
        assert read_tournament(path).games < whole.games  # reading alone mends nothing
        assert path.read_bytes() == data[:cut]
        assert same(play_tournament(settings, path, 300), whole)
        assert sum(line["blocks"] for line in read_lines(path)[1]) == 150
    path.write_bytes(data[:last] + b"\0" * len(lines[-1][:-1]) + b"\n")  # blocks never written
    assert same(play_tournament(settings, path, 300), whole)


def damaged(lines: list[bytes]) -> dict[str, bytes]:
    return {
        "damaged in line 2": b"".join([lines[0], lines[1].replace(b"01", b"10", 1), *lines[2:]]),
        "damaged in line 3": b"".join([*lines[:2], b"\n", *lines[2:]]),
        "stands there twice": b"".join([*lines, lines[1]]),
        "not the record of a tournament": b'{"format":"else"}\n' + b"".join(lines[1:]),
        "is not the record": lines[0][:40],
    }


def test_damaged_and_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    settings = make_settings(["random", "mixed"], players=2)
    play_tournament(settings, tmp_path / "good.jsonl", 300)
    lines = (tmp_path / "good.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "bad.jsonl"
    for message, content in [*damaged(lines).items(), ("not the record", b""), ("not the", b"a\n")]:
        path.write_bytes(content)
        with pytest.raises(RecordError, match=message):
            play_tournament(settings, path, 300)
        assert path.read_bytes() == content


def test_the_record_of_another_tournament_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    play_tournament(make_settings(["random", "mixed"], players=2), path, 20)
    for other, message in (
        (make_settings(["random", "mixed"], players=2, seed=5), "seed is 1 there and 5 now"),
        (make_settings(["random", "runner"], players=2), "agents is"),
        (make_settings(["random", "mixed"], "kombat", 2), "rules is 'kimble' there"),
        (make_settings(["random", "mixed"], players=3), "seats is"),
    ):
        with pytest.raises(RecordError, match=message):
            play_tournament(other, path, 20)


def test_a_record_without_a_game_may_become_any_tournament(tmp_path: Path) -> None:
    """An agent that fails at once leaves such a one; mended it is another agent."""
    path = tmp_path / "t.jsonl"
    own = tmp_path / "own.py"
    spec = f"{own}:play"
    own.write_text("def play(game):\n    return 1 / 0\n")
    with pytest.raises(KimbleError, match="ZeroDivisionError"):
        play_tournament(make_settings([spec, "random"], players=2), path, 4)
    own.write_text("def play(game):\n    return game.legal_moves[0]\n")
    assert play_tournament(make_settings([spec, "random"], players=2), path, 4).games == 4
    own.write_text("def play(game):\n    return game.legal_moves[-1]\n")
    with pytest.raises(RecordError, match=r"keep .* \(--record\): .*own.py:play has changed since"):
        play_tournament(make_settings([spec, "random"], players=2), path, 4)


def test_more_agents_extend_a_record(tmp_path: Path) -> None:
    """What the others have played stays, whatever the place of the new one in the list."""
    path = tmp_path / "t.jsonl"
    play_tournament(make_settings(["random", "mixed"], players=2), path, 300)
    before = read_lines(path)[1]
    more = make_settings(["cautious", "random", "runner", "mixed"], players=2)
    played = play_tournament(more, path, 300)
    kept = [line for line in read_lines(path)[1] if line["pair"] == more.pairs.index((1, 3))]
    assert [line["won"] for line in kept] == [line["won"] for line in before]
    assert same(played, play_tournament(more, tmp_path / "whole.jsonl", 300))
    with pytest.raises(RecordError, match=r"is of another tournament; .*: agents is"):
        play_tournament(make_settings(["random", "mixed"], players=2), path, 300)
    other = make_settings(["mixed", "random", "runner", "cautious"], players=2)
    with pytest.raises(RecordError, match="is of another tournament"):  # the first is now second
        play_tournament(other, path, 300)
    fewer = make_settings(["random", "runner"], players=2)
    assert adopt_record(path, fewer) > 0
    assert read_tournament(path).games == 300
    with pytest.raises(RecordError, match="seed is 1 there and 2 now"):
        adopt_record(path, make_settings(["random", "runner"], players=2, seed=2))


def test_an_agent_whose_file_has_changed_is_another_agent(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("def play(game):\n    return game.legal_moves[0]\n", encoding="utf-8")
    path = tmp_path / "t.jsonl"
    agents = ["random", f"{own}:play"]
    play_tournament(make_settings(agents, players=2), path, 4)
    own.write_text("def play(game):\n    return game.legal_moves[-1]\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"own\.py:play has changed since"):
        play_tournament(make_settings(agents, players=2), path, 4)


def test_one_record_has_one_writer(tmp_path: Path) -> None:
    from evaluation.record import appending

    path = tmp_path / "t.jsonl"
    settings = make_settings(["random", "mixed"], players=2)
    play_tournament(settings, path, 20)
    with (
        appending(path, path.stat().st_size),
        pytest.raises(RecordError, match="another process is playing"),
    ):
        play_tournament(settings, path, 40)


OWN = """
def first(game):
    return game.legal_moves[0]
"""

PLAY = """
import sys
from evaluation.tournament import make_settings, play_tournament
settings = make_settings(["random", sys.argv[2] + ":first", "mixed"], "kimble", 4, seed=3)
if __name__ == "__main__":
    play_tournament(settings, sys.argv[1], int(sys.argv[3]), workers=int(sys.argv[4]))
"""


def test_killed_at_any_moment_it_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """A real process, killed with SIGKILL at several moments, then gone on with to the end."""
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    own = str(tmp_path / "own.py")
    script = tmp_path / "play.py"
    script.write_text(PLAY, encoding="utf-8")
    games = 140
    path = tmp_path / "t.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(path), own, str(games)]
    sizes = []
    for workers in (1, 2, 1):
        process = subprocess.Popen([*command, str(workers)], env=environment)
        start, before = time.monotonic(), path.stat().st_size if path.exists() else 0
        while time.monotonic() < start + 150 and process.poll() is None:
            if path.exists() and path.stat().st_size > max(before, 1500):
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        sizes.append(path.stat().st_size)
    played = read_tournament(path)
    assert 0 < played.games < 3 * games
    settings = make_settings(["random", f"{own}:first", "mixed"], "kimble", 4, seed=3)
    resumed = play_tournament(settings, path, games)
    whole = play_tournament(settings, tmp_path / "whole.jsonl", games)
    assert same(whole, resumed)
    assert sizes == sorted(sizes)


def test_equal_tournaments_for_any_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    settings = make_settings(["random", f"{tmp_path / 'own.py'}:first", "mixed"], "norske", 2)
    one = play_tournament(settings, tmp_path / "1.jsonl", 40, workers=1)
    two = play_tournament(settings, tmp_path / "2.jsonl", 40, workers=2)
    assert same(one, two)


def test_progress_counts_what_was_played_before(tmp_path: Path) -> None:
    settings = make_settings(THREE, players=2)
    play_tournament(settings, tmp_path / "t.jsonl", 100)
    calls: list[tuple[int, int]] = []
    play_tournament(
        settings,
        tmp_path / "t.jsonl",
        400,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls[0][0] > 300
    assert calls[-1] == (1200, 1200)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: make_settings(["random"]), "two different agents or more"),
        (lambda p: make_settings(["random", "random"]), "or more, each once; got random, random"),
        (lambda p: make_settings(["random", make_agent], players=2), "name the agents"),  # type: ignore[list-item]
        (lambda p: make_settings(["random", "nobody"]), "unknown agent"),
        (lambda p: make_settings(THREE, players=5), "players must be 2, 3 or 4"),
        (lambda p: make_settings(THREE, "kimble[two_colours=yes]", 4), "is for 2 players"),
        (lambda p: make_settings(THREE, against=["runner"]), "against must name agents"),
        (lambda p: make_settings(THREE, kinds=["5v1"]), "unknown tables"),
        (lambda p: make_settings(THREE, seed=-1), "seed must be"),
        (lambda p: play_tournament(make_settings(THREE), p, 0), "games must be"),
        (lambda p: play_tournament(make_settings(THREE), p, 9, workers=0), "workers must be"),
    ],
)
def test_misuse_is_named(call: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match=message):
        call(tmp_path / "t.jsonl")


# ----------------------------------------------------------------------------------------- ratings


def test_weighted_strengths_are_those_of_choix() -> None:
    """The same games one by one, by ``choix`` itself."""
    import choix

    rng = np.random.default_rng(3)
    pairs = np.array([[0, 1], [0, 2], [1, 2], [0, 1]])
    seats = np.array([[1, 3], [2, 2], [1, 1], [3, 1]])
    games = np.array([40.0, 30.0, 25.0, 20.0])
    wins = np.array([rng.integers(5, n - 5) for n in games], float)
    single = []
    for (a, b), (m, n), won, of in zip(pairs, seats, wins, games, strict=True):
        single += [(a, [a] * (m - 1) + [b] * n)] * int(won)
        single += [(b, [a] * m + [b] * (n - 1))] * int(of - won)
    expected = choix.ilsr_top1(3, single, alpha=1e-3)
    assert ratings.fit_strengths(3, pairs, seats, wins, games) == pytest.approx(expected, abs=1e-5)


def synthetic(strengths: dict[str, float], players: int, blocks: int, seed: int) -> Tournament:
    """Return a tournament whose winners are drawn from a Plackett-Luce model."""
    from evaluation.tournament import Pairing

    settings = make_settings(list(strengths), players=players)
    rng, power = np.random.default_rng(seed), np.exp(np.array(list(strengths.values())))
    pairings = []
    for first, second in settings.pairs:
        table = power[np.array([first, second])][settings.seatings]
        chance = table / table.sum(axis=1, keepdims=True)
        draws = rng.random((blocks, len(table), 1)) > chance.cumsum(axis=1)[None]
        places = np.minimum(draws.sum(axis=2), players - 1).astype(np.int8)
        empty = np.zeros((2, 6), np.int64)
        pairings.append(Pairing(first, second, places, None, {0: places.size}, 1, 1.0, empty))
    return Tournament(settings, pairings)


@pytest.mark.parametrize("players", [2, 4])
def test_ratings_recover_the_truth(players: int) -> None:
    truth = {"random": 0.0, "cautious": 0.5, "mixed": 0.8, "random:mask": -2.0}
    inside, total = 0, 0
    for seed in range(6):
        found = ratings.rate(synthetic(truth, players, 400, seed), resamples=60, seed=seed)
        assert [r.agent for r in found] == ["mixed", "cautious", "random", "random:mask"]
        for rating in found:
            true = ratings.ELO * truth[rating.agent]
            assert rating.elo == pytest.approx(true, abs=45)
            if rating.agent != "random":
                inside += rating.low <= true <= rating.high
                total += 1
    assert inside >= 0.8 * total
    anchor = next(r for r in found if r.agent == "random")
    assert (anchor.elo, anchor.low, anchor.high) == (0, 0, 0)


def test_an_agent_that_never_wins_has_a_rating_all_the_same() -> None:
    played = synthetic({"random": 0.0, "mixed": 40.0, "cautious": 0.2}, 2, 50, 1)
    found = ratings.rate(played, resamples=10)
    assert found[0].agent == "mixed"
    assert math.isfinite(found[0].elo)


def test_agents_without_a_chain_of_games_are_not_rated() -> None:
    played = synthetic({"random": 0.0, "mixed": 1.0, "cautious": 0.2, "runner": 0.1}, 2, 5, 1)
    for pairing in played.pairings:
        if {pairing.first, pairing.second} not in ({0, 1}, {2, 3}):
            pairing.places = pairing.places[:0]
    with pytest.raises(
        KimbleError, match="no chain of games leads from random to cautious, runner"
    ):
        ratings.rate(played, resamples=2)


def test_the_running_ladder_finds_the_order() -> None:
    truth = {"random": 0.0, "cautious": 0.6, "mixed": 1.2}
    found = ratings.running_ladder(synthetic(truth, 2, 300, 5), games=1200)
    assert [r.agent for r in found] == ["mixed", "cautious", "random"]
    assert all(r.sigma > 0 for r in found)


# ------------------------------------------------------------------------------- plan and compare


def test_the_planner_s_numbers() -> None:
    # 1.959964^2 x p (1 - p) / h^2, by hand
    assert games_needed(0.005, 0.25) == 28811
    assert games_needed(0.005, 0.5) == 38415
    assert games_needed(0.005, 0.5, block=4) == 38416
    assert games_needed(0.005, 0.5, variance_ratio=10, design_effect=0.5) == 1921
    assert games_needed(0.01, 0.5, confidence=0.99) == 16588
    for share in (0.1, 0.25, 0.5, 0.74):
        assert half_width_of(games_needed(0.004, share), share) == pytest.approx(0.004, rel=1e-3)
    for arguments in ((0.0, 0.5), (0.6, 0.5), (0.01, 1.5)):
        with pytest.raises(KimbleError, match=r"out of range|must lie above 0"):
            games_needed(*arguments)
    assert [need.share for need in typical_needs(0.005, 4)] == [0.25, 0.4]


def test_a_planned_match_reaches_its_half_width() -> None:
    pilot = play_match(["mixed", "random"], "kimble", 2000, seed=1)
    need = measured_needs(pilot, 0.02)[0]
    assert 0.5 < need.design_effect < 1.3
    result = play_match(["mixed", "random"], "kimble", need.games, seed=2)
    low, high = result.bootstrap(0)
    assert (high - low) / 2 == pytest.approx(0.02, rel=0.12)


def test_confidence_sequences_hold_at_every_look() -> None:
    """Looked at after every observation, equal agents are told apart in few of many series."""
    rng = np.random.default_rng(7)
    scores = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=(400, 3000))
    n = np.arange(1, 3001)
    means = scores.cumsum(axis=1) / n
    variances = (scores**2).cumsum(axis=1) / n - means**2
    wrong = 0
    looks = np.arange(99, 3000, 10)
    for k in range(400):
        wrong += any(
            not low <= 0.5 <= high
            for low, high in (
                confidence_sequence(means[k, t], variances[k, t], t + 1) for t in looks
            )
        )
    assert wrong <= 0.05 * 400 + 8
    fixed = 1.96 * math.sqrt(0.125 / 1000)
    low, high = confidence_sequence(0.5, 0.125, 1000)
    assert 1.2 < (high - low) / 2 / fixed < 1.7


def test_compare_tells_better_from_equal(capsys: pytest.CaptureFixture[str]) -> None:
    better = compare("mixed", "random", players=4, json=True)
    data = json.loads(capsys.readouterr().out)
    assert (better.verdict, better.reason, data["verdict"]) == ("A", "verdict", "A")
    assert data["sentence"].startswith("mixed is better than random: it leads by ")
    assert better.interval[0] > 0.5
    assert all(test["passed"] for test in data["self_tests"])
    assert list(better.by_kind) == ["1v3", "2v2", "3v1"]
    worse = compare("random", "mixed", players=2, json=True)
    assert worse.verdict == "B"
    capsys.readouterr()
    again = 'weights:{"pass": -1, "progress": 0}'  # plays as random does
    equal = compare("random", again, players=3, games=2000, half_width=0.05)
    assert (equal.verdict, equal.reason, equal.share) == ("neither", "half_width", 0.5)
    out = " ".join(capsys.readouterr().out.split())
    assert "not told apart: the lead of random lies between" in out
    assert "self-test parity: ok" in out


def test_compare_says_when_it_has_seen_too_little() -> None:
    """… and claims no shares that there are not."""
    for games in (10, 300):
        found = compare("mixed", "random", players=4, json=True, games=games)
        assert found.verdict == "neither"
        assert "too few games to tell mixed and random apart" in found.sentence
        assert "100 seeds of dice, 1,400 games" in found.sentence
        for low, high in (found.interval, found.raw, *(row[2] for row in found.by_kind.values())):
            assert 0.0 <= low < high <= 1.0
    with pytest.raises(KimbleError, match="got 90 points"):
        compare("mixed", "random", half_width=0.9)


def test_compare_goes_on_to_the_half_width_if_asked() -> None:
    short = compare("mixed", "random", players=2, json=True)
    full = compare("mixed", "random", players=2, json=True, full=True, half_width=0.02)
    assert full.reason == "half_width"
    assert full.games > short.games
    assert (full.interval[1] - full.interval[0]) / 2 <= 0.02
    few = compare("mixed", "cautious", players=2, json=True, games=40)
    assert (few.verdict, few.reason) == ("neither", "games")


def test_compare_is_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    own = f"{tmp_path / 'own.py'}:first"
    one = compare(own, "random", players=2, games=60, json=True)
    two = compare(own, "random", players=2, games=60, json=True, workers=2)
    assert one.share == two.share
    assert one.interval == two.interval


def test_an_agent_with_random_numbers_of_its_own_is_found_out() -> None:
    rng = np.random.default_rng(1)

    class Restless:
        spec = "restless"

        def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
            rules = find_rules("kimble", players=2)
            mixed = [make_agent(w, rules).act(positions, keys) for w in ("mixed", "random")]
            return np.where(rng.random(len(positions)) < 0.5, *mixed)

    found = compare(Restless(), "random", players=2, games=20, json=True)
    assert "draws random numbers of its own" in found.tests[0].text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_width": 0.0}, "half_width must lie"),
        ({"games": 0}, "games must be"),
        ({"players": 7}, "cannot be played by 7 players"),
        ({"kinds": ["1v1"]}, "unknown tables for 4 players"),
    ],
)
def test_compare_misuse(options: dict[str, object], message: str) -> None:
    with pytest.raises(KimbleError, match=message):
        compare("random", "mixed", **options)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ the commands


def test_the_tournament_command_prints_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, folder = tmp_path / "t.jsonl", tmp_path / "tables"
    tournament(THREE, players=3, games=300, record=place, csv=folder)
    out = capsys.readouterr().out
    for text in (
        "kimble, 3 players, 900 games",
        "Elo",
        "1 v 2 random",
        "self-test seats: ok",
        "self-test parity: ok",
    ):
        assert text in out
    tournament(THREE, players=3, games=300, record=place, json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["format"] == "kimble-tournament-report-1"
    assert {a["agent"] for a in data["agents"]} == set(THREE)
    assert data["games"] == 900
    assert sum(data["lengths"]["games"].values()) == 900
    best = data["agents"][0]
    assert best["points95"][0] < best["points"] < best["points95"][1]
    assert sum(a["points"] for a in data["agents"]) == pytest.approx(1.5)
    assert set(best["win_share_by_seat"]) == {"R", "B", "Y"}
    matrix = (folder / "matrix.csv").read_text(encoding="utf-8").splitlines()
    assert matrix[0] == "," + ",".join(a["agent"] for a in data["agents"])
    table = (folder / "ratings.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 4
    assert table[0].startswith("agent,games,elo,elo_low,elo_high,points")
    assert (folder / "lengths.csv").read_text(encoding="utf-8").startswith("throws_from,")


def test_summary_is_what_the_games_say(tmp_path: Path) -> None:
    settings = make_settings(THREE, players=2)
    played = play_tournament(settings, tmp_path / "t.jsonl", 400)
    summary = summarise(played, running=False)
    names = [a["agent"] for a in summary["agents"]]
    for row, agent in zip(summary["matrix"], summary["agents"], strict=True):
        met = [x for x in row if x is not None]
        assert agent["points"] == pytest.approx(sum(met) / len(met))
        assert row[names.index(agent["agent"])] is None
        shares = agent["win_share_by_seat"]
        assert np.mean(list(shares.values())) == pytest.approx(agent["points"])
    with pytest.raises(KimbleError, match="at least two blocks"):
        summarise(play_tournament(settings, tmp_path / "short.jsonl", 1))


def test_the_plan_command(capsys: pytest.CaptureFixture[str]) -> None:
    plan(players=4, half_width=0.01, json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["needs"][0]["games"] == 7204
    plan(["mixed", "random"], players=2, pilot=400)
    out = capsys.readouterr().out
    assert "±0.5 points (95 %)" in out
    for width in (0.0, -0.01, 0.9):
        with pytest.raises(KimbleError, match="above 0 and below 50 points"):
            plan(half_width=width)
    with pytest.raises(KimbleError, match="a pilot match has at least 100 games, got 1"):
        plan(["mixed", "random"], players=2, pilot=1)


# ----------------------------------------------------------------------------------- luck taken off


def test_adjusted_tournament_plays_the_same_games(tmp_path: Path) -> None:
    agents = ["random", "mixed"]
    raw = play_tournament(make_settings(agents, players=2), tmp_path / "raw.jsonl", 300)
    settings = make_settings(agents, players=2, adjust="linear")
    assert settings.adjust_hash is not None
    path = tmp_path / "adjusted.jsonl"
    play_tournament(settings, path, 100)
    adjusted = play_tournament(settings, path, 300)
    assert same(raw, adjusted)
    one, two = raw.pairings[0], adjusted.pairings[0]
    plain, less = adjusted.block_points(two), adjusted.block_points(two, adjusted=True)
    assert (plain == raw.block_points(one)).all()
    assert less.var() < plain.var() / 1.5
    summary = summarise(adjusted, running=False)
    assert summary["variance_ratio"] == pytest.approx(plain.var() / less.var(), rel=1e-3)
    assert summary["raw_games_for_the_same"] > 1.5 * summary["games"]
    assert all(test["passed"] for test in summary["self_tests"])
    assert [test["name"] for test in summary["self_tests"]] == ["seats", "adjusted and raw agree"]
    with pytest.raises(KimbleError, match="luck was not measured"):
        raw.wins(one, adjusted=True)
    with pytest.raises(RecordError, match="adjust is 'linear' there and None now"):
        play_tournament(make_settings(agents, players=2), path, 300)


def test_evaluate_and_compare_take_luck_off(capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(["mixed", "random"], "kimble", 2, 400, adjust="linear", json=True)
    data = json.loads(capsys.readouterr().out)
    plain = play_match(["mixed", "random"], "kimble", 400)
    assert (result.plies == plain.plies).all()
    for agent in data["agents"]:
        row = agent["adjusted"]
        assert row["variance_ratio"] > 1.5
        assert abs(row["agreement"]) < 4
        assert row["interval95"][0] < row["share"] < row["interval95"][1]
    assert sum(agent["adjusted"]["share"] for agent in data["agents"]) == pytest.approx(1, abs=1e-5)
    assert data["adjust"] == "linear"
    evaluate(["mixed", "random"], "kimble", 2, 40, adjust="linear")
    assert "luck-adjusted by linear" in capsys.readouterr().out
    found = compare("mixed", "random", players=2, games=1200, adjust="linear", full=True)
    out = " ".join(capsys.readouterr().out.split())
    assert "(luck-adjusted)" in out
    assert "self-test adjusted and raw agree: ok" in out
    assert found.variance_ratio is not None
    assert found.variance_ratio > 1.5
    assert found.interval[1] - found.interval[0] < found.raw[1] - found.raw[0]
    with pytest.raises(KimbleError, match="unknown evaluator"):
        compare("mixed", "random", players=2, games=10, adjust="nothing", json=True)


# --------------------------------------------------------------------------------------- the ladder


def test_the_ladder_goes_on_where_it_stopped_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "CHAIN_GAMES", 20_000)
    folder, page = tmp_path / "runs", tmp_path / "ladder.md"
    common = ["--folder", str(folder), "--games", "60", "--points", "6", "--seconds", "0",
              "--agents", "random", "mixed", "cautious", "--only", "kimble-2p"]  # fmt: skip
    ladder.main([*common, "--searching", "cautious", "--write", str(page)])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ladder.main([*common, "--searching", "cautious"])
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    text = page.read_text(encoding="utf-8")
    assert "## kimble, 2 players" in text
    assert "| 3 | `random` | 0 |" in text
    assert "Networks and search, luck counted by `net:kimble-2p` (`" in text
    assert "20,000 games): it does." in text
    assert 0.66 < json.loads(page.with_suffix(".json").read_text("utf-8"))["chain_check"]["share"]
    data = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    (found,) = data["ladders"]
    best = found["agents"][0]
    met = best["alone_against"]["random"]
    assert f"{100 * met['share']:.1f}" in text
    assert (met["interval95"][1] - met["interval95"][0]) / 2 <= 0.06
    empty = ["--folder", str(tmp_path / "empty"), "--agents", "random", "--no-play", "--write"]
    with pytest.raises(KimbleError, match="nothing has been played"):
        ladder.main([*empty, str(tmp_path / "other.md")])

    # What the page has is not played again.
    fresh = tmp_path / "fresh"
    ladder.main(["--folder", str(fresh), *common[2:], "--searching", "--write", str(page)])
    assert list(fresh.iterdir()) == []
    assert json.loads(page.with_suffix(".json").read_text("utf-8"))["ladders"] == data["ladders"]

    # What the folder lacks stays, but not a row of a network or search that is another now.
    ladder.main([*empty, str(page)])
    kept = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert kept["ladders"] == data["ladders"]
    data["ladders"][0]["searching"][0]["fingerprint"] = "0" * 16
    page.with_suffix(".json").write_text(json.dumps(data), encoding="utf-8")
    ladder.main([*empty, str(page)])
    kept = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert kept["ladders"] == [{**found, "searching": found["searching"][1:]}]
    data["ladders"][0]["agents"][0]["fingerprint"] = "0" * 16
    page.with_suffix(".json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(KimbleError, match="nothing has been played"):
        ladder.main([*empty, str(page)])
