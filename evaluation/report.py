"""The report of a tournament: one summary as plain data, and from it tables, CSV and a page.

Everything that is printed or drawn comes from :func:`summarise`, which is also the JSON.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.ratings import ANCHOR, rate, running_ladder
from evaluation.record import LENGTH_BIN
from evaluation.tabletop import TALLIES, player_seats
from evaluation.tournament import KINDS, Pairing, Tournament, mean_interval
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole

FORMAT = "kimble-tournament-report-1"
YARDSTICKS = ("random", "tuned")
"""Agents that every other one is compared with in a column of its own, where they took part."""

Floats = npt.NDArray[np.float64]


def summarise(tournament: Tournament, running: bool = True) -> dict[str, Any]:
    """Return everything a report says, as plain JSON data; shares are 0..1, intervals of 95 %.

    Args:
        tournament: with at least two blocks of every pairing.
        running: make the OpenSkill ladder too (it takes seconds).

    Raises:
        KimbleError: too little has been played, or a package for ratings is missing.
    """
    if not tournament.pairings or min(len(p.places) for p in tournament.pairings) < 2:
        raise KimbleError("a report needs at least two blocks of every pairing")
    settings = tournament.settings
    adjusted = all(pairing.luck is not None for pairing in tournament.pairings)
    ladder = rate(tournament, adjusted)
    skills = {r.agent: r for r in running_ladder(tournament)} if running else {}
    matrix, widths = _matrices(tournament, adjusted)
    agents = []
    for rating in ladder:
        k = settings.agents.index(rating.agent)
        skill = skills.get(rating.agent)
        agents.append(
            {
                "agent": rating.agent,
                "fingerprint": settings.prints[k],
                "games": rating.games,
                "elo": rating.elo,
                "elo95": [rating.low, rating.high],
                **_points(tournament, k, adjusted),
                **_yardsticks(tournament, k, adjusted),
                "win_share_by_seat": _by_seat(tournament, k),
                **_per_game(tournament, k),
                "openskill": None if skill is None else {"mu": skill.mu, "sigma": skill.sigma},
            }
        )
    order = [settings.agents.index(rating.agent) for rating in ladder]
    return {
        "format": FORMAT,
        "rules": str(settings.rules),
        "rules_hash": settings.rules.hash,
        "players": settings.rules.players,
        "tables": list(settings.kinds),
        "games": tournament.games,
        "seed": settings.seed,
        "cap": settings.cap,
        "truncated": tournament.truncated,
        "truncated_share": tournament.truncated / tournament.games,
        "mean_length": sum(p.plies for p in tournament.pairings) / tournament.games,
        "cpu_seconds": sum(p.seconds for p in tournament.pairings),
        "anchor": ANCHOR if ANCHOR in settings.agents else None,
        "adjust": settings.adjust if adjusted else None,
        "adjust_hash": settings.adjust_hash if adjusted else None,
        **_saving(tournament, adjusted),
        "versions": tournament.versions,
        "agents": agents,
        "matrix": _plain(matrix[np.ix_(order, order)]),
        "matrix_half_width": _plain(widths[np.ix_(order, order)]),
        "lengths": _lengths(tournament),
        "self_tests": _self_tests(tournament, adjusted),
    }


LOSS_BINS = (0.0005, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Upper ends of the classes of the loss histogram, in win probability; the last is open."""


def add_losses(summary: dict[str, Any], tournament: Tournament) -> None:
    """Add the losses per decision of every agent on the public positions to a summary.

    Nothing is added where the rules have no public set.
    """
    from evaluation.losses import public_losses, read_public

    rules = tournament.settings.rules
    agents = []
    for agent in summary["agents"]:
        try:
            found = public_losses(agent["agent"], rules, players=rules.players)
        except KimbleError as error:
            if agents:
                raise
            summary["losses_missing"] = str(error)
            return
        counts = np.bincount(np.digitize(found.losses, LOSS_BINS), minlength=len(LOSS_BINS) + 1)
        agents.append(
            {
                "agent": agent["agent"],
                "mean": 1000.0 * found.mean,
                "half_width": 1960.0 * found.error,
                "shares": (counts / counts.sum()).tolist(),
            }
        )
    ends = [f"{1000 * x:g}" for x in LOSS_BINS]
    names = [f"< {ends[0]}", *(f"to {end}" for end in ends[1:]), f"> {ends[-1]}"]
    summary["losses"] = {
        "reference": found.reference,
        "decisions": len(found.losses),
        "exact": not np.nan_to_num(read_public(rules).errors).any(),
        "bins": names,
        "agents": agents,
    }


