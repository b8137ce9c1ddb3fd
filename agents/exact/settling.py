"""Values of given players in one layer: fixed policies, and the best answer to one.

Two fixed policies make a linear system, ``v = S v + c``, where a sweep is ``v -> S v + c``. Sweeps
solve it, each leaving a share of the error; where that share is close to 1 (a player who waits a
thousand throws for the other to let him by) GMRES takes over, the sweep being its preconditioner.
All values start from 1/2, and stay there where play goes on for ever.

The best answer to a policy is found by Howard's policy iteration: value a policy, change it
wherever another choice is clearly better, and again. Plain sweeps with the best move would not do:
where the best answer can keep the game going for ever the equations have many solutions, and where
it is slow they stop far from any. Endless play needs care: a policy is only ever changed for a
strict gain, so that no new circle arises unnoticed, and the positions from which the answering seat
can keep play inside the layer for ever (``positions.confine``) are worth 1/2 at least. With both, a
policy that nothing improves is a best one: its value is a fixed point that is no less than 1/2 on
those positions, and every such fixed point is at least what any other policy wins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import kernels, positions
from agents.exact.errors import UnsettledError
from agents.exact.kernels import BEST, FIXED, LOWEST, SHARES
from agents.exact.layers import Layer
from agents.exact.policies import Codes

STRIDE, SMOOTHING = 10, 4
"""Sweeps after which it is judged how fast values settle, and those that follow GMRES."""
PATIENCE = 40
"""More sweeps than that to come are left to GMRES."""
BASIS, BASIS_BYTES = 15, 2_000_000_000
"""Vectors of a round of GMRES, and what they may take together."""
MOST_ROUNDS = 1_000
"""Rounds of sweeps between which the best answer may change in a layer."""
FIRST_SWEEPS, FIRST_CHANGE = 40, 1e-3
"""The first policy is what the best moves are after so many sweeps, or when values change less."""
NOISE = 1e-14
"""Smaller changes of a value may be rounding."""

Floats = npt.NDArray[np.float64]
Pool = ThreadPoolExecutor | None


@dataclass
class Contest:
    """One layer between two players: how it is swept.

    Attributes:
        layer: with the values of later layers in its arena.
        codes: the policies of seat a and b, as ``positions.py`` has them.
        most_sweeps: after so many it counts as unsettled.
        report: told the sweeps made and the largest change of each.
        ratios: the share of an error that a sweep left, in the last rounds.
        gap: one minus that share of the slowest mode that GMRES saw last; 1 if it was not asked.
    """

    layer: Layer
    codes: tuple[Codes, Codes]
    tolerance: float
    most_sweeps: int
    pool: Pool = None
    threads: int = 1
    report: Callable[[int, float], None] | None = None
    sweeps: int = 0
    change: float = np.inf
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    gap: float = 1.0
    _sweepers: dict[tuple[int, int], Any] = field(default_factory=dict)

    def sweep(self, kinds: tuple[int, int] = (FIXED, FIXED)) -> float:
        """Sweep once, return the largest change.

        Raises:
            UnsettledError: that would be one sweep too many.
        """
        if self.sweeps >= self.most_sweeps:
            layer = self.layer
            raise UnsettledError(
                f"layer {layer.slot_a}, {layer.slot_b}: values still change by {self.change:.3g} "
                f"after {self.sweeps} sweeps, expected at most {self.tolerance:.3g}"
            )
        self.sweeps += 1
        if kinds not in self._sweepers:
            self._sweepers[kinds] = sweeper(self.layer, kinds, self.codes)
        sweep, arguments = self._sweepers[kinds]
        self.change = self._run(sweep, (*arguments, 0.0))
        if self.report is not None:
            self.report(self.sweeps, self.change)
        return self.change

    def run(self, function: Any, *arguments: Any) -> float:
        """Call a compiled function on all rows, in slices; return the largest answer."""
        return self._run(function, arguments)

    def _run(self, function: Any, arguments: tuple[Any, ...]) -> float:
        return self.layer.sweep(function, arguments, self.pool, self.threads, None, 0)

    @property
    def values(self) -> Floats:
        """P and Q one after the other, a view: float64 [2 * ni * nj]."""
        out: Floats = self.layer.arena[: 2 * self.layer.ni * self.layer.nj]
        return out


def sweeper(
    layer: Layer, kinds: tuple[int, int], codes: tuple[Codes, Codes]
) -> tuple[Any, tuple[Any, ...]]:
    """Return the compiled sweep of two players, and its arguments but toll and rows."""
    if layer.a.rules.home:
        return _sweep_home, (layer.where(), *layer.seats(), *kinds, *codes)
    battles = bool(layer.a.rules.battles)
    tables = (layer.place(), layer.rows(), layer.cols())
    return kernels.sweep_players, (*tables, *kinds, *codes, SHARES, LOWEST, battles)


def _sweep_home(
    where: Any, a: Any, b: Any, kind_a: int, kind_b: int, codes_a: Any, codes_b: Any, toll: float,
    first: int, last: int,
) -> float:  # fmt: skip
    change: float = positions.sweep_positions(
        where, a, b, kind_a, kind_b, codes_a, codes_b, SHARES, first, last
    )
    return change


# -------------------------------------------------------------------------------- fixed policies


def evaluate(contest: Contest) -> None:
    """Settle the values of two fixed policies, from what the arena holds.

    Raises:
        UnsettledError: they did not settle.
    """
    while settle_round(contest) > contest.tolerance:
        pass


def settle_round(contest: Contest) -> float:
    """Sweep some times, then take a round of GMRES if sweeps alone would take long.

    Returns:
        The error that is left: the last sweep's change over one minus the share of it that a sweep
        leaves, as seen in the last rounds and by GMRES: a bound where its slowest mode is left.
    """
    first = contest.sweep()
    for _ in range(STRIDE - 1):
        if contest.sweep() <= NOISE:
            return 0.0
    ratio = min((contest.change / first) ** (1.0 / (STRIDE - 1)), 1.0 - 1e-9)
    contest.ratios.append(ratio)
    gap = min(1.0 - max(contest.ratios), contest.gap)
    error = contest.change / gap
    if error > contest.tolerance:
        if np.log(contest.tolerance / error) / np.log(ratio) > PATIENCE:
            krylov(contest)
            for _ in range(SMOOTHING):
                contest.sweep()
            error = contest.change / min(gap, contest.gap)
    return error if contest.change > NOISE else 0.0


def krylov(contest: Contest) -> None:
    """Take one round of GMRES: the best correction among some sweeps of the error.

    Where play is endless a sweep changes nothing, so nothing is corrected there either.
    """
    values = contest.values
    start = values.copy()
    contest.sweep()
    swept = values.copy()
    residual = swept - start
    size = _dot(residual, residual) ** 0.5
    if size == 0.0:
        return
    steps = max(2, min(BASIS, BASIS_BYTES // values.nbytes))
    basis = [residual / size]
    small = np.zeros((steps + 1, steps))
    for k in range(steps):
        values[:] = start + basis[k]
        contest.sweep()
        ahead = basis[k] - (values - swept)  # (1 - S) times the last direction
        for n, one in enumerate(basis):
            small[n, k] = _dot(one, ahead)
            ahead -= small[n, k] * one
        small[k + 1, k] = _dot(ahead, ahead) ** 0.5
        if small[k + 1, k] <= 1e-14:
            break
        basis.append(ahead / small[k + 1, k])
    used = min(k + 1, len(basis))
    right = np.zeros(used + 1)
    right[0] = size
    shares = np.linalg.lstsq(small[: used + 1, :used], right, rcond=None)[0]
    contest.gap = max(float(np.abs(np.linalg.eigvals(small[:used, :used])).min()), 1e-9)
    values[:] = start
    for share, one in zip(shares, basis, strict=False):
        values += share * one


def _dot(one: Floats, two: Floats) -> float:
    """Multiply two vectors; a BLAS would start threads of its own, and wait for them."""
    return float(np.einsum("i,i->", one, two))


# ------------------------------------------------------------------------------- the best answer


def best_answer(contest: Contest, best: int) -> None:
    """Settle the values of the best answer of seat ``best`` (0 or 1) to the other seat's policy.

    They are right to 10 tolerances, and no single choice gains more than 100.

    Args:
        contest: its codes of the answering seat are overwritten with the policy found.

    Raises:
        UnsettledError: a policy's values did not settle, or policies went round in circles.
    """
    layer, codes = contest.layer, contest.codes
    where, (a, b) = layer.where(), layer.seats()
    alive = _endless(contest, best)
    contest.values[:] = 0.5
    kinds = (BEST, FIXED) if best == 0 else (FIXED, BEST)
    for _ in range(FIRST_SWEEPS):
        if contest.sweep(kinds) <= FIRST_CHANGE:
            break
    arguments = (where, alive, a, b, best, *codes, SHARES)
    contest.run(positions.improve, *arguments, 0.0)
    contest.values[:] = 0.5
    enough = 10.0 * contest.tolerance
    for _ in range(MOST_ROUNDS):
        error = settle_round(contest)
        clear = 10.0 * max(error, enough)  # a gain beyond all that values may be off
        gain = contest.run(positions.improve, *arguments, clear)
        if gain > 0.0:
            contest.ratios.clear()
        elif error <= enough:
            return
    raise UnsettledError(
        f"layer {layer.slot_a}, {layer.slot_b}: after {MOST_ROUNDS} rounds the best answer "
        f"still gains {gain:.3g} by another choice, or its values are off by {error:.3g}"
    )


def _endless(contest: Contest, best: int) -> npt.NDArray[np.uint8]:
    """Mark the positions from which a seat can keep play in the layer for ever: uint8 [arena]."""
    layer = contest.layer
    alive = np.zeros(layer.length, np.uint8)
    if layer.a.rules.pass_allowed:
        alive[: len(contest.values)] = 1
        arguments = (layer.where(), alive, *layer.seats(), best, *contest.codes, SHARES)
        while contest.run(positions.confine, *arguments) > 0.0:
            pass
    return alive
