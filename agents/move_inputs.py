"""The features of every legal move as inputs of a policy network.

A network that only sees the board must find out by itself what each move does. With these inputs it
is told: for every legal action a row of the features of ``kimble_env.features``, in units in which
they matter about as much as each other (``SCALES``). There are never more rows than pieces of a
seat and the pass, so a position has few of them, whatever the number of actions.

The engine gives one number per move, the sum of weights times features. A feature alone is that sum
under a weight of 1, which is slow for fifty of them. Most are whole numbers, or sixths of such:
many at a time are read as the digits of one sum (:class:`Reading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.policy_kernel import Columns, told_slice
from kimble_env.features import FEATURE_COUNT, FEATURE_TABLE, FEATURES, weights_plan
from kimble_env.rules import R_BATTLES, Rules
from kimble_env.threads import run_slices

SCALES = {"yes = 1": 1.0, "pieces": 1.0, "units": 0.5, "probability": 1.0, "fields": 0.1}
"""What a feature is multiplied with, by its unit."""

DEFAULT = tuple(n for n in FEATURES if n not in ("risk_again", "risk_lead", "prey_lead"))
"""Products with the die and with the lead are left out: the network sees those by itself."""

LIMIT = float(1 << 44)
"""Sums below are read exactly: a float64 has 53 bits, and adding up sixths needs some of them."""

_FRACTIONS = dict.fromkeys(("prey_before", "prey_after", "relief", "gate_before"), 6)
_FRACTIONS["gate_after"] = 6
_REAL = {name for name in FEATURES if name.startswith(("hit_", "risk_", "prey_lead"))}
_REAL_IN_BATTLES = {"battle_win", "battle_loss", "battle_swing", "freed", "relief", "leader"}
_REAL_IN_BATTLES |= {"prey_before", "prey_after"}
_INDEX = {name: k for k, name in enumerate(FEATURES)}


class Reading(NamedTuple):
    """Features that are read from one sum: column k is ``digit * scale + low``.

    columns: their places in a row. weights: what each is weighed with in the sum. bases: number of
    values that each can have, 0 for one that is read alone, as it is. lows: lowest value, in steps.
    steps: whole numbers per unit of the feature.
    """

    columns: list[int]
    weights: list[float]
    bases: list[int]
    lows: list[int]
    steps: list[int]


def readings(rules: Rules, names: Sequence[str]) -> list[Reading]:
    """Return how to read features with few sums: the digits together, every real number alone."""
    battles = rules.array[R_BATTLES] != 0
    found: list[Reading] = []
    digits = Reading([], [], [], [], [])
    place = 1.0
    for column, name in enumerate(names):
        if name in _REAL or (battles and name in _REAL_IN_BATTLES):
            found.append(Reading([column], [1.0], [0], [0], [1]))
            continue
        step = _FRACTIONS.get(name, 1)
        low, high = min(FEATURE_TABLE[name].low, 0.0), FEATURE_TABLE[name].high  # 0 for a pass
        base = round((high - low) * step) + 2  # one more: battery says pieces + 1
        if place * base > LIMIT:
            found.append(digits)
            digits, place = Reading([], [], [], [], []), 1.0
        row = (column, place * step, base, round(low * step), step)
        for values, value in zip(digits, row, strict=True):
            values.append(value)  # type: ignore[arg-type]
        place *= base
    return [*found, digits] if digits.columns else found


class MoveInputs:
    """Computes the inputs for batches of positions.

    Args:
        rules: of the game.
        names: the features wanted; their order is that of the columns.

    Attributes:
        shape: (M, K): moves that there can be at most, features.
        size: M * (1 + K), numbers per position.
        names: of the K features.
        columns: what compiled code needs to know of them.

    Raises:
        KeyError: a feature that does not exist.
    """

    def __init__(self, rules: Rules, names: Sequence[str] = DEFAULT) -> None:
        self.rules = rules
        self.names = tuple(names)
        index = [_INDEX[name] for name in self.names]
        found = readings(rules, self.names)
        weights = np.zeros((len(found), FEATURE_COUNT))
        for row, reading in zip(weights, found, strict=True):
            row[[index[k] for k in reading.columns]] = reading.weights
        scales = np.array([SCALES[FEATURE_TABLE[name].unit] for name in self.names])
        order = [k for reading in found for k in reading.columns]
        steps = np.array([step for reading in found for step in reading.steps])
        self.columns = Columns(
            weights,
            np.array([weights_plan(row) for row in weights], np.int64),
            np.cumsum([0, *(len(reading.columns) for reading in found)]),
            np.array(order, np.int64),
            np.array([base for reading in found for base in reading.bases], np.int64),
            np.array([low for reading in found for low in reading.lows], np.int64),
            (scales[order] / steps).astype(np.float32),
        )
        self.shape = (rules.pieces + 1, len(self.names))
        self.size = self.shape[0] * (1 + self.shape[1])

    def write(
        self,
        positions: npt.NDArray[np.void],
        masks: npt.NDArray[np.int8],
        out: npt.NDArray[np.float32],
        at: int = 0,
        threads: int = 1,
    ) -> None:
        """Write the inputs of every position to ``out[:, at : at + size]``.

        First M action codes, in rising order and -1 where there is no further move, then M rows of
        K features, 0 where there is no move.

        Args:
            positions: STATE [B]; where no die is thrown the mask must be empty.
            masks: int8 [B, A], the legal actions.
            out: float32 [B, at + size or more].
            at: where the inputs begin.
            threads: slices that may run at once.
        """
        work = partial(
            told_slice, positions, self.rules.array, masks, self.columns, at, self.shape[0], out
        )
        run_slices(work, len(positions), threads)
