"""What Kimble RL does in the same measures: playouts, vector env, AEC loop, `Game`.

The only file that knows the names of `kimble_env`; imports stay inside the functions so that
`--help` and the peers work without it. Each function returns a measure, as in `peers.py`.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import Measure, Sample
from benchmarks.peers import aec_loop
from benchmarks.sampler import compiled_sampler


def playouts(spec: str, games: int, seed: int = 1) -> Measure:
    """Random games of the compiled kernel on one core, set-up and starter dice in the time.

    A throw is one throw resolved, forced ones and those without a legal move counted; the dice
    that decide who starts, and battle dice, are not.
    """
    from kimble_env import kernel
    from kimble_env.rules import find_rules

    rules = find_rules(spec).array
    states = kernel.empty_states(games)
    plays = np.ones((games, 4), np.int8)
    log = np.zeros((256, 2), np.int8)
    keys = np.zeros(games, np.uint64)
    starts = itertools.count(0, games)

    def measure() -> Sample:
        start = time.process_time()
        kernel.game_keys(seed, next(starts), keys)
        kernel.new_game_batch(states, rules, plays, keys, log)
        kernel.play_random_batch(states, rules, 1 << 30)
        seconds = time.process_time() - start
        if (states["status"] == kernel.RUNNING).any():
            raise AssertionError("a random game did not end")
        return Sample(seconds, {"throws": int(states["plies"].sum()), "games": games})

    return measure


def look_ups(pieces: int, positions: int, seed: int = 1) -> Measure:
    """Values of random positions from the exact table of two-player kimble, in one batch."""
    from agents.exact.solver import two_seats
    from agents.exact.table import find_table, random_positions, table_path

    game = two_seats("kimble", pieces)
    if pieces > 2 and not table_path(game).exists():
        raise FileNotFoundError(f"no table of {pieces} pieces in the cache: kimble solve makes it")
    table = find_table(game)
    states = random_positions(game, positions, seed)
    table.values(states)  # compiled, and the pages of the table read from the disk

    def measure() -> Sample:
        start = time.process_time()
        table.values(states)
        return Sample(time.process_time() - start, {"look-ups": positions})

    return measure


def network(name: str, positions: int, repeats: int, threads: int = 1) -> Measure:
    """A shipped network in ONNX Runtime on positions of random games, in one batch; wall time."""
    import onnxruntime

    from agents.net_features import feature_count, net_features
    from agents.value_net import MODELS, load_net
    from training.export import golden_positions

    rules = load_net(name).rules
    states = golden_positions(rules, positions)
    given = {"features": net_features(states, rules.array, feature_count(rules))}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        MODELS / f"{name}.onnx", options, providers=["CPUExecutionProvider"]
    )

    def measure() -> Sample:
        start = time.perf_counter()
        for _ in range(repeats):
            session.run(None, given)
        seconds = time.perf_counter() - start
        return Sample(seconds, {"positions": positions * repeats})

    return measure


def vector_env(games: int, threads: int = 1, spec: str = "kimble") -> Any:
    """The vector env as the benchmark uses it: all seats exposed, autoreset on."""
    from kimble_env.vector import KimbleVectorEnv

    return KimbleVectorEnv(games, rules=spec, threads=threads)


def vector_loop(
    games: int, steps: int, threads: int = 1, seed: int = 1, wall: bool = False
) -> Measure:
    """`step` on a batch with observation, mask and autoreset; a compiled sampler draws the actions.

    The unit `choices` counts the decisions with two legal actions or more, which is nearly every
    row of every step, for the env asks nobody else. `wall` takes wall time for CPU time.
    """
    env = vector_env(games, threads)
    draw = compiled_sampler(threads)
    actions = np.zeros(games, np.int64)
    keys = np.arange(seed, seed + threads, dtype=np.uint64)
    _, info = env.reset(seed=seed)
    clock = time.perf_counter if wall else time.process_time
    current = {"mask": info["action_mask"]}

    def measure() -> Sample:
        mask = current["mask"]
        choices = 0
        start = clock()
        for _ in range(steps):
            choices += draw(mask, keys, actions)
            *_, info = env.step(actions)
            mask = info["action_mask"]
        seconds = clock() - start
        current["mask"] = mask
        return Sample(seconds, {"choices": choices, "steps": games * steps})

    return measure


def aec(games: int, seed: int = 1, raw: bool = False) -> Measure:
    """Our AEC env through the very loop that measures the peer."""
    from kimble_env import kimble_v0

    env = kimble_v0.raw_env() if raw else kimble_v0.env()
    return aec_loop(env, games, seed)


def game_pairs(pairs: int, seed: int = 1) -> Measure:
    """`Game`: throw, take one of `legal_moves` at random, play it; a new game after the last."""
    from kimble_env import Game

    uniform = random.Random(seed).random

    def measure() -> Sample:
        start = time.process_time()
        game = Game("kimble", seed=seed)
        for _ in range(pairs):
            game.throw()
            moves = game.legal_moves
            game.play(moves[int(uniform() * len(moves))])
            if game.over:
                game = Game("kimble", seed=int(uniform() * 2**31))
        return Sample(time.process_time() - start, {"pairs": pairs})

    return measure


def ppo(updates: int) -> Measure:
    """Masked PPO as ``kimble train ppo`` learns `kimble` with four players, all by default.

    Opponents are in it: heuristics, and past selves from the first sample on. A sample is learning
    from ``updates`` more updates; evaluations and checkpoints are no part of it.
    """
    import torch

    from training.config import PPOConfig
    from training.ppo import Run, make_model
    from training.sb3_adapter import KimbleVecEnv

    torch.set_num_threads(1)
    config = PPOConfig(threads=1)
    folder = tempfile.TemporaryDirectory(prefix="kimble-bench-")
    run = Run(config, Path(folder.name), progress=False)
    model = make_model(run, KimbleVecEnv(run.envs, run.moves))
    run.save_policy(model, run.folder / "snapshots" / "0")
    run.refresh_opponents()

    def measure() -> Sample:
        before, start = model.num_timesteps, time.process_time()
        model.learn(updates * config.envs * config.steps, reset_num_timesteps=False)
        seconds = time.process_time() - start
        assert folder.name  # the folder of the curves stays as long as the measure
        return Sample(seconds, {"decisions": model.num_timesteps - before})

    return measure
