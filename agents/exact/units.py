"""Norske: move tables of one seat, layers, and the solver (see ``norske.py``)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import norske
from agents.exact.encoding import HomeEncoding
from agents.exact.layers import Blocks, Layer, LayerResult, Report, Tolls
from agents.exact.transitions import FINISHED, UNUSED
from kimble_env.errors import RulesError
from kimble_env.kernel import empty_states
from kimble_env.rules import Rules


def check_units(rules: Rules) -> None:
    """Raise unless the Norske solver knows the options of ``rules``.

    Raises:
        RulesError: naming every option that it cannot handle.
    """
    wanted = {
        "die": "uniform",
        "extra_throw_needs_move": False,
        "max_sixes": None,
        "two_colours": False,
        "battles": False,
        "batteries": True,
        "protected_start": True,
        "pass_allowed": False,
        "three_throws_when": "none_in_play",
        "home": True,
    }
    faults = [
        f"the exact solver of Norske needs {name}={value!r}, got {getattr(rules, name)!r}"
        for name, value in wanted.items()
        if getattr(rules, name) != value
    ]
    if rules.own_collision == "illegal":
        faults.append("the exact solver of Norske needs own_collision smaller, mover or stander")
    if len(rules.seats) != 2:
        faults.append(f"the exact solver is for two seats, got {len(rules.seats)}")
    if faults:
        raise RulesError(faults)


@dataclass
class UnitMoves:
    """All moves from the configurations of one layer; arrays as ``norske.py`` fills them."""

    configs: npt.NDArray[np.int8]
    targets: npt.NDArray[np.int32]
    fields: npt.NDArray[np.int8]
    codes: npt.NDArray[np.int8]
    tries: npt.NDArray[np.int8]
    own_fields: npt.NDArray[np.int8]
    minus: npt.NDArray[np.int32]


class SeatUnits:
    """The move tables of ``seat`` against ``other`` in Norske."""

    def __init__(self, rules: Rules, seat: int, other: int) -> None:
        check_units(rules)
        self.rules, self.seat, self.other = rules, seat, other
        self.encoding = HomeEncoding(rules)
        self.ring = rules.board.leave + 1
        self.state = empty_states(1)[0]
        self.state["plays"][[seat, other]] = 1
        self.hits = np.full(self.ring, -1, np.int8)
        norske.probe_unit_hits(self.state, rules.array, seat, other, self.ring, self.hits)
        self._tables: dict[int, UnitMoves] = {}

    def moves(self, slot: int) -> UnitMoves:
        """Return the table of a layer (pieces home), made on first use.

        Raises:
            RulesError: the kernel did not behave as the solver assumes.
        """
        if slot in self._tables:
            return self._tables[slot]
        code = self.encoding
        configs = code.configurations(slot)
        count, pieces = configs.shape
        shape = (count, 2, 6, pieces)
        table = UnitMoves(
            configs,
            np.full((*shape, 2), UNUSED, np.int32),
            np.full(shape, -1, np.int8),
            np.full(shape, -1, np.int8),
            np.ones(count, np.int8),
            np.full((count, pieces), -1, np.int8),
            np.full((count, pieces), -1, np.int32),
        )
        array = self.rules.array
        norske.probe_turns(self.state, array, self.seat, self.other, configs, table.tries)
        odd = norske.probe_unit_moves(
            self.state, array, self.seat, self.other, self.ring, code.ring, code.slot, code.ranks,
            self.hits, configs, table.tries, table.targets, table.fields, table.codes,
        )
        if odd:
            raise RulesError(
                f"the exact solver cannot handle {self.rules}: {odd} throws went otherwise than "
                "expected"
            )
        self._tables[slot] = table
        return table

    def add_losses(self, slot: int, attacker: SeatUnits) -> None:
        """Fill ``own_fields`` and ``minus`` of a layer: what ``attacker`` can capture."""
        table, code = self.moves(slot), self.encoding
        norske.probe_unit_losses(
            self.state, self.rules.array, attacker.seat, self.seat, self.ring, code.ring,
            code.ranks, attacker.hits, table.configs, table.own_fields, table.minus,
        )


class UnitLayer(Layer):
    """A layer of Norske: the arena of ``Layer``, swept by ``norske.sweep_units``."""

    def _tables(self) -> None:
        a, b = self.a.moves(self.slot_a), self.b.moves(self.slot_b)
        self.a_moves = _reach_units(a, self.slot_a, self.row_base, self.row_count)
        self.b_moves = _reach_units(b, self.slot_b, self.column_base, self.columns)
        self.a_clash = _bits(self.a.hits, a.configs, self.a.ring, translate=True)
        self.b_masks = _bits(self.b.hits, b.configs, self.b.ring, translate=False)

    def _arguments(self) -> tuple[Any, ...]:
        a, b = self.a.moves(self.slot_a), self.b.moves(self.slot_b)
        return (
            self.arena, self.p_rows, self.q_rows, *self.column_places(), self.ni, self.nj,
            self.a_moves, _counts(a), a.fields, a.tries, a.own_fields, a.minus, self.a_clash,
            (a.configs == 0).any(axis=1).astype(np.int8),
            self.b_moves, _counts(b), b.fields, b.tries, b.own_fields, b.minus, self.b_masks,
            (b.configs == 0).any(axis=1).astype(np.int8),
        )

    def solve(
        self, tolerance: float, most_sweeps: int, pool: ThreadPoolExecutor | None, threads: int,
        report: Report | None = None, tolls: Tolls = (),
    ) -> LayerResult:
        """Sweep until no value changes by more than ``tolerance``; there are no passes to toll.

        Raises:
            RuntimeError: that was not reached within ``most_sweeps``.
        """
        began = time.monotonic()
        arguments = self._arguments()
        for count in range(1, most_sweeps + 1):
            change = self._sweep(norske.sweep_units, arguments, pool, threads, report, count)
            if report is not None:
                report(count, change, 0)
            if change <= tolerance:
                return LayerResult(count, change, time.monotonic() - began)
        raise RuntimeError(
            f"layer {self.slot_a}, {self.slot_b}: values still change by {change:.3g} after "
            f"{most_sweeps} sweeps, expected at most {tolerance:.3g}"
        )


def _counts(moves: UnitMoves) -> npt.NDArray[np.int8]:
    out: npt.NDArray[np.int8] = (moves.targets[..., 0] != UNUSED).sum(axis=3).astype(np.int8)
    return out


def _reach_units(
    moves: UnitMoves, slot: int, base: dict[int, int], count: int
) -> npt.NDArray[np.int32]:
    """Turn (slot, rank) of every move into one number: own ranks, exits, won."""
    where, rank = moves.targets[..., 0], moves.targets[..., 1]
    number = np.zeros(where.shape, np.int32)
    number[where == slot] = rank[where == slot]
    for s, first in base.items():
        number[where == s] = first + rank[where == s]
    number[where == FINISHED] = count - 2
    return number


def _bits(
    hits: npt.NDArray[np.int8], configs: npt.NDArray[np.int8], ring: int, translate: bool
) -> npt.NDArray[np.int64]:
    """Return each configuration's ring fields as bits, in own count or as the other seat sees."""
    p = configs.astype(np.int64)
    on_ring = (p >= 0) & (p < ring)
    seen = hits[p.clip(0, ring - 1)].astype(np.int64) if translate else p
    bits = np.where(on_ring & (seen >= 0), np.int64(1) << seen.clip(0), 0)
    out: npt.NDArray[np.int64] = np.bitwise_or.reduce(bits, axis=1)
    return out


__all__: list[Any] = ["Blocks", "SeatUnits", "UnitLayer", "check_units"]
