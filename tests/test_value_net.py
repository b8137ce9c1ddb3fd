"""Value networks: one answer from compiled code, ONNX and torch; refusals; shipped models."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from agents.evaluators import best_actions, make_evaluator, move_values
from agents.net_features import feature_count, net_features
from agents.net_kernel import forward_batch, make_net, make_scratch
from agents.network import ModelError
from agents.value_net import (
    MODELS,
    load_net,
    model_names,
    read_net,
    write_net,
)
from kimble_env import find_rules
from kimble_env.errors import PositionError
from kimble_env.kernel import throw_batch
from kimble_env.notation import parse_position
from kimble_env.opponents import decision_keys, hide_random_state
from kimble_env.rules import Rules
from tests.test_net_features import random_positions

ROOT = Path(__file__).resolve().parent.parent


def random_layers(rules: Rules, seed: int = 1, hidden: tuple[int, int] = (16, 8)) -> list[Any]:
    rng = np.random.default_rng(seed)
    sizes = (feature_count(rules), *hidden, 4)
    return [
        (rng.normal(0, 0.5, (b, a)).astype(np.float32), rng.normal(0, 0.3, b).astype(np.float32))
        for a, b in itertools.pairwise(sizes)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rules = find_rules("kombat", players=4)
    write_net(tmp_path / "value", rules, random_layers(rules))
    return tmp_path


def decisions(rules: Rules, count: int) -> Any:
    states = random_positions(rules, count)
    states = states[states["status"] == 0].copy()
    legal = np.empty(len(states), np.int64)
    throw_batch(states, rules.array, np.zeros(len(states), np.int8), legal)
    return np.ascontiguousarray(states[legal != 0])


@pytest.mark.parametrize(("text", "players"), [("norske", 3), ("kombat", 2)])
def test_onnx_torch_and_compiled_code_agree(tmp_path: Path, text: str, players: int) -> None:
    import onnxruntime
    import torch

    from training.export import onnx_model
    from training.td import Learner, present_columns

    rules = find_rules(text, players=players)
    layers, states = random_layers(rules), random_positions(rules, 400)
    states = states[states["status"] == 0].copy()
    x = net_features(states, rules.array, feature_count(rules))
    present = present_columns(rules)
    compiled = np.empty((len(x), 4), np.float32)
    net = make_net([layers])
    forward_batch(x, x[:, present] > 0, net.params, make_scratch(net), compiled)
    session = onnxruntime.InferenceSession(onnx_model(layers, present, "test"))
    assert abs(session.run(None, {"features": x})[0] - compiled).max() < 1e-6
    learner = Learner(x.shape[1], (16, 8), 1, 0.9, present)
    with torch.no_grad():
        for own, given in zip(learner.params, [a for pair in layers for a in pair], strict=True):
            own.copy_(torch.from_numpy(given))
        win = torch.softmax(learner.logits(torch.from_numpy(x)), 1).numpy()
    assert abs(win - compiled).max() < 1e-6
    # the same with the game around it: absolute seats
    write_net(tmp_path / "value", rules, layers)
    values = read_net(tmp_path / "value", "net", rules).value(states)
    at = (states["seat"][:, None].astype(np.int64) + np.arange(4)) % 4
    assert abs(np.take_along_axis(values, at, 1) - compiled).max() < 1e-6


@pytest.mark.parametrize(("text", "players"), [("kombat", 4), ("norske", 3), ("kimble", 2)])
def test_moves_are_valued_as_any_evaluator_values_them(
    tmp_path: Path, text: str, players: int
) -> None:
    rules = find_rules(text, players=players)
    write_net(tmp_path / "value", rules, random_layers(rules))
    agent = make_agent(f"net:{tmp_path}", rules)
    evaluator = make_evaluator(f"net:{tmp_path}", rules)
    positions = hide_random_state(decisions(rules, 150))
    expected = move_values(evaluator, positions, rules)
    assert abs(agent.evaluate(positions) - expected).max() < 2e-6
    actions = agent.act(positions, decision_keys(positions))
    seat, rows = positions["seat"].astype(np.int64), np.arange(len(positions))
    own = expected[rows, :, seat]
    best = best_actions(expected, positions, rules)
    assert (own[rows, actions] > own[rows, best] - 2e-6).all()
    assert (actions == best).mean() > 0.98


def test_chances_are_chances_and_a_finished_game_is_exact(folder: Path) -> None:
    net = load_net(str(folder))
    states = random_positions(net.rules, 300)
    over = states["status"] != 0
    assert over.any()
    assert not over.all()
    values = net.value(states)
    assert values.dtype == np.float64
    assert abs(values.sum(axis=1) - 1).max() < 1e-12
    assert (values[over, states["winner"][over]] == 1.0).all()
    assert (net.value(states[~over].copy()) > 0).all()
    rules, two = parse_position("kombat R3/Y- R - 1")
    write_net(folder / "two" / "value", rules, random_layers(rules))
    assert (load_net(str(folder / "two")).value(two)[0, [1, 3]] == 0).all()
    with pytest.raises(PositionError, match="before a throw"):
        net.value(decisions(net.rules, 5))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rules_hash", "0" * 16, "rules_hash"),
        ("feature_version", 99, "feature_version is 99, expected"),
        ("format", "kimble-policy-1", "format"),
        ("players", 2, "players"),
        ("seats", [0, 1], "seats"),
        ("layers", [1, 2, 3, 4], "layer sizes"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    folder: Path, key: str, value: object, message: str
) -> None:
    config = json.loads((folder / "value.json").read_text())
    config[key] = value
    (folder / "value.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        load_net(str(folder), find_rules("kombat", players=4))


def test_a_norske_network_of_the_first_inputs_is_refused(tmp_path: Path) -> None:
    rules = find_rules("norske", players=2)
    write_net(tmp_path / "value", rules, random_layers(rules))
    config = json.loads((tmp_path / "value.json").read_text())
    assert config["feature_version"] == 2
    (tmp_path / "value.json").write_text(json.dumps({**config, "feature_version": 1}))
    with pytest.raises(ModelError, match="feature_version is 1, expected 2"):
        load_net(str(tmp_path))


def test_net_alone_is_the_shipped_network() -> None:
    for spec in ("net", "net:"):
        agent = make_agent(spec, find_rules("kombat", players=3))
        assert getattr(agent, "inner", agent).hash == load_net("kombat-3p").hash


def test_other_rules_and_damage_are_refused_in_words(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"kombat.*asked for 'kimble'"):
        make_agent(f"net:{folder}", "kimble")
    with pytest.raises(ModelError, match=r"no model 'nowhere'.*shipped"):
        make_agent("net:nowhere", "kimble")
    (folder / "value.safetensors").write_bytes(b"what")
    with pytest.raises(ModelError, match="no readable model"):
        load_net(str(folder))
    rules = find_rules("kombat", players=4)
    layers = random_layers(rules)
    layers[1][0][0, 0] = np.nan
    write_net(folder / "value", rules, layers)
    with pytest.raises(ModelError, match="finite"):
        load_net(str(folder))


def test_two_seats_may_be_turned_round_the_board_but_not_moved_together(tmp_path: Path) -> None:
    rules = find_rules("kimble", players=2)
    write_net(tmp_path / "value", rules, random_layers(rules))
    assert load_net(str(tmp_path), rules.replace(seats="BG")).config["seats"] == [0, 2]
    with pytest.raises(ModelError, match="seats are"):
        load_net(str(tmp_path), rules.replace(seats="RB"))


# ---------------------------------------------------------------------------------- what is shipped


@pytest.mark.parametrize("name", model_names())
def test_a_shipped_model_gives_its_golden_values(name: str) -> None:
    import onnxruntime

    net = load_net(name)
    told = json.loads((MODELS / "golden" / f"{name}.json").read_text())
    assert told["model_hash"] == net.hash
    assert told["rules_hash"] == net.rules.hash
    states = np.concatenate([parse_position(row["position"])[1] for row in told["vectors"]])
    x = net_features(states, net.rules.array, feature_count(net.rules))
    for i, row in enumerate(told["vectors"]):
        own = {str(k): float(x[i, k]) for k in np.flatnonzero(x[i])}
        assert own == pytest.approx(row["features"], abs=1e-6)
    win = np.array([row["win"] for row in told["vectors"]])
    assert abs(net.value(states) - win).max() < 1e-6
    session = onnxruntime.InferenceSession(MODELS / f"{name}.onnx")
    found = session.run(None, {"features": x})[0]
    at = (states["seat"][:, None].astype(np.int64) + np.arange(4)) % 4
    assert abs(np.take_along_axis(win, at, 1) - found).max() < 1e-6


@pytest.mark.parametrize("name", model_names())
def test_a_shipped_model_is_small_and_says_how_it_was_made(name: str) -> None:
    config = json.loads((MODELS / f"{name}.json").read_text())
    for kind in ("onnx", "safetensors", "json"):
        assert (MODELS / f"{name}.{kind}").stat().st_size < 300_000
    assert config["training"]["command"]
    assert config["training"]["versions"]["torch"]
    assert config["training"]["commit"]
    card = (MODELS / f"{name}.md").read_text()
    share = 100 * config["measured"]["matches"]["random"]["win_share"]
    assert name in card
    assert f"{share:.1f}" in card


def test_playing_a_network_loads_no_torch(folder: Path) -> None:
    code = (
        "import sys; from kimble_env import Game, choose\n"
        f"game = Game.from_text('kombat R10/B-/Y-/G- R 6 1'); print(choose('net:{folder}', game))\n"
        "assert not {'torch', 'onnx', 'matplotlib'} & set(sys.modules), 'torch is loaded'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("enter", "10-16", "pass")
