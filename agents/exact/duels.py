"""Exact results of games between two players: head-to-head, best response, what play costs.

The same layers as in ``solver.py``, solved for policies instead of perfect play, and walked through
the other way to see how often each position is met. All tables are kept in memory, so this is for
at most three pieces.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import positions
from agents.exact.asking import player
from agents.exact.errors import TableError
from agents.exact.kernels import BEST, FIXED, SHARES
from agents.exact.layers import Layer, Pair
from agents.exact.policies import Best, Player, Recorded, Uniform
from agents.exact.settling import Contest, best_answer, evaluate, sweeper
from agents.exact.solver import MOST_SWEEPS, TOLLS, Solver
from agents.exact.table import Table, table_of
from agents.exact.telling import Say, Sweeping
from kimble_env.opponents import Agent
from kimble_env.rules import Rules

MOST_PIECES = 3
LEAST_MASSES = (1e-8, 1e-10, 1e-12, 1e-14, 1e-17)
"""Smaller masses wait until others join them: first the large ones are moved, then all."""
SETTLED = 1e-10  # mass that still moves when a layer's visits are done
WORST = 24  # costly positions kept


@dataclass(frozen=True)
class Duel:
    """Win chances of the first player: throwing first, throwing second; their mean."""

    first: float
    second: float

    @property
    def mean(self) -> float:
        return 0.5 * (self.first + self.second)


@dataclass(frozen=True)
class Study:
    """What play between two players looks like, each throwing first in half of the games.

    Attributes:
        sums: float64 [2, len(positions.SUMS)] per game, by player.
        kinds: float64 [7, 4] per game (see ``positions.tally``), the first player's decisions and
            the second's together. mistakes: float64 [7, 7, 2], the same.
        worst: float64 [K, 8], the positions that cost most, dearest first.
        stalled: share of games that do not end; what happens in them after that counts for nothing.
    """

    sums: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.float64]
    mistakes: npt.NDArray[np.float64]
    worst: npt.NDArray[np.float64]
    stalled: float

    def per_game(self, name: str, side: int | None = None) -> float:
        """Return a sum of ``positions.SUMS`` per game, of one player or both together."""
        column = self.sums[:, positions.SUMS.index(name)]
        return float(column.sum() if side is None else column[side])

    def loss_per_decision(self, side: int | None = None) -> float:
        """Return the mean loss of a decision, in win probability."""
        return self.per_game("loss", side) / max(self.per_game("decisions", side), 1e-300)


class Evaluator:
    """Exact results under one game of two seats and at most three pieces.

    Args:
        rules: rules with two seats.
        tolerance: largest change of a value in the last sweep of a layer.
        threads: sweeps at once.
        say: told of long work.

    Raises:
        TableError: more pieces than that.
        RulesError: rules the solver does not know.
    """

    def __init__(
        self, rules: Rules, tolerance: float = 1e-9, threads: int = 1, say: Say | None = None
    ) -> None:
        if rules.pieces > MOST_PIECES:
            raise TableError(
                f"exact evaluation is for at most {MOST_PIECES} pieces, got {rules.pieces}"
            )
        self.rules, self.tolerance, self.threads, self.say = rules, tolerance, threads, say
        self.solver = Solver(rules, tolerance=tolerance, threads=threads, say=say)
        self.solver.prepare()
        self._solved = False
        self._table: Table | None = None

    def perfect(self) -> Recorded:
        """Return the perfect player; the game is solved when it is first asked for."""
        if not self._solved:
            self.solver.solve()
            self._solved = True
        return Recorded(self.solver)

    def table(self) -> Table:
        """Return the values of perfect play, to ask for single positions."""
        self.perfect()
        if self._table is None:
            self._table = table_of(self.solver)
        return self._table

    def player(self, agent: Agent) -> Player:
        """Return an agent as a player.

        Raises:
            TableError: an agent that draws lots; one for other rules.
        """
        return player(agent, self.solver, self.say)

    # -------------------------------------------------------------------------------------- duels

    def duel(self, first: Player, second: Player) -> Duel:
        """Return the exact result of two players.

        Where passing is allowed and both stall, the game counts 1/2 each. The mean is over who
        throws first; where seats are not alike to both players, over who sits where too.
        """
        here = self._duel(first, second)
        if self._alike(first) and self._alike(second):
            return here
        there = self._duel(second, first)  # the first player as seat b
        first, second = 1.0 - there.second, 1.0 - there.first
        return Duel(0.5 * (here.first + first), 0.5 * (here.second + second))

    def best_response(self, against: Player) -> Duel:
        """Return what the best player against a player scores; minus 1/2: its exploitability.

        Raises:
            UnsettledError: its values do not settle, as can happen where both rather pass.
        """
        return self.duel(Best(), against)

    def _alike(self, one: Player) -> bool:
        return self.solver.opposite and getattr(one, "same", True)

    def _duel(self, first: Player, second: Player) -> Duel:
        solved: dict[tuple[int, int], Pair] = {}
        telling = self._telling(f"{first.spec} against {second.spec}")
        pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        with pool or nullcontext():
            for x, y in self.solver.all_pairs():
                layer = self.solver.layer(x, y, solved.__getitem__)
                telling.start(layer.ni * layer.nj)
                self._settle(layer, first, second, pool, telling)
                solved[x, y] = (layer.p.copy(), layer.q.copy())
        p, q = solved[0, 0]
        return Duel(float(p[0, 0]), 1.0 - float(q[0, 0]))

    def _telling(self, name: str) -> Sweeping:
        return Sweeping(self.say, name, self.solver.encoding.cells)

    def _settle(
        self, layer: Layer, first: Player, second: Player, pool: Any, telling: Sweeping
    ) -> None:
        """Find the values of a layer between two players."""
        kinds = (first.kind, second.kind)
        codes = (first.codes(layer, 0), second.codes(layer, 1))

        def report(sweeps: int, change: float, rows: int = 0) -> None:
            if not rows:
                telling.sweep(f"layer {layer.slot_a},{layer.slot_b}: change {change:.2g}")

        rest = (self.tolerance, MOST_SWEEPS, pool, self.threads)
        if kinds == (FIXED, FIXED):
            evaluate(Contest(layer, codes, *rest, report))
        elif kinds == (BEST, BEST) or not self.rules.pass_allowed:  # nobody keeps play going
            sweep, arguments = sweeper(layer, kinds, codes)
            tolls = TOLLS if self.rules.pass_allowed else ()
            layer.iterate(sweep, arguments, *rest, report, tolls)
        else:
            best = kinds.index(BEST)
            any_moves = Uniform().codes(layer, best)
            codes = (any_moves, codes[1]) if best == 0 else (codes[0], any_moves)
            best_answer(Contest(layer, codes, *rest, report), best)

    # ------------------------------------------------------------------------------------- visits

    def study(self, first: Player, second: Player) -> Study:
        """Return what games of two FIXED players cost, by the values of perfect play.

        Raises:
            TableError: a player that is BEST.
        """
        if BEST in (first.kind, second.kind):
            raise TableError("a study is of fixed players; take perfect() for perfect play")
        self.perfect()
        sums, kinds = np.zeros((2, len(positions.SUMS))), np.zeros((7, 4))
        mistakes, worst = np.zeros((7, 7, 2)), np.zeros((WORST, 8))
        stalled = 0.0
        clear = 10.0 * self.tolerance
        ring = self.rules.board.leave + 1
        pairs = self.solver.all_pairs()[::-1]
        inflow: dict[tuple[int, int], Pair] = {}
        telling = self._telling(f"what {first.spec} meets and loses")
        for number, (x, y) in enumerate(pairs):
            layer = self.solver.layer(x, y)
            telling.start(layer.ni * layer.nj)
            codes = (first.codes(layer, 0), second.codes(layer, 1))
            visits, left = _visit(layer, codes, inflow, (0.5, 0.5), telling)
            stalled += left
            valued = self.solver.layer(x, y, solved=True)
            positions.tally(
                valued.where(), *valued.seats(), *codes, SHARES, *visits, clear, ring, sums, kinds,
                mistakes, worst, number,
            )  # fmt: skip
        worst = worst[np.argsort(-worst[:, 0])]
        return Study(sums, kinds, mistakes, worst[worst[:, 0] > 0], stalled)

    def position(self, entry: npt.NDArray[np.float64]) -> tuple[int, Any, Any, int]:
        """Return what a row of ``Study.worst`` is: seat to act, pieces of seat a and b, die."""
        x, y = self.solver.all_pairs()[::-1][int(entry[2])]
        a = self.solver.a.moves(x).configs[int(entry[3])]
        b = self.solver.b.moves(y).configs[int(entry[4])]
        seat = self.rules.seats[int(entry[5])]
        return seat, a, b, int(entry[6]) + 1


@dataclass(frozen=True)
class PerfectPlay:
    """What perfect play looks like: mean number of throws from the start, share of strict passes.

    ``strict_pass_share`` is over all pairs of a position and a die; passing is strictly best where
    it beats every move by more than the solver's accuracy (10 tolerances, at least 1e-9).
    """

    expected_throws: float | None
    strict_pass_share: float


def perfect_play(solver: Solver, count_throws: bool) -> PerfectPlay:
    """Read the perfect moves off a solved game; count the throws of games played so.

    Args:
        solver: of at most three pieces, solved.
        count_throws: count the throws too; only where play cannot be endless.
    """
    perfect, throws = Recorded(solver), 0.0
    inflow: dict[tuple[int, int], Pair] = {}
    for x, y in solver.all_pairs()[::-1]:
        layer = solver.layer(x, y)
        codes = (perfect.codes(layer, 0), perfect.codes(layer, 1))
        if count_throws:
            visits, _ = _visit(layer, codes, inflow, (1.0, 0.0))
            for seat, turns, axis in zip(layer.seats(), visits, (1, 0), strict=True):
                throws += float((turns.sum(axis=axis) * _throws_per_turn(seat.tries)).sum())
    share = int(perfect.found[1]) / max(int(perfect.found[0]), 1)
    return PerfectPlay(throws if count_throws else None, share)


def _throws_per_turn(tries: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    """Return the mean number of throws of a turn that ends with its first 6 (R23)."""
    return 6.0 * (1.0 - (5.0 / 6.0) ** tries)


def _visit(
    layer: Layer, codes: tuple[Any, Any], inflow: dict[tuple[int, int], Pair],
    start: tuple[float, float], telling: Sweeping | None = None,
) -> tuple[Pair, float]:
    """Return the expected turns in every position of a layer, and the mass that never leaves.

    Args:
        codes: the policies.
        inflow: what comes into each layer; this one is taken out, what leaves it is put in.
        start: chance that seat a (b) throws first.
    """
    layer.arena[:] = 0.0
    x, y = layer.slot_a, layer.slot_b
    if (x, y) in inflow:
        layer.p[:], layer.q[:] = inflow.pop((x, y))
    if (x, y) == (0, 0):
        layer.p[0, 0], layer.q[0, 0] = start
    visits = (np.zeros((layer.ni, layer.nj)), np.zeros((layer.ni, layer.nj)))
    seats, where = layer.seats(), layer.where()
    stuck = False
    for least in LEAST_MASSES:
        before = np.inf
        for sweep in range(1, MOST_SWEEPS):
            moved = positions.push(where, *seats, *codes, SHARES, *visits, least, 0, layer.ni)
            if telling is not None:
                telling.sweep(f"layer {layer.slot_a},{layer.slot_b}: change {moved:.2g}")
            if moved < max(SETTLED, 1000.0 * least):
                break
            if sweep % 50 == 0:
                stuck = moved > 0.98 * before  # it goes round and round: nobody will end this
                if stuck:
                    break
                before = moved
        if stuck:
            break
    left = float(layer.p.sum() + layer.q.sum())
    if left < 10.0 * SETTLED:
        left = 0.0
    for slots, block in layer.exit_blocks():
        if slots in inflow:
            for side in (0, 1):
                inflow[slots][side][:] += block[side]
        else:
            inflow[slots] = (block[0].copy(), block[1].copy())
    return visits, left
