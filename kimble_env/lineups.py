"""Who sits opposite: line-ups of opponents, and the table from which the compiled step plays them.

A *line-up* names one agent per opponent, clockwise from the learner. A *pool* is a list of
line-ups; each game draws one. Pools may be exchanged while games are running: a game keeps the
line-up it was started with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.errors import KimbleError
from kimble_env.features import FEATURE_COUNT
from kimble_env.opponents import Agent, WeightAgent, make_agent
from kimble_env.rules import Rules

OneOpponent = str | Agent | Callable[..., Any]
LineupLike = OneOpponent | Sequence[OneOpponent]
PoolLike = LineupLike | Sequence[LineupLike]
"""What ``opponents`` may be; see :func:`read_pool`."""

LINEUP_WIDTH = 3
"""Columns of the table of line-ups: the most opponents there can be."""


def _is_list(thing: Any) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, str)


def read_pool(opponents: PoolLike, rules: Rules) -> list[tuple[Agent, ...]]:
    """Return line-ups of ``rules.players - 1`` agents each.

    Args:
        opponents: one agent (it takes every seat but the learner's); or a sequence of agents, one
            per opponent clockwise from the learner; or a sequence of which at least one element is
            itself a sequence: a pool, each element a line-up in one of the two forms before. An
            agent is anything that ``make_agent`` takes. With ``two_colours`` there is one opponent.
        rules: the rules that the agents must play.

    Raises:
        KimbleError: an empty pool, or a line-up of the wrong length; every one named.
        AgentError: an agent that is not known or does not fit.
    """
    pool: Sequence[Any]
    if not _is_list(opponents):
        pool = [opponents]
    elif any(_is_list(one) for one in opponents):  # type: ignore[union-attr]
        pool = opponents  # type: ignore[assignment]
    else:
        pool = [opponents]
    width, faults = rules.players - 1, []
    for k, lineup in enumerate(pool):
        if _is_list(lineup) and len(lineup) != width:
            faults.append(f"line-up {k} has {len(lineup)} agents")
        if _is_list(lineup) and any(_is_list(one) for one in lineup):
            faults.append(f"line-up {k} holds a list where an agent is expected")
    if faults:
        raise KimbleError(
            f"{'; '.join(faults)}; expected {width} opponents, clockwise from the learner"
        )
    known: dict[str, Agent] = {}
    return [
        tuple(_agent(one, rules, known) for one in lineup)
        if _is_list(lineup)
        else (_agent(lineup, rules, known),) * width
        for lineup in pool
    ]


def _agent(one: OneOpponent, rules: Rules, known: dict[str, Agent]) -> Agent:
    """Make an agent; equal specs of one pool share one agent."""
    if not isinstance(one, str):
        return make_agent(one, rules)
    if one not in known:
        known[one] = make_agent(one, rules)
    return known[one]


def read_chances(chances: Sequence[float] | None, count: int) -> npt.NDArray[np.float64]:
    """Return the cumulative chances float64 [count] of the line-ups; None means all equal.

    Raises:
        KimbleError: not one number of at least 0 per line-up, or all 0.
    """
    if chances is None:
        weights = np.ones(count)
    else:
        try:
            weights = np.array(chances, np.float64)
        except (TypeError, ValueError):
            raise KimbleError(f"chances must be numbers, got {chances!r}") from None
    if weights.shape != (count,):
        raise KimbleError(f"expected one chance for each of {count} line-ups, got {chances!r}")
    total = float(weights.sum())
    if not math.isfinite(total) or (weights < 0).any() or total <= 0:
        raise KimbleError(f"chances must be at least 0 and not all 0, got {chances!r}")
    cumulative = np.cumsum(weights / total)
    cumulative[np.flatnonzero(weights)[-1] :] = 1.0  # no rounding, and nothing after the last
    return cumulative


class Opponents:
    """The table of agents that games in progress and games to come are played with.

    Attributes:
        agents: the agents, one per row of the table.
        weights: float64 [K, F], the weights of the compiled ones, else 0.
        compiled: int8 [K], 1 where the compiled step plays the row by itself.
        lineups: int16 [L, 3], rows of the table per line-up, clockwise from the learner.
        chances: float64 [L], cumulative.
        numbers: int32 [L], the number of each line-up; numbers are never used twice.
        specs: the specs of every line-up there has been, by number.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.agents: list[Agent] = []
        self.weights = np.zeros((0, FEATURE_COUNT))
        self.compiled = np.zeros(0, np.int8)
        self.lineups = np.zeros((0, LINEUP_WIDTH), np.int16)
        self.chances = np.zeros(0)
        self.numbers = np.zeros(0, np.int32)
        self.specs: dict[int, tuple[str, ...]] = {}

    @property
    def all_compiled(self) -> bool:
        """Whether no agent of the table has to be asked from Python."""
        return bool(self.compiled.all())

    def replace(
        self,
        pool: PoolLike,
        chances: Sequence[float] | None,
        seating: npt.NDArray[np.int16],
    ) -> tuple[int, ...]:
        """Exchange the pool; return the numbers of its line-ups.

        Args:
            pool: see :func:`read_pool`.
            chances: one weight per line-up, None for all equal.
            seating: int16 [N, 4], rows in use (negative: none); rewritten for the new table.

        Raises:
            KimbleError, AgentError: see :func:`read_pool` and :func:`read_chances`; nothing has
                been changed.
        """
        lineups = read_pool(pool, self.rules)
        cumulative = read_chances(chances, len(lineups))
        agents: list[Agent] = []
        rows: dict[int, int] = {}

        def row_of(agent: Agent) -> int:
            if id(agent) not in rows:
                rows[id(agent)] = len(agents)
                agents.append(agent)
            return rows[id(agent)]

        table = np.full((len(lineups), LINEUP_WIDTH), -1, np.int16)
        for k, lineup in enumerate(lineups):
            table[k, : len(lineup)] = [row_of(agent) for agent in lineup]
        moved = {int(old): row_of(self.agents[old]) for old in np.unique(seating[seating >= 0])}
        if len(agents) > np.iinfo(np.int16).max:
            raise KimbleError(f"a pool of {len(agents)} different agents is too large")
        if moved:
            new_rows = np.full(len(self.agents), -1, np.int16)
            new_rows[list(moved)] = list(moved.values())
            seating[seating >= 0] = new_rows[seating[seating >= 0]]
        first = max(self.specs, default=-1) + 1
        self.agents, self.lineups, self.chances = agents, table, cumulative
        self.numbers = np.arange(first, first + len(lineups), dtype=np.int32)
        for number, lineup in zip(self.numbers, lineups, strict=True):
            self.specs[int(number)] = tuple(agent.spec for agent in lineup)
        self._fill_table()
        return tuple(int(number) for number in self.numbers)

    def _fill_table(self) -> None:
        self.weights = np.zeros((len(self.agents), FEATURE_COUNT))
        self.compiled = np.zeros(len(self.agents), np.int8)
        for row, agent in enumerate(self.agents):
            if type(agent) is WeightAgent:  # a subclass may decide in its own way
                self.weights[row] = agent.weights
                self.compiled[row] = 1
