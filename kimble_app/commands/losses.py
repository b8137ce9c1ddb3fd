"""``kimble losses``: what agents give away, decision by decision."""

from __future__ import annotations

from typing import Annotated

import typer

_RULES = typer.Option(help=r'rule set, for example kimble or "norske\[own_collision=mover]"')
_JSON = typer.Option("--json", help="print one JSON object")


def losses(
    agents: Annotated[
        list[str],
        typer.Argument(help="agents, for example: cautious random search:depth=2 my.py:play"),
    ],
    rules: Annotated[str, _RULES] = "kimble",
    players: Annotated[int | None, typer.Option(help="2 to 4; those of the rules if left out")] = (
        None
    ),
    reference: Annotated[
        str,
        typer.Option(
            help="what judges: the public set of these rules, or an evaluator such as linear, "
            "exact, search:depth=2, my.py:value on positions from stated play"
        ),
    ] = "public",
    positions: Annotated[
        int, typer.Option(help="decisions to sample, for a reference other than public")
    ] = 2000,
    repeats: Annotated[
        int, typer.Option(help="how often each is asked: more for agents that play by chance")
    ] = 1,
    seed: Annotated[int, typer.Option(help="of the play that positions are taken from")] = 1,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Tell what agents lose per decision: best move less the move played, in mWP.

    1 mWP is a thousandth of a win. Decisions have two legal moves or more.

    [bold]Example:[/bold] kimble losses cautious mixed random --rules kombat --players 4
    """
    from evaluation.losses_cli import losses as tell

    tell(agents, rules, players, reference, positions, repeats, seed, json)
