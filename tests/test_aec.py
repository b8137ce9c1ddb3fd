"""The PettingZoo environment: the contract, what it reports, what it pays, and its page."""

from __future__ import annotations

import copy
import doctest
import itertools
import os
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import kimble_env
from kimble_env import Game, aec, kimble_v0
from kimble_env.errors import (
    GameOverError,
    IllegalMoveError,
    KimbleError,
    NotationError,
    PositionError,
    RulesError,
)
from kimble_env.observation import (
    ACTION_VERSION,
    OBSERVATION_VERSION,
    named_views,
    observation_layout,
)
from kimble_env.rewards import Shaping
from kimble_env.rules import PRESETS, find_rules

with warnings.catch_warnings():  # PettingZoo's own tests import its own old modules
    warnings.simplefilter("ignore")
    import pettingzoo
    from pettingzoo.test import api_test, render_test, seed_test
    from pettingzoo.utils import wrappers

VARIANTS: dict[str, dict[str, Any]] = {
    "kimble": {},
    "kombat": {"rules": "kombat"},
    "norske": {"rules": "norske"},
    "two players": {"rules": "kimble[pass_allowed=no]", "players": 2},
    "two colours": {"rules": "kombat", "two_colours": True},
    "for places": {"rules": "norske", "play_for_places": True, "players": 3},
    "ask forced": {"rules": "norske", "ask_forced": True},
    "cut off": {"max_turns": 60},
    "shaped": {"rules": "norske", "shaping": Shaping(0.5, 0.99)},
}
each_variant = pytest.mark.parametrize("arguments", VARIANTS.values(), ids=VARIANTS)
both = pytest.mark.parametrize("make", [kimble_v0.env, kimble_v0.raw_env], ids=["env", "raw_env"])


class Player:
    """Draws legal actions, each time from the mask that it is given."""

    def __init__(self, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)

    def __call__(self, mask: Any) -> int:
        return int(self.random.choice(np.flatnonzero(mask)))


def play(env: Any, player: Any = None, watch: Callable[..., Any] | None = None) -> dict[str, float]:
    """Play a game that has been reset to its end; return what every agent got in all."""
    player = player or Player()
    total = dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, termination, truncation, info = env.last()
        total[agent] += reward
        if watch is not None:
            watch(agent, observation, reward, termination, truncation, info)
        env.step(None if termination or truncation else player(observation["action_mask"]))
    return total


def started(make: Any = kimble_v0.env, seed: int = 5, **arguments: Any) -> Any:
    env = make(**arguments)
    env.reset(seed=seed)
    return env


def transcript(env: Any, seed: int | None, steps: int = 60, player_seed: int = 1) -> list[Any]:
    """What an agent meets in the first steps of a game."""
    env.reset(seed=seed)
    return tale(env, Player(player_seed), steps)


def tale(env: Any, player: Any, steps: int) -> list[Any]:
    """What follows from here on."""
    told = []
    for agent in env.agent_iter(steps):
        observation, *rest = env.last()
        told.append((agent, observation["observation"].tolist(), rest[:-1], rest[-1]["events"]))
        over = rest[1] or rest[2]
        env.step(None if over else player(observation["action_mask"]))
    return told


# ------------------------------------------------------------------------------- PettingZoo's tests


@both
@each_variant
def test_pettingzoo_api(make: Any, arguments: dict[str, Any]) -> None:
    api_test(make(**arguments), num_cycles=400)


@each_variant
def test_pettingzoo_seeds(arguments: dict[str, Any]) -> None:
    seed_test(lambda: kimble_v0.env(**arguments), num_cycles=50)


def test_api_within_pettingzoos_own_wrappers() -> None:
    env = wrappers.AssertOutOfBoundsWrapper(kimble_v0.raw_env("norske"))
    api_test(wrappers.OrderEnforcingWrapper(env), num_cycles=400)
    env = wrappers.BaseWrapper(kimble_v0.env("kombat"))
    api_test(env, num_cycles=400)


