"""Exact evaluation of fixed players: head-to-head, best response, length of perfect games.

The same layers as in ``solver.py``, solved for policies instead of perfect play (``duel.py``). All
tables are kept in memory, so this is for at most three pieces (half a gigabyte).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import duel
from agents.exact.errors import TableError
from agents.exact.layers import Layer, _by_field
from agents.exact.solver import Solver
from agents.exact.transitions import UNUSED, SeatMoves, check_supported
from kimble_env.kernel import STATE
from kimble_env.opponents import Agent
from kimble_env.rules import Rules

MOST_PIECES = 3
Choices = npt.NDArray[np.uint8]
Blocks = dict[tuple[int, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


@dataclass(frozen=True)
class Player:
    """One side of a duel: ``kind`` of duel.py and, for FIXED, the agent."""

    kind: int
    agent: Agent | None = None


PERFECT = Player(duel.BEST)
UNIFORM = Player(duel.UNIFORM)


def player(agent: Agent | str) -> Player:
    """Return how an agent plays in a duel; "best" is the best answer to the other side.

    ``random`` is uniform over the moves; every other agent must be deterministic: it is asked once
    per position, with the key 0.
    """
    if agent == "best":
        return PERFECT
    if isinstance(agent, str):
        raise TableError(f'a player is an agent or "best", got {agent!r}')
    return UNIFORM if agent.spec == "random" else Player(duel.FIXED, agent)


class DuelLayer:
    """A layer with the tables that ``duel.sweep_duel`` needs."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        a, b = layer.a, layer.b
        self.moves_a, self.moves_b = a.moves(layer.slot_a), b.moves(layer.slot_b)
        clash = np.where(
            layer.a_fields >= 0, np.int64(1) << layer.a_fields.clip(0).astype(np.int64), 0
        )
        self.a_clash = np.bitwise_or.reduce(clash, axis=1)
        self.counts_a, self.counts_b = _counts(self.moves_a), _counts(self.moves_b)
        self.p_base, self.q_base, self.width = layer.column_places()

    def arguments(
        self, kinds: tuple[int, int], choices: tuple[Choices, Choices], record: bool, count: bool,
        passes: npt.NDArray[np.int64], clear: float = 0.0,
    ) -> tuple[Any, ...]:
        """Return the arguments of ``duel.sweep_duel`` but for the rows."""
        layer, a, b = self.layer, self.moves_a, self.moves_b
        return (
            layer.arena, layer.p_rows, layer.q_rows, self.p_base, self.q_base, self.width,
            layer.ni, layer.nj,
            layer.a_moves, self.counts_a, a.flags, a.fields, a.losers,
            _by_field(layer.a, np.float64), a.own_fields, a.minus, self.a_clash,
            layer.b_moves, self.counts_b, b.flags, b.fields, b.losers,
            _by_field(layer.b, np.float64), b.own_fields, b.minus, layer.b_masks,
            *kinds, *choices, record, 0.0 if count else 1.0, 1.0 if count else -1.0,
            1.0 if count else 0.0, clear, passes,
        )

    def choices(self, side: int, player: Player) -> Choices:
        """Ask a FIXED player about every decision of this layer: uint8 [ni, nj, 6]."""
        layer = self.layer
        if player.kind != duel.FIXED:
            return np.zeros((1, 1, 6), np.uint8)
        assert player.agent is not None
        out = np.zeros((layer.ni, layer.nj, 6), np.uint8)
        seats = (layer.a.seat, layer.b.seat)
        moves = (self.moves_a, self.moves_b)[side]
        counts = (self.counts_a, self.counts_b)[side]
        template = _template(seats)
        columns = np.empty(layer.nj, np.int64)
        pass_action = layer.a.rules.board.pass_action
        for i in range(layer.ni):
            for die in range(6):
                n = duel.list_decisions(
                    i, 0, layer.nj, die, side, counts, moves.flags, layer.b_masks, self.a_clash,
                    columns,
                )
                self._forced(out, i, die, side, counts)
                if n == 0:
                    continue
                states = np.repeat(template, n)
                duel.set_up_decisions(
                    states, *seats, seats[side], die, self.moves_a.configs[i], self.moves_b.configs,
                    columns[:n],
                )
                actions = player.agent.act(states, np.zeros(n, np.uint64))
                duel.note_choices(
                    out, i, die, side, columns[:n], actions, moves.codes, pass_action
                )
        return out

    def _forced(self, out: Choices, i: int, die: int, side: int, counts: Any) -> None:
        """Where there is no move the choice is to stay (one move has the index 0)."""
        if side == 0:
            if counts[i, die] == 0:
                out[i, :, die] = duel.PASS
        else:
            out[i, counts[:, die] == 0, die] = duel.PASS

    def iterate(
        self, arguments: tuple[Any, ...], tolerance: float, pool: ThreadPoolExecutor | None,
        threads: int, most_sweeps: int = 20_000,
    ) -> int:
        """Sweep until nothing changes by more than the tolerance; return the number of sweeps.

        Raises:
            RuntimeError: that took more than ``most_sweeps``.
        """
        for sweep in range(1, most_sweeps + 1):
            change = self.layer._sweep(duel.sweep_duel, arguments, pool, threads, None, sweep)
            if change <= tolerance:
                return sweep
        raise RuntimeError(f"no convergence within {most_sweeps} sweeps, change {change:.3g}")


