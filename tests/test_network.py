"""Policy networks as agents: files, refusals, legality, and independence of batches."""

from __future__ import annotations

import itertools
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from agents.move_inputs import SCALES, MoveInputs
from agents.network import Layer, ModelError, load_policy, save_policy
from kimble_env import Game, find_rules
from kimble_env.features import FEATURE_TABLE, FEATURES, features_batch
from kimble_env.kernel import legal_batch, take_states
from kimble_env.observation import mask_batch, observation_size, observe_batch
from kimble_env.opponents import decision_keys, hide_random_state
from kimble_env.rules import Rules
from kimble_env.testing import random_positions

pytest.importorskip("safetensors")


def random_layers(rules: Rules, seed: int = 0, width: int = 16) -> list[Layer]:
    """Layers of a small random policy."""
    rng = np.random.default_rng(seed)
    sizes = [observation_size(rules.board), width, width, rules.board.actions]
    return [
        (rng.normal(size=(b, a)).astype(np.float32), rng.normal(size=b).astype(np.float32))
        for a, b in itertools.pairwise(sizes)
    ]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rules = find_rules("norske")
    save_policy(tmp_path / "model", rules, random_layers(rules), "tanh", players=4)
    return tmp_path / "model"


def test_a_saved_policy_plays_as_the_arithmetic_says(model: Path) -> None:
    rules = find_rules("norske")
    agent = load_policy(model)
    game = Game.from_text("norske R3,20/B1/Y-/G- R 5 1")
    x = np.zeros((1, observation_size(rules.board)), np.int8)
    observe_batch(game.state, rules.array, np.array([0], np.int8), x)
    value = x.astype(np.float64)
    (w0, b0), (w1, b1), (w2, b2) = random_layers(rules)
    value = np.tanh(np.tanh(value @ w0.T + b0) @ w1.T + b1) @ w2.T + b2
    legal = [move.action for move in game.legal_moves]
    best = legal[int(np.argmax(value[0, legal]))]
    assert agent.act(game.state, np.zeros(1, np.uint64)).tolist() == [best]
    share = agent.probabilities(game.state)[0]
    expected = np.exp(value[0, legal] - value[0, legal].max())
    np.testing.assert_allclose(share[legal], expected / expected.sum(), rtol=1e-5)
    assert share.sum() == pytest.approx(1.0)
    assert np.count_nonzero(share) <= len(legal)


@pytest.mark.parametrize("word", ["", ",sample"])
def test_moves_are_legal_and_independent_of_the_batch(model: Path, word: str) -> None:
    rules = find_rules("norske")
    agent = make_agent(f"net:{model}{word}", rules)
    states = random_positions(rules, 500, seed=3)
    keys, positions = decision_keys(states), hide_random_state(states)
    whole = agent.act(positions, keys)
    halves = [agent.act(positions[k::7].copy(), keys[k::7].copy()) for k in range(7)]
    for k in range(7):
        np.testing.assert_array_equal(whole[k::7], halves[k])
    again = pickle.loads(pickle.dumps(agent))
    np.testing.assert_array_equal(again.act(positions, keys), whole)


