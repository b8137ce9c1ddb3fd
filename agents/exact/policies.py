"""Players of the exact evaluation: perfect, uniform, or an agent asked about every position.

A policy is a uint8 per position and face whose bits say which of the moves in the solver's tables
are played, alike often; bit 4 is a pass, or a throw without a move (see ``kernels.py``). So ties
that an agent breaks by lot are no simulation but part of the exact result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agents.exact import positions
from agents.exact.errors import TableError
from agents.exact.kernels import BEST, FIXED, STAY
from agents.exact.layers import Layer
from agents.exact.solver import Solver
from kimble_env.kernel import STATE
from kimble_env.opponents import Agent, WeightAgent
from kimble_env.rules import Rules

Codes = npt.NDArray[np.uint8]
Say = Callable[[str], None]
BATCH = 16_384  # decisions that an agent is asked about at once, at least where a layer has them
PROBES = 2_048  # … and those about which it is asked twice, with other keys


class Player(Protocol):
    """One side of a game: ``kind`` of kernels.py and, for FIXED, its policy."""

    kind: int

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer: [ni, 6, nj] as seat a, [ni, nj, 6] as seat b."""
        ...


class Best:
    """The best answer to the other side; against another Best that is perfect play."""

    kind = BEST

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return an empty array: nothing is read from it."""
        return np.zeros((1, 6, 1) if side == 0 else (1, 1, 6), np.uint8)


class Uniform:
    """Every legal move other than pass alike often, the agent ``random``."""

    kind = FIXED

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer."""
        seats = layer.seats()
        me, guard = seats[side], seats[1 - side].guard
        counts = me.counts[:, guard].astype(np.int64)  # [own, other, 6]
        codes = np.where(counts > 0, (1 << counts) - 1, 1 << STAY).astype(np.uint8)
        turned = codes.transpose(0, 2, 1) if side == 0 else codes.transpose(1, 0, 2)
        return np.ascontiguousarray(turned)


