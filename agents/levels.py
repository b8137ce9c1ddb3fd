"""Levels: any agent made weaker by chance, from ``@level=1`` (near ``random``) to ``@level=10``.

>>> from agents import make_agent
>>> make_agent("cautious@level=3", "kimble").spec
'cautious@level=3'

A level draws its move from a softmax: a move is played with a probability in proportion to
``exp(score / temperature)``. Scores are the win chances of an agent with ``evaluate``, else what
its ``score`` says. Moves other than pass are drawn from; pass joins them only where it is the
agent's own choice, so that a hot temperature comes near ``random`` and not near a player who keeps
passing. Level 10 is the agent itself. The key of a decision decides what is drawn.

**The ladder.** Level 10 loses what the agent loses, on average per decision, in thousandths of a
win (mWP); level 1 loses 90 % of what its hottest temperature does; each level between loses by the
same factor less than the one below it (an agent that loses less than 0.5 mWP counts as losing 0.5
there). ``kimble calibrate`` finds the temperatures and writes them to ``levels.json``, by agent,
rule set and number of players, with the loss of each. They hold for the agent as it was then: a
fingerprint tells, and an agent that has changed counts as not calibrated.

An agent that is **not calibrated**, a user's own for instance, has levels too: the temperatures are
then ``DEFAULT_SPREADS`` times the standard deviation of the scores of the moves of this very
decision, which suits any scale. An agent with neither ``evaluate`` nor ``score`` has none.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.errors import AgentError
from kimble_env.features import FEATURES
from kimble_env.kernel import legal_batch
from kimble_env.opponents import (
    Agent,
    CheckedAgent,
    WeightAgent,
    hide_random_state,
    make_agent,
)
from kimble_env.rules import Rules

States = npt.NDArray[np.void]
Scores = npt.NDArray[np.float64]

FILE = "levels.json"
FORMAT = "kimble-levels-1"
HIGHEST = 10

DEFAULT_SPREADS = (6.0, 3.1, 2.1, 1.6, 1.3, 1.05, 0.87, 0.7, 0.54)
"""Temperatures of levels 1 to 9 where nobody has calibrated, in standard deviations of the scores
of a decision's moves; the median over heuristics calibrated in this unit."""


# ------------------------------------------------------------ scores of moves


def has_scores(agent: Agent) -> bool:
    """Tell whether an agent has what levels need: ``evaluate`` or ``score``."""
    return callable(getattr(agent, "evaluate", None)) or _scorer(agent) is not None


def _scorer(agent: Any) -> Any:
    """Return ``score`` of an agent, or of the user's own inside the boundary; None if it has none.

    Only ``evaluate`` is passed on by the boundary.
    """
    while True:
        score = getattr(agent, "score", None)
        if callable(score):
            return score
        if not isinstance(agent, CheckedAgent):
            return None
        agent = agent.inner


def move_scores(agent: Agent, positions: States, rules: Rules) -> Scores:
    """Return the score of each action for the seat to act: float64 [B, A], -inf if illegal.

    Args:
        agent: with ``evaluate`` (its win chances are the scores) or ``score``.
        positions: STATE [B], each with a die thrown.
        rules: the rules.

    Raises:
        AgentError: it has neither, or ``score`` returns another shape or no finite number for a
            legal action.
    """
    legal = legal_masks(positions, rules)
    evaluate = getattr(agent, "evaluate", None)
    if callable(evaluate):
        chances = evaluate(positions).astype(np.float64)
        rows, seats = np.arange(len(positions)), positions["seat"].astype(np.int64)
        scores = chances[rows, :, seats]
        if rules.two_colours:  # R17: partners win together
            scores = scores + chances[rows, :, (seats + 2) % 4]
    else:
        score = _scorer(agent)
        if score is None:
            raise AgentError(
                f"agent {agent.spec!r} has no levels: it needs evaluate(positions) or "
                "score(positions)"
            )
        scores = _checked(score(hide_random_state(positions)), legal, agent.spec)
    return np.where(legal, scores, -np.inf)


