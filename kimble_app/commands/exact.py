"""``kimble exact``: reads which agent is to be judged, and against whom."""

from __future__ import annotations

from typing import Annotated

import typer


def exact(
    agent: Annotated[
        str, typer.Argument(help="a deterministic agent: cautious, net:NAME, my_agent.py:play …")
    ],
    rules: Annotated[
        str, typer.Option(help=r'rule set, for example norske or "kimble\[pass_allowed=no]"')
    ] = "kimble",
    pieces: Annotated[
        int | None, typer.Option(help="pieces per seat, 1 to 3; 2 if left out")
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(help="random, perfect or any agent; repeat it. Left out: random and perfect"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="duels only: no best answer, no loss per decision")
    ] = False,
    threads: Annotated[int, typer.Option(help="sweeps that run at once")] = 2,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Say exactly how good an agent is: two players, every position, no dice, no interval.

    Win share against random and against perfect play, what the best answer to the agent wins, and
    its loss per decision, weighed by how often it meets each position when it plays itself. The
    agent is asked about every decision of the game: about a million with 2 pieces, a hundred
    million with 3; a value network, or a search over one, about the positions before a throw in
    their place, six times fewer. Ties of weight vectors count as the even lots they are; an agent
    that draws lots of another kind is refused.

    [bold]Examples:[/bold] kimble exact cautious --rules kombat
    kimble exact my_agent.py:play --pieces 2 --versus perfect --versus cautious --json
    """
    import json as writer

    from evaluation.exactly import PERFECT, RANDOM, exactly, print_exactly
    from kimble_env.own_code import prints_aside

    with prints_aside():
        found = exactly(
            agent, rules, pieces, tuple(versus) if versus else (RANDOM, PERFECT), not quick,
            not quick, threads, lambda line: typer.echo(line, err=True),
        )  # fmt: skip
    if json:
        typer.echo(writer.dumps(found, indent=1))
    else:
        print_exactly(found, typer.echo)
