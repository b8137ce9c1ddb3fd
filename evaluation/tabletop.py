"""A line-up at its table: deals blocks of games, plays them, and tells what happened.

Each seed of dice makes a *block*: the line-up is played once per seating, every time with the same
starter dice and the same stream of throws for each seat. What one agent owes to lucky dice, every
other one gets too when it sits there. Games of agents that are all weight vectors run wholly
compiled, in threads; otherwise the batch is played in step and every other agent is asked about all
games that wait for it at once.

A decision depends on its game alone, so results are the same for any number of threads and any
size of batch, and the two ways of playing give the same games.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.counting import CHOICES, PASSES, advance_counted_batch
from kimble_env.board import SEATS
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURE_COUNT
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
from kimble_env.rules import R_PASS, Rules
from kimble_env.threads import run_slices

States = npt.NDArray[np.void]
Seating = npt.NDArray[np.int8]

TALLIES = ("throws", "choices", "passes", "captures", "lost", "arrived")
"""What is added up per agent: dice thrown; decisions with two legal actions or more, and those of
them answered by a pass; pieces of others sent home; own pieces lost; pieces that came home."""

_REPORT_EVERY = 0.25  # seconds between two reports from within a batch that is played in step


class Chunk(NamedTuple):
    """What came out of blocks ``first`` and following.

    places: int8 [blocks, seatings], the place at the table that won (0: the first player), -1 for
    a game cut off. plies: int32 [blocks, seatings], throws. tallies: int64 [agents, TALLIES].
    seconds: CPU seconds. luck: float32 [blocks, seatings, agents], if it was measured.
    """

    first: int
    places: npt.NDArray[np.int8]
    plies: npt.NDArray[np.int32]
    tallies: npt.NDArray[np.int64]
    seconds: float
    luck: npt.NDArray[np.float32] | None = None


def player_seats(rules: Rules) -> tuple[tuple[int, ...], ...]:
    """Return the seats of each player, clockwise (R17: two players may have two colours each)."""
    if rules.two_colours:
        return (0, 2), (1, 3)
    return tuple((seat,) for seat in rules.seats)


def rotations(players: int) -> Seating:
    """Return int8 [players, players]: agent (place + k) mod players sits there in rotation k."""
    n = np.arange(players)
    return ((n[None, :] + n[:, None]) % players).astype(np.int8)


def arrangements(counts: Sequence[int]) -> Seating:
    """Return every different seating in which agent i has ``counts[i]`` places: int8 [R, players].

    One against three is four seatings, two against two six: every seat meets every neighbour.
    """
    who = [agent for agent, count in enumerate(counts) for _ in range(count)]
    return np.array(sorted(set(permutations(who))), np.int8)


def make_agents(agents: Sequence[Any], rules: Rules) -> list[Agent]:
    """Make each agent once: the same spec at several seats is one agent, asked once for all."""
    made: dict[str, Agent] = {}
    for spec in agents:
        if isinstance(spec, str) and spec not in made:
            made[spec] = make_agent(spec, rules)
    return [made[a] if isinstance(a, str) else make_agent(a, rules) for a in agents]


def agent_names(agents: Sequence[Agent]) -> tuple[str, ...]:
    """Return a name for each agent: its spec, numbered from the second of the same spec on."""
    names: list[str] = []
    for k, agent in enumerate(agents):
        same = sum(other.spec == agent.spec for other in agents[:k])
        names.append(f"{agent.spec} ({same + 1})" if same else agent.spec)
    return tuple(names)


class Table:
    """A line-up with its seats.

    Args:
        rules: for as many players as a seating has places.
        agents: made for these rules.
        seatings: int8 [R, players], the agent (by its place in ``agents``) at each place; None for
            all rotations of the agents in their order.

    Attributes:
        compiled: all agents are weight vectors, so that nobody is asked.
    """

    def __init__(
        self, rules: Rules, agents: Sequence[Agent], seatings: Seating | None = None
    ) -> None:
        self.rules = rules
        self.agents = list(agents)
        self.rotations = rotations(len(agents)) if seatings is None else seatings
        count, players = self.rotations.shape
        if players != rules.players:
            raise KimbleError(f"{rules} is for {rules.players} players, but {players} are seated")
        self.seating = np.full((count, SEATS), -1, np.int8)  # [seating, seat] -> agent
        self.place_of = np.full(SEATS, -1, np.int8)  # seat -> place
        for place, seats in enumerate(player_seats(rules)):
            for seat in seats:
                self.seating[:, seat] = self.rotations[:, place]
                self.place_of[seat] = place
        self.asked_as = np.array(
            [next(k for k, other in enumerate(agents) if other is agent) for agent in agents]
        )
        self.weights = np.zeros((len(agents), FEATURE_COUNT))
        self.rows = np.full(len(agents) + 1, -1, np.int8)  # agent -> row of weights, -1: asked
        for k, agent in enumerate(agents):
            if type(agent) is WeightAgent:  # a subclass may decide in its own way
                self.weights[k] = agent.weights
                self.rows[k] = k
        self.compiled = bool((self.rows[: len(agents)] >= 0).all())

    def deal(self, seed: int, first: int, blocks: int) -> States:
        """Start one game per block and seating: STATE [blocks * R], seatings side by side."""
        keys = np.empty(blocks, np.uint64)
        game_keys(np.uint64(seed), first, keys)
        states = empty_states(blocks)
        plays = np.zeros((blocks, SEATS), np.int8)
        plays[:, list(self.rules.seats)] = 1
        new_game_batch(states, self.rules.array, plays, keys, np.empty((0, 2), np.int8))
        return take_states(states, np.repeat(np.arange(blocks), len(self.rotations)))

    def play_blocks(
        self,
        seed: int,
        first: int,
        blocks: int,
        cap: int,
        threads: int = 1,
        report: Callable[[int], object] | None = None,
    ) -> Chunk:
        """Play some blocks to their ends or to the cap.

        Args:
            seed: of the dice.
            first: number of the first block.
            blocks: how many.
            cap: throws after which a game is cut off.
            threads: of compiled play.
            report: called now and then with the number of games that have ended, where agents are
                asked.
        """
        start = time.process_time()
        states = self.deal(seed, first, blocks)
        counts = np.zeros((len(states), SEATS, 2), np.int32)
        self.play(states, cap, threads, counts, report)
        shape = (blocks, len(self.rotations))
        won = states["status"] == WON
        places = np.where(won, self.place_of[np.where(won, states["winner"], 0)], -1)
        return Chunk(
            first,
            places.astype(np.int8).reshape(shape),
            states["plies"].reshape(shape),
            self._tally(states, counts),
            time.process_time() - start,
        )

    def play(
        self,
        states: States,
        cap: int,
        threads: int,
        counts: npt.NDArray[np.int32] | None = None,
        report: Callable[[int], object] | None = None,
    ) -> None:
        """Play all games of ``deal`` on; choices and passes are added to counts [games, 4, 2].

        Each agent is asked all of its own questions at once, until no game is left.
        """
        r = self.rules.array
        rows = self.rows[np.tile(self.seating, (len(states) // len(self.seating), 1))]
        seating = np.tile(self.seating, (len(states) // len(self.seating), 1))
        counts = np.zeros((len(states), SEATS, 2), np.int32) if counts is None else counts
        legal = np.empty(len(states), np.int64)
        told = time.monotonic()
        while True:
            run_slices(
                lambda a, b: advance_counted_batch(
                    states[a:b], r, self.weights, rows[a:b], cap, legal[a:b], counts[a:b]
                ),
                len(states),
                threads,
            )
            waiting = np.flatnonzero(legal)
            if len(waiting) == 0:
                return
            positions = take_states(states, waiting)
            answers = self._ask(positions, seating[waiting, positions["seat"]])
            counts[waiting, positions["seat"], CHOICES] += 1
            counts[waiting, positions["seat"], PASSES] += answers == r[R_PASS]
            play_batch(positions, r, answers, np.zeros((len(waiting), 2), np.int8))
            put_states(states, waiting, positions)
            if report is not None and time.monotonic() > told + _REPORT_EVERY:
                told = time.monotonic()
                report(len(states) - len(waiting))

    def _ask(self, positions: States, deciders: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """Return the action of every position, asking each agent once."""
        answers = np.empty(len(positions), np.int16)
        keys = decision_keys(positions)
        deciders = self.asked_as[deciders]
        for k in np.unique(deciders):
            own = np.flatnonzero(deciders == k)
            answers[own] = self.agents[int(k)].act(take_states(positions, own), keys[own])
        return answers

    def _tally(self, states: States, counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Add up per agent what TALLIES names: int64 [agents, TALLIES]."""
        columns = (
            states["throw_count"], counts[:, :, CHOICES], counts[:, :, PASSES], states["taken"],
            states["lost"], states["arrived"],
        )  # fmt: skip
        tallies = np.zeros((len(self.agents), len(TALLIES)), np.int64)
        seatings = len(self.seating)
        for column, values in enumerate(columns):
            sums = values.reshape(-1, seatings, SEATS).sum(axis=0, dtype=np.int64)
            for agent in range(len(self.agents)):
                tallies[agent, column] = sums[self.seating == agent].sum()
        return tallies


def blocks_for(games: int, seatings: int) -> int:
    """Return how many whole blocks hold at least ``games`` games."""
    return math.ceil(games / seatings)
