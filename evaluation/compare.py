"""Is A better than B? Played until it is known, or until it is known that it hardly matters.

A and B meet at mixed tables: every arrangement of the seats in which both sit (two of them with
two players, 6 with three, 14 with four), all on the same dice. That is one block. Over a block both
have the same number of places, so par is 50 % and the share of A minus 50 is its *lead* in points.

The interval is a confidence sequence (``statistics.confidence_sequence``) over blocks: it may be
looked at after every chunk, and the chance that a look *ever* says "better" of equal agents is at
most 5 %. The verdict comes from it alone:

* "A is better" or "B is better": the interval excludes 50 %;
* "not told apart": it does not. The interval says how large a difference may still be.

Play stops at a verdict (unless ``full``), at the half-width asked for, or at the most games
allowed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from evaluation.match import DEFAULT_CAP, Progress, check_numbers
from evaluation.planner import check_half_width
from evaluation.statistics import Interval, confidence_sequence
from evaluation.tabletop import Chunk, Seating, Table, agent_names, make_agents
from evaluation.tournament import choose_kinds, kind_counts, kind_seatings
from evaluation.workers import (
    Job,
    Workers,
    check_workers,
    make_recipe,
    make_table,
    play_chunk,
)
from kimble_env import __version__
from kimble_env.errors import KimbleError
from kimble_env.opponents import Agent
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads

FORMAT = "kimble-compare-1"
_LEAST_BLOCKS = 100  # before a verdict: the sequence rests on the central limit theorem
_TUNED_FOR = 1000  # blocks
_FAR = 4.0  # standard errors beyond which a self-test fails


@dataclass(frozen=True)
class SelfTest:
    """A check that the tool makes of itself: its name, whether it held, and what came out."""

    name: str
    passed: bool
    text: str


@dataclass(frozen=True)
class Comparison:
    """What came out of a comparison.

    Attributes:
        rules: the rules played.
        agents: the names of A and B.
        kinds: kinds of tables (``1v3``: one of A against three of B).
        share: win share of A over all tables, 0..1; par is 0.5.
        interval: of the share, 95 %, whatever made the play stop.
        raw: the same for the plain results where ``share`` is luck-adjusted, else equal to it.
        by_kind: for each kind share, par and 95 % interval (for this sample size) of A.
        games, blocks, truncated: how much was played, games cut off.
        verdict: ``A``, ``B`` or ``neither``.
        reason: why play stopped: ``verdict``, ``half_width`` or ``games``.
        tests: the self-tests.
        variance_ratio: variance of raw over adjusted block scores; None without adjustment.
        settings: seed, cap, half-width, adjustment.
    """

    rules: Rules
    agents: tuple[str, str]
    kinds: tuple[str, ...]
    share: float
    interval: Interval
    raw: Interval
    by_kind: dict[str, tuple[float, float, Interval]]
    games: int
    blocks: int
    truncated: int
    verdict: str
    reason: str
    tests: tuple[SelfTest, ...]
    variance_ratio: float | None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The verdict as one sentence."""
        low, high = (100.0 * (bound - 0.5) for bound in self.interval)
        first, second = self.agents
        if self.blocks < _LEAST_BLOCKS:
            return (
                f"too few games to tell {first} and {second} apart: a verdict needs "
                f"{_LEAST_BLOCKS} seeds of dice, {_LEAST_BLOCKS * self.games // self.blocks:,} "
                "games at these tables."
            )
        if self.verdict == "A":
            return f"{first} is better than {second}: it leads by {low:.2f} to {high:.2f} points."
        if self.verdict == "B":
            return f"{second} is better than {first}: it leads by {-high:.2f} to {-low:.2f} points."
        return (
            f"{first} and {second} are not told apart: the lead of {first} lies between {low:.2f} "
            f"and {high:.2f} points."
        )


