"""The exact solver against independent solutions, the engine, simulation, and damaged files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from math import comb
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agents.exact import layers, register, report
from agents.exact import solver as solver_module
from agents.exact.blockfile import HEADER_BYTES, locked
from agents.exact.decisions import make_decisions, read_decisions
from agents.exact.duels import Evaluator
from agents.exact.encoding import Encoding, encoding_of
from agents.exact.errors import TableError
from agents.exact.oracle import ExactAgent
from agents.exact.policies import Best, Uniform
from agents.exact.probes import rank_of
from agents.exact.report import gap_of, shared_fields, solve_game
from agents.exact.solver import Solver, two_seats
from agents.exact.table import (
    Table,
    find_table,
    random_positions,
    read_table,
    table_of,
    table_path,
    write_table,
)
from kimble_env.errors import KimbleError, RulesError
from kimble_env.game import Game
from kimble_env.kernel import (
    STATE,
    empty_states,
    faults_batch,
    game_keys,
    new_game_batch,
    play_random_batch,
    throw_batch,
)
from kimble_env.opponents import make_agent
from kimble_env.rules import Rules, find_rules

FORCED = "kimble[pass_allowed=no]"


def solved(text: str, pieces: int, adjacent: bool = False, tolerance: float = 1e-10) -> Solver:
    solver = Solver(two_seats(text, pieces, adjacent), tolerance=tolerance)
    solver.solve()
    return solver


@pytest.fixture(scope="module")
def forced_two() -> Solver:
    return solved(FORCED, 2)


@pytest.fixture(scope="module")
def kimble_two() -> Solver:
    return solved("kimble", 2)


# ---------------------------------------------------------------------------------------- encoding


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_ranks_number_every_configuration_once_and_in_order(pieces: int) -> None:
    code = Encoding(find_rules("kimble", pieces=pieces))
    for slot, mask in enumerate(code.masks):
        configs = code.configurations(slot)
        assert len(configs) == code.sizes[slot]
        step = max(1, len(configs) // 300)
        for rank in range(0, len(configs), step):
            shuffled = configs[rank][::-1].copy()
            assert rank_of(shuffled, code.ring, code.ranks) == (mask, rank)


def test_four_pieces_have_1_099_414_852_positions_with_finished_ones() -> None:
    code = Encoding(find_rules("kimble"))
    one_seat = sum(comb(32, k) for k in range(5))  # unfinished and finished configurations
    assert code.positions() + 2 * one_seat - 1 == 1_099_414_852


def test_a_move_forward_raises_the_rank() -> None:
    code = Encoding(find_rules("kimble", pieces=3))
    configs = code.configurations(0)
    for rank in range(0, len(configs), 7):
        for k in range(3):
            moved = configs[rank].copy()
            moved[k] += 1
            if moved[k] < code.ring and moved[k] not in configs[rank]:
                assert rank_of(moved, code.ring, code.ranks)[1] > rank


# ------------------------------------------------------------------ one piece, solved another way


def one_piece_policy_iteration(may_pass: bool) -> float:
    """Solve one piece against one on kimble28 by policy iteration with dense linear algebra.

    Written from RULES.md without the engine: R1, R2, R4, R12, R14. States: (own p, other's p),
    own about to throw, -1 waiting, 0..27 on the ring; the other's field f is own f + 14 mod 28.
    """
    places = range(-1, 28)
    states = [(a, b) for a in places for b in places if min(a, b) < 0 or (b + 14) % 28 != a]
    number = {s: k for k, s in enumerate(states)}

    def options(a: int, b: int, die: int) -> list[tuple[str, tuple[int, int]]]:
        moves = []
        if a < 0 and die == 6:
            target = 0
        elif a >= 0 and a + die <= 31:
            target = a + die
        else:
            target = None
        again = "own" if die == 6 else "other"
        if target is not None and target > 27:
            moves.append(("won", (0, 0)))
        elif target is not None:
            hit = b >= 0 and (b + 14) % 28 == target
            moves.append((again, (target, -1 if hit else b)))
        if not moves or may_pass:
            moves.append((again, (a, b)))
        return moves

    tables = [[options(a, b, die) for die in range(1, 7)] for a, b in states]
    policy = [[0] * 6 for _ in states]
    for _ in range(100):
        matrix, right = np.eye(len(states)), np.zeros(len(states))
        for k, faces in enumerate(tables):
            for die, moves in enumerate(faces):
                kind, (a, b) = moves[policy[k][die]]
                if kind == "won":
                    right[k] += 1 / 6
                elif kind == "own":
                    matrix[k, number[a, b]] -= 1 / 6
                else:
                    matrix[k, number[b, a]] += 1 / 6
                    right[k] += 1 / 6
        value = np.linalg.solve(matrix, right)

        def worth(move: tuple[str, tuple[int, int]], value: np.ndarray = value) -> float:
            kind, (a, b) = move
            if kind == "won":
                return 1.0
            return value[number[a, b]] if kind == "own" else 1.0 - value[number[b, a]]

        better = []
        for faces, row in zip(tables, policy, strict=True):
            chances = [[worth(move) for move in moves] for moves in faces]
            better.append(
                [
                    old if max(c) - c[old] < 1e-12 else c.index(max(c))
                    for c, old in zip(chances, row, strict=True)
                ]
            )
        if better == policy:
            return float(value[number[-1, -1]])
        policy = better
    raise AssertionError("policy iteration did not settle")


def test_one_piece_agrees_with_policy_iteration() -> None:
    expected = one_piece_policy_iteration(may_pass=False)
    assert expected == pytest.approx(0.52626, abs=5e-6)
    p, q = solved(FORCED, 1, tolerance=1e-12).block(0, 0)
    assert p[0, 0] == pytest.approx(expected, abs=1e-9)
    assert q[0, 0] == pytest.approx(expected, abs=1e-9)


# --------------------------------------------------------------------------- against the engine


@pytest.mark.parametrize(
    ("text", "pieces", "adjacent"),
    [
        (FORCED, 2, False),
        ("kimble", 2, False),
        ("kimble", 1, True),
        ("kombat", 2, False),
        ("kombat[pass_allowed=no]", 2, True),
        ("kimble[board=ludo52,stretch_block=yes,pass_allowed=no]", 1, False),
        ("kombat[board=cross40,pass_allowed=no]", 1, False),
        ("norske", 2, False),
        pytest.param("norske[own_collision=mover]", 2, True, marks=pytest.mark.long),
        ("norske[own_collision=stander,empty_throws=2,board=ludo52]", 1, False),
    ],
)
def test_values_agree_with_the_engine_one_throw_later(
    text: str, pieces: int, adjacent: bool
) -> None:
    """Throw every face and play every move in the engine: the table must say the same after."""
    table = table_of(solved(text, pieces, adjacent))
    states = random_positions(table.rules, 100_000, seed=5)
    wrong = np.abs(table.backups(states) - table.values(states))
    assert wrong.max() < 2e-7  # values are answered as float32


@pytest.mark.long
def test_norske_values_agree_inside_a_turn_of_three_throws() -> None:
    table = table_of(solved("norske", 2))
    states = random_positions(table.rules, 300_000, seed=6)
    states = states[states["throws"] == 3]
    assert len(states) > 100
    for left in (3, 2, 1):
        states["throws"] = left
        assert np.abs(table.backups(states) - table.values(states)).max() < 2e-7


@pytest.mark.parametrize(("pieces", "text"), [(1, "norske"), (2, "norske"), (2, "kombat")])
def test_positions_are_counted_right(pieces: int, text: str) -> None:
    rules = two_seats(text, pieces)
    code = encoding_of(rules)
    configs = np.concatenate([code.configurations(k) for k in range(len(code.masks))])
    ring = rules.board.ring
    on = [
        {(int(p) + start) % ring for p in row if 0 <= p <= rules.board.leave}
        for start in (0, ring // 2)
        for row in configs
    ]
    own, other = on[: len(configs)], on[len(configs) :]
    assert code.positions() == sum(not a & b for a in own for b in other)


def test_values_agree_with_game_played_by_hand(kimble_two: Solver) -> None:
    table = table_of(kimble_two)
    rules = table.rules
    for state in random_positions(rules, 40, seed=8):
        mean = 0.0
        for die in range(1, 7):
            game = Game.from_state(rules, state.reshape(1).copy())
            seat = int(state["seat"])
            game.throw(die)
            chances = []
            for move in game.legal_moves:
                after = game.copy()
                after.play(move)
                there = after.state.reshape(1)
                value = float(table.values(there)[0])
                chances.append(value if int(there["seat"][0]) == seat else 1 - value)
            mean += max(chances) / 6
        assert mean == pytest.approx(float(table.values(state.reshape(1))[0]), abs=2e-7)


def test_stalling_is_worth_the_same_to_both_seats(kimble_two: Solver) -> None:
    """Where both would rather pass many values fit; that of a draw is the same from both sides."""
    table = table_of(kimble_two)
    states = random_positions(table.rules, 50_000, seed=2)
    p, q = kimble_two.block(0, 0)
    assert p[0, 0] == pytest.approx(q[0, 0], abs=1e-8)
    lower = Solver(table.rules, "lower", 1e-10)
    upper = Solver(table.rules, "upper", 1e-10)
    lower.solve()
    upper.solve()
    low, high = table_of(lower).values(states), table_of(upper).values(states)
    value = table.values(states)
    assert (low <= value + 1e-6).all()
    assert (value <= high + 1e-6).all()
    assert (high - low).max() > 1e-3  # there are positions in which stalling matters


# ---------------------------------------------------------------------------------- threads, resume


def test_two_threads_agree_with_one(forced_two: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "SMALL_LAYER", 0)
    other = Solver(forced_two.rules, tolerance=1e-10, threads=2)
    other.solve()
    for pair in forced_two.pairs():
        for one, two in zip(forced_two.block(*pair), other.block(*pair), strict=True):
            assert np.abs(one - two).max() < 1e-8


KILLED = """
import os, signal, sys
from pathlib import Path
from agents.exact.solver import Solver, two_seats
class Mortal(Solver):
    def _log(self, layer, result):
        super()._log(layer, result)
        if self.statistics.layers == 5:
            os.kill(os.getpid(), signal.SIGKILL)
Mortal(two_seats("kimble[pass_allowed=no]", 2), tolerance=1e-10, folder=Path(sys.argv[1])).solve()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signal.SIGKILL (not on Windows)")
def test_a_killed_solve_goes_on_where_it_was(forced_two: Solver, tmp_path: Path) -> None:
    folder = tmp_path / "layers"
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    solver = Solver(forced_two.rules, tolerance=1e-10, folder=folder)
    statistics = solver.solve()
    assert statistics.resumed == 5
    assert np.array_equal(solver.block(0, 0)[0], forced_two.block(0, 0)[0])


def test_a_long_layer_goes_on_from_its_last_save(forced_two: Solver, tmp_path: Path) -> None:
    class Stopped(Solver):
        def _save(self, layer, sweeps, done):  # type: ignore[no-untyped-def]
            super()._save(layer, sweeps, done)
            if not done and (layer.slot_a, layer.slot_b) == (0, 0) and sweeps == 10:
                raise KeyboardInterrupt

    folder = tmp_path / "layers"
    with pytest.raises(KeyboardInterrupt):
        Stopped(forced_two.rules, tolerance=1e-10, folder=folder, save_seconds=0.0).solve()
    solver = Solver(forced_two.rules, tolerance=1e-10, folder=folder)
    solver.solve()
    full = Solver(forced_two.rules, tolerance=1e-10)
    assert solver.statistics.most_sweeps < full.solve().most_sweeps
    assert np.abs(solver.block(0, 0)[0] - forced_two.block(0, 0)[0]).max() < 1e-8
    assert not list(folder.glob("*unfinished*"))


def test_the_time_left_is_that_of_sweeps_and_not_of_compiling(
    forced_two: Solver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """… of a fresh solve and of one that goes on; and is not told before sweeps have a speed."""
    compiling = SimpleNamespace(seconds=0.0)
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + compiling.seconds, process_time=time.process_time
    )
    monkeypatch.setattr(solver_module, "NOTE", compiling)
    monkeypatch.setattr(solver_module, "time", clock)
    monkeypatch.setattr(solver_module, "SECONDS_BETWEEN_LINES", 0.0)
    sweep = layers.Layer.sweep

    def slow(self, *arguments):  # type: ignore[no-untyped-def]
        compiling.seconds = compiling.seconds or 100_000.0
        return sweep(self, *arguments)

    monkeypatch.setattr(layers.Layer, "sweep", slow)
    folder = tmp_path / "layers"
    for least in (0.0, solver_module.LEAST_SECONDS):
        monkeypatch.setattr(solver_module, "LEAST_SECONDS", least)
        compiling.seconds, said = 0.0, list[str]()
        solver = Solver(forced_two.rules, tolerance=1e-10, folder=folder, say=said.append)
        solver.solve()
        assert said
        assert "values/s" not in said[0]
        assert not any("about" in line for line in said)
        told = [line for line in said if "less than a minute for the later layers" in line]
        assert bool(told) is (least == 0.0)
        for x, y in solver.pairs()[-4:]:
            solver.path(x, y).unlink()


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path: Path) -> None:
    rules = two_seats(FORCED, 1)
    folder = tmp_path / "layers"
    Solver(rules, tolerance=1e-10, folder=folder).solve()
    path = folder / "layer-00-00.bin"
    good = path.read_bytes()
    with pytest.raises(TableError, match="made for another game: rules is"):
        Solver(two_seats("kombat", 1), tolerance=1e-10, folder=folder).solve()
    with pytest.raises(TableError, match="tolerance is 1e-10, expected 1e-11"):
        Solver(rules, tolerance=1e-11, folder=folder).solve()
    damages = {
        "damaged: SHA-256": good[:-9] + bytes([good[-9] ^ 1]) + good[-8:],
        "cut short": good[:-8],
        "not a file of the exact solver": b"x" * len(good),
    }
    for message, data in damages.items():
        path.write_bytes(data)
        with pytest.raises(TableError, match=message):
            Solver(rules, tolerance=1e-10, folder=folder).solve()
    path.write_bytes(good)
    Solver(rules, tolerance=1e-10, folder=folder).solve()


