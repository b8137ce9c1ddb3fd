"""A tournament: every agent against every other at mixed tables, with a record to resume from.

A *pairing* is two agents. With two players they sit opposite each other; with three one plays two
and two play one; with four it is one against three, two against two and three against one, in every
arrangement of the seats (14 of them) on the same dice: that is one block. Over a whole block both
agents have the same number of places, so par is 50 %, and an agent's *points* are its share of
those games in per cent. Every pairing has dice of its own: an agent that met all its opponents on
the same dice would owe its points to them, and need three times as many games.

The record (``record.py``) is a file of finished chunks. Whoever calls :func:`play_tournament` with
the same file and the same settings goes on where it stopped, in whatever way it stopped. More
agents may be named than last time, anywhere in the list: what the others have played stays.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.match import DEFAULT_CAP, Progress, check_numbers
from evaluation.record import (
    LENGTH_BIN,
    RecordError,
    Result,
    append,
    appending,
    make_record,
    read_lines,
    read_result,
)
from evaluation.statistics import Interval, block_bootstrap
from evaluation.tabletop import TALLIES, Chunk, Seating, Table, arrangements, make_agents
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
from kimble_env.features import FEATURES
from kimble_env.opponents import Agent, WeightAgent
from kimble_env.own_code import absolute, split_own
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads

KINDS = {2: ("1v1",), 3: ("1v2", "2v1"), 4: ("1v3", "2v2", "3v1")}
"""Kinds of tables by number of players: places of the first agent, v, places of the second."""

_OF_AGENTS = ("agents", "fingerprints", "pairs")
_FOLLOWS = _OF_AGENTS[1:]  # differ too if the agents do
_DICE = "sha256 of seed and pairing"
_CHUNK_SECONDS = 1.5  # of work that a kill may cost
_LARGEST = 8192  # games in a chunk at most


def kind_counts(kind: str) -> tuple[int, int]:
    """Return the places of both agents: (1, 3) of ``1v3``."""
    first, _, second = kind.partition("v")
    return int(first), int(second)


def kind_seatings(kind: str) -> Seating:
    """Return the seatings of a kind of table: int8 [R, players]; with two players both."""
    return arrangements(kind_counts(kind))


def choose_kinds(players: int, kinds: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds of tables that are played, each with its mirror image, in their order.

    Raises:
        KimbleError: a kind that does not exist for so many players.
    """
    known = KINDS[players]
    if not kinds:
        return known
    wrong = [kind for kind in kinds if kind not in known]
    if wrong:
        raise KimbleError(
            f"unknown tables for {players} players: {', '.join(map(str, wrong))}; "
            f"known: {', '.join(known)}"
        )
    wanted = {*kinds, *(kind[::-1] for kind in kinds)}
    return tuple(kind for kind in known if kind in wanted)


