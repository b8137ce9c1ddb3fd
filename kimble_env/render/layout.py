"""Where everything on a board is: pure geometry, computed from a Board, for any front end.

The picture is a frame of 1000 x 1100 units, x to the right and y down: a square board and below it
a strip for words. The ring is a circle round the die; every seat has a corner with its home base;
its stretch runs from the last ring field of its route straight inwards, and ends, in rules with a
home, in a triangle. Seats follow each other clockwise, the seat ``viewer`` sits at the lower left.

Boards whose starts are not evenly spaced work too: the stretches are kept at least
``MIN_ANGLE`` degrees apart and the ring fields share the arcs between them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES, SEATS, Board
from kimble_env.errors import RulesError

LAYOUT_VERSION = 1
"""Raised when the meaning of :meth:`BoardLayout.as_dict` changes."""

WIDTH, HEIGHT = 1000.0, 1100.0
CENTRE = 500.0
RING_RADIUS = 398.0
INNER_RADIUS = 190.0  # where the innermost stretch field is centred
MIN_ANGLE = 52.0  # degrees between two stretches: their triangles then do not touch
MAX_FIELD, MAX_STRETCH, BASE_PLACE = 33.0, 24.0, 29.0
DOME_RADIUS, SMALL_DOME_RADIUS = 140.0, 76.0
TRIANGLE_OUTER, TRIANGLE_INNER, TRIANGLE_HALF = 158.0, 84.0, 68.0
HOME_RADIUS = 128.0
CORNER, PLATE_RADIUS = 109.0, 88.0
_BASE_OFFSETS = {
    1: ((0.0, 0.0),),
    2: ((-34.0, 0.0), (34.0, 0.0)),
    3: ((-34.0, 26.0), (0.0, -34.0), (34.0, 26.0)),
    4: ((-33.0, -33.0), (33.0, -33.0), (33.0, 33.0), (-33.0, 33.0)),
}


class Spot(NamedTuple):
    """A round place: its middle, its radius, and the angle of its field in degrees.

    The angle is the direction from the middle of the board, clockwise from straight up.
    """

    x: float
    y: float
    radius: float
    angle: float = 0.0


@dataclass(frozen=True)
class SeatLayout:
    """The places that belong to one seat.

    ``base`` has a place per piece, ``stretch`` one per stretch field from the ring inwards,
    ``home`` is where arrived pieces stand, inside ``triangle`` (in rules with a home). ``label`` is
    where the seat's name goes; it grows away from the corner: ``label_anchor`` is "start" (to the
    right) or "end".
    """

    seat: int
    letter: str
    name: str
    start: int
    plate: Spot
    base: tuple[Spot, ...]
    stretch: tuple[Spot, ...]
    home: Spot
    triangle: tuple[tuple[float, float], ...]
    label: tuple[float, float]
    label_anchor: str


@dataclass(frozen=True)
class BoardLayout:
    """All places of one board in units of a frame ``width`` x ``height``.

    ``ring`` has a spot per field g, ``seats`` one SeatLayout per seat (red, blue, yellow, green),
    ``dome`` is where the die is, ``caption`` the box (x, y, width, height) for words.
    """

    board: Board
    viewer: int
    has_home: bool
    ring: tuple[Spot, ...]
    seats: tuple[SeatLayout, ...]
    dome: Spot
    width: float = WIDTH
    height: float = HEIGHT
    caption: tuple[float, float, float, float] = (0.0, 1000.0, 1000.0, 100.0)

    def spot(self, seat: int, progress: int, slot: int = 0) -> Spot:
        """Return where a unit of ``seat`` on ``progress`` stands (``slot``: which base place).

        Raises:
            RulesError: no such progress on this board.
        """
        own, board = self.seats[seat], self.board
        if progress < 0:
            return own.base[slot]
        if progress <= board.leave:
            return self.ring[(board.starts[seat] + progress) % board.ring]
        if progress <= board.stretch_last:
            return own.stretch[progress - board.stretch_first]
        if progress == board.home and self.has_home:
            return own.home
        raise RulesError(f"board {board.name!r}: no progress {progress} on a route")

    def as_dict(self) -> dict[str, Any]:
        """Return the layout as data for JSON: numbers, texts, lists and dicts only."""
        data: dict[str, Any] = asdict(self)  # tuples of numbers: JSON writes them as lists
        data["board"] = {**asdict(self.board), "home": self.board.home}
        data["version"] = LAYOUT_VERSION
        data["ring"] = [spot._asdict() for spot in self.ring]
        data["dome"] = self.dome._asdict()
        for seat, out in zip(self.seats, data["seats"], strict=True):
            out["plate"], out["home"] = seat.plate._asdict(), seat.home._asdict()
            out["base"] = [spot._asdict() for spot in seat.base]
            out["stretch"] = [spot._asdict() for spot in seat.stretch]
        listed = _lists(data)
        assert isinstance(listed, dict)
        return listed


def _lists(value: Any) -> Any:
    """Turn tuples into lists all the way down and round to a hundredth of a unit."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_lists(item) for item in value]
    return round(value, 2) if isinstance(value, float) else value


def polar(radius: float, angle: float) -> tuple[float, float]:
    """Return the point ``radius`` from the middle, ``angle`` degrees clockwise from straight up."""
    turn = math.radians(angle)
    return CENTRE + radius * math.sin(turn), CENTRE - radius * math.cos(turn)


def corner_angle(seat: int, viewer: int) -> float:
    """Return the direction of a seat's corner; the viewer's is the lower left."""
    return (225.0 + 90.0 * ((seat - viewer) % SEATS)) % 360.0


