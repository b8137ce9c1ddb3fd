"""The environment with decisions beside the board, against the compiled one and by hand."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

from kimble_env import IllegalMoveError, RulesError, kimble_v0
from kimble_env import off_board as o

with warnings.catch_warnings():  # PettingZoo's own tests import its own old modules
    warnings.simplefilter("ignore")
    from pettingzoo.test import api_test, seed_test

TEXT = "norske[members=150+50/300]"
FIRST, SECOND, ON, DECLINE = 34, 35, 36, 37


def at(position: str, rules: str = TEXT, seed: int = 1, **words: Any) -> Any:
    env = kimble_v0.off_board_env(rules, ask_forced=True, **words)
    env.reset(seed=seed, options={"position": f"{rules} {position}"})
    return env


def legal(env: Any) -> list[int]:
    return [int(a) for a in np.flatnonzero(env.infos[env.agent_selection]["action_mask"])]


@pytest.mark.parametrize("rules", [TEXT, "norske[members=50,pieces=2,win_at=home]"])
def test_pettingzoo_api(rules: str) -> None:
    api_test(kimble_v0.off_board_env(rules), num_cycles=400)
    seed_test(lambda: kimble_v0.off_board_env(rules), num_cycles=50)


def test_the_owing_team_is_asked_who_drinks_before_anything_else() -> None:
    env = at("R9/B4x3,20/Y-/G- R 2 1", "norske[members=0]")
    env.step(10)
    assert env.agent_selection == "player_1"
    assert legal(env) == [FIRST, SECOND]
    observation, _, _, _, info = env.last()
    assert observation["cups"].tolist() == [1, 3, *[1, 1, 0, 0] * 4]
    assert (info["seat"], info["drinks"]) == (1, 3)
    assert env.observe("player_0")["action_mask"].sum() == 0
    env.step(SECOND)
    assert env._states["drunk"][0, 1].tolist() == [0, 3]
    assert env.observe("player_1")["cups"].tolist() == [0, 0, 1, 1, 0, 3, *[1, 1, 0, 0] * 3]
    assert env.observe("player_0")["cups"].tolist()[6:10] == [1, 1, 0, 3]


def test_the_partner_goes_on_alone_or_not() -> None:
    rules = "norske[members=1000/0]"
    env = at("R9/B4x3,20/Y-/G- R 2 1", rules)
    env.step(10)
    env.step(FIRST)  # who always fails
    assert (env.agent_selection, legal(env)) == ("player_1", [ON, DECLINE])
    assert env.last()[0]["cups"].tolist()[:6] == [2, 3, 0, 1, 0, 0]
    alone, gone = copy.deepcopy(env), copy.deepcopy(env)
    alone.step(ON)
    assert alone._states["drunk"][0, 1].tolist() == [0, 3]
    assert alone._states["out"][0].tolist() == [0, 0, 0, 0]
    gone.step(DECLINE)
    assert gone._states["out"][0].tolist() == [0, 1, 0, 0]
    assert (gone._states["pieces"][0, 1] == -1).all()


def test_a_team_of_one_is_not_asked_and_can_go_out() -> None:
    rules = "norske[members=1000/0]"
    env = at("R9/B9,20/Y-/G- R 2 1", rules)
    env._states["unable"][0, 2] = 2  # of yellow only the one who always fails is left
    env._states["pieces"][0, 2, 0] = 25  # g 11
    env.step(10)
    assert env._states["out"][0, 2] == 1
    assert env.agent_selection != "player_2"


def test_ledger_8_the_last_piece_home_is_not_drunk() -> None:
    rules = "norske[members=1000/0]"
    env = at("R30,Hx3/B4/Y-/G- R 2 1", rules)
    env.step(31)
    assert (env.agent_selection, legal(env)) == ("player_0", [FIRST, SECOND])
    won, lost = copy.deepcopy(env), copy.deepcopy(env)
    won.step(SECOND)
    assert won.terminations["player_0"]
    assert won.rewards["player_0"] == 1
    lost.step(FIRST)
    lost.step(DECLINE)
    assert not lost.terminations["player_0"]
    assert lost._states["out"][0, 0] == 1


def test_illegal_decisions() -> None:
    env = at("R9/B4x3,20/Y-/G- R 2 1")
    with pytest.raises(IllegalMoveError, match="legal: 10"):
        env.step(FIRST)
    env.step(10)
    with pytest.raises(
        IllegalMoveError,
        match=re.escape("legal: 34 (the first member drinks), 35 (the second member drinks)"),
    ):
        env.step(ON)
    for wrong in (10, -1, 38):
        with pytest.raises(IllegalMoveError):
            env.step(wrong)
    env.step(FIRST)
    env = at("R9/B4x3,20/Y-/G- R 2 1", illegal="noop")
    env.step(10)
    env.step(5)
    assert (env.agent_selection, env.infos["player_1"]["seat"]) == ("player_1", 1)
    assert env.infos["player_1"]["illegal"]
    env = at("R9/B4x3,20/Y-/G- R 2 1", illegal="lose")
    env.step(10)
    env.step(5)
    assert env.terminations["player_1"]
    assert env.rewards["player_1"] == pytest.approx(-1 / 3)
    assert legal(env) == [33]


@pytest.mark.parametrize("rules", ["norske", "kombat[members=20]", "kimble"])
def test_rules_that_cannot_be(rules: str) -> None:
    with pytest.raises(RulesError):
        kimble_v0.off_board_env(rules)


def usual_choice(env: Any) -> int | None:
    """What the compiled environments do beside the board; None for a choice on the board."""
    actions = legal(env)
    if actions == [ON, DECLINE]:
        return ON
    if actions != [FIRST, SECOND]:
        return None
    drunk = env._states["drunk"][0, env._asked]
    a, more_a, b, more_b = o.read_members(env.rules.members)
    return FIRST if a + more_a * int(drunk[0]) <= b + more_b * int(drunk[1]) else SECOND


@pytest.mark.parametrize(
    "rules",
    [
        TEXT,
        "norske[members=60+20]",
        "norske[members=100,play_for_places=yes,pieces=2]",
        "norske[members=200,win_at=home,pieces=2]",
        "norske[members=200,win_at=home,pieces=2,play_for_places=yes]",
        "norske[members=50,max_turns=80]",
    ],
)
@pytest.mark.parametrize("ask_forced", [False, True])
def test_the_usual_choices_play_the_games_of_the_compiled_environment(
    rules: str, ask_forced: bool
) -> None:
    for seed in range(4):
        env = kimble_v0.off_board_env(rules, ask_forced=ask_forced, cup_cost=0.01)
        compiled = kimble_v0.raw_env(rules, ask_forced=ask_forced, cup_cost=0.01)
        rng = np.random.default_rng(seed)
        env.reset(seed=seed)
        compiled.reset(seed=seed)
        totals: dict[str, float] = dict.fromkeys(env.possible_agents, 0.0)
        others = totals.copy()
        while not compiled._over:
            choice = usual_choice(env)
            if choice is None:
                assert env.agent_selection == compiled.agent_selection
                assert legal(env) == legal(compiled)
                assert (env.last()[0]["observation"] == compiled.last()[0]["observation"]).all()
                choice = int(rng.choice(legal(env)))
                others[compiled.agent_selection] += compiled.last()[1]
                compiled.step(choice)
            totals[env.agent_selection] += env.last()[1]
            env.step(choice)
        while not env._over:
            totals[env.agent_selection] += env.last()[1]
            choice = usual_choice(env)
            assert choice is not None
            env.step(choice)
        mine, other = env._states[:1].copy(), compiled._states[:1].copy()
        mine["event_count"] = other["event_count"] = 0
        mine["events"] = other["events"] = 0
        assert (mine == other).all()
        assert env.terminations == compiled.terminations
        assert env.truncations == compiled.truncations
        for agent in env.agents:
            totals[agent] += env._cumulative_rewards[agent]
            others[agent] += compiled._cumulative_rewards[agent]
            assert totals[agent] == pytest.approx(others[agent])


def test_copies_play_on_with_the_same_dice_and_draws() -> None:
    env = kimble_v0.off_board_env(TEXT, pieces=2)
    rng = np.random.default_rng(1)
    env.reset(seed=3)
    for _ in range(120):
        if env._over:
            env.reset()
        twins = [copy.copy(env), pickle.loads(pickle.dumps(env))]
        choice = int(rng.choice(legal(env)))
        for twin in (env, *twins):
            twin.step(choice)
        for twin in twins:
            assert (twin._states == env._states).all()
            assert twin.agent_selection == env.agent_selection
            assert legal(twin) == legal(env)


def test_the_page_says_how_large_things_are() -> None:
    env = kimble_v0.off_board_env()
    space = env.observation_space("player_0")
    assert space["cups"].shape == (18,)
    assert "uint8 (18,)" in (o.__doc__ or "")
    assert env.action_space("player_0").n == 38
    assert (FIRST, SECOND) == (env._board_actions, env._board_actions + 1)