def fingerprint(agent: Agent, spec: str) -> str:
    """Return what an agent is made of, as far as can be told (16 hex digits).

    Weights, or the hash that the agent states, or the text of its file, and the version of this
    package for all others. A resumed tournament must have the same agents.
    """
    inner = getattr(agent, "inner", agent)
    stated = getattr(inner, "hash", None)
    digest = hashlib.sha256()
    split = split_own(absolute(spec))
    if type(agent) is WeightAgent:
        named = [f"{f}={w!r}" for f, w in zip(FEATURES, agent.weights.tolist(), strict=True) if w]
        digest.update(" ".join(named).encode())  # a feature that comes later changes nothing
    elif isinstance(stated, str):
        digest.update(f"{spec} {stated}".encode())
    elif split is not None and Path(split[0]).is_file():
        digest.update(Path(split[0]).read_bytes())
    else:
        digest.update(f"{spec} {__version__}".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Settings:
    """What is played: the first line of the record.

    Attributes:
        rules: with the number of players.
        agents: specs, in the order of the list.
        prints: a fingerprint of each.
        pairs: the pairings, as places in ``agents``.
        kinds: the kinds of tables.
        seed: of the dice.
        cap: throws after which a game is cut off.
        adjust: spec of the evaluator that luck is counted by; None: it is not.
        adjust_hash: its hash.
    """

    rules: Rules
    agents: tuple[str, ...]
    prints: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]
    seed: int
    cap: int
    adjust: str | None = None
    adjust_hash: str | None = None

    @cached_property
    def seatings(self) -> Seating:
        """All seatings of a block, kind after kind: int8 [R, players]."""
        return np.concatenate([kind_seatings(kind) for kind in self.kinds])

    @cached_property
    def kind_of(self) -> npt.NDArray[np.int64]:
        """The kind (place in ``kinds``) of each seating: int64 [R]."""
        return np.repeat(np.arange(len(self.kinds)), [len(kind_seatings(k)) for k in self.kinds])

    def dice(self, pair: int) -> int:
        """Return the seed of the dice of a pairing: a hash of the seed and the two specs."""
        names = " v ".join(self.agents[k] for k in self.pairs[pair])
        digest = hashlib.sha256(f"{self.seed} {names}".encode()).digest()
        return int.from_bytes(digest[:7])

    def header(self) -> dict[str, Any]:
        """Return the settings as JSON data, with the versions that played."""
        return {**self._identity(), "kimble_rl": __version__, "python": platform.python_version(),
                "numpy": np.__version__}  # fmt: skip

    def _identity(self) -> dict[str, Any]:
        return {
            "rules": str(self.rules),
            "rules_hash": self.rules.hash,
            "seats": list(self.rules.seats),
            "agents": list(self.agents),
            "fingerprints": list(self.prints),
            "pairs": [list(pair) for pair in self.pairs],
            "kinds": list(self.kinds),
            "seed": self.seed,
            "cap": self.cap,
            "adjust": self.adjust,
            "adjust_hash": self.adjust_hash,
            "dice": _DICE,
        }

    def is_of(self, header: dict[str, Any]) -> bool:
        """Say whether a record is of this very tournament."""
        return all(header.get(name) == value for name, value in self._identity().items())

    def check_same(self, header: dict[str, Any], path: Path) -> None:
        """Check that a record is of this very tournament.

        Raises:
            RecordError: naming everything that differs.
        """
        faults = [
            f"{name} is {header.get(name)!r} there and {value!r} now"
            for name, value in self._identity().items()
            if header.get(name) != value and name not in _FOLLOWS
        ]
        if not faults and header.get("fingerprints") != list(self.prints):
            changed = [
                agent
                for agent, mine, theirs in zip(
                    self.agents, self.prints, header.get("fingerprints", ()), strict=False
                )
                if mine != theirs
            ]
            faults = [f"{' and '.join(changed)} has changed since"]
        if not faults and header.get("pairs") != self._identity()["pairs"]:
            faults = ["other pairs of these agents met there"]
        if faults:
            raise RecordError(
                f"{path} is of another tournament; keep this one in another file (--record): "
                f"{'; '.join(faults)}"
            )

    def known_pairs(self, header: dict[str, Any]) -> dict[int, int] | None:
        """Return which pair of a record is which pair here: those of the same two agents.

        None if the record is of other rules, tables, dice or adjustment.
        """
        alike = {k: v for k, v in self._identity().items() if k not in _OF_AGENTS}
        if any(header.get(name) != value for name, value in alike.items()):
            return None
        mine = list(zip(self.agents, self.prints, strict=True))
        try:
            theirs = list(zip(header["agents"], header["fingerprints"], strict=True))
            same = [mine.index(agent) if agent in mine else -1 for agent in theirs]
            pairs = [(same[i], same[j]) for i, j in header["pairs"]]
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        return {k: self.pairs.index(pair) for k, pair in enumerate(pairs) if pair in self.pairs}


