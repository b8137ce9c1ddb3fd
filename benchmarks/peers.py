"""What the peers can do: OpenSpiel's Mensch ärgere dich nicht and PettingZoo's connect_four.

Every function returns a measure: a callable without arguments that does a fixed piece of work,
times it in CPU seconds and returns a `Sample`. Set-up is done before, outside the timing, and
whatever is debatable is decided in the peer's favour.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from benchmarks.frame import Measure, Sample
from benchmarks.sampler import mask_sampler

MAEDN = "maedn(players=4)"
"""OpenSpiel's nearest relative of Kimble: four players, four pieces, a race on 40 fields."""


def openspiel_playouts(games: int, seed: int = 1) -> Measure:
    """Random games in OpenSpiel's C++ loop `evaluate_bots` with four uniform bots.

    How throws are counted without disturbing the timing: `evaluate_bots` plays on the state it is
    given, so the finished states are kept and counted after the clock has stopped. In maedn chance
    nodes (throws) and decisions strictly alternate: a throw without a legal move is followed by a
    decision with the single action "passes". So throws = moves in the history / 2, forced
    decisions counted; `check_alternation` verifies it on a sample before anything is timed. Making
    the initial states (0.6 µs each) is left out of the timing.
    """
    import pyspiel

    game = pyspiel.load_game(MAEDN)
    bots = [pyspiel.make_uniform_random_bot(seat, seed + seat) for seat in range(4)]
    seeds = iter(range(seed, 2**62))
    check_alternation(game, bots)

    def measure() -> Sample:
        states = [(game.new_initial_state(), next(seeds)) for _ in range(games)]
        play = pyspiel.evaluate_bots
        start = time.process_time()
        for state, chance_seed in states:
            play(state, bots, chance_seed)
        seconds = time.process_time() - start
        moves = sum(state.move_number() for state, _ in states)
        return Sample(seconds, {"throws": moves / 2, "games": games})

    return measure


def check_alternation(game: Any, bots: list[Any], games: int = 5) -> None:
    """Replay a few random games move by move: every second node must be a chance node."""
    import pyspiel

    for seed in range(games):
        played = game.new_initial_state()
        pyspiel.evaluate_bots(played, bots, seed)
        replay = game.new_initial_state()
        for ply, action in enumerate(played.history()):
            if replay.is_chance_node() != (ply % 2 == 0):
                raise AssertionError("maedn no longer alternates throws and decisions")
            replay.apply_action(action)
        if not replay.is_terminal() or played.move_number() != len(played.history()):
            raise AssertionError("evaluate_bots no longer leaves the finished game in its state")


def openspiel_python(throws: int, seed: int = 1, arrays: bool = False) -> Measure:
    """OpenSpiel's Python loop on maedn as one writes it, with observation tensor and legal mask.

    Observation and mask are fetched at every decision, a random legal action is played, a finished
    game is followed by a new one. Tensor and mask stay the Python lists they come as, unless
    `arrays` asks for what a learner needs and our side delivers (float32 and int8 arrays).
    In the peer's favour: one cheap random number per draw instead of `numpy.random.choice`.
    """
    import pyspiel

    game = pyspiel.load_game(MAEDN)
    uniform = random.Random(seed).random

    def measure() -> Sample:
        thrown = choices = 0
        start = time.process_time()
        state = game.new_initial_state()
        while thrown < throws:
            if state.is_terminal():
                state = game.new_initial_state()
            elif state.is_chance_node():
                outcomes = state.chance_outcomes()
                state.apply_action(outcomes[int(uniform() * len(outcomes))][0])
                thrown += 1
            else:
                tensor, mask = state.observation_tensor(), state.legal_actions_mask()
                if arrays:
                    np.array(tensor, np.float32), np.array(mask, np.int8)
                legal = state.legal_actions()
                choices += len(legal) > 1
                state.apply_action(legal[int(uniform() * len(legal))])
        seconds = time.process_time() - start
        return Sample(seconds, {"throws": throws, "decisions": throws, "choices": choices})

    return measure


