"""A small font of strokes, so that pixels need no font file and look the same everywhere.

Every glyph is a few polylines on a grid: x from 0, y from 0 (top of a capital) over 4 (top of a
small letter) and 12 (the line letters stand on) down to 16. A point is two characters, base 36. A
stroke that begins with ``~`` is rounded by cutting its corners (Chaikin 1974).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

Point = tuple[float, float]

CAP = 12.0
"""Height of a capital in grid units."""
GAP = 4.2  # between two glyphs, stroke included
SPACE = 4.0

GLYPHS: dict[str, str] = {
    "A": "0c 40 8c|18 78",
    "B": "00 0c|~00 70 76 06|~06 86 8c 0c",
    "C": "~82 70 00 0c 7c 8a",
    "D": "00 0c|~00 80 8c 0c",
    "E": "70 00 0c 7c|06 66",
    "F": "70 00 0c|06 66",
    "G": "~82 70 00 0c 8c 87|87 57",
    "H": "00 0c|80 8c|06 86",
    "I": "00 0c",
    "J": "~60 6c 0c 09",
    "K": "00 0c|80 07|34 8c",
    "L": "00 0c 7c",
    "M": "0c 00 58 a0 ac",
    "N": "0c 00 8c 80",
    "O": "~40 80 8c 0c 00 40",
    "P": "00 0c|~00 80 87 07",
    "Q": "~40 80 8c 0c 00 40|58 8c",
    "R": "00 0c|~00 80 87 07|37 8c",
    "S": "~81 70 00 06 86 8c 1c 0b",
    "T": "00 80|40 4c",
    "U": "~00 0c 8c 80",
    "V": "00 4c 80",
    "W": "00 2c 53 8c a0",
    "X": "00 8c|80 0c",
    "Y": "00 46 80|46 4c",
    "Z": "00 80 0c 8c",
    "a": "~06 14 64 6c|~68 08 0c 4c 6a",
    "b": "00 0c|~04 64 6c 0c",
    "c": "~66 54 04 0c 5c 6a",
    "d": "60 6c|~64 04 0c 6c",
    "e": "08 68|~68 64 04 0c 5c 6a",
    "f": "~50 20 2c|04 44",
    "g": "~64 6g 0g|~64 04 0c 6c",
    "h": "00 0c|~07 04 64 6c",
    "i": "04 0c|00 01",
    "j": "~24 2g 0g|20 21",
    "k": "00 0c|64 09|28 6c",
    "l": "00 0c",
    "m": "04 0c|~07 04 54 5c|~57 54 a4 ac",
    "n": "04 0c|~07 04 64 6c",
    "o": "~34 64 6c 0c 04 34",
    "p": "04 0g|~04 64 6c 0c",
    "q": "64 6g|~64 04 0c 6c",
    "r": "04 0c|~08 04 54",
    "s": "~64 04 08 68 6c 0c",
    "t": "~20 2c 5c|04 54",
    "u": "~04 0c 6c 64|64 6c",
    "v": "04 3c 64",
    "w": "04 2c 56 8c a4",
    "x": "04 6c|64 0c",
    "y": "04 3c|64 1g",
    "z": "04 64 0c 6c",
    "0": "~40 70 7c 0c 00 40",
    "1": "03 30 3c",
    "2": "~03 00 70 76 0c|0c 7c",
    "3": "~02 00 70 76 36|~36 76 7c 0c 0a",
    "4": "5c 50 08 78",
    "5": "70 10 06|~06 15 75 7c 0c 0a",
    "6": "~71 60 00 0c 7c 75 05|05 06",
    "7": "00 70 2c",
    "8": "~30 70 76 06 00 30|~46 76 7c 0c 06 46",
    "9": "~0b 1c 7c 70 00 07 77|77 76",
    ".": "0c 0c",
    ",": "1c 0e",
    ":": "05 05|0c 0c",
    ";": "15 15|1c 0e",
    "-": "08 58",
    "–": "08 78",
    "+": "34 3a|07 67",
    "×": "04 6a|64 0a",
    "=": "06 66|09 69",
    "/": "0c 50",
    "·": "07 07",
    "(": "~30 06 3c",
    ")": "~00 36 0c",
    "[": "30 00 0c 3c",
    "]": "00 30 3c 0c",
    "'": "00 02",
    "_": "0c 8c",
    "*": "14 5a|54 1a|07 67",
    "!": "00 08|0c 0c",
    "?": "~02 00 70 76 46 48|4c 4c",
}
UNKNOWN = "00 70 7c 0c 00"


def _rounded(points: list[Point]) -> list[Point]:
    """Cut every corner three times; the ends stay."""
    for _ in range(3):
        cut = [points[0]]
        for (ax, ay), (bx, by) in pairwise(points):
            cut.append((0.75 * ax + 0.25 * bx, 0.75 * ay + 0.25 * by))
            cut.append((0.25 * ax + 0.75 * bx, 0.25 * ay + 0.75 * by))
        points = [*cut, points[-1]]
    return points


@lru_cache(maxsize=256)
def strokes(character: str) -> tuple[tuple[Point, ...], ...]:
    """Return the polylines of a character, in grid units; a box for one that the font lacks."""
    if character == " ":
        return ()
    out = []
    for stroke in GLYPHS.get(character, UNKNOWN).split("|"):
        points = [(float(int(p[0], 36)), float(int(p[1], 36))) for p in stroke.strip("~").split()]
        out.append(tuple(_rounded(points) if stroke.startswith("~") else points))
    return tuple(out)


@lru_cache(maxsize=256)
def advance(character: str) -> float:
    """Return how far the next glyph begins to the right, in grid units."""
    if character == " ":
        return SPACE + GAP / 2
    return max(x for stroke in strokes(character) for x, _ in stroke) + GAP


def text_width(text: str, size: float) -> float:
    """Return the width of a text whose capitals are ``0.72 * size`` high, as ``size`` measures."""
    if not text:
        return 0.0
    return (sum(advance(c) for c in text) - GAP + 2.0) * 0.72 * size / CAP
