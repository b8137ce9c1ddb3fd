"""The board as SVG: one self-contained text, with a title and data for scripts and tests.

Every piece is ``<g class="unit" data-seat="R" data-progress="5" data-count="1">``, the die
``<g class="die" data-face="4" data-waits="true">``, names ``<g class="name" ...>``; the last move
``<g class="last-move" data-seat data-source data-target>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kimble_env.errors import RulesError
from kimble_env.render.layout import HEIGHT, WIDTH
from kimble_env.render.scene import draw_board, draw_position, layout_of
from kimble_env.render.view import LastMove, make_view
from kimble_env.rules import Rules

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
CAP_HEIGHT = 0.72  # of the font size, in the fonts above


def _number(value: float) -> str:
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


class SvgCanvas:
    """A scene.Canvas that collects SVG elements."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def _paint(self, fill: str | None, stroke: str | None, width: float, opacity: float) -> str:
        out = f' fill="{fill or "none"}"'
        if stroke is not None and width > 0:
            out += f' stroke="{stroke}" stroke-width="{_number(width)}"'
        return out + (f' opacity="{opacity:g}"' if opacity != 1.0 else "")

    def disc(
        self,
        spot: tuple[float, float],
        radius: float,
        fill: str | None,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        x, y = spot
        paint = self._paint(fill, stroke, width, opacity)
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        self.parts.append(f"<circle {place}{paint}/>")

    def polygon(
        self,
        points: Sequence[tuple[float, float]],
        fill: str,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        paint = self._paint(fill, stroke, width, opacity) + ' stroke-linejoin="round"'
        self.parts.append(f'<polygon points="{_points(points)}"{paint}/>')

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
        place = f'x="{_number(corner[0])}" y="{_number(corner[1])}"'
        place += f' width="{_number(size[0])}" height="{_number(size[1])}"'
        if rounding:
            place += f' rx="{_number(rounding)}"'
        self.parts.append(f"<rect {place}{self._paint(fill, stroke, width, opacity)}/>")

    def line(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str,
        width: float,
        opacity: float = 1.0,
    ) -> None:
        paint = self._paint(None, stroke, width, opacity)
        paint += ' stroke-linecap="round" stroke-linejoin="round"'
        self.parts.append(f'<polyline points="{_points(points)}"{paint}/>')

    def text(
        self, spot: tuple[float, float], text: str, size: float, fill: str, anchor: str = "middle"
    ) -> None:
        if not text:
            return
        x, y = spot[0], spot[1] + CAP_HEIGHT * size / 2.0
        place = f'x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}"'
        style = f'fill="{fill}" text-anchor="{anchor}"'
        self.parts.append(f"<text {place} {style}>{escape(text)}</text>")

    @contextmanager
    def group(self, kind: str, **data: object) -> Iterator[None]:
        attributes = "".join(
            f" data-{name}={quoteattr(str(value))}" for name, value in data.items()
        )
        self.parts.append(f'<g class="{kind}"{attributes}>')
        yield
        self.parts.append("</g>")


def svg(
    rules: str | Rules | Any,
    state: Any = None,
    *,
    width: int = 560,
    viewer: int = 0,
    last: LastMove | None = None,
) -> str:
    """Return the board as SVG.

    Args:
        rules: Rules or their text; or a Game alone, without ``state``.
        state: one game: a record of ``kernel.STATE`` or STATE[1].
        width: of the picture in CSS pixels, at least 1; it is 1.1 times as high.
        viewer: the seat at the lower left, 0 to 3.
        last: the move to show as the last one; by default the one that the record remembers. While
            a die waits the record remembers no move, see :meth:`LastMove.from_state`.

    Returns:
        One ``<svg>`` element without outside references; equal input gives equal text.

    Raises:
        PositionError: ``state`` is not one game, or cannot be drawn under these rules.
        RulesError: rules unknown, ``viewer`` or ``width`` out of range.
    """
    view = make_view(rules, state, last)
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise RulesError(f"width must be a whole number of at least 1, got {width!r}")
    layout = layout_of(view.rules, viewer)
    canvas = SvgCanvas()
    with canvas.group("board", rules=str(view.rules), board=view.rules.board.name):
        draw_board(canvas, view.rules, layout, [seat.plays for seat in view.seats])
    draw_position(canvas, layout, view)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{round(width * HEIGHT / WIDTH)}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'font-family="{FONT}" font-weight="700">'
    )
    title = f"{view.rules.name.capitalize()}: {view.headline()}"
    words = f"<title>{escape(title)}</title>", f"<desc>{escape(view.description())}</desc>"
    return "\n".join([head, *words, *canvas.parts, "</svg>\n"])
