"""The agent ``exact``: perfect play of two seats from a table.

>>> from agents import make_agent
>>> make_agent("exact", "kimble[pieces=2]")               # doctest: +SKIP

Spec: ``exact``, or ``exact:FILE`` to read the table from a file of your own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents.exact.solver import two_seats
from agents.exact.table import Table, find_table, read_table
from kimble_env.errors import AgentError
from kimble_env.opponents import Agent
from kimble_env.rules import Rules


class ExactAgent:
    """Plays the move with the highest exact win chance; of equal ones that listed first.

    Tables hold 16-bit values, so moves closer than about 1e-5 are equal to it.

    Args:
        spec: its name.
        rules: the rules it plays by.
        table: where the table comes from; by default ``find_table``. Tables for seats opposite each
            other and for neighbours are loaded when first needed.
    """

    def __init__(self, spec: str, rules: Rules, table: Table | None = None) -> None:
        self.spec, self.rules = spec, rules
        self._tables: dict[bool, Table] = {}
        if table is not None:
            first, second = table.rules.seats
            self._tables[(second - first) % 4 != 2] = table
        else:
            # found (or refused) now, not in the middle of a game
            neighbours = len(rules.seats) == 2 and (rules.seats[1] - rules.seats[0]) % 4 != 2
            self._tables[neighbours] = find_table(rules, adjacent=neighbours)

    def table(self, adjacent: bool) -> Table:
        """Return the table for neighbours, or for seats opposite each other.

        Raises:
            TableError: there is none.
        """
        if adjacent not in self._tables:
            self._tables[adjacent] = find_table(self.rules, adjacent=adjacent)
        return self._tables[adjacent]

    def act(
        self, positions: npt.NDArray[np.void], keys: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int16]:
        """Return the best action of each position STATE [B] with a die thrown: int16 [B].

        Raises:
            TableError: no table, or positions of more than two seats.
        """
        return self.moves(positions).argmax(axis=1).astype(np.int16)

    def moves(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return the win chance of the seat to act after each action: float32 [B, A], -1 illegal.

        Raises:
            TableError: no table, or positions of more than two seats.
        """
        return self._ask(positions, "moves", (self.rules.board.actions,))

    def losses(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return what each legal action loses against the best: float32 [B, A], NaN illegal.

        Raises:
            TableError: no table, or positions of more than two seats.
        """
        return self._ask(positions, "losses", (self.rules.board.actions,))

    def values(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return the win chance of the seat to act: float32 [B].

        Raises:
            TableError: no table, or positions of more than two seats.
        """
        return self._ask(positions, "values", ())

    def _ask(
        self, positions: npt.NDArray[np.void], question: str, shape: tuple[int, ...]
    ) -> npt.NDArray[np.float32]:
        out = np.empty((len(positions), *shape), np.float32)
        plays = positions["plays"] != 0
        opposite = (plays[:, 0] & plays[:, 2]) | (plays[:, 1] & plays[:, 3])
        for adjacent in (False, True):
            chosen = np.flatnonzero(opposite != adjacent)
            if len(chosen):
                part = np.ascontiguousarray(positions[chosen])
                out[chosen] = getattr(self.table(adjacent), question)(part)
        return out

    def evaluate(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return the win chance of each seat after each action: float32 [B, A, 4].

        0 for seats that do not play and for illegal actions.

        Raises:
            TableError: no table, or positions of more than two seats.
        """
        own = self.moves(positions)
        legal = own >= 0.0
        out = np.zeros((*own.shape, 4), np.float32)
        rows = np.arange(len(positions))
        seat = positions["seat"].astype(np.int64)
        plays = positions["plays"].copy()
        plays[rows, seat] = 0
        out[rows, :, seat] = np.where(legal, own, 0.0)
        out[rows, :, plays.argmax(axis=1)] = np.where(legal, 1.0 - own, 0.0)
        return out

    def __repr__(self) -> str:
        return f"ExactAgent({self.spec!r}, {str(self.rules)!r})"


def make_exact(argument: str, rules: Rules) -> Agent:
    """Make the agent of a spec: ``exact`` or ``exact:FILE``.

    Raises:
        AgentError: more than two seats play.
        TableError: no table, or one for another game.
        RulesError: rules the solver does not know.
    """
    if len(rules.seats) != 2:
        raise AgentError(f"exact plays games of two seats, got {len(rules.seats)}")
    if not argument:
        return ExactAgent("exact", rules)
    neighbours = len(rules.seats) == 2 and (rules.seats[1] - rules.seats[0]) % 4 != 2
    game = two_seats(rules, adjacent=neighbours)
    return ExactAgent(f"exact:{argument}", rules, read_table(Path(argument), game))
