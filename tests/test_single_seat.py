"""The single-seat environment: the checkers of Gymnasium and SB3, and what it tells its learner."""

from __future__ import annotations

import copy
import doctest
import os
import pickle
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kimble_env import Game
from kimble_env.errors import (
    AgentError,
    GameOverError,
    IllegalMoveError,
    KimbleError,
    NotationError,
    PositionError,
    RulesError,
)
from kimble_env.opponents import make_agent
from kimble_env.rewards import Shaping
from kimble_env.rules import find_rules
from kimble_env.single_seat import FIRST_LOG_ROWS, KimbleSingleSeat
from kimble_env.vector import KimbleVectorEnv

RULES = ("kimble", "kombat", "norske", "kimble[two_colours=yes]", "norske[play_for_places=yes]")


def pick(info: dict[str, Any], step: int) -> int:
    """A legal action that depends on the mask and the step alone; passes only if it must."""
    legal = np.flatnonzero(info["action_mask"][:-1])
    return int(legal[step * 7919 % len(legal)]) if len(legal) else len(info["action_mask"]) - 1


def steps(env: Any, info: dict[str, Any], most: int = 10_000) -> Iterator[tuple[Any, ...]]:
    """Play to the end, or for some steps; yield what every step returned."""
    for step in range(most):
        returned = env.step(pick(info, step))
        yield returned
        info = returned[-1]
        if returned[2] or returned[3]:
            return


def play(env: Any, info: dict[str, Any], most: int = 10_000) -> list[tuple[Any, ...]]:
    """As ``steps``, but all at once."""
    return list(steps(env, info, most))


def needs_pygame() -> None:
    try:
        import pygame  # noqa: F401
    except ImportError:
        if os.environ.get("KIMBLE_REQUIRE_ALL"):
            raise
        pytest.skip("needs pygame-ce (the extra `render`)")


# ----------------------------------------------------------------------------------------- checkers


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("as_dict", [False, True])
def test_the_checker_of_gymnasium_passes(rules: str, as_dict: bool) -> None:
    env = KimbleSingleSeat(rules, illegal="noop", mask_in_observation=as_dict)
    check_env(env, skip_render_check=True)


def test_the_checker_of_gymnasium_passes_the_registered_env_in_every_render_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs_pygame()
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make("kimble_env:Kimble-v0", illegal="noop", render_mode="rgb_array")
    assert isinstance(env.unwrapped, KimbleSingleSeat)
    monkeypatch.setitem(KimbleSingleSeat.metadata, "render_fps", 1000)
    check_env(env.unwrapped)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("as_dict", [False, True])
def test_the_checker_of_sb3_passes(rules: str, as_dict: bool) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(KimbleSingleSeat(rules, illegal="noop", mask_in_observation=as_dict))


def test_sb3_contrib_finds_the_masks() -> None:
    utils = pytest.importorskip("sb3_contrib.common.maskable.utils")
    env = gym.make("kimble_env:Kimble-v0")
    _, info = env.reset(seed=1)
    assert utils.is_masking_supported(env)
    np.testing.assert_array_equal(utils.get_action_masks(env), info["action_mask"].astype(bool))


# ---------------------------------------------------------------------------------- what it returns


def test_masks_are_one_object_and_spaces_hold_what_is_returned() -> None:
    env = KimbleSingleSeat("norske", mask_in_observation=True)
    observation, info = env.reset(seed=1)
    assert observation["action_mask"] is info["action_mask"]
    for returned in steps(env, info):
        observation, reward, terminated, truncated, info = returned
        assert observation in env.observation_space
        assert type(reward) is float
        assert type(terminated) is bool
        assert type(truncated) is bool
        assert info["action_mask"].any()
        np.testing.assert_array_equal(env.action_masks(), info["action_mask"].astype(bool))
    assert terminated
    assert np.flatnonzero(info["action_mask"]).tolist() == [33]


