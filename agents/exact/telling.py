"""Lines on long work: how far it is and about how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from kimble_env._jit import NOTE

Say = Callable[[str], None]

SECONDS_BETWEEN_LINES = 5.0
LEAST_SHARE = 0.02
"""Nothing is said of the time left before so much is done."""
ALMOST = 0.95
"""A part that takes longer than others did counts as so much done."""


class Telling:
    """Says now and then how far work is.

    Args:
        say: told the lines; None: nobody.
        name: what works.
    """

    def __init__(self, say: Say | None, name: str) -> None:
        self._say, self._name = say, name
        self._told = time.monotonic()
        self._began = self._told - NOTE.seconds  # of a clock that stands still while compiling

    def note(self, what: str, done: float) -> None:
        """Say what has been done, a share ``done`` of all, unless something was said just now."""
        now = time.monotonic()
        if self._say is None or now - self._told < SECONDS_BETWEEN_LINES:
            return
        self._told = now
        text = f"{self._name}: {what}"
        if done >= LEAST_SHARE:
            seconds = (now - NOTE.seconds - self._began) * (1.0 / done - 1.0)
            left = f"{seconds / 60:.0f} min" if seconds >= 120.0 else f"{seconds:.0f} s"
            text += f", about {left} more"
        self._say(text)


class Sweeping(Telling):
    """Says how far work is that sweeps over one part after another, each as often as it needs.

    Args:
        say, name: as above.
        cells: of all parts together.
    """

    def __init__(self, say: Say | None, name: str, cells: int) -> None:
        super().__init__(say, name)
        self._all, self._done, self._swept = cells, 0, 0
        self._cells = self._sweeps = 0

    def start(self, cells: int) -> None:
        """Go on to the next part; the one before is done."""
        self._done += self._cells
        self._swept += self._cells * self._sweeps
        self._cells, self._sweeps = cells, 0

    def sweep(self, what: str) -> None:
        """Note one more sweep over the part at work; ``what`` says how far that is."""
        self._sweeps += 1
        usual = self._swept / self._done if self._done else float("inf")
        done = self._done + self._cells * min(self._sweeps / max(usual, 1.0), ALMOST)
        share = done / self._all
        if share >= LEAST_SHARE:
            what += f", some {100.0 * share:.0f} % of the work"
        self.note(what, share)
