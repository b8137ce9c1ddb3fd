"""The figures and plots of ``docs/solution.md``, made by one command::

    python -m evaluation.solution --pieces 2     figures of every agent, 2 pieces; and the plots
    python -m evaluation.solution --plots        plots and tables alone, from the figures kept

Figures are kept in ``docs/solution.json`` after each agent, with the versions that made them; what
is there already is not computed again (``--again`` does). The losses with four pieces come from the
decision sets of ``agents/exact/data``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from agents.exact.decisions import read_decisions
from agents.exact.duels import Evaluator
from agents.exact.report import solve_game
from agents.heuristics import heuristic_names
from evaluation.exactly import TOLERANCE, account, exactly, game_of
from evaluation.solution_tables import write_tables
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.opponents import make_agent

RULE_SETS = ("kimble[pass_allowed=no]", "kimble", "kombat[pass_allowed=no]", "kombat", "norske")
DOCS = Path(__file__).parent.parent / "docs"
DATA = "solution.json"
ANSWER = ("best_response", "exploitability", "unsettled")
"""What ``exactly`` says of the best answer."""
WORTH_A_PLOT = 5
"""Fewer agents are read off the table as well."""
PERFECT_PLAYS = ("kimble[pass_allowed=no]", "kombat[pass_allowed=no]", "norske")
"""Rule sets in which perfect play ends for sure, so that what it holds can be added up."""

Data = dict[str, dict[str, Any]]


def agents() -> tuple[str, ...]:
    """Return the specs of the ladder: ``random``, ``random:mask`` and every heuristic."""
    return ("random", "random:mask", *heuristic_names())


def read(folder: Path) -> Data:
    """Return the figures kept in a folder, {} if there are none yet."""
    path = folder / DATA
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep(folder: Path, data: Data, part: str, key: str, value: Any) -> None:
    """Add a figure and write them all."""
    data.setdefault(part, {})[key] = value
    versions = {name: metadata.version(name) for name in ("numpy", "numba")}
    try:
        versions["kimble-rl"] = metadata.version("kimble-rl")
    except metadata.PackageNotFoundError:
        versions["kimble-rl"] = "a checkout"
    data["versions"] = versions
    text = json.dumps(data, indent=1, sort_keys=True) + "\n"
    write_whole(folder / DATA, text.encode())


# --------------------------------------------------------------------------------------- figures


def add_solved(folder: Path, data: Data, rules: str, pieces: int, again: bool) -> None:
    """Add what ``kimble solve`` says."""
    key = f"{rules} {pieces}"
    if again or key not in data.get("solved", {}):
        found = solve_game(rules, pieces, threads=1)
        found.pop("table")
        keep(folder, data, "solved", key, found)


def add_agent(
    folder: Path, data: Data, agent: str, rules: str, again: bool, quick: bool, evaluator: Evaluator
) -> None:
    """Add what ``kimble exact`` says of an agent, and the CPU seconds that it took.

    Of an agent that is there already without its best answer only that is added.
    """
    pieces = evaluator.rules.pieces
    key = f"{rules} {pieces} {agent}"
    kept = None if again else data.get("ladder", {}).get(key)
    if kept is not None and (quick or kept["exploitability"] is not None):
        return
    evaluator.perfect()  # solved before the clock runs
    began = time.process_time()
    if kept is None:
        found = exactly(agent, rules, pieces, response=not quick, evaluator=evaluator)
    else:
        answer = exactly(agent, rules, pieces, versus=(), costs=False, evaluator=evaluator)
        found = {**kept, **{part: answer[part] for part in ANSWER}}
        found["cpu_parts"] = {**kept.get("cpu_parts", {}), **answer["cpu_parts"]}
    spent = time.process_time() - began + (kept or {}).get("cpu_seconds", 0.0)
    found["cpu_seconds"] = round(spent, 1)
    keep(folder, data, "ladder", key, found)


def add_perfect(
    folder: Path, data: Data, rules: str, again: bool, evaluator: Evaluator
) -> None:
    """Add what a game of perfect players holds."""
    key = f"{rules} {evaluator.rules.pieces}"
    if not again and key in data.get("perfect", {}):
        return
    perfect = evaluator.perfect()
    keep(folder, data, "perfect", key, account(evaluator, evaluator.study(perfect, perfect)))


def add_losses(folder: Path, data: Data, again: bool) -> None:
    """Add the mean loss of every agent on the four-piece decision sets, with standard errors."""
    for rules in ("kimble", "kombat"):
        found = read_decisions(rules)
        generator = np.random.default_rng(1)
        keys = generator.integers(1 << 64, size=len(found.positions), dtype=np.uint64)
        for agent in agents():
            key = f"{rules} {agent}"
            if not again and key in data.get("losses_4", {}):
                continue
            loss = 1000.0 * found.losses(make_agent(agent, found.rules).act(found.positions, keys))
            error = float(loss.std() / np.sqrt(len(loss)))
            entry = {"loss": float(loss.mean()), "error": error, "decisions": len(loss)}
            keep(folder, data, "losses_4", key, entry)


# ----------------------------------------------------------------------------------------- plots


def _figure(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "kimble"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


COLOURS = dict(
    zip(RULE_SETS, ("#1b4965", "#5fa8d3", "#7a3b2e", "#d9825b", "#4c8c4a"), strict=True)
)


def start_values(page: str) -> dict[str, list[tuple[int, float]]]:
    """Return the start values of the page's table: by rule set, pairs (pieces, value)."""
    out: dict[str, list[tuple[int, float]]] = {}
    rules = ""
    for line in page.splitlines():
        found = re.match(r"\| *(?:`([^`]*)`)? *\| *(\d) *\| *[\d,]+ *\| *(0\.\d+) *\|", line)
        if found:
            rules = found[1] or rules
            out.setdefault(rules, []).append((int(found[2]), float(found[3])))
    return out


