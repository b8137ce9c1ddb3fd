"""``kimble analyze``: a recorded game judged, as a page."""

from __future__ import annotations

from errno import EISDIR, ENOENT
from pathlib import Path
from typing import Annotated

import typer


def analyze(
    record: Annotated[Path, typer.Argument(help="file of one or more recorded games")],
    out: Annotated[
        Path | None, typer.Option(help="the page; beside the record if left out")
    ] = None,
    game: Annotated[
        int | None, typer.Option(help="which game of the file, from 1; the last if left out")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="what values positions: exact, linear, net:NAME; the best if left out"),
    ] = None,
    ahead: Annotated[
        int | None, typer.Option(help="0 or 1 throws that the reference looks ahead")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print it as one JSON object; a page only with --out")
    ] = False,
) -> None:
    """Judge a recorded game: what every decision gave away, and what was luck.

    Exact where a table of the solved game exists, else by a value network, else by the fitted
    linear value, each one throw ahead; the page says which.

    [bold]Example:[/bold] kimble play cautious mixed --seat none --record game.jsonl &&
    kimble analyze game.jsonl
    """
    from evaluation.analysis import analyse
    from kimble_app.analysis_page import analysis_page
    from kimble_app.show import print_analysis, print_json
    from kimble_app.watching import pick_game
    from kimble_env.files import write_whole

    page = out or (None if json else record.with_suffix(".html"))
    chosen, _ = pick_game(record, game)
    if page is not None and not page.parent.is_dir():  # said now, not after the work
        raise FileNotFoundError(ENOENT, "there is no such folder", str(page.parent))
    if page is not None and page.is_dir():
        raise IsADirectoryError(EISDIR, "that is a folder, name a file", str(page))
    found = analyse(chosen, reference=reference, ahead=ahead)
    if page is not None:
        write_whole(page, analysis_page(found))
    if json:
        print_json(found.as_dict())
    else:
        print_analysis(found, page)