def compare(
    first: str | Callable[..., Any],
    second: str | Callable[..., Any],
    rules: str | Rules = "kimble",
    players: int | None = None,
    *,
    kinds: Sequence[str] | None = None,
    half_width: float = 0.005,
    games: int = 200_000,
    full: bool = False,
    seed: int = 1,
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    workers: int = 1,
    adjust: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two agents; the module's page says how.

    Args:
        first: A: a spec, an agent or a function.
        second: B.
        rules: rules or their text.
        players: 2 to 4; those of the rules if left out.
        kinds: kinds of tables, all if left out; mirror images are added.
        half_width: of the interval at which play stops, as a share (0.005 is half a point).
        games: at most, rounded up to whole blocks.
        full: go on to the half-width even when the verdict is known.
        seed: of the dice.
        cap: throws after which a game is cut off.
        threads: of compiled play; None for one per processor.
        workers: processes, for agents that have to be asked.
        adjust: spec of the value function that luck is measured with; the verdict then rests on
            adjusted results.
        progress: called with the games played so far and the most that may be.

    Raises:
        KimbleError: anything that cannot be, with the reason.
    """
    check_numbers(games=(games, 1), seed=(seed, 0), cap=(cap, 1))
    check_workers(workers)
    check_half_width(half_width)
    found = find_rules(rules)
    if players is not None and players != found.players:
        if players not in (2, 3, 4) or found.two_colours:
            raise KimbleError(f"{found} cannot be played by {players!r} players")
        found = found.replace(players=players)
    chosen = choose_kinds(found.players, kinds)
    series = _Series(found, (first, second), chosen, int(seed), int(cap), adjust)
    tests = [series.parity_test()]
    most = -(-int(games) // len(series.seatings))
    reason = series.play(
        most, half_width, full, check_threads(threads or os.cpu_count() or 1), workers, progress
    )
    if adjust is not None:
        tests.append(series.agreement_test())
    scores = series.scores(adjusted=adjust is not None)
    raw = series.scores()
    return Comparison(
        found,
        series.names,
        chosen,
        float(scores.mean()),
        _shares(_sequence(scores)),
        _shares(_sequence(raw)),
        series.by_kind(adjust is not None),
        series.games,
        len(scores),
        series.truncated,
        _verdict(scores),
        reason,
        tuple(tests),
        float(raw.var() / scores.var()) if adjust is not None and scores.var() > 0 else None,
        {"seed": int(seed), "cap": int(cap), "half_width": half_width, "adjust": adjust},
    )


def _sequence(scores: npt.NDArray[np.float64]) -> Interval:
    # Half an observation at either end keeps the variance of few or equal scores above 0.
    spread = float(((scores - scores.mean()) ** 2).sum()) + 0.25
    return confidence_sequence(
        float(scores.mean()), spread / len(scores), len(scores), 0.95, _TUNED_FOR
    )


def _shares(interval: Interval) -> Interval:
    """Cut an interval off where there are no shares."""
    return max(0.0, interval[0]), min(1.0, interval[1])


def _verdict(scores: npt.NDArray[np.float64]) -> str:
    if len(scores) < _LEAST_BLOCKS:
        return "neither"
    low, high = _sequence(scores)
    return "A" if low > 0.5 else "B" if high < 0.5 else "neither"


class _Series:
    """The blocks of a comparison, played chunk by chunk."""

    def __init__(
        self,
        rules: Rules,
        agents: tuple[Any, Any],
        kinds: tuple[str, ...],
        seed: int,
        cap: int,
        adjust: str | None,
    ) -> None:
        self.rules, self.kinds, self.seed, self.cap, self.adjust = rules, kinds, seed, cap, adjust
        self.given = agents
        self.seatings: Seating = np.concatenate([kind_seatings(kind) for kind in kinds])
        sizes = [len(kind_seatings(kind)) for kind in kinds]
        self.kind_of = np.repeat(np.arange(len(kinds)), sizes)
        self.made = make_agents(agents, rules)
        first, second = agent_names(self.made)
        self.names = (first, second)
        self.table = make_table(rules, self.made, self.seatings, adjust)
        self.chunks: list[Chunk] = []

    @property
    def games(self) -> int:
        return sum(chunk.places.size for chunk in self.chunks)

    @property
    def truncated(self) -> int:
        return sum(int((chunk.places < 0).sum()) for chunk in self.chunks)

    def parity_test(self) -> SelfTest:
        """Play A against itself at the same tables."""
        return parity_test(
            self.rules, self.made[0], self.names[0], self.seatings, self.seed, self.cap
        )

    def agreement_test(self) -> SelfTest:
        """Adjusted and raw means must agree: luck is 0 on average."""
        luck = self.scores() - self.scores(adjusted=True)
        error = float(luck.std(ddof=1)) / len(luck) ** 0.5 if len(luck) > 1 else float("inf")
        away = float(luck.mean())
        text = f"raw minus adjusted is {100 * away:+.2f} points, standard error {100 * error:.2f}"
        return SelfTest("adjusted and raw agree", abs(away) <= _FAR * error + 1e-12, text)

    def play(
        self,
        most: int,
        half_width: float,
        full: bool,
        threads: int,
        workers: int,
        progress: Progress | None,
    ) -> str:
        """Play chunks until it is time to stop; return why."""
        looks = self._looks(most, threads, workers)
        for chunk in looks:
            self.chunks.append(chunk)
            if progress is not None:
                progress(self.games, most * len(self.seatings))
            scores = self.scores(adjusted=self.adjust is not None)
            low, high = _sequence(scores)
            if len(scores) >= _LEAST_BLOCKS and (high - low) / 2 <= half_width:
                return "half_width"
            if not full and _verdict(scores) != "neither":
                return "verdict"
        return "games"

    def _looks(self, most: int, threads: int, workers: int) -> Any:
        """Yield chunks in the order of their blocks; their sizes do not depend on the clock."""
        asked = not self.table.compiled
        slow = asked or self.adjust is not None
        size = max(1, (256 if slow else 1024) // len(self.seatings))
        recipe = b""
        if asked and workers > 1:
            recipe = make_recipe(self.rules, self.given, self.seatings, self.adjust)
            size = max(1, size // 4)
        jobs = [
            Job(recipe, self.seed, first, min(size, most - first), self.cap, first)
            for first in range(0, most, size)
        ]
        if not recipe:
            for job in jobs:
                yield play_chunk(job, self.table, threads)
            return
        with Workers(workers) as pool:
            waiting: dict[int, Chunk] = {}
            wanted = 0
            for job, chunk in pool.run(jobs):
                waiting[job.first] = chunk
                while wanted in waiting:  # looked at in order: the same for any number of workers
                    ready = waiting.pop(wanted)
                    wanted += len(ready.places)
                    yield ready

    def scores(self, adjusted: bool = False, kind: int | None = None) -> npt.NDArray[np.float64]:
        """Return the share of each block that A won: float64 [blocks]."""
        chosen = slice(None) if kind is None else self.kind_of == kind
        parts = []
        for chunk in self.chunks:
            points = _points(chunk.places, self.seatings)
            if adjusted:
                if chunk.luck is None:
                    raise KimbleError("luck was not measured")
                points = points - chunk.luck[:, :, 0]
            parts.append(points[:, chosen].mean(axis=1))
        return np.concatenate(parts)

    def by_kind(self, adjusted: bool) -> dict[str, tuple[float, float, Interval]]:
        """Return share, par and interval of A at each kind of table."""
        found = {}
        for k, kind in enumerate(self.kinds):
            scores = self.scores(adjusted, k)
            # one block alone tells nothing of its spread
            spread = float(scores.std()) if len(scores) > 1 else float("inf")
            half = 1.96 * spread / len(scores) ** 0.5
            mean = float(scores.mean())
            found[kind] = (
                mean,
                kind_counts(kind)[0] / self.rules.players,
                _shares((mean - half, mean + half)),
            )
        return found


def parity_test(
    rules: Rules, agent: Agent, name: str, seatings: Seating, seed: int, cap: int, blocks: int = 4
) -> SelfTest:
    """Play an agent against itself: exactly par, as no seating changes who decides what."""
    table = Table(rules, [agent, agent], seatings)
    chunk = table.play_blocks(seed, 0, blocks, cap)
    share = float(_points(chunk.places, seatings).mean())
    equal = bool((chunk.places == chunk.places[:, :1]).all())
    text = f"{name} against itself wins {100 * share:.2f} % of {chunk.places.size} games"
    if equal:
        return SelfTest("parity", abs(share - 0.5) < 1e-12, text)
    text += (
        "; its games differ from seating to seating: it draws random numbers of its own instead of "
        "using its keys, so no result of it can be repeated"
    )
    return SelfTest("parity", abs(share - 0.5) < _FAR * 0.5 / blocks**0.5, text)


def _points(places: npt.NDArray[np.int8], seatings: Seating) -> npt.NDArray[np.float64]:
    """Return what A scored in each game: 1, 0, or its share of the places of a game cut off."""
    own = seatings == 0
    won = own[np.arange(len(seatings)), places]
    points: npt.NDArray[np.float64] = np.where(places < 0, own.mean(axis=1), won)
    return points


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain JSON data; shares are 0..1."""
    return {
        "format": FORMAT,
        "rules": str(found.rules),
        "rules_hash": found.rules.hash,
        "players": found.rules.players,
        "agents": list(found.agents),
        "verdict": found.verdict,
        "sentence": found.sentence,
        "stopped_by": found.reason,
        "share": found.share,
        "interval95": list(found.interval),
        "raw_interval95": list(found.raw),
        "par": 0.5,
        "by_kind": {
            kind: {"share": share, "par": par, "interval95": list(interval)}
            for kind, (share, par, interval) in found.by_kind.items()
        },
        "games": found.games,
        "blocks": found.blocks,
        "truncated": found.truncated,
        "variance_ratio": found.variance_ratio,
        "self_tests": [vars(test) for test in found.tests],
        **found.settings,
        "kimble_rl": __version__,
    }


def write_comparison(found: Comparison, file: IO[str]) -> None:
    """Write a comparison as one JSON object."""
    json.dump(comparison_json(found), file, indent=1)
    file.write("\n")


def print_comparison(found: Comparison) -> None:
    """Print a comparison to standard output.

    Raises:
        KimbleError: rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table as Grid
    except ImportError:
        raise KimbleError("tables need rich: pip install 'kimble-rl[eval]'") from None
    kind_of_result = " (luck-adjusted)" if found.settings.get("adjust") else ""
    grid = Grid(
        title=escape(
            f"{found.agents[0]} against {found.agents[1]}: {found.rules}, "
            f"{found.rules.players} players, {found.games:,} games{kind_of_result}"
        )
    )
    for name in ("tables", "wins %", "par %", "95 % interval"):
        grid.add_column(name, justify="left" if name == "tables" else "right", no_wrap=True)
    for kind, (share, par, (low, high)) in found.by_kind.items():
        own, others = kind_counts(kind)
        grid.add_row(
            f"{own} against {others}", f"{100 * share:.2f}", f"{100 * par:.0f}",
            f"{100 * low:.2f} to {100 * high:.2f}",
        )  # fmt: skip
    low, high = found.interval
    grid.add_section()
    grid.add_row(
        "all, any stopping",
        f"{100 * found.share:.2f}",
        "50",
        f"{100 * low:.2f} to {100 * high:.2f}",
    )
    console = Console()
    console.print(grid)
    console.print(escape(found.sentence), highlight=False)
    console.print(escape(_small_print(found)), highlight=False)
    for test in found.tests:
        state = "ok" if test.passed else "FAILED"
        console.print(escape(f"self-test {test.name}: {state} ({test.text})"), highlight=False)


def _small_print(found: Comparison) -> str:
    why = {
        "verdict": "the verdict was known",
        "half_width": "the half-width was reached",
        "games": "the most games allowed were played",
    }[found.reason]
    text = (
        f"Stopped because {why}, after {found.blocks:,} seeds of dice (seed "
        f"{found.settings['seed']}); {100 * found.truncated / found.games:.2f} % cut off."
    )
    if found.variance_ratio is not None:
        text += (
            f" Adjustment by {found.settings['adjust']} divided the variance by "
            f"{found.variance_ratio:.1f}: it stands for {found.games * found.variance_ratio:,.0f} "
            "raw games."
        )
    return text
