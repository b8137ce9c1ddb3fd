"""What the command ``kimble evaluate`` does; ``kimble_app`` only reads its arguments."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evaluation.match import DEFAULT_CAP, MatchResult, Progress, play_match
from evaluation.table import print_table, write_json
from kimble_env.errors import KimbleError
from kimble_env.rules import Rules, find_rules


def evaluate(
    specs: Sequence[str | Callable[..., Any]],
    rules: str | Rules = "kimble",
    players: int | None = None,
    games: int = 2000,
    seed: int = 1,
    json: bool = False,
    *,
    pieces: int | None = None,
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    workers: int = 1,
    progress: bool | None = None,
) -> MatchResult:
    """Play a match, print its table (or JSON) to standard output, and return it.

    Args:
        specs: the line-up, 1 to 4 agents. If there are fewer than players the last one takes the
            seats that are left, so ``cautious random`` with four players is one against three.
        rules: rules or their text.
        players: 2 to 4; by default as many as specs (at least 2), or as the Rules given have.
        games: at least this many; rounded up to whole blocks of one game per rotation.
        seed: of the dice.
        json: print one JSON object instead of the table.
        pieces: short for the option ``pieces`` of the rules; given in both and different: an error.
        cap: throws after which a game is cut off.
        threads: threads of compiled play; None for one per processor.
        workers: processes, for agents that are not weight vectors; the result stays the same.
        progress: show a progress bar on standard error; None: if that is a terminal.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    found = find_rules(rules, pieces=pieces) if pieces is not None else find_rules(rules)
    lineup = _line_up(specs, _player_count(specs, rules, found, players))
    if found.players != len(lineup):
        found = found.replace(players=len(lineup))
    start = time.perf_counter()
    with _progress_bar(sys.stderr.isatty() if progress is None else progress) as report:
        result = play_match(
            lineup, found, games, seed, cap=cap, threads=threads, workers=workers, progress=report
        )
    seconds = time.perf_counter() - start
    if json:
        write_json(result, sys.stdout, seconds=round(seconds, 3))
    else:
        print_table(result)
    return result


def _player_count(
    specs: Sequence[Any], rules: str | Rules, found: Rules, players: int | None
) -> int:
    """Return the number of players that the arguments mean."""
    if not 1 <= len(specs) <= 4:
        raise KimbleError(f"a line-up has 1 to 4 agents, got {len(specs)}")
    if found.two_colours or (isinstance(rules, Rules) and players is None):
        count = found.players
    else:
        count = players if players is not None else max(2, len(specs))
    if players is not None and players != count:
        raise KimbleError(f"{found} is for {count} players, but players={players}")
    if count not in (2, 3, 4):
        raise KimbleError(f"players must be 2, 3 or 4, got {count!r}")
    if len(specs) > count:
        raise KimbleError(f"{len(specs)} agents are given for {count} players")
    return count


def _line_up(specs: Sequence[Any], players: int) -> list[Any]:
    return [*specs, *[specs[-1]] * (players - len(specs))]


@contextmanager
def _progress_bar(shown: bool) -> Iterator[Progress | None]:
    """Yield what ``play_match`` reports to: a bar on standard error, with games/s and time left."""
    if not shown:
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        raise KimbleError("the progress bar needs rich: pip install 'kimble-rl[eval]'") from None
    bar = Bar(
        TextColumn("playing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]:,.0f} games/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    start = time.perf_counter()
    with bar:
        task = bar.add_task("", total=None, speed=0.0)

        def report(done: int, total: int) -> None:
            speed = done / max(time.perf_counter() - start, 1e-9)
            bar.update(task, completed=done, total=total, speed=speed)

        yield report
