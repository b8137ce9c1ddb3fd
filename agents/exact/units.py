"""Norske: the move tables of one seat, and layers (see ``positions.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import norske, positions
from agents.exact.encoding import HomeEncoding
from agents.exact.layers import Layer, _bits, _numbers, _seen, counts_of
from agents.exact.transitions import UNUSED
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
    """A layer of Norske: the arena of ``Layer``, swept by ``positions.sweep_positions``."""

    def _tables(self) -> None:
        """Norske needs nothing but ``seats``."""

    def seats(self) -> tuple[positions.Seat, positions.Seat]:
        """Return the moves of both seats, for ``positions.py``."""
        return (
            _seat(self.a, self.slot_a, self.row_base, self.row_count),
            _seat(self.b, self.slot_b, self.column_base, self.columns),
        )

    def sweeper(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the compiled sweep for perfect play, and its arguments but toll and rows."""
        where, (a, b) = self.where(), self.seats()
        sides = [
            (
                seat.moves.astype(np.int32), seat.counts, seat.hits, seat.tries, seat.fields,
                seat.minus, mask, seat.guard,
            )
            for seat, mask in ((a, a.seen), (b, b.masks))
        ]  # fmt: skip
        return sweep_best, (tuple(where), self.ni, self.nj, *sides)


def sweep_best(
    where: Any, ni: int, nj: int, a: Any, b: Any, toll: float, first: int, last: int
) -> float:
    """Sweep for perfect play; Norske has no passes to toll."""
    change: float = norske.sweep_units(*where, ni, nj, *a, *b, first, last)
    return change


def _seat(seat: SeatUnits, slot: int, base: dict[int, int], count: int) -> positions.Seat:
    moves = seat.moves(slot)
    p = moves.configs
    on_ring = np.where((p >= 0) & (p < seat.ring), p, np.int8(-1)).astype(np.int8)
    certain = np.zeros((seat.ring, 3))
    certain[:, 0] = 1.0  # no battles
    return positions.Seat(
        _numbers(moves, slot, base, count), counts_of(moves), moves.fields,
        np.zeros(moves.fields.shape, np.int32), np.zeros((len(p), 6), np.int8), moves.tries,
        moves.own_fields, moves.minus, (p == 0).any(axis=1).astype(np.int8), _bits(on_ring),
        _bits(_seen(seat.hits, on_ring)), moves.codes, certain,
    )  # fmt: skip
