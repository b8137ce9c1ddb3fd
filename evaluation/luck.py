"""Luck-adjusted results: what a match says once the dice are taken out.

The *luck* of a chance event is the value after it less the mean value over everything it could have
been: of a throw over the six faces, of a battle over its outcomes, of the lot for the start over
the seats, of the draw between moves that are equal to a weight vector (all of them to ``random``)
over these moves. The value after a face is that after the move which the seat would make: a weight
vector's is known (the mean over the moves that it draws among), for all others it is the best one
by the frozen evaluator.

The adjusted result of a game is its result less all its luck. Given what has happened before, each
piece of luck has mean zero, whatever the evaluator says and whoever plays: the mean that is taken
off is over the very faces of the very same die. So the adjusted result has the same mean as the raw
one, for any evaluator and any agents, also where games are cut off (the cut is fixed in advance).
A good evaluator makes it vary far less, so that fewer games tell as much.

>>> from evaluation.luck import play_adjusted
>>> result = play_adjusted(["cautious", "random"], "kombat", games=2000)  # doctest: +SKIP
>>> result.share(0), result.interval(0)                                   # doctest: +SKIP

Command: ``kimble evaluate cautious random --rules kombat --adjust linear``. What it saves in every
rule set with 2, 3 and 4 players: ``python -m evaluation.luck``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import (
    Evaluator,
    exact_move_values,
    make_evaluator,
    mean_over_moves,
    position_values,
)
from agents.linear_value import LinearValue
from evaluation.counting import CHOICES, PASSES
from evaluation.luck_kernel import advance_lucky_batch, drawn_among_batch
from evaluation.match import DEFAULT_CAP, MatchResult, check_numbers, check_seatings, seated_rules
from evaluation.statistics import Interval
from evaluation.tabletop import TALLIES, Seating, Table, agent_names, blocks_for, make_agents
from kimble_env.afterstates import expand_throws
from kimble_env.errors import KimbleError
from kimble_env.kernel import (
    RUNNING,
    battle_batch,
    empty_states,
    play_batch,
    put_states,
    take_states,
    throw_batch,
)
from kimble_env.opponents import Agent
from kimble_env.rules import R_PASS, Rules
from kimble_env.threads import check_threads, run_slices

_CHUNK = 1024  # games in step, and between two reports of progress
_REPORT_EVERY = 0.25  # seconds

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int], object]
Known = tuple[Floats, npt.NDArray[np.int8]]
"""How seats choose, where that is known: weights float64 [K, F], and int8 [B] the row of each
position's seat to act, below 0 if it is not known."""


