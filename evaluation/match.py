"""A match: one line-up, all rotations of the seats, on the same dice.

Each seed of dice makes a *block*: the line-up is played once per rotation of the seats, every time
with the same starter dice and the same stream of throws for each seat. What one agent owes to lucky
dice, every other one gets too when it sits there. Games of agents that are all weight vectors run
wholly compiled, in threads; otherwise the batch is played in step and every other agent is asked
about all games that wait for it at once.

A decision depends on its game alone, so results are the same for any number of threads and any
size of batch, and the two ways of playing give the same games.

Where passing is allowed two stubborn players may go on for ever. ``cap`` cuts a game off after so
many throws; it counts 1/n to each of the n players, and the share of such games is always told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.statistics import Interval, block_bootstrap, wilson
from kimble_env.board import SEAT_LETTERS, SEATS
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURE_COUNT, advance_weighted_batch, play_weighted_batch
from kimble_env.kernel import (
    WON,
    empty_states,
    game_keys,
    new_game_batch,
    play_batch,
    put_states,
    take_states,
)
from kimble_env.opponents import Agent, WeightAgent, decision_keys, make_agent
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads, run_slices

DEFAULT_CAP = 5000
"""Throws after which a game is cut off: some twenty times an ordinary game."""

_CHUNK = 4096  # games between two reports of progress, at most
_STEP = 1024  # … where agents are asked from Python

States = npt.NDArray[np.void]
Progress = Callable[[int, int], object]
"""Called with the games played so far and in all."""


@dataclass(frozen=True)
class MatchResult:
    """What came out of a match.

    Attributes:
        rules: the rules played.
        agents: names of the agents in the order of the line-up; one that sits twice has two names.
        winners: int8 [blocks, n], the place in ``agents`` of who won block b in rotation k, -1 for
            a game cut off.
        plies: int32 [blocks, n], throws of each game, forced ones included.
        seating: int8 [n, players], who (place in ``agents``) sits at each place at the table.
        seed: of the dice; block b has the key ``game_key(seed, b)``.
        cap: throws after which a game was cut off.
    """

    rules: Rules
    agents: tuple[str, ...]
    winners: npt.NDArray[np.int8]
    plies: npt.NDArray[np.int32]
    seating: npt.NDArray[np.int8]
    seed: int
    cap: int

    @property
    def games(self) -> int:
        """Number of games, a multiple of the number of players."""
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
        """Score of each agent in each game: float64 [blocks, n, n]; 1 won, 0 lost, 1/n cut off."""
        n = len(self.agents)
        scores: npt.NDArray[np.float64] = (self.winners[:, :, None] == np.arange(n)).astype(
            np.float64
        )
        scores[self.winners < 0] = 1.0 / n
        return scores

    def share(self, agent: int) -> float:
        """Win share of an agent (by its place in ``agents``), 0..1; par is 1/n."""
        return float(self.scores[:, :, agent].mean())

    def wilson(self, agent: int, confidence: float = 0.95) -> Interval:
        """Wilson interval of the win share of an agent."""
        return wilson(float(self.scores[:, :, agent].sum()), self.games, confidence)

    def bootstrap(self, agent: int, confidence: float = 0.95) -> Interval:
        """Seat-block bootstrap interval of the win share of an agent."""
        return block_bootstrap(self.scores[:, :, agent].mean(axis=1), confidence)

    def share_at(self, agent: int, place: int) -> float:
        """Win share of an agent in the games where it sat at ``place`` (0: the first player)."""
        rotations = self.seating[:, place] == agent
        return float(self.scores[:, rotations, agent].mean())

    def place_names(self) -> tuple[str, ...]:
        """Return the letters of the seats of each player: R, B, Y, G; with two colours RY, BG."""
        return tuple(
            "".join(SEAT_LETTERS[seat] for seat in seats) for seats in player_seats(self.rules)
        )


def player_seats(rules: Rules) -> tuple[tuple[int, ...], ...]:
    """Return the seats of each player, clockwise (R17: two players may have two colours each)."""
    if rules.two_colours:
        return (0, 2), (1, 3)
    return tuple((seat,) for seat in rules.seats)


def play_match(
    agents: Sequence[str | Agent | Callable[..., Any]],
    rules: str | Rules = "kimble",
    games: int = 2000,
    seed: int = 1,
    *,
    cap: int = DEFAULT_CAP,
    threads: int | None = None,
    progress: Progress | None = None,
) -> MatchResult:
    """Play a line-up in all rotations of the seats and return the result.

    Args:
        agents: one per player (2 to 4): specs, agents, or functions; see ``make_agent``.
        rules: Rules or their text. A text is given as many players as there are agents.
        games: at least this many; rounded up to whole blocks of one game per rotation.
        seed: of the dice, 0 or more.
        cap: throws after which a game is cut off, forced ones included.
        threads: threads of compiled play; None for one per processor. Does not change the result.
        progress: called with the games played so far and in all, from the calling thread.

    Raises:
        KimbleError: a number out of range, or the wrong number of agents for the rules.
        AgentError: an agent that is not known or does not fit.
    """
    rules = _seated_rules(rules, len(agents))
    for name, value, least in (("games", games, 1), ("seed", seed, 0), ("cap", cap, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise KimbleError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if seed >= 1 << 63 or cap >= 1 << 31:
        raise KimbleError(f"seed must be below 2^63 and cap below 2^31, got {seed} and {cap}")
    table = _Table(rules, _make_agents(agents, rules))
    threads = check_threads(threads if threads is not None else os.cpu_count() or 1)
    blocks = -(-games // len(agents))
    winners = np.empty((blocks, len(agents)), np.int8)
    plies = np.empty((blocks, len(agents)), np.int32)
    chunk = max(1, (_CHUNK if table.compiled else _STEP) // len(agents))
    for first in range(0, blocks, chunk):
        rows = slice(first, min(first + chunk, blocks))
        states = table.deal(int(seed), first, rows.stop - first)
        table.play(states, int(cap), threads)
        winners[rows] = table.winners(states).reshape(-1, len(agents))
        plies[rows] = states["plies"].reshape(-1, len(agents))
        if progress is not None:
            progress(rows.stop * len(agents), winners.size)
    return MatchResult(
        rules, _names(table.agents), winners, plies, table.rotations, int(seed), int(cap)
    )


def _seated_rules(rules: str | Rules, players: int) -> Rules:
    """Return the rules with as many players as the line-up has agents."""
    if not 2 <= players <= SEATS:
        raise KimbleError(f"a line-up has 2 to 4 agents, got {players}")
    if isinstance(rules, str):
        read = find_rules(rules)
        rules = read if read.two_colours else read.replace(players=players)
    if rules.players != players:
        raise KimbleError(f"{rules} is for {rules.players} players, but {players} agents are given")
    return rules


def _make_agents(agents: Sequence[Any], rules: Rules) -> list[Agent]:
    """Make each agent once: the same spec at several seats is one agent, asked once for all."""
    made: dict[str, Agent] = {}
    for spec in agents:
        if isinstance(spec, str) and spec not in made:
            made[spec] = make_agent(spec, rules)
    return [made[a] if isinstance(a, str) else make_agent(a, rules) for a in agents]


def _names(agents: Sequence[Agent]) -> tuple[str, ...]:
    """Return a name for each agent: its spec, numbered from the second of the same spec on."""
    names: list[str] = []
    for k, agent in enumerate(agents):
        same = sum(other.spec == agent.spec for other in agents[:k])
        names.append(f"{agent.spec} ({same + 1})" if same else agent.spec)
    return tuple(names)


class _Table:
    """A line-up with its seats: deals blocks of games, plays them, reads who won."""

    def __init__(self, rules: Rules, agents: list[Agent]) -> None:
        n = len(agents)
        self.rules = rules
        self.agents = agents
        # Rotation k: the agent (place + k) mod n sits at each place.
        self.rotations = ((np.arange(n)[None, :] + np.arange(n)[:, None]) % n).astype(np.int8)
        self.seating = np.full((n, SEATS), -1, np.int8)  # [rotation, seat] -> agent
        for place, seats in enumerate(player_seats(rules)):
            for seat in seats:
                self.seating[:, seat] = self.rotations[:, place]
        self.asked_as = np.array(
            [next(k for k, other in enumerate(agents) if other is agent) for agent in agents]
        )
        self.weights = np.zeros((n, FEATURE_COUNT))
        self.rows = np.full(n + 1, -1, np.int8)  # agent -> row of weights, -1: it is asked
        for k, agent in enumerate(agents):
            if type(agent) is WeightAgent:  # a subclass may decide in its own way
                self.weights[k] = agent.weights
                self.rows[k] = k
        self.compiled = bool((self.rows[:n] >= 0).all())

    def deal(self, seed: int, first: int, blocks: int) -> States:
        """Start one game per block and rotation: STATE [blocks * n], rotations side by side."""
        keys = np.empty(blocks, np.uint64)
        game_keys(np.uint64(seed), first, keys)
        states = empty_states(blocks)
        plays = np.zeros((blocks, SEATS), np.int8)
        plays[:, list(self.rules.seats)] = 1
        new_game_batch(states, self.rules.array, plays, keys, np.empty((0, 2), np.int8))
        return take_states(states, np.repeat(np.arange(blocks), len(self.agents)))

    def play(self, states: States, cap: int, threads: int) -> None:
        """Play all games to their end or to the cap."""
        seating = np.tile(self.seating, (len(states) // len(self.agents), 1))
        if self.compiled:
            run_slices(
                lambda a, b: play_weighted_batch(
                    states[a:b], self.rules.array, self.weights, seating[a:b], cap
                ),
                len(states),
                threads,
            )
        else:
            self._play_in_step(states, seating, cap, threads)

    def _play_in_step(
        self, states: States, seating: npt.NDArray[np.int8], cap: int, threads: int
    ) -> None:
        """Play on to the next questions, ask each agent all of its own, until none is left."""
        r, rows = self.rules.array, self.rows[seating]
        legal = np.empty(len(states), np.int64)
        while True:
            run_slices(
                lambda a, b: advance_weighted_batch(
                    states[a:b], r, self.weights, rows[a:b], cap, legal[a:b]
                ),
                len(states),
                threads,
            )
            waiting = np.flatnonzero(legal)
            if len(waiting) == 0:
                return
            positions = take_states(states, waiting)
            answers = self._ask(positions, seating[waiting, positions["seat"]])
            play_batch(positions, r, answers, np.zeros((len(waiting), 2), np.int8))
            put_states(states, waiting, positions)

    def _ask(self, positions: States, deciders: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """Return the action of every position, asking each agent once."""
        answers = np.empty(len(positions), np.int16)
        keys = decision_keys(positions)
        deciders = self.asked_as[deciders]
        for k in np.unique(deciders):
            own = np.flatnonzero(deciders == k)
            answers[own] = self.agents[int(k)].act(take_states(positions, own), keys[own])
        return answers

    def winners(self, states: States) -> npt.NDArray[np.int8]:
        """Return the agent that won each game, -1 for games without a winner: int8 [B]."""
        n = len(self.agents)
        rotation = np.arange(len(states)) % n
        won = states["status"] == WON
        winner = self.seating[rotation, np.where(won, states["winner"], 0)]
        return np.where(won, winner, -1).astype(np.int8)
