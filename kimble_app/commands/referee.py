"""``kimble referee``: reads the settings of a match that is refereed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def referee(
    match: Annotated[
        Path, typer.Argument(help="file of the match, e.g. final.jsonl; resumed if it exists")
    ],
    rules: Annotated[
        str, typer.Option(help=r"norske and its options, e.g. norske\[late=referee]")
    ] = "norske",
    red: Annotated[str | None, typer.Option(help='two members: "Aino:vichy, Eero:vichy"')] = None,
    blue: Annotated[str | None, typer.Option(help="the same for blue")] = None,
    yellow: Annotated[str | None, typer.Option(help="the same for yellow")] = None,
    green: Annotated[str | None, typer.Option(help="the same for green")] = None,
    players: Annotated[int | None, typer.Option(help="teams, 2 to 4; those named, else 4")] = None,
    starter: Annotated[
        str | None, typer.Option(help="team that begins, as agreed; drawn by lot if left out")
    ] = None,
    cups: Annotated[
        str, typer.Option(help="the cups are marked (at 33 cl) or equal in size")
    ] = "marked",
    seed: Annotated[
        int | None, typer.Option(help="of the lot and of dice the program throws")
    ] = None,
    protocol: Annotated[
        bool, typer.Option("--protocol", help="only write the protocol page of the match")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="the page; beside the match if left out")] = None,
) -> None:
    """Referee a match of Norske Kimble: cups, clocks, members, rulings, and the final protocol.

    Drinks are vichy unless told; the others are beer, cider and long drink.
    Every call is on the disk before it is shown: the match can be resumed after a crash.

    [bold]Example:[/bold] kimble referee final.jsonl --red "Aino:vichy, Eero:vichy" --starter red
    """
    from kimble_app.referee_cli import referee as run

    named = {0: red, 1: blue, 2: yellow, 3: green}
    run(
        match,
        rules=rules,
        players=players,
        teams={seat: text for seat, text in named.items() if text is not None},
        starter=starter,
        cups=cups,
        seed=seed,
        protocol=protocol,
        out=out,
    )
