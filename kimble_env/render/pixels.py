"""The board as pixels, with numpy alone: smooth edges, own font, no window system.

Every shape is a formula for the distance of a pixel to its edge; a pixel within half a pixel of the
edge is mixed. Only the rectangle round a shape is computed. The part of a picture that a game never
changes is drawn once and kept (for the last few boards and sizes), and so is every glyph: a frame
costs a few milliseconds. Equal input gives equal pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.errors import RulesError
from kimble_env.render.font import CAP, advance, strokes, text_width
from kimble_env.render.layout import HEIGHT, WIDTH
from kimble_env.render.scene import draw_board, draw_position, layout_of
from kimble_env.render.view import LastMove, make_view
from kimble_env.rules import Rules

Frame = npt.NDArray[np.uint8]
Cover = npt.NDArray[np.float32]

MIN_WIDTH, MAX_WIDTH = 160, 4096
CAP_HEIGHT = 0.72  # height of a capital, as a part of the size of a text
BOLD = 2.3  # width of a stroke of the font, in grid units


@lru_cache(maxsize=64)
def _rgb(colour: str) -> Cover:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)], np.float32)


def _to_segment(x: Cover, y: Cover, a: tuple[float, float], b: tuple[float, float]) -> Cover:
    """Return the distance of every pixel to the segment from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = max(dx * dx + dy * dy, 1e-12)  # a point is a very short segment
    t = np.clip(((x - a[0]) * dx + (y - a[1]) * dy) / length, 0.0, 1.0)
    distance: Cover = np.hypot(x - a[0] - t * dx, y - a[1] - t * dy)
    return distance


def _inside(distance: Cover) -> Cover:
    """Turn the distance to an edge (negative inside) into how much of a pixel is covered."""
    cover: Cover = np.clip(0.5 - distance, 0.0, 1.0)
    return cover


@lru_cache(maxsize=1024)
def _glyph(character: str, size: float) -> Cover:
    """Return the cover of a glyph whose capital is ``size`` pixels high; read-only.

    The glyph stands 4 grid units right of and below the upper left of the array.
    """
    scale = size / CAP
    wide = int(np.ceil((advance(character) + 6.0) * scale))
    high = int(np.ceil(24.0 * scale))
    y, x = np.mgrid[0:high, 0:wide].astype(np.float32) + np.float32(0.5)
    distance = np.full((high, wide), 1e6, np.float32)
    for stroke in strokes(character):
        points = [((px + 4.0) * scale, (py + 4.0) * scale) for px, py in stroke]
        for a, b in pairwise(points):
            distance = np.minimum(distance, _to_segment(x, y, a, b))
    cover = _inside(distance - np.float32(max(BOLD * scale, 1.0) / 2.0)).astype(np.float32)
    cover.setflags(write=False)
    return cover