@dataclass(frozen=True)
class AdjustedResult:
    """A match with its luck.

    Attributes:
        raw: the match, the same games that ``play_match`` plays.
        luck: float32 [blocks, R, agents], the luck of each agent in each game, in games.
        evaluator: name of the evaluator that tells luck.
        evaluator_hash: its hash.
    """

    raw: MatchResult
    luck: npt.NDArray[np.float32]
    evaluator: str
    evaluator_hash: str

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents."""
        return self.raw.agents

    @cached_property
    def scores(self) -> Floats:
        """Adjusted score of each agent in each game: float64 [blocks, R, agents].

        Most lie between 0 and 1, but they need not.
        """
        return self.raw.scores - self.luck

    def blocks(self, agent: int) -> Floats:
        """Mean adjusted score of each block: float64 [blocks]."""
        means: Floats = self.scores[:, :, agent].mean(axis=1)
        return means

    def share(self, agent: int) -> float:
        """Luck-adjusted win share of an agent; its mean is that of the raw win share."""
        return float(self.scores[:, :, agent].mean())

    def error(self, agent: int) -> float:
        """Standard error of ``share``, from the blocks; NaN with one block."""
        return _error(self.blocks(agent))

    def interval(self, agent: int, confidence: float = 0.95) -> Interval:
        """Interval of the luck-adjusted win share, from the spread of the blocks (normal)."""
        if not 0.0 < confidence < 1.0:
            raise KimbleError(f"confidence must lie between 0 and 1, got {confidence!r}")
        half = NormalDist().inv_cdf(0.5 + confidence / 2.0) * self.error(agent)
        return self.share(agent) - half, self.share(agent) + half

    def saved(self, agent: int) -> float:
        """Variance of the mean of blocks, raw over adjusted: how many times fewer games do."""
        raw = self.raw.scores[:, :, agent].mean(axis=1)
        return float(raw.var() / max(self.blocks(agent).var(), 1e-30))

    def saved_per_game(self, agent: int) -> float:
        """Variance of the score of a game, raw over adjusted, within the seatings of the agent."""
        raw = self.raw.scores[:, :, agent].var(axis=0).mean()
        return float(raw / max(float(self.scores[:, :, agent].var(axis=0).mean()), 1e-30))

    def agreement(self, agent: int) -> float:
        """Raw less adjusted share, in its standard errors: a self-test, within ±4 if all is well.

        It is the mean luck over its own standard error.
        """
        luck = self.luck[:, :, agent].mean(axis=1, dtype=np.float64)
        return float(luck.mean() / max(_error(luck), 1e-30))


def _error(blocks: Floats) -> float:
    if len(blocks) < 2:
        return float("nan")
    return float(blocks.std(ddof=1) / len(blocks) ** 0.5)


def play_adjusted(
    agents: Sequence[str | Agent | Callable[..., Any]],
    rules: str | Rules = "kimble",
    games: int = 2000,
    seed: int = 1,
    *,
    evaluator: str | Evaluator | Callable[..., Any] = "linear",
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    progress: Progress | None = None,
    seatings: npt.ArrayLike | None = None,
    first: int = 0,
) -> AdjustedResult:
    """Play a match as ``play_match`` does (the same games) and count luck.

    Args:
        agents, rules, games, seed, cap, threads, progress, seatings, first: as ``play_match``.
        evaluator: what tells luck: a spec or an object, see ``agents.evaluators``. Linear values
            are counted in compiled code; others are asked about six throws and their moves for all
            games at once.

    Raises:
        KimbleError: a number out of range, the wrong number of agents for the rules, or rules with
            the option ``members``, whose chances cannot be listed.
        AgentError: an agent or evaluator that is not known or does not fit.
    """
    given = None if seatings is None else check_seatings(seatings, len(agents))
    rules = seated_rules(rules, len(agents) if given is None else given.shape[1])
    check_numbers(games=(games, 1), seed=(seed, 0), cap=(cap, 1), first=(first, 0))
    if rules.members is not None:
        raise KimbleError(f"luck can be counted without the option members only, got {rules}")
    value = make_evaluator(evaluator, rules)
    table = LuckyTable(rules, make_agents(agents, rules), given, value)
    threads = check_threads(threads if threads is not None else os.cpu_count() or 1)
    count = len(table.rotations)
    blocks = blocks_for(int(games), count)
    places, plies = np.empty((blocks, count), np.int8), np.empty((blocks, count), np.int32)
    luck = np.empty((blocks, count, len(agents)), np.float32)
    tallies = np.zeros((len(agents), len(TALLIES)), np.int64)
    size = max(1, _CHUNK // count)
    for start in range(0, blocks, size):
        rows = slice(start, min(start + size, blocks))
        report = _report(progress, start * count, blocks * count)
        chunk = table.play_blocks(
            int(seed), first + start, rows.stop - start, int(cap), threads, report
        )
        places[rows], plies[rows], luck[rows] = chunk.places, chunk.plies, table.agents_luck()
        tallies += chunk.tallies
        if progress is not None:
            progress(rows.stop * count, blocks * count)
    winners = np.where(places < 0, -1, table.rotations[np.arange(count), places])
    raw = MatchResult(
        rules, agent_names(table.agents), winners.astype(np.int8), plies, table.rotations,
        int(seed), int(cap), places, tallies,
    )  # fmt: skip
    return AdjustedResult(raw, luck, value.name, value.hash)


def _report(progress: Progress | None, done: int, games: int) -> Callable[[int], object] | None:
    if progress is None:
        return None
    return lambda ended: progress(done + ended, games)


class LuckyTable(Table):
    """A table that counts luck while it plays.

    Attributes:
        luck: float64 [games, 4], the luck of each seat in the games last played.
    """

    def __init__(
        self, rules: Rules, agents: Sequence[Agent], seatings: Seating | None, value: Evaluator
    ) -> None:
        super().__init__(rules, agents, seatings)
        self.value = value
        self.luck = np.zeros((0, 4))

    def agents_luck(self) -> Floats:
        """Return the luck of each agent in the games last played: float64 [blocks, R, agents]."""
        luck = self.luck.reshape(-1, len(self.seating), 4)
        owner = self.seating[:, :, None] == np.arange(len(self.agents))  # [R, seat, agent]
        out: Floats = np.einsum("brs,rsa->bra", luck, owner)
        return out

    def play(
        self,
        states: States,
        cap: int,
        threads: int,
        counts: npt.NDArray[np.int32] | None = None,
        report: Callable[[int], object] | None = None,
    ) -> None:
        """Play all games of ``deal`` on and count their luck in ``self.luck``."""
        if counts is None:
            counts = np.zeros((len(states), 4, 2), np.int32)
        self.luck = lot_luck(states, self.rules, self.value)
        if isinstance(self.value, LinearValue):
            self._play_compiled(states, cap, threads, counts, report)
        else:
            self._play_in_step(states, cap, counts, report)

    def _play_compiled(
        self, states: States, cap: int, threads: int, counts: Any, report: Any
    ) -> None:
        seating = np.tile(self.seating, (len(states) // len(self.seating), 1))
        rows, r = self.rows[seating], self.rules.array
        answers, legal = np.full(len(states), -1), np.empty(len(states), np.int64)
        told = time.monotonic()
        while True:
            run_slices(
                lambda a, b: advance_lucky_batch(
                    states[a:b], r, self.weights, rows[a:b], cap, self.value.vector,
                    empty_states(2), answers[a:b], self.luck[a:b], legal[a:b], counts[a:b],
                ),
                len(states),
                threads,
            )  # fmt: skip
            waiting = np.flatnonzero(legal)
            if len(waiting) == 0:
                return
            answers[:] = -1
            answers[waiting] = self._answers(take_states(states, waiting), seating[waiting])
            _count(counts, waiting, states["seat"][waiting], answers[waiting], r)
            if report is not None and time.monotonic() > told + _REPORT_EVERY:
                told = time.monotonic()
                report(len(states) - len(waiting))

    def _known(self, positions: States, seating: Seating) -> Known:
        """Return how the seat to act of each position is known to choose."""
        return self.weights, self.rows[seating[np.arange(len(positions)), positions["seat"]]]

    def _answers(self, positions: States, seating: Seating) -> npt.NDArray[np.int16]:
        return self._ask(positions, seating[np.arange(len(positions)), positions["seat"]])

    def _play_in_step(self, states: States, cap: int, counts: Any, report: Any) -> None:
        """Throw and move in all games at once, whatever the evaluator."""
        seating = np.tile(self.seating, (len(states) // len(self.seating), 1))
        r = self.rules.array
        while True:
            rows = np.flatnonzero((states["status"] == RUNNING) & (states["plies"] < cap))
            if len(rows) == 0:
                return
            part = take_states(states, rows)
            known = self._known(part, seating[rows])
            legal, luck = throw_with_luck(part, self.rules, self.value, known)
            self.luck[rows] += luck
            choice = np.flatnonzero(legal & (legal - 1) != 0)
            actions = np.full(len(rows), -1, np.int16)
            forced = np.flatnonzero((legal != 0) & (legal & (legal - 1) == 0))
            actions[forced] = np.round(np.log2(legal[forced])).astype(np.int16)
            if len(choice):
                asked = take_states(part, choice)
                actions[choice] = self._answers(asked, seating[rows[choice]])
                self.luck[rows[choice]] += draw_luck(
                    asked, actions[choice], self.rules, self.value,
                    (known[0], known[1][choice]),
                )
                _count(counts, rows[choice], asked["seat"], actions[choice], r)
            moving = np.flatnonzero(actions >= 0)
            moved = take_states(part, moving)
            self.luck[rows[moving]] += play_with_luck(
                moved, actions[moving], self.rules, self.value
            )
            put_states(part, moving, moved)
            put_states(states, rows, part)
            if report is not None:
                report(len(states) - len(rows))


def _count(counts: Any, rows: Any, seats: Any, actions: Any, r: Any) -> None:
    """Count the choices and passes of the games in ``rows`` (each once)."""
    counts[rows, seats, CHOICES] += 1
    counts[rows, seats, PASSES] += actions == r[R_PASS]


# -------------------------------------------------------------------------- the luck of one event


def lot_luck(states: States, rules: Rules, value: Evaluator) -> Floats:
    """Return the luck of the lot for who starts: float64 [B, 4].

    The seats that may start are equally likely (R8). With the popomatic die, whose lot favours
    seats, and with a fixed starter it is 0.
    """
    luck = np.zeros((len(states), 4))
    drawn = rules.starter in ("highest_roll", "random")
    if not drawn or rules.die != "uniform":
        return luck
    whole = rules.two_colours and rules.starter == "highest_roll"  # R17: the two players throw
    seats = (0, 1) if whole else rules.seats
    values = []
    for seat in seats:
        other = take_states(states[:1])
        other["seat"] = seat
        values.append(value.value(other)[0])
    by_seat = np.zeros((4, 4))
    by_seat[list(seats)] = np.array(values) - np.mean(values, axis=0)
    luck[:] = by_seat[states["seat"]]
    return luck


def throw_with_luck(
    states: States, rules: Rules, value: Evaluator, known: Known | None = None
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Throw in every game (in place); return the legal actions, and the luck float64 [B, 4].

    ``known`` says which seats that throw are weight vectors: after each face they make the moves
    that they draw among; all others the best one. None: nobody is known.
    """
    throws = expand_throws(states, rules)
    drawn = None
    if known is not None:
        drawn = _drawn(throws.children, rules, (known[0], np.repeat(known[1], 6)))
    after = position_values(value, throws.children, rules, drawn).reshape(-1, 6, 4)
    mean = (after * throws.chance.reshape(-1, 6, 1)).sum(axis=1)
    legal = np.empty(len(states), np.int64)
    throw_batch(states, rules.array, np.zeros(len(states), np.int8), legal)
    face = states["last_die"].astype(np.int64) - 1
    return legal, after[np.arange(len(states)), face] - mean


