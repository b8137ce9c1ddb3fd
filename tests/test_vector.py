"""The vector environment: against the AEC env, Game and Gymnasium's own vector env, and itself."""

from __future__ import annotations

import copy
import doctest
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from games_hash import KINDS, digest, hash_games
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from kimble_env import Board, Game, kimble_v0, stepping
from kimble_env import threads as kimble_threads
from kimble_env.errors import (
    AgentError,
    GameOverError,
    IllegalMoveError,
    KimbleError,
    NotationError,
    PositionError,
    RulesError,
)
from kimble_env.features import FEATURE_COUNT
from kimble_env.kernel import STATE, game_keys
from kimble_env.lineups import read_chances, read_pool
from kimble_env.notation import format_position, parse_position
from kimble_env.observation import observe_batch
from kimble_env.opponents import WeightAgent, check_actions, make_agent
from kimble_env.rewards import Shaping, final_rewards_batch, loss_reward, read_shaping
from kimble_env.rules import Rules, find_rules
from kimble_env.single_seat import KimbleSingleSeat
from kimble_env.stepping import ABSENT
from kimble_env.threads import check_threads, run_slices, slices
from kimble_env.vector import KimbleVectorEnv, sample_actions, slot_seed

HERE = Path(__file__).resolve().parent
RULES = (
    "kimble",
    "kombat",
    "norske",
    "kimble[two_colours=yes]",
    "norske[play_for_places=yes,pieces=2]",
    "kombat[board=ludo52,die=popomatic,pieces=2]",
)


def choose(info: dict[str, Any], step: int, passing: bool = False) -> np.ndarray:
    """Actions that depend on the slot and the step alone."""
    keys = np.empty(len(info["action_mask"]), np.uint64)
    game_keys(np.uint64(step), 0, keys)
    return sample_actions(info["action_mask"], keys, passing=passing)


def bytes_of(env: KimbleVectorEnv) -> bytes:
    return env._states.tobytes() + env._slots.tobytes()


def play_out(env: KimbleVectorEnv, info: dict[str, Any], steps: int, first: int = 0) -> list[Any]:
    """Play on and return everything that was returned."""
    seen = []
    for step in range(first, first + steps):
        *parts, info = env.step(choose(info, step))
        seen.append((*parts, info["action_mask"], info["rewards"], info["seat"]))
    return seen


def assert_same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


# --------------------------------------------------------------------------------- what is returned


def test_types_and_shapes_are_those_of_the_page_of_the_module() -> None:
    env = KimbleVectorEnv(5, "kimble", illegal="noop", opponents="random")
    observations, info = env.reset(seed=1)
    observations, reward, terminated, truncated, info = env.step(choose(info, 0))
    shapes = {
        "observations": (observations, np.int8, (5, 160)),
        "reward": (reward, np.float32, (5,)),
        "terminated": (terminated, np.bool_, (5,)),
        "truncated": (truncated, np.bool_, (5,)),
        "action_mask": (info["action_mask"], np.int8, (5, 34)),
        "seat": (info["seat"], np.int8, (5,)),
        "rewards": (info["rewards"], np.float32, (5, 4)),
        "acted": (info["acted"], np.int8, (5,)),
        "drinks": (info["drinks"], np.int16, (5, 4)),
        "lineup": (info["lineup"], np.int32, (5,)),
        "illegal": (info["illegal"], np.bool_, (5,)),
    }
    for name, (array, dtype, shape) in shapes.items():
        assert array.dtype == dtype, name
        assert array.shape == shape, name
    assert observations in env.observation_space
    assert observations[0] in env.single_observation_space
    assert all(info[f"_{key}"].all() for key in list(info) if not key.startswith("_"))
    assert "lineup" not in KimbleVectorEnv(2).reset(seed=1)[1]


def test_gymnasium_makes_it_by_its_id() -> None:
    env = gym.make_vec(
        "kimble_env:Kimble-v0", 3, vectorization_mode="vector_entry_point", rules="norske"
    )
    assert isinstance(env, KimbleVectorEnv)
    assert env.num_envs == 3
    assert env.rules == find_rules("norske")
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.spec is not None
    observations, _ = env.reset(seed=1)
    assert observations in env.observation_space
    env.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.reset()


def test_dict_observations_hold_the_mask_of_info() -> None:
    env = KimbleVectorEnv(3, mask_in_observation=True)
    observations, info = env.reset(seed=1)
    assert observations in env.observation_space
    assert observations["action_mask"] is info["action_mask"]
    plain, _ = KimbleVectorEnv(3).reset(seed=1)
    np.testing.assert_array_equal(observations["observation"], plain)


# ------------------------------------------------------------------- against the other environments


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("ask_forced", [False, True])
def test_all_seats_equal_the_aec_env(rules: str, ask_forced: bool) -> None:
    seeds = [3, 11, 2**63 + 5]
    options: dict[str, Any] = {
        "max_turns": 150,
        "shaping": Shaping(0.7, 0.9),
        "ask_forced": ask_forced,
    }
    env = KimbleVectorEnv(3, rules, **options)
    peers = [kimble_v0.raw_env(rules, **options) for _ in seeds]
    observations, info = env.reset(seed=seeds)
    for peer, seed in zip(peers, seeds, strict=True):
        peer.reset(seed=seed)
    ended = 0
    for step in range(700):
        actions = choose(info, step)
        for i, peer in enumerate(peers):
            agent = peer.agent_selection
            if not peer.terminations[agent] and not peer.truncations[agent]:
                seen = peer.observe(agent)
                np.testing.assert_array_equal(observations[i], seen["observation"])
                np.testing.assert_array_equal(info["action_mask"][i], seen["action_mask"])
                assert info["seat"][i] == peer.infos[agent]["seat"]
        before = [peer.agent_selection for peer in peers]
        observations, _, terminated, truncated, info = env.step(actions)
        for i, (peer, old) in enumerate(zip(peers, before, strict=True)):
            if peer.terminations[old] or peer.truncations[old]:
                peer.reset()
                ended += 1
                assert not terminated[i]
                assert info["acted"][i] == -1
                assert not info["rewards"][i].any()
                continue
            peer.step(int(actions[i]))
            assert terminated[i] == peer.terminations[old]
            assert truncated[i] == peer.truncations[old]
            for agent in peer.possible_agents:
                for seat in peer._seats_of[agent]:
                    assert info["rewards"][i, seat] == pytest.approx(peer.rewards[agent], abs=1e-6)
            if terminated[i] or truncated[i]:
                seen = peer.observe(old)
                np.testing.assert_array_equal(observations[i], seen["observation"])
                np.testing.assert_array_equal(info["action_mask"][i], seen["action_mask"])
    assert ended >= 3


