"""Value learning: what the targets are, that it learns, and that a killed run goes on the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.evaluators import throw_values
from agents.net_features import feature_count, net_features
from agents.value_net import ValueNet, load_net, model_facts, write_net
from evaluation import play_match
from kimble_env import find_rules
from kimble_env.errors import KimbleError
from kimble_env.kernel import take_states
from tests.test_value_net import random_layers
from training import td_kernel
from training.td import Games, Run, judge, outcomes, report, resume, train, vectors
from training.td_config import TDConfig, read_count
from training.td_profile import profile, table

ROOT = Path(__file__).resolve().parent.parent
SMALL = {"games": 64, "window": 8, "batch": 64, "hidden": 16, "hidden2": 8, "evaluate_games": 8}


def games(text: str, players: int, **settings: Any) -> Games:
    config = TDConfig(rules=text, players=players, **{**SMALL, "stride": 1, **settings})
    rules = config.found_rules()
    return Games(config, rules, random_layers(rules))


@pytest.mark.parametrize(("text", "players"), [("kimble", 2), ("kombat", 4), ("norske", 3)])
def test_targets_are_the_mean_over_the_faces_of_the_best_move(text: str, players: int) -> None:
    batch = games(text, players, lam=0.0)
    for window in range(6):  # on to positions with something to decide
        batch.play(window)
    rules, before = batch.rules, take_states(batch.states)
    batch.play(6)
    kept = batch.config.window
    x = net_features(before, rules.array, feature_count(rules))
    assert (batch.x[::kept] == x).all()
    net = ValueNet("net", rules, model_facts(rules, batch.layers), batch.layers, "")
    expected = throw_values(net, before, rules)
    at = (before["seat"][:, None].astype(np.int64) + np.arange(4)) % 4
    assert abs(np.take_along_axis(expected, at, 1) - batch.y[::kept]).max() < 1e-5
    assert abs(batch.y.sum(axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize("stride", [1, 2])
def test_later_throws_correct_earlier_ones_until_the_trace_is_cut(stride: int) -> None:
    rng = np.random.default_rng(1)
    tape = rng.random((6, 10)).astype(np.float32)
    tape[:, td_kernel.KEEP] = (0.8, 0.8, 0.0, 0.8, 0.8, 0.8)
    tape[:, td_kernel.SEAT] = (0, 2, 2, 0, 3, 1)
    y = np.zeros((6 // stride, 4), np.float32)
    td_kernel._learn_back(tape, np.zeros(5, np.float32), stride, 0, 0, y)
    error, value, keep = tape[:, :4], tape[:, 4:8], tape[:, td_kernel.KEEP]
    wrong, seat = np.zeros(4), tape[:, td_kernel.SEAT].astype(int)
    for t in range(5, -1, -1):
        wrong = keep[t] * wrong
        if t % stride == 0:
            wrong = wrong + error[t]
            assert np.roll(value[t] + wrong, -seat[t]) == pytest.approx(y[t // stride], abs=1e-6)
    assert np.roll(error[2] + value[2], -2) == pytest.approx(
        y[2 // stride], abs=1e-6
    )


def test_threads_change_nothing_and_opponents_and_stalls_are_counted() -> None:
    one = games("kimble", 2, games=256, threads=1, others=1.0, cap=60, explore=0.1)
    two = games("kimble", 2, games=256, threads=2, others=1.0, cap=60, explore=0.1)
    for batch in (one, two):
        batch.remember(random_layers(batch.rules, seed=2))
        for window in range(12):
            batch.play(window)
    assert (one.x == two.x).all()
    assert (one.y == two.y).all()
    assert (one.states == two.states).all()
    stats = one.stats.sum(axis=0)
    assert stats[td_kernel.CAPPED] > 0
    assert stats[td_kernel.GAMES] >= stats[td_kernel.CAPPED]
    assert stats[td_kernel.EXPLORED] > 0
    assert stats[td_kernel.CUT] > stats[td_kernel.EXPLORED]
    playing = one.control[:, [0, 2]]
    assert ((playing == 0).sum(axis=1)[one.episodes > 1] == 1).all()  # one learner at each table
    assert {-3, -2, -1, 1} <= set(playing.ravel().tolist())


def test_the_judge_plays_the_games_of_a_match() -> None:
    rules = find_rules("kimble", players=3)
    layers = random_layers(rules)
    net = ValueNet("net", rules, model_facts(rules, layers), layers, "")
    match = play_match([net, "mixed", "mixed"], rules, 60, seed=5, cap=400)
    found = judge(layers, rules, "mixed", 60, 5, 400, 1)
    assert found["win_share"] == pytest.approx(match.share(0))
    assert found["cut_off"] == match.truncated
    turned = play_match(["mixed", net, net], rules, 60, seed=5, cap=400)
    found = judge(layers, rules, "mixed", 60, 5, 400, 1, reverse=True)
    assert found["win_share"] == pytest.approx(turned.share(0))


def test_results_of_games_go_to_who_won() -> None:
    rules = find_rules("kimble[pieces=1]", players=2)
    x, y = outcomes(rules, vectors(["random", "mixed"], rules), 200, 1, 3000)
    assert x.shape == (len(y), feature_count(rules))
    assert (y.sum(axis=1) == 1).all()
    assert (y[:, [1, 3]] == 0).all()
    column = 28 + 4 + 8  # progress of the seat about to throw
    ahead = x[:, column] > x[:, 2 * 46 + column] + 0.5
    assert y[ahead, 0].mean() > 0.85 > 0.6 > y[:, 0].mean()


def test_it_learns_the_game_with_one_piece_nearly_exactly(tmp_path: Path) -> None:
    from agents.exact.table import find_table

    config = TDConfig(
        rules="kimble[pieces=1]", throws=400_000, games=256, batch=256, warmup=2000, hidden=32,
        hidden2=16, evaluate_games=400, evaluate_every=400_000, threads=1,
    )  # fmt: skip
    net = train(config, tmp_path / "run", progress=False)
    rules = net.rules
    table = find_table(rules)
    states = games("kimble[pieces=1]", 2, games=400)
    for window in range(3):
        states.play(window)
    asked = states.states.copy()
    own = net.value(asked)[np.arange(len(asked)), asked["seat"]]
    assert abs(own - table.values(asked)).mean() < 0.02
    row = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["against"]["random"]["win_share"] > 0.5
    assert row["throws"] >= 400_000
    assert row["cut_off"] <= row["games"]
    assert "95 % Wilson" in report(tmp_path / "run")


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    settings = {**SMALL, "rules": "kimble[pieces=2]", "throws": 40_960, "warmup": 100}
    whole = train(TDConfig(**settings), tmp_path / "whole", progress=False)
    words = [w for k, v in settings.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    code = "import sys, training.td as td; td._CHECKPOINT_SECONDS = 0.0; td.main(sys.argv[1:])"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "killed"), *words], cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(600):
        if (tmp_path / "killed" / "checkpoint.pt").exists() or child.poll() is not None:
            break
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    again = resume(tmp_path / "killed", progress=False)
    assert again.hash == whole.hash

    def curve(name: str) -> list[Any]:
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return [(r["throws"], r["loss"], r["against"]) for r in map(json.loads, lines)]

    assert curve("killed") == curve("whole")
    assert load_net(str(tmp_path / "killed")).hash == whole.hash


def test_ctrl_c_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint stands at every evaluation; without one a run begins again, and says so."""
    config = TDConfig(**SMALL, rules="kimble[pieces=1]", throws=10_240, warmup=50,
                      evaluate_every=2048)  # fmt: skip
    step = Run.step

    def interrupt(run: Run) -> None:
        if run.window == stop:
            raise KeyboardInterrupt
        step(run)

    monkeypatch.setattr(Run, "step", interrupt)
    for stop, kept in ((2, "nothing is kept"), (9, "4,096 throws are kept")):
        folder = tmp_path / str(stop)
        with pytest.raises(KeyboardInterrupt):
            train(config, folder, progress=False)
        assert f"interrupted; {kept}; go on with: kimble train td" in capsys.readouterr().err
    monkeypatch.undo()
    resume(tmp_path / "2")
    assert "no checkpoint yet: from the start" in capsys.readouterr().err
    assert resume(tmp_path / "9").hash == load_net(str(tmp_path / "2")).hash
    assert "no checkpoint" not in capsys.readouterr().err