# ------------------------------------------------------------------------------------ table, oracle


def test_a_table_file_gives_the_values_back(kimble_two: Solver, tmp_path: Path) -> None:
    path = tmp_path / "two.table"
    header = write_table(kimble_two, path, kimble_two.statistics)
    assert header["positions"] == 245_235
    table = read_table(path, kimble_two.rules, check=True)
    states = random_positions(kimble_two.rules, 20_000, seed=3)
    apart = np.abs(table.values(states) - table_of(kimble_two).values(states))
    assert apart.max() <= 0.5 / 65535 + 1e-6
    with pytest.raises(TableError, match="rules_hash"):
        read_table(path, two_seats("kombat", 2))
    with pytest.raises(TableError, match="distance is 14"):
        read_table(path, two_seats("kimble", 2, adjacent=True))
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 1000] ^= 4
    path.write_bytes(bytes(data))
    with pytest.raises(TableError, match="damaged"):
        read_table(path, kimble_two.rules, check=True)


def test_tables_are_made_on_first_use_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIMBLE_CACHE", str(tmp_path))
    told: list[str] = []
    rules = two_seats("kombat[pass_allowed=no]", 1)
    first = find_table(rules, say=told.append)
    assert any("solving" in line for line in told)
    assert table_path(rules).exists()
    told.clear()
    again = find_table(rules, say=told.append)
    assert not told
    states = random_positions(rules, 100, seed=1)
    assert np.array_equal(first.values(states), again.values(states))
    with pytest.raises(TableError, match=r"kimble solve --rules .* --pieces 4"):
        find_table("kimble[pass_allowed=no]", 4)


