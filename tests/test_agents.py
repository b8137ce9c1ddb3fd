"""The heuristics: what they do in plain positions, and that they beat ``random`` everywhere."""

from __future__ import annotations

import copy
import json
import pickle
from importlib import resources

import numpy as np
import pytest

from agents import make_agent
from agents.heuristics import describe_heuristic, heuristic_names, make_heuristic
from evaluation import play_match
from kimble_env import find_rules
from kimble_env.errors import AgentError
from kimble_env.features import (
    FEATURES,
    advance_weighted_batch,
    play_weighted_batch,
    random_weights,
)
from kimble_env.kernel import (
    empty_states,
    game_keys,
    legal_batch,
    new_game_batch,
    put_states,
    take_states,
)
from kimble_env.notation import format_move, parse_position
from kimble_env.opponents import WeightAgent, decision_keys
from kimble_env.rules import Rules

NAMES = heuristic_names()
STRONG = (
    "cautious",
    "capture",
    "runner",
    "safest",
    "hunter",
    "blocker",
    "mixed",
    "planner",
    "tuned",
)
"""Those that claim to play well; the pure strategies do not."""


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
        # pure strategies: one wish each, whatever else the throw offers (here a capture by 3-9,
        # entering, the piece that is first, the one that is last)
        ("furthest", "kimble R3,20/B2/Y- R 6 1", "20-26"),
        ("furthest", "kimble R3,20,28/B2/Y- R 3 1", "28-31"),
        ("rearmost", "kimble R3,20/B2/Y- R 6 1", "enter"),
        ("rearmost", "kimble R3,20/B-/Y- R 5 1", "3-8"),
        ("capture-first", "kimble R3,20/B2/Y- R 6 1", "3-9"),
        ("capture-first", "kimble R3,20/B-/Y- R 6 1", "20-26"),
        ("capture-first", "kimble R3,9/B1,7 R 5 1", "9-14"),  # the one that has come further
        ("capture-first", "kombat R3,20/B2/Y- R 6 1", "3-9"),
        ("enter-first", "kimble R3,20/B2/Y- R 6 1", "enter"),
        ("enter-first", "kimble R3,20/B2/Y- R 5 1", "20-25"),
        # fewest enemies behind: 3-5 leaves green (g 1) 4 behind, 20-22 has yellow (g 19) 3 behind
        # and blue (g 17) 5 behind, 12-14 nobody
        ("safest", "kimble R3,12,20/B10/Y5/G8 R 2 1", "12-14"),
        ("safest", "kimble R3,12,20/B10/Y5/G- R 2 1", "12-14"),  # equal: the first of them
        ("safest", "kimble R3,20/B2/Y- R 6 1", "3-9"),
        ("safest", "kimble R3,20/B20/Y- R 6 1", "enter"),
        # hunter: yellow on its 2 (g 16) is 5 ahead of 11; 15-18 would run past it
        ("hunter", "kimble R8,15/Y2 R 3 1", "8-11"),
        ("hunter", "kimble R10,20/Y2 R 6 1", "10-16"),
        # blocker: the battery on the protected start stays where it is
        ("blocker", "norske R0x2,10/B-/Y-/G- R 5 1", "10-15"),
        ("blocker", "norske R0,10/B-/Y-/G- R 6 1", "enter"),
        # Alvi & Ahmed 2011
        ("alvi-aggressive", "kimble R3,20/B2/Y- R 6 1", "3-9"),
        ("alvi-fast", "kimble R3,20/B2/Y- R 6 1", "20-26"),
        # yellow on g 16 and g 17 is 4 and 3 behind 20, 8 and 7 behind 24; 3-7 gains nothing
        ("alvi-defensive", "kimble R3,20/Y2,3 R 4 1", "20-24"),
        # taking the piece that is behind another one saves that one: green 2 behind 10, 5 before 3
        ("alvi-defensive", "kimble R3,10/B-/Y-/G15 R 5 1", "3-8"),
        ("alvi-mixed", "kimble R3,20/Y2,3 R 4 1", "20-24"),  # defensive
        ("alvi-mixed", "kimble R3,20/Y22 R 5 1", "3-8"),  # all are safe: aggressive
        ("alvi-mixed", "kimble R3,20/Y- R 5 1", "20-25"),  # nothing to take: fast
    ],
)
def test_plain_positions(name: str, position: str, move: str) -> None:
    assert move_of(name, position) == move


