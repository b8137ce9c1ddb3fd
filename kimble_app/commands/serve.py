"""``kimble serve`` and ``kimble check-dice``: reads what an operator, or a player, wants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free")] = 8000,
    database: Annotated[
        str | None,
        typer.Option(
            help="URL of the games, sqlite:///FILE or postgresql://USER@HOST/NAME; KIMBLE_DATABASE "
            "if left out, else kimble-games.sqlite here",
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="file with the access key; KIMBLE_KEY if left out")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="let other machines in without a key")
    ] = False,
    origin: Annotated[
        list[str] | None, typer.Option(help="a web page that may ask, like https://example.org")
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="an agent of your own that clients may name")
    ] = None,
    depth: Annotated[int, typer.Option(help="deepest search that clients may ask for")] = 3,
    batch: Annotated[int, typer.Option(help="most positions in one request")] = 10_000,
    body: Annotated[int, typer.Option(help="largest body of a request, bytes")] = 2_000_000,
    seconds: Annotated[float, typer.Option(help="longest work for one request")] = 10.0,
    rate: Annotated[
        float, typer.Option(help="requests a second from one address; 0 for any")
    ] = 50.0,
    burst: Annotated[int, typer.Option(help="requests at once from one address")] = 200,
    threads: Annotated[int, typer.Option(help="threads that decide moves")] = 2,
    games: Annotated[int, typer.Option(help="most games going on")] = 10_000,
    keep_days: Annotated[
        float, typer.Option(help="delete games that nobody has touched for so long; 0 for never")
    ] = 0.0,
    proxy: Annotated[
        str | None,
        typer.Option(help="addresses of a proxy whose X-Forwarded-For is to be believed"),
    ] = None,
) -> None:
    """Serve moves and games over HTTP and WebSocket; docs/service.md is for operators.

    Stops on Ctrl-C or SIGTERM. Every accepted move is on the disk before it is answered.

    [bold]Example:[/bold] kimble serve --port 8000, then: curl localhost:8000/v1/move --json
    '{"position": "norske R3,20/B0/Y-/G- R 4 1", "agent": "cautious"}'
    """
    from kimble_app.service.server import run
    from kimble_app.service.settings import DEFAULT_DATABASE, Settings

    url = database or os.environ.get("KIMBLE_DATABASE") or DEFAULT_DATABASE
    key = key_file.read_text(encoding="utf-8").strip() if key_file else os.environ.get("KIMBLE_KEY")
    settings = Settings(
        host=host, port=port, database=url, key=key or None, insecure=insecure,
        origins=tuple(origin or ()), agents=tuple(agent or ()), depth=depth, batch=batch,
        body=body, seconds=seconds, rate=rate, burst=burst, threads=threads, games=games,
        keep_days=keep_days,
    )  # fmt: skip
    run(settings, proxy, say=lambda line: typer.echo(line, err=True))


def check_dice(
    record: Annotated[
        Path, typer.Argument(help="what GET /v1/games/ID/record gave, for example game.json")
    ],
    commitment: Annotated[
        str | None, typer.Option(help="the SHA-256 that you were told when the game was created")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Check every die of a game of the service against the secret told at its end.

    It is the proof that nobody chose the dice: the secret was fixed before the players mixed in
    their own texts. Ends with exit code 2 and names the first die that is not the secret's.

    [bold]Example:[/bold] kimble check-dice game.json --commitment 698a4e54...
    """
    import json as writer

    from kimble_app.service.dice import check_fair_game, read_fair_game

    found = check_fair_game(read_fair_game(record.read_text(encoding="utf-8")), commitment)
    if json:
        typer.echo(writer.dumps(found))
        return
    typer.echo(f"all {found['throws']} throws and {found['battles']} battles are the secret's")
    if commitment is None:
        typer.echo(f"its SHA-256 is {found['commitment']}: is it what you were told at the start?")
