"""KimbleVectorEnv as a vector environment of stable-baselines3, with masks for MaskablePPO.

The games stay in the compiled batch; only the books that SB3 wants are kept here: infos per game,
``terminal_observation``, ``TimeLimit.truncated`` and ``episode``. Nothing is cloned and no
sub-process is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from agents.move_inputs import MoveInputs
from agents.net_features import feature_count, net_features_batch, scratch_inputs
from agents.policy_kernel import NOBODY
from kimble_env.errors import KimbleError
from kimble_env.vector import KimbleVectorEnv, slot_seed

Indices = None | int | Iterable[int]


class Played(NamedTuple):
    """What one decision in every game led to, as arrays.

    observations: what the learner is shown [N, size]. rewards: float32 [N]. dones: bool [N].
    cut_off: bool [N], the game ended without a winner. episodes: SB3's record of each game that
    ended (r, l, t). info: what the vector env says of the step.
    """

    observations: npt.NDArray[Any]
    rewards: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]
    cut_off: npt.NDArray[np.bool_]
    episodes: list[dict[str, Any]]
    info: dict[str, Any]


class KimbleVecEnv(VecEnv):
    """The SB3 side of a :class:`~kimble_env.vector.KimbleVectorEnv`.

    A step's reward is all that the learner's seat got until its next decision, so the loser's
    -1/(n - 1) is in it and every trajectory belongs to one seat.

    Args:
        envs: with opponents (one seat learns), autoreset SAME_STEP, flat observations.
        moves: appends the inputs of every legal move to the observation, and then those of value
            networks (``agents.net_features``), which say how all pieces threaten each other. The
            observation is then float32 [N, size + moves.size + F].

    Raises:
        KimbleError: an environment of another mode.
    """

    def __init__(self, envs: KimbleVectorEnv, moves: MoveInputs | None = None) -> None:
        faults = []
        if not envs.lineups:
            faults.append("opponents must be given: SB3 learns one seat, each row one trajectory")
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            faults.append(f"autoreset_mode must be SAME_STEP, got {envs.autoreset_mode.name}")
        if envs.mask_in_observation:
            faults.append("mask_in_observation must be False: masks come from action_masks()")
        if faults:
            raise KimbleError("; ".join(faults))
        self.envs = envs
        self.render_mode = envs.render_mode
        self._batch_seed: int | None = None
        self.moves = moves
        space: Any = envs.single_observation_space
        self.seen, self.told = space.shape[0], 0
        if moves is not None:
            self.told = feature_count(envs.rules)
            self._scratch = scratch_inputs()
            space = spaces.Box(-1e4, 1e4, (self.seen + moves.size + self.told,))
        super().__init__(envs.num_envs, space, envs.single_action_space)
        self._masks = np.zeros((envs.num_envs, int(envs.single_action_space.n)), np.int8)
        self._actions: npt.NDArray[Any] = np.zeros(envs.num_envs, np.int64)
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._started = time.perf_counter()

    def _with_moves(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what the learner is shown: the observations, and the moves' inputs if wanted."""
        if self.moves is None:
            return observations
        out = np.empty((self.num_envs, *self.observation_space.shape), np.float32)
        out[:, : self.seen] = observations
        positions = self.envs.states()
        self.moves.write(positions, self._masks, out, self.seen, self.envs.threads)
        net_features_batch(
            positions, self.envs.rules.array, *self._scratch, out[:, out.shape[1] - self.told :]
        )
        return out

    def _final(self, observation: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the last observation of a game as the learner is shown it: nobody moves there."""
        if self.moves is None:
            return observation
        out = np.zeros(self.observation_space.shape, np.float32)
        out[: self.seen] = observation
        out[self.seen : self.seen + self.moves.shape[0]] = NOBODY
        return out

    def reset(self) -> npt.NDArray[Any]:
        """Start new games, with the seed and options given since the last reset; int8 [N, size].

        Raises:
            KimbleError: a position for some of the games only, or one that cannot be.
        """
        options = {"position": self._positions()}
        observations, info = self.envs.reset(seed=self._batch_seed, options=options)
        self._batch_seed = None
        self._reset_seeds()
        self._reset_options()
        self._masks = info["action_mask"]
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._started = time.perf_counter()
        self.reset_infos = [
            {"seat": int(seat), "lineup": int(lineup)}
            for seat, lineup in zip(info["seat"], info["lineup"], strict=True)
        ]
        return self._with_moves(observations)

    def _positions(self) -> list[str] | None:
        """Return the positions that ``set_options`` asked for, or None."""
        positions = [options.get("position") for options in self._options]
        if all(position is None for position in positions):
            return None
        missing = [i for i, position in enumerate(positions) if position is None]
        if missing:
            raise KimbleError(
                f"set_options gives a position to some games only; missing for {missing}"
            )
        return [str(position) for position in positions]

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the next ``reset``; None goes on to the next games.

        SB3's own environments take ``seed + i``, so that runs with neighbouring seeds play mostly
        the same games. Here slot i gets ``slot_seed(seed, i)``, as in the vector env.

        Returns:
            The seed of every slot.
        """
        first = self.envs.first_game
        self._batch_seed = seed
        self._seeds = [
            None if seed is None else slot_seed(int(seed), first + i) for i in range(self.num_envs)
        ]
        return self._seeds

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions for ``step_wait``, which refuses what is no legal action."""
        self._actions = np.asarray(actions)

    def play(self, actions: npt.NDArray[Any]) -> Played:
        """Play one decision in every game, without infos per game."""
        observations, rewards, terminated, truncated, info = self.envs.step(actions)
        self._masks = info["action_mask"]
        dones = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        ended = np.flatnonzero(dones)
        seconds = round(time.perf_counter() - self._started, 6)
        episodes = [
            {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": seconds} for i in ended
        ]
        for i in ended:
            self.reset_infos[i] = {"seat": int(info["seat"][i]), "lineup": int(info["lineup"][i])}
        self._returns[dones] = 0.0
        self._lengths[dones] = 0
        shown = self._with_moves(observations)
        return Played(shown, rewards, dones, truncated & ~terminated, episodes, info)

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Play one decision in every game.

        Returns:
            Observations int8 [N, size], rewards float32 [N], dones bool [N], and the infos.
        """
        played = self.play(self._actions)
        info = played.info
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i, episode in zip(np.flatnonzero(played.dones), played.episodes, strict=True):
            infos[i] = {
                "terminal_observation": self._final(info["final_obs"][i]),
                "TimeLimit.truncated": bool(played.cut_off[i]),
                "episode": episode,
                "lineup": int(info["final_info"]["lineup"][i]),
                "drinks": info["drinks"][i].tolist(),
            }
        return played.observations, played.rewards, played.dones, infos

    def action_masks(self) -> npt.NDArray[np.int8]:
        """Return the legal actions of every game, int8 [N, A]."""
        return self._masks

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """Return a frame of every game, uint8 [height, width, 3]; None without ``rgb_array``."""
        frames = self.envs.render() if self.render_mode == "rgb_array" else None
        return list(frames) if frames is not None else [None] * self.num_envs

    def close(self) -> None:
        """Close the games."""
        self.envs.close()

    def _rows(self, indices: Indices) -> list[int]:
        return list(self._get_indices(indices))

    def has_attr(self, attr_name: str) -> bool:
        """Tell whether the games have an attribute; ``action_masks`` makes MaskablePPO work."""
        return attr_name == "action_masks" or hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the batch once per game asked for."""
        value = self.render_mode if attr_name == "render_mode" else getattr(self.envs, attr_name)
        return [value] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Refuse: the games share their settings.

        Raises:
            KimbleError: always; ``envs.set_opponents`` changes the opponents.
        """
        raise KimbleError(f"{attr_name!r} cannot be set per game; the batch shares its settings")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method once per game asked for.

        ``action_masks()`` gives bool [A] and ``position()`` a text per game. ``set_opponents`` is
        of the whole batch: it is called once, and every game is answered the same.

        Raises:
            AttributeError: another method.
            KimbleError: ``set_opponents`` for some of the games only.
        """
        rows = self._rows(indices)
        if method_name == "action_masks":
            return list(self._masks.astype(np.bool_)[rows])
        if method_name == "position":
            return [self.envs.position(i) for i in rows]
        if method_name == "set_opponents":
            if sorted(rows) != list(range(self.num_envs)):
                raise KimbleError("set_opponents is of the whole batch: leave indices out")
            return [self.envs.set_opponents(*method_args, **method_kwargs)] * len(rows)
        raise AttributeError(f"the games of a batch have no method {method_name!r} of their own")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(self._rows(indices))
