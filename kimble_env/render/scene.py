"""The picture itself, drawn once for all: on a canvas that may be SVG or pixels.

``draw_board`` draws what never changes during a game (pixels keep it), ``draw_position`` the rest.
A canvas knows a handful of shapes; colours are ``#rrggbb``. Every seat is told apart by its letter
as well as by its colour, the seat to act by a halo and a filled name, so that no meaning hangs on
colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from kimble_env.board import SEATS, Board
from kimble_env.render.font import text_width
from kimble_env.render.layout import (
    CENTRE,
    HEIGHT,
    WIDTH,
    BoardLayout,
    SeatLayout,
    Spot,
    board_layout,
    corner_angle,
    polar,
)
from kimble_env.render.view import LastMove, SeatView, Unit, View
from kimble_env.rules import Rules

Points = Sequence[tuple[float, float]]

INK, PAPER, FAINT, GOLD = "#23282e", "#ffffff", "#8a9199", "#d99a00"


@dataclass(frozen=True)
class Colours:
    """The shades of one seat: of pieces, outlines, its own fields, letters on pieces and fields."""

    main: str
    dark: str
    light: str
    letter: str
    word: str


SEAT_COLOURS = (
    Colours("#d42a3a", "#6f0d17", "#f4c3c4", "#ffffff", "#d42a3a"),
    Colours("#1d66c4", "#0a2e5c", "#bfd8f3", "#ffffff", "#1d66c4"),
    Colours("#f4bd12", "#6b4c00", "#faeab4", "#2e2100", "#8f6600"),
    Colours("#17914f", "#063f21", "#bce3cb", "#ffffff", "#17914f"),
)
ABSENT = Colours("#c5c9cd", "#9aa0a6", "#e4e6e8", "#ffffff", "#9aa0a6")


@dataclass(frozen=True)
class Theme:
    """The colours of the board of one rule set."""

    table: str
    edge: str
    track: str
    field: str
    rim: str


THEMES = {
    "kimble": Theme("#e3ecf4", "#9db3c8", "#cbd9e6", "#ffffff", "#8fa3b5"),
    "kombat": Theme("#e9e4df", "#b3a597", "#d6cdc4", "#ffffff", "#8d8378"),
    "norske": Theme("#e6eee2", "#a3b899", "#d2dfcb", "#ffffff", "#8a9c81"),
}


class Canvas(Protocol):
    """What the picture is drawn on. ``opacity`` runs from 0 to 1; ``None`` leaves a part out."""

    def disc(
        self,
        spot: tuple[float, float],
        radius: float,
        fill: str | None,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """A disc, or a circle, whose line of ``width`` is centred on its edge."""

    def polygon(
        self,
        points: Points,
        fill: str,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """A convex polygon, corners in clockwise order."""

    def box(
        self,
        corner: tuple[float, float],
        size: tuple[float, float],
        rounding: float,
        fill: str,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """A rectangle with round corners; ``corner`` is the upper left."""

    def line(self, points: Points, stroke: str, width: float, opacity: float = 1.0) -> None:
        """A line through points, with round ends."""

    def text(
        self, spot: tuple[float, float], text: str, size: float, fill: str, anchor: str = "middle"
    ) -> None:
        """Bold text; ``spot`` is the middle of a capital's height; anchor start, middle or end."""

    def group(self, kind: str, **data: object) -> AbstractContextManager[object]:
        """Mark what is drawn inside as one thing, with data for those who read the picture."""


def layout_of(rules: Rules, viewer: int = 0) -> BoardLayout:
    """Return the layout of the board of these rules."""
    return board_layout(rules.board, pieces=rules.pieces, home=rules.home, viewer=viewer)


def seat_colours(plays: Sequence[bool]) -> tuple[Colours, ...]:
    """Return the colours of the seats; those who do not play are grey."""
    return tuple(SEAT_COLOURS[s] if plays[s] else ABSENT for s in range(SEATS))


# ------------------------------------------------------------------------------- the board itself


def draw_board(canvas: Canvas, rules: Rules, layout: BoardLayout, plays: Sequence[bool]) -> None:
    """Draw all that stays: table, track, home bases, stretches, homes, dome."""
    theme, colours = THEMES[rules.name], seat_colours(plays)
    canvas.box((0, 0), (WIDTH, HEIGHT), 0, PAPER)
    canvas.box((8, 8), (WIDTH - 16, 2 * CENTRE - 16), 64, theme.table, theme.edge, 5)
    _draw_track(canvas, rules, layout, theme, plays)
    for seat in layout.seats:
        _draw_seat(canvas, rules, layout, seat, colours[seat.seat])
    for field, spot in enumerate(layout.ring):
        owner = layout.board.starts.index(field) if field in layout.board.starts else None
        tint = theme.field if owner is None else colours[owner].light
        line = theme.rim if owner is None else colours[owner].main
        _draw_field(canvas, spot, rules.home, tint, line, 2.5 if owner is None else 6.0)
        if owner is not None:
            letter = layout.seats[owner].letter if plays[owner] else ""
            canvas.text(spot[:2], letter, 1.05 * spot.radius, colours[owner].word)
    _draw_dome(canvas, layout, theme)


