"""Ratings from the record of a tournament: Plackett-Luce with intervals, and a running ladder.

In the Plackett-Luce model every agent has a strength; the chance to win a game is its share of the
strengths at the table, so one against three equally strong ones wins 1/4. The maximum-likelihood
strengths are found by iterated Luce spectral ranking (Maystre and Grossglauser 2015), with the
Markov chains of ``choix``; thousands of equal games enter as one number, which ``choix`` itself has
no way to say. On the Elo scale 400 points are a factor of 10 in strength; ``random`` stands at 0.

Intervals draw whole blocks again.

The OpenSkill ladder (Weng and Lin 2011, Plackett-Luce form) sees one game after the other instead
and never looks back: what a server would show while games come in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.tournament import Tournament, kind_counts
from kimble_env.errors import KimbleError

ELO = 400.0 / math.log(10.0)
"""Elo points per unit of the logarithm of strength."""

ANCHOR = "random"
_ALPHA = 1e-3  # of choix: keeps an agent that never won at a finite rating
_ITERATIONS = 500
_TOLERANCE = 1e-7
_RUNNING_GAMES = 5_000  # of the OpenSkill ladder

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rating:
    """Elo points of an agent with their 95 % interval; ``games`` it played."""

    agent: str
    elo: float
    low: float
    high: float
    games: int


@dataclass(frozen=True)
class Running:
    """Where the OpenSkill ladder has an agent: mean and standard deviation of its skill."""

    agent: str
    mu: float
    sigma: float


@dataclass(frozen=True)
class Counts:
    """Games of a tournament by cell: a cell is a pairing and a kind of table.

    Attributes:
        agents: number of agents.
        pairs: int64 [cells, 2], who met.
        seats: int64 [cells, 2], how many places each had.
        wins: float64 [blocks, cells], games that the first of them won.
        games: float64 [blocks, cells].
    """

    agents: int
    pairs: npt.NDArray[np.int64]
    seats: npt.NDArray[np.int64]
    wins: Floats
    games: Floats


def count_games(tournament: Tournament, adjusted: bool = False) -> Counts:
    """Return the games of a tournament by block and cell."""
    kinds = tournament.settings.kinds
    size = max(len(pairing.places) for pairing in tournament.pairings)
    shape = size, len(tournament.pairings) * len(kinds)
    wins, games = np.zeros(shape), np.zeros(shape)
    pairs, seats = [], []
    for k, pairing in enumerate(tournament.pairings):
        cells = slice(k * len(kinds), (k + 1) * len(kinds))
        wins[: len(pairing.places), cells] = tournament.wins(pairing, adjusted)
        games[: len(pairing.places), cells] = tournament.games_per_block()
        pairs += [(pairing.first, pairing.second)] * len(kinds)
        seats += [kind_counts(kind) for kind in kinds]
    return Counts(len(tournament.agents), np.array(pairs), np.array(seats), wins, games)


def fit_strengths(
    agents: int,
    pairs: npt.NDArray[np.int64],
    seats: npt.NDArray[np.int64],
    wins: Floats,
    games: Floats,
    start: Floats | None = None,
) -> Floats:
    """Return the logarithms of the Plackett-Luce strengths, mean 0: float64 [agents].

    Args:
        agents: their number.
        pairs: int64 [cells, 2], the two agents of each cell.
        seats: int64 [cells, 2], how many places each had.
        wins: float64 [cells], games that the first won; fractions are allowed.
        games: float64 [cells].
        start: a first guess.

    Raises:
        KimbleError: choix is not installed.
    """
    try:
        from choix.utils import exp_transform, log_transform, statdist
    except ImportError:
        raise KimbleError("ratings need choix: pip install 'kimble-rl[eval]'") from None
    logs = np.zeros(agents) if start is None else start
    first, second = pairs[:, 0], pairs[:, 1]
    for _ in range(_ITERATIONS):
        strengths = exp_transform(logs)
        total = seats[:, 0] * strengths[first] + seats[:, 1] * strengths[second]
        chain = np.full((agents, agents), _ALPHA)
        # From each loser to the winner, once per place that lost (choix.lsr_top1, by weight).
        np.add.at(chain, (second, first), np.clip(wins, 0, None) * seats[:, 1] / total)
        np.add.at(chain, (first, second), np.clip(games - wins, 0, None) * seats[:, 0] / total)
        chain -= np.diag(chain.sum(axis=1))
        found = log_transform(statdist(chain))
        change = float(np.abs(found - logs).sum())
        logs = found
        if change < _TOLERANCE:
            break
    return logs


def rate(
    tournament: Tournament,
    adjusted: bool = False,
    *,
    confidence: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> list[Rating]:
    """Return the Plackett-Luce ratings of all agents, best first.

    Args:
        tournament: with at least one block of every pairing that was to be played.
        adjusted: use wins with their luck taken off.
        confidence: of the block-bootstrap intervals.
        resamples: draws of the whole set of blocks.
        seed: of those draws.

    Raises:
        KimbleError: agents between whom no chain of games leads, or choix is not installed.
    """
    counts = count_games(tournament, adjusted)
    _check_connected(tournament, counts)
    cells = counts.agents, counts.pairs, counts.seats
    logs = fit_strengths(*cells, counts.wins.sum(axis=0), counts.games.sum(axis=0))
    rng = np.random.default_rng(seed)
    blocks = len(counts.wins)
    draws = np.empty((resamples, counts.agents))
    for k in range(resamples):
        weights = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks)).astype(np.float64)
        drawn = fit_strengths(*cells, weights @ counts.wins, weights @ counts.games, logs)
        draws[k] = _anchored(drawn, tournament.agents)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, (tail, 1.0 - tail), axis=0)
    elo = _anchored(logs, tournament.agents)
    games = np.zeros(counts.agents)
    np.add.at(games, counts.pairs[:, 0], counts.games.sum(axis=0))
    np.add.at(games, counts.pairs[:, 1], counts.games.sum(axis=0))
    order = np.argsort(-elo, kind="stable")
    return [
        Rating(tournament.agents[k], float(elo[k]), float(low[k]), float(high[k]), int(games[k]))
        for k in order
    ]


def _anchored(logs: Floats, agents: tuple[str, ...]) -> Floats:
    """Return Elo points with ``random`` at 0, without it with mean 0."""
    zero = logs[agents.index(ANCHOR)] if ANCHOR in agents else logs.mean()
    return ELO * (logs - zero)


def _check_connected(tournament: Tournament, counts: Counts) -> None:
    """Check that a chain of games leads from every agent to every other."""
    reached = {0}
    played = counts.pairs[counts.games.sum(axis=0) > 0].tolist()
    for _ in range(counts.agents):
        reached |= {who for pair in played if reached & set(pair) for who in pair}
    if len(reached) < counts.agents:
        alone = [a for k, a in enumerate(tournament.agents) if k not in reached]
        raise KimbleError(
            f"no chain of games leads from {tournament.agents[0]} to {', '.join(alone)}: they "
            "cannot be rated together"
        )


def running_ladder(tournament: Tournament, games: int = _RUNNING_GAMES) -> list[Running]:
    """Return the OpenSkill ladder after the first games of the record, best first.

    The games come block after block, every pairing in turn, up to about ``games`` of them. An agent
    with several places enters once per place, and its changes are averaged.

    Raises:
        KimbleError: openskill is not installed.
    """
    try:
        from openskill.models import PlackettLuce
    except ImportError:
        raise KimbleError(
            "the running ladder needs openskill: pip install 'kimble-rl[eval]'"
        ) from None
    model = PlackettLuce()
    skill = {k: model.rating() for k in range(len(tournament.agents))}
    seatings = tournament.settings.seatings
    done, block = 0, 0
    while done < games:
        before = done
        for pairing in tournament.pairings:
            if block >= len(pairing.places):
                continue
            names = np.array([pairing.first, pairing.second])
            for seating, place in zip(seatings, pairing.places[block], strict=True):
                _rate_game(model, skill, names[seating].tolist(), int(place))
                done += 1
        block += 1
        if done == before:
            break
    order = sorted(skill, key=lambda k: -skill[k].mu)
    return [Running(tournament.agents[k], float(skill[k].mu), float(skill[k].sigma)) for k in order]


def _rate_game(model: object, skill: dict[int, object], table: list[int], place: int) -> None:
    """Let one game change the skills of who sat there."""
    ranks = [0 if place < 0 or k == place else 1 for k in range(len(table))]
    teams = [[model.create_rating([skill[k].mu, skill[k].sigma])] for k in table]  # type: ignore[attr-defined]
    rated = model.rate(teams, ranks=ranks)  # type: ignore[attr-defined]
    for who in set(table):
        own = [team[0] for team, k in zip(rated, table, strict=True) if k == who]
        mu = sum(r.mu for r in own) / len(own)
        sigma = sum(r.sigma for r in own) / len(own)
        skill[who] = model.create_rating([mu, sigma])  # type: ignore[attr-defined]
