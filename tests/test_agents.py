"""The heuristics: what they do in plain positions, and that they beat ``random`` everywhere."""

from __future__ import annotations

import json
from importlib import resources

import numpy as np
import pytest

from agents import make_agent
from agents.heuristics import describe_heuristic, heuristic_names, make_heuristic
from evaluation import play_match
from kimble_env import find_rules
from kimble_env.errors import AgentError
from kimble_env.features import FEATURES
from kimble_env.notation import format_move, parse_position
from kimble_env.opponents import WeightAgent, decision_keys

NAMES = heuristic_names()


def move_of(spec: str, position: str) -> str:
    rules, states = parse_position(position)
    action = make_agent(spec, rules).act(states, decision_keys(states))[0]
    return format_move(rules, int(action), int(states["die"][0]))


@pytest.mark.parametrize(
    ("name", "position", "move"),
    [
        # a capture before entering, entering before running
        ("capture", "kimble R4/B3/Y-/G- R 6 1", "4-10"),
        ("runner", "kimble R4,20/B3/Y-/G- R 6 1", "4-10"),
        ("runner", "kimble R4,20/B-/Y-/G- R 6 1", "enter"),
        # the runner runs with the first on the track, not on the stretch
        ("runner", "kimble R4,20,28/B-/Y-/G- R 3 1", "20-23"),
        # out of danger rather than into it: green stands 2 behind red's 10 (g 8)
        ("capture", "kimble R10,20/B-/Y-/G15 R 5 1", "10-15"),
        ("cautious", "kimble R10,20/B-/Y-/G15 R 5 1", "10-15"),
        # the only move puts a far piece before two hunters: rather pass (yellow on g 22 and g 23)
        ("cautious", "kimble R21/B-/Y8,9/G- R 3 1", "pass"),
        ("capture", "kimble R21/B-/Y8,9/G- R 3 1", "21-24"),
        # Norske: of two bad moves the one that loses less
        ("cautious", "norske R5x2,13/B0/Y0/G- R 2 1", "13-15"),
        ("mixed", "norske R-/B-/Y-/G- R 6 1", "enter"),
        # to finish is better than anything
        ("cautious", "kimble R27,29,30,31/B-/Y-/G- R 1 1", "27-28"),
        ("capture", "kombat R27,29,30,31/B-/Y-/G- R 1 1", "27-28"),
    ],
)
def test_plain_positions(name: str, position: str, move: str) -> None:
    assert move_of(name, position) == move


def test_each_heuristic_has_a_sentence_and_a_bare_name() -> None:
    assert {"cautious", "capture", "runner", "mixed"} <= set(NAMES)
    for name in NAMES:
        assert describe_heuristic(name).endswith(".")
        bare, full = make_agent(name), make_agent(f"heuristic:{name}")
        assert isinstance(bare, WeightAgent)
        assert isinstance(full, WeightAgent)
        assert (bare.weights == full.weights).all()
        assert bare.weights.any()
        assert bare.spec == full.spec == name
    with pytest.raises(AgentError, match=r"unknown heuristic 'nobody'; known: .*cautious"):
        make_agent("heuristic:nobody")
    with pytest.raises(AgentError, match="unknown heuristic ''"):
        make_agent("heuristic")


def test_the_data_file_names_features_and_rule_sets_that_exist() -> None:
    text = resources.files("agents").joinpath("heuristics.json").read_text(encoding="utf-8")
    for entry in json.loads(text).values():
        vectors = [entry["weights"], *entry.get("for", {}).values()]
        assert {name for vector in vectors for name in vector} <= set(FEATURES)
        for key in entry.get("for", {}):
            name, _, players = key.partition("-")
            assert name in ("kimble", "kombat", "norske")
            assert players in ("", "2p", "3p", "4p")


def test_weights_of_their_own_for_a_rule_set_and_number_of_players() -> None:
    def weights(rules: str, players: int) -> np.ndarray:
        return make_heuristic("mixed", find_rules(rules, players=players)).weights

    assert (weights("kimble", 2) != weights("kimble", 4)).any()
    assert (weights("kombat", 2) != weights("kimble", 2)).any()
    assert (weights("norske", 2) == weights("norske", 4)).all()
    assert (weights("kimble[pieces=2]", 2) == weights("kimble", 2)).all()


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske"])
def test_heuristics_beat_random(rules: str, players: int) -> None:
    for name in NAMES:
        result = play_match([name] + ["random"] * (players - 1), rules, games=2400, seed=3)
        low, _ = result.wilson(0, confidence=0.999)
        assert low > 1 / players, f"{name} wins {result.share(0):.3f}"


def test_passing_as_often_as_moving_is_no_yardstick() -> None:
    result = play_match(["random", "random:mask"], "kimble", games=1000)
    assert result.share(0) > 0.8