def draw_luck(
    positions: States,
    actions: npt.NDArray[np.int16],
    rules: Rules,
    value: Evaluator,
    known: Known,
) -> Floats:
    """Return the luck of having drawn these of several equal actions: float64 [B, 4].

    0 for seats that are not known to draw.
    """
    luck = np.zeros((len(positions), 4))
    drawn = _drawn(positions, rules, known)
    rows = np.flatnonzero(drawn & (drawn - 1) != 0)
    if len(rows):
        after = exact_move_values(value, take_states(positions, rows), rules)
        luck[rows] = after[np.arange(len(rows)), actions[rows]]
        luck[rows] -= mean_over_moves(after, drawn[rows], rules)
    return luck


def _drawn(states: States, rules: Rules, known: Known) -> npt.NDArray[np.int64]:
    drawn = np.empty(len(states), np.int64)
    drawn_among_batch(states, rules.array, *known, drawn)
    return drawn


def play_with_luck(
    states: States, actions: npt.NDArray[np.int16], rules: Rules, value: Evaluator
) -> Floats:
    """Play in every game (in place); return the luck of battles float64 [B, 4]."""
    luck = np.zeros((len(states), 4))
    defenders = np.empty(len(states), np.int8)
    battle_batch(states, rules.array, actions, defenders)
    rows = np.flatnonzero(defenders >= 0)
    if len(rows):
        before = exact_move_values(value, take_states(states, rows), rules)
        luck[rows] -= before[np.arange(len(rows)), actions[rows]]
    play_batch(states, rules.array, actions, np.zeros((len(states), 2), np.int8))
    if len(rows):
        luck[rows] += value.value(take_states(states, rows))
    return luck


