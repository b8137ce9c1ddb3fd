"""Says on standard error that functions are being compiled, and adds up how long that takes.

No compiled function depends on this file, so its words may change without a new cache.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from numba.core import event

ROOMS = ("kimble_env", "agents", "evaluation", "training")
"""The packages of this project that compile; what others compile is their affair."""
SECONDS_BETWEEN_LINES = 20.0
SECONDS_BETWEEN_REWRITES = 0.1


class CompilingNote(event.Listener):  # type: ignore[misc]
    """Hears numba begin and end with a function; those found in the cache are never compiled.

    A terminal gets one line that is rewritten and goes when there is nothing to compile; anything
    else gets a line now and then. numba compiles one function at a time (under a lock), with those
    that it calls inside it.

    Args:
        place: where the compiled code is kept.
        quiet: say nothing, only add up.
        clock: returns seconds.

    Attributes:
        functions: how many have been compiled, each set of types counted.
    """

    def __init__(
        self, place: Any, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.place, self.quiet, self.functions = place, quiet, 0
        self._clock = clock
        self._inside = 0  # functions begun and not ended: callers and what they call
        self._seconds = self._began = self._next = 0.0
        self._told = False

    @property
    def seconds(self) -> float:
        """Seconds spent compiling so far in this process, what is under way included."""
        return self._seconds + (self._clock() - self._began if self._inside else 0.0)

    def on_start(self, event: event.Event) -> None:
        """Take note that a function is begun."""
        module = _module_of(event)
        if module.partition(".")[0] not in ROOMS:
            return
        if not self._inside:
            self._began = self._clock()
        self._inside += 1
        if not self.quiet:
            self._say(module)

    def on_end(self, event: event.Event) -> None:
        """Take note that a function is done, or has failed."""
        module = _module_of(event)
        if module.partition(".")[0] not in ROOMS or not self._inside:
            return
        self._inside -= 1
        self.functions += 1
        if not self._inside:
            self._seconds += self._clock() - self._began
        if self.quiet:
            return
        if self._inside:
            self._say(module)
        elif _rewrites(sys.stderr):
            _write(sys.stderr, "\r\033[K")

    def _say(self, module: str) -> None:
        """Say what is being done, unless that was said a moment ago."""
        now, stream, rewrites = self._clock(), sys.stderr, _rewrites(sys.stderr)
        pause = SECONDS_BETWEEN_REWRITES if rewrites else SECONDS_BETWEEN_LINES
        if not self._told:
            self._told, self._next = True, now + pause
            _write(
                stream,
                "kimble: compiling what this needs; the first time that takes from some seconds to "
                f"a few minutes, then it is kept in {self.place}\n",
            )
        if now < self._next:
            return
        self._next = now + pause
        text = f"kimble: compiling {module}; {self.functions} functions in {self.seconds:.0f} s"
        if rewrites:
            width = shutil.get_terminal_size().columns - 1
            _write(stream, f"\r\033[K{text[:width]}")
        else:
            _write(stream, f"{text}\n")


def _module_of(event: event.Event) -> str:
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", None) or ""


def _rewrites(stream: TextIO | None) -> bool:
    """Tell whether a line can be written anew: no, while a progress bar keeps the stream."""
    real = sys.__stderr__
    if real is None or stream is not real:
        return False
    return real.isatty() and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO | None, text: str) -> None:
    """Write, if anybody listens: a note must never be what ends a program."""
    try:
        if stream is not None:
            stream.write(text)
            stream.flush()
    except (OSError, ValueError):
        pass