@pytest.mark.parametrize("rules", ["kimble", "kombat", "norske"])
def test_all_seats_equal_a_game_with_the_same_seed(rules: str) -> None:
    env = KimbleVectorEnv(2, rules)
    _, info = env.reset(seed=9)
    games = [Game(rules, seed=slot_seed(9, i)) for i in range(2)]
    terminated = [False, False]
    for step in range(400):
        actions = choose(info, step)
        for i, game in enumerate(games):
            while not game.over and len(game.legal_moves) < 2:
                if game.die is None:
                    game.throw()
                else:
                    game.play(game.legal_moves[0])
            assert terminated[i] == game.over
            if game.over:
                assert info["rewards"][i].argmax() == game.winner
                return
            assert env.position(i) == game.to_text()
            codes = [move.action for move in game.legal_moves]
            assert sorted(codes) == np.flatnonzero(info["action_mask"][i]).tolist()
            game.play(next(m for m in game.legal_moves if m.action == actions[i]))
        _, _, terminated, _, info = env.step(actions)
    pytest.fail("no game has ended")


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("as_dict", [False, True])
def test_autoreset_is_what_gymnasiums_own_vector_env_does(
    mode: AutoresetMode, as_dict: bool
) -> None:
    options: dict[str, Any] = {
        "rules": "kimble[pieces=2]",
        "opponents": ("random", "random:mask", "random"),
        "max_turns": 60,
        "mask_in_observation": as_dict,
        "seat": "B",
    }
    peer = SyncVectorEnv([lambda: KimbleSingleSeat(**options)] * 4, autoreset_mode=mode)
    env = KimbleVectorEnv(4, autoreset_mode=mode, **options)
    seeds = [4, 5, 6, 7]
    (seen, info), (peer_seen, peer_info) = env.reset(seed=seeds), peer.reset(seed=seeds)
    kinds = {"terminated": 0, "truncated": 0}
    for step in range(250):
        _assert_observations(seen, peer_seen)
        for key in ("action_mask", "seat", "rewards"):
            np.testing.assert_array_equal(info[key], peer_info[key], err_msg=key)
        actions = choose(info, step)
        seen, reward, terminated, truncated, info = env.step(actions)
        peer_seen, *peer_parts, peer_info = peer.step(actions)
        for mine, its in zip((reward, terminated, truncated), peer_parts, strict=True):
            np.testing.assert_array_equal(mine, its.astype(mine.dtype))
        done = terminated | truncated
        kinds["terminated"] += terminated.sum()
        kinds["truncated"] += truncated.sum()
        _assert_ends(info, peer_info, done)
        if mode is AutoresetMode.SAME_STEP and done.any():
            # What the step paid is told with it, not only in final_info.
            peer_info["rewards"] = info["rewards"]
        if mode is AutoresetMode.DISABLED and done.any():
            seen, info = env.reset(options={"reset_mask": done})
            peer_seen, fresh = peer.reset(options={"reset_mask": done.copy()})
            for key in ("action_mask", "seat"):
                np.testing.assert_array_equal(info[key][done], fresh[key][done])
                peer_info[key] = info[key]
            peer_info["rewards"] = info["rewards"]
            assert (info["acted"] == -1).all()
    assert min(kinds.values()) > 2


def _assert_observations(mine: Any, its: Any) -> None:
    if not isinstance(mine, dict):
        mine, its = {"": mine}, {"": its}
    for key in mine:
        np.testing.assert_array_equal(mine[key], its[key])


def _assert_ends(info: dict[str, Any], peer_info: dict[str, Any], done: np.ndarray) -> None:
    assert ("final_obs" in info) == ("final_obs" in peer_info)
    if "final_obs" not in info:
        return
    np.testing.assert_array_equal(info["_final_obs"], peer_info["_final_obs"])
    np.testing.assert_array_equal(info["_final_info"], done)
    for i in range(len(done)):
        if done[i]:
            _assert_observations(info["final_obs"][i], peer_info["final_obs"][i])
        else:
            assert info["final_obs"][i] is None
    for key in ("action_mask", "seat", "rewards"):
        mine, its = info["final_info"][key], peer_info["final_info"][key]
        np.testing.assert_array_equal(mine[done], its[done], err_msg=key)
        np.testing.assert_array_equal(info["final_info"][f"_{key}"], done)


def test_disabled_refuses_to_step_a_game_that_is_over() -> None:
    env = KimbleVectorEnv(3, "kimble[pieces=1]", autoreset_mode="DISABLED")
    _, info = env.reset(seed=1)
    for step in range(500):
        _, _, terminated, _, info = env.step(choose(info, step))
        if terminated.any():
            break
    before = bytes_of(env)
    with pytest.raises(GameOverError, match=f"game {np.flatnonzero(terminated)[0]} is over"):
        env.step(choose(info, step))
    assert bytes_of(env) == before
    others = env._states[~terminated].copy()
    observations, info = env.reset(options={"reset_mask": terminated})
    np.testing.assert_array_equal(env._states[~terminated], others)
    again = np.empty_like(observations)
    observe_batch(env._states, env.rules.array, info["seat"], again)
    np.testing.assert_array_equal(observations, again)
    env.step(choose(info, step))


# ------------------------------------------------------------------------------------------ rewards


class SlowBookkeeper:
    """What one game should pay, from its positions, in plain Python."""

    def __init__(self, rules: Rules, shaping: Shaping) -> None:
        self.rules, self.shaping = rules, shaping
        self.start()

    def start(self) -> None:
        self.decided: dict[int, float] = {}
        self.owed = dict.fromkeys(self.rules.seats, 0.0)

    def player(self, seat: int) -> tuple[int, ...]:
        return (seat, (seat + 2) % 4) if self.rules.two_colours else (seat,)

    def progress(self, state: np.void, seat: int) -> float:
        own = [
            (int(p) + 1) / (self.rules.last_progress + 1)
            for colour in self.player(seat)
            for p in state["pieces"][colour][: self.rules.pieces]
        ]
        return sum(own) / len(own)

    def potential(self, state: np.void, seat: int) -> float:
        if state["status"] == 1:
            return 0.0
        others = [s for s in self.rules.seats if s not in self.player(seat)]
        mean = sum(self.progress(state, s) for s in others) / len(others)
        return self.progress(state, seat) - mean

    def shape(self, state: np.void, seat: int, paid: dict[int, float]) -> None:
        now = self.potential(state, seat)
        if seat in self.decided:
            change = self.shaping.gamma * now - self.decided[seat]
            for colour in self.player(seat):
                paid[colour] += self.shaping.scale * change
        for colour in self.player(seat):
            self.decided[colour] = now

    def step(self, state: np.void, asked: int | None, winner: int | None) -> dict[int, float]:
        """Return what every seat gets in a step that leads to ``state``."""
        paid = dict.fromkeys(self.rules.seats, 0.0)
        if asked is not None:
            self.shape(state, asked, paid)
            return self._owe(paid)
        if winner is not None:
            losers = [s for s in self.rules.seats if s not in self.player(winner)]
            for seat in self.rules.seats:
                paid[seat] += -1 / (self.rules.players - 1) if seat in losers else 1.0
        for seat in list(self.decided):
            if not self.rules.two_colours or seat < 2:
                self.shape(state, seat, paid)
        return self._owe(paid)

    def _owe(self, paid: dict[int, float]) -> dict[int, float]:
        for seat, amount in paid.items():
            self.owed[seat] += amount
        return paid

    def collect(self, seat: int) -> float:
        amount = self.owed[seat]
        for colour in self.player(seat):
            self.owed[colour] = 0.0
        return amount


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        ("kimble", {"max_turns": 90}),
        ("norske", {"players": 2}),
        ("kombat[pieces=2]", {"players": 3}),
        ("kimble[two_colours=yes]", {"pieces": 2}),
    ],
)
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_self_play_rewards_equal_a_slow_recomputation(
    rules: str, options: dict[str, Any], mode: str
) -> None:
    shaping = Shaping(scale=0.3, gamma=0.97)
    env = KimbleVectorEnv(6, rules, shaping=shaping, autoreset_mode=mode, **options)
    books = [SlowBookkeeper(env.rules, shaping) for _ in range(6)]
    _, info = env.reset(seed=2)
    for i, book in enumerate(books):
        book.step(env._states[i], int(info["seat"][i]), None)
    ended = 0
    for step in range(600):
        before = copy.deepcopy(env)
        actors = info["seat"]
        actions = choose(info, step)
        _, reward, terminated, truncated, info = env.step(actions)
        over = terminated | truncated
        # The end of a game is gone under SAME_STEP: play the same step in a copy that shows it.
        states = env._states
        if mode == "SAME_STEP" and over.any():
            before._setup.config["autoreset"] = 0
            before.step(actions)
            states = before._states
        for i, book in enumerate(books):
            if info["acted"][i] < 0:
                assert mode == "NEXT_STEP"
                book.start()
                book.step(states[i], int(info["seat"][i]), None)
                assert reward[i] == 0
                continue
            assert info["acted"][i] == actors[i]
            winner = int(states[i]["winner"]) if terminated[i] else None
            paid = book.step(states[i], None if over[i] else int(info["seat"][i]), winner)
            for seat, amount in paid.items():
                assert info["rewards"][i, seat] == pytest.approx(amount, abs=1e-6)
            assert reward[i] == pytest.approx(book.collect(int(actors[i])), abs=1e-5)
            if over[i]:
                ended += 1
                if mode == "SAME_STEP":
                    book.start()
                    book.step(env._states[i], int(info["seat"][i]), None)
    assert ended >= 6


