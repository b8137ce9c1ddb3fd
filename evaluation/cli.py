"""What the commands evaluate, compare, tournament and plan do; ``kimble_app`` reads arguments.

Each function may as well be called from Python: it prints what the command prints and returns what
came out.
"""

from __future__ import annotations

import json as writer
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evaluation.compare import Comparison, parity_test, print_comparison, write_comparison
from evaluation.compare import compare as play_comparison
from evaluation.match import DEFAULT_CAP, MatchResult, play_match
from evaluation.planner import (
    Need,
    check_half_width,
    measured_needs,
    needs_json,
    print_needs,
    typical_needs,
)
from evaluation.progress import clock, progress_bar
from evaluation.table import print_table, write_json
from evaluation.tabletop import make_agents
from evaluation.tournament import Tournament, make_settings, play_tournament
from kimble_env.errors import KimbleError
from kimble_env.own_code import prints_aside
from kimble_env.rules import Rules, find_rules

LEAST_PILOT = 100
"""Games without which a pilot match tells nothing of how shares spread."""

Spec = str | Callable[..., Any]


def evaluate(
    specs: Sequence[Spec],
    rules: str | Rules = "kimble",
    players: int | None = None,
    games: int = 2000,
    seed: int = 1,
    json: bool = False,
    *,
    pieces: int | None = None,
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    workers: int = 1,
    adjust: str | None = None,
    progress: bool | None = None,
) -> MatchResult:
    """Play a match, print its table (or JSON) to standard output, and return it.

    Args:
        specs: the line-up, 1 to 4 agents. If there are fewer than players the last one takes the
            seats that are left, so ``cautious random`` with four players is one against three.
        rules: rules or their text.
        players: 2 to 4; by default as many as specs (at least 2), or as the Rules given have.
        games: at least this many; rounded up to whole blocks of one game per rotation.
        seed: of the dice.
        json: print one JSON object instead of the table.
        pieces: short for the option ``pieces`` of the rules; given in both and different: an error.
        cap: throws after which a game is cut off.
        threads: threads of compiled play; None for one per processor.
        workers: processes, for agents that are not weight vectors; the result stays the same.
        adjust: count luck by this evaluator (``linear``) and tell the adjusted results too.
        progress: show a bar on standard error; None: a bar if that is a terminal, else lines.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    found = _rules_with(rules, pieces)
    lineup = _line_up(specs, _player_count(specs, rules, found, players))
    if found.players != len(lineup):
        found = found.replace(players=len(lineup))
    start = time.perf_counter()
    with progress_bar(progress) as report, prints_aside():
        result = play_match(
            lineup, found, games, seed, cap=cap, threads=threads, workers=workers, progress=report,
            adjust=adjust,
        )  # fmt: skip
    seconds = time.perf_counter() - start
    if json:
        write_json(result, sys.stdout, adjust=adjust, seconds=round(seconds, 3))
    else:
        print_table(result, adjust)
    return result


def compare(
    first: Spec,
    second: Spec,
    rules: str | Rules = "kimble",
    players: int | None = None,
    *,
    pieces: int | None = None,
    json: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Comparison:
    """Compare two agents, print the verdict, and return the comparison.

    Args:
        first: A.
        second: B.
        rules: rules or their text.
        players: 2 to 4; those of the rules if left out.
        pieces: short for the option ``pieces`` of the rules.
        json: print one JSON object instead of the table.
        progress: show a bar on standard error; None: a bar if that is a terminal, else lines.
        options: of ``evaluation.compare.compare``.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    found_rules = _rules_with(rules, pieces)
    with progress_bar(progress, "comparing") as report, prints_aside():
        found = play_comparison(first, second, found_rules, players, progress=report, **options)
    if json:
        write_comparison(found, sys.stdout)
    else:
        print_comparison(found)
    return found


