"""Weights by evolution: CMA-ES over the move features, judged by compiled matches.

Each generation plays every candidate on the same dice, over all rotations of the seats, against a
stated mixture: ``random``, ``mixed``, the best vector so far (``best``) and the middle of the
search (``self``). What is varied is not a weight but a weight times the spread of its feature over
the moves of sampled positions, so that one step size suits all (Hansen's tutorial asks for that).

A run is a folder::

    settings.json    what was asked for, with versions
    log.jsonl        a line per generation and per check
    state.pickle     the whole search after the last generation (own runs only: a pickle)
    weights.json     the best vector so far, usable as weights:FOLDER/weights.json

Killed at any moment a run goes on from its last generation and gives the same result: dice and
samples are functions of the seed and the number of the generation.
"""

from __future__ import annotations

import json
import os
import pickle
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.errors import KimbleError
from kimble_env.features import (
    FEATURE_COUNT,
    FEATURES,
    advance_weighted_batch,
    features_batch,
    play_weighted_batch,
)
from kimble_env.files import write_whole
from kimble_env.kernel import (
    WON,
    empty_states,
    game_keys,
    new_game_batch,
    put_states,
    take_states,
)
from kimble_env.opponents import WeightAgent, make_agent, weight_vector
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads, run_slices
from training.checks import refuse_others
from training.progress import ProgressLine

Vector = npt.NDArray[np.float64]

SELF, BEST = "self", "best"
_COMMON = (
    "enter enter_alone leave_start unblock on_stretch progress pips reach_stretch depth "
    "foreign_start enemy_start hit_before hit_after risk_before risk_after risk_again risk_lead "
    "prey_before prey_after prey_lead behind_before behind_after trail_before trail_after "
    "ambush_before ambush_after gate_before gate_after relief"
).split()
_SAMPLE = 600  # positions from which the spread of a feature is taken


@dataclass(frozen=True)
class Settings:
    """What a run is asked for.

    Attributes:
        rules: text of the rules; their players are ``players``.
        players: 2 to 4.
        generations: of the search.
        population: candidates per generation.
        games: per candidate and generation, rounded up to whole rotations per opponent.
        check_every: generations between two checks of the middle of the search.
        check_games: per opponent in a check.
        step: first step size, in spreads of a feature.
        seed: of dice and samples.
        start: spec of the weight vector to begin with.
        opponents: who is played against, each in equally many games; ``best`` and ``self`` are the
            search's own.
        cap: throws after which a game is cut off and counts 1/n.
    """

    rules: str = "kimble"
    players: int = 2
    generations: int = 60
    population: int = 16
    games: int = 2400
    check_every: int = 10
    check_games: int = 6000
    step: float = 0.2
    seed: int = 1
    start: str = "planner"
    opponents: tuple[str, ...] = ("random", "mixed", BEST, SELF)
    cap: int = 5000

    def checked(self) -> Settings:
        """Return these settings.

        Raises:
            KimbleError: a number out of range, no opponents.
        """
        least = {"generations": 1, "population": 4, "games": 1, "check_every": 1, "check_games": 1}
        least |= {"seed": 0, "cap": 1, "players": 2}
        for name, low in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise KimbleError(f"{name} must be a whole number of at least {low}, got {value!r}")
        if not 0.0 < self.step < 100.0:
            raise KimbleError(f"step must be above 0 and below 100, got {self.step!r}")
        if not self.opponents or self.opponents == (SELF,):
            raise KimbleError("opponents must name somebody besides self")
        return self


def tuned_features(rules: Rules) -> tuple[str, ...]:
    """Return the features whose weights are searched for under these rules."""
    names = list(_COMMON)
    if rules.pass_allowed:
        names += ["pass", "pass_six"]
    if rules.battles:
        names += ["battle_win", "battle_loss", "battle_swing"]
    else:
        names += ["capture", "capture_progress"]
    if rules.batteries:
        names += ["size", "battery"]
    if rules.protected_start or rules.own_collision != "illegal":
        names += ["forced_loss", "protected"]
    if rules.home:
        names += ["reach_home"]
    if len(rules.seats) > 2:
        names += ["leader"]
    return tuple(name for name in FEATURES if name in names)


