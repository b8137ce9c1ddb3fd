"""Fitting the frozen linear values: compiled playouts, then softmax regression with numpy.

::

    python -m evaluation.fit_value --rules kimble --players 4

First a heuristic plays games in all seats, and the weights of ``agents/position_features.py`` are
fitted by Newton's method to who won. Then, in ``--rounds`` rounds, more games are played and the
weights fitted anew: not to the bare results but to the results less the luck of the throws still to
come by the last fit (``luck.py``), which have the same mean and far less noise. In these rounds the
value plays all seats, each time the move that it finds best, or with ``--own-player heuristic`` the
heuristic does (Kombat, where values that play themselves wait for ever in many games). The file
``agents/linear_values.json`` tells the command, seed, counts and held-out figures.

In every game the first 0 to 60 throws (uniform) are random moves, so that positions are met that
good play avoids; positions are kept after that only, so the values are those of the play that made
them. One game in ten is held out; its figures are told for bare results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.linear_value import FILE, LinearValue, entry_of
from agents.position_features import COUNT, position_features_batch
from evaluation.luck_kernel import advance_best_batch, advance_lucky_batch
from kimble_env.features import play_weighted_batch
from kimble_env.files import write_whole
from kimble_env.kernel import (
    RUNNING,
    WON,
    empty_states,
    game_keys,
    new_game_batch,
    play_random_batch,
    put_states,
    take_states,
)
from kimble_env.opponents import WeightAgent, make_agent
from kimble_env.rules import Rules, find_rules

RANDOM_PLIES = 60
LATEST = 600  # throws after which no positions are kept: endless waiting would fill the sample
RIDGE = 1.0  # of a weight of 1, in positions: keeps what is never seen at 0
HELD_OUT = 10  # every tenth game
_CHUNK = 20_000

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]


class Sample(NamedTuple):
    """Positions on the way of games.

    positions: STATE [N], before a throw. result: float64 [N, 4], 1 to the winner, 1/n to all if cut
    off. target: the same less the luck still to come, where luck is counted. game: int64 [N].
    """

    positions: States
    result: Floats
    target: Floats
    game: npt.NDArray[np.int64]


def play_sample(
    rules: Rules,
    player: WeightAgent | LinearValue,
    value: LinearValue | None,
    games: int,
    gap: int,
    seed: int,
    cap: int,
) -> Sample:
    """Play games, by a heuristic or by a value, and keep a position every ``gap`` throws.

    ``value`` tells luck; without one none is counted. Games are cut off after ``cap`` throws.
    """
    generator = np.random.default_rng(seed)
    states = empty_states(games)
    keys = np.empty(games, np.uint64)
    game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    opening = generator.integers(RANDOM_PLIES + 1, size=games)
    for plies in range(RANDOM_PLIES + 1):
        rows = np.flatnonzero(opening == plies)
        part = take_states(states, rows)
        play_random_batch(part, rules.array, plies)
        put_states(states, rows, part)
    luck = np.zeros((games, 4))
    kept, lucks, origin = [], [], []
    alive = np.flatnonzero(states["status"] == RUNNING)
    while len(alive):
        early = alive[states["plies"][alive] <= LATEST]
        kept.append(take_states(states, early))
        lucks.append(luck[early])
        origin.append(early)
        part = take_states(states, alive)
        luck[alive] += _play_on(part, rules, player, value, gap)
        put_states(states, alive, part)
        alive = alive[(states["status"][alive] == RUNNING) & (states["plies"][alive] < cap)]
    result = np.where(plays != 0, 1.0 / rules.players, 0.0)
    won = states["status"] == WON
    result[won] = states["winner"][won, None] == np.arange(4)
    game = np.concatenate(origin)
    to_come = luck[game] - np.concatenate(lucks)
    return Sample(np.concatenate(kept), result[game], result[game] - to_come, game)


def _play_on(
    states: States,
    rules: Rules,
    player: WeightAgent | LinearValue,
    value: LinearValue | None,
    gap: int,
) -> Floats:
    """Play every game on for ``gap`` throws, in place; return the luck float64 [B, 4]."""
    luck = np.zeros((len(states), 4))
    if isinstance(player, LinearValue):
        lasts = states["plies"].astype(np.int64) + gap
        advance_best_batch(states, rules.array, player.vector, empty_states(2), lasts, luck)
        return luck
    weights = np.array(player.weights)[None, :].copy()
    if value is None:
        seating = np.zeros((len(states), 4), np.int8)
        play_weighted_batch(states, rules.array, weights, seating, gap)
        return luck
    for plies in np.unique(states["plies"]):
        rows = np.flatnonzero(states["plies"] == plies)
        part, its_luck = take_states(states, rows), np.zeros((len(rows), 4))
        advance_lucky_batch(
            part, rules.array, weights, np.zeros((len(rows), 4), np.int8), int(plies) + gap,
            value.vector, empty_states(2), np.full(len(rows), -1), its_luck,
            np.empty(len(rows), np.int64), np.zeros((len(rows), 4, 2), np.int32),
        )  # fmt: skip
        put_states(states, rows, part)
        luck[rows] = its_luck
    return luck


# ---------------------------------------------------------------------------------------- the fit


def _probabilities(features: npt.NDArray[Any], weights: Floats, plays: Any) -> Floats:
    scores = np.where(plays, features @ weights, -np.inf)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    out: Floats = chances / chances.sum(axis=1, keepdims=True)
    return out


def _derivatives(
    states: States, result: Floats, rules: Rules, weights: Floats
) -> tuple[float, Floats, Floats]:
    """Return the cross-entropy summed, its gradient and its Hessian."""
    loss, gradient, hessian = 0.0, np.zeros(COUNT), np.zeros((COUNT, COUNT))
    for first in range(0, len(states), _CHUNK):
        part = slice(first, first + _CHUNK)
        features = np.empty((len(states[part]), 4, COUNT), np.float32)
        position_features_batch(states[part], rules.array, features)
        seats = list(rules.seats)
        features = np.ascontiguousarray(features[:, seats])
        p = _probabilities(features, weights, states["plays"][part][:, seats] != 0)
        target = result[part][:, seats]
        loss -= float((target * np.log(np.maximum(p, 1e-12))).sum())
        flat = features.reshape(-1, COUNT)
        gradient += flat.T @ (p - target).reshape(-1).astype(np.float32)
        weighted = features * p[:, :, None].astype(np.float32)
        mean = weighted.sum(axis=1)
        hessian += flat.T @ weighted.reshape(-1, COUNT) - mean.T @ mean
    return loss, gradient, hessian


def fit(
    states: States, result: Floats, rules: Rules, weights: Floats, say: Any = None
) -> Floats:
    """Return the weights of least cross-entropy: Newton's method with a small ridge.

    Args:
        states: STATE [N] before a throw.
        result: float64 [N, 4], rows add to 1; entries may lie outside 0..1.
        weights: float64 [COUNT] to start from.
    """
    for step in range(12):
        loss, gradient, hessian = _derivatives(states, result, rules, weights)
        gradient = gradient + RIDGE * weights
        change = np.linalg.solve(hessian + RIDGE * np.eye(COUNT), gradient)
        size = float(np.abs(change).max())
        weights = weights - change * min(1.0, 2.0 / max(size, 1e-9))
        if say is not None:
            say(f"step {step}: cross-entropy {loss / len(states):.5f}, change {size:.2g}")
        if size < 1e-3:
            break
    return np.round(weights, 6)


# ----------------------------------------------------------------------------------- how good it is


def cross_entropy(values: Floats, result: Floats) -> float:
    """Return the mean of minus log of the chance given to the winner, in nats."""
    return float(-(result * np.log(np.maximum(values, 1e-12))).sum(axis=1).mean())


def calibration(
    values: Floats, result: Floats, plays: npt.NDArray[Any], bins: int = 10
) -> list[dict[str, float]]:
    """Return, for each tenth of the chance given: how many, mean chance, share that won."""
    chance, won = values[plays], result[plays]
    place = np.minimum((chance * bins).astype(int), bins - 1)
    rows = []
    for k in range(bins):
        here = place == k
        if here.any():
            rows.append({
                "from": k / bins, "count": int(here.sum()),
                "chance": round(float(chance[here].mean()), 4),
                "won": round(float(won[here].mean()), 4),
            })
    return rows


def held_out_figures(value: LinearValue, states: States, result: Floats) -> dict[str, Any]:
    """Return cross-entropy (also of a constant), worst tenth and calibration on held-out games."""
    values = value.value(states)
    plays = states["plays"] != 0
    table = calibration(values, result, plays)
    off = [abs(row["won"] - row["chance"]) for row in table if row["count"] >= 1000]
    constant = plays / plays.sum(axis=1, keepdims=True)
    return {
        "cross_entropy": round(cross_entropy(values, result), 5),
        "cross_entropy_of_equal_chances": round(cross_entropy(constant, result), 5),
        "worst_tenth": round(max(off, default=0.0), 4),
        "calibration": table,
    }


def fit_sample(
    sample: Sample, rules: Rules, weights: Floats, say: Any
) -> tuple[LinearValue, dict[str, Any]]:
    """Fit one value to nine games in ten; return it and what the tenth says of it."""
    test = sample.game % HELD_OUT == 0
    rows, held_out = np.flatnonzero(~test), np.flatnonzero(test)
    weights = fit(take_states(sample.positions, rows), sample.target[rows], rules, weights, say)
    value = LinearValue(f"linear:{rules.name}-{rules.players}p", rules, weights)
    tested = take_states(sample.positions, held_out)
    figures = held_out_figures(value, tested, sample.result[held_out])
    spread = (sample.target - value.value(sample.positions))[held_out].std(axis=0)
    figures["target_spread"] = round(float(spread[list(rules.seats)].mean()), 4)
    return value, {"positions": len(rows), "held_out_positions": len(held_out), **figures}


def main() -> None:
    """Fit the value of one rule set and number of players and write it to the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--player", default="mixed", help="weight vector that plays first")
    parser.add_argument("--games", type=int, default=8000, help="games of the heuristic")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of the value's own games")
    parser.add_argument(
        "--own-player", choices=("value", "heuristic"), default="value", help="who plays the rounds"
    )
    parser.add_argument("--own", type=int, default=1500, help="games of each round")
    parser.add_argument("--gap", type=int, default=10, help="throws between positions kept")
    parser.add_argument("--cap", type=int, default=1000, help="throws that cut a game off")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--out", type=Path, default=Path("agents") / FILE)
    options = parser.parse_args()
    rules = find_rules(options.rules).replace(players=options.players)
    player: Any = make_agent(options.player, rules)
    if not isinstance(player, WeightAgent):
        raise SystemExit(f"{options.player} is no weight vector")
    start, weights, rounds, value = time.process_time(), np.zeros(COUNT), [], None
    for k in range(options.rounds + 1):
        games, gap = (options.own, options.gap) if k else (options.games, 2 * options.gap)
        sample = play_sample(
            rules, player, value, games, gap, options.seed + k, options.cap
        )
        value, figures = fit_sample(sample, rules, weights, _tell)
        _tell(f"round {k}: { {n: f for n, f in figures.items() if n != 'calibration'} }")
        rounds.append({"player": getattr(player, "spec", value.name), "games": games, **figures})
        player, weights = value if options.own_player == "value" else player, value.vector
    names = (
        "rules", "players", "player", "games", "rounds", "own_player", "own", "gap", "cap", "seed",
    )  # fmt: skip
    command = " ".join(f"--{n.replace('_', '-')} {getattr(options, n)}" for n in names)
    notes = {
        "rules": str(rules), "rules_hash": rules.hash, "players": rules.players,
        "command": f"python -m evaluation.fit_value {command}", "rounds": rounds,
    }  # fmt: skip
    table = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    table[value.name.removeprefix("linear:")] = entry_of(value, **notes)
    write_whole(options.out, json.dumps(dict(sorted(table.items())), indent=1) + "\n")
    for row in rounds[-1]["calibration"]:
        print(row)
    print(f"{value!r}, {time.process_time() - start:.0f} CPU-seconds")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
