"""How strong is search, and how fast? Luck-adjusted win shares against a heuristic, and CPU time.

::

    python -m benchmarks.searches --rules kimble --players 2 --out search-kimble-2p.json

One searching agent sits against copies of the heuristic, in all rotations of the seats on equal
dice (``evaluation.luck.play_adjusted``). Intervals are 95 %. Speeds are decisions per second of CPU
time of one core, on positions with two legal actions or more from random games.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.luck import play_adjusted
from kimble_env import __version__
from kimble_env.files import write_whole
from kimble_env.opponents import decision_keys, make_agent
from kimble_env.rules import Rules, find_rules
from kimble_env.testing import random_positions

GAMES = {1: 8000, 2: 4000, 3: 1000}
"""Games per depth, at least."""


def speed(spec: str, rules: Rules, seconds: float = 1.0) -> float:
    """Return the decisions per CPU second of an agent asked about 200 positions at a time."""
    agent = make_agent(spec, rules)
    positions = random_positions(rules, 200, seed=1)
    keys = decision_keys(positions)
    agent.act(positions[:2], keys[:2])  # compile
    start, rounds = time.process_time(), 0
    while (used := time.process_time() - start) < seconds:
        agent.act(positions, keys)
        rounds += 1
    return len(positions) * rounds / used


def strength(spec: str, opponent: str, rules: Rules, games: int) -> dict[str, Any]:
    """Play one agent against copies of another; return its adjusted share and the raw one."""
    lineup = [spec, *[opponent] * (len(rules.seats) - 1)]
    result = play_adjusted(lineup, rules, games, threads=1)
    raw = result.raw
    return {
        "against": opponent,
        "games": raw.games,
        "share": round(100 * result.share(0), 2),
        "half_width": round(196 * result.error(0), 2),
        "raw_share": round(100 * raw.share(0), 2),
        "raw_half_width": round(50 * float(np.ptp(raw.wilson(0))), 2),
        "cut_off": raw.truncated,
        "luck_by": f"{result.evaluator} {result.evaluator_hash}",
    }


def main() -> None:
    """Measure, print a line each, and write a JSON file."""
    parser = argparse.ArgumentParser(description="Strength and speed of searches.")
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--players", type=int, default=2)
    parser.add_argument("--eval", default="linear")
    parser.add_argument("--opponent", nargs="+", default=["tuned"])
    parser.add_argument("--depth", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--games", type=float, default=1.0, help="times as many as usual")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rules = find_rules(options.rules, players=options.players)
    found = []
    for depth in options.depth:
        spec = f"search:depth={depth},eval={options.eval}"
        per_second = round(speed(spec, rules))
        for opponent in options.opponent:
            games = round(options.games * GAMES.get(depth, 500))
            row = {"agent": spec, **strength(spec, opponent, rules, games)}
            row["decisions_per_cpu_second"] = per_second
            found.append(row)
            print(
                f"{spec} against {opponent}: {row['share']:.1f} ± {row['half_width']:.1f} % (raw "
                f"{row['raw_share']:.1f} ± {row['raw_half_width']:.1f}), {row['games']:,} games; "
                f"{per_second:,} decisions per CPU second",
                flush=True,
            )
    if options.out is not None:
        about = {
            "version": __version__, "numpy": np.__version__, "python": platform.python_version(),
            "rules": str(rules), "players": options.players, "rows": found,
        }  # fmt: skip
        write_whole(options.out, json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
