"""``kimble export``: makes a model that ships of a trained network."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path, typer.Argument(help="of a run: holds value.safetensors, value.json")],
    name: Annotated[str, typer.Argument(help="of the model, such as kimble-2p")],
    games: Annotated[int, typer.Option(help="games behind each figure of the card")] = 20_000,
    out: Annotated[
        Path | None, typer.Option(help="where to; left out: agents/models of this installation")
    ] = None,
    threads: Annotated[int, typer.Option(help="threads that play the games of the card")] = 1,
    json: Annotated[bool, typer.Option("--json", help="print the model's JSON")] = False,
) -> None:
    """Write a network as ONNX and safetensors, with its JSON, model card and golden vectors.

    The card's figures are measured now: matches against random, mixed and tuned, all seats on
    equal dice, and with two players the loss on decisions with exact values. Play it as
    [bold]net:OUT/NAME[/bold].

    [bold]Example:[/bold] kimble export runs/first kimble-2p --out models
    """
    from agents.value_net import MODELS
    from training.export import card
    from training.export import export as ship

    place = MODELS if out is None else out
    config = ship(folder, name, games=games, out=place, threads=threads)
    typer.echo(json_module.dumps(config) if json else card(name, config))
    if not json:
        typer.echo(f"agent   net:{name if out is None else out / name}")