def _sector_angles(counts: list[int]) -> list[float]:
    """Share 360 degrees by number of fields, giving no sector less than MIN_ANGLE."""
    narrow: set[int] = set()
    while True:
        left = 360.0 - MIN_ANGLE * len(narrow)
        fields = sum(n for k, n in enumerate(counts) if k not in narrow)
        angles = [MIN_ANGLE if k in narrow else left * n / fields for k, n in enumerate(counts)]
        more = {k for k, angle in enumerate(angles) if angle < MIN_ANGLE - 1e-9} - narrow
        if not more:
            return angles
        narrow |= more


def _ring_angles(board: Board, viewer: int) -> list[float]:
    """Return the direction of each ring field.

    The field where a route leaves the ring, or two before the start if it leaves earlier, comes to
    lie on the diagonal of the seat's corner; with uneven starts as near to it as can be.
    """
    leaves = [(start + board.leave) % board.ring for start in board.starts]
    counts = [(leaves[(s + 1) % SEATS] - leaves[s]) % board.ring for s in range(SEATS)]
    widths = _sector_angles(counts)
    angles = [0.0] * board.ring
    begin = 0.0
    for seat in range(SEATS):
        for k in range(counts[seat]):
            angles[(leaves[seat] + k) % board.ring] = begin + widths[seat] * k / counts[seat]
        begin += widths[seat]
    before_start = min(board.ring - board.leave, 2)
    off_x = off_y = 0.0
    for seat in range(SEATS):
        anchor = angles[(board.starts[seat] - before_start) % board.ring]
        off = math.radians(corner_angle(seat, viewer) - anchor)
        off_x, off_y = off_x + math.cos(off), off_y + math.sin(off)
    turn = math.degrees(math.atan2(off_y, off_x))
    return [(angle + turn) % 360.0 for angle in angles]


def _field_radius(angles: list[float]) -> float:
    """Return the largest radius with which neighbours on the ring stay apart."""
    gaps = [(angles[(k + 1) % len(angles)] - angles[k]) % 360.0 for k in range(len(angles))]
    chord = 2.0 * RING_RADIUS * math.sin(math.radians(min(gaps)) / 2.0)
    return min(MAX_FIELD, 0.46 * chord)


def _stretch(board: Board, angle: float, field: float) -> tuple[Spot, ...]:
    """Return the stretch fields, from next to the ring inwards."""
    radius = min(MAX_STRETCH, field)
    outer = RING_RADIUS - field - radius - 6.0
    step = 2.0 * radius + 4.0
    if board.stretch > 1:
        step = min(step, (outer - INNER_RADIUS) / (board.stretch - 1))
    radius = min(radius, 0.46 * step)
    return tuple(Spot(*polar(outer - k * step, angle), radius, angle) for k in range(board.stretch))


def _triangle(angle: float) -> tuple[tuple[float, float], ...]:
    """Return the corners of a home: its tip towards the middle of the board."""
    half = math.degrees(math.atan2(TRIANGLE_HALF, TRIANGLE_OUTER))
    far = math.hypot(TRIANGLE_OUTER, TRIANGLE_HALF)
    return (polar(far, angle - half), polar(far, angle + half), polar(TRIANGLE_INNER, angle))


def _seat_layout(
    board: Board, seat: int, viewer: int, pieces: int, angles: list[float], field: float
) -> SeatLayout:
    corner = corner_angle(seat, viewer)
    left, top = corner > 180.0, corner > 270.0 or corner < 90.0
    x = CORNER if left else WIDTH - CORNER
    y = CORNER if top else 2 * CENTRE - CORNER
    lane = angles[(board.starts[seat] + board.leave) % board.ring]
    base = tuple(Spot(x + dx, y + dy, BASE_PLACE, corner) for dx, dy in _BASE_OFFSETS[pieces])
    return SeatLayout(
        seat=seat,
        letter=SEAT_LETTERS[seat],
        name=SEAT_NAMES[seat],
        start=board.starts[seat],
        plate=Spot(x, y, PLATE_RADIUS, corner),
        base=base,
        stretch=_stretch(board, lane, field),
        home=Spot(*polar(HOME_RADIUS, lane), MAX_STRETCH, lane),
        triangle=_triangle(lane),
        label=(228.0 if left else WIDTH - 228.0, 42.0 if top else 958.0),
        label_anchor="start" if left else "end",
    )


@lru_cache(maxsize=256)
def board_layout(
    board: Board, *, pieces: int = 4, home: bool = False, viewer: int = 0
) -> BoardLayout:
    """Return where everything is.

    Args:
        board: any board.
        pieces: pieces per seat, 1 to 4: the places of a home base.
        home: whether the route ends in a home (``rules.home``); the die is then smaller.
        viewer: the seat at the lower left, 0 to 3.

    Raises:
        RulesError: pieces or viewer out of range.
    """
    if pieces not in _BASE_OFFSETS:
        raise RulesError(f"pieces must be 1 to 4, got {pieces!r}")
    if viewer not in range(SEATS):
        raise RulesError(f"viewer must be a seat 0 to 3, got {viewer!r}")
    angles = _ring_angles(board, viewer)
    field = _field_radius(angles)
    ring = tuple(Spot(*polar(RING_RADIUS, angle), field, angle) for angle in angles)
    seats = tuple(_seat_layout(board, s, viewer, pieces, angles, field) for s in range(SEATS))
    dome = Spot(CENTRE, CENTRE, SMALL_DOME_RADIUS if home else DOME_RADIUS)
    return BoardLayout(board, viewer, home, ring, seats, dome)
