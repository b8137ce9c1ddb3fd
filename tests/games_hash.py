"""A hash of many games, made so that it must not depend on how they were batched.

A module of its own, so that spawned workers and fresh processes can run it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from kimble_env.kernel import game_keys
from kimble_env.vector import KimbleVectorEnv, sample_actions

STEPS = 260
MIXER = np.uint64(0x9E3779B97F4A7C15)

SELF_PLAY: dict[str, Any] = {"rules": "kimble"}
WITH_OPPONENTS: dict[str, Any] = {
    "rules": "kombat",
    "opponents": [("random", 'weights:{"capture": 3, "enter": 1}', "random"), "random:mask"],
    "chances": [3, 1],
    "seat": "rotate",
    "autoreset_mode": "SAME_STEP",
    "shaping": 0.5,
}
KINDS = {"self-play": SELF_PLAY, "opponents": WITH_OPPONENTS}


def rows_hash(rows: np.ndarray) -> np.ndarray:
    """Return one uint64 per row of an array of any type."""
    data = np.ascontiguousarray(rows).reshape(len(rows), -1)
    data = data.view(np.uint8).astype(np.uint64) if data.dtype != np.uint8 else data
    powers = np.cumprod(np.full(data.shape[1], MIXER), dtype=np.uint64)
    return (data * powers).sum(axis=1, dtype=np.uint64)


def hash_games(
    kind: str, games: int, first: int = 0, threads: int = 1, steps: int = STEPS, seed: int = 5
) -> np.ndarray:
    """Return one hash per game over all that ``steps`` steps return: uint64 [games]."""
    env = KimbleVectorEnv(games, first_game=first, threads=threads, **KINDS[kind])
    observations, info = env.reset(seed=seed)
    hashes, keys = np.zeros(games, np.uint64), np.empty(games, np.uint64)
    for step in range(steps):
        game_keys(np.uint64(step), first, keys)
        actions = sample_actions(info["action_mask"], keys, passing=False, threads=threads)
        observations, reward, terminated, truncated, info = env.step(actions)
        parts = [observations, reward, terminated, truncated]
        parts += [info[key] for key in ("action_mask", "seat", "rewards", "acted", "drinks")]
        for part in parts:
            hashes = hashes * MIXER + rows_hash(part)
    return hashes


def digest(hashes: np.ndarray) -> str:
    """Return one text for the hashes of many games."""
    return hashlib.sha256(hashes.tobytes()).hexdigest()


def digest_games(arguments: tuple[Any, ...]) -> str:
    """As ``hash_games``, from one argument and as one text: for pools of workers."""
    return digest(hash_games(*arguments))


if __name__ == "__main__":
    import sys

    print(digest_games((sys.argv[1], *(int(n) for n in sys.argv[2:]))))