def _arc(radius: float, begin: float, end: float) -> list[tuple[float, float]]:
    steps = max(2, math.ceil((end - begin) / 3.0))
    return [polar(radius, begin + (end - begin) * k / steps) for k in range(steps + 1)]


def _draw_track(
    canvas: Canvas, rules: Rules, layout: BoardLayout, theme: Theme, plays: Sequence[bool]
) -> None:
    """Draw the band under the ring; with battles each sector in the colour of its owner (R19)."""
    spots, board = layout.ring, layout.board
    radius = math.hypot(spots[0].x - CENTRE, spots[0].y - CENTRE)
    band = 2.0 * spots[0].radius + 12.0
    canvas.disc((CENTRE, CENTRE), radius, None, theme.track, band)
    if rules.battles:
        for seat in range(SEATS):
            if plays[seat]:
                _draw_sector(canvas, board, seat, spots, radius, band)
    for k, spot in enumerate(spots):
        gap = (spots[(k + 1) % len(spots)].angle - spot.angle) % 360.0
        _draw_tip(canvas, radius, spot.angle + gap / 2.0, math.radians(gap) * radius - band, theme)


def _draw_tip(canvas: Canvas, radius: float, angle: float, room: float, theme: Theme) -> None:
    """Draw the way round, clockwise, between two fields of the ring, if there is room."""
    if room < 0.0:
        return
    back, front = math.degrees(-4.0 / radius), math.degrees(4.0 / radius)
    points = [polar(radius - 8, angle + back), polar(radius, angle + front),
              polar(radius + 8, angle + back)]  # fmt: skip
    canvas.line(points, theme.rim, 3.0)


def _draw_sector(
    canvas: Canvas, board: Board, seat: int, spots: Sequence[Spot], radius: float, band: float
) -> None:
    start, following = board.starts[seat], board.starts[(seat + 1) % SEATS]
    length = (following - start) % board.ring
    last = (start + length - 1) % board.ring
    before = (spots[start].angle - spots[start - 1].angle) % 360.0
    after = (spots[following].angle - spots[last].angle) % 360.0
    reach = (spots[last].angle - spots[start].angle) % 360.0
    # The round ends of a line reach half its width too far; a third of a step stays open.
    ends = math.degrees(4.0 / radius)
    begin = spots[start].angle - before / 2.0 + ends
    end = spots[start].angle + reach + after / 2.0 - ends
    for offset in (-band / 2.0 + 3.0, band / 2.0 - 3.0):
        canvas.line(_arc(radius + offset, begin, end), SEAT_COLOURS[seat].main, 6.0, 0.9)


def _square(spot: Spot, half: float) -> list[tuple[float, float]]:
    """Return a square round a spot, turned as its field is."""
    x = half * math.cos(math.radians(spot.angle))
    y = half * math.sin(math.radians(spot.angle))
    corners = ((-x + y, -y - x), (x + y, y - x), (x - y, y + x), (-x - y, -y + x))
    return [(spot.x + dx, spot.y + dy) for dx, dy in corners]


def _draw_field(
    canvas: Canvas, spot: Spot, square: bool, fill: str, line: str, width: float
) -> None:
    """Draw one field: round, or square on a board with homes."""
    width = min(width, 0.22 * spot.radius)
    if square:
        canvas.polygon(_square(spot, 0.92 * spot.radius), fill, line, width)
    else:
        canvas.disc(spot[:2], spot.radius - width / 2.0, fill, line, width)


