"""Rollouts: right on average, less noisy without luck, the same whatever the batch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from test_search import Distance, Exact

from agents.rollouts import RolloutEvaluator, make_rollouts
from agents.search import SearchAgent
from kimble_env import find_rules
from kimble_env.afterstates import expand_moves
from kimble_env.errors import AgentError, PositionError
from kimble_env.kernel import take_states
from kimble_env.opponents import decision_keys, make_agent
from kimble_env.testing import random_positions

PAIR = find_rules("kombat[pieces=2]", players=2)


def before_throws(rules, count: int, seed: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    children = expand_moves(random_positions(rules, count, seed=seed), rules).children
    return take_states(children, np.arange(count))


def perfect(rules=PAIR):  # type: ignore[no-untyped-def]
    return make_agent("exact", rules)


@pytest.mark.parametrize("plies", [0, 3])
def test_without_luck_perfect_play_rolls_out_to_the_exact_value(plies: int) -> None:
    """A perfect judge of luck leaves nothing but the table's 16 bits."""
    states = before_throws(PAIR, 10, seed=1)
    truth = Exact(PAIR).value(states)
    evaluator = RolloutEvaluator("r", PAIR, perfect(), Exact(PAIR), 12, plies)
    mean, error = evaluator.estimate(states)
    assert np.allclose(mean.sum(axis=1), 1.0)
    assert abs(mean - truth).max() < 2e-3
    assert error.max() < 1e-3


@pytest.mark.parametrize("plies", [0, 3])
def test_plain_rollouts_have_the_right_mean_and_tell_their_error(plies: int) -> None:
    states = before_throws(PAIR, 2, seed=1)[1:]
    truth = Exact(PAIR).value(states)[0, 0]
    estimates = [
        RolloutEvaluator("r", PAIR, perfect(), Exact(PAIR), 60, plies, False, seed).estimate(states)
        for seed in range(16)
    ]
    z = np.array([(mean[0, 0] - truth) / error[0, 0] for mean, error in estimates])
    assert abs(z.mean()) < 3.5 / 4.0
    assert 0.5 < z.std() < 1.7


@pytest.mark.parametrize("text", ["kimble", "kombat", "norske"])
def test_luck_has_mean_zero_whatever_the_judge(text: str) -> None:
    """A poor judge of luck makes rollouts to the end more or less noisy, and never wrong."""
    rules = find_rules(f"{text}[pieces=2]", players=2)
    states = before_throws(rules, 4, seed=2)
    estimates = [
        RolloutEvaluator("r", rules, make_agent("cautious", rules), Distance(rules), 300, 0, luck)
        .estimate(states)
        for luck in (False, True)
    ]  # fmt: skip
    error = np.hypot(estimates[0].error, estimates[1].error)[:, 0]
    z = (estimates[0].mean - estimates[1].mean)[:, 0] / error
    assert abs(z).max() < 3.5


def test_a_value_does_not_depend_on_the_batch() -> None:
    rules = find_rules("norske", players=3)
    states = before_throws(rules, 9, seed=3)
    for luck in (False, True):
        evaluator = RolloutEvaluator(
            "r", rules, make_agent("mixed", rules), Distance(rules), 10, 5, luck
        )
        whole = evaluator.estimate(states)
        for k in range(9):
            one = evaluator.estimate(states[k : k + 1])
            assert (one.mean == whole.mean[k]).all()
            assert (one.error == whole.error[k]).all()
        values = evaluator.value(states)
        assert ((values >= 0.0) & (values <= 1.0)).all()
        assert np.allclose(values.sum(axis=1), 1.0)
        assert (values[:, 3] == 0.0).all()


def test_a_policy_asked_from_python_rolls_out_as_its_compiled_twin() -> None:
    class Asked:
        spec = "asked"

        def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
            assert not positions["seed"].any()  # nobody sees the dice to come
            return make_agent("cautious", PAIR).act(positions, keys)

    states = before_throws(PAIR, 3, seed=4)
    for luck in (False, True):
        twins = [
            RolloutEvaluator("r", PAIR, policy, Distance(PAIR), 8, 12, luck).estimate(states)
            for policy in (make_agent("cautious", PAIR), make_agent(Asked(), PAIR))
        ]
        assert (twins[0].mean == twins[1].mean).all()


def test_positions_finished_or_with_a_die() -> None:
    evaluator = RolloutEvaluator("r", PAIR, make_agent("cautious", PAIR), Distance(PAIR), 4, 4)
    thrown = random_positions(PAIR, 2, seed=5)
    with pytest.raises(PositionError, match="has a die"):
        evaluator.value(thrown)
    won = before_throws(PAIR, 1, seed=5)
    won["status"], won["winner"], won["seat"] = 1, 2, 2
    mean, error = evaluator.estimate(won)
    assert mean.tolist() == [[0, 0, 1, 0]]
    assert not error.any()
    assert evaluator.estimate(won[:0]).mean.shape == (0, 4)


def test_the_agent_plays_the_move_that_rolls_out_best() -> None:
    positions = random_positions(PAIR, 25, seed=6)
    evaluator = RolloutEvaluator("r", PAIR, perfect(), Exact(PAIR), 4, 2)
    agent = SearchAgent("r", PAIR, evaluator, 1, 0)
    truth = perfect().evaluate(positions)
    chosen = agent.act(positions, decision_keys(positions))
    seats, rows = positions["seat"].astype(int), np.arange(25)
    own = truth[rows, :, seats]
    assert (own[rows, chosen] > own.max(axis=1) - 1e-4).all()


def test_the_hash_changes_with_everything_that_a_value_depends_on() -> None:
    def of(argument: str, rules: str = "kimble[pieces=2]") -> str:
        return make_rollouts(argument, find_rules(rules, players=2)).hash

    texts = ["", "n=50", "policy=mixed", "plies=7", "luck=no", "seed=2"]
    hashes = [of(",".join(filter(None, (text, "eval=exact")))) for text in texts]
    hashes.append(of("eval=exact", "kombat[pieces=2]"))
    assert len(set(hashes)) == len(hashes)
    assert all(len(h) == 16 for h in hashes)
    assert of("eval=exact") == of("eval=exact,n=100")
    again = pickle.loads(pickle.dumps(make_rollouts("eval=exact", PAIR)))
    assert again.hash == make_rollouts("eval=exact", PAIR).hash
    with pytest.raises(AgentError, match="n must be a whole number from 2"):
        of("n=1")
