"""``make run``: judge the baselines, train a policy, judge it, show the result.

Everything is real: games of all three rule sets, masked PPO against heuristics and past selves,
matches over all seat rotations on equal dice. With the settings below it takes about five minutes
on two cores; ``--minutes`` says how long to learn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents import make_agent
from agents.network import PolicyAgent
from evaluation import MatchResult, play_match
from kimble_env import Game, choose, find_rules
from kimble_env.errors import KimbleError
from kimble_env.render import svg, text
from training.config import PPOConfig
from training.ppo import train
from training.progress import clock
from training.report import HEADER, curve_svg, read_curve, result_rows, table_html, write_page

BASELINES = ("cautious", "capture", "runner", "mixed")
RULE_SETS = ("kimble", "kombat", "norske")


def judge_baselines(games: int) -> list[MatchResult]:
    """Play each heuristic against random ones, four at the table, in all three rule sets."""
    return [
        play_match([name, "random", "random", "random"], rules, games)
        for rules in RULE_SETS
        for name in BASELINES
    ]


def judge_policy(agent: PolicyAgent, games: int) -> list[MatchResult]:
    """Play the policy against three of each baseline."""
    return [
        play_match([agent, *[name] * (agent.rules.players - 1)], agent.rules, games)
        for name in ("random", *BASELINES)
    ]


def finished_game(agent: PolicyAgent, seed: int) -> Game:
    """Play one game of the policy (red) against three heuristics to its end and return it."""
    rules = agent.rules.replace(starter="R")
    game = Game(rules, seed=seed)
    players = [agent, *(make_agent(name, agent.rules) for name in BASELINES[:3])]
    while not game.over:
        if game.die is None:
            game.throw()
        if game.legal_moves:
            game.play(choose(players[game.seat], game))
    return game


def show(console: Console, title: str, results: Sequence[MatchResult], label: str = "") -> None:
    """Print matches as one table."""
    table = Table(*HEADER, title=escape(title), title_justify="left")
    for column in table.columns[2:]:
        column.justify = "right"
    for row in result_rows(results):
        table.add_row(*map(escape, (label or row[0], *row[1:])))
    console.print(table)


def baseline_tables(results: Sequence[MatchResult]) -> list[tuple[str, Sequence[MatchResult]]]:
    """Return the baseline matches by rule set."""
    return [(name, [r for r in results if r.rules.name == name]) for name in RULE_SETS]


def write_report(
    place: Path, agent: PolicyAgent, baselines: Sequence[MatchResult], own: Sequence[MatchResult]
) -> Path:
    """Write the page of the run and return where it is."""
    game, rows = finished_game(agent, seed=1), read_curve(place)
    players = agent.rules.players
    curve = curve_svg(rows, 1.0 / players)
    labelled = [("trained policy", *row[1:]) for row in result_rows(own)]
    parts = [
        ("Learning curve", f'<figure class="plot">{curve}</figure>'),
        ("The trained policy", table_html(f"{agent.rules}, {players} players", HEADER, labelled)),
        *(
            (
                f"Baselines: {name}",
                table_html("one against three random", HEADER, result_rows(found)),
            )
            for name, found in baseline_tables(baselines)
        ),
        (
            "A finished game: the policy plays red",
            f'<figure class="board">{svg(game.rules, game.state)}</figure>',
        ),
    ]
    seconds = rows[-1]["seconds"]
    intro = (
        f"Masked PPO learned {agent.rules.name} with {players} players from "
        f"{rows[-1]['decisions']:,} decisions in {clock(seconds)} minutes, against heuristics and "
        f"its own past selves. Shaded bands and intervals are 95 % Wilson; all matches play every "
        f"seat rotation on equal dice; par is {100 / players:.0f} %."
    )
    path = place / "report.html"
    write_page(path, "Kimble RL: a policy trained and judged", intro, parts)
    return path


def command() -> str:
    """Return how the command ``kimble`` of this environment is called from here."""
    if shutil.which("kimble"):
        return "kimble"
    return os.path.relpath(Path(sys.executable).parent / "kimble")


def verdict(own: Sequence[MatchResult]) -> str:
    """Return a sentence that says how good the policy has become, and how it gets better."""
    par = 1.0 / len(own[0].agents)
    above = [result.agents[1] for result in own if result.wilson(0)[0] > par]
    below = [result.agents[1] for result in own if result.wilson(0)[1] < par]
    parts = [f"surely above par against {', '.join(above)}"] if above else []
    parts += [f"surely below par against {', '.join(below)}"] if below else []
    text = "; ".join(parts) or "not surely above or below par against anybody"
    return (
        f"After these minutes the policy is {text}. A longer run: "
        f"{command()} train ppo FOLDER --decisions 10000000"
    )


def free_folder(base: Path) -> Path:
    """Return the first of run-001, run-002, ... that is not taken."""
    taken = {path.name for path in base.glob("run-*")}
    return base / next(f"run-{k:03d}" for k in range(1, 1000) if f"run-{k:03d}" not in taken)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m training.run``."""
    parser = argparse.ArgumentParser("python -m training.run", description=__doc__)
    parser.add_argument("--folder", help="where to keep the run (runs/run-001, ...)")
    parser.add_argument("--decisions", type=int, default=2_000_000, help="to learn from (2000000)")
    parser.add_argument("--minutes", type=float, default=3.5, help="learn at most so long (3.5)")
    parser.add_argument("--games", type=int, default=4_000, help="games per judged match (4000)")
    parser.add_argument("--seed", type=int, default=1, help="of everything (1)")
    given = parser.parse_args(arguments)
    console, started = Console(), time.perf_counter()
    place = Path(given.folder) if given.folder else free_folder(Path("runs"))
    try:
        return run(console, place, given, started)
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(console: Console, place: Path, given: argparse.Namespace, started: float) -> int:
    """The four steps: baselines, training, judging, showing."""
    config = PPOConfig(
        decisions=given.decisions,
        minutes=given.minutes,
        seed=given.seed,
        evaluate_games=max(given.games // 2, 4),
    )
    find_rules(config.rules)
    console.rule("1  The baselines, one against three random players")
    baselines = judge_baselines(given.games)
    for name, results in baseline_tables(baselines):
        show(console, name, results)
    console.rule(escape(f"2  Masked PPO learns {config.rules}, {config.players} players"))
    agent = train(config, place)
    console.rule("3  The trained policy, one against three")
    own = judge_policy(agent, given.games)
    show(console, str(agent.rules), own, "trained policy")
    console.rule("4  A finished game of the policy (red) against three heuristics")
    page = write_report(place, agent, baselines, own)
    game = finished_game(agent, seed=1)
    print(text(game.rules, game.state, colour=console.is_terminal))
    console.print(f"\n{verdict(own)}", highlight=False)
    console.print(f"\nreport  {page}\npolicy  net:{place / 'policy'}", highlight=False)
    console.print(
        f"play it in any command:  {command()} evaluate net:{place / 'policy'} cautious",
        highlight=False,
    )
    console.print(f"took {clock(time.perf_counter() - started)}", highlight=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