@dataclass
class Pairing:
    """Everything played of one pairing, its blocks in their order.

    Attributes:
        first, second: the agents, as places in ``Tournament.agents``.
        places: int8 [blocks, R], the place that won, -1 for a game cut off.
        luck: float64 [blocks, kinds] of the first agent, or None.
        lengths: games per bin of LENGTH_BIN throws.
        plies, seconds: throws and CPU seconds in all.
        tallies: int64 [2, TALLIES], of both agents.
    """

    first: int
    second: int
    places: npt.NDArray[np.int8]
    luck: npt.NDArray[np.float64] | None
    lengths: dict[int, int]
    plies: int
    seconds: float
    tallies: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tournament:
    """What a record holds.

    Attributes:
        settings: what was played.
        pairings: one for each of ``settings.pairs``.
        versions: of the programs that began the record.
    """

    settings: Settings
    pairings: list[Pairing]
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents, in the order of the list."""
        return self.settings.agents

    @property
    def games(self) -> int:
        """Games played."""
        return sum(pairing.places.size for pairing in self.pairings)

    @property
    def truncated(self) -> int:
        """Games cut off."""
        return sum(int((pairing.places < 0).sum()) for pairing in self.pairings)

    def wins(self, pairing: Pairing, adjusted: bool = False) -> npt.NDArray[np.float64]:
        """Return the games that the first agent won, per block and kind: float64 [blocks, kinds].

        A game cut off counts as many n-ths as it had places. ``adjusted`` takes its luck off.
        """
        seatings = self.settings.seatings
        players = seatings.shape[1]
        own = seatings == 0
        won = own[np.arange(len(seatings)), pairing.places] & (pairing.places >= 0)
        scores = np.where(pairing.places < 0, own.sum(axis=1) / players, won)
        wins = np.stack(
            [
                scores[:, self.settings.kind_of == kind].sum(axis=1)
                for kind in range(len(self.settings.kinds))
            ],
            axis=1,
        )
        if adjusted:
            if pairing.luck is None:
                raise KimbleError("luck was not measured in this tournament")
            wins = wins - pairing.luck
        return wins

    def games_per_block(self) -> npt.NDArray[np.int64]:
        """Return the games of each kind in a block: int64 [kinds]."""
        return np.bincount(self.settings.kind_of)

    def block_points(self, pairing: Pairing, adjusted: bool = False) -> npt.NDArray[np.float64]:
        """Return the share that the first agent won of each block: float64 [blocks]."""
        share: npt.NDArray[np.float64] = self.wins(pairing, adjusted).sum(axis=1)
        return share / len(self.settings.kind_of)

    def kind_points(
        self, pairing: Pairing, kind: str, adjusted: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return the share that the first agent won of the games of a kind: float64 [blocks]."""
        k = self.settings.kinds.index(kind)
        share: npt.NDArray[np.float64] = self.wins(pairing, adjusted)[:, k]
        return share / self.games_per_block()[k]

    def matrix(self, adjusted: bool = False) -> npt.NDArray[np.float64]:
        """Return the share of the row's agent against the column's: float64 [agents, agents].

        0.5 is par; NaN where they did not meet.
        """
        matrix = np.full((len(self.agents), len(self.agents)), np.nan)
        for pairing in self.pairings:
            if len(pairing.places):
                share = float(self.block_points(pairing, adjusted).mean())
                matrix[pairing.first, pairing.second] = share
                matrix[pairing.second, pairing.first] = 1.0 - share
        return matrix

    def against(
        self, agent: int, other: int, kind: str | None = None, adjusted: bool = False
    ) -> tuple[float, Interval, int] | None:
        """Return share, 95 % seat-block bootstrap interval and games of one agent against another.

        Args:
            agent: place in ``agents``.
            other: place in ``agents``.
            kind: as the agent sees it: ``1v3`` is one of it against three; None for all tables.
            adjusted: with the luck taken off.
        """
        for pairing in self.pairings:
            if {pairing.first, pairing.second} != {agent, other} or not len(pairing.places):
                continue
            own = pairing.first == agent
            if kind is None:
                blocks, games = self.block_points(pairing, adjusted), pairing.places.size
            else:
                seen = kind if own else kind[::-1]
                blocks = self.kind_points(pairing, seen, adjusted)
                games = len(blocks) * int(self.games_per_block()[self.settings.kinds.index(seen)])
            blocks = blocks if own else 1.0 - blocks
            return float(blocks.mean()), mean_interval(blocks), games
        return None


def mean_interval(blocks: npt.NDArray[np.float64], confidence: float = 0.95) -> Interval:
    """Return the seat-block bootstrap interval of a mean; of many different values, the normal one.

    Block scores of adjusted games are all different: drawing them again is slow, and with hundreds
    of them gives the normal interval.
    """
    if len(np.unique(blocks)) <= 200:
        return block_bootstrap(blocks, confidence)
    from statistics import NormalDist

    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    half = z * float(blocks.std(ddof=1)) / len(blocks) ** 0.5
    return float(blocks.mean()) - half, float(blocks.mean()) + half


# ------------------------------------------------------------------------------------------ playing


