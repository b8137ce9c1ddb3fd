"""``kimble watch``: a recorded game, throw by throw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def watch(
    record: Annotated[Path, typer.Argument(help="file of one or more recorded games")],
    game: Annotated[
        int | None, typer.Option(help="which game of the file, from 1; the last if left out")
    ] = None,
    boards: Annotated[
        bool, typer.Option("--boards", help="print every board instead of a line per throw")
    ] = False,
    delay: Annotated[
        float | None, typer.Option(min=0.0, help="let it run, with so many seconds a step")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print one JSON object per throw, positions included")
    ] = False,
) -> None:
    """Watch a recorded game: by keys in a terminal, as a line per throw in a pipe.

    [bold]Examples:[/bold] kimble watch game.jsonl;  kimble watch game.jsonl --boards | less
    """
    from kimble_app.watching import watch as run

    run(record, game, boards, delay, json)
