"""Move tables of one seat, read off the kernel by throwing and playing, never written again.

A seat's own moves in Kimble and Kombat do not depend on where the other seat stands (landing there
is allowed and only changes what follows), so one table per configuration holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.exact import probes
from agents.exact.encoding import Encoding
from kimble_env.errors import RulesError
from kimble_env.kernel import empty_states
from kimble_env.rules import Rules

UNUSED = -9
FINISHED = -1


def check_supported(rules: Rules) -> None:
    """Raise unless the solver knows the options of ``rules`` (seats apart).

    Raises:
        RulesError: naming every option that the solver cannot handle.
    """
    wanted = {
        "die": "uniform",
        "extra_throw_needs_move": False,
        "max_sixes": None,
        "two_colours": False,
        "batteries": False,
        "protected_start": False,
        "own_collision": "illegal",
        "home": False,
        "empty_throws": 1,
    }
    faults = [
        f"the exact solver needs {name}={value!r}, got {getattr(rules, name)!r}"
        for name, value in wanted.items()
        if getattr(rules, name) != value
    ]
    if len(rules.seats) != 2:
        faults.append(f"the exact solver is for two seats, got {len(rules.seats)}")
    if faults:
        raise RulesError(faults)


@dataclass
class Moves:
    """All moves from the configurations of one mask, as ``probes.probe_moves`` writes them."""

    configs: npt.NDArray[np.int8]
    targets: npt.NDArray[np.int32]
    fields: npt.NDArray[np.int8]
    losers: npt.NDArray[np.int32]
    flags: npt.NDArray[np.int8]
    codes: npt.NDArray[np.int8]
    own_fields: npt.NDArray[np.int8]
    minus: npt.NDArray[np.int32]


class SeatMoves:
    """The move tables of ``seat`` against ``other``.

    Attributes:
        hits: int8 [ring], the progress of ``other`` that a landing on own progress t meets, or -1.
        chances: float64 [ring, 3], win, tie and loss of a battle there, by own progress t.
    """

    def __init__(self, rules: Rules, seat: int, other: int) -> None:
        check_supported(rules.replace(seats=tuple(sorted((seat, other)))))
        self.rules, self.seat, self.other = rules, seat, other
        self.encoding = Encoding(rules)
        ring = self.encoding.ring
        self.state = empty_states(1)[0]
        self.state["plays"][[seat, other]] = 1
        self.hits = np.full(ring, -1, np.int8)
        outcomes = np.zeros((ring, 4), np.int64)
        probes.probe_landings(self.state, self._array, seat, other, ring, self.hits, outcomes)
        self.chances = outcomes[:, :3] / 36.0
        self._tables: dict[int, Moves] = {}

    @property
    def _array(self) -> npt.NDArray[np.int64]:
        # two seats of this board, whoever they are: the kernel reads who plays from the record
        return self.rules.array

    def moves(self, slot: int) -> Moves:
        """Return the table of a mask (index into ``encoding.masks``), made on first use.

        Raises:
            RulesError: the kernel did not behave as the solver assumes.
        """
        if slot not in self._tables:
            self._tables[slot] = self._probe(slot)
        return self._tables[slot]

    def _probe(self, slot: int) -> Moves:
        code = self.encoding
        configs = code.configurations(slot)
        count, pieces = configs.shape
        shape = (count, 6, pieces)
        table = Moves(
            configs,
            np.full((*shape, 2), UNUSED, np.int32),
            np.full(shape, -1, np.int8),
            np.full(shape, -1, np.int32),
            np.zeros((count, 6), np.int8),
            np.full(shape, -1, np.int8),
            np.full((count, pieces), -1, np.int8),
            np.full((count, pieces), -1, np.int32),
        )
        odd = probes.probe_moves(
            self.state, self._array, self.seat, self.other, code.ring, code.slot, code.ranks,
            self.hits, configs, table.targets, table.fields, table.losers, table.flags,
            table.codes,
        )
        if odd:
            raise RulesError(
                f"the exact solver cannot handle {self.rules}: {odd} throws gave the die to "
                "another seat than expected"
            )
        return table

    def add_losses(self, slot: int, attacker: SeatMoves) -> None:
        """Fill ``own_fields`` and ``minus`` of a mask: what ``attacker`` can take of each piece."""
        table, code = self.moves(slot), self.encoding
        probes.probe_losses(
            self.state, self._array, attacker.seat, self.seat, code.ring, code.ranks, attacker.hits,
            table.configs, table.own_fields, table.minus,
        )
