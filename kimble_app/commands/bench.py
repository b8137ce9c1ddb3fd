"""``kimble bench``: a small speed check of this machine."""

from __future__ import annotations

from typing import Annotated

import typer


def bench(
    rules: Annotated[str, typer.Option(help="rule set")] = "kimble",
    agent: Annotated[
        str | None, typer.Option(help="who answers; the best quick one if left out")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="the median of so many counts")] = 3,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Measure how fast this machine plays, per second of CPU time of one core.

    The comparison with other programs is make bench, in a checkout of the project.

    [bold]Example:[/bold] kimble bench --rules norske
    """
    from kimble_app import show
    from kimble_app.speed import check

    found = check(rules, agent, rounds)
    if json:
        show.print_json(found)
        return
    print(f"{found['rules']} on {found['cores']} cores, Python {found['python']}; one core:")
    for row in found["rows"].values():
        print(f"{row['per_cpu_second']:>14,}  {row['text']} per CPU second")