def feature_spread(rules: Rules, weights: Vector, seed: int) -> Vector:
    """Return the standard deviation of each feature over the moves of sampled decisions: [F].

    The positions come from games that ``weights`` plays against itself. 1 for a feature that never
    differs.
    """
    states = deal(rules, seed, _SAMPLE)
    table, legal = weights[None, :].copy(), np.empty(_SAMPLE, np.int64)
    for part, chunk in enumerate(np.array_split(np.arange(_SAMPLE), 24)):
        few, own = take_states(states, chunk), np.empty(len(chunk), np.int64)
        rows = np.zeros((len(chunk), 4), np.int8)
        play_weighted_batch(few, rules.array, table, rows, 6 * part)
        advance_weighted_batch(few, rules.array, table, rows - 1, 1 << 30, own)
        put_states(states, chunk, few)
        legal[chunk] = own
    actions = np.arange(rules.board.actions)
    places, moves = np.nonzero(legal[:, None] >> actions & 1)
    values = np.empty((len(places), FEATURE_COUNT))
    features_batch(take_states(states, places), rules.array, moves.astype(np.int16), values)
    spread: Vector = values.std(axis=0)
    return np.where(spread > 1e-9, spread, 1.0)


def deal(rules: Rules, seed: int, count: int) -> npt.NDArray[np.void]:
    """Start ``count`` games of the dice ``seed``."""
    keys, states = np.empty(count, np.uint64), empty_states(count)
    game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    return states