def _plain(matrix: Floats) -> list[list[float | None]]:
    return [[None if np.isnan(x) else float(x) for x in row] for row in matrix]


def _own(tournament: Tournament, agent: int) -> list[tuple[Pairing, bool]]:
    """Return the pairings of an agent, and whether it is the first of each."""
    return [
        (pairing, pairing.first == agent)
        for pairing in tournament.pairings
        if agent in (pairing.first, pairing.second)
    ]


def _matrices(tournament: Tournament, adjusted: bool) -> tuple[Floats, Floats]:
    """Return the pairwise matrix of shares and that of their half-widths."""
    size = len(tournament.agents)
    shares, widths = np.full((size, size), np.nan), np.full((size, size), np.nan)
    for pairing in tournament.pairings:
        blocks = tournament.block_points(pairing, adjusted)
        low, high = mean_interval(blocks)
        a, b = pairing.first, pairing.second
        shares[a, b], shares[b, a] = blocks.mean(), 1.0 - blocks.mean()
        widths[a, b] = widths[b, a] = (high - low) / 2.0
    return shares, widths


def _points(tournament: Tournament, agent: int, adjusted: bool) -> dict[str, Any]:
    """Return the mean share of an agent over its pairings, with its interval."""
    own = _own(tournament, agent)
    common = min(len(pairing.places) for pairing, _ in own)
    found: dict[str, Any] = {}
    for name, luck_off in (("points", adjusted), ("raw_points", False)):
        if name == "raw_points" and not adjusted:
            continue
        parts = [tournament.block_points(p, luck_off) for p, _ in own]
        parts = [x if first else 1.0 - x for x, (_, first) in zip(parts, own, strict=True)]
        mean = float(np.mean([x.mean() for x in parts]))
        # Block by block over all opponents: right whatever dice they met.
        together = np.mean([x[:common] for x in parts], axis=0)
        half = 1.96 * float(together.std(ddof=1)) / common**0.5
        found |= {name: mean, f"{name}95": [mean - half, mean + half]}
    return found


def _yardsticks(tournament: Tournament, agent: int, adjusted: bool) -> dict[str, Any]:
    """Return how an agent does alone against n - 1 of each yardstick."""
    alone = KINDS[tournament.settings.rules.players][0]
    found = {}
    for name in YARDSTICKS:
        if name not in tournament.agents:
            continue
        other = tournament.agents.index(name)
        if other == agent or alone not in tournament.settings.kinds:
            continue
        met = tournament.against(agent, other, alone, adjusted)
        if met is not None:
            share, interval, games = met
            found[name] = {"share": share, "interval95": list(interval), "games": games}
    return {"alone_against": found}


def _by_seat(tournament: Tournament, agent: int) -> dict[str, float]:
    """Return for each seat the share of the games with the agent there that it won there."""
    settings = tournament.settings
    shares = {}
    for place, seats in enumerate(player_seats(settings.rules)):
        won, games = 0.0, 0
        for pairing, first in _own(tournament, agent):
            here = settings.seatings[:, place] == (0 if first else 1)
            played = pairing.places[:, here]
            won += (
                float((played == place).sum()) + float((played < 0).sum()) / settings.rules.players
            )
            games += played.size
        shares["".join(SEAT_LETTERS[seat] for seat in seats)] = won / games
    return shares