def test_it_plays_as_slot_0_of_the_vector_env() -> None:
    options: dict[str, Any] = {
        "rules": "kombat",
        "opponents": [["random", "random:mask", "random"], "random"],
        "seat": "rotate",
        "shaping": Shaping(0.5, 0.9),
        "max_turns": 120,
    }
    env, batch = KimbleSingleSeat(**options), KimbleVectorEnv(2, **options)
    observation, info = env.reset(seed=8)
    observations, infos = batch.reset(seed=8)
    rewards = []
    for game in range(3):
        assert info["seat"] == game  # rotating
        done, step = False, 0
        while not done:
            np.testing.assert_array_equal(observation, observations[0])
            actions = np.array(
                [pick(info, step), pick({"action_mask": infos["action_mask"][1]}, 0)]
            )
            observation, reward, terminated, truncated, info = env.step(actions[0])
            observations, paid, over, cut, infos = batch.step(actions)
            assert (reward, terminated, truncated) == (paid[0], over[0], cut[0])
            np.testing.assert_array_equal(info["rewards"], infos["rewards"][0])
            rewards.append(reward)
            done, step = terminated or truncated, step + 1
        observation, info = env.reset()
        observations, *_, infos = batch.step(np.array([0, 33]))
    assert len({round(r, 6) for r in rewards}) > 10


def test_wins_and_losses_are_rewarded() -> None:
    env = KimbleSingleSeat("kimble[pieces=1]", players=3)
    ends = []
    for seed in range(40):
        _, info = env.reset(seed=seed)
        seen = play(env, info)
        assert all(step[1] == 0 for step in seen[:-1])
        ends.append(seen[-1][1])
    assert set(ends) == {1.0, -0.5}


def test_a_game_cut_off_truncates_and_pays_nothing() -> None:
    env = KimbleSingleSeat("norske", max_turns=30)
    _, info = env.reset(seed=1)
    *_, (_, reward, terminated, truncated, _) = play(env, info)
    assert (reward, terminated, truncated) == (0.0, False, True)


def test_shaping_is_paid_between_the_learners_choices() -> None:
    plain, shaped = KimbleSingleSeat("kimble"), KimbleSingleSeat("kimble", shaping=2.0)
    results = []
    for env in (plain, shaped):
        _, info = env.reset(seed=3)
        results.append([step[1] for step in play(env, info)])
    assert len(results[0]) == len(results[1])
    assert sum(r != 0 for r in results[1]) > 10
    # Undiscounted shaping moves rewards about; what it adds is minus the first potential.
    assert sum(results[1]) - sum(results[0]) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("rules", ["kombat", "norske", "kimble[two_colours=yes]"])
@pytest.mark.parametrize("seat", [0, 3])
def test_the_events_replay_the_game(rules: str, seat: int) -> None:
    env = KimbleSingleSeat(rules, seat=seat)
    _, info = env.reset(seed=6)
    game = Game(rules, seed=6)
    drinks = 0
    for step in chain([(None, None, None, None, info)], steps(env, info)):
        drunk = 0
        for throw in step[-1]["events"]:
            assert game.seat == throw["seat"]
            assert game.throw(throw["die"]) == throw["die"]
            if throw["move"] is not None:
                game.play(throw["move"], battle=throw["battle"])
            else:
                assert throw["events"] == ()
            events = tuple(event.as_tuple() for event in game.events)
            assert throw["events"] == events
            own = (seat, (seat + 2) % 4) if env.rules.two_colours else (seat,)
            drunk += sum(event[2] for event in events if event[1] in own)
        if step[1] is not None:
            assert step[-1]["drinks"] == drunk
            drinks += drunk
        if not game.over:
            game.throw()
            assert game.to_text() == env.position()
            game.undo()
    assert game.over
    assert drinks > 0


def test_a_log_too_short_for_the_throws_is_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = KimbleSingleSeat("norske")
    monkeypatch.setattr("kimble_env.single_seat._OneGame._log_rows", 2)
    env = KimbleSingleSeat("norske")
    assert FIRST_LOG_ROWS > 2
    (_, info), (_, long_info) = env.reset(seed=4), expected.reset(seed=4)
    assert info["events"] == long_info["events"]
    for short, long in zip(play(env, info), play(expected, long_info), strict=True):
        assert short[-1]["events"] == long[-1]["events"]
        np.testing.assert_array_equal(short[0], long[0])
        assert short[1] == long[1]