class Recorded:
    """The perfect moves of a solved game; a pass only where it is clearly better than any move."""

    kind = FIXED

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.clear = max(1e-9, 10.0 * float(solver.tolerance or 0.0))
        self.found = np.zeros(2, np.int64)
        self._last: tuple[tuple[int, int], tuple[Codes, Codes]] | None = None

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer."""
        slots = (layer.slot_a, layer.slot_b)
        if self._last is None or self._last[0] != slots:
            self._last = (slots, self._record(*slots))
        return self._last[1][side]

    def _record(self, x: int, y: int) -> tuple[Codes, Codes]:
        layer = self.solver.layer(x, y, solved=True)
        a, b = layer.seats()
        codes = (np.zeros((layer.ni, 6, layer.nj), np.uint8),
                 np.zeros((layer.ni, layer.nj, 6), np.uint8))
        positions.record(layer.where(), a, b, *codes, self.clear, self.found, 0, layer.ni)
        return codes


class Asked:
    """An agent, asked about every decision of the game.

    Weight vectors tell which moves they play alike often. Any other agent must be deterministic.

    Args:
        agent: the agent.
        solver: of the game; it need not be solved.
        say: told how long it takes, if that is more than some seconds.

    Attributes:
        decisions: how many it was asked about.
        same: it plays alike from both seats.

    Raises:
        TableError: it draws lots, or answers what the solver does not know.
    """

    kind = FIXED

    def __init__(self, agent: Agent, solver: Solver, say: Say | None = None) -> None:
        self.agent, self.solver = agent, solver
        self.decisions = 0
        self._say, self._began, self._told = say, time.monotonic(), time.monotonic()
        self._cells_left = self._cells_all = 2 * solver.encoding.cells
        # what a weight vector sees turns with the board; of others nothing is known
        alike = type(agent) is WeightAgent and solver.opposite
        sides: tuple[dict[tuple[int, int], Codes], ...] = ({}, {})
        for x, y in solver.all_pairs():
            layer = solver.layer(x, y)
            sides[0][x, y] = self._ask(layer, 0)
            if not alike:
                sides[1][y, x] = self._ask(layer, 1)
        self._sides = (sides[0], sides[0] if alike else sides[1])
        self.same = alike or (
            solver.opposite
            and all(np.array_equal(sides[0][pair], sides[1][pair]) for pair in sides[0])
        )

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer."""
        x, y = layer.slot_a, layer.slot_b
        if side == 0:
            return self._sides[0][x, y]
        return np.ascontiguousarray(self._sides[1][y, x].transpose(2, 0, 1))

    def _ask(self, layer: Layer, side: int) -> Codes:
        """Ask about a layer: uint8 [own configurations, 6, the other's]."""
        seats = layer.seats()
        own, other = seats[side], seats[1 - side]
        configs = (layer.a.moves(layer.slot_a).configs, layer.b.moves(layer.slot_b).configs)
        numbers = (layer.a.seat, layer.b.seat)
        count, across = len(own.masks), len(other.masks)
        out = np.zeros((count, 6, across), np.uint8)
        rows = max(1, BATCH // (6 * across))
        states = _templates(numbers, rows * 6 * across)
        which = np.empty((len(states), 3), np.int32)
        r_pass = layer.a.rules.board.pass_action
        for first in range(0, count, rows):
            last = min(count, first + rows)
            states_left = positions.list_decisions(
                states, numbers[side], numbers[1 - side], configs[side], configs[1 - side], own,
                other.guard, other.masks, first, last, out, which,
            )  # fmt: skip
            if states_left:
                bits = self._answers(states[:states_left], probe=first == 0)
                odd = positions.note_answers(
                    bits, which[:states_left], own, other.guard, r_pass, out
                )
                if odd:
                    raise TableError(f"{self.agent.spec}: {odd} answers are not legal moves")
            self.decisions += states_left
            self._cells_left -= (last - first) * across
            self._progress()
        return out

    def _answers(self, states: npt.NDArray[np.void], probe: bool) -> npt.NDArray[np.int64]:
        """Return the actions that are played in each position, as bits."""
        agent, rules = self.agent, self.solver.rules
        if type(agent) is WeightAgent:
            bits = np.empty(len(states), np.int64)
            positions.best_bits(states, rules.array, np.array(agent.weights), bits)
            return bits
        keys = np.arange(1, len(states) + 1, dtype=np.uint64)
        actions = np.asarray(agent.act(states, keys)).astype(np.int64)
        if probe:
            some = states[:PROBES]
            again = agent.act(some.copy(), ~keys[: len(some)] * np.uint64(0x9E3779B97F4A7C15))
            if not np.array_equal(again, actions[: len(some)]):
                raise TableError(
                    f"{agent.spec} draws lots: asked twice about one position, it answers "
                    "differently; an exact result needs a deterministic agent (or a weight "
                    "vector, whose ties are known); simulate it: kimble evaluate"
                )
        return np.int64(1) << actions

    def _progress(self) -> None:
        now = time.monotonic()
        if self._say is None or now - self._told < 5.0:
            return
        self._told = now
        done = 1.0 - self._cells_left / self._cells_all
        if type(self.agent) is WeightAgent:
            done *= 2.0
        left = (now - self._began) * (1.0 / max(done, 1e-9) - 1.0)
        self._say(
            f"{self.agent.spec}: asked about {self.decisions / 1e6:.1f} million decisions, "
            f"about {left:.0f} s more"
        )


def _templates(seats: tuple[int, int], count: int) -> npt.NDArray[np.void]:
    states = np.zeros(count, STATE)
    states["pieces"] = -1
    states["plays"][:, list(seats)] = 1
    states["throws"], states["winner"], states["last_action"] = 1, -1, -1
    return states


def player(agent: Agent, solver: Solver, say: Say | None = None) -> Player:
    """Return how an agent plays; ``random`` is not asked.

    Raises:
        TableError: an agent that draws lots; one for other rules.
    """
    rules = getattr(agent, "rules", None)
    if isinstance(rules, Rules) and rules.hash != solver.rules.hash:
        raise TableError(f"{agent.spec} plays {rules}, not {solver.rules}")
    return Uniform() if agent.spec == "random" else Asked(agent, solver, say)
