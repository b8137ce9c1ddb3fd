"""``kimble compare``, ``kimble tournament`` and ``kimble plan``: read their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RULES = r'rule set, for example kimble or "norske\[own_collision=mover]"'
PLAYERS = "2 to 4; those of the rules if left out"
PIECES = "pieces per seat, 1 to 4"
CAP = "throws after which a stalled game is cut off"
THREADS = "of compiled play; one per core"
WORKERS = "processes, for slow agents that are asked move by move"
ADJUST = "take the luck of the dice off the results, by this evaluator: linear"
JSON = "print one JSON object"
TABLES = "kinds of tables, e.g. 1v3,2v2 (mirror images are added); all if left out"


def _kinds(tables: str | None) -> list[str] | None:
    return [kind.strip() for kind in tables.split(",")] if tables else None


def compare(
    first: Annotated[str, typer.Argument(help="A: a spec, e.g. cautious or my_agent.py:play")],
    second: Annotated[str, typer.Argument(help="B")],
    rules: Annotated[str, typer.Option(help=RULES)] = "kimble",
    players: Annotated[int | None, typer.Option(help=PLAYERS)] = None,
    pieces: Annotated[int | None, typer.Option(help=PIECES)] = None,
    tables: Annotated[str | None, typer.Option(help=TABLES)] = None,
    half_width: Annotated[
        float, typer.Option(help="of the interval at which play stops, in points")
    ] = 0.5,
    games: Annotated[int, typer.Option(help="at most so many games")] = 200_000,
    full: Annotated[
        bool, typer.Option("--full", help="go on to the half-width when the verdict is known")
    ] = False,
    seed: Annotated[int, typer.Option(help="of the dice")] = 1,
    cap: Annotated[int, typer.Option(help=CAP)] = 5000,
    adjust: Annotated[str | None, typer.Option(help=ADJUST)] = None,
    threads: Annotated[int | None, typer.Option(help=THREADS)] = None,
    workers: Annotated[int, typer.Option(help=WORKERS)] = 1,
    json: Annotated[bool, typer.Option("--json", help=JSON)] = False,
) -> None:
    """Is A better than B? Play until it is known, or known to be smaller than the half-width.

    A and B meet at every mixed table on equal dice. The interval holds wherever play stops: equal
    agents are told apart in at most one of twenty comparisons.

    [bold]Example:[/bold] kimble compare my_agent.py:play cautious --rules kombat --players 4
    """
    from evaluation.cli import compare as run

    run(
        first, second, rules, players, pieces=pieces, json=json, kinds=_kinds(tables),
        half_width=half_width / 100.0, games=games, full=full, seed=seed, cap=cap, adjust=adjust,
        threads=threads, workers=workers,
    )  # fmt: skip


def tournament(
    agents: Annotated[list[str], typer.Argument(help="two agents or more, each once")],
    rules: Annotated[str, typer.Option(help=RULES)] = "kimble",
    players: Annotated[int | None, typer.Option(help=PLAYERS)] = None,
    pieces: Annotated[int | None, typer.Option(help=PIECES)] = None,
    games: Annotated[int, typer.Option(help="at least so many games of every pairing")] = 20_000,
    record: Annotated[
        Path | None, typer.Option(help="file of finished games; named by the rules if left out")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="write a page of HTML there")] = None,
    csv: Annotated[Path | None, typer.Option(help="write CSV files into this folder")] = None,
    losses: Annotated[
        bool, typer.Option("--losses", help="add losses per decision on the public positions")
    ] = False,
    tables: Annotated[str | None, typer.Option(help=TABLES)] = None,
    against: Annotated[
        str | None, typer.Option(help="only pairings with one of these, e.g. random,tuned")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the dice")] = 1,
    cap: Annotated[int, typer.Option(help=CAP)] = 5000,
    adjust: Annotated[str | None, typer.Option(help=ADJUST)] = None,
    threads: Annotated[int | None, typer.Option(help=THREADS)] = None,
    workers: Annotated[int, typer.Option(help=WORKERS)] = 1,
    json: Annotated[bool, typer.Option("--json", help=JSON)] = False,
) -> None:
    """Every agent against every other: ratings with intervals, a matrix, a page, CSV.

    Stopped in whatever way, the same command goes on from the record; more games extend it.

    [bold]Example:[/bold] kimble tournament random cautious mixed my_agent.py:play --players 4
    --games 40000 --report page.html
    """
    from evaluation.cli import tournament as run

    run(
        agents, rules, players, games, pieces=pieces, record=record, report=report, csv=csv,
        losses=losses, json=json, threads=threads, workers=workers, kinds=_kinds(tables),
        against=[spec.strip() for spec in against.split(",")] if against else None,
        seed=seed, cap=cap, adjust=adjust,
    )  # fmt: skip


def plan(
    agents: Annotated[
        list[str] | None,
        typer.Argument(help="a line-up, as for kimble evaluate: a pilot match measures its needs"),
    ] = None,
    rules: Annotated[str, typer.Option(help=RULES)] = "kimble",
    players: Annotated[int | None, typer.Option(help="2 to 4; as many as agents")] = None,
    pieces: Annotated[int | None, typer.Option(help=PIECES)] = None,
    half_width: Annotated[float, typer.Option(help="wanted, in points")] = 0.5,
    pilot: Annotated[int, typer.Option(help="games of the pilot match")] = 2000,
    seed: Annotated[int, typer.Option(help="of its dice")] = 1,
    adjust: Annotated[
        str | None, typer.Option(help="measure what luck adjustment saves, by: linear, best")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help=JSON)] = False,
) -> None:
    """How many games for ±0.5 points? Raw, and with the luck of the dice taken off.

    [bold]Example:[/bold] kimble plan cautious random --players 4 --adjust linear
    """
    from evaluation.cli import plan as run

    run(
        agents or [], rules, players, half_width / 100.0, pieces=pieces, pilot=pilot, seed=seed,
        adjust=adjust, json=json,
    )  # fmt: skip
