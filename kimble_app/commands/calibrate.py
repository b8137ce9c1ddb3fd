"""``kimble calibrate``: finds the temperatures of levels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def calibrate(
    agents: Annotated[
        list[str] | None, typer.Argument(help="agents with win chances or scores, without @level")
    ] = None,
    rules: Annotated[str, typer.Option(help="rule set")] = "kimble",
    players: Annotated[int, typer.Option(min=2, max=4, help="how many play")] = 2,
    decisions: Annotated[
        int | None, typer.Option(min=10, help="of the reference; all it has if left out")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="file of levels to write into; the one that agents read if left out"),
    ] = None,
    stale: Annotated[
        bool, typer.Option(help="calibrate again what has changed since, whatever the rules")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Find the temperature of each of an agent's levels, and write them where agents read them.

    Level 10 is the agent itself, level 1 near random; in between each loses by the same factor less
    per decision than the one below. Losses are measured on decisions with reference values. Agents
    that were never calibrated have levels too, by temperatures that suit most.

    [bold]Example:[/bold] kimble calibrate cautious search:depth=1 --rules norske --players 4
    """
    from evaluation import calibrate as levels
    from kimble_app import show
    from kimble_env.errors import KimbleError

    if bool(agents) == stale:
        raise KimbleError("name agents to calibrate, or say --stale without any")
    say = (lambda line: None) if json else print
    place = out if out is not None else levels.levels_path()
    if stale:
        found = levels.calibrate_stale(out, decisions, say)
        last = f"{len(found)} calibrated again in {place}"
    else:
        reference = levels.find_reference(rules, players, decisions)
        found = levels.calibrate_all(agents or [], reference, out, say)
        last = f"measured by {reference.name}, {len(reference.positions):,} decisions; in {place}"
    if json:
        show.print_json({"file": str(place), "agents": found})
    else:
        print(last)
