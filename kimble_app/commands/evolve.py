"""``kimble train evolve``: reads the settings of a search for weights."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from kimble_app.commands._lazy import is_given


def evolve(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="where the run is kept, e.g. runs/evolve")],
    rules: Annotated[str, typer.Option(help="rule set, for example kimble or norske")] = "kimble",
    players: Annotated[int, typer.Option(help="2 to 4")] = 2,
    generations: Annotated[int, typer.Option(help="of the search")] = 60,
    population: Annotated[int, typer.Option(help="candidates per generation")] = 16,
    games: Annotated[int, typer.Option(help="per candidate and generation")] = 2400,
    check_every: Annotated[int, typer.Option(help="generations between two checks")] = 10,
    check_games: Annotated[int, typer.Option(help="per opponent in a check")] = 6000,
    step: Annotated[float, typer.Option(help="first step size, in spreads of a feature")] = 0.2,
    seed: Annotated[int, typer.Option(help="of dice and samples")] = 1,
    start: Annotated[str, typer.Option(help="the weights to begin with, as an agent")] = "planner",
    opponents: Annotated[
        str, typer.Option(help="who is played against; best and self are the search's own")
    ] = "random,mixed,best,self",
    resume: Annotated[
        bool, typer.Option("--resume", help="go on from the last generation, as it was asked for")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="of compiled play; one per core")] = None,
    publish: Annotated[
        Path | None,
        typer.Option(help="write the best weights into this file of heuristics, as tuned"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Search for weights of the move features by evolution (CMA-ES), against stated opponents.

    A run killed at any moment goes on with --resume and ends with the same weights.

    [bold]Example:[/bold] kimble train evolve runs/evolve --rules norske --players 4
    """
    from training.evolve import Settings, report

    settings = Settings(
        rules=rules,
        players=players,
        generations=generations,
        population=population,
        games=games,
        check_every=check_every,
        check_games=check_games,
        step=step,
        seed=seed,
        start=start,
        opponents=tuple(name.strip() for name in opponents.split(",") if name.strip()),
    )
    named = [field.name for field in fields(settings) if is_given(context, field.name)]
    report(
        settings, folder, resume=resume, insist=named, threads=threads, publish_to=publish,
        as_json=json,
    )  # fmt: skip