def _draw_seat(
    canvas: Canvas, rules: Rules, layout: BoardLayout, seat: SeatLayout, colours: Colours
) -> None:
    """Draw a home base, the way onto the ring, the stretch and the home of one seat."""
    start = layout.ring[seat.start]
    canvas.line([seat.plate[:2], start[:2]], colours.light, 16.0)
    x, y, radius, _ = seat.plate
    canvas.box((x - radius, y - radius), (2 * radius, 2 * radius), 30 if rules.home else radius,
               colours.light, colours.main, 6)  # fmt: skip
    for spot in seat.base:
        _draw_field(canvas, Spot(*spot[:3], 0.0), rules.home, PAPER, colours.main, 2.5)
    lane = [layout.ring[(seat.start + layout.board.leave) % layout.board.ring], *seat.stretch]
    if rules.home:
        lane.append(seat.home)
    canvas.line([spot[:2] for spot in lane], colours.light, 1.1 * seat.stretch[0].radius)
    if rules.home:
        canvas.polygon(seat.triangle, colours.light, colours.main, 5)
    for spot in seat.stretch:
        _draw_field(canvas, spot, rules.home, PAPER, colours.main, 4)


def _draw_dome(canvas: Canvas, layout: BoardLayout, theme: Theme) -> None:
    """Draw the dome that holds the die; on boards with homes a plain tray."""
    middle, radius = layout.dome[:2], layout.dome.radius
    if layout.has_home:
        canvas.disc(middle, radius - 12, PAPER, theme.edge, 3)
        return
    canvas.disc((middle[0] + 3, middle[1] + 5), radius, INK, opacity=0.16)
    canvas.disc(middle, radius - 2, theme.rim, theme.edge, 4)
    canvas.disc(middle, radius - 22, "#f4f8fb", theme.edge, 3)
    for k in range(4):  # the light falls from the upper left
        shrink, shift = 34.0 + 9.0 * k, 4.0 * k
        canvas.disc((middle[0] - shift, middle[1] - shift), radius - shrink, PAPER, opacity=0.35)
    canvas.line(_arc(radius - 37, 292.0, 338.0), "#dbe7f0", 9.0)


# ------------------------------------------------------------------------------------ the position


def draw_position(canvas: Canvas, layout: BoardLayout, view: View) -> None:
    """Draw what a position adds to the board: last move, pieces, names, die, words."""
    colours = seat_colours([seat.plays for seat in view.seats])
    for seat in view.seats:
        _draw_standing(canvas, layout.seats[seat.seat], seat, colours[seat.seat], view)
    if view.last is not None:
        _draw_last_move(canvas, layout, view.last)
    for seat in view.seats:
        if seat.plays:
            for slot in range(seat.waiting):
                _draw_unit(canvas, layout, Unit(seat.seat, -1, 1), slot)
        if seat.out:
            _cross_out(canvas, layout.seats[seat.seat], colours[seat.seat])
    for unit in view.units:
        _draw_unit(canvas, layout, unit)
    _draw_centre(canvas, layout, view)
    _draw_caption(canvas, layout, view, colours)


def _draw_standing(
    canvas: Canvas, own: SeatLayout, seat: SeatView, colours: Colours, view: View
) -> None:
    """Draw the name of a seat and, by the rim of its home base, whether it acts or has won."""
    if not seat.plays:
        return
    if seat.acts or seat.wins:
        ring = colours.dark if seat.acts else GOLD
        x, y, radius, _ = own.plate
        size, rounding = 2 * radius, 30 if view.rules.home else radius
        canvas.box(
            (x - radius, y - radius),
            (size, size),
            rounding,
            colours.main,
            ring,
            11,
        )
        inner = radius - 10
        canvas.box((x - inner, y - inner), (2 * inner, 2 * inner), max(0, rounding - 10),
                   colours.light)  # fmt: skip
        for spot in own.base:
            _draw_field(canvas, Spot(*spot[:3], 0.0), view.rules.home, PAPER, colours.main, 2.5)
    _draw_name(canvas, own, seat, colours)


def _cross_out(canvas: Canvas, own: SeatLayout, colours: Colours) -> None:
    """Cross out the home base of a seat that is out of the game (R34)."""
    x, y, half = own.plate.x, own.plate.y, 0.78 * own.plate.radius
    canvas.box((x - half, y - half), (2 * half, 2 * half), 20, PAPER, opacity=0.5)
    canvas.line([(x - half, y - half), (x + half, y + half)], colours.dark, 12)
    canvas.line([(x + half, y - half), (x - half, y + half)], colours.dark, 12)


def _draw_name(canvas: Canvas, own: SeatLayout, seat: SeatView, colours: Colours) -> None:
    name = own.name.capitalize()
    if seat.player is not None:
        name += f" P{seat.player}"
    if seat.status:
        name += f" · {seat.status}"
    size = 30.0
    wide = text_width(name, size)
    x, y = own.label
    left = x if own.label_anchor == "start" else x - wide
    with canvas.group("name", seat=own.letter, status=seat.status):
        if seat.acts or seat.wins:
            fill, ink = (colours.main, colours.letter) if seat.acts else (GOLD, INK)
            canvas.box((left - 14, y - 22), (wide + 28, 44), 22, fill, colours.dark, 3)
            canvas.text((left + wide / 2, y), name, size, ink)
        else:
            canvas.text((left + wide / 2, y), name, size, colours.dark)