class PixelCanvas:
    """A scene.Canvas over a frame uint8 [H, W, 3]; ``scale`` is pixels per unit."""

    def __init__(self, frame: Frame, scale: float) -> None:
        self.frame = frame
        self.scale = scale

    def _grid(
        self, left: float, top: float, right: float, bottom: float
    ) -> tuple[tuple[slice, slice], Cover, Cover]:
        """Return a window of the frame and the middles of its pixels, in pixels."""
        height, width = self.frame.shape[:2]
        x0, x1 = max(0, int(left) - 1), min(width, int(right) + 2)
        y0, y1 = max(0, int(top) - 1), min(height, int(bottom) + 2)
        x = np.arange(x0, max(x0, x1), dtype=np.float32)[None, :] + np.float32(0.5)
        y = np.arange(y0, max(y0, y1), dtype=np.float32)[:, None] + np.float32(0.5)
        return (slice(y0, max(y0, y1)), slice(x0, max(x0, x1))), x, y

    def _mix(self, window: tuple[slice, slice], cover: Cover, colour: str, opacity: float) -> None:
        part = self.frame[window]
        weight = (cover if opacity == 1.0 else cover * np.float32(opacity))[:, :, None]
        mixed = _rgb(colour) - part
        mixed *= weight
        mixed += part
        mixed += np.float32(0.5)
        part[...] = mixed  # cut off to whole numbers: rounded, by the half added

    def _paint(
        self,
        window: tuple[slice, slice],
        distance: Cover,
        fill: str | None,
        stroke: str | None,
        width: float,
        opacity: float,
    ) -> None:
        """Fill a shape and draw its edge, given the distance of every pixel to the edge."""
        if fill is not None:
            self._mix(window, _inside(distance), fill, opacity)
        if stroke is not None and width > 0:
            half = np.float32(max(width * self.scale, 1.0) / 2.0)
            self._mix(window, _inside(np.abs(distance) - half), stroke, opacity)

    def disc(
        self,
        spot: tuple[float, float],
        radius: float,
        fill: str | None,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        x, y, r = spot[0] * self.scale, spot[1] * self.scale, radius * self.scale
        reach = r + width * self.scale
        window, px, py = self._grid(x - reach, y - reach, x + reach, y + reach)
        distance = np.hypot(px - np.float32(x), py - np.float32(y)) - np.float32(r)
        self._paint(window, distance, fill, stroke, width, opacity)

    def polygon(
        self,
        points: Sequence[tuple[float, float]],
        fill: str,
        stroke: str | None = None,
        width: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        corners = [(x * self.scale, y * self.scale) for x, y in points]
        window, px, py = self._around(corners, width)
        distance: Cover = np.full((py.shape[0], px.shape[1]), -1e6, np.float32)
        for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
            length = float(np.hypot(bx - ax, by - ay))
            out = ((px - ax) * (by - ay) - (py - ay) * (bx - ax)) / length
            distance = np.maximum(distance, out.astype(np.float32))
        self._paint(window, distance, fill, stroke, width, opacity)

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
        half_x, half_y = size[0] * self.scale / 2.0, size[1] * self.scale / 2.0
        x, y = corner[0] * self.scale + half_x, corner[1] * self.scale + half_y
        r = rounding * self.scale
        reach = width * self.scale
        window, px, py = self._grid(
            x - half_x - reach, y - half_y - reach, x + half_x + reach, y + half_y + reach
        )
        dx = np.abs(px - np.float32(x)) - np.float32(half_x - r)
        dy = np.abs(py - np.float32(y)) - np.float32(half_y - r)
        outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        distance = outside + np.minimum(np.maximum(dx, dy), 0.0) - np.float32(r)
        self._paint(window, distance.astype(np.float32), fill, stroke, width, opacity)

    def _around(
        self, points: Sequence[tuple[float, float]], width: float
    ) -> tuple[tuple[slice, slice], Cover, Cover]:
        reach = width * self.scale
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        return self._grid(min(xs) - reach, min(ys) - reach, max(xs) + reach, max(ys) + reach)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str,
        width: float,
        opacity: float = 1.0,
    ) -> None:
        corners = [(x * self.scale, y * self.scale) for x, y in points]
        half = np.float32(max(width * self.scale, 1.0) / 2.0)
        segments = list(pairwise(corners))
        if opacity == 1.0:  # segments may then cover each other: each in its own small window
            for a, b in segments:
                window, px, py = self._around((a, b), width)
                self._mix(window, _inside(_to_segment(px, py, a, b) - half), stroke, 1.0)
            return
        window, px, py = self._around(corners, width)
        distance: Cover = np.full((py.shape[0], px.shape[1]), 1e6, np.float32)
        for a, b in segments:
            distance = np.minimum(distance, _to_segment(px, py, a, b))
        self._mix(window, _inside(distance - half), stroke, opacity)

    def text(
        self, spot: tuple[float, float], text: str, size: float, fill: str, anchor: str = "middle"
    ) -> None:
        cap = round(CAP_HEIGHT * size * self.scale * 2.0) / 2.0  # half pixels: few sizes to keep
        if not text or cap < 3.0:
            return
        unit = cap / CAP
        wide = text_width(text, cap / CAP_HEIGHT)
        left = spot[0] * self.scale - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
        x, y = left + unit, spot[1] * self.scale - cap / 2.0
        for character in text:
            self._blit(_glyph(character, cap), round(x - 4.0 * unit), round(y - 4.0 * unit), fill)
            x += advance(character) * unit

    def _blit(self, cover: Cover, x: int, y: int, fill: str) -> None:
        """Mix a glyph into the frame; parts outside the frame are left out."""
        height, width = self.frame.shape[:2]
        x0, y0 = max(x, 0), max(y, 0)
        x1, y1 = min(x + cover.shape[1], width), min(y + cover.shape[0], height)
        if x0 < x1 and y0 < y1:
            part = cover[y0 - y : y1 - y, x0 - x : x1 - x]
            self._mix((slice(y0, y1), slice(x0, x1)), part, fill, 1.0)

    def group(self, kind: str, **data: object) -> AbstractContextManager[object]:
        return nullcontext()


@lru_cache(maxsize=8)
def _board_frame(rules: Rules, plays: tuple[bool, ...], viewer: int, width: int) -> Frame:
    """Return what stays of a board; kept, so never to be written to."""
    frame = np.empty((round(width * HEIGHT / WIDTH), width, 3), np.uint8)
    canvas = PixelCanvas(frame, width / WIDTH)
    draw_board(canvas, rules, layout_of(rules, viewer), plays)
    frame.setflags(write=False)
    return frame


def rgb_array(
    rules: str | Rules | Any,
    state: Any = None,
    *,
    width: int = 640,
    viewer: int = 0,
    last: LastMove | None = None,
) -> Frame:
    """Return the board as pixels.

    Args:
        rules: Rules or their text; or a Game alone, without ``state``.
        state: one game: a record of ``kernel.STATE`` or STATE[1].
        width: pixels across, 160 to 4096. With a multiple of 160 (480, 640, 800, …) both sides are
            multiples of 16, which video encoders like.
        viewer: the seat at the lower left, 0 to 3.
        last: the move to show as the last one, as in :func:`~kimble_env.render.svg`.

    Returns:
        A new array uint8 [H, W, 3], H = 1.1 W, red, green, blue from 0 to 255. Equal input gives
        equal pixels.

    Raises:
        PositionError: ``state`` is not one game, or cannot be drawn under these rules.
        RulesError: rules unknown, ``viewer`` or ``width`` out of range.
    """
    view = make_view(rules, state, last)
    if not isinstance(width, int) or not MIN_WIDTH <= width <= MAX_WIDTH:
        raise RulesError(
            f"width must be a whole number from {MIN_WIDTH} to {MAX_WIDTH}, got {width!r}"
        )
    layout = layout_of(view.rules, viewer)
    plays = tuple(seat.plays for seat in view.seats)
    frame = _board_frame(view.rules, plays, int(viewer), width).copy()
    draw_position(PixelCanvas(frame, width / WIDTH), layout, view)
    return frame