@pytest.mark.parametrize(
    ("rules", "options", "expected"),
    [
        ("kimble", {}, {1.0, -1 / 3}),
        ("kimble", {"players": 3}, {1.0, -0.5}),
        ("norske", {"players": 2}, {1.0, -1.0}),
        ("kimble[two_colours=yes]", {"pieces": 2}, {1.0, -1.0}),
        ("kombat[play_for_places=yes]", {}, {1.0, 1 / 3, -1 / 3, -1.0}),
    ],
)
def test_the_learner_is_shown_wins_and_losses(
    rules: str, options: dict[str, Any], expected: set[float]
) -> None:
    env = KimbleVectorEnv(64, rules, opponents="random", seat="rotate", **options)
    _, info = env.reset(seed=1)
    ends: list[float] = []
    for step in range(400):
        _, reward, terminated, _, info = env.step(choose(info, step))
        ends += reward[terminated].tolist()
        assert not reward[~terminated].any()
        np.testing.assert_array_equal(
            reward[info["acted"] >= 0],
            info["rewards"][info["acted"] >= 0, info["acted"][info["acted"] >= 0]],
        )
        sums = info["rewards"][:, list(env.rules.seats)].sum(axis=1)
        np.testing.assert_allclose(sums, 0, atol=1e-6)
    assert {round(r, 4) for r in ends} == {round(r, 4) for r in expected}
    share = np.mean([r == 1.0 for r in ends])  # random against random: par
    assert abs(share - 1 / env.rules.players) < 4 * np.sqrt(0.25 / len(ends))


def test_a_game_cut_off_pays_nothing() -> None:
    env = KimbleVectorEnv(8, opponents="random", max_turns=20)
    _, info = env.reset(seed=1)
    cut = 0
    for step in range(40):
        _, _, terminated, truncated, info = env.step(choose(info, step))
        assert not (terminated & truncated).any()
        assert not info["rewards"].any()
        cut += int(truncated.sum())
    assert cut >= 8


def test_drinks_count_pieces_lost_and_brought_home() -> None:
    env = KimbleVectorEnv(8, "norske", autoreset_mode="DISABLED")
    _, info = env.reset(seed=3)
    drunk = info["drinks"].astype(int)
    for step in range(120):
        _, _, terminated, _, info = env.step(choose(info, step))
        drunk += info["drinks"]
        if terminated.any():
            break
    expected = env._states["lost"].astype(int) + env._states["arrived"]
    np.testing.assert_array_equal(drunk, expected)
    assert drunk.sum() > 20


# ---------------------------------------------------------------------------------- illegal actions


def an_illegal_action(info: dict[str, Any], i: int) -> int:
    return int(np.flatnonzero(info["action_mask"][i] == 0)[0])


def test_an_illegal_action_raises_and_changes_nothing() -> None:
    env = KimbleVectorEnv(4)
    _, info = env.reset(seed=1)
    actions = choose(info, 0)
    wrong = actions.copy()
    wrong[2] = an_illegal_action(info, 2)
    before = bytes_of(env)
    seat = ("red", "blue", "yellow", "green")[info["seat"][2]]
    message = rf"game 2: action {wrong[2]}.* of {seat}.*legal: \d"
    with pytest.raises(IllegalMoveError, match=message):
        env.step(wrong)
    for code in (-1, 34, 2**40, -(2**40)):
        wrong[2] = code
        with pytest.raises(IllegalMoveError, match="game 2"):
            env.step(wrong)
    assert bytes_of(env) == before
    env.step(actions)


def test_an_illegal_action_on_an_own_board_without_a_text_is_named() -> None:
    board = Board("unheard_of", ring=12, starts=(0, 3, 6, 9), leave=11, stretch=4)
    env = KimbleVectorEnv(2, board=board)
    _, info = env.reset(seed=1)
    actions = sample_actions(info["action_mask"], 1)
    actions[1] = 99
    with pytest.raises(
        IllegalMoveError, match=r"game 1: action 99 .* board 'unheard_of'.* legal: "
    ):
        env.step(actions)
    with pytest.raises(AgentError, match="must return whole numbers"):
        check_actions(env.states(), env.rules, [[1], [1, 2]], "mine")
    with pytest.raises(IllegalMoveError, match=r"'mine' answers action 99 .* 'unheard_of'"):
        check_actions(env.states(), env.rules, actions, "mine")


def test_noop_asks_again_and_lose_ends_the_game() -> None:
    for illegal in ("noop", "lose"):
        env = KimbleVectorEnv(4, illegal=illegal)
        observations, info = env.reset(seed=1)
        actions = choose(info, 0)
        actions[1], actions[3] = an_illegal_action(info, 1), -7
        games = env._states.copy()
        after, reward, terminated, truncated, new = env.step(actions)
        assert new["illegal"].tolist() == [False, True, False, True]
        np.testing.assert_array_equal(env._states[[1, 3]], games[[1, 3]])
        assert (env._states[[0, 2]] != games[[0, 2]]).all()
        assert not truncated.any()
        if illegal == "noop":
            assert not terminated.any()
            assert not new["rewards"].any()
            np.testing.assert_array_equal(after[[1, 3]], observations[[1, 3]])
            np.testing.assert_array_equal(new["action_mask"][[1, 3]], info["action_mask"][[1, 3]])
        else:
            assert terminated.tolist() == [False, True, False, True]
            expected = np.zeros((4, 4), np.float32)
            for i in (1, 3):
                expected[i, info["seat"][i]] = np.float32(-1 / 3)
            np.testing.assert_array_equal(new["rewards"], expected)
            np.testing.assert_array_equal(reward, expected.sum(axis=1))
            *_, new = env.step(choose(new, 1))  # NEXT_STEP: they start anew
            assert new["acted"].tolist()[1::2] == [-1, -1]
            assert not new["illegal"].any()


