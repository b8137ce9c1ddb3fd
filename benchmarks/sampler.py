"""The legal samplers of the benchmarks: cheap, and the same for our side and for the peers.

A slow sampler would flatter whoever is slower, so both loops draw with the same few instructions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
"""The increment of the splitmix64 generator."""


def mask_sampler(seed: int) -> Callable[[np.ndarray], int]:
    """Return a function that draws one legal action (a plain int) from an action mask.

    One `nonzero`, one random number, one look-up: about 0.3 µs, whatever the environment.
    """
    uniform = random.Random(seed).random

    def draw(mask: np.ndarray) -> int:
        legal = mask.nonzero()[0]
        return legal.item(int(uniform() * legal.size))

    return draw


def compiled_sampler(threads: int = 1) -> Callable[..., int]:
    """Compile the sampler of the vector loop; numba is imported here and not before.

    The returned function `draw(masks [N, A], keys [threads] uint64, out [N]) -> choices` writes one
    uniformly drawn legal action per row into `out`, moves `keys` on and returns how many rows had
    two legal actions or more, which is the number of *choices* made. It allocates nothing. A row
    without a legal action, which nobody reads, gets 0.
    """
    import numba

    golden = np.uint64(GOLDEN)
    first, second = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    s27, s30, s31, s32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)

    def draw(masks: Any, key: Any, out: Any) -> int:
        choices = 0
        state = key[0]
        for row in range(masks.shape[0]):
            mask = masks[row]
            legal = 0
            for value in mask:
                legal += value != 0
            choices += legal >= 2
            state += golden
            mixed = (state ^ (state >> s30)) * first
            mixed = (mixed ^ (mixed >> s27)) * second
            mixed ^= mixed >> s31
            left = np.int64(((mixed >> s32) * np.uint64(legal)) >> s32)
            passed = action = 0
            for value in mask:  # without a branch: how many places come before the one drawn
                passed += value != 0
                action += passed <= left
            out[row] = action if legal else 0
        key[0] = state
        return choices

    compiled = numba.njit(nogil=True, cache=False)(draw)
    return compiled if threads == 1 else _sliced(compiled, threads)


def _sliced(draw: Callable[..., int], threads: int) -> Callable[..., int]:
    """Let every thread of a pool draw for its slice of the games, with a key of its own."""
    pool = ThreadPoolExecutor(threads)

    def draw_slices(masks: np.ndarray, keys: np.ndarray, out: np.ndarray) -> int:
        cuts = [len(out) * part // threads for part in range(threads + 1)]
        jobs = [
            pool.submit(
                draw, masks[cuts[k] : cuts[k + 1]], keys[k : k + 1], out[cuts[k] : cuts[k + 1]]
            )
            for k in range(threads)
        ]
        return sum(job.result() for job in jobs)

    return draw_slices