def tournament(
    specs: Sequence[str],
    rules: str | Rules = "kimble",
    players: int | None = None,
    games: int = 20_000,
    *,
    pieces: int | None = None,
    record: str | Path | None = None,
    report: str | Path | None = None,
    csv: str | Path | None = None,
    losses: bool = False,
    json: bool = False,
    threads: int | None = None,
    workers: int = 1,
    progress: bool | None = None,
    **options: Any,
) -> Tournament:
    """Play or resume a tournament, print its tables, and return it.

    Args:
        specs: two agents or more.
        rules: rules or their text.
        players: 2 to 4; those of the rules if left out.
        games: of each pairing, at least.
        pieces: short for the option ``pieces`` of the rules.
        record: file that every finished chunk goes to; named by rules and players if left out.
        report: write a page of HTML there.
        csv: write the tables as CSV into this folder.
        losses: ask every agent about the public positions too (see ``losses.py``).
        json: print one JSON object instead of the tables.
        threads: threads of compiled play; None for one per processor.
        workers: processes, for agents that are not weight vectors.
        progress: show a bar on standard error; None: a bar if that is a terminal, else lines.
        options: of ``make_settings``: kinds, against, seed, cap, adjust.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    from evaluation.report import add_losses, print_report, summarise, write_csv

    settings = make_settings(specs, _rules_with(rules, pieces), players, **options)
    name = f"tournament-{settings.rules.name}-{settings.rules.players}p.jsonl"
    place = Path(record) if record is not None else Path(name)
    with progress_bar(progress) as bar, prints_aside():
        played = play_tournament(
            settings, place, games, threads=threads, workers=workers, progress=bar
        )
    summary = summarise(played)
    with prints_aside():
        summary["self_tests"] += _parity_tests(played)
        if losses:
            add_losses(summary, played)
    if report is not None:
        from evaluation.report_html import write_html

        write_html(summary, report)
    if csv is not None:
        write_csv(summary, csv)
    if json:
        print(writer.dumps(summary, indent=1))
    else:
        print_report(summary, str(place))
    return played


def _parity_tests(played: Tournament) -> list[dict[str, Any]]:
    """Play every agent against itself at the tables of the tournament: one block each."""
    settings = played.settings
    made = make_agents(settings.agents, settings.rules)
    tests = [
        parity_test(settings.rules, agent, spec, settings.seatings, settings.seed, settings.cap, 1)
        for agent, spec in zip(made, settings.agents, strict=True)
    ]
    failed = [vars(test) for test in tests if not test.passed]
    loose = [test.text for test in tests if test.passed and ";" in test.text]
    if failed:
        return failed
    text = f"each of the {len(tests)} agents against itself wins 50.00 %"
    return [{"name": "parity", "passed": True, "text": "; ".join([text, *loose])}]


def plan(
    specs: Sequence[Spec] = (),
    rules: str | Rules = "kimble",
    players: int | None = None,
    half_width: float = 0.005,
    *,
    pieces: int | None = None,
    pilot: int = 2000,
    seed: int = 1,
    adjust: str | None = None,
    json: bool = False,
    progress: bool | None = None,
) -> list[Need]:
    """Tell how many games a half-width needs, for typical shares or as a pilot match measures it.

    Args:
        specs: the line-up as in ``evaluate``; nobody: typical shares, without playing.
        rules: rules or their text.
        players: 2 to 4.
        half_width: of a 95 % interval, as a share: 0.005 is half a point.
        pieces: short for the option ``pieces`` of the rules.
        pilot: games of the pilot match.
        seed: of its dice.
        adjust: measure what luck adjustment by this evaluator saves.
        json: print one JSON object instead of the table.
        progress: show a bar on standard error; None: a bar if that is a terminal, else lines.

    Raises:
        KimbleError: anything given that cannot be, with the reason.
    """
    check_half_width(half_width)
    found = _rules_with(rules, pieces)
    wanted = f"±{100 * half_width:g} points (95 %)"
    if not specs:
        count = _player_count(["random"], rules, found, players)
        needs = typical_needs(half_width, count)
        caption = "Independent games. Name agents, and a pilot match measures what they need."
        if json:
            print(writer.dumps(needs_json(needs, half_width=half_width, players=count), indent=1))
        else:
            print_needs(needs, f"{wanted}, {count} players", caption)
        return needs
    if pilot < LEAST_PILOT:
        raise KimbleError(f"a pilot match has at least {LEAST_PILOT} games, got {pilot}")
    lineup = _line_up(specs, _player_count(specs, rules, found, players))
    if found.players != len(lineup):
        found = found.replace(players=len(lineup))
    with progress_bar(progress, "pilot") as bar, prints_aside():
        play_match(lineup, found, len(lineup), seed)  # compiles, so that the speed is that of play
        start = time.perf_counter()
        result = play_match(lineup, found, pilot, seed, progress=bar)
        speed = result.games / max(time.perf_counter() - start, 1e-9)
    ratios = None
    if adjust is not None:
        with progress_bar(progress, "pilot, counting luck") as bar, prints_aside():
            ratios = _variance_ratios(lineup, found, pilot, seed, adjust, bar)
    needs = measured_needs(result, half_width, ratios)
    caption = (
        f"Measured in {result.games:,} games at {speed:,.0f} games/s (raw). design: variance over "
        "seat blocks by that of independent games."
    )
    if json:
        more = {
            "half_width": half_width, "players": len(lineup), "rules": str(found),
            "pilot_games": result.games, "games_per_second": speed, "adjust": adjust,
        }  # fmt: skip
        print(writer.dumps(needs_json(needs, **more), indent=1))
    else:
        title = f"{wanted}, {found}, {len(lineup)} players"
        print_needs(needs, title, caption, lambda games: clock(games / speed))
    return needs


def _variance_ratios(
    lineup: Sequence[Spec], rules: Rules, games: int, seed: int, adjust: str, progress: Any
) -> list[float]:
    """Return the variance of block scores, raw over adjusted, of each agent."""
    result = play_match(lineup, rules, games, seed, adjust=adjust, progress=progress)
    ratios = []
    for k in range(len(result.agents)):
        adjusted = result.scores[:, :, k] - result.luck[:, :, k]  # type: ignore[index]
        raw = float(result.scores[:, :, k].mean(axis=1).var())
        rest = float(adjusted.mean(axis=1).var())
        ratios.append(raw / rest if raw > 0.0 and rest > 0.0 else 1.0)
    return ratios


def _rules_with(rules: str | Rules, pieces: int | None) -> Rules:
    return find_rules(rules, pieces=pieces) if pieces is not None else find_rules(rules)


def _player_count(
    specs: Sequence[Any], rules: str | Rules, found: Rules, players: int | None
) -> int:
    """Return the number of players that the arguments mean."""
    if not 1 <= len(specs) <= 4:
        raise KimbleError(f"a line-up has 1 to 4 agents, got {len(specs)}")
    if found.two_colours or (isinstance(rules, Rules) and players is None):
        count = found.players
    else:
        count = players if players is not None else max(2, len(specs))
    if players is not None and players != count:
        raise KimbleError(f"{found} is for {count} players, but players={players}")
    if count not in (2, 3, 4):
        raise KimbleError(f"players must be 2, 3 or 4, got {count!r}")
    if len(specs) > count:
        raise KimbleError(f"{len(specs)} agents are given for {count} players")
    return count


def _line_up(specs: Sequence[Any], players: int) -> list[Any]:
    return [*specs, *[specs[-1]] * (players - len(specs))]
