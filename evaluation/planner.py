"""How many games does a figure need? Sample sizes for the win share of a match.

A share p of n independent games has a 95 % half-width of 1.96 sqrt(p (1 - p) / n). Two things
change it, and both can be measured in a short pilot match:

* the *design effect*: games of one block share their dice, which may lower the variance (good
  luck of a seat goes to everybody) or raise it;
* *luck adjustment*: subtracting what the dice gave divides the variance by its ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from evaluation.match import MatchResult
from kimble_env.errors import KimbleError


def check_half_width(half_width: float) -> None:
    """Refuse a half-width that no interval of a share can be asked to have.

    Raises:
        KimbleError: it is not above 0 and below 0.5.
    """
    if not 0.0 < half_width < 0.5:
        raise KimbleError(
            f"half_width must lie above 0 and below 50 points (a share of 0.5), got "
            f"{100.0 * half_width:g} points"
        )


def games_needed(
    half_width: float,
    share: float,
    *,
    confidence: float = 0.95,
    design_effect: float = 1.0,
    variance_ratio: float = 1.0,
    block: int = 1,
) -> int:
    """Return how many games bring an interval down to a half-width.

    >>> games_needed(0.005, 0.25)  # half a point at par of four players
    28811

    Args:
        half_width: wanted, as a share: 0.005 is half a point.
        share: expected win share, 0..1.
        confidence: of the interval.
        design_effect: variance of a mean over blocks, over that of independent games.
        variance_ratio: how many times smaller adjustment makes the variance.
        block: games per block; the answer is a multiple of it.

    Raises:
        KimbleError: numbers out of range.
    """
    check_half_width(half_width)
    for name, value, good in (
        ("share", share, 0.0 <= share <= 1.0),
        ("confidence", confidence, 0.0 < confidence < 1.0),
        ("design_effect", design_effect, 0.0 < design_effect < math.inf),
        ("variance_ratio", variance_ratio, 0.0 < variance_ratio < math.inf),
        ("block", block, block >= 1),
    ):
        if not good:
            raise KimbleError(f"{name} is out of range: {value!r}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    games = z * z * share * (1.0 - share) * design_effect / variance_ratio / half_width**2
    return max(1, math.ceil(games / block)) * block


def half_width_of(games: int, share: float, confidence: float = 0.95) -> float:
    """Return the half-width that a number of independent games gives.

    Raises:
        KimbleError: numbers out of range.
    """
    if games < 1 or not 0.0 <= share <= 1.0:
        raise KimbleError(f"expected games of at least 1 and a share of 0..1, got {games}, {share}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    return z * math.sqrt(share * (1.0 - share) / games)


def design_effect(result: MatchResult, agent: int) -> float:
    """Return the variance of an agent's share over blocks, over that of independent games."""
    blocks = result.scores[:, :, agent].mean(axis=1)
    share = float(blocks.mean())
    alone = share * (1.0 - share) / result.winners.shape[1]
    if len(blocks) < 2 or alone == 0.0:
        return 1.0
    return float(blocks.var(ddof=1)) / alone


@dataclass(frozen=True)
class Need:
    """What one agent of a line-up needs for a half-width.

    agent, share: from the pilot match, or a typical case. design_effect: measured, or 1.
    games: raw. variance_ratio, adjusted_games: with luck adjustment, None where not measured.
    """

    agent: str
    share: float
    design_effect: float
    games: int
    variance_ratio: float | None = None
    adjusted_games: int | None = None


def typical_needs(half_width: float, players: int) -> list[Need]:
    """Return what typical win shares need, without any pilot match.

    Raises:
        KimbleError: numbers out of range.
    """
    if players not in (2, 3, 4):
        raise KimbleError(f"players must be 2, 3 or 4, got {players!r}")
    cases = {"at par": 1.0 / players, "a strong agent against random ones": 0.75 if players == 2
             else 0.5 if players == 3 else 0.4}  # fmt: skip
    return [
        Need(name, share, 1.0, games_needed(half_width, share, block=players))
        for name, share in cases.items()
    ]


def measured_needs(
    result: MatchResult, half_width: float, ratios: Sequence[float] | None = None
) -> list[Need]:
    """Return what each agent of a pilot match needs.

    Args:
        result: of the pilot; a thousand games are plenty.
        half_width: wanted.
        ratios: variance ratio of luck adjustment per agent, if it was measured.

    Raises:
        KimbleError: numbers out of range.
    """
    needs = []
    block = result.winners.shape[1]
    for k, agent in enumerate(result.agents):
        share = result.share(k)
        effect = max(design_effect(result, k), 1e-3)
        raw = games_needed(half_width, share, design_effect=effect, block=block)
        ratio = None if ratios is None else float(ratios[k])
        fewer = None
        if ratio is not None:
            fewer = games_needed(
                half_width, share, design_effect=effect, variance_ratio=ratio, block=block
            )
        needs.append(Need(agent, share, effect, raw, ratio, fewer))
    return needs


def needs_json(needs: Sequence[Need], **more: Any) -> dict[str, Any]:
    """Return needs as plain JSON data."""
    return {"format": "kimble-plan-1", **more, "needs": [vars(need) for need in needs]}


def print_needs(
    needs: Sequence[Need], title: str, caption: str, say: Callable[[float], str] | None = None
) -> None:
    """Print needs as a table; ``say`` turns a number of games into the time they take.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    table = Table(title=escape(title), caption=escape(caption), caption_justify="left")
    adjusted = any(need.variance_ratio is not None for need in needs)
    table.add_column("agent" if say else "case", overflow="fold")
    names = ["wins %", "design", "games"] + (["time"] if say else [])
    names += ["variance ÷", "adjusted"] if adjusted else []
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for need in needs:
        row = [escape(need.agent), f"{100 * need.share:.1f}", f"{need.design_effect:.2f}"]
        row += [f"{need.games:,}"] + ([say(need.games)] if say else [])
        if adjusted:
            row += [f"{need.variance_ratio:.1f}", f"{need.adjusted_games:,}"]
        table.add_row(*row)
    Console().print(table)