def test_opponents_are_named_and_may_be_exchanged() -> None:
    env = KimbleSingleSeat(opponents=("random", "random:mask", "random"), seat="Y")
    _, info = env.reset(seed=1)
    assert info["opponents"] == ("random", "random:mask", "random")
    assert info["seat"] == 2
    env.set_opponents("random:mask")
    *_, info = env.step(pick(info, 0))
    assert info["opponents"] == ("random", "random:mask", "random")
    _, info = env.reset()
    assert info["opponents"] == ("random:mask",) * 3


def test_the_default_line_up_of_the_page_of_the_module_works() -> None:
    env = gym.make("kimble_env:Kimble-v0", opponents=("cautious", "random", "random"))
    _, info = env.reset(seed=7)
    assert info["opponents"] == ("cautious", "random", "random")


def test_a_stronger_opponent_wins_more() -> None:
    def wins(opponents: Any) -> float:
        env = KimbleSingleSeat("kimble[pieces=2]", players=2, opponents=opponents)
        total = 0
        for seed in range(150):
            _, info = env.reset(seed=seed)
            total += play(env, info)[-1][1] > 0
        return total / 150

    good = 'weights:{"pass": -20, "capture": 10, "reach_stretch": 5, "progress": 0.1}'
    lazy = 'weights:{"pass": 20}'
    assert wins(lazy) == 1.0
    assert wins(good) < 0.8


# --------------------------------------------------------------------------------------- seeds etc.


def test_seeds_agree_differ_and_go_on() -> None:
    env = KimbleSingleSeat("kombat")
    games = []
    for seed in (5, None, 5, None, 6):
        _, info = env.reset(seed=seed)
        games.append([step[0].tobytes() for step in play(env, info)])
    assert games[0] == games[2]
    assert games[1] == games[3]
    assert games[0] != games[1]
    assert games[0] != games[4]
    firsts = {KimbleSingleSeat().reset()[0].tobytes() for _ in range(12)}
    assert len(firsts) > 1


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, copy.copy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_play_on_with_equal_dice_and_leave_the_original_alone(
    copier: Callable[[Any], Any],
) -> None:
    env = KimbleSingleSeat("norske", opponents=lambda game: game.legal_moves[-1])
    if copier.__name__ == "<lambda>":
        env = KimbleSingleSeat("norske")
    _, info = env.reset(seed=2)
    seen = play(env, info, 10)
    before = env.position()
    twin = copier(env)
    theirs = play(twin, seen[-1][-1])
    assert env.position() == before
    mine = play(env, seen[-1][-1])
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:4] == b[1:4]
        assert a[4]["events"] == b[4]["events"]


def test_it_starts_from_a_position_this_time() -> None:
    text = "kimble R10/B-/Y3/G- R 6 1"
    env = KimbleSingleSeat()
    _, info = env.reset(seed=1, options={"position": text, "other": 1})
    assert env.position() == text
    assert np.flatnonzero(info["action_mask"]).tolist() == [0, 11, 33]
    assert env.state()["pieces"][0, 0, 0] == 10
    assert not env.state()["seed"].any()
    env.reset()
    assert env.position() != text


# ------------------------------------------------------------------------------- illegal and misuse


