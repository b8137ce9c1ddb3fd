"""Board geometry as validated data: ``kimble28``, ``cross40``, ``ludo52``, and boards of your own.

A route is counted in *progress* ``p`` from the seat's own start (p = 0): ring fields up to
``leave``, then the seat's own stretch, then (Norske) home. A ring field seen from above is
``g = (start + p) mod ring``.
"""

from __future__ import annotations

from dataclasses import dataclass

from kimble_env.errors import RulesError

SEATS = 4
SEAT_NAMES = ("red", "blue", "yellow", "green")
SEAT_LETTERS = "RBYG"
LAST_PROGRESS_LIMIT = 55
"""Routes are kept as bits of one 64-bit word together with the largest throw; this is the limit."""


@dataclass(frozen=True)
class Board:
    """One board.

    Args:
        name: the word used in the option ``board``.
        ring: number of fields of the shared track.
        starts: the ring field of each seat's start, clockwise: red, blue, yellow, green.
        leave: progress of the last ring field of a route; the stretch begins at ``leave + 1``.
        stretch: number of stretch fields.

    Raises:
        RulesError: naming every fault of the description.
    """

    name: str
    ring: int
    starts: tuple[int, int, int, int]
    leave: int
    stretch: int

    def __post_init__(self) -> None:
        faults = self._faults()
        if faults:
            raise RulesError([f"board {self.name!r}: {fault}" for fault in faults])

    def _faults(self) -> list[str]:
        name: object = self.name
        starts: object = self.starts
        if not isinstance(name, str):
            return [f"the name must be a word, got {name!r}"]
        if not isinstance(starts, tuple):  # a list would make the board unhashable
            return [f"starts must be a tuple of {SEATS} whole numbers, got {starts!r}"]
        numbers = (self.ring, self.leave, self.stretch, *self.starts)
        if any(not isinstance(n, int) or isinstance(n, bool) for n in numbers):
            return [f"ring, starts, leave and stretch must be whole numbers, got {numbers}"]
        faults = []
        if len(self.starts) != SEATS:
            return [f"expected {SEATS} starts, got {len(self.starts)}"]
        if self.ring < 8:
            faults.append(f"ring must have at least 8 fields, got {self.ring}")
        if any(not 0 <= start < self.ring for start in self.starts):
            faults.append(f"starts must lie in 0..{self.ring - 1}, got {self.starts}")
        if len(set(self.starts)) != SEATS:
            faults.append(f"starts must be distinct, got {self.starts}")
        elif self.ring > 0:
            steps = [(s - self.starts[0]) % self.ring for s in self.starts]
            if steps != sorted(steps):
                faults.append(f"starts must go clockwise from red to green, got {self.starts}")
        if self.leave >= self.ring:
            faults.append(
                f"the lap returns to its own start: leave must be below ring {self.ring}, "
                f"got {self.leave}"
            )
        if self.leave < 6:
            faults.append(f"leave must be at least 6, got {self.leave}")
        if self.stretch < 1:
            faults.append(f"the stretch needs at least 1 field, got {self.stretch}")
        if self.leave + self.stretch > LAST_PROGRESS_LIMIT:
            faults.append(
                f"the route is too long: leave + stretch must be at most {LAST_PROGRESS_LIMIT}, "
                f"got {self.leave + self.stretch}"
            )
        return faults

    @property
    def stretch_first(self) -> int:
        """Progress of the first stretch field (28 on kimble28)."""
        return self.leave + 1

    @property
    def stretch_last(self) -> int:
        """Progress of the last stretch field (31 on kimble28)."""
        return self.leave + self.stretch

    @property
    def home(self) -> int:
        """Progress of home, used by rule sets that have one (32 on kimble28)."""
        return self.stretch_last + 1

    @property
    def actions(self) -> int:
        """Number of action codes: enter, each progress 0..stretch_last, pass (34 on kimble28)."""
        return self.stretch_last + 3

    @property
    def pass_action(self) -> int:
        """The action code of pass, the last one."""
        return self.actions - 1

    def field(self, seat: int, progress: int) -> int | None:
        """Return the ring field of ``progress`` of ``seat``, None if it is not on the ring."""
        if not 0 <= progress <= self.leave:
            return None
        return (self.starts[seat] + progress) % self.ring


BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board("kimble28", ring=28, starts=(0, 7, 14, 21), leave=27, stretch=4),
        Board("cross40", ring=40, starts=(0, 10, 20, 30), leave=39, stretch=4),
        Board("ludo52", ring=52, starts=(0, 13, 26, 39), leave=50, stretch=5),
    )
}
"""The boards that the option ``board`` knows by name."""


def register_board(board: Board) -> Board:
    """Make ``board`` known by its name to rule texts and positions; return it.

    Raises:
        RulesError: no Board, a name that is no plain word, or one that another board has.
    """
    if not isinstance(board, Board):
        raise RulesError(f"expected a Board, got {board!r}")
    known = BOARDS.get(board.name)
    if known is not None and known != board:
        raise RulesError(f"board {board.name!r} exists already and is different")
    if not board.name.isidentifier():
        raise RulesError(f"board name {board.name!r} must be a plain word")
    BOARDS[board.name] = board
    return board


def find_board(name: str | Board) -> Board:
    """Return a board by name (a Board is returned as it is).

    Raises:
        RulesError: unknown name; the message lists the known ones.
    """
    if isinstance(name, Board):
        return name
    try:
        return BOARDS[name]
    except (KeyError, TypeError):
        raise RulesError(f"unknown board {name!r}; known: {', '.join(BOARDS)}") from None
