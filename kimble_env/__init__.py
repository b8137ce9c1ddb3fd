"""Kimble, Kombat Kimble and Norske Kimble: the games and their environments.

>>> from kimble_env import Game
>>> game = Game("norske", seed=7)

The names below are loaded when they are first used, so that ``from kimble_env import Game`` brings
neither Gymnasium nor PettingZoo. Both know the environments after ``import kimble_env`` all the
same: ``gymnasium.make("kimble_env:Kimble-v0")``, ``pettingzoo.make("aec", "kimble/kimble-v0")``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kimble_env import _registration

if TYPE_CHECKING:
    from kimble_env import kimble_v0 as kimble_v0
    from kimble_env.board import Board as Board
    from kimble_env.board import register_board as register_board
    from kimble_env.errors import AgentError as AgentError
    from kimble_env.errors import GameOverError as GameOverError
    from kimble_env.errors import IllegalMoveError as IllegalMoveError
    from kimble_env.errors import IllegalThrowError as IllegalThrowError
    from kimble_env.errors import KimbleError as KimbleError
    from kimble_env.errors import NotationError as NotationError
    from kimble_env.errors import PositionError as PositionError
    from kimble_env.errors import RulesError as RulesError
    from kimble_env.game import Event as Event
    from kimble_env.game import Game as Game
    from kimble_env.game import Move as Move
    from kimble_env.ledger import LedgerError as LedgerError
    from kimble_env.notation import GameRecord as GameRecord
    from kimble_env.notation import Result as Result
    from kimble_env.notation import read_record as read_record
    from kimble_env.notation import write_record as write_record
    from kimble_env.opponents import choose as choose
    from kimble_env.opponents import make_agent as make_agent
    from kimble_env.referee import Referee as Referee
    from kimble_env.refereed import RefereedGame as RefereedGame
    from kimble_env.rules import PRESETS as PRESETS
    from kimble_env.rules import Rules as Rules
    from kimble_env.rules import find_rules as find_rules

__version__ = "0.1.0"

_HOMES = {
    "board": ("Board", "register_board"),
    "errors": (
        "AgentError",
        "GameOverError",
        "IllegalMoveError",
        "IllegalThrowError",
        "KimbleError",
        "NotationError",
        "PositionError",
        "RulesError",
    ),
    "game": ("Event", "Game", "Move"),
    "notation": ("GameRecord", "Result", "read_record", "write_record"),
    "ledger": ("LedgerError",),
    "opponents": ("choose", "make_agent"),
    "refereed": ("RefereedGame",),
    "referee": ("Referee",),
    "rules": ("PRESETS", "Rules", "find_rules"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*sorted(_HOME_OF), "__version__", "kimble_v0"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name in _HOME_OF:
        value = getattr(import_module(f"kimble_env.{_HOME_OF[name]}"), name)
    elif name == "kimble_v0":
        value = import_module("kimble_env.kimble_v0")
    else:
        raise AttributeError(f"module 'kimble_env' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_registration.register_all()
