"""Fitting the frozen linear values: compiled playouts, then softmax regression with numpy.

::

    python -m evaluation.fit_value --rules kimble --players 4

plays games of one heuristic in all seats, keeps positions before a throw, fits the weights of
``agents/position_features.py`` by Newton's method to who won, and writes them with the command,
seed, counts and held-out figures to ``agents/linear_values.json``.

Play: in every game the first 0 to 60 throws (uniform) are random moves, so that positions are met
that good play avoids; positions are kept after that only, so all values are those of the heuristic.
Games are split 9 to 1 into those fitted and those held out. A second fit (``--rounds 2``) takes as
target the result less the luck of the throws still to come by the first fit, which has the same
mean and far less noise.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.linear_value import FILE, LinearValue, entry_of
from agents.position_features import COUNT, position_features_batch
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
CAP = 5000
RIDGE = 1.0  # of a weight of 1, in positions: keeps what is never seen at 0
HELD_OUT = 10  # every tenth game
_CHUNK = 20_000

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]


def play_positions(
    rules: Rules, player: WeightAgent, games: int, gap: int, seed: int
) -> tuple[States, Floats, npt.NDArray[np.int64]]:
    """Play games and keep a position about every ``gap`` throws.

    Returns:
        Positions STATE [N] before a throw, the results float64 [N, 4] (1 to the winner; 1/n to all
        if cut off) and the number of the game that each comes from, int64 [N].
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
    kept, origin = _play_on(states, rules, player, generator.integers(gap, size=games), gap)
    result = np.where(plays != 0, 1.0 / rules.players, 0.0)
    won = states["status"] == WON
    result[won] = states["winner"][won, None] == np.arange(4)
    return kept, result[origin], origin


def _play_on(
    states: States, rules: Rules, player: WeightAgent, phase: npt.NDArray[np.int64], gap: int
) -> tuple[States, npt.NDArray[np.int64]]:
    """Play all games to their end; return copies of positions on the way, and whose they are."""
    weights = np.array(player.weights)[None, :].copy()
    kept, origin = [], []
    alive = np.flatnonzero(states["status"] == RUNNING)
    first = True
    while len(alive):
        for steps in range(1, gap + 1) if first else (gap,):
            rows = alive[phase[alive] + 1 == steps] if first else alive
            part = take_states(states, rows)
            seating = np.zeros((len(rows), 4), np.int8)
            play_weighted_batch(part, rules.array, weights, seating, steps)
            put_states(states, rows, part)
        alive = alive[(states["status"][alive] == RUNNING) & (states["plies"][alive] < CAP)]
        first = False
        kept.append(take_states(states, alive))
        origin.append(alive)
    return np.concatenate(kept), np.concatenate(origin)


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


def fit_rules(
    rules: Rules, player: str, games: int, gap: int, seed: int, say: Any
) -> tuple[LinearValue, dict[str, Any]]:
    """Play, fit and test one value; return it and what is to be written of it."""
    agent = make_agent(player, rules)
    if not isinstance(agent, WeightAgent):
        raise SystemExit(f"{player} is no weight vector")
    states, result, origin = play_positions(rules, agent, games, gap, seed)
    test = origin % HELD_OUT == 0
    train_rows, test_rows = np.flatnonzero(~test), np.flatnonzero(test)
    say(f"{rules} {rules.players}p: {len(states)} positions of {games} games")
    train = take_states(states, train_rows)
    weights = fit(train, result[train_rows], rules, np.zeros(COUNT), say)
    value = LinearValue(f"linear:{rules.name}-{rules.players}p", rules, weights)
    figures = held_out_figures(value, take_states(states, test_rows), result[test_rows])
    notes = {
        "rules": str(rules), "rules_hash": rules.hash, "players": rules.players,
        "player": player, "games": games, "positions": len(train_rows),
        "held_out_positions": len(test_rows), "seed": seed, "gap": gap, "held_out": figures,
    }
    return value, notes


def main() -> None:
    """Fit the value of one rule set and number of players and write it to the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--player", default="mixed", help="weight vector that plays all seats")
    parser.add_argument("--games", type=int, default=20_000)
    parser.add_argument("--gap", type=int, default=10, help="throws between positions kept")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--out", type=Path, default=Path("agents") / FILE)
    options = parser.parse_args()
    rules = find_rules(options.rules).replace(players=options.players)
    start = time.process_time()
    value, notes = fit_rules(
        rules, options.player, options.games, options.gap, options.seed,
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    notes["command"] = (
        f"python -m evaluation.fit_value --rules {options.rules} --players {options.players} "
        f"--player {options.player} --games {options.games} --gap {options.gap} "
        f"--seed {options.seed}"
    )
    table = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    table[value.name.removeprefix("linear:")] = entry_of(value, **notes)
    write_whole(options.out, (json.dumps(dict(sorted(table.items())), indent=1) + "\n").encode())
    for row in notes["held_out"]["calibration"]:
        print(row)
    print({k: v for k, v in notes["held_out"].items() if k != "calibration"})
    print(f"{time.process_time() - start:.0f} CPU-seconds")


if __name__ == "__main__":
    main()