@pytest.mark.parametrize("name", PRESETS)
def test_pettingzoo_rendering(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.environ.get("KIMBLE_REQUIRE_ALL"):
        pytest.importorskip("pygame", reason="pygame-ce (the extra render) is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(kimble_v0.raw_env.metadata, "render_fps", 1000)
    render_test(lambda **mode: kimble_v0.env(name, **mode))


def test_pettingzoo_makes_it_by_its_id() -> None:
    if not hasattr(pettingzoo, "make"):
        pytest.skip("this PettingZoo has no registry")
    env = pettingzoo.make("aec", "kimble/kimble-v0", rules="norske", players=2)
    assert str(env.unwrapped) == "kimble_v0"
    assert env.unwrapped.rules == find_rules("norske", players=2)
    assert len(play_through(env)) == 2


def play_through(env: Any) -> dict[str, float]:
    env.reset(seed=1)
    return play(env)


# ---------------------------------------------------------------------- spaces, arrays, who is who


def test_metadata() -> None:
    env = kimble_v0.env()
    assert env.metadata["name"] == str(env) == "kimble_v0"
    assert env.metadata["is_parallelizable"] is False
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"}
    assert not hasattr(kimble_v0, "parallel_env")
    assert kimble_env.kimble_v0 is kimble_v0
    assert env.unwrapped is env, "a wrapper that the kernel makes needless"


@pytest.mark.parametrize(
    ("arguments", "count"),
    [({}, 4), ({"players": 3}, 3), ({"seats": "BG"}, 2), ({"two_colours": True}, 2)],
)
def test_agents_are_the_players(arguments: dict[str, Any], count: int) -> None:
    env = started(**arguments)
    assert env.possible_agents == [f"player_{i}" for i in range(count)]
    assert env.agents == env.possible_agents
    assert env.num_agents == env.max_num_agents == count


def test_player_i_is_the_ith_playing_seat() -> None:
    env = kimble_v0.env(seats="BG", starter="G")
    env.reset(seed=1)
    assert env.agent_selection == "player_1"
    assert env.last()[4]["seat"] == 3


@pytest.mark.parametrize("board", ["kimble28", "cross40", "ludo52"])
def test_spaces_hold_what_is_seen(board: str) -> None:
    env = started(rules="norske", board=board, pieces=2)
    layout = observation_layout(env.rules)
    for agent in env.possible_agents:
        space = env.observation_space(agent)
        assert space is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert space["observation"].shape == (layout.size,)
        assert space["observation"].high.max() == 3  # throws left; pieces go to 2
        assert space["action_mask"].shape == (env.rules.board.actions,)
        assert env.action_space(agent).n == env.rules.board.actions
        assert env.action_space(agent) is not env.action_space(other_than(env, agent))

    def watch(_: str, observation: Any, *rest: Any) -> None:
        for agent in env.possible_agents:
            assert env.observation_space(agent).contains(env.observe(agent))
        assert env.state_space.contains(env.state())

    play(env, watch=watch)


def other_than(env: Any, agent: str) -> str:
    return next(other for other in env.possible_agents if other != agent)


@both
@each_variant
def test_masks_and_infos(make: Any, arguments: dict[str, Any]) -> None:
    env = started(make, **arguments)
    forced = 0

    def watch(agent: str, observation: Any, _: float, end: bool, cut: bool, info: Any) -> None:
        nonlocal forced
        mask = observation["action_mask"]
        assert mask is info["action_mask"]
        assert mask is env.infos[agent]["action_mask"]
        assert mask.dtype == np.int8
        assert info is env.infos[agent]
        assert type(end) is type(cut) is bool
        assert not (end and cut)
        if end or cut:
            assert np.flatnonzero(mask).tolist() == [env.rules.board.pass_action]
            return
        assert mask.sum() >= (1 if env.ask_forced else 2)
        forced += mask.sum() == 1
        for other in env.agents:
            seen = env.observe(other)
            assert seen["action_mask"] is env.infos[other]["action_mask"]
            if other != agent:
                assert not seen["action_mask"].any()
        assert named_views(observation["observation"], env.rules)["seat_to_act"][0] == 1

    play(env, watch=watch)
    assert (forced > 0) == env.ask_forced


@both
def test_arrays_are_fresh(make: Any) -> None:
    env = started(make)
    player = Player()
    kept = []
    for _ in env.agent_iter(80):
        observation = env.last()[0]
        again = env.observe(env.agent_selection)
        assert again["observation"] is not observation["observation"]
        assert (again["observation"] == observation["observation"]).all()
        kept.append((observation, copy.deepcopy(observation)))
        action = player(observation["action_mask"])
        again["observation"][:] = 77
        env.step(action)
    arrays = [id(observation["observation"]) for observation, _ in kept]
    assert len(set(arrays)) == len(kept)
    for now, then in kept:
        assert data_equivalence(now, then), "a later step wrote into an older observation"


def test_writing_into_a_mask_makes_nothing_legal() -> None:
    env = started(rules="kimble")
    mask = env.last()[0]["action_mask"]
    action = int(np.flatnonzero(mask == 0)[0])
    mask[:] = 1
    with pytest.raises(IllegalMoveError):
        env.step(action)


def test_last_without_observation() -> None:
    env = started()
    assert env.last(observe=False)[0] is None
    assert env.last()[0] is not None


@both
def test_observe_any_agent_at_any_time(make: Any) -> None:
    env = started(make, seats="RBG")
    seats = {"player_0": 0, "player_1": 1, "player_2": 3}

    def watch(*rest: Any) -> None:
        state = named_views(env.state(), env.rules)
        for agent, seat in seats.items():
            views = named_views(env.observe(agent)["observation"], env.rules)
            for name in ("stretch", "home_base", "plays"):
                assert (np.roll(views[name], seat, axis=0) == state[name]).all()
            assert (np.roll(views["seat_to_act"], seat) == state["seat_to_act"]).all()

    play(env, watch=watch)
    assert env.agents == []
    watch()
    with pytest.raises(KeyError, match="player_3"):
        env.observe("player_3")


def test_state_is_absolute() -> None:
    env = kimble_v0.env("norske")
    env.reset(options={"position": "norske R3,20/B0x2/YH/G- B - 1"})
    views = named_views(env.state(), env.rules)
    assert np.flatnonzero(views["track"][0]).tolist() == [3, 20]
    assert views["home"].tolist() == [0, 0, 1, 0]
    assert env.state() is not env.state()


def test_the_observation_is_of_the_position() -> None:
    env = kimble_v0.env("kimble")
    env.reset(options={"position": "kimble R10/B-/Y3/G- R 6 1"})
    assert env.agent_selection == "player_0"
    observation = env.last()[0]
    views = named_views(observation["observation"], env.rules)
    assert np.flatnonzero(views["track"][0]).tolist() == [10]
    assert np.flatnonzero(views["track"][2]).tolist() == [17]  # yellow's 3 from red's start
    assert views["home_base"].tolist() == [3, 4, 3, 4]
    assert views["die"].tolist() == [0, 0, 0, 0, 0, 1]
    assert np.flatnonzero(observation["action_mask"]).tolist() == [0, 11, 33]


# ------------------------------------------------------------------------------------- two colours


def test_two_colours_see_the_board_from_the_colour_that_acts() -> None:
    env = started(rules="kombat", two_colours=True)
    seats_seen: set[int] = set()

    def watch(agent: str, observation: Any, _: float, end: bool, cut: bool, info: Any) -> None:
        views = named_views(observation["observation"], env.rules)
        assert views["partner"].tolist() == [0, 0, 1, 0]
        if not end:
            seats_seen.add(info["seat"])
            assert info["seat"] % 2 == int(agent[-1])
            assert views["seat_to_act"].tolist() == [1, 0, 0, 0]
            other = named_views(env.observe(other_than(env, agent))["observation"], env.rules)
            assert int(other["seat_to_act"].argmax()) in (1, 3)

    total = play(env, watch=watch)
    assert seats_seen == {0, 1, 2, 3}
    assert sorted(total.values()) == [-1.0, 1.0]


def test_two_colours_the_waiting_agent_sees_from_the_colour_that_is_next() -> None:
    text = "kimble[two_colours=yes] R5/B5/Y28,29,30,31/G5 B 3 1"
    env = kimble_v0.env("kimble", two_colours=True)
    env.reset(options={"position": text})
    assert env.agent_selection == "player_1"
    views = named_views(env.observe("player_0")["observation"], env.rules)
    assert views["stretch"][2].tolist() == [1, 1, 1, 1], "yellow has finished, so red is next"
    env.reset(options={"position": text.replace("B 3 1", "G 3 1")})
    views = named_views(env.observe("player_0")["observation"], env.rules)
    assert views["stretch"][2].tolist() == [1, 1, 1, 1]


# ----------------------------------------------------------------------------------- starting games


def test_unknown_options_are_ignored_and_position_is_used_once() -> None:
    env = kimble_v0.env()
    env.reset(seed=3, options={"nobody": "knows", "position": None})
    first = env.state()
    env.reset(seed=3, options={"position": "kimble R10/B-/Y-/G- R 6 1"})
    assert env.state()[10] == 1
    env.reset(seed=3)
    assert (env.state() == first).all()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("norske R3/B-/Y-/G- R 4 1", PositionError, "the position is of norske, this .* kimble"),
        ("kimble R3/B- R 4 1", PositionError, r"seats \(0, 1\), here play seats \(0, 1, 2, 3\)"),
        ("kimble R28,29,30,31/B-/Y-/G- R * 0", PositionError, "is over"),
        ("kimble R3x2/B-/Y-/G- R 4 1", PositionError, "2 pieces on progress 3"),
        ("kimble R3", NotationError, "kimble R3"),
        (17, KimbleError, "position"),
    ],
)
def test_a_position_that_cannot_be_changes_nothing(
    text: Any, error: type[Exception], words: str
) -> None:
    env, other = started(), started()
    with pytest.raises(error, match=words):
        env.reset(seed=99, options={"position": text})
    assert tale(env, Player(), 30) == tale(other, Player(), 30)
    env.reset()
    other.reset()
    assert tale(env, Player(), 30) == tale(other, Player(), 30)