def _per_game(tournament: Tournament, agent: int) -> dict[str, float]:
    """Return throws, captures and so on per game and place, and the share of choices passed."""
    own = _own(tournament, agent)
    tallies = np.array([p.tallies[0 if first else 1] for p, first in own]).sum(axis=0)
    seats = [(tournament.settings.seatings == (0 if first else 1)).sum() for _, first in own]
    sat = sum(len(p.places) * int(n) for (p, _), n in zip(own, seats, strict=True))
    sums = dict(zip(TALLIES, tallies.tolist(), strict=True))
    means = {f"{name}_per_game": value / sat for name, value in sums.items() if name != "passes"}
    games = sum(p.places.size for p, _ in own)
    return {
        **means,
        "pass_share": sums["passes"] / max(sums["choices"], 1),
        "mean_length": sum(p.plies for p, _ in own) / games,
        "truncated_share": sum(int((p.places < 0).sum()) for p, _ in own) / games,
    }


def _saving(tournament: Tournament, adjusted: bool) -> dict[str, Any]:
    """Return how much luck adjustment saved, over all pairings."""
    if not adjusted:
        return {"variance_ratio": None, "raw_games_for_the_same": None}
    ratios = []
    for pairing in tournament.pairings:
        rest = float(tournament.block_points(pairing, True).var())
        ratios.append(float(tournament.block_points(pairing).var()) / max(rest, 1e-12))
    games = sum(
        round(p.places.size * ratio) for p, ratio in zip(tournament.pairings, ratios, strict=True)
    )
    return {"variance_ratio": float(np.median(ratios)), "raw_games_for_the_same": games}


def _lengths(tournament: Tournament) -> dict[str, Any]:
    """Return the histogram of game lengths: games per bin, and quantiles to the bin."""
    bins: dict[int, int] = {}
    for pairing in tournament.pairings:
        for size, count in pairing.lengths.items():
            bins[size] = bins.get(size, 0) + count
    starts = sorted(bins)
    counts = np.array([bins[k] for k in starts])
    below = np.cumsum(counts) / counts.sum()
    quantiles = {
        str(q): (starts[int(np.searchsorted(below, q / 100))] + 1) * LENGTH_BIN for q in (5, 50, 95)
    }
    return {
        "bin": LENGTH_BIN,
        "games": {str(k * LENGTH_BIN): bins[k] for k in starts},
        "quantiles": quantiles,
    }


def _self_tests(tournament: Tournament, adjusted: bool) -> list[dict[str, Any]]:
    """Check what must hold: fair seats, and raw and adjusted means that agree."""
    tests = []
    seats = tournament.settings.seatings
    fair = all((seats == 0).sum(axis=0) == (seats == 1).sum(axis=0))
    text = "both agents of a pairing sit equally often at every seat"
    tests.append({"name": "seats", "passed": bool(fair), "text": text})
    if adjusted:
        far = []
        for pairing in tournament.pairings:
            luck = tournament.block_points(pairing) - tournament.block_points(pairing, True)
            error = float(luck.std(ddof=1)) / len(luck) ** 0.5
            far.append(abs(float(luck.mean())) / max(error, 1e-12))
        text = f"raw and adjusted means of {len(far)} pairings differ by {max(far):.1f} SE at most"
        tests.append({"name": "adjusted and raw agree", "passed": max(far) < 4.5, "text": text})
    return tests


# --------------------------------------------------------------------------------- tables and files


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage without the sign."""
    return f"{100 * share:.{digits}f}"


def ladder_rows(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the ladder, as texts."""
    players = summary["players"]
    sticks = [s for s in YARDSTICKS if any(s in a["alone_against"] for a in summary["agents"])]
    head = ["", "agent", "Elo", "points"]
    head += [f"v {s}" if players == 2 else f"1 v {players - 1} {s}" for s in sticks]
    rows = []
    for rank, agent in enumerate(summary["agents"], 1):
        low, high = agent["points95"]
        row = [
            str(rank),
            agent["agent"],
            _elo(agent),
            f"{percent(agent['points'])} ±{percent((high - low) / 2, 2)}",
        ]
        for stick in sticks:
            met = agent["alone_against"].get(stick)
            row.append("" if met is None else _with_width(met["share"], met["interval95"]))
        rows.append(row)
    return head, rows


