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

STRIDE = 20
"""Sweeps after which it is judged how fast values settle."""
PATIENCE = 60
"""More sweeps than that to come are left to GMRES."""
BASIS, BASIS_BYTES = 20, 2_000_000_000
"""Vectors of a round of GMRES, and what they may take together."""
MOST_CHANGES = 200
"""Policies tried in a layer, at most."""
FIRST_SWEEPS, FIRST_CHANGE = 60, 1e-4
"""The first policy is what the best moves are after so many sweeps, or when values change less."""
ROUGH = 1e-4
"""How exactly the first policy is valued; later ones by what the last change gained."""
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
    """

    layer: Layer
    codes: tuple[Codes, Codes]
    tolerance: float
    most_sweeps: int
    pool: Pool = None
    threads: int = 1
    sweeps: int = 0
    change: float = np.inf
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


def evaluate(contest: Contest, tolerance: float | None = None) -> None:
    """Settle the values of two fixed policies, from what the arena holds.

    It ends when the last sweep's change, over one minus the share of an error that the slowest
    sweeps left, is at most the tolerance: a bound of the error where one mode of it is left.

    Args:
        tolerance: another one than the contest's.

    Raises:
        UnsettledError: it did not end.
    """
    slowest, tolerance = 0.0, tolerance or contest.tolerance
    while True:
        first = contest.sweep()
        for _ in range(STRIDE - 1):
            if contest.sweep() <= NOISE:
                return
        ratio = min((contest.change / first) ** (1.0 / (STRIDE - 1)), 1.0 - 1e-9)
        slowest = max(slowest, ratio)
        wanted = max(tolerance * (1.0 - slowest), NOISE)
        if contest.change <= wanted:
            return
        if np.log(wanted / contest.change) / np.log(ratio) > PATIENCE:
            krylov(contest)


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
    values[:] = start
    for share, one in zip(shares, basis, strict=False):
        values += share * one


def _dot(one: Floats, two: Floats) -> float:
    """Multiply two vectors; a BLAS would start threads of its own, and wait for them."""
    return float(np.einsum("i,i->", one, two))


# ------------------------------------------------------------------------------- the best answer


def best_answer(contest: Contest, best: int) -> None:
    """Settle the values of the best answer of seat ``best`` (0 or 1) to the other seat's policy.

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
    tolerance = ROUGH
    for _ in range(MOST_CHANGES):
        evaluate(contest, tolerance)
        gain = contest.run(positions.improve, *arguments, 10.0 * tolerance)  # beyond any error
        if gain == 0.0 and tolerance == contest.tolerance:
            return
        tolerance = max(contest.tolerance, 1e-2 * min(tolerance, gain or tolerance))
    raise UnsettledError(
        f"layer {layer.slot_a}, {layer.slot_b}: after {MOST_CHANGES} policies the best answer "
        f"still gains {gain:.3g} by another choice"
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
