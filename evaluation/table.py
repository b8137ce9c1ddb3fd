"""The result of a match for people (a table in the terminal) and for programs (JSON)."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from evaluation.match import MatchResult
from evaluation.tabletop import TALLIES
from kimble_env import __version__
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "kimble-match-1"


def match_json(result: MatchResult, adjust: str | None = None) -> dict[str, Any]:
    """Return a match as plain JSON data; shares are 0..1, intervals are of 95 %.

    Throws, choices, captures, lost and arrived are means per game and place of the agent. Where
    luck was counted (by the evaluator ``adjust``), each agent has its adjusted share too.
    """
    lengths = np.quantile(result.plies, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
    return {
        "format": FORMAT,
        "rules": str(result.rules),
        "rules_hash": result.rules.hash,
        "seats": "".join(SEAT_LETTERS[seat] for seat in result.rules.seats),
        "players": result.players,
        "games": result.games,
        "blocks": len(result.winners),
        "seed": result.seed,
        "cap": result.cap,
        "truncated": result.truncated,
        "truncated_share": result.truncated / result.games,
        "mean_length": result.mean_length,
        "length_quantiles": dict(zip(("5", "25", "50", "75", "95"), lengths, strict=True)),
        "par": 1.0 / result.players,
        "kimble_rl": __version__,
        **_adjust_json(result, adjust),
        "agents": [_agent_json(result, k) for k in range(len(result.agents))],
    }


def _agent_json(result: MatchResult, agent: int) -> dict[str, Any]:
    return {
        "agent": result.agents[agent],
        "games": result.games,
        "wins": int((result.winners == agent).sum()),
        "win_share": result.share(agent),
        "par": result.par(agent),
        "wilson95": list(result.wilson(agent)),
        "bootstrap95": list(result.bootstrap(agent)),
        "win_share_by_seat": {
            name: result.share_at(agent, place) for place, name in enumerate(result.place_names())
        },
        **{
            f"{name}_per_game": result.per_game(agent, name) for name in TALLIES if name != "passes"
        },
        "pass_share": result.pass_share(agent),
        **({} if result.luck is None else {"adjusted": adjusted_json(result, agent)}),
    }


def _adjust_json(result: MatchResult, adjust: str | None) -> dict[str, Any]:
    if result.luck is None or adjust is None:
        return {}
    from agents.evaluators import make_evaluator

    return {"adjust": adjust, "adjust_hash": make_evaluator(adjust, result.rules).hash}


def adjusted_json(result: MatchResult, agent: int) -> dict[str, Any]:
    """Return the luck-adjusted share of an agent as plain JSON data.

    ``variance_ratio`` is the variance of block scores, raw over adjusted: so many times more raw
    games would give the same interval. ``agreement`` is raw less adjusted in standard errors: a
    self-test that holds within -4..4.
    """
    if result.luck is None:
        raise KimbleError("luck was not counted in this match")
    raw = result.scores[:, :, agent].mean(axis=1)
    luck = result.luck[:, :, agent].mean(axis=1, dtype=np.float64)
    rest = raw - luck
    blocks = len(raw)
    error = float(rest.std(ddof=1)) / blocks**0.5 if blocks > 1 else 0.5
    luck_error = float(luck.std(ddof=1)) / blocks**0.5 if blocks > 1 else 0.5
    share = float(rest.mean())
    return {
        "share": share,
        "interval95": [share - 1.96 * error, share + 1.96 * error],
        "variance_ratio": float(raw.var() / rest.var()) if rest.var() > 1e-12 else 1.0,
        "agreement": float(luck.mean()) / max(luck_error, 1e-12),
    }


def write_json(result: MatchResult, file: IO[str], **more: Any) -> None:
    """Write a match as one JSON object, with further fields at its end."""
    adjust = more.pop("adjust", None)
    json.dump({**match_json(result, adjust), **more}, file, indent=1)
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
            f"{escape(str(result.rules))}, {result.players} players, {result.games:,} games, "
            f"par {100 / result.players:.1f} %"
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
            *(f"{100 * result.share_at(k, place):.1f}" for place in range(result.players)),
        )
    return table


def game_table(result: MatchResult) -> Table:
    """Return the table of what each agent did in a game on average, for ``rich``.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    table = Table(
        title="per game",
        caption="choices: decisions with two legal actions or more; passed: share of them.",
        caption_justify="left",
    )
    table.add_column("agent", overflow="fold")
    for name in ("throws", "choices", "passed %", "captures", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for k, agent in enumerate(result.agents):
        table.add_row(
            escape(agent),
            f"{result.per_game(k, 'throws'):.1f}",
            f"{result.per_game(k, 'choices'):.1f}",
            f"{100 * result.pass_share(k):.1f}",
            f"{result.per_game(k, 'captures'):.2f}",
            f"{result.per_game(k, 'lost'):.2f}",
        )
    return table


def adjusted_table(result: MatchResult, adjust: str) -> Table:
    """Return the table of luck-adjusted shares, for ``rich``.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    rows = [adjusted_json(result, k) for k in range(len(result.agents))]
    ok = all(abs(row["agreement"]) < 4.0 for row in rows)
    table = Table(
        title=escape(f"luck-adjusted by {adjust}"),
        caption=(
            "worth: raw games that would give the same interval. Self-test: raw and adjusted means "
            f"agree within 4 standard errors: {'ok' if ok else 'FAILED'}."
        ),
        caption_justify="left",
    )
    table.add_column("agent", overflow="fold")
    for name in ("wins %", "95 % interval", "variance ÷", "worth", "raw - adj."):
        table.add_column(name, justify="right", no_wrap=True)
    for agent, row in zip(result.agents, rows, strict=True):
        low, high = row["interval95"]
        table.add_row(
            escape(agent),
            f"{100 * row['share']:.2f}",
            f"{100 * low:.2f} to {100 * high:.2f}",
            f"{row['variance_ratio']:.1f}",
            f"{result.games * row['variance_ratio']:,.0f}",
            f"{row['agreement']:+.1f} SE",
        )
    return table


def _caption(result: MatchResult) -> str:
    return (
        f"{len(result.winners):,} seeds of dice, each in all {len(result.seating)} seatings "
        f"(seed {result.seed}). Mean length {result.mean_length:.0f} throws. Cut off after "
        f"{result.cap:,} throws: {100 * result.truncated / result.games:.2f} %, each counted "
        f"1/{result.players}."
    )


def print_table(result: MatchResult, adjust: str | None = None) -> None:
    """Print a match to standard output; ``adjust`` is the evaluator that counted luck.

    Raises:
        KimbleError: rich is not installed.
    """
    tables = [match_table(result), game_table(result)]
    if result.luck is not None and adjust is not None:
        tables.insert(1, adjusted_table(result, adjust))
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print(table)
