"""Pictures of a game: text, SVG, pixels and a window, all from one board layout.

>>> from kimble_env import Game, render
>>> game = Game("norske", seed=7)
>>> picture = render.svg(game)
>>> frame = render.rgb_array(game, width=480)

Every function takes the rules and one record of ``kernel.STATE`` (or an array of length one), or a
``Game`` alone. Only :class:`Window` needs more than numpy: the extra ``render`` (pygame-ce).
Front ends that draw for themselves take the coordinates: ``board_layout(board).as_dict()``.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kimble_env.render.as_svg import svg as svg
    from kimble_env.render.as_text import text as text
    from kimble_env.render.human import Window as Window
    from kimble_env.render.layout import BoardLayout as BoardLayout
    from kimble_env.render.layout import board_layout as board_layout
    from kimble_env.render.pixels import rgb_array as rgb_array
    from kimble_env.render.view import LastMove as LastMove

_HOMES = {
    "BoardLayout": "layout",
    "LastMove": "view",
    "Window": "human",
    "board_layout": "layout",
    "rgb_array": "pixels",
    "svg": "as_svg",
    "text": "as_text",
}

__all__ = ["BoardLayout", "LastMove", "Window", "board_layout", "rgb_array", "svg", "text"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kimble_env.render' has no attribute {name!r}")
    value = getattr(import_module(f"kimble_env.render.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