class Arena:
    """Plays candidates against opponents on common dice.

    Args:
        rules: seats that play are those of the rules.
        games: per candidate and opponent, rounded up to whole rotations.
        cap: throws after which a game is cut off.
        threads: of compiled play.
    """

    def __init__(self, rules: Rules, games: int, cap: int, threads: int) -> None:
        self.rules = rules
        self.blocks = -(-games // rules.players)
        self.cap = cap
        self.threads = threads

    @property
    def games(self) -> int:
        """Games per candidate and opponent."""
        return self.blocks * self.rules.players

    def shares(
        self, candidates: Sequence[Vector], opponents: Sequence[Vector], seed: int
    ) -> npt.NDArray[np.float64]:
        """Return the win share of each candidate against each opponent: float64 [C, O].

        A candidate has one seat and the opponent all others; a game cut off counts 1/n.
        """
        table = np.array([*candidates, *opponents])
        states = deal(self.rules, seed, self.blocks)
        turns, n = self.rules.players, len(candidates)
        out = np.empty((n, len(opponents)))
        for k in range(n):
            for j in range(len(opponents)):
                out[k, j] = self._share(table, k, n + j, states, turns)
        return out

    def _share(self, table: Vector, own: int, other: int, start: Any, turns: int) -> float:
        states = take_states(start, np.repeat(np.arange(self.blocks), turns))
        places = np.array(self.rules.seats)[np.arange(len(states)) % turns]
        seating = np.full((len(states), 4), other, np.int8)
        seating[np.arange(len(states)), places] = own
        run_slices(
            lambda a, b: play_weighted_batch(
                states[a:b], self.rules.array, table, seating[a:b], self.cap
            ),
            len(states),
            self.threads,
        )
        over = states["status"] == WON
        won = over & (states["winner"] == places)
        return float((won.sum() + (~over).sum() / turns) / len(states))


class Normal:
    """Standard normal numbers for the search: a function of seed and generation, and pickles."""

    def __init__(self) -> None:
        self.begin(0, 0)

    def begin(self, seed: int, generation: int) -> None:
        """Start the numbers of a generation."""
        self.generator = np.random.default_rng([seed, generation])

    def __call__(self, *shape: int) -> Any:
        return self.generator.standard_normal(shape)


@dataclass
class Search:
    """A search under way; all of it is pickled."""

    settings: Settings
    strategy: Any
    normal: Normal
    scale: Vector  # weight = value / scale
    base: Vector  # weights of the features that are not searched
    best: Vector
    best_score: float
    generation: int = 0
    games: int = 0
    seconds: float = 0.0
    log: list[dict[str, Any]] = field(default_factory=list)

    def weights(self, values: npt.ArrayLike, names: Sequence[str]) -> Vector:
        """Return the weight vector of a point of the search."""
        vector = self.base.copy()
        for name, value in zip(names, np.asarray(values), strict=True):
            k = FEATURES.index(name)
            vector[k] = value / self.scale[k]
        return vector


def evolve(
    settings: Settings,
    folder: str | os.PathLike[str],
    *,
    resume: bool = False,
    insist: Sequence[str] = (),
    threads: int | None = None,
    progress: bool = True,
) -> Vector:
    """Search for weights and return the best vector found: float64 [F].

    Args:
        settings: what is asked for; with ``resume`` those of the run are taken.
        folder: of the run; made here, and must be new unless ``resume``.
        resume: go on from the last generation.
        insist: names of settings that must then be those of the run.
        threads: of compiled play; None for one per processor. Does not change the result.
        progress: show a line with rate and time left.

    Raises:
        KimbleError: settings out of range, a folder that is there already or is no run.
        AgentError: a start or an opponent that is no weight vector.
    """
    place = Path(folder)
    threads = check_threads(threads if threads is not None else os.cpu_count() or 1)
    if resume:
        search = _read(place)
        named = {name: getattr(settings, name) for name in insist}
        refuse_others(place, asdict(search.settings), named)
    else:
        search = _begin(settings.checked(), place)
    run = _Run(search, place, threads)
    line = ProgressLine(run.total_games, "games", progress)
    try:
        while search.generation < search.settings.generations:
            line.update(search.games, run.note())
            run.generation()
        line.update(search.games, run.note())
    finally:
        line.close()
    return search.best


def _begin(settings: Settings, place: Path) -> Search:
    from cma import CMAEvolutionStrategy

    if (place / "state.pickle").exists() or (place / "log.jsonl").exists():
        raise KimbleError(f"{place} holds a run already: resume it, or name another folder")
    rules = _rules_of(settings)
    base = _weights_of(settings.start, rules)
    for opponent in settings.opponents:
        if opponent not in (SELF, BEST):
            _weights_of(opponent, rules)
    names = tuned_features(rules)
    scale = feature_spread(rules, base, settings.seed)
    point = np.array([base[FEATURES.index(n)] * scale[FEATURES.index(n)] for n in names])
    length = float(np.sqrt((point[point != 0.0] ** 2).mean())) if point.any() else 1.0
    base, point = base / length, point / length  # only ratios of weights matter
    normal = Normal()
    options = {"popsize": settings.population, "seed": np.nan, "verbose": -9, "randn": normal}
    strategy = CMAEvolutionStrategy(point, settings.step, options)
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / "settings.json", json.dumps(_described(settings), indent=1) + "\n")
    return Search(settings, strategy, normal, scale, base, base.copy(), -1.0)


def _described(settings: Settings) -> dict[str, Any]:
    """Return the settings with the hash of the rules, for the file and the committed log."""
    return {**asdict(settings), "rules_hash": _rules_of(settings).hash}


def _read(place: Path) -> Search:
    path = place / "state.pickle"
    try:
        search = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        raise KimbleError(f"{place} is no run to resume: it has no state.pickle") from None
    except Exception as error:  # whatever a broken pickle raises
        raise KimbleError(f"{path} cannot be read: {error}") from None
    if not isinstance(search, Search) or len(search.base) != FEATURE_COUNT:
        raise KimbleError(f"{path} is no search over the {FEATURE_COUNT} features of this version")
    return search


def _rules_of(settings: Settings) -> Rules:
    rules = find_rules(settings.rules)
    return rules if rules.two_colours else rules.replace(players=settings.players)


def _weights_of(spec: str, rules: Rules) -> Vector:
    """Return the weights that a spec stands for."""
    agent = make_agent(spec, rules)
    if type(agent) is not WeightAgent:
        raise KimbleError(f"{spec!r} is no weight vector, so matches against it are not compiled")
    return agent.weights.copy()


