"""The errors that kimble_env raises: each says what is wrong, where, and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for a slip of the pen, or nothing if no known word is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


class KimbleError(ValueError):
    """Base of all errors raised for bad input. Nothing has been changed when it is raised."""


class RulesError(KimbleError):
    """A rule set, option or board that cannot be. ``faults`` lists every fault found."""

    def __init__(self, faults: str | Sequence[str]) -> None:
        self.faults: tuple[str, ...] = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("; ".join(self.faults))


class PositionError(KimbleError):
    """A position that cannot be. ``faults`` lists every fault found."""

    def __init__(self, faults: str | Sequence[str]) -> None:
        self.faults: tuple[str, ...] = (faults,) if isinstance(faults, str) else tuple(faults)
        super().__init__("; ".join(self.faults))


class NotationError(KimbleError):
    """A text (position, move, record) that cannot be read."""


class IllegalMoveError(KimbleError):
    """A move that is not legal here; the message lists the legal ones."""


class IllegalThrowError(KimbleError):
    """A throw at the wrong moment, or a die that is not 1..6."""


class AgentError(KimbleError):
    """An agent, spec or weight vector that cannot be, or that does not fit the rules."""


class GameOverError(KimbleError):
    """A throw or move after the end of the game."""
