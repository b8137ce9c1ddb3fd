"""One line on standard error that says how far long work is: rate, time left, a live note."""

from __future__ import annotations

import math
import sys
import time


def clock(seconds: float) -> str:
    """Write seconds as m:ss or h:mm:ss."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ProgressLine:
    """Shows done / total, rate and time left: one line rewritten, or in a pipe a line every 10 s.

    Args:
        total: how much work there is.
        unit: what is counted.
        shown: False shows nothing.
    """

    def __init__(self, total: int, unit: str, shown: bool = True) -> None:
        self.total = total
        self.unit = unit
        self.shown = shown
        self._terminal = sys.stderr.isatty()
        self._first: tuple[float, int] | None = None
        self._next = 0.0

    def update(self, done: int, note: str = "", limit: float = math.inf) -> None:
        """Show that ``done`` of the work is done, at most every second (10 s in a pipe).

        ``limit`` is the number of seconds after which the work ends anyhow.
        """
        now = time.perf_counter()
        if self._first is None:
            self._first = (now, done)
        if not self.shown or now < self._next or done <= self._first[1]:
            return
        self._next = now + (1.0 if self._terminal else 10.0)
        start, before = self._first
        rate = (done - before) / max(now - start, 1e-9)
        left = clock(min((self.total - done) / rate, limit))
        text = (
            f"{min(100 * done / self.total, 100):5.1f} %  {done:,} of {self.total:,} {self.unit}  "
            f"{rate:,.0f}/s  {left} left  {note}"
        )
        end = "\r" if self._terminal else "\n"
        print(f"{text:<100}"[:118] if self._terminal else text.rstrip(), end=end, file=sys.stderr)
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.shown and self._terminal and self._first is not None:
            print(file=sys.stderr)