@pytest.mark.parametrize("lag", [0, 1])
def test_with_a_lag_the_weights_in_play_are_a_window_behind(tmp_path: Path, lag: int) -> None:
    run = Run(TDConfig(**SMALL, rules="kimble[pieces=1]", lag=lag), tmp_path, shown=False)
    played, learned = [], []
    for _ in range(3):
        played.append(run.games.net.params[0].copy())
        run.step()
        learned.append(run.learner.steps)
    each = 64 * 8 // 2 // 64  # steps of a window
    assert learned == [(k - lag) * each for k in (1, 2, 3)]
    assert (played[0] == played[1]).all() == bool(lag)
    run.catch_up()
    assert run.learner.steps == 3 * each


def test_the_profile_says_where_the_time_goes() -> None:
    found = profile(TDConfig(**SMALL, rules="kimble[pieces=1]", warmup=50), windows=2)
    assert set(found["share"]) == {"rules", "inputs", "network", "torch"}
    assert sum(found["share"].values()) == pytest.approx(1, abs=0.2)
    assert found["rows_per_throw"] > 1
    assert "CPU second" in table(found)


def test_a_run_may_start_from_another_network(tmp_path: Path) -> None:
    rules = find_rules("kimble", players=2)
    write_net(tmp_path / "value", rules, random_layers(rules))
    config = TDConfig(**SMALL, rules="kombat", players=3, start=str(tmp_path))
    run = Run(config, tmp_path, shown=False)
    assert (run.games.layers[0][0] == load_net(str(tmp_path)).layers[0][0]).all()
    with pytest.raises(KimbleError, match="other sizes"):
        Run(TDConfig(start=str(tmp_path)), tmp_path, shown=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": 1.5}, r"lam must lie in 0.0..1.0, got 1.5"),
        ({"players": 5}, "players must lie in 2..4"),
        ({"window": 7, "stride": 2}, "multiple of stride"),
        ({"hidden": 20}, "multiples of 8"),
        ({"batch": 10**6}, "batch must be at most"),
        ({"rules": "kimble[two_colours=yes]", "players": 2}, "two_colours"),
        ({"rules": "norske[members=20]"}, "members"),
        ({"rules": "kimble[play_for_places=yes]", "players": 3}, "play_for_places"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(KimbleError, match=message):
        TDConfig(**settings).found_rules()


def test_a_folder_with_a_run_and_one_without_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="no run to resume"):
        resume(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(KimbleError, match="holds a run already"):
        train(TDConfig(), tmp_path)
    with pytest.raises(KimbleError, match="no weight vector"):
        vectors(["search:depth=1"], find_rules("kimble", players=2))


def test_numbers_of_throws_and_the_command_that_repeats_a_run() -> None:
    assert read_count("40M") == 40_000_000
    assert read_count("1.5k") == 1500
    assert read_count("7") == 7
    with pytest.raises(KimbleError, match="like 40M"):
        read_count("many")
    command = TDConfig(rules="kombat", players=4, throws=10**6, minutes=3.0).command()
    assert command == "kimble train td FOLDER --rules kombat --players 4 --throws 1000000"