def test_the_limit_of_the_env_judges_a_position() -> None:
    board = "R10/B-/Y3/G- R 6 1"
    env = started(max_turns=10)
    with pytest.raises(PositionError, match="is over"):
        env.reset(options={"position": f"kimble {board} turn=10"})
    env.reset(options={"position": f"kimble[max_turns=5] {board} turn=9"})
    assert env.agent_selection == "player_0"
    assert not any(env.truncations.values())


def test_a_bool_is_no_action() -> None:
    env = started(illegal="noop")
    for action in (True, False, np.True_):
        with pytest.raises(IllegalMoveError, match="must be a whole number"):
            env.step(action)


def test_a_position_before_the_throw_and_one_that_ends_by_force() -> None:
    env = kimble_v0.env("norske", players=2)
    env.reset(seed=1, options={"position": "norske R29x2,Hx2/Y- R 3 1"})
    assert env.terminations == {"player_0": True, "player_1": True}
    assert play(env) == {"player_0": 1.0, "player_1": -1.0}
    env.reset(seed=1, options={"position": "norske R3,20/Y4 R - 1"})
    events = env.last()[4]["events"]
    assert not env.terminations["player_0"]
    assert all(event["die"] for event in events)


def test_positions_play_on_with_the_seed() -> None:
    env = kimble_v0.env()
    options = {"position": "kimble R10/B-/Y3/G- R 6 1"}
    tales = []
    for seed in (1, 1, 2):
        env.reset(seed=seed, options=options)
        tales.append(tale(env, Player(), 50))
    assert tales[0] == tales[1]
    assert tales[0] != tales[2]