def make_settings(
    agents: Sequence[str],
    rules: str | Rules = "kimble",
    players: int | None = None,
    *,
    kinds: Sequence[str] | None = None,
    against: Sequence[str] | None = None,
    seed: int = 1,
    cap: int = DEFAULT_CAP,
    adjust: str | None = None,
) -> Settings:
    """Return the settings of a tournament, checked.

    Args:
        agents: two specs or more, all different.
        rules: rules or their text.
        players: 2 to 4; those of the rules if left out.
        kinds: kinds of tables, see KINDS; all if left out. Mirror images are added.
        against: play only pairings in which one of these agents sits; all pairings if left out.
        seed: of the dice.
        cap: throws after which a game is cut off.
        adjust: spec of the evaluator that luck is counted by.

    Raises:
        KimbleError: whatever cannot be, with the reason.
    """
    specs = tuple(agents)
    if len(specs) < 2 or len(set(specs)) < len(specs):
        got = ", ".join(map(str, specs)) or "none"
        raise KimbleError(f"a tournament needs two different agents or more, each once; got {got}")
    if not all(isinstance(spec, str) for spec in specs):
        raise KimbleError("name the agents of a tournament by specs, so that it can resume")
    missing = [spec for spec in against or () if spec not in specs]
    if missing:
        raise KimbleError(f"against must name agents of the tournament, not {', '.join(missing)}")
    check_numbers(seed=(seed, 0), cap=(cap, 1))
    found = find_rules(rules)
    if players is not None and players not in (2, 3, 4):
        raise KimbleError(f"players must be 2, 3 or 4, got {players!r}")
    if players is not None and players != found.players:
        if found.two_colours:
            raise KimbleError(f"{found} is for 2 players, but players={players}")
        found = found.replace(players=players)
    made = make_agents(specs, found)
    names = tuple(agent.spec for agent in made)  # a search names the network that judges
    if len(set(names)) < len(names):
        raise KimbleError(f"a tournament needs different agents, got {list(names)}")
    chosen = {specs.index(spec) for spec in against or specs}
    pairs = tuple(
        pair for pair in itertools.combinations(range(len(specs)), 2) if chosen & set(pair)
    )
    return Settings(
        found,
        names,
        tuple(fingerprint(agent, name) for agent, name in zip(made, names, strict=True)),
        pairs,
        choose_kinds(found.players, kinds),
        int(seed),
        int(cap),
        adjust,
        None if adjust is None else _evaluator_hash(adjust, found),
    )


def _evaluator_hash(spec: str, rules: Rules) -> str:
    from agents.evaluators import make_evaluator

    return str(make_evaluator(spec, rules).hash)


