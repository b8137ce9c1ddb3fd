"""Progress on standard error: games done, games/s of this run, time left.

A bar in a terminal; in a file or a pipe a line now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluation.match import Progress
from kimble_env.errors import KimbleError

SECONDS_BETWEEN_LINES = 10.0


class Speed:
    """Games/s and time left, counted from the first report of this run."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._before: int | None = None  # games that an earlier run had played

    def of(self, done: int, total: int) -> tuple[str, str]:
        """Return games/s and the time left as texts."""
        if self._before is None:
            self._before, self._start = done, time.perf_counter()
        speed = (done - self._before) / max(time.perf_counter() - self._start, 1e-9)
        return f"{speed:,.0f}", clock((total - done) / speed) if speed > 0 else "-"


@contextmanager
def progress_bar(shown: bool | None = None, label: str = "playing") -> Iterator[Progress | None]:
    """Yield what the rooms report to, or None where nothing is shown.

    Args:
        shown: show the bar; None: a bar if standard error is a terminal, else lines.
        label: stands before both.

    Raises:
        KimbleError: rich is not installed.
    """
    if shown is None and not sys.stderr.isatty():
        yield _lines(label)
        return
    if shown is False:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
    except ImportError:
        raise KimbleError("the progress bar needs rich: pip install 'kimble-rl[eval]'") from None
    bar = Bar(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]} games/s"),
        TextColumn("{task.fields[left]} left"),
        console=Console(stderr=True),
        transient=True,
    )
    speeds = Speed()
    with bar:
        task = bar.add_task("", total=None, speed="-", left="-")

        def report(done: int, total: int) -> None:
            speed, left = speeds.of(done, total)
            bar.update(task, completed=done, total=total, speed=speed, left=left)

        yield report


def _lines(label: str) -> Progress:
    """Return a report that writes a line when some seconds have passed since the last."""
    speeds, told = Speed(), time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal told
        speed, left = speeds.of(done, total)
        if time.monotonic() - told >= SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            text = f"{label}: {done:,} of {total:,} games, {speed} games/s, {left} left"
            print(text, file=sys.stderr, flush=True)

    return report


def clock(seconds: float) -> str:
    """Return seconds as 0:05, 12:34 or 1:02:03."""
    whole = round(min(seconds, 359_999))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
