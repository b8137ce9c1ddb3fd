"""Players of the exact evaluation: perfect play, and the agent ``random``; agents: ``asking.py``.

A policy is a uint8 per position and face whose bits say which of the moves in the solver's tables
are played, alike often; bit 4 is a pass, or a throw without a move (see ``kernels.py``). So ties
that an agent breaks by lot are no simulation but part of the exact result.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from agents.exact import positions
from agents.exact.kernels import BEST, FIXED, STAY
from agents.exact.layers import Layer
from agents.exact.solver import Solver

Codes = npt.NDArray[np.uint8]


class Player(Protocol):
    """One side of a game: its name, ``kind`` of kernels.py and, for FIXED, its policy."""

    spec: str
    kind: int

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer: [ni, 6, nj] as seat a, [ni, nj, 6] as seat b."""
        ...


class Best:
    """The best answer to the other side; against another Best that is perfect play."""

    spec = "the best answer"
    kind = BEST

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return an empty array: nothing is read from it."""
        return np.zeros((1, 6, 1) if side == 0 else (1, 1, 6), np.uint8)


class Uniform:
    """Every legal move other than pass alike often, the agent ``random``."""

    spec = "random"
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

    spec = "perfect play"
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