def test_lose_in_the_same_step_starts_the_next_game() -> None:
    env = KimbleVectorEnv(2, illegal="lose", autoreset_mode="SAME_STEP", shaping=1.0)
    _, info = env.reset(seed=1)
    for step in range(30):
        *_, info = env.step(choose(info, step))
    seat = info["seat"][0]
    actions = choose(info, 99)
    actions[0] = -1
    _, reward, terminated, _, info = env.step(actions)
    assert terminated.tolist() == [True, False]
    assert info["acted"][0] == seat
    assert reward[0] == pytest.approx(info["rewards"][0, seat], abs=0.5)
    assert info["rewards"][0, seat] < 0.8
    assert info["final_info"]["illegal"].tolist() == [True, False]
    assert env._states["plies"][0] < env._states["plies"][1]


# ---------------------------------------------------------------------------------------- opponents


class Uncompiled(WeightAgent):
    """A weight vector that the environment must ask, because a subclass may decide otherwise."""


class Spy:
    """Plays at random and remembers what it saw."""

    spec = "spy"

    def __init__(self) -> None:
        self.inner = make_agent("random")
        self.seen: list[np.ndarray] = []

    def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        self.seen.append(positions.copy())
        return self.inner.act(positions, keys)


@pytest.mark.parametrize("rules", ["kimble", "norske", "kimble[two_colours=yes]"])
@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_opponents_asked_in_batches_play_as_the_compiled_ones(rules: str, mode: str) -> None:
    full = find_rules(rules, pieces=2)
    agent = make_agent('weights:{"capture": 2, "progress": 0.1}', full)
    assert isinstance(agent, WeightAgent)
    slow = Uncompiled("slow", full, agent.weights)
    width = full.players - 1
    lineups: list[list[Any]] = [
        [[agent] + ["random"] * (width - 1), ["random:mask"] * width],
        [
            [slow] + ["random"] * (width - 1),
            [Uncompiled("m", full, np.zeros(FEATURE_COUNT))] * width,
        ],
    ]
    seen = []
    for pool in lineups:
        env = KimbleVectorEnv(9, full, opponents=pool, autoreset_mode=mode, seat="rotate")
        _, info = env.reset(seed=4)
        seen.append(play_out(env, info, 150))
    assert_same(*seen)
    assert sum(int(step[2].sum()) for step in seen[0]) > 9


def test_opponents_see_no_dice_to_come() -> None:
    spy = Spy()
    env = KimbleVectorEnv(4, opponents=spy)
    _, info = env.reset(seed=1)
    play_out(env, info, 10)
    positions = np.concatenate(spy.seen)
    assert len(positions) > 40
    for name in ("seed", "throw_count", "battle_count", "choice_count"):
        assert not positions[name].any()
    assert not env.states()["seed"].any()
    assert env._states["seed"].any()


def test_a_users_function_sits_opposite() -> None:
    def first_move(game: Game) -> Any:
        return game.legal_moves[0]

    env = KimbleVectorEnv(2, opponents=first_move)
    _, info = env.reset(seed=1)
    play_out(env, info, 5)
    assert "first_move" in env.lineups[0][0]


class Broken:
    """Fails, or answers nonsense, from some call on."""

    spec = "broken"

    def __init__(self, answer: Any, after: int = 10**9) -> None:
        self.inner, self.answer, self.left = make_agent("random"), answer, after

    def act(self, positions: np.ndarray, keys: np.ndarray) -> Any:
        self.left -= 1
        if self.left > 0:
            return self.inner.act(positions, keys)
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.full(len(positions), self.answer)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(ZeroDivisionError("mine"), AgentError), (99, IllegalMoveError), (0.5, AgentError)],
)
def test_a_failing_opponent_leaves_everything_as_it_was(
    answer: Any, error: type[Exception]
) -> None:
    agent = Broken(answer)
    env = KimbleVectorEnv(5, opponents=agent)
    _, info = env.reset(seed=1)
    *_, info = env.step(choose(info, 0))
    before = bytes_of(env)
    agent.left = 2  # it fails at its second call of the step
    with pytest.raises(error):
        env.step(choose(info, 1))
    assert agent.left == 0
    assert bytes_of(env) == before
    agent.left = 10**9  # it has recovered: the step can be made
    env.step(choose(info, 1))
    agent.left = 0
    before = bytes_of(env)
    with pytest.raises(error):
        env.reset(seed=3)
    assert bytes_of(env) == before


def test_a_pool_is_drawn_by_its_chances_and_exchanged_at_the_next_start() -> None:
    env = KimbleVectorEnv(
        400,
        "kimble[pieces=1]",
        opponents=["random", ("random:mask", "random", "random"), "random:mask"],
        chances=[3, 1, 0],
    )
    _, info = env.reset(seed=1)
    assert env.lineups[1] == ("random:mask", "random", "random")
    assert env.lineups[2] == ("random:mask",) * 3
    counts = np.bincount(info["lineup"], minlength=3)
    assert counts[2] == 0
    assert abs(counts[0] - 300) < 45
    numbers = env.set_opponents("weights:{}")
    assert numbers == (3,)
    before = info["lineup"]
    fresh = np.zeros(400, bool)
    for step in range(200):
        *_, info = env.step(choose(info, step))
        fresh |= info["acted"] < 0
        assert (info["lineup"][fresh] == 3).all()
        np.testing.assert_array_equal(info["lineup"][~fresh], before[~fresh])
    assert fresh.mean() > 0.9
    assert len(env._opponents.agents) <= 3


def test_games_in_progress_keep_their_opponents_when_the_pool_is_exchanged() -> None:
    old, new = Spy(), Spy()
    env = KimbleVectorEnv(3, opponents=old, autoreset_mode="DISABLED")
    _, info = env.reset(seed=1)
    env.set_opponents([(new, "random", "random")])
    play_out(env, info, 3)
    assert not new.seen
    count = len(old.seen)
    assert count > 0
    env.reset(seed=2)
    for step in range(3):
        *_, info = env.step(choose({"action_mask": env.action_masks().astype(np.int8)}, step))
    assert new.seen
    assert len(old.seen) == count


def test_the_learners_seat_rotates_or_stays() -> None:
    env = KimbleVectorEnv(4, "kimble[pieces=1]", opponents="random", seat="rotate", first_game=2)
    _, info = env.reset(seed=1)
    games = np.zeros(4, int)
    for step in range(200):
        expected = (2 + np.arange(4) + env._slots["games"] - 1) % 4
        np.testing.assert_array_equal(info["seat"], expected)
        *_, info = env.step(choose(info, step))
        games += info["acted"] < 0
    assert games.min() > 3
    for name in (1, "B", "b", "blue"):
        env = KimbleVectorEnv(2, opponents="random", seat=name)
        assert (env.reset(seed=1)[1]["seat"] == 1).all()
    env = KimbleVectorEnv(2, opponents="random", seats="BG")
    assert (env.reset(seed=1)[1]["seat"] == 1).all()