def _elo(agent: dict[str, Any]) -> str:
    half = (agent["elo95"][1] - agent["elo95"][0]) / 2
    return f"{agent['elo']:.0f}" + (f" ±{half:.0f}" if half > 0 else "")


def _with_width(share: float, interval: Sequence[float]) -> str:
    return f"{percent(share)} ±{percent((interval[1] - interval[0]) / 2, 2)}"


def print_report(summary: dict[str, Any], place: str | None = None) -> None:
    """Print the ladder, the pairwise matrix and, if measured, losses to standard output.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    console = Console()
    head, rows = ladder_rows(summary)
    table = Table(
        title=escape(title_of(summary)), caption=caption_of(summary), caption_justify="left"
    )
    for name in head:
        left = name in ("agent",)
        table.add_column(
            name, justify="left" if left else "right", overflow="fold", no_wrap=not left
        )
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
    matrix = matrix_rows(summary, console.width)
    if matrix is None:
        text = f"The matrix of {len(rows)} agents is too wide here: see --report, --csv or --json."
        console.print(text, highlight=False)
    else:
        table = Table(
            title="points of the row against the column (50 is par)", box=SIMPLE_HEAD,
            padding=0, show_edge=False,
        )  # fmt: skip
        for k, name in enumerate(matrix[0]):
            table.add_column(name, justify="right" if k else "left", no_wrap=True)
        for row in matrix[1]:
            table.add_row(*map(escape, row))
        console.print(table)
    if summary.get("losses"):
        head, rows = losses_rows(summary["losses"])
        losses = Table(
            title="loss per decision, mWP; then % of decisions by their loss",
            caption=escape(losses_note(summary["losses"])), caption_justify="left",
            box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False,
        )  # fmt: skip
        for k, name in enumerate(head):
            losses.add_column(
                name, justify="right" if k else "left", overflow="fold", no_wrap=k > 0
            )
        for row in rows:
            losses.add_row(*map(escape, row))
        console.print(losses)
    elif summary.get("losses_missing"):
        console.print(escape(f"no losses: {summary['losses_missing']}"), highlight=False)
    for test in summary["self_tests"]:
        state = "ok" if test["passed"] else "FAILED"
        console.print(
            escape(f"self-test {test['name']}: {state} ({test['text']})"), highlight=False
        )
    if place is not None:
        console.print(escape(f"record: {place}"), highlight=False)


def matrix_rows(
    summary: dict[str, Any], width: int
) -> tuple[list[str], list[list[str]]] | None:
    """Return head and rows of the pairwise matrix as texts that fit a width in letters.

    Whole numbers where one digit more would not fit, names shortened to 12 letters at least; None
    where even that is too wide.
    """
    names = [f"{k} {agent['agent']}" for k, agent in enumerate(summary["agents"], 1)]
    head = [str(k) for k in range(1, len(names) + 1)]
    for digits, least in ((1, 24), (0, 12)):
        cells = [
            ["" if x is None else percent(x, digits) for x in row] for row in summary["matrix"]
        ]
        columns = zip(head, *cells, strict=True)
        room = width - sum(max(map(len, column)) + 1 for column in columns)
        if room >= min(max(map(len, names)), least):
            short = [name if len(name) <= room else f"{name[: room - 1]}…" for name in names]
            rows = [[name, *row] for name, row in zip(short, cells, strict=True)]
            return ["", *head], rows
    return None


def losses_note(losses: dict[str, Any]) -> str:
    """Return what judged the losses, and whom that flatters."""
    count = f"{losses['decisions']:,} decisions"
    text = f"Reference: {losses['reference']}, {count}; intervals of 95 %."
    if not losses["exact"]:
        text += (
            " Its values are estimated by searches that end in the linear value: agents that "
            "search over that value are flattered."
        )
    return text


def losses_rows(losses: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the table of losses per decision."""
    rows = [
        [
            agent["agent"],
            f"{agent['mean']:.2f} ±{agent['half_width']:.2f}",
            *(percent(share) for share in agent["shares"]),
        ]
        for agent in losses["agents"]
    ]
    return ["agent", "mean", *losses["bins"]], rows