def plot_first_throw(page: str, path: Path) -> None:
    """Plot the win chance of the first to throw by pieces and rule set, from the page's table."""
    figure, axes = _figure(6.4, 4.0)
    for rules, points in start_values(page).items():
        pieces, values = zip(*points, strict=True)
        axes.plot(pieces, 100 * np.array(values), "o-", color=COLOURS[rules], label=rules)
    axes.axhline(50, color="0.7", lw=1)
    axes.set_xticks([1, 2, 3, 4])
    axes.set_xlabel("pieces per player")
    axes.set_ylabel("the first to throw wins, %")
    axes.set_title("First-throw advantage of perfect players")
    axes.legend(frameon=False, fontsize=8)
    _save(figure, path)


def plot_ladder(data: Data, pieces: int, path: Path) -> None:
    """Plot loss per decision against itself and win share against perfect play, by agent."""
    rows = [found for found in data.get("ladder", {}).values() if found["pieces"] == pieces]
    names = sorted({found["agent"] for found in rows})
    rule_sets = [r for r in RULE_SETS if any(_of(row, r) for row in rows)]
    order = sorted(names, key=lambda name: _mean_loss(rows, name))
    figure, axes = _figure(7.2, 1.2 + 0.34 * len(order))
    for k, rules in enumerate(rule_sets):
        label: str | None = rules  # of its first point alone: not every agent has every rule set
        for place, name in enumerate(order):
            row = next((r for r in rows if r["agent"] == name and _of(r, rules)), None)
            if row is not None:
                share = 100.0 * row["versus"]["perfect"]["share"]
                offset = 0.13 * (k - (len(rule_sets) - 1) / 2)
                axes.plot(share, place + offset, "o", color=COLOURS[rules], ms=5,
                          label=label)  # fmt: skip
                label = None
    axes.axvline(50, color="0.7", lw=1)
    axes.set_yticks(range(len(order)), order)
    axes.set_xlabel("win share against perfect play, %")
    axes.set_title(f"The skill ladder, {pieces} pieces, exact")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    _save(figure, path)


def _of(row: dict[str, Any], rules: str) -> bool:
    return bool(row["rules_hash"] == game_of(rules, row["pieces"]).hash)


def _mean_loss(rows: Sequence[dict[str, Any]], name: str) -> float:
    shares = [r["versus"]["perfect"]["share"] for r in rows if r["agent"] == name]
    return float(np.mean(shares))