def test_line_ups_sit_clockwise_from_the_learner() -> None:
    names = [f"weights:[{'0,' * (FEATURE_COUNT - 1)}{k}]" for k in range(3)]
    env = KimbleVectorEnv(1, opponents=names, seat="yellow", players=4)
    env.reset(seed=1)
    specs = [env._opponents.agents[row].spec for row in env._slots["seating"][0][[3, 0, 1]]]
    assert specs == names
    env = KimbleVectorEnv(1, opponents=names[:1], seat="R", seats="RG")
    env.reset(seed=1)
    assert env._slots["seating"][0].tolist() == [-1, ABSENT, ABSENT, 0]


# ---------------------------------------------------------------------------- seeds and equal games


@pytest.fixture(scope="module")
def thousand() -> dict[str, np.ndarray]:
    return {kind: hash_games(kind, 1000) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_thousand_games_are_equal_with_any_threads_and_any_split(
    kind: str, thousand: dict[str, np.ndarray]
) -> None:
    whole = thousand[kind]
    assert len(np.unique(whole)) == 1000
    np.testing.assert_array_equal(hash_games(kind, 1000, threads=2), whole)
    cuts = [0, 1, 8, 300, 1000]
    parts = [hash_games(kind, b - a, first=a) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert digest(hash_games(kind, 1000, seed=6)) != digest(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_thousand_games_are_equal_in_spawned_workers(
    kind: str, thousand: dict[str, np.ndarray]
) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        parts = pool.starmap(hash_games, [(kind, 700, 0, 2), (kind, 300, 700)])
    np.testing.assert_array_equal(np.concatenate(parts), thousand[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_games_are_equal_in_a_fresh_process_and_without_the_compiler(
    kind: str, thousand: dict[str, np.ndarray]
) -> None:
    def run(*arguments: object, **environment: str) -> str:
        command = [sys.executable, str(HERE / "games_hash.py"), kind, *map(str, arguments)]
        path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
        ).stdout.strip()

    assert run(1000, 0, 1) == digest(thousand[kind])
    few = digest(hash_games(kind, 2, 3, 1, 25))
    assert run(2, 3, 1, 25, NUMBA_DISABLE_JIT="1") == few


def test_seeds_agree_differ_and_go_on() -> None:
    def first(seed: Any, count: int = 3) -> np.ndarray:
        env = KimbleVectorEnv(count)
        env.reset(seed=seed)
        return env._states["seed"].copy()

    np.testing.assert_array_equal(first(5), first(5))
    np.testing.assert_array_equal(first(5), first(np.int64(5)))
    assert not set(first(5)) & set(first(6))
    np.testing.assert_array_equal(first(5, 2), first(5)[:2])
    np.testing.assert_array_equal(first([5, slot_seed(5, 1), slot_seed(5, 2)]), first(5))
    assert not set(first(None)) & set(first(None))
    env = KimbleVectorEnv(3)
    keys = set()
    for seed in (5, None, None):
        env.reset(seed=seed)
        keys |= set(env._states["seed"].tolist())
    assert len(keys) == 9
    part = KimbleVectorEnv(3)
    part.reset(seed=[1, None, 2])
    assert part._states["seed"][0] == first(1)[0]
    assert part.np_random is not None


def test_gymnasiums_generator_follows_the_seed() -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=7)
    assert env.np_random_seed == 7


def test_copies_and_pickles_play_on_with_equal_dice() -> None:
    env = KimbleVectorEnv(4, "kombat", opponents=["random", [Spy()] * 3], shaping=0.1, threads=2)
    _, info = env.reset(seed=1)
    play_out(env, info, 20)
    info = {"action_mask": env.action_masks().astype(np.int8)}
    twins = [copy.deepcopy(env), copy.copy(env), pickle.loads(pickle.dumps(env))]
    futures = [play_out(twin, info, 150, first=20) for twin in twins]
    mine = play_out(env, info, 150, first=20)
    for future in futures:
        assert_same(mine, future)
    assert not twins[2]._setup.r.flags.writeable  # or compiled code would be compiled again


# ---------------------------------------------------------------------------------- buffers, memory


def test_without_copies_two_sets_of_arrays_take_turns() -> None:
    env, peer = KimbleVectorEnv(3, copy=False), KimbleVectorEnv(3)
    observations, info = env.reset(seed=1)
    _, peer_info = peer.reset(seed=1)
    history = [observations]
    for step in range(6):
        actions = choose(peer_info, step)
        observations, reward, _, _, info = env.step(actions)
        expected, peer_reward, _, _, peer_info = peer.step(actions)
        np.testing.assert_array_equal(observations, expected)
        np.testing.assert_array_equal(reward, peer_reward)
        np.testing.assert_array_equal(info["action_mask"], peer_info["action_mask"])
        assert observations is not history[-1]
        if len(history) > 1:
            assert observations is history[-2]
        history.append(observations)


def returned_bytes(step: tuple[Any, ...]) -> int:
    *arrays, info = step
    arrays += [value for key, value in info.items() if not key.startswith("_")]
    return sum(array.nbytes for array in {id(a): a for a in arrays}.values())


@pytest.mark.parametrize("copying", [True, False])
def test_a_step_allocates_what_it_returns_and_no_more(copying: bool) -> None:
    env = KimbleVectorEnv(4096, copy=copying)
    _, info = env.reset(seed=1)
    actions = np.empty(4096, np.int64)
    for step in range(8):
        *_, info = env.step(sample_actions(info["action_mask"], step, out=actions))
    tracemalloc.start()
    try:
        levels = []
        for step in range(40):
            sample_actions(info["action_mask"], step, out=actions)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            returned = env.step(actions)
            peak = tracemalloc.get_traced_memory()[1] - before
            limit = (
                returned_bytes(returned) + 5 * 4096 if copying else 0
            )  # and arrays not asked for
            assert peak < limit + 40_000, f"step {step} allocated {peak}, returned {limit}"
            info = returned[-1]
            del returned
            levels.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert levels[-1] - levels[5] < 10_000


def test_8192_games_take_less_than_100_megabytes() -> None:
    tracemalloc.start()
    try:
        env = KimbleVectorEnv(8192, autoreset_mode="SAME_STEP")
        _, info = env.reset(seed=1)
        for step in range(3):
            *_, info = env.step(sample_actions(info["action_mask"], step))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


# -------------------------------------------------------------------------------- loggers, wrappers


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP", "DISABLED"])
def test_statistics_of_episodes_are_right_in_every_mode(mode: str) -> None:
    options: dict[str, Any] = {"opponents": "random", "shaping": 0.4, "autoreset_mode": mode}
    env = KimbleVectorEnv(6, "kimble[pieces=1]", episode_statistics=True, **options)
    _, info = env.reset(seed=1)
    returns, lengths, ended = np.zeros(6), np.zeros(6, int), 0
    for step in range(150):
        _, reward, terminated, truncated, info = env.step(choose(info, step))
        acted = info["acted"] >= 0
        returns[acted] += reward[acted]
        lengths[acted] += 1
        done = terminated | truncated
        assert ("episode" in info) == bool(done.any())
        if done.any():
            np.testing.assert_array_equal(info["_episode"], done)
            np.testing.assert_allclose(info["episode"]["r"][done], returns[done], atol=1e-5)
            np.testing.assert_array_equal(info["episode"]["l"][done], lengths[done])
            assert (info["episode"]["t"][done] > 0).all()
            assert not info["episode"]["r"][~done].any()
            ended += int(done.sum())
            returns[done], lengths[done] = 0, 0
            if mode == "DISABLED":
                _, info = env.reset(options={"reset_mask": done})
    assert ended > 6


def test_gymnasiums_recorder_of_episodes_works() -> None:
    inner = KimbleVectorEnv(6, "kimble[pieces=1]", opponents="random")
    own = KimbleVectorEnv(6, "kimble[pieces=1]", opponents="random", episode_statistics=True)
    env = RecordEpisodeStatistics(inner)
    _, info = env.reset(seed=1)
    own.reset(seed=1)
    for step in range(150):
        actions = choose(info, step)
        *_, info = env.step(actions)
        *_, own_info = own.step(actions)
        assert ("episode" in info) == ("episode" in own_info)
        if "episode" in info:
            np.testing.assert_allclose(info["episode"]["r"], own_info["episode"]["r"], atol=1e-6)
            np.testing.assert_array_equal(info["episode"]["l"], own_info["episode"]["l"])
    assert env.episode_count > 6
    assert set(np.round(env.return_queue, 3)) <= {1.0, -0.333}
    mask = np.array([True] + [False] * 5)
    env.reset(options={"reset_mask": mask})


def test_gymnasiums_lists_of_infos_work() -> None:
    env = DictInfoToList(KimbleVectorEnv(3, autoreset_mode="SAME_STEP", illegal="lose"))
    _, info = env.reset(seed=1)
    assert len(info) == 3
    *_, info = env.step(np.full(3, -1))
    assert [one["final_info"]["rewards"].min() for one in info] == pytest.approx([-1 / 3] * 3)
    assert info[0]["final_obs"].shape == (160,)


# ---------------------------------------------------------------------------------- start positions


def test_games_start_from_a_position_this_time() -> None:
    text = "kimble R10/B-/Y3/G- R 6 1"
    env = KimbleVectorEnv(3)
    _, info = env.reset(seed=1, options={"position": text, "something": "else"})
    assert [env.position(i) for i in range(3)] == [text] * 3
    assert np.flatnonzero(info["action_mask"][0]).tolist() == [0, 11, 33]
    assert len(set(env._states["seed"].tolist())) == 3
    texts = [text, "kimble R-/B5/Y-/G- B 5 1", "kimble R-/B-/Y-/G20 G 3 1"]
    _, info = env.reset(options={"position": texts})
    assert [env.position(i) for i in range(3)] == texts
    assert info["seat"].tolist() == [0, 1, 3]
    mask = np.array([False, True, False])
    _, info = env.reset(options={"position": text, "reset_mask": mask})
    assert [env.position(i) for i in range(3)] == [texts[0], text, texts[2]]
    env.reset()
    assert "10" not in env.position(0).split()[1]


def test_opponents_play_on_from_a_position_to_the_learners_choice() -> None:
    env = KimbleVectorEnv(4, opponents="random", seat="Y")
    _, info = env.reset(seed=1, options={"position": "kimble R10/B4/Y3/G- R 2 1"})
    assert (info["seat"] == 2).all()
    assert (env._states["plies"] >= 2).all()


@pytest.mark.parametrize(
    ("position", "error", "match"),
    [
        ("kimble R10,x R", NotationError, "R"),
        ("norske R10/B-/Y3/G- R 6 1", PositionError, "this environment plays kimble"),
        ("kimble R10/Y3 R 6 1", PositionError, "of seats"),
        ("kimble R28,29,30,31/B-/Y3/G- R * 0", PositionError, "over"),
        ("kimble R10x2/B-/Y3/G- R 6 1", PositionError, "R"),
        (["kimble R10/B-/Y3/G- R 6 1"], PositionError, "sequence of 2"),
        (7, PositionError, "must be a text"),
        ([7, "kimble R10/B-/Y3/G- R 6 1"], PositionError, "must be a text"),
    ],
)
def test_a_position_that_cannot_be_changes_nothing(
    position: Any, error: type[Exception], match: str
) -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=1)
    before = bytes_of(env)
    with pytest.raises(error, match=match):
        env.reset(seed=2, options={"position": position})
    assert bytes_of(env) == before


def test_the_limit_of_the_env_judges_a_position() -> None:
    board = "R10/B-/Y3/G- R 6 1"
    env = KimbleVectorEnv(2, max_turns=10)
    env.reset(seed=1)
    before = bytes_of(env)
    for text in (f"kimble {board} turn=10", f"kimble[max_turns=99] {board} turn=10"):
        with pytest.raises(PositionError, match="is over"):
            env.reset(options={"position": text})
        assert bytes_of(env) == before
    for text in (f"kimble[max_turns=5] {board} turn=9", f"kimble {board} turn=9"):
        env.reset(options={"position": text})
        assert env.position(0) == f"kimble[max_turns=10] {board} turn=9"
    env = KimbleVectorEnv(2)
    env.reset(options={"position": "kimble[max_turns=5] R10/B-/Y3/G- R - 1 turn=5"})
    assert not (env.states()["status"]).any()
    env.step(sample_actions(env.action_masks(), 1))


def test_positions_round_trip() -> None:
    env = KimbleVectorEnv(5, "norske")
    _, info = env.reset(seed=1)
    play_out(env, info, 60)
    for i in range(5):
        rules, states = parse_position(env.position(i))
        assert format_position(rules, states) == env.position(i)
        assert rules.hash == env.rules.hash


# ---------------------------------------------------------------------------- games without choices


def test_rules_under_which_nobody_is_asked_are_refused() -> None:
    env = KimbleVectorEnv(2, "kimble[pieces=1,pass_allowed=no]")
    with pytest.raises(KimbleError, match="ask_forced=True"):
        env.reset(seed=1)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(2, int))
    env = KimbleVectorEnv(2, "kimble[pieces=1,pass_allowed=no]", ask_forced=True)
    _, info = env.reset(seed=1)
    assert (info["action_mask"].sum(axis=1) == 1).all()
    assert env.games_skipped == 0


def test_a_reset_that_finds_no_choice_leaves_the_running_games_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = KimbleVectorEnv(2, "norske", players=2)
    env.reset(seed=1)
    before, call = bytes_of(env), env._call_kernel

    def stuck(*arguments: Any) -> None:
        call(*arguments)
        env._slots["phase"] = stepping.STUCK

    monkeypatch.setattr(env, "_call_kernel", stuck)
    with pytest.raises(KimbleError, match="ask_forced=True"):
        env.reset(seed=2)
    monkeypatch.setattr(env, "_call_kernel", call)
    assert bytes_of(env) == before
    env.step(sample_actions(env.action_masks(), 1))


def test_games_that_end_before_the_learner_is_asked_are_skipped_and_counted() -> None:
    env = KimbleVectorEnv(200, "kimble[pieces=1]", opponents='weights:{"pass": -9}')
    env.reset(seed=1)
    first = env.games_skipped
    assert 0 < first < 200
    assert (env._slots["games"] - env._slots["skipped"] == 1).all()
    assert (env._states["status"] == 0).all()


# ------------------------------------------------------------------------------------------ sampler


def test_the_sampler_is_uniform_over_what_is_legal() -> None:
    mask = np.zeros((30_000, 34), np.int8)
    mask[:, [0, 5, 33]] = 1
    counts = np.bincount(sample_actions(mask, 1), minlength=34)
    assert counts.sum() == counts[[0, 5, 33]].sum()
    assert np.abs(counts[[0, 5, 33]] - 10_000).max() < 400
    counts = np.bincount(sample_actions(mask, 1, passing=False), minlength=34)
    assert counts[33] == 0
    assert np.abs(counts[[0, 5]] - 15_000).max() < 450
    alone = np.zeros((2, 34), np.int8)
    alone[0, 33] = 1
    assert sample_actions(alone, 1, passing=False).tolist() == [33, 33]


def test_the_sampler_depends_on_its_keys_alone() -> None:
    mask = np.ones((500, 34), np.int8)
    one = sample_actions(mask, 8)
    np.testing.assert_array_equal(one, sample_actions(mask, 8, threads=2))
    np.testing.assert_array_equal(one, sample_actions(mask.astype(bool), 8))
    out = np.empty(500, np.int64)
    assert sample_actions(mask, 8, out=out) is out
    np.testing.assert_array_equal(one, out)
    assert (one != sample_actions(mask, 9)).mean() > 0.9
    rng = np.random.default_rng(3)
    first, second = sample_actions(mask, rng), sample_actions(mask, rng)
    assert (first != second).mean() > 0.9
    np.testing.assert_array_equal(first, sample_actions(mask, np.random.default_rng(3)))
    keys = np.arange(500, dtype=np.uint64) << np.uint64(55)
    np.testing.assert_array_equal(
        sample_actions(mask, keys)[100:], sample_actions(mask[100:], keys[100:].copy())
    )


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (([[1]], 1), {}),
        ((np.ones((2, 34)), 1), {}),
        ((np.ones(34, np.int8), 1), {}),
        ((np.ones((2, 80), np.int8), 1), {}),
        ((np.ones((2, 34), np.int8), -1), {}),
        ((np.ones((2, 34), np.int8), "x"), {}),
        ((np.ones((2, 34), np.int8), None), {}),
        ((np.ones((2, 34), np.int8), np.zeros(3, np.uint64)), {}),
        ((np.ones((2, 34), np.int8), 1), {"out": np.zeros(3, np.int64)}),
        ((np.ones((2, 34), np.int8), 1), {"out": np.zeros(2, np.int32)}),
        ((np.ones((2, 34), np.int8), 1), {"out": [0, 0]}),
        ((np.ones((2, 34), np.int8), 1), {"threads": 0}),
    ],
)
def test_misuse_of_the_sampler_is_named(arguments: Any, options: dict[str, Any]) -> None:
    with pytest.raises(KimbleError):
        sample_actions(*arguments, **options)


