"""MaskablePPO of sb3-contrib with a loop that collects thousands of games without a Python loop.

The algorithm is theirs, and so is the update. What is replaced is bookkeeping per game and step:
infos, masks asked one by one, and copies of the minibatches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback

from training.sb3_adapter import KimbleVecEnv


class PlainBuffer(MaskableRolloutBuffer):
    """A rollout buffer whose minibatches are not copied once more on their way to torch."""

    def to_torch(self, array: Any, copy: bool = True) -> torch.Tensor:
        """Return an array, a fresh selection of rows, as a tensor on the same memory."""
        return torch.as_tensor(array, device=self.device)


class BatchedPPO(MaskablePPO):
    """MaskablePPO whose environment is a :class:`~training.sb3_adapter.KimbleVecEnv`."""

    def collect_rollouts(
        self,
        env: Any,
        callback: BaseCallback,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Fill the buffer, as the method replaced does; return False if a callback says stop."""
        if not isinstance(env, KimbleVecEnv):
            return super().collect_rollouts(
                env, callback, rollout_buffer, n_rollout_steps, use_masking
            )
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        for _ in range(n_rollout_steps):
            seen, masks = self._last_obs, env.action_masks()
            with torch.no_grad():
                found = self.policy(torch.as_tensor(seen).float(), action_masks=masks)
            actions, values, logs = found
            played = env.play(actions.numpy())
            self.num_timesteps += env.num_envs
            if not callback.on_step():
                return False
            self.ep_info_buffer.extend(played.episodes)
            # A game that was cut off was worth what its last decision was thought to be worth;
            # what followed was not seen by anybody.
            rewards = played.rewards + self.gamma * values[:, 0].numpy() * played.cut_off
            rollout_buffer.add(
                seen,
                actions.numpy()[:, None],
                rewards,
                self._last_episode_starts,
                values,
                logs,
                action_masks=masks,
            )
            self._last_obs, self._last_episode_starts = played.observations, played.dones
        with torch.no_grad():
            values = self.policy.predict_values(torch.as_tensor(self._last_obs).float())
        dones = np.asarray(self._last_episode_starts)
        rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
        callback.on_rollout_end()
        return True