@pytest.mark.long
def test_three_pieces_are_solved_when_first_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From an empty cache folder to moves of the agent; who waits is told what for."""
    monkeypatch.setenv("KIMBLE_CACHE", str(tmp_path))
    rules = two_seats(FORCED, 3)
    states = random_positions(rules, 100_000, seed=2)
    thrown = np.where(np.arange(len(states)) % 2 == 0, 6, 3).astype(np.int8)
    legal = np.empty(len(states), np.int64)
    throw_batch(states, rules.array, thrown, legal)
    choice = np.ascontiguousarray(states[legal & (legal - 1) != 0])
    keys = np.arange(len(choice), dtype=np.uint64)
    actions = make_agent("exact", rules).act(choice, keys)
    told = capsys.readouterr().err
    assert "some minutes" in told
    assert table_path(rules).exists()
    table = find_table(rules)
    assert capsys.readouterr().err == ""
    win = table.moves(choice)
    assert np.array_equal(win[np.arange(len(win)), actions], win.max(axis=1))
    before = random_positions(rules, 100_000, seed=3)
    assert np.abs(table.backups(before) - table.values(before)).max() < 3e-5  # 16-bit values


def test_a_damaged_table_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMBLE_CACHE", str(tmp_path))
    rules = two_seats("kombat[pass_allowed=no]", 1)
    states = random_positions(rules, 100, seed=1)
    good = find_table(rules, say=lambda line: None).values(states)
    data = bytearray(table_path(rules).read_bytes())
    data[-3] ^= 64
    for damaged in (bytes(data), bytes(data[:-10]), b"nothing"):
        table_path(rules).write_bytes(damaged)
        told: list[str] = []
        assert np.array_equal(find_table(rules, say=told.append).values(states), good)
        assert "it is made again" in told[0]
        assert any("solving" in line for line in told)


def test_two_processes_make_one_table(tmp_path: Path) -> None:
    """Whoever comes second waits, and reads what the first has made."""
    pytest.importorskip("fcntl", reason="locks need fcntl (not on Windows)")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    path = tmp_path / "some.table"
    holder = "import sys, time; from pathlib import Path; from agents.exact.blockfile import locked"
    holder += "\nwith locked(Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], env=env, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as first:  # fmt: skip
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        told: list[str] = []
        entered: list[bool] = []

        def second() -> None:
            with locked(path, told.append):
                entered.append(True)

        waiting = threading.Thread(target=second)
        waiting.start()
        while not told:
            waiting.join(0.01)
        assert "another process" in told[0]
        assert not entered
        first.kill()  # the lock goes with its holder
        waiting.join()
        assert entered


def test_the_agent_plays_the_best_move(
    kimble_two: Solver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIMBLE_CACHE", str(tmp_path))
    register()
    write_table(kimble_two, table_path(kimble_two.rules), kimble_two.statistics)
    agent = make_agent("exact", kimble_two.rules)
    inner = ExactAgent("exact", kimble_two.rules)
    states = random_positions(kimble_two.rules, 2_000, seed=4)
    states["die"] = 1 + np.arange(len(states)) % 6
    losses = inner.losses(states)
    actions = agent.act(states, np.zeros(len(states), np.uint64))
    assert np.nanmin(losses) == 0.0
    assert (losses[np.arange(len(states)), actions] == 0.0).all()
    win = agent.evaluate(states)
    best = win[np.arange(len(states)), actions, states["seat"]]
    assert np.allclose(best, inner.values(states))
    assert np.allclose(win.sum(axis=2)[~np.isnan(losses)], 1.0)
    assert (win[..., [1, 3]] == 0.0).all()


def test_tables_refuse_other_seats(kimble_two: Solver) -> None:
    table = table_of(kimble_two)
    states = random_positions(kimble_two.rules, 3, seed=1)
    states["plays"][1] = (1, 1, 0, 0)
    with pytest.raises(TableError, match="seats like"):
        table.values(states)
    states["plays"][1] = 1
    with pytest.raises(TableError, match="for two seats"):
        table.values(states)
    with pytest.raises(TableError, match="expected"):
        Table(kimble_two.rules, [np.zeros(5, np.uint16)], 1.0, {})


# --------------------------------------------------------------------------------- fixed players


def test_two_perfect_players_reach_the_value(forced_two: Solver) -> None:
    """A second kernel that looks at every position by itself finds the same value."""
    result = Evaluator(forced_two.rules).duel(Best(), Best())
    value = forced_two.block(0, 0)[0][0, 0]
    assert result.first == pytest.approx(value, abs=1e-7)
    assert result.second == pytest.approx(1 - value, abs=1e-7)


def test_the_agent_exact_reaches_the_value(
    forced_two: Solver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIMBLE_CACHE", str(tmp_path))
    write_table(forced_two, table_path(forced_two.rules), forced_two.statistics)
    evaluator = Evaluator(forced_two.rules)
    agent = evaluator.player(ExactAgent("exact", forced_two.rules))
    value = forced_two.block(0, 0)[0][0, 0]
    assert evaluator.duel(agent, agent).first == pytest.approx(value, abs=1e-4)
    assert evaluator.best_response(agent).mean == pytest.approx(0.5, abs=1e-4)


def random_against_random(rules: Rules, games: int) -> float:
    """Simulate: the share of games that the seat throwing first wins."""
    states = empty_states(games)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    keys = np.empty(games, np.uint64)
    game_keys(17, 0, keys)
    fixed = rules.replace(starter="R")
    new_game_batch(states, fixed.array, plays, keys, np.zeros((0, 2), np.int8))
    play_random_batch(states, fixed.array, 100_000)
    return float((states["winner"] == 0).mean())


@pytest.mark.parametrize("text", ["kimble[pass_allowed=no]", "kombat"])
def test_simulated_games_agree_with_the_exact_result(text: str) -> None:
    rules = two_seats(text, 2)
    games = 40_000
    exact = Evaluator(rules).duel(Uniform(), Uniform()).first
    assert random_against_random(rules, games) == pytest.approx(exact, abs=4 * 0.5 / games**0.5)


# --------------------------------------------------------------------------- figures and refusals


def test_solve_game_reports_what_the_command_prints(tmp_path: Path) -> None:
    out = solve_game(FORCED, 1, table=tmp_path / "one.table", threads=1)
    assert json.loads(json.dumps(out)) == out
    assert out["positions"] == 813
    assert out["bracket"] < 1e-9
    assert out["start_lower"] == pytest.approx(out["start_value"], abs=1e-9)
    assert out["start_upper"] == pytest.approx(out["start_value"], abs=1e-9)
    assert out["start_value"] == pytest.approx(0.5262585192, abs=1e-9)
    assert out["strict_pass_share"] == 0.0
    assert 20 < out["expected_throws"] < 25


def test_the_expected_number_of_throws_agrees_with_simulation(tmp_path: Path) -> None:
    """With one piece every move is forced, so random games are perfect games."""
    rules = two_seats(FORCED, 1)
    exact = solve_game(rules, table=tmp_path / "one.table", threads=1)["expected_throws"]
    states = empty_states(40_000)
    plays = np.zeros((len(states), 4), np.int8)
    plays[:, [0, 2]] = 1
    keys = np.empty(len(states), np.uint64)
    game_keys(3, 0, keys)
    new_game_batch(states, rules.array, plays, keys, np.zeros((0, 2), np.int8))
    play_random_batch(states, rules.array, 100_000)
    plies = states["plies"]
    assert plies.mean() == pytest.approx(exact, abs=4 * plies.std() / len(states) ** 0.5)


def test_passing_shows_in_the_figures(tmp_path: Path) -> None:
    out = solve_game("kimble", 2, table=tmp_path / "two.table", threads=1)
    assert out["expected_throws"] is None
    assert 0.01 < out["strict_pass_share"] < 0.10
    assert out["start_lower"] < out["start_value"] < out["start_upper"]
    assert out["bracket"] > 1e-3


@pytest.mark.parametrize("text", ["kimble", "kombat"])
def test_opposite_seats_hold_both_bounds_in_one_solve(text: str) -> None:
    """What seat a loses by endless play seat b wins: the upper bound is the lower one turned."""
    low, high = (Solver(two_seats(text, 2), mode, tolerance=1e-11) for mode in ("lower", "upper"))
    for side in (low, high):
        side.solve()
    for x, y in low.all_pairs():
        free = ~shared_fields(low, x, y)
        p, q = low.block(y, x)
        for turned, found in zip((q.T, p.T), high.block(x, y), strict=True):
            assert np.abs(turned - found)[free].max() < 1e-9
    gap, share = gap_of([low])
    assert gap_of([low, high]) == pytest.approx((gap, share), abs=1e-9)
    assert gap > 1e-3


def test_numbers_that_cannot_be_are_refused() -> None:
    for options in ({"threads": 0}, {"tolerance": -1.0}, {"tolerance": float("nan")}):
        with pytest.raises(KimbleError, match=next(iter(options))):
            Solver(two_seats("kimble", 1), **options)  # type: ignore[arg-type]


def test_the_bracket_can_be_had_without_the_value(tmp_path: Path) -> None:
    table = tmp_path / "one.table"
    whole = solve_game("kimble", 1, table=table, folder=tmp_path / "layers", threads=1)
    table.unlink()
    alone = solve_game("kimble", 1, table=table, threads=1, value=False)
    for name in ("bracket", "open_share", "start_lower", "start_upper"):
        assert alone[name] == pytest.approx(whole[name], abs=1e-12)
    assert alone["start_value"] is alone["table"] is None
    assert not table.exists()


def test_neighbours_are_bounded_by_two_solves(tmp_path: Path) -> None:
    out = solve_game("kimble", 1, adjacent=True, table=tmp_path / "one.table", threads=1)
    assert out["bracket"] < 1e-9
    for name in ("start_lower", "start_upper"):
        assert out[name] == pytest.approx(out["start_value"], abs=1e-9)


def test_rules_the_solver_does_not_know_are_refused_by_name() -> None:
    with pytest.raises(RulesError) as caught:
        Solver(two_seats("kimble[die=popomatic,max_sixes=3]", 1))
    assert len(caught.value.faults) == 2
    with pytest.raises(RulesError, match="pass_allowed=False"):
        Solver(two_seats("norske[pass_allowed=yes]", 1))
    with pytest.raises(RulesError, match="two seats"):
        Solver(find_rules("kimble", pieces=1))
    with pytest.raises(TableError, match="at most 3 pieces"):
        Evaluator(two_seats("kimble", 4))
    with pytest.raises(TableError, match="mode must be one of"):
        Solver(two_seats("kimble", 1), mode="bracket")


def test_random_positions_can_be() -> None:
    rules = two_seats("kimble", 3)
    states = random_positions(rules, 500, seed=1)
    assert states.dtype == STATE
    for state in states[:50]:
        Game.from_state(rules, state.reshape(1).copy())


# -------------------------------------------------------------------------------- decision sets


def test_a_game_too_large_for_the_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = {"SC_PHYS_PAGES": 1 << 21, "SC_PAGE_SIZE": 1 << 12}
    monkeypatch.setattr(report.os, "sysconf", sizes.__getitem__)
    with pytest.raises(TableError, match=r"layer alone take 2\d\.\d GB, and it has 8\.6 GB"):
        solve_game("norske", 4, folder=tmp_path / "layers")
    assert not list(tmp_path.iterdir())


def test_a_decision_set_holds_what_the_table_says(kimble_two: Solver, tmp_path: Path) -> None:
    table = table_of(kimble_two)
    path = tmp_path / "set.npz"
    make_decisions(table, path, decisions=500, sample=700)
    found = read_decisions(kimble_two.rules, path)
    win = table.moves(found.positions)
    assert np.array_equal(np.isnan(found.win), win < 0)
    assert np.abs(np.where(win < 0, 0, found.win - win))[win >= 0].max() < 1e-5
    assert ((win >= 0).sum(axis=1) >= 2).all()
    assert np.abs(found.value - table.values(found.sample)).max() < 1e-5
    best = np.nanargmax(found.win, axis=1)
    assert (found.losses(best) == 0.0).all()
    assert found.losses(np.nanargmin(found.win, axis=1)).mean() > 0.0
    with pytest.raises(TableError, match=r"action 0 \(enter\) is not legal; legal: .*pass"):
        found.losses(np.nanargmax(np.isnan(found.win), axis=1))
    with pytest.raises(TableError, match="made for"):
        read_decisions("kombat[pieces=2]", path)
    with pytest.raises(TableError, match="no decision set"):
        read_decisions("kombat[pieces=2]", tmp_path / "absent.npz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(TableError, match="damaged"):
        read_decisions(kimble_two.rules, path)


@pytest.mark.parametrize("rules", ["kimble", "kombat"])
def test_the_shipped_four_piece_sets_are_whole(rules: str) -> None:
    found = read_decisions(rules)
    assert len(found.positions) == 100_000
    assert len(found.sample) == 200_000
    bits = np.empty(len(found.positions), np.int64)
    faults_batch(found.positions, found.rules.array, bits)
    assert not bits.any()
    assert find_rules(rules).hash == found.rules.hash