def play_tournament(
    settings: Settings,
    path: str | os.PathLike[str],
    games: int = 20_000,
    *,
    threads: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Tournament:
    """Play until every pairing has at least ``games`` games, and return all that is recorded.

    Args:
        settings: of :func:`make_settings`.
        path: the record; it is begun if it does not exist, and gone on with if it does. More
            games than last time extend it.
        games: of each pairing, rounded up to whole blocks.
        threads: of compiled play; None for one per processor.
        workers: processes for pairings in which an agent has to be asked.
        progress: called with the games recorded so far and in all.

    Raises:
        RecordError: the file is damaged, of something else or of another tournament.
        KimbleError: a number out of range, or what an agent raised.
    """
    check_numbers(games=(games, 1))
    check_workers(workers)
    threads = check_threads(threads if threads is not None else os.cpu_count() or 1)
    place = Path(path)
    if not place.exists():
        make_record(place, settings.header())
    header, lines, good = read_lines(place)
    if not lines and not settings.is_of(header):
        _begin_again(place, good, settings)
        header, _, good = read_lines(place)
    known = settings.known_pairs(header)
    if known is not None and len(known) == len(header["pairs"]) < len(settings.pairs):
        adopt_record(place, settings)
        header, _, good = read_lines(place)
    settings.check_same(header, place)
    with appending(place, good) as file:
        # Another process may have written between reading and locking.
        header, lines, good = read_lines(place)
        book = _Book(settings, [_read(settings, line, place) for line in lines], place)
        target = -(-games // len(settings.kind_of))
        total = sum(max(target, book.done(pair)) for pair in range(len(settings.pairs)))
        player = _Player(settings, book, target, threads, workers)
        for result in player.results():
            append(file, result)
            book.add(result)
            if progress is not None:
                progress(
                    sum(map(book.done, range(len(settings.pairs)))) * len(settings.kind_of),
                    total * len(settings.kind_of),
                )
    return read_tournament(place)


def _begin_again(place: Path, good: int, settings: Settings) -> None:
    """Make a record that holds no game yet one of these settings."""
    with appending(place, good):
        if not read_lines(place)[1]:  # another process may have played meanwhile
            make_record(place, settings.header())


def adopt_record(path: str | os.PathLike[str], settings: Settings) -> int:
    """Make a record one of these settings, which may name other agents; return the chunks kept.

    Everything played between agents that are in both stays, and no other chunk. The file is
    replaced in one step.

    Raises:
        RecordError: it is damaged, in use, or of other rules, tables, dice or adjustment.
    """
    place = Path(path)
    header, lines, good = read_lines(place)
    known = settings.known_pairs(header)
    if known is None:
        settings.check_same(header, place)
        raise RecordError(f"{place} is of another tournament")
    with appending(place, good):
        header, lines, good = read_lines(place)
        results = [_read(settings, {**line, "pair": 0}, place) for line in lines]
        kept = [
            result._replace(pair=known[line["pair"]])
            for line, result in zip(lines, results, strict=True)
            if line["pair"] in known
        ]
        make_record(place, settings.header(), kept)
    return len(kept)


def read_tournament(path: str | os.PathLike[str]) -> Tournament:
    """Return everything that a record holds; a torn last line is left out.

    Raises:
        RecordError: the file is damaged or is not a record.
    """
    place = Path(path)
    header, lines, _ = read_lines(place)
    try:
        rules = find_rules(header["rules"]).replace(seats=tuple(header["seats"]))
        settings = Settings(
            rules, tuple(header["agents"]), tuple(header["fingerprints"]),
            tuple((int(i), int(j)) for i, j in header["pairs"]), tuple(header["kinds"]),
            int(header["seed"]), int(header["cap"]), header["adjust"],
            header["adjust_hash"],
        )  # fmt: skip
        same = rules.hash == header["rules_hash"]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{place}: its first line cannot be read: {error}") from None
    if not same:
        raise RecordError(
            f"{place} was played by rules {header['rules_hash']}; {rules} now has {rules.hash}"
        )
    book = _Book(settings, [_read(settings, line, place) for line in lines], place)
    versions = {name: str(header.get(name)) for name in ("kimble_rl", "python", "numpy")}
    return Tournament(settings, [book.pairing(k) for k in range(len(settings.pairs))], versions)


def _read(settings: Settings, line: dict[str, Any], place: Path) -> Result:
    result = read_result(line, len(settings.kind_of), len(settings.kinds))
    if not 0 <= result.pair < len(settings.pairs) or result.first < 0:
        raise RecordError(f"{place}: a line is of pairing {result.pair}, block {result.first}")
    return result


class _Book:
    """Which blocks of which pairing are played: none twice."""

    def __init__(self, settings: Settings, results: Sequence[Result], place: Path) -> None:
        self.settings = settings
        self.place = place
        self._results: list[dict[int, Result]] = [{} for _ in settings.pairs]
        for result in results:
            self.add(result)
        for own in self._results:
            end = 0
            for first in sorted(own):
                if first < end:
                    raise RecordError(f"{place}: block {first} of a pairing stands there twice")
                end = first + len(own[first].places)

    def add(self, result: Result) -> None:
        if result.first in self._results[result.pair]:
            raise RecordError(f"{self.place}: block {result.first} of a pairing stands there twice")
        self._results[result.pair][result.first] = result

    def done(self, pair: int) -> int:
        """Return the number of blocks of a pairing that are played."""
        return sum(len(result.places) for result in self._results[pair].values())

    def gaps(self, pair: int, target: int) -> list[tuple[int, int]]:
        """Return the blocks below ``target`` that are not played, as (first, stop)."""
        gaps, end = [], 0
        for first in sorted(self._results[pair]):
            if first > end:
                gaps.append((end, min(first, target)))
            end = first + len(self._results[pair][first].places)
        gaps.append((end, target))
        return [(first, stop) for first, stop in gaps if first < stop]

    def pairing(self, pair: int) -> Pairing:
        """Return everything played of a pairing."""
        own = [self._results[pair][first] for first in sorted(self._results[pair])]
        lengths: dict[int, int] = {}
        for result in own:
            for size, count in result.lengths.items():
                lengths[size] = lengths.get(size, 0) + count
        empty = np.empty((0, len(self.settings.kind_of)), np.int8)
        lucky = bool(own) and all(result.luck is not None for result in own)
        return Pairing(
            *self.settings.pairs[pair],
            np.concatenate([empty, *(result.places for result in own)]),
            np.concatenate([result.luck for result in own]) if lucky else None,  # type: ignore[misc]
            lengths,
            sum(result.plies for result in own),
            sum(result.seconds for result in own),
            sum((result.tallies for result in own), np.zeros((2, len(TALLIES)), np.int64)),
        )


class _Player:
    """Plays what is missing, the pairing that is furthest behind first."""

    def __init__(
        self, settings: Settings, book: _Book, target: int, threads: int, workers: int
    ) -> None:
        self.settings = settings
        self.threads = threads
        self.workers = workers
        self.made = make_agents(settings.agents, settings.rules)
        # Gaps, next one last, and the blocks handed out so far.
        self.gaps = [book.gaps(pair, target)[::-1] for pair in range(len(settings.pairs))]
        self.given = [book.done(pair) for pair in range(len(settings.pairs))]
        self.speed: dict[int, float] = {}  # blocks per second of a pairing

    def table(self, pair: int) -> Table:
        """Return the table of a pairing."""
        agents = [self.made[k] for k in self.settings.pairs[pair]]
        return make_table(self.settings.rules, agents, self.settings.seatings, self.settings.adjust)

    def results(self) -> Iterator[Result]:
        """Yield every chunk that was missing, as it is finished."""
        tables = [self.table(pair) for pair in range(len(self.gaps))]
        compiled = [table.compiled for table in tables]
        yield from self._play_here([k for k, c in enumerate(compiled) if c], tables)
        asked = [k for k, c in enumerate(compiled) if not c]
        if self.workers == 1:
            yield from self._play_here(asked, tables)
        elif any(self.gaps[k] for k in asked):
            with Workers(self.workers) as pool:
                for job, chunk in pool.run(self._jobs(asked, tables)):
                    self._learn_speed(job.key, chunk)
                    yield self._result(job.key, chunk)

    def _play_here(self, pairs: Sequence[int], tables: Sequence[Table]) -> Iterator[Result]:
        for job in self._jobs(pairs, tables):
            chunk = play_chunk(job, tables[job.key], self.threads)
            self._learn_speed(job.key, chunk)
            yield self._result(job.key, chunk)

    def _jobs(self, pairs: Sequence[int], tables: Sequence[Table]) -> Iterator[Job]:
        """Hand out chunks, always of the pairing that has the fewest blocks."""
        while True:
            open_pairs = [pair for pair in pairs if self.gaps[pair]]
            if not open_pairs:
                return
            pair = min(open_pairs, key=self.given.__getitem__)
            first, stop = self.gaps[pair].pop()
            blocks = min(stop - first, self._size(pair, tables[pair].compiled))
            if first + blocks < stop:
                self.gaps[pair].append((first + blocks, stop))
            self.given[pair] += blocks
            recipe = make_recipe(
                self.settings.rules,
                [self.settings.agents[k] for k in self.settings.pairs[pair]],
                self.settings.seatings,
                self.settings.adjust,
            )
            yield Job(recipe, self.settings.dice(pair), first, blocks, self.settings.cap, pair)

    def _size(self, pair: int, compiled: bool) -> int:
        """Return how many blocks to play at once: a few seconds of work."""
        seatings = len(self.settings.kind_of)
        start = 64.0 if compiled and self.settings.adjust is None else 4.0
        wanted = self.speed.get(pair, start / _CHUNK_SECONDS) * _CHUNK_SECONDS
        return max(1, min(int(wanted), _LARGEST // seatings))

    def _learn_speed(self, pair: int, chunk: Chunk) -> None:
        self.speed[pair] = len(chunk.places) / max(chunk.seconds, 1e-3)

    def _result(self, pair: int, chunk: Chunk) -> Result:
        bins, counts = np.unique(chunk.plies // LENGTH_BIN, return_counts=True)
        luck = chunk.luck
        if luck is not None:  # of the first agent, by kind
            kinds = range(len(self.settings.kinds))
            luck = np.stack(
                [luck[:, self.settings.kind_of == kind, 0].sum(axis=1) for kind in kinds], axis=1
            )
        return Result(
            pair, chunk.first, chunk.places, luck,
            dict(zip(bins.tolist(), counts.tolist(), strict=True)),
            int(chunk.plies.sum(dtype=np.int64)), chunk.tallies, chunk.seconds,
        )  # fmt: skip
