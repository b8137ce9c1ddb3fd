"""A match: one line-up, all rotations of the seats (or seatings of your own), on the same dice.

How the games are played stands in ``tabletop.py``. Where passing is allowed two stubborn players
may go on for ever. ``cap`` cuts a game off after so many throws; it counts 1/n to each of the n
players, and the share of such games is always told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.statistics import Interval, block_bootstrap, wilson
from evaluation.tabletop import (
    TALLIES,
    Chunk,
    Seating,
    Table,
    agent_names,
    blocks_for,
    make_agents,
    player_seats,
)
from evaluation.workers import (
    Job,
    Workers,
    check_workers,
    make_recipe,
    make_table,
    play_chunk,
)
from kimble_env.board import SEAT_LETTERS, SEATS
from kimble_env.errors import KimbleError
from kimble_env.opponents import Agent
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads

DEFAULT_CAP = 5000
"""Throws after which a game is cut off: some twenty times an ordinary game."""

_CHUNK = 4096  # games between two reports of progress, at most
_STEP = 1024  # … where agents are asked from Python
_JOBS = 8  # jobs per worker, at least, so that all of them end at about the same time

Progress = Callable[[int, int], object]
"""Called with the games played so far and in all."""


@dataclass(frozen=True)
class MatchResult:
    """What came out of a match.

    Attributes:
        rules: the rules played.
        agents: names of the agents in the order of the line-up; one that sits twice has two names.
        winners: int8 [blocks, R], the place in ``agents`` of who won block b in seating k, -1 for
            a game cut off.
        plies: int32 [blocks, R], throws of each game, forced ones included.
        seating: int8 [R, players], who (place in ``agents``) sits at each place at the table.
        seed: of the dice; block b has the key ``game_key(seed, b)``.
        cap: throws after which a game was cut off.
        places: int8 [blocks, R], the place at the table that won, -1 for a game cut off.
        tallies: int64 [agents, TALLIES], added up over all games; see ``tabletop.TALLIES``.
        luck: float32 [blocks, R, agents], what each agent owes to the dice, if it was counted.
    """

    rules: Rules
    agents: tuple[str, ...]
    winners: npt.NDArray[np.int8]
    plies: npt.NDArray[np.int32]
    seating: npt.NDArray[np.int8]
    seed: int
    cap: int
    places: npt.NDArray[np.int8]
    tallies: npt.NDArray[np.int64]
    luck: npt.NDArray[np.float32] | None = None

    @property
    def players(self) -> int:
        """Number of players at the table."""
        return int(self.seating.shape[1])

    @property
    def games(self) -> int:
        """Number of games, a multiple of the number of seatings."""
        return self.winners.size

    @property
    def truncated(self) -> int:
        """Number of games cut off."""
        return int((self.winners < 0).sum())

    @property
    def mean_length(self) -> float:
        """Mean number of throws of a game, forced ones included."""
        return float(self.plies.mean())

    @cached_property
    def scores(self) -> npt.NDArray[np.float64]:
        """Score of each agent in each game: float64 [blocks, R, agents].

        1 won, 0 lost, 1/n for each of its places in a game cut off.
        """
        agents = np.arange(len(self.agents))
        scores: npt.NDArray[np.float64] = (self.winners[:, :, None] == agents).astype(np.float64)
        cut_off = np.broadcast_to(self.parts, scores.shape)
        return np.where((self.winners < 0)[:, :, None], cut_off, scores)

    @cached_property
    def parts(self) -> npt.NDArray[np.float64]:
        """Share of the places that each agent has in each seating: float64 [R, agents]."""
        agents = np.arange(len(self.agents))
        parts: npt.NDArray[np.float64] = (self.seating[:, :, None] == agents).mean(axis=1)
        return parts

    def par(self, agent: int) -> float:
        """Win share of an agent if all were equally good: 1/n for each of its places."""
        return float(self.parts[:, agent].mean())

    def share(self, agent: int) -> float:
        """Win share of an agent (by its place in ``agents``), 0..1; see ``par``."""
        return float(self.scores[:, :, agent].mean())

    def wilson(self, agent: int, confidence: float = 0.95) -> Interval:
        """Wilson interval of the win share of an agent."""
        return wilson(float(self.scores[:, :, agent].sum()), self.games, confidence)

    def bootstrap(self, agent: int, confidence: float = 0.95) -> Interval:
        """Seat-block bootstrap interval of the win share of an agent."""
        return block_bootstrap(self.scores[:, :, agent].mean(axis=1), confidence)

    def share_at(self, agent: int, place: int) -> float:
        """Share of the games with an agent at ``place`` (0: the first player) that it won there.

        NaN if it never sat there. A game cut off counts 1/n.
        """
        played = self.places[:, self.seating[:, place] == agent]
        if played.size == 0:
            return float("nan")
        return float((played == place).mean() + (played < 0).mean() / self.players)

    def per_game(self, agent: int, tally: str) -> float:
        """Mean of a tally (a name in ``tabletop.TALLIES``) per game and place of an agent."""
        sat = float((self.seating == agent).sum()) * len(self.winners)
        return float(self.tallies[agent, TALLIES.index(tally)]) / sat

    def pass_share(self, agent: int) -> float:
        """Share of an agent's choices that it answered by a pass; 0 if it never had a choice."""
        choices, passes = (self.tallies[agent, TALLIES.index(t)] for t in ("choices", "passes"))
        return float(passes / choices) if choices else 0.0

    def place_names(self) -> tuple[str, ...]:
        """Return the letters of the seats of each player: R, B, Y, G; with two colours RY, BG."""
        return tuple(
            "".join(SEAT_LETTERS[seat] for seat in seats) for seats in player_seats(self.rules)
        )