def test_each_heuristic_has_a_sentence_and_a_bare_name() -> None:
    assert {"furthest", "rearmost", "capture-first", "enter-first", "runner", "cautious"} < set(
        NAMES
    )
    assert {"hunter", "blocker", "mixed", "tuned"} < set(NAMES)
    assert {
        f"alvi-{kind}" for kind in ("random", "aggressive", "defensive", "fast", "mixed")
    } < set(NAMES)
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
    for name in STRONG:
        result = play_match([name] + ["random"] * (players - 1), rules, games=1200, seed=3)
        low, _ = result.wilson(0, confidence=0.999)
        assert low > 1 / players, f"{name} wins {result.share(0):.3f}"


def test_a_heuristic_of_one_wish_is_uniform_over_the_rest() -> None:
    rules, one = parse_position("kimble R3,8,14/Y- R 4 1")  # nothing to take
    states = take_states(one, np.zeros(6000, np.int64))
    keys = np.random.default_rng(1).integers(0, 2**64, 6000, np.uint64)
    for name in ("alvi-aggressive", "alvi-random", "alvi-defensive"):
        actions, counts = np.unique(make_agent(name, rules).act(states, keys), return_counts=True)
        assert actions.tolist() == [4, 9, 15]
        assert counts.min() > 1800


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_a_heuristic_copied_or_pickled_decides_the_same_however_the_batch_is_split(
    name: str,
) -> None:
    rules = find_rules(name)
    states = decisions(rules, 300)
    keys = decision_keys(states)
    for heuristic in NAMES:
        agent = make_agent(heuristic, rules)
        whole = agent.act(states, keys)
        for other in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
            parts = [other.act(states[a:b], keys[a:b]) for a, b in ((0, 1), (1, 90), (90, None))]
            assert np.concatenate(parts).tolist() == whole.tolist()
            assert other.spec == heuristic


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_no_heuristic_moves_illegally(name: str) -> None:
    # over a million decisions: tests/test_agents_contract.py
    rules = find_rules(name)
    states = decisions(rules, 4096, seed=2)
    keys, legal = decision_keys(states), np.empty(len(states), np.int64)
    legal_batch(states, rules.array, legal)
    for heuristic in NAMES:
        actions = make_agent(heuristic, rules).act(states, keys)
        assert (legal >> actions & 1).all(), heuristic


def decisions(rules: Rules, count: int, seed: int = 1) -> np.ndarray:
    """Positions with a choice, from games of ``mixed`` with random moves before."""
    keys, states = np.empty(count, np.uint64), empty_states(count)
    game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    table = np.stack([make_agent("mixed", rules).weights, random_weights()])
    legal, who = np.empty(count, np.int64), np.full((count, 4), -1, np.int8)
    for k, rows in enumerate(np.array_split(np.arange(count), 16)):
        part, own = take_states(states, rows), np.empty(len(rows), np.int64)
        play_weighted_batch(part, rules.array, table, who[rows] + 1 + k % 2, 11 * k)
        advance_weighted_batch(part, rules.array, table, who[rows], 1 << 30, own)
        put_states(states, rows, part)
        legal[rows] = own
    return take_states(states, np.flatnonzero(legal))


def test_the_check_of_the_whole_chain() -> None:
    """Published for Trouble: 68 % over a million games."""
    result = play_match(["safest", "random"], "kimble[pass_allowed=no]", games=8000, seed=4)
    low, high = result.wilson(0, confidence=0.999)
    assert low < 0.69
    assert high > 0.66


def test_passing_as_often_as_moving_is_no_yardstick() -> None:
    result = play_match(["random", "random:mask"], "kimble", games=1000)
    assert result.share(0) > 0.8