def _draw_last_move(canvas: Canvas, layout: BoardLayout, move: LastMove) -> None:
    """Draw the way of the unit that moved last, and a burst where pieces were sent home."""
    if move.source is None or move.target is None:
        return
    colours = SEAT_COLOURS[move.seat]
    if move.source < 0:
        start, plate = layout.spot(move.seat, move.target), layout.seats[move.seat].plate
        far = math.hypot(start.x - plate.x, start.y - plate.y)
        part = plate.radius / far  # from the rim of the home base
        rim = (plate.x + part * (start.x - plate.x), plate.y + part * (start.y - plate.y))
        way = [Spot(*rim, start.radius), start]
    else:
        way = [layout.spot(move.seat, p) for p in range(move.source, move.target + 1)]
    target = way[-1]
    with canvas.group("last-move", seat=layout.seats[move.seat].letter,
                      source=move.source, target=move.target):  # fmt: skip
        broad = max(5.0, 0.42 * target.radius)
        canvas.line([spot[:2] for spot in way], colours.dark, broad + 5.0)
        canvas.line([spot[:2] for spot in way], colours.main, broad)
        if move.source >= 0:
            canvas.disc(way[0][:2], 0.6 * way[0].radius, PAPER, colours.main, 0.2 * way[0].radius)
        if move.losses:
            for k, loss in enumerate(move.losses):
                _burst(canvas, target, 1.34 - 0.3 * k, SEAT_COLOURS[loss.seat])
        else:
            canvas.disc(target[:2], 1.22 * target.radius, PAPER, colours.dark, 5.0)


def _burst(canvas: Canvas, spot: Spot, size: float, colours: Colours) -> None:
    """Draw a star of twelve points: three squares turned against each other."""
    for reach, colour in ((size, colours.dark), (size - 0.14, colours.main)):
        for turn in (0.0, 30.0, 60.0):
            canvas.polygon(_square(spot._replace(angle=turn), reach * spot.radius), colour)


def _draw_unit(canvas: Canvas, layout: BoardLayout, unit: Unit, slot: int = 0) -> None:
    """Draw a piece with its letter; several as a small pile with their number."""
    spot, colours = layout.spot(unit.seat, unit.progress, slot), SEAT_COLOURS[unit.seat]
    radius, letter = (
        (0.86 if spot.radius > 24.0 else 0.92) * spot.radius,
        layout.seats[unit.seat].letter,
    )
    line = 0.13 * radius
    with canvas.group("unit", seat=letter, progress=unit.progress, count=unit.count):
        canvas.disc((spot.x + 0.08 * radius, spot.y + 0.14 * radius), radius, INK, opacity=0.22)
        if unit.count > 1:
            lower = (spot.x + 0.2 * radius, spot.y + 0.2 * radius)
            canvas.disc(lower, radius - line / 2, colours.dark, colours.dark, line)
        canvas.disc(spot[:2], radius - line / 2, colours.main, colours.dark, line)
        shine = (spot.x - 0.12 * radius, spot.y - 0.14 * radius)
        canvas.disc(shine, 0.68 * radius, PAPER, opacity=0.13)
        canvas.text(spot[:2], letter, 1.36 * radius, colours.letter)
        if unit.count > 1:
            on_ring = 0 <= unit.progress <= layout.board.leave
            _draw_badge(canvas, spot, radius, spot.angle if on_ring else spot.angle + 90.0, unit)


def _draw_badge(canvas: Canvas, spot: Spot, radius: float, angle: float, unit: Unit) -> None:
    """Write the number of pieces beside a unit, towards ``angle``: no other field lies there."""
    size = max(0.95 * radius, 28.0)
    text = f"×{unit.count}"
    wide, high = text_width(text, size) + 0.5 * size, 1.14 * size
    far = 0.75 * radius + 0.5 * wide
    turn = math.radians(angle)
    x, y = spot.x + far * math.sin(turn), spot.y - far * math.cos(turn)
    canvas.box((x - wide / 2, y - high / 2), (wide, high), high / 2,
               PAPER, SEAT_COLOURS[unit.seat].dark, 3)  # fmt: skip
    canvas.text((x, y), text, size, INK)


_PIPS = {
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    5: ((-1, -1), (1, -1), (0, 0), (1, 1), (-1, 1)),
    6: ((-1, -1), (1, -1), (-1, 0), (1, 0), (1, 1), (-1, 1)),
}


