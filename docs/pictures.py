"""Draw the pictures of the documents anew: ``python docs/pictures.py`` writes ``docs/images``.

``--check`` changes nothing and fails if a picture is stale; tests/test_render.py does the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kimble_env import Game
from kimble_env.render import svg

IMAGES = Path(__file__).resolve().parent / "images"

# Name of the picture: position text, move played from it (or none), battle dice (or none).
PICTURES: dict[str, tuple[str, str | None, tuple[int, int] | None]] = {
    "kimble": ("kimble R3,26/B0,1,29/Y10,28,31/G7 R 5 1", "3-8", None),
    "kombat": ("kombat R3,30/B1,14/Y5,28/G7 R 5 1", "3-8", (5, 2)),
    "norske": ("norske R0x2,9,H/B4x3,20/Y29,31,Hx2/G2,15 R 2 1", "9-11", None),
    "kimble-two-players": ("kimble R0,18,30/Y5,21,28 Y 4 1", None, None),
    "norske-ludo52": ("norske[board=ludo52] R3x2,40,H/B1,14,52/Y12,55/G0x3 B 6 1", None, None),
    "kombat-cross40": ("kombat[board=cross40] R3,41/B1,14/Y12,30,42 B - 1", None, None),
}


def draw(name: str) -> str:
    """Return one picture as SVG."""
    text, move, battle = PICTURES[name]
    game = Game.from_text(text)
    if move is not None:
        game.play(move, battle)
    return svg(game)


def main() -> int:
    stale = []
    for name in PICTURES:
        path = IMAGES / f"{name}.svg"
        picture = draw(name)
        if not path.exists() or path.read_text(encoding="utf-8") != picture:
            stale.append(path)
            if "--check" not in sys.argv:
                path.parent.mkdir(exist_ok=True)
                path.write_text(picture, encoding="utf-8", newline="\n")
    for path in stale:
        print(f"images/{path.name}: {'stale' if '--check' in sys.argv else 'renewed'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