def title_of(summary: dict[str, Any]) -> str:
    """Return one line that says what was played."""
    return f"{summary['rules']}, {summary['players']} players, {summary['games']:,} games"


def caption_of(summary: dict[str, Any]) -> str:
    """Return what must stand below every figure of the summary."""
    text = (
        f"Elo: Plackett-Luce, {'random at 0' if summary['anchor'] else 'mean at 0'}. points: share "
        f"of games at mixed tables ({', '.join(summary['tables'])}), par 50, over all opponents. "
        f"Mean length {summary['mean_length']:.0f} throws; cut off after {summary['cap']:,}: "
        f"{100 * summary['truncated_share']:.3f} %. Seed {summary['seed']}."
    )
    if summary["adjust"]:
        text += (
            f" Luck-adjusted by {summary['adjust']} ({summary['adjust_hash']}), which divided the "
            f"variance by {summary['variance_ratio']:.1f}."
        )
    return text


def write_csv(summary: dict[str, Any], folder: str | Path) -> None:
    """Write ``ratings.csv``, ``matrix.csv`` and ``lengths.csv`` into a folder.

    Raises:
        OSError: they cannot be written.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in csv_texts(summary).items():
        write_whole(place / name, text)


def csv_texts(summary: dict[str, Any]) -> dict[str, str]:
    """Return the CSV files by name, that of losses only if measured; shares are 0..1."""
    names = [agent["agent"] for agent in summary["agents"]]
    cells = [["" if x is None else x for x in row] for row in summary["matrix"]]
    lengths = summary["lengths"]
    counts = [[int(k), int(k) + lengths["bin"], n] for k, n in lengths["games"].items()]
    texts = {
        "ratings.csv": _csv(_rating_rows(summary)),
        "matrix.csv": _csv([["", *names], *([n, *r] for n, r in zip(names, cells, strict=True))]),
        "lengths.csv": _csv([["throws_from", "throws_below", "games"], *counts]),
    }
    losses = summary.get("losses")
    if losses:
        shares = [f"share {name} mWP" for name in losses["bins"]]
        head = ["agent", "mean_mwp", "half_width_mwp", *shares]
        rows = [[a["agent"], a["mean"], a["half_width"], *a["shares"]] for a in losses["agents"]]
        texts["losses.csv"] = _csv([head, *rows])
    return texts


def _rating_rows(summary: dict[str, Any]) -> list[list[Any]]:
    seats = list(summary["agents"][0]["win_share_by_seat"])
    sticks = [s for s in YARDSTICKS if any(s in a["alone_against"] for a in summary["agents"])]
    plain = ["throws_per_game", "choices_per_game", "captures_per_game", "lost_per_game",
             "pass_share", "mean_length", "truncated_share"]  # fmt: skip
    head = ["agent", "games", "elo", "elo_low", "elo_high", "points", "points_low", "points_high"]
    head += [f"alone_against_{s}{end}" for s in sticks for end in ("", "_low", "_high")]
    head += [f"win_share_at_{seat}" for seat in seats] + plain
    rows: list[list[Any]] = [head]
    for agent in summary["agents"]:
        row = [agent["agent"], agent["games"], agent["elo"], *agent["elo95"], agent["points"],
               *agent["points95"]]  # fmt: skip
        for stick in sticks:
            met = agent["alone_against"].get(stick)
            row += ["", "", ""] if met is None else [met["share"], *met["interval95"]]
        rows.append([*row, *agent["win_share_by_seat"].values(), *(agent[name] for name in plain)])
    return rows


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
