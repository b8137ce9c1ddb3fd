"""Rollouts: a position is worth what comes out where a policy plays on from it, many times.

The evaluator ``rollouts:n=100,policy=cautious,plies=40,eval=best``, for analysis rather than for
play, and the agent of the same spec, which plays the move after which its rollouts are best.

Plain rollouts to the end of the game are so noisy that they make play worse than the policy they
use, unless there are thousands (``benchmarks/rollouts.py`` measures it). Two things help:

* a rollout ends after ``plies`` throws, and ``eval`` judges where it stands then;
* ``luck=yes`` subtracts from each rollout what was luck. The luck of a throw is the value after it
  less the mean over all its faces (and outcomes of the battle, R18), the policy's move made on
  each, and each valued by ``eval``. Its mean is 0 whatever ``eval`` says, so the estimate keeps its
  mean and loses most of its noise; what is left is how far ``eval`` contradicts itself on the way.

====================  ===========================================================================
``n=100``             rollouts of each position, 2 to 1,000,000
``policy=cautious``   who plays on, for all seats: an agent
``plies=40``          throws of a rollout; 0: to the end (cut off after 5,000 throws)
``eval=best``         judges where a rollout stops, and luck: an evaluator; ``best`` is the
                      shipped network of these rules and seats, else ``linear``
``luck=yes``          subtract luck
``seed=1``            of the dice
====================  ===========================================================================

Rollout j throws the same dice for each seat from every position, so differences between moves are
less noisy than the values. A value depends on its position alone, whatever the batch.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.evaluators import (
    Evaluator,
    best_spec,
    check_before_throw,
    make_evaluator,
    settled_values,
)
from agents.rollout_kernels import follow
from agents.search import SearchAgent
from agents.search_kernels import count_replies, grow
from agents.spec_options import any_text, read_options, whole_number, write_options, yes_or_no
from kimble_env.afterstates import expand_throws
from kimble_env.errors import AgentError
from kimble_env.features import play_weighted_batch, weighted_action_batch
from kimble_env.kernel import (
    RUNNING,
    empty_states,
    game_keys,
    play_batch,
    put_states,
    take_states,
    throw_batch,
)
from kimble_env.opponents import (
    Agent,
    WeightAgent,
    decision_keys,
    hide_random_state,
    make_agent,
)
from kimble_env.rules import Rules

States = npt.NDArray[np.void]
Values = npt.NDArray[np.float64]

OPTIONS = {
    "n": whole_number(2, 1_000_000),
    "policy": any_text,
    "plies": whole_number(0, 5000),
    "eval": any_text,
    "luck": yes_or_no,
    "seed": whole_number(0, (1 << 63) - 1),
}
DEFAULTS = {
    "n": 100, "policy": "cautious", "plies": 40, "eval": "best", "luck": True, "seed": 1,
}  # fmt: skip

CAP = 5000
"""Throws after which a rollout to the end is cut off; it is then judged like one of ``plies``."""

_AT_ONCE = 8192  # games that are in work at once


class Estimate(NamedTuple):
    """What rollouts say.

    Attributes:
        mean: float64 [B, 4], win chances of every seat; rows add to 1. With luck subtracted a
            chance near 0 or 1 may come out a little beyond it.
        error: float64 [B, 4], their standard errors; 0 for finished games. They tell of the noise,
            not of what policy and evaluator get wrong.
    """

    mean: Values
    error: Values


class RolloutEvaluator:
    """Judges positions by playing on.

    Args:
        name: its name.
        rules: the rules played, without the option ``members``.
        policy: plays for every seat.
        evaluator: judges where rollouts stop, and luck.
        trials: rollouts of each position, 2 or more.
        plies: throws of a rollout, 0 for the whole game.
        luck: subtract luck.
        seed: of the dice.

    Raises:
        AgentError: rules with ``members``, or numbers out of range.
    """

    def __init__(
        self,
        name: str,
        rules: Rules,
        policy: Agent,
        evaluator: Evaluator,
        trials: int = 100,
        plies: int = 40,
        luck: bool = True,
        seed: int = 1,
    ) -> None:
        if rules.members is not None:
            raise AgentError(f"rollouts cannot list the chances of the option members of {rules}")
        if trials < 2 or plies < 0:
            raise AgentError(f"rollouts need n >= 2 and plies >= 0, got {trials} and {plies}")
        self.name, self.rules, self.policy, self.evaluator = name, rules, policy, evaluator
        self.trials, self.plies, self.luck, self.seed = trials, plies, luck, seed

    @property
    def hash(self) -> str:
        """16 hex digits over all that a value depends on (a policy without weights: its name)."""
        weights = self.policy.weights.tobytes() if isinstance(self.policy, WeightAgent) else b""
        parts = (self.rules.hash, self.policy.spec, self.evaluator.hash, self.trials, self.plies)
        text = "|".join(map(str, (*parts, self.luck, self.seed)))
        return hashlib.sha256(text.encode() + weights).hexdigest()[:16]

    def value(self, states: States) -> Values:
        """Return the win chance of every seat: float64 [B, 4], in 0..1, rows adding to 1.

        Raises:
            PositionError: a position with a die thrown.
        """
        values = np.clip(self.estimate(states).mean, 0.0, 1.0)
        return values / values.sum(axis=1, keepdims=True)

    def estimate(self, states: States) -> Estimate:
        """Return means and standard errors.

        Args:
            states: STATE [B], before a throw or finished.

        Raises:
            PositionError: a position with a die thrown.
        """
        check_before_throw(states)
        decided, mean = settled_values(states)
        error = np.zeros_like(mean)
        open_rows = np.flatnonzero(~decided)
        portion = max(1, _AT_ONCE // self.trials)
        for first in range(0, len(open_rows), portion):
            rows = open_rows[first : first + portion]
            results = self._results(take_states(states, rows))
            mean[rows] = results.mean(axis=1)
            error[rows] = results.std(axis=1, ddof=1) / np.sqrt(self.trials)
        return Estimate(mean, error)

    # -------------------------------------------------------------------------------- the rollouts

    def _results(self, states: States) -> Values:
        """Return the result of every rollout of every position: float64 [B, trials, 4]."""
        keys = np.empty(self.trials, np.uint64)
        game_keys(np.uint64(self.seed), 0, keys)
        count = len(states) * self.trials
        results = np.empty((count, 4))
        hidden = hide_random_state(states)
        for first in range(0, count, _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, count))
            games = take_states(hidden, rows // self.trials)
            games["seed"] = keys[rows % self.trials]
            results[rows] = self._corrected(games) if self.luck else self._plain(games)
        return results.reshape(len(states), self.trials, 4)

    @property
    def _throws(self) -> int:
        return self.plies or CAP

    def _plain(self, games: States) -> Values:
        """Play every game on and judge where it stands: float64 [N, 4]."""
        if type(self.policy) is WeightAgent:
            weights = self.policy.weights.reshape(1, -1).copy()
            seating = np.zeros((len(games), 4), np.int8)
            play_weighted_batch(games, self.rules.array, weights, seating, self._throws)
            return self._judged(games)
        running = np.arange(len(games))
        for _ in range(self._throws):
            running = running[games["status"][running] == RUNNING]
            if len(running) == 0:
                break
            part = take_states(games, running)
            legal = np.empty(len(part), np.int64)
            throw_batch(part, self.rules.array, np.zeros(len(part), np.int8), legal)
            asked = np.flatnonzero(legal)
            playing = take_states(part, asked)
            actions = self._policy_actions(playing)
            play_batch(playing, self.rules.array, actions, np.zeros((len(asked), 2), np.int8))
            put_states(part, asked, playing)
            put_states(games, running, part)
        return self._judged(games)

    def _judged(self, games: States) -> Values:
        """Return the values of games, the evaluator asked only about those that go on."""
        decided, values = settled_values(games)
        rows = np.flatnonzero(~decided)
        if len(rows):
            values[rows] = self.evaluator.value(take_states(games, rows))
        return values

    def _corrected(self, games: States) -> Values:
        """Play every game on, less what was luck: float64 [N, 4]."""
        luck = np.zeros((len(games), 4))
        running = np.arange(len(games))
        for _ in range(self._throws):
            decided, _ = settled_values(take_states(games, running))
            running = running[~decided]
            if len(running) == 0:
                break
            nodes = take_states(games, running)
            following, its_luck = empty_states(len(nodes)), np.zeros((len(nodes), 4))
            rows, chances, children = self._answered(nodes)
            values = self._judged(children)
            follow(nodes, self.rules.array, rows, chances, children, values, its_luck, following)
            put_states(games, running, following)
            luck[running] += its_luck
        return self._judged(games) - luck

    def _answered(self, nodes: States) -> tuple[npt.NDArray[np.int32], Values, States]:
        """Return what the policy makes of every face: rows, chances and children of ``grow``."""
        r = self.rules.array
        thrown = expand_throws(nodes, self.rules)
        asked = np.flatnonzero(thrown.children["die"] != 0)
        answers = np.full(6 * len(nodes), -1, np.int16)
        answers[asked] = self._policy_actions(take_states(thrown.children, asked))
        counts = np.empty(len(nodes), np.int64)
        count_replies(nodes, r, counts)
        room = int(counts.sum())
        children, rows = empty_states(room), np.empty(room, np.int32)
        actions, chances = np.empty(room, np.int16), np.empty(room)
        made = grow(nodes, r, answers, children, rows, actions, chances)
        return rows[:made], chances[:made], children[:made]

    def _policy_actions(self, positions: States) -> npt.NDArray[np.int16]:
        """Return what the policy plays, ties broken by each game's own key."""
        keys = decision_keys(positions)
        if type(self.policy) is not WeightAgent:
            return self.policy.act(hide_random_state(positions), keys)
        actions = np.empty(len(positions), np.int16)
        weights = self.policy.weights.copy()
        weighted_action_batch(positions, self.rules.array, weights, keys, actions)
        return actions

    def __repr__(self) -> str:
        return f"RolloutEvaluator({self.name!r}, {str(self.rules)!r})"


def make_rollouts(argument: str, rules: Rules) -> RolloutEvaluator:
    """Make the evaluator of a spec: ``rollouts`` or ``rollouts:n=100,plies=40``.

    Raises:
        AgentError: options that are unknown or out of range; an agent or evaluator that is not
            known or does not fit.
    """
    options: dict[str, Any] = read_options("rollouts", argument, OPTIONS, DEFAULTS)
    if options["eval"] == "best":
        options["eval"] = best_spec(rules)
    return RolloutEvaluator(
        write_options("rollouts", options, DEFAULTS, ("eval",)),
        rules,
        make_agent(options["policy"], rules),
        make_evaluator(options["eval"], rules),
        options["n"],
        options["plies"],
        options["luck"],
        options["seed"],
    )


def make_rollout_agent(argument: str, rules: Rules) -> SearchAgent:
    """Make the agent of a spec: it plays the move after which its rollouts are best.

    Raises:
        AgentError: see :func:`make_rollouts`.
    """
    evaluator = make_rollouts(argument, rules)
    return SearchAgent(evaluator.name, rules, evaluator, depth=1, budget=0)
