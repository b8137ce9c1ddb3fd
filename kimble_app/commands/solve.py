"""``kimble solve``: reads what is to be solved."""

from __future__ import annotations

from typing import Annotated

import typer


def solve(
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example "kimble\[pass_allowed=no]"')
    ] = "kimble",
    pieces: Annotated[int | None, typer.Option(help="pieces per seat, 1 to 4")] = None,
    adjacent: Annotated[
        bool, typer.Option("--adjacent", help="neighbours instead of seats opposite each other")
    ] = False,
    tolerance: Annotated[
        float | None, typer.Option(help="largest change in the last sweep; by pieces if left out")
    ] = None,
    bracket: Annotated[
        bool | None,
        typer.Option(
            "--bracket/--no-bracket",
            help="bound the value from both sides too (up to 3 pieces if left out)",
        ),
    ] = None,
    value: Annotated[
        bool, typer.Option("--value/--no-value", help="without it the bracket alone, no table")
    ] = True,
    play: Annotated[
        bool | None,
        typer.Option(
            "--play/--no-play", help="throws and passes of perfect play (default: up to 3 pieces)"
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="sweeps that run at once")] = 2,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Solve the two-player game exactly, keep its table, and print its figures.

    Up to 3 pieces take seconds to minutes; 4 pieces of kimble took 13 to 18 minutes of one core
    and 11.5 GB of memory: interrupted, the same command goes on from the last finished layer (with
    4 pieces; smaller games begin again).

    [bold]Example:[/bold] kimble solve --rules kimble --pieces 2
    """
    import json as writer

    from agents.exact.report import solve_game
    from kimble_env.errors import KimbleError

    if not value and bracket is False:
        raise KimbleError("--no-value and --no-bracket together leave nothing to solve")
    found = solve_game(
        rules, pieces, adjacent, bracket, play, tolerance, threads,
        say=lambda line: typer.echo(line, err=True), value=value,
    )  # fmt: skip
    if json:
        typer.echo(writer.dumps(found, indent=1))
        return
    for name, value in found.items():
        if value is not None:  # not asked for
            typer.echo(f"{name:20}{_shown(value)}")


def _shown(value: object) -> str:
    """Return a figure for people: 1,234,567 or 0.514756; anything else as it is."""
    if isinstance(value, float):
        return f"{value:.8g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