class _Run:
    """One process that carries a search on."""

    def __init__(self, search: Search, place: Path, threads: int) -> None:
        settings = search.settings
        self.search, self.place = search, place
        self.rules = _rules_of(settings)
        self.names = tuned_features(self.rules)
        others = len(settings.opponents)
        self.arena = Arena(self.rules, -(-settings.games // others), settings.cap, threads)
        self.judge = Arena(self.rules, settings.check_games, settings.cap, threads)
        self.fixed = [name for name in settings.opponents if name not in (SELF, BEST)]

    @property
    def total_games(self) -> int:
        """Games of all generations, without those of the checks."""
        settings = self.search.settings
        per_candidate = self.arena.games * len(settings.opponents)
        return settings.generations * settings.population * per_candidate

    def note(self) -> str:
        """Say where the search is."""
        search = self.search
        return f"generation {search.generation}  best {100 * search.best_score:.2f}"

    def middle(self) -> Vector:
        """The weights in the middle of the search."""
        return self.search.weights(self.search.strategy.mean, self.names)

    def generation(self) -> None:
        """Play one generation, learn from it, check from time to time, write everything."""
        search, settings = self.search, self.search.settings
        started = time.process_time()
        if search.generation == 0:
            self.check()
        search.normal.begin(settings.seed, search.generation)
        points = search.strategy.ask()
        own = {SELF: self.middle(), BEST: search.best}
        opponents = [
            own[name] if name in own else _weights_of(name, self.rules)
            for name in settings.opponents
        ]
        seed = (settings.seed << 20) + search.generation + 1
        shares = self.arena.shares([search.weights(p, self.names) for p in points], opponents, seed)
        fitness = shares.mean(axis=1)
        search.strategy.tell(points, list(-fitness))
        search.generation += 1
        search.games += shares.size * self.arena.games
        search.log.append(
            {
                "generation": search.generation,
                "mean": round(float(fitness.mean()), 5),
                "highest": round(float(fitness.max()), 5),
                "against": dict(
                    zip(settings.opponents, shares.mean(axis=0).round(5).tolist(), strict=True)
                ),
                "step": round(float(search.strategy.sigma), 5),
            }
        )
        if (
            search.generation % settings.check_every == 0
            or search.generation == settings.generations
        ):
            self.check()
        search.seconds += time.process_time() - started
        self.write()

    def check(self) -> None:
        """Play the middle of the search against the fixed opponents; keep it if it is the best."""
        search = self.search
        middle = self.middle()
        opponents = [_weights_of(name, self.rules) for name in self.fixed]
        if not opponents:
            opponents = [search.best]
        dice = (search.settings.seed << 20) + (1 << 19)  # the same in every check
        shares = self.judge.shares([middle], opponents, dice)[0]
        score = float(shares.mean())
        kept = score > search.best_score
        if kept:
            search.best, search.best_score = middle, score
        search.log.append(
            {
                "check": search.generation,
                "games": self.judge.games,
                "against": dict(zip(self.fixed or [BEST], shares.round(5).tolist(), strict=True)),
                "kept": kept,
            }
        )

    def write(self) -> None:
        """Write log, weights and state, each whole; the state last, so that it is never ahead."""
        search = self.search
        lines = "".join(json.dumps(entry) + "\n" for entry in search.log)
        write_whole(self.place / "log.jsonl", lines)
        weights = {"weights": named_weights(search.best), "score": search.best_score}
        write_whole(self.place / "weights.json", json.dumps(weights, indent=1) + "\n")
        write_whole(self.place / "state.pickle", pickle.dumps(search))


def named_weights(vector: Vector, digits: int = 4) -> dict[str, float]:
    """Return the weights that are not 0 by name, rounded to so many digits."""
    return {
        name: float(f"{value:.{digits}g}")
        for name, value in zip(FEATURES, vector, strict=True)
        if value != 0.0
    }


def command_of(settings: Settings) -> str:
    """Return the command that makes a run with these settings."""
    words = ["kimble", "train", "evolve", "RUN"]
    for name, value in asdict(settings).items():
        if name != "cap" and value != getattr(Settings(), name):
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            words += [f"--{name.replace('_', '-')}", shlex.quote(text)]
    return " ".join(words)


def publish(folder: str | os.PathLike[str], data: str | os.PathLike[str]) -> str:
    """Write the best vector of a finished run into a file of heuristics, as ``tuned``.

    Args:
        folder: of the run.
        data: ``agents/heuristics.json`` or a copy. Its entry ``tuned`` is made or renewed for the
            rule set and the number of players; the log, with the command that makes the run
            again, goes to ``tuned/KEY.jsonl`` next to it.

    Returns:
        The key: "kimble-2p".

    Raises:
        KimbleError: no run, a run that has not finished, or no file of heuristics.
    """
    search = _read(Path(folder))
    settings = search.settings
    if search.generation < settings.generations:
        raise KimbleError(
            f"{folder} has done {search.generation} of {settings.generations} generations: "
            "resume it first"
        )
    path = Path(data)
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KimbleError(f"{path} is no file of heuristics: {error}") from None
    if "tuned" not in table:
        raise KimbleError(f"{path} has no entry 'tuned'")
    weights = named_weights(search.best)
    weight_vector(weights)
    key = f"{_rules_of(settings).name}-{settings.players}p"
    table["tuned"].setdefault("for", {})[key] = weights
    head = {
        **_described(settings),
        "command": command_of(settings),
        "versions": {"cma": metadata.version("cma"), "numpy": np.__version__},
        "games_played": search.games,
        "cpu_seconds": round(search.seconds),
        "weights": weights,
    }
    logs = path.parent / "tuned"
    logs.mkdir(exist_ok=True)
    lines = "".join(json.dumps(entry) + "\n" for entry in [head, *search.log])
    write_whole(logs / f"{key}.jsonl", lines)
    write_whole(path, format_heuristics(table))
    return key


def format_heuristics(table: dict[str, Any]) -> str:
    """Return a file of heuristics as text: one weight vector a paragraph."""
    import textwrap

    def vector(weights: dict[str, float], indent: int) -> str:
        text = ", ".join(f"{json.dumps(name)}: {json.dumps(w)}" for name, w in weights.items())
        # a name and its weight stay on one line
        text = text.replace(": ", ":\0")
        pad = " " * indent
        lines = textwrap.wrap(text, 96, initial_indent=pad, subsequent_indent=pad)
        return "{\n" + "\n".join(lines).replace("\0", " ") + "\n" + " " * (indent - 1) + "}"

    entries = []
    for name, entry in table.items():
        parts = [
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in entry.items()
            if key not in ("weights", "for")
        ]
        parts.append(f'  "weights": {vector(entry["weights"], 3)}')
        if entry.get("for"):
            own = [f"   {json.dumps(k)}: {vector(v, 4)}" for k, v in entry["for"].items()]
            parts.append('  "for": {\n' + ",\n".join(own) + "\n  }")
        entries.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def report(
    settings: Settings,
    folder: str | os.PathLike[str],
    *,
    resume: bool,
    insist: Sequence[str] = (),
    threads: int | None,
    publish_to: str | os.PathLike[str] | None,
    as_json: bool,
) -> None:
    """Run a search for the command line and print what it found.

    Raises:
        KimbleError: see :func:`evolve` and :func:`publish`.
    """
    if publish_to is not None and not Path(publish_to).exists():
        raise KimbleError(f"{publish_to} is no file of heuristics: it does not exist")
    evolve(settings, folder, resume=resume, insist=insist, threads=threads)
    search = _read(Path(folder))
    key = None if publish_to is None else publish(folder, publish_to)
    found = {
        "weights": named_weights(search.best),
        "generations": search.generation,
        "games": search.games,
        "checks": [entry for entry in search.log if "check" in entry],
        "published": key,
    }
    if as_json:
        print(json.dumps(found))
        return
    for entry in search.log:
        if "check" in entry:
            shares = "  ".join(f"{name} {100 * s:.2f} %" for name, s in entry["against"].items())
            kept = "  kept" if entry["kept"] else ""
            print(f"generation {entry['check']:4d}  {shares}  ({entry['games']} games each){kept}")
    print(f"agent  weights:{Path(folder) / 'weights.json'}")
    if key is not None:
        print(f"published  tuned for {key} in {publish_to}")
