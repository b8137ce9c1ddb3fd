"""The adapter to stable-baselines3: against SB3's own DummyVecEnv, and under MaskablePPO."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `train`")

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from kimble_env.errors import IllegalMoveError, KimbleError, PositionError
from kimble_env.rewards import Shaping
from kimble_env.single_seat import KimbleSingleSeat
from kimble_env.vector import KimbleVectorEnv, sample_actions, slot_seed
from training.sb3_adapter import KimbleVecEnv


def adapted(games: int = 4, **options: Any) -> KimbleVecEnv:
    options = {"opponents": "random", "autoreset_mode": "SAME_STEP", **options}
    return KimbleVecEnv(KimbleVectorEnv(games, **options))


def draw(env: Any, step: int) -> np.ndarray:
    return sample_actions(get_action_masks(env).astype(np.int8), step, passing=False)


def test_it_does_what_sb3s_own_env_does() -> None:
    options: dict[str, Any] = {
        "rules": "kombat[pieces=2]",
        "opponents": ("random", "random:mask", "random"),
        "shaping": Shaping(0.5, 0.9),
        "max_turns": 70,
    }
    env = adapted(**options)
    peer = DummyVecEnv([lambda: KimbleSingleSeat(**options)] * 4)
    peer._seeds = list(env.seed(7))
    assert peer._seeds == [slot_seed(7, i) for i in range(4)]
    seen, expected = env.reset(), peer.reset()
    kinds = set()
    for step in range(200):
        np.testing.assert_array_equal(seen, expected)
        np.testing.assert_array_equal(get_action_masks(env), get_action_masks(peer))
        assert [i["seat"] for i in env.reset_infos] == [i["seat"] for i in peer.reset_infos]
        actions = draw(env, step)
        seen, rewards, dones, infos = env.step(actions)
        expected, peer_rewards, peer_dones, peer_infos = peer.step(actions)
        np.testing.assert_array_equal(rewards, peer_rewards)
        np.testing.assert_array_equal(dones, peer_dones)
        assert rewards.dtype == np.float32
        for i in range(4):
            cut = infos[i].get("TimeLimit.truncated", False)
            assert cut == peer_infos[i].get("TimeLimit.truncated", False)
            assert ("terminal_observation" in infos[i]) == bool(dones[i])
            if dones[i]:
                kinds.add(cut)
                np.testing.assert_array_equal(
                    infos[i]["terminal_observation"], peer_infos[i]["terminal_observation"]
                )
    assert kinds == {True, False}


def test_episodes_are_told_as_sb3s_monitor_tells_them() -> None:
    options: dict[str, Any] = {"rules": "kimble[pieces=1]", "shaping": 0.5}
    env = adapted(**options)
    peer = DummyVecEnv([lambda: Monitor(KimbleSingleSeat(opponents="random", **options))] * 4)
    watched = VecMonitor(adapted(**options))
    peer._seeds = list(env.seed(3))
    watched.seed(3)
    for one in (env, peer, watched):
        one.reset()
    told = 0
    for step in range(120):
        actions = draw(env, step)
        results = [one.step(actions)[-1] for one in (env, peer, watched)]
        for mine, its, wrapped in zip(*results, strict=True):
            assert ("episode" in mine) == ("episode" in its)
            if "episode" in mine:
                told += 1
                assert mine["episode"]["r"] == pytest.approx(its["episode"]["r"], abs=1e-5)
                assert mine["episode"]["r"] == pytest.approx(wrapped["episode"]["r"], abs=1e-5)
                assert mine["episode"]["l"] == its["episode"]["l"] == wrapped["episode"]["l"]
    assert told > 6


class Watch(BaseCallback):
    """Keeps what the collector saw."""

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[np.ndarray] = []
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        self.actions.append(self.locals["actions"].copy())
        self.rewards += self.locals["rewards"][self.locals["dones"]].tolist()
        return True


def model(env: Any, **options: Any) -> MaskablePPO:
    torch.set_num_threads(1)
    return MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=64,
        batch_size=128,
        n_epochs=2,
        seed=1,
        device="cpu",
        policy_kwargs={"net_arch": [16]},
        **options,
    )


def test_masked_ppo_learns_on_it_with_legal_actions_only() -> None:
    env, watch = adapted(8, rules="kimble[pieces=1]"), Watch()
    assert is_masking_supported(env)
    learner = model(env)
    before = [p.detach().clone() for p in learner.policy.parameters()]
    learner.learn(1536, watch)  # an illegal action would raise
    masks = learner.rollout_buffer.action_masks.reshape(-1, 34)
    assert 1 < masks.sum(axis=1).mean() < 10
    assert any((a != b).any() for a, b in zip(before, learner.policy.parameters(), strict=True))
    assert {round(r, 3) for r in watch.rewards} == {1.0, -0.333}
    assert len(learner.ep_info_buffer) == min(len(watch.rewards), 100)  # SB3 keeps the last 100
    assert np.isfinite(learner.rollout_buffer.returns).all()


def test_what_was_not_copied_is_learnt_from_all_the_same() -> None:
    """Arrays that take turns are enough for SB3: its buffer copies before they are used again."""
    weights = []
    for copying in (True, False):
        learner = model(adapted(4, copy=copying))
        learner.learn(512)
        weights.append([p.detach().numpy().copy() for p in learner.policy.parameters()])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_value_of_a_game_cut_off_is_bootstrapped() -> None:
    env = adapted(4, max_turns=8)
    learner = model(env, gamma=0.5)
    with torch.no_grad():
        learner.policy.value_net.weight.zero_()
        learner.policy.value_net.bias.fill_(3.0)
    learner.learn(256)  # one rollout
    rewards = learner.rollout_buffer.rewards
    assert set(np.unique(rewards)) == {0.0, 1.5}  # 0 from the game, gamma * value from SB3


def test_it_goes_through_sb3s_wrappers() -> None:
    env = VecNormalize(VecMonitor(adapted(4)), norm_obs=True)
    env.seed(1)
    env.reset()
    for step in range(40):
        seen, *_ = env.step(draw(env, step))
    assert seen.dtype == np.float32
    assert np.isfinite(seen).all()
    assert env.env_is_wrapped(gym.Wrapper) == [False] * 4


def test_seeds_agree_differ_and_last_for_one_reset() -> None:
    env, other = adapted(), adapted()
    assert env.seed(5) != env.seed(6)
    starts = []
    for one, seed in ((env, 5), (other, 5), (env, None), (env, 6)):
        if seed is not None:
            one.seed(seed)
        one.reset()
        starts.append(one.envs._states["seed"].tolist())
    assert starts[0] == starts[1]
    assert len({key for start in starts for key in start}) == 12


def test_positions_are_set_for_one_reset() -> None:
    env = adapted(2)
    text = "kimble R10/B-/Y3/G- R 6 1"
    env.set_options({"position": text})
    env.reset()
    assert env.env_method("position") == [text] * 2
    env.reset()
    assert env.env_method("position", indices=1) != [text]
    env.set_options([{"position": text}, {}])
    with pytest.raises(KimbleError, match=r"missing for \[1\]"):
        env.reset()
    env.set_options({"position": "kimble R10/Y3 R 6 1"})
    with pytest.raises(PositionError):
        env.reset()


def test_opponents_are_exchanged_for_the_whole_batch() -> None:
    env = adapted(3)
    env.reset()
    assert env.env_method("set_opponents", "random:mask") == [(1,)] * 3
    env.reset()
    assert [info["lineup"] for info in env.reset_infos] == [1, 1, 1]
    with pytest.raises(KimbleError, match="whole batch"):
        env.env_method("set_opponents", "random", indices=[0])


def test_attributes_and_masks_are_told_per_game() -> None:
    env = adapted(3)
    env.reset()
    masks = env.env_method("action_masks", indices=[2, 0])
    assert [mask.dtype for mask in masks] == [np.bool_] * 2
    np.testing.assert_array_equal(masks, env.envs.action_masks()[[2, 0]])
    assert env.get_attr("render_mode") == [None] * 3
    assert env.get_attr("rules", indices=0) == [env.envs.rules]
    with pytest.raises(AttributeError):
        env.get_attr("nothing_of_the_kind")
    env.step_async(np.full(3, 0.5))
    with pytest.raises(IllegalMoveError):
        env.step_wait()


def test_frames_are_tiled_and_copies_play_on() -> None:
    env = adapted(3, render_mode="rgb_array")
    env.reset()
    picture = env.render()
    assert picture is not None
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    twin = pickle.loads(pickle.dumps(env))
    for step in range(20):
        actions = draw(env, step)
        for mine, its in zip(env.step(actions)[:3], twin.step(actions)[:3], strict=True):
            np.testing.assert_array_equal(mine, its)
    env.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.reset()