def _counts(moves: Any) -> npt.NDArray[np.int8]:
    out: npt.NDArray[np.int8] = (moves.targets[..., 0] != UNUSED).sum(axis=2).astype(np.int8)
    return out


def _template(seats: tuple[int, int]) -> npt.NDArray[np.void]:
    state = np.zeros(1, STATE)
    state["pieces"] = -1
    state["plays"][0, list(seats)] = 1
    state["throws"], state["winner"], state["last_action"] = 1, -1, -1
    return state


def _later(solved: Blocks) -> Callable[[int, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    return lambda x, y: solved[x, y]


@dataclass(frozen=True)
class Duel:
    """Win chances of seat a's player: throwing first, throwing second, and their mean."""

    first: float
    second: float

    @property
    def mean(self) -> float:
        return 0.5 * (self.first + self.second)


class Evaluator:
    """Exact results of players under one game of two seats and at most three pieces.

    Args:
        rules: rules with two seats.
        tolerance: largest change of a value in the last sweep of a layer.
        threads: sweeps at once.

    Raises:
        TableError: more pieces than that.
        RulesError: rules the solver does not know.
    """

    def __init__(self, rules: Rules, tolerance: float = 1e-9, threads: int = 1) -> None:
        if rules.pieces > MOST_PIECES:
            raise TableError(
                f"exact evaluation is for at most {MOST_PIECES} pieces, got {rules.pieces}"
            )
        check_supported(rules)
        self.rules, self.tolerance, self.threads = rules, tolerance, threads
        first, second = rules.seats
        self.a, self.b = SeatMoves(rules, first, second), SeatMoves(rules, second, first)
        slots = len(self.a.encoding.masks)
        for slot in range(slots):
            self.a.add_losses(slot, self.b)
            self.b.add_losses(slot, self.a)
        self.pairs = [(x, y) for x in range(slots - 1, -1, -1) for y in range(slots - 1, -1, -1)]

    def duel(self, first: Player, second: Player) -> Duel:
        """Return the exact result of two players, seat a against seat b.

        Where passing is allowed and both stall, the game counts 1/2 each.
        """
        solved: Blocks = {}
        passes = np.zeros(2, np.int64)
        pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        for x, y in self.pairs:
            layer = DuelLayer(
                Layer(self.a, self.b, x, y, _later(solved), np.float64, (0.5, 0.5))
            )
            choices = (layer.choices(0, first), layer.choices(1, second))
            arguments = layer.arguments((first.kind, second.kind), choices, False, False, passes)
            layer.iterate(arguments, self.tolerance, pool, self.threads)
            solved[x, y] = (layer.layer.p.copy(), layer.layer.q.copy())
        if pool is not None:
            pool.shutdown()
        p, q = solved[0, 0]
        return Duel(float(p[0, 0]), 1.0 - float(q[0, 0]))

    def best_response(self, agent: Player) -> Duel:
        """Return what the best player against ``agent`` scores; minus 1/2 it is exploitability."""
        return self.duel(PERFECT, agent)


@dataclass(frozen=True)
class PerfectPlay:
    """What perfect play looks like: mean number of throws from the start, share of strict passes.

    ``strict_pass_share`` is over all pairs of a position and a die; passing is strictly best where
    it beats every move by more than the solver's accuracy (10 tolerances, at least 1e-9).
    """

    expected_throws: float | None
    strict_pass_share: float


def perfect_play(solver: Solver, count_throws: bool) -> PerfectPlay:
    """Read the perfect moves off a solved game; evaluate the length of play with them.

    Args:
        solver: of at most three pieces, solved.
        count_throws: solve for the number of throws too; only where play cannot be endless.
    """
    counted: Blocks = {}
    passes = np.zeros(2, np.int64)
    slots = len(solver.encoding.masks)
    pool = ThreadPoolExecutor(solver.threads) if solver.threads > 1 else None
    best = (duel.BEST, duel.BEST)
    clear = max(1e-9, 10.0 * float(solver.tolerance or 0.0))
    for x in range(slots - 1, -1, -1):
        for y in range(slots - 1, -1, -1):
            layer = DuelLayer(
                Layer(solver.a, solver.b, x, y, solver.block, np.float64, (0.5, 0.5))
            )
            layer.layer.p[:], layer.layer.q[:] = solver.block(x, y)
            shape = (layer.layer.ni, layer.layer.nj, 6)
            choices = (np.zeros(shape, np.uint8), np.zeros(shape, np.uint8))
            arguments = layer.arguments(best, choices, True, False, passes, clear)
            duel.sweep_duel(*arguments, 0, layer.layer.ni)
            if not count_throws:
                continue
            count = DuelLayer(Layer(solver.a, solver.b, x, y, _later(counted), np.float64, (0, 0)))
            one = count.layer.constants[1]
            count.layer.arena[one : one + count.layer.nj] = 0.0  # a finished game has no throws
            fixed = (duel.FIXED, duel.FIXED)
            arguments = count.arguments(fixed, choices, False, True, np.zeros(2, np.int64))
            count.iterate(arguments, 1e-8, pool, solver.threads)
            counted[x, y] = (count.layer.p.copy(), count.layer.q.copy())
    if pool is not None:
        pool.shutdown()
    throws = float(counted[0, 0][0][0, 0]) if count_throws else None
    return PerfectPlay(throws, passes[1] / max(int(passes[0]), 1))