def _checked(answer: Any, legal: npt.NDArray[np.bool_], spec: str) -> Scores:
    """Return what ``score`` answered as float64 [B, A].

    Raises:
        AgentError: see :func:`move_scores`.
    """
    try:
        scores = np.asarray(answer, np.float64)
    except (TypeError, ValueError):
        raise AgentError(f"score of agent {spec!r} must return an array of numbers") from None
    if scores.shape != legal.shape:
        raise AgentError(
            f"score of agent {spec!r} must return {list(legal.shape)}, got {list(scores.shape)}"
        )
    if not np.isfinite(scores[legal]).all():
        raise AgentError(f"score of agent {spec!r} is not finite for a legal action")
    return scores


def legal_masks(positions: States, rules: Rules) -> npt.NDArray[np.bool_]:
    """Return which actions are legal: bool [B, A]."""
    bits = np.empty(len(positions), np.int64)
    legal_batch(positions, rules.array, bits)
    out: npt.NDArray[np.bool_] = bits[:, None] >> np.arange(rules.board.actions) & 1 != 0
    return out


# ------------------------------------------------------------ the softmax


def softmax(scores: Scores, temperatures: float | Scores, pass_action: int) -> Scores:
    """Return the probability of each action: float64 [B, A].

    Args:
        scores: float64 [B, A], -inf for illegal actions.
        temperatures: above 0, one or float64 [B]; inf draws uniformly.
        pass_action: drawn only where no other action has a higher score.
    """
    best = scores.max(axis=1, keepdims=True)
    drawn = scores > -np.inf
    moves = np.delete(scores, pass_action, axis=1).max(axis=1)
    drawn[:, pass_action] &= scores[:, pass_action] >= moves
    with np.errstate(under="ignore"):
        heat = np.broadcast_to(np.asarray(temperatures, np.float64), len(scores))[:, None]
        weights = np.where(drawn, np.exp(np.where(drawn, scores - best, 0.0) / heat), 0.0)
    out: Scores = weights / weights.sum(axis=1, keepdims=True)
    return out


def spreads(scores: Scores, pass_action: int) -> Scores:
    """Return the standard deviation of the scores drawn from: float64 [B]; 1 where it is 0."""
    drawn = softmax(scores, np.inf, pass_action)
    mean = (drawn * np.where(drawn > 0, scores, 0.0)).sum(axis=1, keepdims=True)
    off = np.where(drawn > 0, scores - mean, 0.0)
    spread = np.sqrt((drawn * off * off).sum(axis=1))
    return np.where(spread > 0.0, spread, 1.0)


