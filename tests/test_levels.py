"""Levels: what is drawn, by which temperature, and what calibration promises."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from agents import levels
from agents.levels import (
    at_level,
    find_calibration,
    legal_masks,
    move_scores,
    softmax,
    spreads,
)
from kimble_env import find_rules
from kimble_env.errors import AgentError, PositionError
from kimble_env.notation import parse_position
from kimble_env.opponents import decision_keys, make_agent
from kimble_env.testing import random_positions

KIMBLE = find_rules("kimble", players=2)
PASS = KIMBLE.board.pass_action

OWN = '''
import numpy as np

class Scored:
    """Has a score and nothing else."""
    spec = "scored"
    def __init__(self, rules):
        self.actions = rules.board.actions
    def score(self, positions):
        return np.tile(np.arange(self.actions, dtype=float), (len(positions), 1))
    def act(self, positions, keys):
        raise AssertionError("a level draws from the scores")

class Broken(Scored):
    def score(self, positions):
        return np.full((len(positions), self.actions), np.nan)

def bare(game):
    return game.legal_moves[0]
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


def test_softmax_by_hand() -> None:
    scores = np.array([[0.0, np.log(3.0), -np.inf, -1.0]])
    assert softmax(scores, 1.0, 3)[0].tolist() == pytest.approx([0.25, 0.75, 0, 0])
    assert softmax(scores, np.inf, 3)[0].tolist() == [0.5, 0.5, 0, 0]
    # pass joins where it is the best, and stands alone where nothing else is legal
    assert softmax(np.array([[0.0, 0.0, -np.inf, 0.0]]), 1.0, 3)[0] == pytest.approx(
        [1 / 3, 1 / 3, 0, 1 / 3]
    )
    assert softmax(np.array([[-np.inf, -np.inf, -np.inf, -9.0]]), 1.0, 3)[0].tolist() == [
        0,
        0,
        0,
        1,
    ]
    cold = softmax(np.array([[1000.0, -1e6, 999.0, 0.0]]), 1e-3, 3)[0]
    assert cold.tolist() == [1, 0, 0, 0]
    assert spreads(np.array([[1.0, 3.0, -np.inf, 0.0], [5, 5, 5, 5]]), 3).tolist() == [1.0, 1.0]


def test_level_ten_is_the_agent_and_lower_ones_lose_more() -> None:
    positions = random_positions(KIMBLE, 400, seed=1)
    keys = decision_keys(positions)
    base = make_agent("cautious", KIMBLE)
    best = base.act(positions, keys)
    assert (make_agent("cautious@level=10", KIMBLE).act(positions, keys) == best).all()
    same = [
        (make_agent(f"cautious@level={n}", KIMBLE).act(positions, keys) == best).mean()
        for n in (1, 4, 7, 10)
    ]
    assert same == sorted(same)
    assert same[0] < 0.9


def test_near_random_it_passes_only_where_the_agent_would() -> None:
    positions = random_positions(KIMBLE, 400, seed=2)
    keys = decision_keys(positions)
    base = make_agent("cautious", KIMBLE)
    scores = move_scores(base, positions, KIMBLE)
    passes = make_agent("cautious@level=1", KIMBLE).act(positions, keys) == PASS
    its_own = scores.argmax(axis=1) == PASS
    assert not passes[~its_own].any()
    assert passes.any()


def test_frequencies_follow_the_softmax() -> None:
    rules, one = parse_position("kimble R3,12,20/B-/Y8/G- R 4 1")
    agent = at_level("cautious", 2, rules)
    count = 20_000
    positions = np.repeat(one, count)
    keys = np.random.default_rng(1).integers(0, 1 << 64, count, np.uint64)
    scores = move_scores(make_agent("cautious", rules), one, rules)
    level = agent.inner  # type: ignore[attr-defined]
    expected = softmax(scores, level.temperatures(scores), rules.board.pass_action)[0]
    seen = np.bincount(agent.act(positions, keys), minlength=len(expected)) / count
    assert seen == pytest.approx(expected, abs=0.015)
    assert (expected > 0.05).sum() >= 2


def test_levels_of_anything_with_scores(own: str) -> None:
    positions = random_positions(KIMBLE, 30, seed=3)
    keys = decision_keys(positions)
    legal = legal_masks(positions, KIMBLE)
    for spec in (f"{own}:Scored@level=4", "random@level=2", 'weights:{"enter":2}@level=3'):
        agent = make_agent(spec, KIMBLE)
        assert agent.spec == spec
        whole = agent.act(positions, keys)
        assert legal[np.arange(30), whole].all()
        for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
            assert twin.spec == spec
            assert (twin.act(positions, keys) == whole).all()
        single = [agent.act(positions[k : k + 1], keys[k : k + 1])[0] for k in range(30)]
        assert single == whole.tolist()


def test_what_has_no_levels_says_so(own: str) -> None:
    with pytest.raises(AgentError, match=r"needs evaluate\(positions\) or score\(positions\)"):
        make_agent(f"{own}:bare@level=3", KIMBLE)
    for wrong in ("0", "11", "-1", "3.5", "", "three", "٣"):
        with pytest.raises(AgentError, match="level must be a whole number from 1 to 10"):
            make_agent(f"cautious@level={wrong}", KIMBLE)
    with pytest.raises(AgentError, match="is a level already"):
        make_agent("cautious@level=3@level=4", KIMBLE)
    with pytest.raises(AgentError, match=r"no agent takes the option '@lever=3'"):
        make_agent("cautious@lever=3", KIMBLE)
    with pytest.raises(AgentError, match="level must be"):
        at_level("cautious", True, KIMBLE)
    positions = random_positions(KIMBLE, 2, seed=4)
    with pytest.raises(AgentError, match="not finite"):
        make_agent(f"{own}:Broken@level=3", KIMBLE).act(positions, decision_keys(positions))
    positions["die"] = 0
    with pytest.raises(PositionError, match="no die has been thrown"):
        make_agent("cautious@level=3", KIMBLE).act(positions, decision_keys(positions))


def test_a_folder_may_be_called_like_an_option(tmp_path: Path) -> None:
    folder = tmp_path / "me@level=3"
    folder.mkdir()
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    assert make_agent(f"{folder / 'own.py'}:bare", KIMBLE).spec.endswith("own.py:bare")


def test_a_calibration_counts_only_for_the_agent_that_it_was_made_for() -> None:
    agent = make_agent('weights:{"enter": 3}', KIMBLE)
    entry = {"fingerprint": levels.fingerprint(agent), "temperatures": list(range(9, 0, -1))}
    table = {"agents": {agent.spec: {"kimble-2p": entry}}}
    assert find_calibration(agent, KIMBLE, table) == entry
    assert find_calibration(agent, find_rules("kimble", players=3), table) is None
    assert find_calibration(agent, find_rules("kimble[pieces=2]", players=2), table) == entry
    other = make_agent('weights:{"enter": 4}', KIMBLE)
    other.spec = agent.spec
    assert find_calibration(other, KIMBLE, table) is None