def _draw_die(
    canvas: Canvas, spot: tuple[float, float], size: float, face: int, colours: tuple[str, ...]
) -> None:
    """Draw one die; colours of body, edge and pips."""
    body, edge, pip = colours
    x, y = spot
    canvas.box((x - size / 2, y - size / 2), (size, size), 0.2 * size, body, edge, 0.06 * size)
    for dx, dy in _PIPS[face]:
        canvas.disc((x + 0.25 * size * dx, y + 0.25 * size * dy), 0.095 * size, pip)


def _draw_centre(canvas: Canvas, layout: BoardLayout, view: View) -> None:
    """Draw the die (greyed once played), the throws left, the dice of a battle, whose turn."""
    x, y, radius, _ = layout.dome
    acting = view.acting
    if acting is not None:
        colours = SEAT_COLOURS[acting.seat]
        rim = radius - 6 if layout.has_home else radius - 11
        canvas.disc((x, y), rim, None, colours.main, 12 if layout.has_home else 18)
        if not layout.has_home:
            _draw_pointer(canvas, layout, acting.seat)
    battle = view.last.battle if view.last is not None else None
    size = 0.6 * radius if not layout.has_home else 0.92 * radius
    rows = (view.throws > 1) + (battle is not None)
    up = 0.16 * radius * rows
    if view.die:
        waits = view.die_waits
        look = (PAPER, INK, INK) if waits else ("#eceef0", "#c3c8cd", "#b3b9bf")
        with canvas.group("die", face=view.die, waits=str(waits).lower()):
            _draw_die(canvas, (x, y - up), size, view.die, look)
    elif view.running:
        canvas.text((x, y - up), "?", size, FAINT)
    below = y - up + 0.5 * size
    if battle is not None and view.last is not None:
        below += 0.34 * radius
        _draw_battle(canvas, (x, below - 0.04 * radius), 0.34 * radius, view.last)
        below += 0.14 * radius
    if view.throws > 1:
        for k in range(view.throws):
            step = 0.24 * radius
            dot = (x + step * (k - (view.throws - 1) / 2), below + 0.2 * radius)
            canvas.disc(dot, 0.075 * radius, INK)


def _draw_pointer(canvas: Canvas, layout: BoardLayout, seat: int) -> None:
    """Draw a tip on the rim of the dome towards the corner of the seat to act."""
    angle, radius = corner_angle(seat, layout.viewer), layout.dome.radius
    tip = [polar(radius - 6, angle - 9), polar(radius + 18, angle), polar(radius - 6, angle + 9)]
    canvas.polygon(tip, SEAT_COLOURS[seat].main)


def _draw_battle(canvas: Canvas, spot: tuple[float, float], size: float, move: LastMove) -> None:
    """Draw the two dice of a battle, the attacker's on the left (R18)."""
    if move.battle is None:
        return
    for k, seat in enumerate((move.seat, move.defender)):
        colours = SEAT_COLOURS[seat] if seat is not None else ABSENT
        look = (colours.main, colours.dark, colours.letter)
        with canvas.group("battle-die", face=move.battle[k]):
            _draw_die(canvas, (spot[0] + (k - 0.5) * 1.3 * size, spot[1]), size, move.battle[k],
                      look)  # fmt: skip


def _draw_caption(
    canvas: Canvas, layout: BoardLayout, view: View, colours: Sequence[Colours]
) -> None:
    """Write who is to do what, and what was done last, below the board."""
    left, top, wide, _ = layout.caption
    focus = view.acting or next((seat for seat in view.seats if seat.wins), None)
    if focus is not None:
        shades = colours[focus.seat]
        line = shades.dark if focus.acts else GOLD
        canvas.disc((left + 52, top + 50), 34, shades.main, line, 7)
        canvas.text((left + 52, top + 50), layout.seats[focus.seat].letter, 46, shades.letter)
    _fitting(canvas, (left + 106, top + 30), view.headline(), 42, INK, wide - 290)
    name = view.rules.name
    canvas.text((left + wide - 24, top + 30), name, 28, FAINT, "end")
    _fitting(canvas, (left + 106, top + 76), view.last_sentence(), 30, "#4a525a", wide - 130)


def _fitting(
    canvas: Canvas, spot: tuple[float, float], text: str, size: float, fill: str, room: float
) -> None:
    """Write a text from the left, smaller where it would not fit."""
    if text:
        size = min(size, size * room / text_width(text, size))
        canvas.text(spot, text, size, fill, "start")
