"""The agent ``search``: looks some throws ahead, over any evaluation of positions.

>>> from agents import make_agent
>>> make_agent("search:depth=2", "kimble").spec             # doctest: +SKIP
'search:depth=2,eval=net:kimble-4p'

The value of a position before a throw is the mean over the six faces (and over the outcomes of a
battle, R18) of the position after the best move. Best for whom? Every seat plays for its own chance
to win, so with more than two seats this is max^n (Luckhardt and Irani 1986) with chance nodes.
Every throw counts as one, extra throws and the three of Norske too.

``depth`` counts throws: with 1 the move is made and the position after it is evaluated; with 2 one
more throw is thrown and answered, by whoever it belongs to, before positions are evaluated; and so
on. An exact evaluation gives the same values at any depth.

====================  ===========================================================================
``depth=2``           1 to 8
``eval=best``         evaluates the leaves: a spec of ``agents.evaluators.make_evaluator``; ``best``
                      is the shipped network of these rules and seats, else ``linear``, and the
                      agent's spec says which it was
``budget=20000``      positions that one decision may lead to at most (counted before equal ones
                      are merged); a decision whose next throw would lead to more is searched less
                      deep, all its moves alike. 0: no limit
``replies=max``       how others answer: ``max``, or an agent (``replies=cautious``), which
                      makes the tree narrower by what it never plays; ties by a fixed key
``pass_cost=N``       0 to 99: a seat that passes loses N per cent of its odds to win; if left out
                      what the evaluator states (``linear`` does), else 0
====================  ===========================================================================

The tree of a whole batch grows throw by throw in arrays. Equal positions of one decision are
merged, all leaves of a few hundred decisions are evaluated in one call, and values are backed up by
compiled loops. A decision depends on its position alone: not on the batch, and not on its key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agents.search_kernels import (
    back_up,
    best_actions,
    charge_passes,
    count_replies,
    grow,
    merge_equal,
)
from agents.spec_options import any_text, read_options, whole_number, write_options
from kimble_env.afterstates import expand_moves, expand_throws, gather_moves
from kimble_env.errors import AgentError
from kimble_env.kernel import empty_states, legal_batch, take_states
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
Owners = npt.NDArray[np.int32]

OPTIONS = {
    "depth": whole_number(1, 8),
    "eval": any_text,
    "budget": whole_number(0, 10**9),
    "replies": any_text,
    "pass_cost": whole_number(0, 99),
}
DEFAULTS = {
    "depth": 2, "eval": "best", "budget": 20_000, "replies": "max", "pass_cost": None,
}  # fmt: skip

_AT_ONCE = 1 << 16  # positions of one throw that are in work at once, unless one decision has more
_DECISIONS_AT_ONCE = 4096


class Evaluator(Protocol):
    """What judges the leaves; see ``agents.evaluators``."""

    name: str

    def value(self, states: States) -> Values:
        """Return the win chance of every seat: float64 [B, 4]."""
        ...


class SearchAgent:
    """Plays the best move that it sees so many throws ahead.

    Args:
        spec: its name.
        rules: the rules it plays by, without the option ``members`` (whose chances nobody lists).
        evaluator: judges positions before a throw and finished ones.
        depth: throws that are played before a position is judged, 1 or more.
        budget: positions that a decision may lead to at most, 0 for no limit.
        replies: who answers for the others; None: each plays what is best for itself.
        pass_cost: what a seat that passes loses of its odds to win, 0 to 0.99; None: as the
            evaluator states in an attribute of this name, 0 if it has none.

    Attributes:
        pass_cost: as above; 0 where nobody may pass.
        canonical: its name, one for all ways of writing a spec (``make_search``).

    Raises:
        AgentError: rules with ``members``, or a depth, budget or pass_cost out of range.
    """

    def __init__(
        self,
        spec: str,
        rules: Rules,
        evaluator: Evaluator,
        depth: int = 2,
        budget: int = 20_000,
        replies: Agent | None = None,
        pass_cost: float | None = None,
    ) -> None:
        if rules.members is not None:
            raise AgentError(f"search cannot list the chances of the option members of {rules}")
        if depth < 1 or budget < 0:
            raise AgentError(f"search needs depth >= 1 and budget >= 0, got {depth} and {budget}")
        self.spec = self.canonical = spec
        self.rules, self.evaluator = rules, evaluator
        self.depth, self.budget, self.replies = depth, budget, replies
        cost = getattr(evaluator, "pass_cost", 0.0) if pass_cost is None else pass_cost
        if not 0.0 <= cost <= 0.99:
            raise AgentError(f"search needs a pass_cost from 0 to 0.99, got {cost}")
        self.pass_cost = cost if rules.pass_allowed else 0.0

    @property
    def hash(self) -> str:
        """16 hex digits over all that a decision depends on (a policy for replies: its name)."""
        replies = self.replies
        weights = replies.weights.tobytes() if isinstance(replies, WeightAgent) else b""
        judge = getattr(self.evaluator, "hash", self.evaluator.name)
        parts = (self.rules.hash, judge, self.depth, self.budget, getattr(replies, "spec", "max"))
        text = "|".join(map(str, (*parts, self.pass_cost)))
        return hashlib.sha256(text.encode() + weights).hexdigest()[:16]

    def act(self, positions: States, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int16]:
        """Return the best action of each position, of equal ones the first: int16 [B].

        Args:
            positions: STATE [B], each with a die thrown (unchecked).
            keys: not used; the search draws nothing.
        """
        legal = np.empty(len(positions), np.int64)
        legal_batch(positions, self.rules.array, legal)
        out = np.empty(len(positions), np.int16)
        free = np.flatnonzero(legal & (legal - 1) != 0)
        forced = np.flatnonzero(legal & (legal - 1) == 0)
        out[forced] = np.log2(legal[forced]).astype(np.int16)
        asked = take_states(positions, free)
        answers = np.empty(len(free), np.int16)
        best_actions(asked, self.rules.array, legal[free], self.values(asked), answers)
        out[free] = answers
        return out

    def evaluate(self, positions: States) -> npt.NDArray[np.float32]:
        """Return the win chance of every seat after each action: float32 [B, A, 4].

        0 for seats that do not play and for illegal actions.
        """
        return np.clip(self.values(positions), 0.0, 1.0).astype(np.float32)

    def values(self, positions: States) -> Values:
        """Return what ``evaluate`` does in full precision: float64 [B, A, 4]."""
        parts = [
            self._values_of(hide_random_state(positions[first : first + _DECISIONS_AT_ONCE]))
            for first in range(0, len(positions), _DECISIONS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.rules.board.actions, 4))

    def _values_of(self, positions: States) -> Values:
        moves = expand_moves(positions, self.rules)
        nodes, owners, child = _merged(moves.children, moves.parent)
        values = self._judge(nodes, owners, positions["seat"], self.depth - 1)[child]
        out = gather_moves(moves, values, len(positions), self.rules.board.actions)
        if self.pass_cost:
            charge_passes(positions, self.rules.array, 1.0 - self.pass_cost, out)
        return out

    # ------------------------------------------------------------------------------------ the tree

    def _judge(
        self, nodes: States, owners: Owners, seats: npt.NDArray[np.int8], throws: int
    ) -> Values:
        """Return the win chances float64 [N, 4] of positions before a throw, or finished.

        Args:
            nodes: STATE [N].
            owners: int32 [N], ascending, the decision that each belongs to.
            seats: int8 [B], who decides in each decision.
            throws: how many are still to be thrown ahead.
        """
        if throws == 0 or len(nodes) == 0:
            return self._leaves(nodes)
        counts = np.empty(len(nodes), np.int64)
        count_replies(nodes, self.rules.array, counts)
        deeper = counts > 0
        if self.budget:
            led_to = counts
            if self.replies is not None:  # one answer to each face
                led_to = np.where(nodes["seat"] == seats[owners], counts, np.minimum(counts, 6))
            deeper &= np.bincount(owners, led_to)[owners] <= self.budget
        values = np.empty((len(nodes), 4))
        shallow = np.flatnonzero(~deeper)
        values[shallow] = self._leaves(take_states(nodes, shallow))
        for rows in _portions(np.flatnonzero(deeper), owners, counts):
            part = take_states(nodes, rows)
            count = int(counts[rows].sum())
            values[rows] = self._after_a_throw(part, owners[rows], seats, count, throws - 1)
        return values

    def _leaves(self, nodes: States) -> Values:
        if len(nodes) == 0:
            return np.empty((0, 4))
        return np.asarray(self.evaluator.value(nodes), np.float64)

    def _after_a_throw(
        self,
        nodes: States,
        owners: Owners,
        seats: npt.NDArray[np.int8],
        count: int,
        throws: int,
    ) -> Values:
        """Return the win chances float64 [N, 4] of running positions: their mean over the faces.

        ``count`` is the most positions that the throw may lead to.
        """
        r = self.rules.array
        children = empty_states(count)
        row = np.empty(count, np.int32)  # 6 * node + face - 1
        action, chance = np.empty(count, np.int16), np.empty(count)
        answers = self._answers(nodes, seats[owners])
        made = grow(nodes, r, answers, children, row, action, chance)
        children, row = children[:made], row[:made]
        following, next_owners, child = _merged(children, owners[row // 6])
        values = self._judge(following, next_owners, seats, throws)
        out = np.zeros((len(nodes), 4))
        keep = 1.0 - self.pass_cost
        back_up(nodes, r, row, action[:made], chance[:made], child, values, keep, out)
        return out

    def _answers(self, nodes: States, deciders: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """Return int16 [6 * N]: the only action to look at after each face, -1 for every one."""
        answers = np.full(6 * len(nodes), -1, np.int16)
        if self.replies is None:
            return answers
        others = np.flatnonzero(nodes["seat"] != deciders)
        thrown = expand_throws(take_states(nodes, others), self.rules)
        asked = np.flatnonzero(thrown.children["die"] != 0)
        positions = take_states(thrown.children, asked)
        rows = 6 * others[thrown.parent[asked]] + asked % 6
        answers[rows] = self.replies.act(positions, decision_keys(positions))
        return answers


def _merged(states: States, owners: Owners) -> tuple[States, Owners, npt.NDArray[np.int32]]:
    """Return the different positions of each decision, their owners, and the group of each."""
    groups = np.empty(len(states), np.int32)
    firsts = np.empty(len(states), np.int64)
    found = merge_equal(states, owners, groups, firsts)
    firsts = firsts[:found]
    return take_states(states, firsts), owners[firsts], groups


def _portions(
    rows: npt.NDArray[np.int64], owners: Owners, counts: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    """Cut rows into portions that lead to few enough positions; none parts a decision."""
    if len(rows) == 0:
        return
    starts = np.flatnonzero(np.diff(owners[rows], prepend=-1))
    sizes = np.add.reduceat(counts[rows], starts)
    first, total = 0, 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        if total and total + size > _AT_ONCE:
            yield rows[first:start]
            first, total = start, 0
        total += size
    yield rows[first:]


def make_search(argument: str, rules: Rules) -> SearchAgent:
    """Make the agent of a spec: ``search`` or ``search:depth=2,eval=linear``.

    Its own spec names depth and evaluator whatever was left out.

    Raises:
        AgentError: options that are unknown or out of range, or an evaluator or an agent for the
            replies that is not known or does not fit.
    """
    from agents.evaluators import best_spec, make_evaluator

    options = read_options("search", argument, OPTIONS, DEFAULTS)
    if options["eval"] == "best":
        options["eval"] = best_spec(rules)
    replies = None if options["replies"] == "max" else make_agent(options["replies"], rules)
    evaluator = make_evaluator(options["eval"], rules)
    if options["eval"] == "net":
        options["eval"] = evaluator.name  # which network that is
    cost = None if options["pass_cost"] is None else options["pass_cost"] / 100.0
    return SearchAgent(
        write_options("search", options, DEFAULTS, ("depth", "eval")),
        rules, evaluator, options["depth"], options["budget"], replies, cost,
    )  # fmt: skip
