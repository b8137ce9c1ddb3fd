"""Tabular Q-learning that reaches the exact values of a small game.

    python -m training.examples.q_learning

Two players, one piece each: whenever it can move, a seat moves or passes. Both seats learn into
one table, (what the seat sees) x (action): the win, the loss, or the worth of the next choice, seen
from the other side if the other makes it. The solved game (the agent ``exact``) judges; nothing is
learned from it.
"""

import argparse

import gymnasium as gym
import numpy as np

from agents import make_agent
from kimble_env import find_rules

RULES = find_rules("kimble[pieces=1]", players=2)
ROWS = 1 << 14  # more than there are choices


def train(steps: int, games: int = 4096, seed: int = 1) -> tuple[float, float, int]:
    """Learn; return mean |error| and loss per choice, mWP, and how many choices are judged."""
    envs = gym.make_vec(
        "kimble_env:Kimble-v0", games, vectorization_mode="vector_entry_point",
        rules=RULES, opponents=None, autoreset_mode="SAME_STEP",
    )  # fmt: skip
    rng, table = np.random.default_rng(seed), {}  # observation -> row
    q, visits = np.zeros((ROWS, RULES.board.actions)), np.zeros((ROWS, RULES.board.actions))
    positions = np.zeros(ROWS, envs.states().dtype)

    def look(seen: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.array([table.setdefault(one.tobytes(), len(table)) for one in seen])
        return rows, np.where(legal != 0, q[rows], -9.0)

    seen, info = envs.reset(seed=seed)
    for step in range(max(1, steps)):
        seats = info["seat"].copy()
        rows, values = look(seen, info["action_mask"])
        positions[rows] = envs.states()
        noise = rng.random(values.shape) * info["action_mask"]
        wild = rng.random(games) < 0.3
        actions = np.where(wild, noise.argmax(1), (values + 1e-9 * noise).argmax(1))
        seen, _, ended, cut, info = envs.step(actions)
        worth = look(seen, info["action_mask"])[1].max(1)
        worth = np.where(info["seat"] == seats, worth, -worth)
        worth = np.where(ended | cut, info["rewards"][np.arange(games), seats], worth)
        # a value is the mean of what came of it since the number of steps last doubled: what was
        # learned from ignorance is forgotten
        chosen = rows * q.shape[1] + actions
        cells, which, counts = np.unique(chosen, return_inverse=True, return_counts=True)
        visits.flat[cells] += counts
        rate = counts / visits.flat[cells]
        q.flat[cells] += rate * (np.bincount(which, worth) / counts - q.flat[cells])
        done = step + 1
        if done & (done - 1) == 0 or done >= steps:
            error, loss, known = judge(q, visits, positions)
            print(f"{done * games:11,} steps: error {error:.2f}, loss {loss:.3f} mWP of {known:,}")
            visits[:] = 0 if done < steps else visits
    return error, loss, known


def judge(q: np.ndarray, visits: np.ndarray, positions: np.ndarray) -> tuple[float, float, int]:
    """Compare with perfect play every choice whose actions were each tried 200 times."""
    met = np.flatnonzero((visits >= 200).sum(1) >= 2)
    seats = positions[met]["seat"].astype(int)
    exact = make_agent("exact", RULES).evaluate(positions[met])[np.arange(len(met)), :, seats]
    legal, learned = visits[met] >= 200, (q[met] + 1) / 2
    chosen = np.where(legal, learned, -9.0).argmax(1)
    losses = np.where(legal, exact, 0).max(1) - exact[np.arange(len(met)), chosen]
    error = np.abs(learned - exact)[legal].mean() if len(met) else np.nan
    return 1000 * error, 1000 * losses.sum() / max(len(met), 1), len(met)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2048, help="of 4,096 games (2048)")
    train(parser.parse_args().steps)
