"""Do rollouts play better than the policy that they play on with? Measured, not believed.

On decisions with exact values, two players: what the policy loses per decision, and what the agent
loses that plays the move after which its rollouts come out best. Plain rollouts go to the end of
the game and count who won; the others stop after some throws and have luck subtracted::

    python -m benchmarks.rollouts --rules kimble --policy cautious --out rollouts.json

Losses are in thousandths of a win (mWP), with standard errors; ``against`` is the difference from
the policy on the same decisions. CPU times are those of one core of this machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.calibrate import find_reference
from kimble_env import __version__
from kimble_env.files import write_whole
from kimble_env.opponents import decision_keys, make_agent

PLAIN = (10, 30, 100, 300, 1000, 3000)
WITHOUT_LUCK = ((10, 10), (10, 40), (30, 40), (100, 40))  # rollouts, throws
COST = 60_000  # decisions times plain rollouts, about


def losses(spec: str, reference: Any, decisions: int) -> tuple[np.ndarray, float]:
    """Return what an agent loses in each of the first decisions, and CPU seconds per decision."""
    agent = make_agent(spec, reference.rules)
    positions = reference.positions[:decisions].copy()
    keys = decision_keys(positions)
    agent.act(positions[:1], keys[:1])  # compile
    start = time.process_time()
    actions = agent.act(positions, keys)
    seconds = time.process_time() - start
    return reference.losses[np.arange(decisions), actions], seconds / decisions


def rows(
    rules: str, policy: str, evaluator: str, cost: int, kinds: str = "all"
) -> Iterator[dict[str, Any]]:
    """Measure each way of rolling out: ``plain``, without ``luck``, or ``all``."""
    reference = find_reference(rules, 2)
    most = len(reference.positions)
    own, seconds = losses(policy, reference, most)
    yield _row(policy, own, own, seconds)
    judged, seconds = losses(f"search:depth=1,eval={evaluator}", reference, most)
    yield _row(f"search:depth=1,eval={evaluator}", judged, own, seconds)
    ways = [] if kinds == "luck" else [(f"n={n},plies=0,luck=no", cost // n) for n in PLAIN]
    if kinds != "plain":
        ways += [(f"n={n},plies={k}", cost // (n * k // 4)) for n, k in WITHOUT_LUCK]
    for options, count in ways:
        spec = f"rollouts:{options},policy={policy},eval={evaluator}"
        decisions = max(50, min(most, 2000, count))
        lost, seconds = losses(spec, reference, decisions)
        yield _row(spec, lost, own[:decisions], seconds)


def _row(spec: str, lost: np.ndarray, own: np.ndarray, seconds: float) -> dict[str, Any]:
    root = np.sqrt(len(lost))
    difference = lost - own
    return {
        "agent": spec,
        "decisions": len(lost),
        "loss_mwp": round(1000 * float(lost.mean()), 2),
        "error": round(1000 * float(lost.std(ddof=1) / root), 2),
        "against_policy": round(1000 * float(difference.mean()), 2),
        "against_error": round(1000 * float(difference.std(ddof=1) / root), 2),
        "cpu_ms_per_decision": round(1000 * seconds, 3),
    }


def main() -> None:
    """Measure, print a line each, and write a JSON file."""
    parser = argparse.ArgumentParser(description="Loss of rollouts against that of their policy.")
    parser.add_argument("--rules", default="kimble", help="kimble or kombat: exact values exist")
    parser.add_argument("--policy", default="cautious")
    parser.add_argument("--eval", default="linear")
    parser.add_argument("--kinds", choices=("all", "plain", "luck"), default="all")
    parser.add_argument("--cost", type=int, default=COST, help="decisions times rollouts, about")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = []
    for row in rows(options.rules, options.policy, options.eval, options.cost, options.kinds):
        found.append(row)
        print(
            f"{row['agent']:<70} {row['decisions']:>6} decisions  loss {row['loss_mwp']:6.2f} ± "
            f"{row['error']:.2f} mWP  against the policy {row['against_policy']:+6.2f} ± "
            f"{row['against_error']:.2f}  {row['cpu_ms_per_decision']:.2f} ms",
            flush=True,
        )
    if options.out is not None:
        about = {
            "version": __version__, "numpy": np.__version__, "python": platform.python_version(),
            "rules": options.rules, "rows": found,
        }  # fmt: skip
        write_whole(options.out, json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
