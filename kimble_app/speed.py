"""``kimble bench``: how fast this machine plays, in CPU time, in a few seconds.

The measured comparison with other programs is ``make bench`` in a checkout; this answers a user's
first question with nothing but the package.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Measure = Callable[[], tuple[int, float]]
"""Does some work once; returns how many things were done and the CPU seconds they took."""


def playouts(rules: str, games: int = 500) -> Measure:
    """Random games in compiled code; counts throws."""
    from kimble_env import kernel
    from kimble_env.rules import find_rules

    found = find_rules(rules)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(found.seats)] = 1
    keys, log = np.zeros(games, np.uint64), np.zeros((256, 2), np.int8)
    states = kernel.empty_states(games)

    def measure() -> tuple[int, float]:
        kernel.game_keys(np.uint64(1), 0, keys)
        start = time.process_time()
        kernel.new_game_batch(states, found.array, plays, keys, log)
        kernel.play_random_batch(states, found.array, 5000)
        return int(states["plies"].sum()), time.process_time() - start

    return measure


def vector(rules: str, games: int = 1024, steps: int = 20) -> Measure:
    """The vector environment with observations and masks, first legal action; counts steps."""
    from kimble_env.vector import KimbleVectorEnv

    env = KimbleVectorEnv(games, rules=rules, threads=1)
    _, info = env.reset(seed=1)
    now = {"mask": info["action_mask"]}

    def measure() -> tuple[int, float]:
        start, mask = time.process_time(), now["mask"]
        for _ in range(steps):
            *_, info = env.step(mask.argmax(axis=1))
            mask = info["action_mask"]
        now["mask"] = mask
        return games * steps, time.process_time() - start

    return measure


def single(rules: str, throws: int = 3000) -> Measure:
    """``Game``: throw, pick a legal move, play it; counts throws."""
    from kimble_env.game import Game

    draw = random.Random(1).random

    def measure() -> tuple[int, float]:
        start = time.process_time()
        game = Game(rules, seed=1)
        for n in range(throws):
            game.throw()
            moves = game.legal_moves
            if moves:
                game.play(moves[int(draw() * len(moves))])
            if game.over:
                game = Game(rules, seed=n)
        return throws, time.process_time() - start

    return measure


def answers(rules: str, agent: str | None, count: int = 100) -> Measure:
    """Whole answers to "which move?" as every front end gets them; counts answers."""
    from kimble_app.api.answers import answer_move, start_text
    from kimble_app.api.schema import MoveRequest
    from kimble_env.rules import find_rules

    text = start_text(find_rules(rules))
    request = MoveRequest(position=text, die=6, agent=agent, seed=1)

    def measure() -> tuple[int, float]:
        start = time.process_time()
        for _ in range(count):
            answer_move(request)
        return count, time.process_time() - start

    return measure


def check(rules: str, agent: str | None, rounds: int = 3) -> dict[str, Any]:
    """Return what was measured: per second of CPU time, the median of some rounds.

    Raises:
        KimbleError: rules or an agent that cannot be.
    """
    measures = {
        "playouts": ("throws of random games, compiled", playouts(rules)),
        "vector": ("steps of the vector environment", vector(rules)),
        "game": ("throws through Game, from Python", single(rules)),
        "answers": ("answers to /v1/move, without the network", answers(rules, agent)),
    }
    rows = {}
    for name, (text, measure) in measures.items():
        measure()  # compiled, and the caches warm
        rates = [done / max(seconds, 1e-9) for done, seconds in (measure() for _ in range(rounds))]
        rows[name] = {"text": text, "per_cpu_second": round(statistics.median(rates))}
    return {
        "rules": rules,
        "agent": agent,
        "rounds": rounds,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "rows": rows,
    }