def plot_mistakes(data: Data, agent: str, pieces: int, path: Path) -> None:
    """Plot where an agent's losses come from, by rule set."""
    found = [
        (rules, data["ladder"][f"{rules} {pieces} {agent}"])
        for rules in RULE_SETS
        if f"{rules} {pieces} {agent}" in data.get("ladder", {})
    ]
    figure, axes = _figure(7.2, 1.0 + 0.95 * len(found))
    tab = ("#1b4965", "#5fa8d3", "#d9825b", "#7a3b2e", "#4c8c4a", "#b0b0b0")
    for place, (_, row) in enumerate(found):
        left = 0.0
        for k, entry in enumerate(row["itself"]["mistakes"][:4]):
            width = 100 * entry["share_of_loss"]
            axes.barh(place, width, left=left, color=tab[k], height=0.6)
            text = f"{entry['played']}\nnot {entry['best']}".replace("_", " ")
            if width > 13:
                axes.text(left + width / 2, place, text, ha="center", va="center", color="w",
                          fontsize=7.5)  # fmt: skip
            left += width
        axes.barh(place, 100 - left, left=left, color="#dddddd", height=0.6)
    axes.set_yticks(range(len(found)), [rules for rules, _ in found], fontsize=8)
    axes.set_xlim(0, 100)
    axes.set_xlabel(f"share of all that {agent} loses, % (grey: the rest)")
    axes.set_title(f"The costliest mistakes of {agent}, {pieces} pieces")
    _save(figure, path)


def plots(folder: Path, data: Data) -> None:
    """Make every plot that the figures allow."""
    images = folder / "images"
    page = (folder / "solution.md").read_text(encoding="utf-8")
    plot_first_throw(page, images / "solution-first-throw.png")
    for pieces in (2, 3):
        rows = data.get("ladder", {}).values()
        if len({row["agent"] for row in rows if row["pieces"] == pieces}) >= WORTH_A_PLOT:
            plot_ladder(data, pieces, images / f"solution-ladder-{pieces}.png")
    plot_mistakes(data, "cautious", 2, images / "solution-mistakes.png")


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line; compute, keep, plot."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.solution",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pieces", type=int, nargs="*", default=[])
    parser.add_argument("--rules", nargs="*", default=list(RULE_SETS))
    parser.add_argument("--agents", nargs="*", help="specs; all heuristics if left out")
    parser.add_argument("--no-ladder", action="store_true", help="solve only, no agents")
    parser.add_argument("--losses", action="store_true", help="losses on the four-piece sets")
    parser.add_argument("--quick", action="store_true", help="without best answers")
    parser.add_argument("--again", action="store_true", help="what is there is computed again")
    parser.add_argument("--plots", action="store_true", help="make the plots")
    parser.add_argument("--merge", nargs="*", type=Path, default=[], metavar="FILE",
                        help="take in figures of solution.json files made elsewhere")
    parser.add_argument("--threads", type=int, default=1, help="sweeps at once")
    parser.add_argument("--folder", type=Path, default=DOCS)
    options = parser.parse_args(arguments)
    data = read(options.folder)
    for path in options.merge:
        for part, entries in json.loads(path.read_text(encoding="utf-8")).items():
            for key, value in entries.items() if part != "versions" else ():
                keep(options.folder, data, part, key, value)
    for pieces in options.pieces:
        for rules in options.rules:
            print(f"{rules}, {pieces} pieces", flush=True)
            add_solved(options.folder, data, rules, pieces, options.again)
            evaluator = Evaluator(
                game_of(rules, pieces), TOLERANCE[pieces], options.threads, say=_say
            )
            if rules in PERFECT_PLAYS:
                add_perfect(options.folder, data, rules, options.again, evaluator)
            for agent in () if options.no_ladder else options.agents or agents():
                try:
                    add_agent(options.folder, data, agent, rules, options.again, options.quick,
                              evaluator)  # fmt: skip
                except KimbleError as error:
                    print(f"  {agent}: {error}", flush=True)
    if options.losses:
        add_losses(options.folder, data, options.again)
    if options.plots or options.pieces or options.losses or options.merge:
        plots(options.folder, data)
        write_tables(options.folder / "solution.md", data)


if __name__ == "__main__":
    main()