def play_match(
    agents: Sequence[str | Agent | Callable[..., Any]],
    rules: str | Rules = "kimble",
    games: int = 2000,
    seed: int = 1,
    *,
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    seatings: npt.ArrayLike | None = None,
    first: int = 0,
    adjust: str | None = None,
) -> MatchResult:
    """Play a line-up in all rotations of the seats and return the result.

    Args:
        agents: one per player (2 to 4): specs, agents, or functions; see ``make_agent``.
        rules: Rules or their text. A text is given as many players as there are at the table.
        games: at least this many; rounded up to whole blocks of one game per seating.
        seed: of the dice, 0 or more.
        cap: throws after which a game is cut off, forced ones included.
        threads: threads of compiled play; None for one per processor. Does not change the result.
        workers: processes that play where an agent has to be asked; compiled play needs none. Does
            not change the result. Agents that are not given as a spec must pickle, and a script
            must start under ``if __name__ == "__main__":``.
        progress: called with the games played so far and in all, from the calling thread.
        seatings: int [R, players], other seatings than the rotations: the agent (by its place in
            ``agents``) at each place; an agent may have several. See ``tabletop.arrangements``.
        first: number of the first block; blocks from 0 and from 100 are other dice.
        adjust: count luck by this evaluator (``linear``; see ``luck.py``), for ``result.luck``.

    Raises:
        KimbleError: a number out of range, or the wrong number of agents for the rules.
        AgentError: an agent that is not known or does not fit.
    """
    given = None if seatings is None else check_seatings(seatings, len(agents))
    rules = seated_rules(rules, len(agents) if given is None else given.shape[1])
    check_numbers(games=(games, 1), seed=(seed, 0), cap=(cap, 1), first=(first, 0))
    check_workers(workers)
    table = make_table(rules, make_agents(agents, rules), given, adjust)
    threads = check_threads(threads if threads is not None else os.cpu_count() or 1)
    blocks = blocks_for(int(games), len(table.rotations))
    size = blocks, len(table.rotations)
    places, plies = np.empty(size, np.int8), np.empty(size, np.int32)
    tallies = np.zeros((len(agents), len(TALLIES)), np.int64)
    luck = None if adjust is None else np.empty((*size, len(agents)), np.float32)
    if table.compiled or workers == 1:
        chunks = _play_here(table, int(seed), first, blocks, int(cap), threads, progress)
    else:
        recipe = make_recipe(rules, agents, table.rotations, adjust)
        chunks = _play_in_workers(recipe, size, int(seed), first, int(cap), workers)
    done = 0
    for chunk in chunks:
        rows = slice(chunk.first - first, chunk.first - first + len(chunk.places))
        places[rows], plies[rows] = chunk.places, chunk.plies
        tallies += chunk.tallies
        if luck is not None:
            luck[rows] = chunk.luck
        done += chunk.places.size
        if progress is not None:
            progress(done, places.size)
    winners = np.where(places < 0, -1, table.rotations[np.arange(size[1]), places])
    return MatchResult(
        rules, agent_names(table.agents), winners.astype(np.int8), plies, table.rotations,
        int(seed), int(cap), places, tallies, luck,
    )  # fmt: skip