def test_an_illegal_action_raises_loses_or_is_ignored() -> None:
    env = KimbleSingleSeat()
    _, info = env.reset(seed=1)
    wrong = int(np.flatnonzero(info["action_mask"] == 0)[0])
    before = env.position()
    for action in (wrong, -1, 34, 10**30, "enter", 0.0, None, np.zeros(2, int)):
        with pytest.raises(IllegalMoveError):
            env.step(action)
    assert env.position() == before
    env.step(np.int8(pick(info, 0)))

    env = KimbleSingleSeat(illegal="noop")
    observation, info = env.reset(seed=1)
    again, reward, terminated, truncated, new = env.step(10**30)
    np.testing.assert_array_equal(again, observation)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert new["illegal"] is True
    assert new["events"] == []
    assert "illegal" not in env.step(pick(info, 0))[-1]

    env = KimbleSingleSeat(illegal="lose", players=3)
    env.reset(seed=1)
    _, reward, terminated, truncated, new = env.step(wrong)
    assert (reward, terminated, truncated) == (-0.5, True, False)
    assert new["illegal"] is True
    with pytest.raises(GameOverError):
        env.step(0)
    env.reset()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"opponents": None}, KimbleError, "opponents"),
        ({"opponents": "nobody"}, AgentError, "nobody"),
        ({"opponents": ("random",)}, KimbleError, "expected 3"),
        ({"rules": "ludo"}, RulesError, "ludo"),
        ({"pieces": 0}, RulesError, "pieces"),
        ({"seat": "purple"}, KimbleError, "colour"),
        ({"illegal": 1}, KimbleError, "illegal"),
        ({"shaping": Shaping}, KimbleError, "shaping"),
        ({"render_mode": "svg"}, KimbleError, "render_mode"),
    ],
)
def test_arguments_that_cannot_be_are_named(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        KimbleSingleSeat(**options)


@pytest.mark.parametrize(("scale", "gamma"), [(float("inf"), 1), (1, 1.5), (1, -0.1), ("1", 1)])
def test_shaping_that_cannot_be_is_named(scale: Any, gamma: Any) -> None:
    with pytest.raises(KimbleError, match="shaping"):
        Shaping(scale, gamma)


def test_a_bool_is_no_action() -> None:
    env = KimbleSingleSeat(illegal="noop")
    env.reset(seed=1)
    for action in (True, False, np.True_):
        with pytest.raises(IllegalMoveError, match="must be a whole number"):
            env.step(action)


def test_resets_that_cannot_be_change_nothing() -> None:
    env = KimbleSingleSeat()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    before = env.position()
    for seed in (-1, 2**64, "1", 1.5):
        with pytest.raises(KimbleError, match="seed"):
            env.reset(seed=seed)
    for position, error in (
        ("nonsense", NotationError),
        ("norske R10/B-/Y3/G- R 6 1", PositionError),
        (["kimble R10/B-/Y3/G- R 6 1"], PositionError),
    ):
        with pytest.raises(error):
            env.reset(options={"position": position})
    assert env.position() == before
    with pytest.raises(KimbleError, match="ask_forced"):
        KimbleSingleSeat("kimble[pieces=1,pass_allowed=no]").reset(seed=1)


def test_agents_of_other_rules_are_refused() -> None:
    with pytest.raises(AgentError, match="norske"):
        KimbleSingleSeat("kimble", opponents=make_agent("random", find_rules("norske")))


# ---------------------------------------------------------------------------------------- rendering


def test_frames_are_drawn_as_the_mode_says(monkeypatch: pytest.MonkeyPatch) -> None:
    env = KimbleSingleSeat(render_mode="ansi")
    _, info = env.reset(seed=1)
    assert "Red" in env.render()
    *_, info = env.step(pick(info, 0))
    env = KimbleSingleSeat(render_mode="rgb_array")
    env.reset(seed=1)
    frame = env.render()
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    with pytest.warns(UserWarning, match="render_mode"):
        assert KimbleSingleSeat().render() is None


def test_a_window_opens_shows_steps_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_pygame()
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(KimbleSingleSeat.metadata, "render_fps", 1000)
    env = KimbleSingleSeat(render_mode="human")
    _, info = env.reset(seed=1)
    play(env, info, 3)
    assert env._window.is_open
    assert copy.deepcopy(env)._window is None
    env.close()
    assert env._window is None
    env.close()


def test_the_example_of_the_page_of_the_module_runs() -> None:
    from kimble_env import single_seat

    results = doctest.testmod(single_seat)
    assert results.attempted > 4
    assert results.failed == 0