def test_sampling_follows_the_policy(model: Path) -> None:
    agent = load_policy(model, sample=True)
    position = Game.from_text("norske R3,20/B1/Y-/G- R 5 1").state
    share = agent.probabilities(position)[0]
    rng = np.random.default_rng(1)
    keys = rng.integers(1 << 64, size=40_000, dtype=np.uint64)
    counts = np.bincount(agent.act(np.repeat(position, len(keys)), keys), minlength=len(share))
    np.testing.assert_allclose(counts / len(keys), share, atol=0.012)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "other", "format"),
        ("rules_hash", "0" * 16, "rules_hash"),
        ("observation_version", 99, "observation_version"),
        ("action_version", 0, "action_version"),
        ("activation", "gelu", "activation"),
        ("layers", [160, 16, 16, 34, 5], "weights missing"),
        ("layers", [160, 16, 34], "differ|missing|fit"),
        ("layers", [1, 16, 16, 34], "layer sizes"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    model: Path, key: str, value: object, message: str
) -> None:
    config = json.loads((model / "policy.json").read_text())
    config[key] = value
    (model / "policy.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        load_policy(model)


def test_a_model_of_other_rules_is_refused_and_the_message_names_both(model: Path) -> None:
    with pytest.raises(ModelError, match=r"norske.*kimble"):
        load_policy(model, "kimble")


NAMES = ("capture", "enter", "pass")


def move_weights(width: int, features: int, hidden: int, seed: int = 4) -> dict[str, np.ndarray]:
    """Weights of a random network that sees a move."""
    rng = np.random.default_rng(seed)
    shapes = {"features": (width, features), "board": (width, hidden), "bias": (width,)}
    shapes |= {"score": (width,), "constant": (1,)}
    return {name: rng.normal(size=size).astype(np.float32) for name, size in shapes.items()}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_board_and_moves_add_up_as_the_arithmetic_says(
    tmp_path: Path, depth: int, activation: str
) -> None:
    rules = find_rules("kimble")
    rng = np.random.default_rng(depth)
    sizes = [observation_size(rules.board), *[12, 9, 7][:depth], rules.board.actions]
    layers = [
        (
            0.3 * rng.normal(size=(b, a)).astype(np.float32),
            0.3 * rng.normal(size=b).astype(np.float32),
        )
        for a, b in itertools.pairwise(sizes)
    ]
    w = move_weights(5, len(NAMES), sizes[-2])
    save_policy(tmp_path / "m", rules, layers, activation, moves=NAMES, move_weights=w)
    agent = load_policy(tmp_path / "m")
    positions = random_positions(rules, 40, seed=2)
    x = np.empty((40, sizes[0]), np.int8)
    observe_batch(positions, rules.array, np.ascontiguousarray(positions["seat"]), x)
    act = np.tanh if activation == "tanh" else lambda v: np.maximum(v, 0.0)
    h = x.astype(np.float64)
    for weight, bias in layers[:-1]:
        h = act(h @ weight.T + bias)
    board = h @ layers[-1][0].T + layers[-1][1]
    chosen = [FEATURES.index(name) for name in NAMES]
    for i, share in enumerate(agent.probabilities(positions)):
        legal = [m.action for m in Game.from_state(rules, positions[i : i + 1]).legal_moves]
        values = np.empty((len(legal), len(FEATURES)))
        codes = np.array(legal, np.int16)
        features_batch(np.repeat(positions[i : i + 1], len(legal)), rules.array, codes, values)
        units = act(values[:, chosen] @ w["features"].T + w["board"] @ h[i] + w["bias"])
        logits = board[i, legal] + units @ w["score"] + w["constant"]
        expected = np.exp(logits - logits.max())
        np.testing.assert_allclose(share[legal], expected / expected.sum(), rtol=1e-3, atol=1e-6)
        assert np.count_nonzero(share) <= len(legal)


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske", "norske[pieces=3]"])
def test_every_feature_is_read_as_the_engine_has_it(rules: str) -> None:
    """Read from a few sums, each feature is what it is alone, times its scale."""
    found = find_rules(rules)
    positions = random_positions(found, 600, seed=9)
    legal, masks = np.empty(600, np.int64), np.empty((600, found.board.actions), np.int8)
    legal_batch(positions, found.array, legal)
    mask_batch(legal, masks)
    inputs = MoveInputs(found, FEATURES)
    assert len(inputs.columns.plans) < 20
    out = np.full((600, 3 + inputs.size), 7.0, np.float32)
    inputs.write(positions, masks, out, 3)
    most, width = inputs.shape
    codes, rows = out[:, 3 : 3 + most], out[:, 3 + most :].reshape(600, most, width)
    games, actions = np.nonzero(masks)
    at = np.nonzero(codes >= 0)
    np.testing.assert_array_equal(at[0], games)
    np.testing.assert_array_equal(codes[at], actions)
    values = np.empty((len(games), len(FEATURES)))
    features_batch(take_states(positions, games), found.array, actions.astype(np.int16), values)
    scales = np.array([SCALES[FEATURE_TABLE[name].unit] for name in FEATURES])
    np.testing.assert_allclose(rows[at], values * scales, rtol=1e-5, atol=1e-5)
    assert not rows[codes < 0].any()
    assert (out[:, :3] == 7.0).all()


def without_features(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value for name, value in weights.items() if name != "features"}


@pytest.mark.parametrize(
    ("names", "change", "message"),
    [
        (("capture", "beauty", "pass"), dict, "unknown features of moves: beauty"),
        (("pass",), dict, "1 feature"),
        (NAMES, without_features, r"weights missing: move\.features"),
    ],
)
def test_a_network_of_moves_that_does_not_fit_is_refused(
    tmp_path: Path, names: tuple[str, ...], change: Any, message: str
) -> None:
    rules = find_rules("kimble")
    layers = random_layers(rules)
    weights = change(move_weights(5, 3, layers[-1][0].shape[1]))
    save_policy(tmp_path / "m", rules, layers, "tanh", moves=names, move_weights=weights)
    with pytest.raises(ModelError, match=message):
        load_policy(tmp_path / "m")


def test_missing_and_damaged_files_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        load_policy(tmp_path / "nothing")
    weights = (model / "policy.safetensors").read_bytes()
    (model / "policy.safetensors").unlink()
    with pytest.raises(ModelError, match=r"half a model: .*policy.safetensors is missing"):
        load_policy(model)
    (model / "policy.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="no readable model"):
        load_policy(model)
    (model / "policy.safetensors").write_bytes(weights)
    (model / "policy.json").write_text("[1]")
    with pytest.raises(ModelError, match="must hold an object"):
        load_policy(model)


def test_a_folder_without_a_network_is_told_what_was_looked_for(
    model: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=r"neither value.json of kimble train td .* policy.json"):
        make_agent(f"net:{tmp_path}", "kimble")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"stopped before it kept one \(train td and ppo: --res"):
        make_agent(f"net:{tmp_path}", "kimble")
    run = tmp_path / "run"
    run.mkdir()
    shutil.copytree(model, run / "policy")
    with pytest.raises(ModelError, match=r"say net:.*policy"):
        make_agent(f"net:{run}", "kimble")
