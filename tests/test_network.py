"""Policy networks as agents: files, refusals, legality, and independence of batches."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from agents import make_agent
from agents.network import Layer, ModelError, load_policy, save_policy
from kimble_env import Game, find_rules
from kimble_env.observation import observation_size
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
    from kimble_env.observation import observe_batch

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


def test_a_network_of_moves_is_added_to_the_board(tmp_path: Path) -> None:
    rules = find_rules("kimble")
    names = ("capture", "enter", "pass")
    one = [(np.array([[0.0, 60.0, -50.0]], np.float32), np.zeros(1, np.float32))]
    save_policy(
        tmp_path / "m", rules, random_layers(rules), "tanh", moves=names, move_layers=one
    )
    agent = load_policy(tmp_path / "m")
    game = Game.from_text("kimble R10/B-/Y-/G- R 6 1")
    assert agent.act(game.state, np.zeros(1, np.uint64)).tolist() == [0]  # it must enter
    assert make_agent(f"net:{tmp_path / 'm'}", rules).act(game.state, np.zeros(1, np.uint64)) == [0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("capture", "beauty", "pass"), "unknown features of moves: beauty"),
        (("pass",), "1 feature"),
    ],
)
def test_a_network_of_moves_that_does_not_fit_is_refused(
    tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    rules = find_rules("kimble")
    one = [(np.ones((1, 3), np.float32), np.zeros(1, np.float32))]
    save_policy(
        tmp_path / "m", rules, random_layers(rules), "tanh", moves=names, move_layers=one
    )
    with pytest.raises(ModelError, match=message):
        load_policy(tmp_path / "m")


def test_missing_and_damaged_files_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no readable model"):
        load_policy(tmp_path / "nothing")
    weights = (model / "policy.safetensors").read_bytes()
    (model / "policy.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="no readable model"):
        load_policy(model)
    (model / "policy.safetensors").write_bytes(weights)
    (model / "policy.json").write_text("[1]")
    with pytest.raises(ModelError, match="must hold an object"):
        load_policy(model)
