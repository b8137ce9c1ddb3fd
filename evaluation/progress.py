"""A progress bar on standard error: games done, games/s of this run, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from evaluation.match import Progress
from kimble_env.errors import KimbleError


@contextmanager
def progress_bar(shown: bool | None = None, label: str = "playing") -> Iterator[Progress | None]:
    """Yield what the rooms report to, or None where nothing is shown.

    Args:
        shown: show the bar; None: if standard error is a terminal.
        label: stands before the bar.

    Raises:
        KimbleError: rich is not installed.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
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
    start = time.perf_counter()
    before: int | None = None  # games that an earlier run had played
    with bar:
        task = bar.add_task("", total=None, speed="-", left="-")

        def report(done: int, total: int) -> None:
            nonlocal before, start
            if before is None:  # counting begins with the first report of this run
                before, start = done, time.perf_counter()
            speed = (done - before) / max(time.perf_counter() - start, 1e-9)
            left = clock((total - done) / speed) if speed > 0 else "-"
            bar.update(task, completed=done, total=total, speed=f"{speed:,.0f}", left=left)

        yield report


def clock(seconds: float) -> str:
    """Return seconds as 0:05, 12:34 or 1:02:03."""
    whole = round(min(seconds, 359_999))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