def _play_here(
    table: Table,
    seed: int,
    first: int,
    blocks: int,
    cap: int,
    threads: int,
    progress: Progress | None,
) -> Iterator[Chunk]:
    """Play all blocks in this process, chunk by chunk."""
    seatings = len(table.rotations)
    size = max(1, (_CHUNK if table.compiled else _STEP) // seatings)
    for start in range(0, blocks, size):
        report = None
        if progress is not None:

            def report(ended: int, start: int = start) -> None:
                progress(start * seatings + ended, blocks * seatings)

        job = Job(b"", seed, first + start, min(size, blocks - start), cap)
        yield play_chunk(job, table, threads, report)


def _play_in_workers(
    recipe: bytes, size: tuple[int, int], seed: int, first: int, cap: int, workers: int
) -> Iterator[Chunk]:
    """Play all blocks in worker processes; chunks come in any order."""
    blocks, seatings = size
    step = max(1, min(_STEP // seatings, -(-blocks // (workers * _JOBS))))
    jobs = (
        Job(recipe, seed, first + start, min(step, blocks - start), cap)
        for start in range(0, blocks, step)
    )
    with Workers(workers) as pool:
        for _, chunk in pool.run(jobs):
            yield chunk


def check_numbers(**values: tuple[Any, int]) -> None:
    """Check that each value is a whole number of at least what stands beside it.

    Raises:
        KimbleError: naming the first that is not.
    """
    for name, (value, least) in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise KimbleError(f"{name} must be a whole number of at least {least}, got {value!r}")
        limit, power = (1 << 31, 31) if name == "cap" else (1 << 63, 63)
        if value >= limit:
            raise KimbleError(f"{name} must be below 2^{power}, got {value}")


def check_seatings(seatings: npt.ArrayLike, agents: int) -> Seating:
    """Return seatings as int8 [R, players] in which every agent sits somewhere.

    Raises:
        KimbleError: they are not.
    """
    given = np.asarray(seatings)
    good = given.ndim == 2 and given.dtype.kind in "iu" and 2 <= given.shape[1] <= SEATS
    if not good or not np.array_equal(np.unique(given), np.arange(agents)):
        raise KimbleError(
            f"seatings must be whole numbers [seatings, players] that name each of the {agents} "
            f"agents by its place in the line-up, got {seatings!r}"
        )
    return given.astype(np.int8)


def seated_rules(rules: str | Rules, players: int) -> Rules:
    """Return the rules with as many players as sit at the table.

    Raises:
        KimbleError: the rules are for another number of players.
    """
    if not 2 <= players <= SEATS:
        raise KimbleError(f"a line-up has 2 to 4 agents, got {players}")
    if isinstance(rules, str):
        read = find_rules(rules)
        rules = read if read.two_colours else read.replace(players=players)
    if rules.players != players:
        raise KimbleError(f"{rules} is for {rules.players} players, but {players} agents are given")
    return rules
