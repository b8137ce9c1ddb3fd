"""The board as text for a terminal: at most 80 columns, with colours or plain (Latin-1 only).

Pieces are the capital letters R, B, Y, G; ``R×2`` moves as one. An empty start is the small letter
of its seat, an empty ring field ``·``, an empty stretch field ``-``. ``>`` stands before the unit
that moved last, ``°`` where it came from (``x`` where it went but did not stay), ``»`` before the
seat to act. The die is ``[5]`` while it waits to be played and ``(5)`` afterwards.

A ring with evenly spaced starts is drawn as a square with the stretches going in from its corners;
any other board is written as lists.
"""

from __future__ import annotations

from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES, SEATS, Board
from kimble_env.errors import RulesError
from kimble_env.render.view import LastMove, SeatView, Unit, View, make_view
from kimble_env.rules import Rules

COLUMNS = 80
_PIECE = ("1;97;41", "1;97;44", "1;30;43", "1;97;42")  # letters on the seat's colour
_OWN = ("31", "34", "33", "32")  # fields in the seat's colour
_BOLD, _DIM, _PLAIN = "1", "2", ""


class _Page:
    """Lines of characters, each with an ANSI style."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.cells = [[(" ", _PLAIN)] * width for _ in range(height)]

    def put(self, x: int, y: int, text: str, style: str = _PLAIN) -> None:
        for k, character in enumerate(text):
            self.cells[y][x + k] = (character, style)

    def lines(self, colour: bool) -> list[str]:
        return [_styled(row) if colour else _bare(row) for row in self.cells]


def _bare(row: list[tuple[str, str]]) -> str:
    return "".join(character for character, _ in row).rstrip()


def _styled(row: list[tuple[str, str]]) -> str:
    out, now = "", _PLAIN
    for character, style in row[: len(_bare(row))]:
        if style != now:
            out += ("\x1b[0m" if now else "") + (f"\x1b[{style}m" if style else "")
            now = style
        out += character
    return out + ("\x1b[0m" if now else "")


def _label(unit: Unit) -> str:
    return SEAT_LETTERS[unit.seat] + (f"×{unit.count}" if unit.count > 1 else "")


# ------------------------------------------------------------------------------ the square board


def _pitch(quarter: int) -> tuple[int, int]:
    """Return the columns and lines from a field to the next, for a side of so many steps."""
    return (6, 2) if quarter <= 8 else (4, 1)


class _Square:
    """Where everything is on the square: field g at ``ring[g]``, stretches at ``lanes[seat]``."""

    def __init__(self, board: Board, viewer: int) -> None:
        quarter = board.ring // 4
        self.pitch = _pitch(quarter)
        self.width, self.height = quarter * self.pitch[0] + 1, quarter * self.pitch[1] + 1
        self.left = (COLUMNS - self.width - 3) // 2
        right, bottom = self.left + self.width - 1, self.height - 1
        # Lower left, upper left, upper right, lower right: the corner, and the way inwards.
        corners = ((self.left, bottom), (self.left, 0), (right, 0), (right, bottom))
        inwards = ((4, -1), (4, 1), (-4, 1), (-4, -1))
        along = ((0, -1), (1, 0), (0, 1), (-1, 0))  # from a corner clockwise to the next
        self.ring = [(0, 0)] * board.ring
        self.lanes: list[list[tuple[int, int]]] = []
        for seat in range(SEATS):
            k = (seat - viewer) % SEATS
            (x, y), (dx, dy), (ax, ay) = corners[k], inwards[k], along[k]
            leave = board.starts[seat] + board.leave
            for n in range(quarter):
                spot = (x + ax * n * self.pitch[0], y + ay * n * self.pitch[1])
                self.ring[(leave + n) % board.ring] = spot
            self.lanes.append([(x + dx * n, y + dy * n) for n in range(1, board.stretch + 1)])

    @staticmethod
    def fits(board: Board) -> bool:
        """Tell whether a board has an even ring, room for its stretches and 80 columns."""
        quarter = board.ring // 4
        steps = {(board.starts[(s + 1) % SEATS] - board.starts[s]) % board.ring for s in range(4)}
        if board.ring % 4 or steps != {quarter} or board.ring - board.leave > 2 or quarter > 14:
            return False
        across, down = _pitch(quarter)
        rows, columns = quarter * down - 1, quarter * across - 1
        return 2 * board.stretch < rows and 8 * board.stretch + 3 <= columns


def _draw_square(view: View, viewer: int) -> _Page:
    board, square = view.rules.board, _Square(view.rules.board, viewer)
    page = _Page(COLUMNS, max(square.height, 8))
    for field, (x, y) in enumerate(square.ring):
        page.put(x, y, "·", _DIM)
        if field in board.starts and view.seats[board.starts.index(field)].plays:
            owner = board.starts.index(field)
            page.put(x, y, SEAT_LETTERS[owner].lower(), _OWN[owner])
    for seat in view.seats:
        if seat.plays:
            for x, y in square.lanes[seat.seat]:
                page.put(x, y, "-", _OWN[seat.seat])
            _draw_panel(page, square, seat, (seat.seat - viewer) % SEATS)
    _draw_move(page, square, view)
    for unit in view.units:
        spot = _square_spot(square, board, unit.seat, unit.progress)
        if spot is not None:
            page.put(*spot, _label(unit), _PIECE[unit.seat])
    if view.die:
        die = f"[{view.die}]" if view.die_waits else f"({view.die})"
        middle = square.left + (square.width - 3) // 2
        page.put(middle, square.height // 2, die, _BOLD if view.die_waits else _DIM)
    return page


def _square_spot(square: _Square, board: Board, seat: int, progress: int) -> tuple[int, int] | None:
    """Return where a progress of a seat is; None in home base and at home: the panel has those."""
    if 0 <= progress <= board.leave:
        return square.ring[(board.starts[seat] + progress) % board.ring]
    if board.stretch_first <= progress <= board.stretch_last:
        return square.lanes[seat][progress - board.stretch_first]
    return None


def _draw_move(page: _Page, square: _Square, view: View) -> None:
    """Mark where the last move began and ended."""
    move, board = view.last, view.rules.board
    if move is None or move.source is None or move.target is None:
        return
    source = _square_spot(square, board, move.seat, move.source)
    target = _square_spot(square, board, move.seat, move.target)
    stays = any(u.seat == move.seat and u.progress == move.target for u in view.units)
    if source is not None:
        page.put(*source, "°", _OWN[move.seat])
    if target is not None:
        x, y = target
        if stays:
            page.put(x - 1, y, ">", _BOLD)
        else:
            page.put(x, y, "x", _OWN[move.seat])


def _draw_panel(page: _Page, square: _Square, seat: SeatView, corner: int) -> None:
    """Write name, standing, waiting and arrived pieces of a seat beside its corner."""
    letter, style = SEAT_LETTERS[seat.seat], _PIECE[seat.seat]
    x = 1 if corner in (0, 1) else COLUMNS - 11
    y = 0 if corner in (1, 2) else len(page.cells) - 3
    page.put(x - 1, y, "»" if seat.acts else " ", _BOLD)
    name = SEAT_NAMES[seat.seat].capitalize()
    page.put(x, y, name, style if seat.acts else _OWN[seat.seat])
    mark = seat.status or (f"P{seat.player}" if seat.player is not None else "")
    page.put(x + len(name) + 1, y, mark, _BOLD)
    for k in range(seat.waiting):
        page.put(x + 2 * k, y + 1, letter, style)
    if seat.home:
        page.put(x, y + 2, "home", _DIM)
        page.put(x + 5, y + 2, _label(Unit(seat.seat, 0, seat.home)), style)


# ------------------------------------------------------------------------------- boards as lists


def _draw_lists(view: View) -> _Page:
    """Write the ring in rows and a line per seat, for boards that make no square."""
    board, cells = view.rules.board, 18
    rows = -(-board.ring // cells)
    page = _Page(COLUMNS, rows + 2 + 2 * SEATS)
    for field in range(board.ring):
        page.put(5 + 4 * (field % cells), field // cells, "·", _DIM)
    for row in range(rows):
        page.put(0, row, f"{row * cells:3}", _DIM)
    spots = {(s, p): divmod((board.starts[s] + p) % board.ring, cells)
             for s in range(SEATS) for p in range(board.leave + 1)}  # fmt: skip
    for seat in view.seats:
        if seat.plays:
            row, column = spots[seat.seat, 0]
            letter = SEAT_LETTERS[seat.seat].lower()
            page.put(5 + 4 * column, row, letter, _OWN[seat.seat])
    move = view.last
    if move is not None and (move.seat, move.source) in spots:
        row, column = spots[move.seat, move.source or 0]
        page.put(5 + 4 * column, row, "°", _OWN[move.seat])
    for unit in view.units:
        if (unit.seat, unit.progress) in spots:
            row, column = spots[unit.seat, unit.progress]
            page.put(5 + 4 * column, row, _label(unit), _PIECE[unit.seat])
            if move is not None and (move.seat, move.target) == (unit.seat, unit.progress):
                page.put(4 + 4 * column, row, ">", _BOLD)
    if view.die:
        page.put(0, rows, "die " + (f"[{view.die}]" if view.die_waits else f"({view.die})"))
    for seat in view.seats:
        if seat.plays:
            _draw_line(page, rows + 2 + 2 * seat.seat, view, seat)
    return page


def _draw_line(page: _Page, y: int, view: View, seat: SeatView) -> None:
    """Write name, waiting pieces, occupied stretch fields and home of one seat."""
    letter, board = SEAT_LETTERS[seat.seat], view.rules.board
    page.put(0, y, "»" if seat.acts else " ", _BOLD)
    page.put(1, y, SEAT_NAMES[seat.seat].capitalize(), _OWN[seat.seat])
    page.put(8, y, seat.status or (f"P{seat.player}" if seat.player is not None else ""), _BOLD)
    for k in range(seat.waiting):
        page.put(13 + 2 * k, y, letter, _PIECE[seat.seat])
    x = 23
    for unit in view.units:
        if unit.seat == seat.seat and board.stretch_first <= unit.progress <= board.stretch_last:
            page.put(x, y, f"{unit.progress}:", _DIM)
            page.put(x + 3, y, _label(unit), _PIECE[seat.seat])
            x += 8
    if seat.home:
        page.put(x, y, "home", _DIM)
        page.put(x + 5, y, _label(Unit(seat.seat, 0, seat.home)), _PIECE[seat.seat])


def text(
    rules: str | Rules | Any,
    state: Any = None,
    *,
    colour: bool = False,
    viewer: int = 0,
    last: LastMove | None = None,
) -> str:
    """Return the board as lines of text, each at most 80 columns.

    Args:
        rules: Rules or their text; or a Game alone, without ``state``.
        state: one game: a record of ``kernel.STATE`` or STATE[1].
        colour: with ANSI colour codes; without, the text is plain Latin-1.
        viewer: the seat at the lower left, 0 to 3.
        last: the move to show as the last one, as in :func:`~kimble_env.render.svg`.

    Raises:
        PositionError: ``state`` is not one game, or cannot be drawn under these rules.
        RulesError: rules unknown, or ``viewer`` out of range.
    """
    view = make_view(rules, state, last)
    if viewer not in range(SEATS):
        raise RulesError(f"viewer must be a seat 0 to 3, got {viewer!r}")
    square = _Square.fits(view.rules.board)
    page = _draw_square(view, viewer) if square else _draw_lists(view)
    title = str(view.rules)
    lines = [title if len(title) <= COLUMNS else title[: COLUMNS - 3] + "...", ""]
    lines += page.lines(colour)
    headline = view.headline()
    lines += ["", f"\x1b[{_BOLD}m{headline}\x1b[0m" if colour else headline]
    if view.last_sentence():
        lines.append(view.last_sentence())
    return "\n".join(lines) + "\n"
