"""What the command ``kimble losses`` does; ``kimble_app`` only reads its arguments."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from typing import Any

from evaluation.losses import PHASES, Losses, decision_losses, read_public, sample_decisions
from evaluation.match import check_numbers
from kimble_env import __version__
from kimble_env.errors import KimbleError
from kimble_env.own_code import prints_aside
from kimble_env.rules import find_rules


def losses(
    agents: Sequence[str],
    rules: str = "kimble",
    players: int | None = None,
    reference: str = "public",
    positions: int = 2000,
    repeats: int = 1,
    seed: int = 1,
    json: bool = False,
) -> list[Losses]:
    """Print what each agent loses per decision, and return it.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    found = find_rules(rules)
    if players is not None:
        if players not in (2, 3, 4):
            raise KimbleError(f"players must be 2, 3 or 4, got {players!r}")
        found = found.replace(players=players)
    check_numbers(positions=(positions, 1), repeats=(repeats, 1), seed=(seed, 0))
    judge: Any = read_public(found) if reference == "public" else reference
    asked = judge.positions if reference == "public" else sample_decisions(found, positions, seed)
    with prints_aside():
        results = [decision_losses(agent, asked, found, judge, repeats) for agent in agents]
    if json:
        data = {
            "format": "kimble-losses-1",
            "rules": str(found),
            "rules_hash": found.hash,
            "players": found.players,
            "unit": "mWP",
            "repeats": repeats,
            "kimble_rl": __version__,
            "agents": [result.as_json() for result in results],
        }
        print(json_text.dumps(data, indent=1))
    else:
        _print_losses(results)
    return results


def _print_losses(results: Sequence[Losses]) -> None:
    first = results[0]
    print(
        f"{first.rules}, {first.rules.players} players, {len(first.losses)} decisions, judged by "
        f"{first.reference}"
    )
    print("loss per decision in mWP (thousandths of a win), ± its 95 % interval")
    width = max(5, *(len(result.agent) for result in results))
    columns = ("mean", "±", "median", "90 %", "99 %", "best %", "pass %", *PHASES)
    print(f"{'agent':{width}}" + "".join(f"{name:>9}" for name in columns))
    for result in sorted(results, key=lambda r: r.mean):
        data = result.as_json()
        phases = [data["phases"].get(name, {}).get("mean") for name in PHASES]
        numbers = (
            data["mean"], 1.96 * 1000.0 * result.error, *data["quantiles"].values(),
            100.0 * result.best, 100.0 * float(result.passes.mean()), *phases,
        )  # fmt: skip
        print(f"{result.agent:{width}}" + "".join(_number(n) for n in numbers))


def _number(value: float | None) -> str:
    return f"{'–':>9}" if value is None else f"{value:9.2f}"
