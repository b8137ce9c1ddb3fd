"""``kimble evaluate``: reads the arguments of a match."""

from __future__ import annotations

from typing import Annotated

import typer


def evaluate(
    agents: Annotated[
        list[str],
        typer.Argument(
            help="1 to 4 agents; the last one takes the seats that are left. For example: "
            "cautious random, net:runs/run-001/policy, my_agent.py:play"
        ),
    ],
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example kimble or "norske\[own_collision=mover]"')
    ] = "kimble",
    players: Annotated[
        int | None, typer.Option(help="2 to 4; as many as agents if left out")
    ] = None,
    pieces: Annotated[int | None, typer.Option(help="pieces per seat, 1 to 4")] = None,
    games: Annotated[int, typer.Option(help="at least so many games")] = 2000,
    seed: Annotated[int, typer.Option(help="of the dice")] = 1,
    cap: Annotated[int, typer.Option(help="throws after which a stalled game is cut off")] = 5000,
    threads: Annotated[int | None, typer.Option(help="of compiled play; one per core")] = None,
    workers: Annotated[
        int, typer.Option(help="processes, for slow agents that are asked move by move")
    ] = 1,
    adjust: Annotated[
        str | None,
        typer.Option(help="take the luck of the dice off the results too, by: linear, best"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Play a match over all seat rotations on equal dice; print win shares with intervals.

    [bold]Example:[/bold] kimble evaluate cautious random --rules norske --players 4 --games 20000
    """
    from evaluation.cli import evaluate as play

    play(
        agents,
        rules,
        players,
        games,
        seed,
        json,
        pieces=pieces,
        cap=cap,
        threads=threads,
        workers=workers,
        adjust=adjust,
    )  # prints its table
