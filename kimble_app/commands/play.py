"""``kimble play``: a game at the terminal, you against any agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def play(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            help="who sits clockwise behind you; the last one takes the seats that are left. "
            "The best quick agent of the rules if left out"
        ),
    ] = None,
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example kombat or "norske\[pieces=2]"')
    ] = "kimble",
    players: Annotated[
        int | None, typer.Option(help="2 to 4; one more than agents if left out")
    ] = None,
    pieces: Annotated[int | None, typer.Option(help="pieces per seat, 1 to 4")] = None,
    seat: Annotated[
        str, typer.Option(help="your seat: R, B, Y or G; several for several people, or none")
    ] = "R",
    seed: Annotated[int | None, typer.Option(help="of the dice; drawn if left out")] = None,
    record: Annotated[
        Path | None, typer.Option(help="file to keep the game in; named by the time if left out")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="go on with the game of this record, and keep it there")
    ] = None,
    hint: Annotated[
        str | None, typer.Option(help="who answers a ?; the best that fits if left out")
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="throw, and play forced moves, without asking")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="at the end one JSON object; the board on stderr")
    ] = False,
) -> None:
    """Play at the terminal: Enter throws, a number or a move's text moves, ? ranks the moves.

    u takes back your last choice, q stops; the record is written after every throw, so that a game
    can be gone on with, watched (kimble watch) and judged (kimble analyze).

    [bold]Examples:[/bold] kimble play cautious random --rules kombat;
    agents alone: kimble play cautious random --seat none --record game.jsonl
    """
    from kimble_app.playing import Settings, run

    run(
        Settings(agents or [], rules, players, pieces, seat, seed, record, resume, hint, auto, json)
    )