# ------------------------------------------------------------------------------------------- misuse


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"num_envs": 0}, KimbleError, "num_envs"),
        ({"num_envs": True}, KimbleError, "num_envs"),
        ({"num_envs": 2.0}, KimbleError, "num_envs"),
        ({"rules": "ludo"}, RulesError, "unknown rule set"),
        ({"pieces": 9, "nonsense": 1}, RulesError, "nonsense"),
        ({"threads": 0}, KimbleError, "threads"),
        ({"threads": "2"}, KimbleError, "threads"),
        ({"illegal": "ignore"}, KimbleError, "illegal"),
        ({"shaping": "yes"}, KimbleError, "shaping"),
        ({"shaping": float("nan")}, KimbleError, "shaping"),
        ({"autoreset_mode": "sometimes"}, KimbleError, "autoreset_mode"),
        ({"render_mode": "human"}, KimbleError, "render_mode"),
        ({"first_game": -1}, KimbleError, "first_game"),
        ({"seat": 1}, KimbleError, "need opponents"),
        ({"chances": [1]}, KimbleError, "need opponents"),
        ({"opponents": "nobody"}, AgentError, "nobody"),
        ({"opponents": ("random", "random")}, KimbleError, "expected 3 opponents"),
        ({"opponents": []}, KimbleError, "expected 3 opponents"),
        ({"opponents": [("random",), "random"]}, KimbleError, "line-up 0 has 1"),
        ({"opponents": [["random", ["random"], "random"]]}, KimbleError, "holds a list"),
        ({"opponents": "random", "chances": [1, 2]}, KimbleError, "one chance for each"),
        ({"opponents": "random", "chances": [0]}, KimbleError, "not all 0"),
        ({"opponents": "random", "chances": [-1]}, KimbleError, "at least 0"),
        ({"opponents": "random", "chances": ["x"]}, KimbleError, "numbers"),
        ({"opponents": "random", "seat": 4}, KimbleError, "does not play"),
        ({"opponents": "random", "seat": "B", "players": 2}, KimbleError, "does not play"),
        ({"opponents": "random", "seat": "purple"}, KimbleError, "colour"),
        ({"opponents": "random", "seat": 1.0}, KimbleError, "colour"),
    ],
)
def test_arguments_that_cannot_be_are_named(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        KimbleVectorEnv(**{"num_envs": 2, **options})


@pytest.mark.parametrize(
    "actions",
    [
        [0],
        np.zeros(3, int),
        np.zeros(2),
        np.zeros((2, 1), int),
        "ab",
        None,
        [True, True],
        [[0], [0, 1]],
    ],
)
def test_actions_that_are_no_whole_numbers_are_refused(actions: Any) -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=1)
    before = bytes_of(env)
    with pytest.raises(IllegalMoveError, match=r"whole numbers \[2\]"):
        env.step(actions)
    assert bytes_of(env) == before


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", True, [1], [1, -2], [1, 2.5]])
def test_seeds_that_cannot_be_change_nothing(seed: Any) -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=1)
    before = bytes_of(env)
    with pytest.raises(KimbleError, match="seed"):
        env.reset(seed=seed)
    assert bytes_of(env) == before