# ------------------------------------------------------------------------------- what it saves

LINE_UPS = (("mixed", "random"), ("mixed", "cautious"))
"""Agents of the table of ``main``: the first against the second in all other seats."""


def saved_table(
    games: int,
    seed: int,
    names: Sequence[str],
    evaluators: Sequence[str] = ("linear",),
    numbers: Sequence[int] = (2, 3, 4),
) -> str:
    """Play one agent against another in every rule set and number of players; return a table.

    Text in Markdown, a row each: raw and adjusted share of the first agent with 95 % intervals of
    the blocks, the variance of a game and of a block (all seatings on the same dice), raw over
    adjusted, raw less adjusted in standard errors, and CPU milliseconds per game.

    Args:
        games: of each row, at least.
        seed: of the dice.
        names: of the rule sets.
        evaluators: specs; ``net`` is the network that ships for the rules and players.
        numbers: of players.
    """
    lines = [
        "| game | line-up | raw, % | adjusted, % | saved, game | saved, block | z | CPU ms "
        "| evaluator |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        for players in numbers:
            for first, others in LINE_UPS:
                for evaluator in evaluators:
                    line_up = [first, *[others] * (players - 1)]
                    play_adjusted(line_up, name, 1, seed, evaluator=evaluator)  # compiles
                    start = time.process_time()
                    result = play_adjusted(line_up, name, games, seed, evaluator=evaluator)
                    cost = 1000 * (time.process_time() - start) / result.raw.games
                    lines.append(_saved_row(f"{name} {players}p", result, first, others, cost))
                    print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def _saved_row(
    game: str, result: AdjustedResult, first: str, others: str, milliseconds: float
) -> str:
    half = 1.96 * _error(result.raw.scores[:, :, 0].mean(axis=1))
    return (
        f"| {game} | {first} v {others} "
        f"| {100 * result.raw.share(0):.2f} ± {100 * half:.2f} "
        f"| {100 * result.share(0):.2f} ± {196 * result.error(0):.2f} "
        f"| {result.saved_per_game(0):.1f} | {result.saved(0):.1f} "
        f"| {result.agreement(0):+.1f} | {milliseconds:.1f} "
        f"| {result.evaluator} `{result.evaluator_hash}` |"
    )


def main() -> None:
    """Print what luck adjustment saves by each evaluator, and that the means agree."""
    import argparse

    parser = argparse.ArgumentParser(description="What luck adjustment saves, as a table.")
    parser.add_argument("--games", type=int, default=2000, help="of each line, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", nargs="*", default=["kimble", "kombat", "norske"])
    parser.add_argument("--players", type=int, nargs="*", default=[2, 3, 4])
    parser.add_argument("--evaluators", nargs="*", default=["linear"], help="linear, net, ...")
    options = parser.parse_args()
    given = options.games, options.seed, options.rules, options.evaluators, options.players
    print(saved_table(*given))


if __name__ == "__main__":
    main()
