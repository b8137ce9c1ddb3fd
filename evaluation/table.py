"""The result of a match for people (a table in the terminal) and for programs (JSON)."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from evaluation.match import MatchResult
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "kimble-match-1"


def match_json(result: MatchResult) -> dict[str, Any]:
    """Return a match as plain JSON data; shares are 0..1, intervals are of 95 %."""
    return {
        "format": FORMAT,
        "rules": str(result.rules),
        "rules_hash": result.rules.hash,
        "seats": "".join(SEAT_LETTERS[seat] for seat in result.rules.seats),
        "players": len(result.agents),
        "games": result.games,
        "blocks": len(result.winners),
        "seed": result.seed,
        "cap": result.cap,
        "truncated": result.truncated,
        "truncated_share": result.truncated / result.games,
        "mean_length": result.mean_length,
        "par": 1.0 / len(result.agents),
        "agents": [_agent_json(result, k) for k in range(len(result.agents))],
    }


def _agent_json(result: MatchResult, agent: int) -> dict[str, Any]:
    return {
        "agent": result.agents[agent],
        "games": result.games,
        "wins": int((result.winners == agent).sum()),
        "win_share": result.share(agent),
        "wilson95": list(result.wilson(agent)),
        "bootstrap95": list(result.bootstrap(agent)),
        "win_share_by_seat": {
            name: result.share_at(agent, place) for place, name in enumerate(result.place_names())
        },
    }


def write_json(result: MatchResult, file: IO[str], **more: Any) -> None:
    """Write a match as one JSON object, with further fields at its end."""
    json.dump({**match_json(result), **more}, file, indent=1)
    file.write("\n")


def match_table(result: MatchResult) -> Table:
    """Return the table of a match for ``rich``.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    table = Table(
        title=(
            f"{escape(str(result.rules))}, {len(result.agents)} players, {result.games:,} games, "
            f"par {100 / len(result.agents):.1f} %"
        ),
        caption=_caption(result),
        caption_justify="left",
    )
    table.add_column("agent", overflow="fold")
    table.add_column("wins %", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for name in result.place_names():
        table.add_column(f"at {name}", justify="right", no_wrap=True)
    for k, agent in enumerate(result.agents):
        low, high = result.wilson(k)
        table.add_row(
            escape(agent),
            f"{100 * result.share(k):.1f}",
            f"{100 * low:.1f} to {100 * high:.1f}",
            *(f"{100 * result.share_at(k, place):.1f}" for place in range(len(result.agents))),
        )
    return table


def _caption(result: MatchResult) -> str:
    return (
        f"{len(result.winners):,} seeds of dice, each in all {len(result.agents)} rotations of the "
        f"seats (seed {result.seed}). Mean length {result.mean_length:.0f} throws. Cut off after "
        f"{result.cap:,} throws: {100 * result.truncated / result.games:.2f} %, each counted "
        f"1/{len(result.agents)}."
    )


def print_table(result: MatchResult) -> None:
    """Print a match to standard output.

    Raises:
        KimbleError: rich is not installed.
    """
    table = match_table(result)
    from rich.console import Console

    Console().print(table)