def openspiel_python_lean(throws: int, seed: int = 1) -> Measure:
    """The fastest Python loop on maedn we can write that still fetches tensor and mask.

    It knows the game: throws and decisions alternate and the die is uniform, so it asks neither
    for the kind of node nor for the chance outcomes, and keeps the lists as they come.
    """
    import pyspiel

    game = pyspiel.load_game(MAEDN)
    uniform = random.Random(seed).random

    def measure() -> Sample:
        choices = 0
        start = time.process_time()
        state = game.new_initial_state()
        for _ in range(throws):
            state.apply_action(int(uniform() * 6))
            state.observation_tensor()
            state.legal_actions_mask()
            legal = state.legal_actions()
            count = len(legal)
            choices += count > 1
            state.apply_action(legal[int(uniform() * count)])
            if state.is_terminal():
                state = game.new_initial_state()
        seconds = time.process_time() - start
        return Sample(seconds, {"throws": throws, "decisions": throws, "choices": choices})

    return measure


def connect_four(games: int, seed: int = 1, raw: bool = False) -> Measure:
    """PettingZoo's connect_four through the documented AEC loop, `env()` or `raw_env()`."""
    from pettingzoo.classic import connect_four_v3

    env = connect_four_v3.raw_env() if raw else connect_four_v3.env()
    return aec_loop(env, games, seed)


def aec_loop(env: Any, games: int, seed: int) -> Measure:
    """The AEC loop as PettingZoo documents it; used for the peer and for us.

    Steps are turns of the loop, those that retire a finished agent with `None` included: it is the
    peer that gains by it, for its games are shorter (two in some 23 steps against four in several
    hundred).
    """
    sample = mask_sampler(seed)
    env.reset(seed=seed)

    def measure() -> Sample:
        steps = 0
        start = time.process_time()
        for _ in range(games):
            env.reset()
            for _agent in env.agent_iter():
                observation, _reward, termination, truncation, _info = env.last()
                if termination or truncation:
                    action = None
                else:
                    action = sample(observation["action_mask"])
                env.step(action)
                steps += 1
        seconds = time.process_time() - start
        return Sample(seconds, {"steps": steps, "games": games})

    return measure


def connect_four_ppo(steps: int, seed: int = 0) -> Measure:
    """PettingZoo's documented recipe for masked PPO: stable-baselines3 on connect_four.

    As in its tutorial "SB3: Action Masked PPO for Connect Four": one environment, both players the
    same model, sb3-contrib's MaskablePPO with all settings at their defaults (updates of 2,048
    steps, ten passes, minibatches of 64). A sample is learning from ``steps`` more steps; the model
    goes on between samples. In the peer's favour: torch has one thread, which costs less CPU time
    here than its default.
    """
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
    from sb3_contrib.common.wrappers import ActionMasker

    torch.set_num_threads(1)
    env = connect_four_for_sb3()
    env.reset(seed=seed)
    masked = ActionMasker(env, lambda inner: inner.action_mask())
    model = MaskablePPO(MaskableActorCriticPolicy, masked, seed=seed, device="cpu")

    def measure() -> Sample:
        before, start = model.num_timesteps, time.process_time()
        model.learn(steps, reset_num_timesteps=False)
        seconds = time.process_time() - start
        return Sample(seconds, {"decisions": model.num_timesteps - before})

    return measure


def connect_four_for_sb3() -> Any:
    """Return connect_four behind the wrapper of that tutorial: an environment for one model.

    ``step`` answers with the observation of the player whose turn comes next, and with reward and
    end as the player who has just moved sees them.
    """
    import gymnasium
    import pettingzoo.utils
    from pettingzoo.classic import connect_four_v3

    class Wrapper(pettingzoo.utils.BaseWrapper, gymnasium.Env):  # type: ignore[misc]
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            first = env.possible_agents[0]
            self.observation_space = env.observation_space(first)["observation"]
            self.action_space = env.action_space(first)

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed, options)
            return self.observe(self.agent_selection), {}

        def step(self, action: int) -> Any:
            mover = self.agent_selection
            super().step(action)
            return (
                self.observe(self.agent_selection),
                self._cumulative_rewards[mover],
                self.terminations[mover],
                self.truncations[mover],
                self.infos[mover],
            )

        def observe(self, agent: str) -> Any:
            return super().observe(agent)["observation"]

        def action_mask(self) -> Any:
            return super().observe(self.agent_selection)["action_mask"]

    return Wrapper(connect_four_v3.env())