@both
def test_seeds(make: Any) -> None:
    env, other = make("norske"), make("norske")
    assert transcript(env, 7) == transcript(other, 7)
    assert transcript(env, 7) != transcript(env, 8)
    first, second = transcript(env, 7), transcript(env, None)
    assert first != second, "the unseeded second game is a copy of the first"
    assert transcript(other, np.int64(7)) == first
    assert transcript(other, None) == second
    assert transcript(make("norske"), None) != transcript(make("norske"), None)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", 2**64])
def test_bad_seeds_change_nothing(seed: Any) -> None:
    env, other = started(), started()
    with pytest.raises(KimbleError, match="seed must be"):
        env.reset(seed=seed)
    assert tale(env, Player(), 30) == tale(other, Player(), 30)


def test_the_largest_seed_is_good() -> None:
    assert transcript(kimble_v0.env(), 2**64 - 1) != transcript(kimble_v0.env(), 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rules": "ludo"}, "unknown rule set"),
        ({"pieces": 9}, "pieces"),
        ({"nonsense": 1}, "unknown option 'nonsense'"),
        ({"render_mode": "svg"}, "render_mode must be None or one of human"),
        ({"illegal": "ignore"}, "illegal must be one of raise, lose, noop"),
        ({"shaping": "much"}, "shaping"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    for make in (kimble_v0.env, kimble_v0.raw_env):
        with pytest.raises(KimbleError, match=words):
            make(**arguments)
    assert issubclass(RulesError, KimbleError)


# ---------------------------------------------------------------------- events: all that was thrown


def replayed(rules: Any, seed: int, events: list[dict[str, Any]]) -> Game:
    """Play the events again in a game with the same seed, which draws the same dice."""
    game = Game(rules, seed=seed)
    for event in events:
        assert game.seat == event["seat"]
        assert game.throw() == event["die"]
        if event["move"] is not None:
            game.play(event["move"])
        assert tuple(found.as_tuple() for found in game.events) == event["events"]
    return game


@pytest.mark.parametrize(
    "name", ["norske", "kombat", "kimble[pass_allowed=no]", "norske[pieces=2]"]
)
def test_events_tell_the_whole_game(name: str) -> None:
    """Every agent's lists, one after the other, are all throws of the game, its forced ones too."""
    env = started(rules=name, seed=11)
    told: dict[str, list[Any]] = {agent: [] for agent in env.agents}
    asked = 0

    def watch(agent: str, *rest: Any) -> None:
        nonlocal asked
        asked += not rest[2]
        told[agent] += rest[-1]["events"]

    total = play(env, watch=watch)
    whole = told["player_0"]
    assert all(events == whole for events in told.values())
    assert len(whole) > asked + 10, "no forced throws: the test proves nothing"
    game = replayed(name, 11, whole)
    assert game.over
    assert total[f"player_{game.winner}"] == 1.0
    if name == "kombat":
        assert any(event["battle"] for event in whole)
        causes = {found[-1] for event in whole for found in event["events"]}
        assert causes == {"battle"}
    if name == "norske":
        kinds = {found[0] for event in whole for found in event["events"]}
        assert kinds == {"loss", "arrival"}


def test_battle_dice_are_told() -> None:
    env = kimble_v0.env("kombat", starter="R")
    env.reset(seed=4, options={"position": "kombat R3/B1/Y-/G- R 5 1"})
    env.step(4)
    event = next(e for e in env.unwrapped.infos[env.agent_selection]["events"] if e["battle"])
    attack, defence = event["battle"]
    assert event["move"] == "3-8"
    edge = attack + 2 - defence - 1  # on blue's sector
    losers = {seat for _, seat, count, cause in event["events"]}
    assert losers == ({0, 1} if edge == 0 else {1} if edge > 0 else {0})


def test_the_own_throw_is_the_first_event() -> None:
    env = kimble_v0.env("kimble", players=2)
    env.reset(seed=2, options={"position": "kimble R10,20/Y5,15 R 4 1"})
    env.step(11)
    told = env.last()[4]["events"]
    assert env.agent_selection == "player_1"
    assert told[0] == {"seat": 0, "die": 4, "move": "10-14", "battle": None, "events": ()}
    env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    while env.agent_selection != "player_0":
        env.step(33)
    again = env.last()[4]["events"]
    assert again[0] == told[0]
    assert again[1]["seat"] == 2


def test_a_log_too_short_is_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = transcript(kimble_v0.env("norske"), 3, steps=300)
    assert max(len(events) for *_, events in expected) > 4
    monkeypatch.setattr(aec, "FIRST_LOG_ROWS", 1)
    assert transcript(kimble_v0.env("norske"), 3, steps=300) == expected


def test_events_that_all_have_been_told_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = transcript(kimble_v0.env(), 3, steps=300)
    monkeypatch.setattr(aec, "KEPT_EVENTS", 5)
    env = kimble_v0.env()
    assert transcript(env, 3, steps=300) == expected
    assert len(env._events) < 100


def test_changing_an_event_changes_no_other() -> None:
    expected = transcript(kimble_v0.env(), 3, steps=40)
    env = started(seed=3)
    player = Player()
    for _ in env.agent_iter(40):
        observation, *_, info = env.last()
        for event in info["events"]:
            event["move"] = "spoilt"
        info["events"].clear()
        env.step(player(observation["action_mask"]))
    assert transcript(env, 3, steps=40) == expected


@each_variant
def test_drinks_are_the_pieces_lost_and_come_home(arguments: dict[str, Any]) -> None:
    env = started(**arguments)
    drunk = dict.fromkeys(env.agents, 0)
    events: list[Any] = []

    def watch(agent: str, *rest: Any) -> None:
        info = rest[-1]
        drunk[agent] += info["drinks"]
        if agent == "player_0":
            events.extend(info["events"])

    play(env, watch=watch)
    expected = dict.fromkeys(drunk, 0)
    agent_of = dict(zip(env.rules.seats, env.possible_agents * 2, strict=False))
    for event in events:
        for _, seat, count, *_ in event["events"]:
            expected[agent_of[seat]] += count
    assert drunk == expected
    assert sum(drunk.values()) > 0


# ------------------------------------------------------------------------------------------ rewards


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("name", PRESETS)
def test_the_winner_gets_1_and_each_loser_its_share(name: str, players: int) -> None:
    env = started(rules=f"{name}[pieces=2]", players=players)
    ends: dict[str, float] = {}

    def watch(agent: str, _: Any, reward: float, end: bool, cut: bool, info: Any) -> None:
        assert not cut
        if end:
            ends[agent] = reward
            assert isinstance(reward, float)
        else:
            assert reward == 0

    total = play(env, watch=watch)
    assert total == ends
    assert sorted(ends.values()) == [-1 / (players - 1)] * (players - 1) + [1.0]
    winner = max(ends, key=ends.__getitem__)
    seat = env.rules.seats[env.possible_agents.index(winner)]
    views = named_views(env.state(), env.rules)
    assert views["home_base"][seat] + views["track"][seat].sum() == 0


def test_places_are_paid_linearly() -> None:
    env = started(rules="norske[pieces=1]", play_for_places=True)
    total = play(env)
    assert sorted(total.values()) == pytest.approx([-1, -1 / 3, 1 / 3, 1])
    final = env.observe("player_0")["observation"]
    home = named_views(final, env.rules)["home"]
    last = min(total, key=total.__getitem__)
    assert home.tolist() == [int(agent != last) for agent in env.possible_agents]


def test_a_finished_seat_is_not_asked_again() -> None:
    env = started(rules="kimble[pieces=1]", play_for_places=True, seed=8)

    def watch(agent: str, observation: Any, _: float, end: bool, *rest: Any) -> None:
        views = named_views(observation["observation"], env.rules)
        if not end:
            assert views["stretch"][0].sum() == 0
            assert set(env.agents) == set(env.possible_agents)

    play(env, watch=watch)


@pytest.mark.parametrize("arguments", [{}, {"play_for_places": True}, {"two_colours": True}])
def test_a_time_limit_only_truncates(arguments: dict[str, Any]) -> None:
    env = started(max_turns=15, **arguments)
    flags = set()
    total = play(env, watch=lambda a, o, r, end, cut, i: flags.add((end, cut)))
    assert flags == {(False, False), (False, True)}
    assert set(total.values()) == {0.0}


def test_rewards_are_cleared_by_the_next_step() -> None:
    env = started(rules="norske[pieces=1]", players=2)
    player = Player()
    while not any(env.terminations.values()):
        env.step(player(env.last()[0]["action_mask"]))
    assert sorted(env.rewards.values()) == [-1.0, 1.0]
    assert env.agents == ["player_0", "player_1"]
    env.step(None)
    assert env.rewards == {"player_1": 0}
    assert env.last()[1] in (-1.0, 1.0)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("arguments", [{"rules": "norske"}, {"rules": "kimble", "max_turns": 50}])
def test_shaping_pays_the_change_of_potential(arguments: dict[str, Any], gamma: float) -> None:
    scale = 2.0
    env = started(shaping=Shaping(scale, gamma), **arguments)
    plain = started(**arguments)
    result = play(plain)
    potentials: dict[str, list[float]] = {agent: [] for agent in env.agents}
    rewards: dict[str, list[float]] = {agent: [] for agent in env.agents}

    def watch(agent: str, observation: Any, reward: float, end: bool, cut: bool, _: Any) -> None:
        own, *others = progress(observation["observation"], env.rules)
        potentials[agent].append(0.0 if end else own - sum(others) / 3)
        rewards[agent].append(reward)

    play(env, watch=watch)
    for agent, values in potentials.items():
        expected = [0.0] + [
            scale * (gamma * now - then) for then, now in itertools.pairwise(values)
        ]
        expected[-1] += result[agent]
        assert rewards[agent] == pytest.approx(expected)
        assert any(abs(reward) > 0.01 for reward in rewards[agent][:-1])
    if gamma == 1.0 and "max_turns" not in arguments:
        for agent, values in potentials.items():
            assert sum(rewards[agent]) == pytest.approx(result[agent] - scale * values[0])


def progress(observation: Any, rules: Any) -> list[float]:
    """Mean progress of every seat clockwise from the observer, 0 to 1, from the observation."""
    views, board = named_views(observation, rules), rules.board
    means = []
    for step in range(4):
        fields = np.roll(views["track"][step], -board.ring * step // 4)  # from its own start
        steps = sum((p + 1) * int(n) for p, n in enumerate(fields))
        first = board.stretch_first
        steps += sum((first + k + 1) * int(n) for k, n in enumerate(views["stretch"][step]))
        steps += (board.home + 1) * int(views["home"][step])
        means.append(steps / (rules.pieces * (rules.last_progress + 1)))
    return means


# ---------------------------------------------------------------------------------- illegal actions

MALFORMED: list[Any] = [None, 1.0, float("nan"), "3", [3], np.array([1, 2]), {}]
ILLEGAL: list[Any] = [-1, 34, 10**30, -(10**30), np.int16(32)]


def everything(env: Any) -> bytes:
    return pickle.dumps(env.__dict__ | {"_window": None})


@both
@pytest.mark.parametrize("action", ILLEGAL + MALFORMED, ids=repr)
def test_illegal_actions_raise_and_change_nothing(make: Any, action: Any) -> None:
    env = started(make)
    env.step(33)
    before = everything(env)
    with pytest.raises(IllegalMoveError, match=r"player_\d"):
        env.step(action)
    assert everything(env) == before


def test_the_message_lists_what_is_legal() -> None:
    env = kimble_v0.env("norske")
    env.reset(options={"position": "norske R3,20/B-/Y-/G- R 4 1"})
    with pytest.raises(IllegalMoveError) as error:
        env.step(5)
    assert str(error.value) == (
        "action 5 (4-8) of player_0 is not legal after a 4; legal: 4 (3-7), 21 (20-24)"
    )


@pytest.mark.parametrize("action", [-1, 34, 32, 10**30])
@pytest.mark.parametrize(
    ("arguments", "loss"), [({}, -1 / 3), ({"players": 2}, -1), ({"play_for_places": True}, -1)]
)
def test_an_illegal_action_can_lose(action: int, arguments: dict[str, Any], loss: float) -> None:
    env = started(illegal="lose", **arguments)
    env.step(33)
    loser = env.agent_selection
    env.step(action)
    assert all(env.terminations.values())
    assert not any(env.truncations.values())
    assert env.infos[loser]["illegal"] is True
    others = [agent for agent in env.agents if agent != loser]
    assert not any("illegal" in env.infos[agent] for agent in others)
    total = play(env)
    assert total == {**dict.fromkeys(others, 0.0), loser: loss}
    env.reset()
    assert not any(env.terminations.values())


def test_an_illegal_action_can_do_nothing() -> None:
    env, other = started(illegal="noop"), started()
    for _ in range(40):
        agent, state = env.agent_selection, env.state()
        seen = env.last()
        env.step(32 if not seen[0]["action_mask"][32] else -1)
        again = env.last()
        assert env.agent_selection == agent
        assert (env.state() == state).all()
        assert data_equivalence(again[0], seen[0])
        assert again[0]["action_mask"] is again[4]["action_mask"]
        assert again[4]["illegal"] is True
        assert again[4]["events"] == []
        assert again[1] == 0
        action = int(np.flatnonzero(seen[0]["action_mask"])[0])
        env.step(action)
        other.step(action)
        assert "illegal" not in env.last()[4]
        assert (env.state() == other.state()).all()


@pytest.mark.parametrize("illegal", ["lose", "noop"])
@pytest.mark.parametrize("action", MALFORMED, ids=repr)
def test_what_is_no_action_raises_always(illegal: str, action: Any) -> None:
    env = started(illegal=illegal)
    with pytest.raises(IllegalMoveError, match="whole number from 0 to 33, got"):
        env.step(action)
    assert not any(env.terminations.values())


@pytest.mark.parametrize("kind", [int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.array])
def test_numpy_integers_are_actions(kind: Any) -> None:
    env = started()
    env.step(kind(33))
    assert env.infos[other_than(env, env.agent_selection)].keys() >= {"action_mask"}


# -------------------------------------------------------------------------- order of calls, the end


def test_dead_agents_are_retired_one_by_one() -> None:
    env = started(rules="norske[pieces=1]")
    player = Player()
    while not any(env.terminations.values()):
        env.step(player(env.last()[0]["action_mask"]))
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(3)
    for left in (3, 2, 1, 0):
        gone = env.agent_selection
        env.step(None)
        assert len(env.agents) == left
        assert gone not in env.infos
        assert set(env.agents) == set(env.rewards) == set(env.infos) == set(env.terminations)
    assert list(env.agent_iter()) == []


def test_stepping_on_after_the_end() -> None:
    env, raw = started(max_turns=3), started(kimble_v0.raw_env, max_turns=3)
    play(env)
    play(raw)
    with pytest.raises(GameOverError, match="call reset"):
        raw.step(None)
    env.step(None)  # PettingZoo's order check only logs a warning here


def test_env_checks_the_order_of_calls() -> None:
    env = kimble_v0.env(render_mode="ansi")
    for call in (
        lambda: env.step(0),
        lambda: env.observe("player_0"),
        env.state,
        env.render,
        env.agent_iter,
    ):
        with pytest.raises(AssertionError, match=r"reset\(\) needs to be called before"):
            call()
    for name in ("rewards", "terminations", "truncations", "infos", "agent_selection", "agents"):
        with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
            getattr(env, name)
    with pytest.raises(AttributeError, match="before reset"):
        _ = env.num_agents
    with pytest.raises(AttributeError, match="before reset"):
        env.last()
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = env.nothing_like_this
    env.reset(seed=1)
    assert env.num_agents == 4
    with pytest.raises(AssertionError, match="need to call step"):
        for _ in env.agent_iter():
            pass


def test_agent_iter_stops_at_its_limit_and_can_be_iterated_twice() -> None:
    for make in (kimble_v0.env, kimble_v0.raw_env):
        env = started(make)
        player = Player()
        agents = env.agent_iter(3)
        for _ in range(2):
            steps = 0
            for agent in agents:
                assert agent == env.agent_selection
                env.step(player(env.last()[0]["action_mask"]))
                steps += 1
            assert steps == 3


# ------------------------------------------------------------------------------------------- copies

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


@both
@each_variant
@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
def test_copies_play_on_with_equal_dice(
    make: Any, arguments: dict[str, Any], way: Callable[[Any], Any]
) -> None:
    env = started(make, **arguments)
    player = Player()
    tale(env, player, 25)
    env.step(player(env.observe(env.agent_selection)["action_mask"]))
    second = way(env)
    third = way(env)
    assert data_equivalence(env.last(), second.last())
    for agent, info in second.infos.items():
        assert second.observe(agent)["action_mask"] is info["action_mask"]
    ahead = tale(second, Player(2), 200)
    assert tale(third, Player(3), 200) != ahead, "the copies share their game"
    assert tale(env, Player(2), 200) == ahead
    env.reset()
    second.reset()
    assert tale(env, Player(), 20) == tale(second, Player(), 20)


def test_a_fresh_env_can_be_pickled_before_its_first_reset() -> None:
    env = pickle.loads(pickle.dumps(kimble_v0.env("norske")))
    assert transcript(env, 4) == transcript(kimble_v0.env("norske"), 4)


def test_copies_compile_nothing_anew() -> None:
    from kimble_env.aec_kernel import aec_step

    env = started()
    env.step(33)
    known = len(getattr(aec_step, "signatures", ()))
    for way in COPIES.values():
        way(env).step(33)
    assert len(getattr(aec_step, "signatures", ())) == known


# ---------------------------------------------------------------------------------------- rendering


def test_rendering_shows_the_game() -> None:
    env = kimble_v0.env("norske", render_mode="ansi")
    env.reset(options={"position": "norske R3,20/B0x2/Y-/G- R 2 1"})
    before = env.render()
    assert isinstance(before, str)
    env.step(4)
    assert env.render() != before
    frames = kimble_v0.env("norske", render_mode="rgb_array")
    frames.reset(seed=1)
    frame = frames.render()
    assert frame.dtype == np.uint8
    assert frame.shape[2] == 3
    env.close()
    env.close()


def test_the_last_move_is_drawn() -> None:
    env = kimble_v0.env("kimble", render_mode="ansi", players=2)
    env.reset(options={"position": "kimble R10,20/Y5,15 R 4 1"})
    env.step(11)
    assert "10-14" in env.render()  # yellow has a choice whatever it throws
    again = pickle.loads(pickle.dumps(env))
    assert again.render() == env.render()


def test_rendering_without_a_mode_warns() -> None:
    env = started()
    with pytest.warns(UserWarning, match="without specifying any render mode"):
        assert env.render() is None


# ----------------------------------------------------------------------------------------- the page

PAGE = aec.__doc__ or ""


def table(heading: str) -> list[list[str]]:
    """Rows of the first table of the page below a heading or sentence; the heading row left out."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    rules = [i for i, line in enumerate(lines) if re.fullmatch(r"=+(  +=+)*", line.rstrip())]
    first = 0 if rules[1] - rules[0] > 2 else 1
    return [re.split(r"  +", line.strip()) for line in lines[rules[first] + 1 : rules[first + 1]]]


def elements(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def test_the_page_has_the_right_sizes() -> None:
    env = kimble_v0.env()
    rows = dict(table("All figures on this page"))
    space = env.observation_space("player_0")
    assert rows["actions"] == f"``Discrete({env.action_space('player_0').n})``, masked"
    shape, actions = space["observation"].shape, space["action_mask"].shape
    assert rows["observation"] == (
        f"``Dict``: ``observation`` int8 {shape}, ``action_mask`` int8 {actions}"
    )
    assert rows["state"] == f"int8 {env.state_space.shape}"
    assert rows["values"].startswith(f"0 to {space['observation'].high.max()} in ``observation``")
    assert f"int8 {actions}, see Actions" in PAGE
    assert PAGE.count("``player_3``") == 1
    assert env.possible_agents[-1] == "player_3"


def test_the_page_has_the_right_elements() -> None:
    layout = observation_layout(find_rules("kimble"))
    names = ["track", "stretch", "home_base", "home", "plays", "out", "partner"]
    rows = table("The four blocks of")
    assert len(rows) == len(names)
    assert f"blocks of {layout.block} elements" in PAGE
    for name, row in zip(names, rows, strict=True):
        for seat in range(4):
            where = layout.slice(name, seat)
            assert elements(row[seat]) == range(where.start, where.stop)
        assert row[4] == f"0-{layout.high[layout.slice(name, 0)][0]}"
    common = ["seat_to_act", "die", "throws", "sixes"]
    rows = table("and what belongs to the throw")
    assert len(rows) >= len(common)
    for name, row in zip(common, rows, strict=False):
        where = layout.slice(name)
        assert elements(row[0]) == range(where.start, where.stop)
        assert row[1] == f"0-{layout.high[where][0]}"


def test_the_page_has_the_right_actions() -> None:
    board = find_rules("kimble").board
    rows = table("An action says where")
    enter, track, stretch, passing = (elements(row[0]) for row in rows)
    assert list(enter) == [0]
    assert track == range(1, 1 + board.leave + 1)
    assert stretch == range(1 + board.stretch_first, 1 + board.stretch_last + 1)
    assert list(passing) == [board.pass_action]
    assert f"track field 0-{board.leave}," in rows[1][1]
    assert f"stretch field {board.stretch_first}-{board.stretch_last}" in rows[2][1]


def test_the_page_has_the_right_versions_rewards_and_arguments() -> None:
    history = PAGE[PAGE.index("Version history") :]
    newest = re.findall(
        r"\* v(\d+):.*?observation version (\d+), action version (\d+)", history, re.S
    )
    assert (int(newest[0][0]), *map(int, newest[0][1:])) == (
        int(str(kimble_v0.env())[-1]),
        OBSERVATION_VERSION,
        ACTION_VERSION,
    )
    total = play(started(rules="kimble[pieces=1]"))
    assert f"-1/{round(-1 / min(total.values()))}" in PAGE
    import inspect

    for name, parameter in inspect.signature(aec.raw_env.__init__).parameters.items():
        if name not in ("self", "options"):
            value = str(parameter.default).replace("kimble", '"kimble"').replace("raise", '"raise"')
            assert f"{name}={value}" in PAGE.replace("\n", " ")


def test_the_page_names_what_is_in_infos() -> None:
    env = started(illegal="noop")
    env.step(32)
    info = env.last()[4]
    section = PAGE[PAGE.index("Info\n----") : PAGE.index("Version history")]
    assert set(re.findall(r"^``(\w+)``$", section, re.M)) == set(info)


def test_the_example_on_the_page_runs() -> None:
    assert doctest.testmod(aec).failed == 0