@pytest.mark.parametrize(
    "mask", [[True, False], np.array([1, 0]), np.array([True]), np.array([False, False])]
)
def test_reset_masks_that_cannot_be_change_nothing(mask: Any) -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=1)
    before = bytes_of(env)
    with pytest.raises(KimbleError, match="reset_mask"):
        env.reset(seed=2, options={"reset_mask": mask})
    assert bytes_of(env) == before


def test_options_of_reset_are_a_dict() -> None:
    for env in (KimbleVectorEnv(2), KimbleSingleSeat(), kimble_v0.env()):
        for options in (5, "position", [1]):
            with pytest.raises(KimbleError, match="options must be a dict"):
                env.reset(options=options)  # type: ignore[attr-defined]
        env.reset(seed=1, options={})  # type: ignore[attr-defined]


def test_calls_in_the_wrong_order_are_refused() -> None:
    env = KimbleVectorEnv(2)
    with pytest.raises(gym.error.ResetNeeded):
        env.step([0, 0])
    with pytest.raises(gym.error.ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(KimbleError, match="no opponents"):
        env.set_opponents("random")
    env.reset(seed=1)
    env.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.step([0, 0])


def test_opponents_that_cannot_be_leave_the_pool_as_it_was() -> None:
    env = KimbleVectorEnv(2, opponents="random")
    env.reset(seed=1)
    before, lineups = bytes_of(env), env.lineups
    for bad in ("nobody", ("random",), [["random"] * 3, "nobody"]):
        with pytest.raises(KimbleError):
            env.set_opponents(bad)
    with pytest.raises(KimbleError):
        env.set_opponents(["random", ("random",) * 3], chances=[1])
    assert bytes_of(env) == before
    assert env.lineups == lineups


def test_pools_and_chances_are_read() -> None:
    rules = find_rules("kimble")
    agent = make_agent("random")
    assert read_pool(agent, rules) == [(agent,) * 3]
    pool = read_pool(["random", ["random", agent, "random:mask"]], rules)
    assert [len(lineup) for lineup in pool] == [3, 3]
    assert pool[0][0] is pool[0][1] is pool[1][0]
    assert pool[1][1] is agent
    np.testing.assert_allclose(read_chances([1, 3, 0], 3), [0.25, 1, 1])
    np.testing.assert_allclose(read_chances(None, 2), [0.5, 1])
    assert read_shaping(None) == Shaping(0.0, 1.0)


def test_frames_of_all_games_are_drawn() -> None:
    env = KimbleVectorEnv(2, render_mode="ansi")
    env.reset(seed=1)
    frames = env.render()
    assert frames is not None
    assert len(frames) == 2
    assert "Red" in frames[0]
    env = KimbleVectorEnv(2, render_mode="rgb_array")
    env.reset(seed=1)
    frames = env.render()
    assert frames is not None
    assert frames[1].dtype == np.uint8
    env = KimbleVectorEnv(2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


# ------------------------------------------------------------------------------------------ threads


def test_slices_cover_everything_once() -> None:
    for count in (0, 1, 63, 64, 127, 128, 1000, 8192):
        for threads in (1, 2, 3, 7):
            cuts = slices(count, threads)
            assert 1 <= len(cuts) <= threads
            assert [a for a, _ in cuts] == [0, *(b for _, b in cuts[:-1])]
            assert cuts[-1][1] == count


def test_slices_run_in_several_threads_and_report_errors_after_all_have_ended() -> None:
    names, done = set(), []
    barrier = threading.Barrier(2, timeout=20)

    def meet(start: int, stop: int) -> None:
        names.add(threading.get_ident())
        barrier.wait()  # breaks unless both slices run at once

    run_slices(meet, 200, 2)
    assert len(names) == 2

    def fail(start: int, stop: int) -> None:
        if start == 0:
            raise ZeroDivisionError
        done.append(stop)

    with pytest.raises(ZeroDivisionError):
        run_slices(fail, 300, 3)
    assert sorted(done) == [200, 300]


def test_an_interrupt_waits_until_every_slice_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    go, ended = threading.Event(), []

    def run(start: int, stop: int) -> None:
        if stop == 300:  # the caller's own slice
            raise KeyboardInterrupt("first")
        assert go.wait(20)
        ended.append(start)

    waits = iter([KeyboardInterrupt("second"), KeyboardInterrupt("third")])

    def interrupted(futures: Any) -> Any:
        for interrupt in waits:
            raise interrupt
        go.set()
        return wait(futures)

    monkeypatch.setattr(kimble_threads, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt, match="first"):
        run_slices(run, 300, 3)
    assert sorted(ended) == [0, 100]


def test_threads_are_a_whole_number_of_any_kind() -> None:
    assert type(check_threads(np.int64(2))) is int
    KimbleVectorEnv(2, threads=np.int64(2)).reset(seed=1)
    for threads in (True, 0, 2.0, "2"):
        with pytest.raises(KimbleError, match="threads must be"):
            check_threads(threads)  # type: ignore[arg-type]


def test_an_interrupted_step_or_reset_goes_on_only_if_nothing_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = KimbleVectorEnv(3)
    _, info = env.reset(seed=1)
    actions = sample_actions(info["action_mask"], 1)
    call = env._call_kernel

    def interrupted(*arguments: Any) -> None:
        call(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(env, "_call_kernel", interrupted)
    before = bytes_of(env)
    with pytest.raises(KeyboardInterrupt):
        env.reset(seed=2)
    assert bytes_of(env) == before
    monkeypatch.setattr(env, "_call_kernel", call)
    env.step(actions)
    actions = sample_actions(env.action_masks(), 2)
    monkeypatch.setattr(env, "_call_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step(actions)
    monkeypatch.setattr(env, "_call_kernel", call)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(actions)
    with pytest.raises(gym.error.ResetNeeded, match="of all games"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    env.reset()
    env.step(sample_actions(env.action_masks(), 3))


def test_slices_inside_slices_do_not_wait_for_each_other() -> None:
    inner: list[tuple[int, int]] = []

    def outer(start: int, stop: int) -> None:
        run_slices(lambda a, b: inner.append((a, b)), 256, 2)

    run_slices(outer, 512, 2)
    assert len(inner) >= 3
    assert sum(b - a for a, b in inner) == 512


def test_records_of_states_are_of_the_kernel() -> None:
    env = KimbleVectorEnv(2)
    env.reset(seed=1)
    assert env.states().dtype == STATE


def test_the_example_of_the_page_of_the_module_runs() -> None:
    from kimble_env import vector

    results = doctest.testmod(vector)
    assert results.attempted > 4
    assert results.failed == 0


# ------------------------------------------------------------------------------- rewards of the end


@pytest.mark.parametrize(
    ("rules", "fields", "expected"),
    [
        ("kimble", {"winner": 2}, [-1 / 3, -1 / 3, 1, -1 / 3]),
        ("kimble[two_colours=yes]", {"winner": 3}, [-1, 1, -1, 1]),
        ("norske", {"winner": 1, "out": [1, 0, 3, 2]}, [-1 / 3, 1, -1 / 3, -1 / 3]),
        (
            "norske[play_for_places=yes]",
            {"winner": 3, "places": [3, 0, 2, 1]},
            [-1 / 3, -1, 1 / 3, 1],
        ),
        # R34: who went out comes last, and the later one before the earlier one.
        (
            "norske[play_for_places=yes]",
            {"winner": 0, "places": [1, 0, 0, 0], "out": [0, 1, 0, 2]},
            [1, -1, 1 / 3, -1 / 3],
        ),
        ("kimble", {"status": 2, "winner": -1}, [0, 0, 0, 0]),
        ("kimble", {"status": 0, "winner": -1}, [0, 0, 0, 0]),
    ],
)
def test_what_a_finished_game_pays(
    rules: str, fields: dict[str, Any], expected: list[float]
) -> None:
    states, paid = np.zeros(1, STATE), np.full((1, 4), 9, np.float32)
    states["plays"], states["status"] = 1, 1
    for name, value in fields.items():
        states[name] = value
    final_rewards_batch(states, find_rules(rules).array, paid)
    np.testing.assert_allclose(paid[0], expected, atol=1e-6)


def test_absent_seats_are_paid_nothing_and_places_spread_over_the_players() -> None:
    states, paid = np.zeros(1, STATE), np.full((1, 4), 9, np.float32)
    states["plays"], states["status"], states["winner"] = [1, 0, 1, 1], 1, 2
    final_rewards_batch(states, find_rules("kimble", seats="RYG").array, paid)
    np.testing.assert_allclose(paid[0], [-0.5, 0, 1, -0.5])
    states["places"] = [2, 0, 1, 0]
    rules = find_rules("kimble[play_for_places=yes]", seats="RYG")
    final_rewards_batch(states, rules.array, paid)
    np.testing.assert_allclose(paid[0], [0, 0, 1, -1])
    assert loss_reward(rules) == -1.0
    assert loss_reward(find_rules("kimble", players=3)) == -0.5