def _draw(chances: Scores, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int16]:
    """Draw an action from each row with one key a row."""
    uniform = (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53
    edges = np.cumsum(chances, axis=1)
    picked = (edges <= (uniform * edges[:, -1])[:, None]).sum(axis=1)
    last = chances.shape[1] - 1 - (chances[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(picked, last).astype(np.int16)


# ------------------------------------------------------------ the temperatures


def fingerprint(agent: Agent) -> str:
    """Return 16 hex digits that change with what an agent plays, as far as it tells.

    Over weights, or the hash of the evaluator behind a search; else over its name alone.
    """
    inner: Any = agent
    while isinstance(inner, CheckedAgent):
        inner = inner.inner
    parts = [canonical_spec(agent).encode()]
    for part in (inner, getattr(inner, "evaluator", None), getattr(inner, "replies", None)):
        parts.append(str(getattr(part, "hash", "")).encode())
        if isinstance(part, WeightAgent):  # by name: features added later change nothing
            pairs = zip(FEATURES, part.weights.tolist(), strict=True)
            parts.append(json.dumps({name: w for name, w in pairs if w != 0.0}).encode())
    return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]


def canonical_spec(agent: Agent) -> str:
    """Return the spec under which calibrations are kept: one for all ways of writing it."""
    inner: Any = agent
    while isinstance(inner, CheckedAgent):
        inner = inner.inner
    return str(getattr(inner, "canonical", agent.spec))


def game_key(rules: Rules) -> str:
    """Return the name under which calibrations for these rules are kept, like ``kimble-4p``."""
    return f"{rules.name}-{len(rules.seats)}p"


@cache
def _shipped() -> dict[str, Any]:
    place = resources.files("agents").joinpath(FILE)
    table: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if table.get("format") != FORMAT:
        raise AgentError(f"{FILE} is of format {table.get('format')!r}, expected {FORMAT!r}")
    return table


def find_calibration(
    agent: Agent, rules: Rules, table: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return what is known of an agent's levels, None if it was never calibrated as it is now.

    With other pieces or options the calibration of the rule set's name is taken; the losses then
    differ from those stated.

    Args:
        agent: not a level itself.
        rules: the rules.
        table: contents of ``levels.json``; by default the shipped one.
    """
    known = (table if table is not None else _shipped())["agents"].get(canonical_spec(agent), {})
    entry: dict[str, Any] | None = known.get(game_key(rules))
    if entry is None or entry["fingerprint"] != fingerprint(agent):
        return None
    return entry


# ------------------------------------------------------------ the agent


class LevelAgent:
    """An agent that draws its moves hotter or colder.

    Args:
        base: the agent itself.
        rules: the rules.
        level: 1 to 10.

    Attributes:
        calibration: the entry of ``levels.json``, None where there is none.
        draws_lots: an exact result cannot be had of it.

    Raises:
        AgentError: a level out of range, or an agent without ``evaluate`` and ``score``.
    """

    draws_lots = True

    def __init__(self, base: Agent, rules: Rules, level: int) -> None:
        whole = isinstance(level, int | np.integer) and not isinstance(level, bool)
        if not whole or not 1 <= level <= HIGHEST:
            raise AgentError(f"level must be a whole number from 1 to {HIGHEST}, got {level!r}")
        if not has_scores(base):
            raise AgentError(
                f"agent {base.spec!r} has no levels: it needs evaluate(positions) or "
                "score(positions)"
            )
        self.spec = f"{base.spec}@level={level}"
        self.base, self.rules, self.level = base, rules, int(level)
        self.calibration = find_calibration(base, rules)

    @property
    def calibrated(self) -> bool:
        """Whether the temperature comes from a calibration of this agent."""
        return self.calibration is not None

    def temperatures(self, scores: Scores) -> float | Scores:
        """Return the temperature for decisions with these scores: one, or float64 [B]."""
        if self.calibration is not None:
            return float(self.calibration["temperatures"][self.level - 1])
        return DEFAULT_SPREADS[self.level - 1] * spreads(scores, self.rules.board.pass_action)

    def act(self, positions: States, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int16]:
        """Return the action drawn in each position: int16 [B]."""
        if self.level == HIGHEST or len(positions) == 0:
            return self.base.act(positions, keys)
        scores = move_scores(self.base, positions, self.rules)
        chances = softmax(scores, self.temperatures(scores), self.rules.board.pass_action)
        return _draw(chances, keys)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, {str(self.rules)!r})"


class LevelEvaluator(LevelAgent):
    """A level of an agent that has win chances; they are the agent's, not those of its level."""

    def evaluate(self, positions: States) -> npt.NDArray[np.float32]:
        """Return float32 [B, A, 4]: each seat's chance to win after each action."""
        out: npt.NDArray[np.float32] = self.base.evaluate(positions)  # type: ignore[attr-defined]
        return out


def at_level(agent: Any, level: int, rules: str | Rules = "kimble") -> Agent:
    """Return an agent at a level: what the spec ``agent@level=N`` makes, for agents of any kind.

    Args:
        agent: whatever ``make_agent`` takes.
        level: 1 to 10.
        rules: Rules or their text.

    Raises:
        AgentError: an agent that is not known or has no levels, or a level out of range.
    """
    from kimble_env.rules import find_rules

    rules = find_rules(rules)
    return make_agent(_make(make_agent(agent, rules), level, rules), rules)


def _make(base: Agent, level: int, rules: Rules) -> LevelAgent:
    if isinstance(base, CheckedAgent) and isinstance(base.inner, LevelAgent):
        raise AgentError(f"agent {base.spec!r} is a level already")
    kind = LevelEvaluator if callable(getattr(base, "evaluate", None)) else LevelAgent
    return kind(base, rules, level)


def make_level(base: Agent, value: str, rules: Rules) -> LevelAgent:
    """Make the agent of ``base@level=value``; for ``agents.registry``.

    Raises:
        AgentError: a level that is not 1 to 10, or an agent without levels.
    """
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= HIGHEST:
        raise AgentError(
            f"level must be a whole number from 1 to {HIGHEST}, got {value!r} for {base.spec!r}"
        )
    return _make(base, int(value), rules)
