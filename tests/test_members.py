"""The option ``members``: teams whose members can fail, compiled, against the referee's ledger."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kimble_env import Game, find_rules
from kimble_env import kernel as k
from kimble_env.notation import parse_position
from kimble_env.refereed import RefereedGame
from kimble_env.rules import R_HOLD_WIN, R_MEMBERS, Rules, read_members


def started(rules: Rules, games: int, seed: int = 3) -> Any:
    states = k.empty_states(games)
    keys = np.zeros(games, np.uint64)
    k.game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    k.new_game_batch(states, rules.array, plays, keys, np.zeros((256, 2), np.int8))
    return states


def at(text: str, seed: int = 1) -> tuple[Rules, Any]:
    rules, states = parse_position(text)
    states["seed"] = seed
    return rules, states


def play(rules: Rules, states: Any, move: int) -> None:
    k.play_batch(states, rules.array, np.array([move], np.int16), np.zeros((1, 2), np.int8))


def test_members_are_read() -> None:
    assert read_members("20") == (20, 0, 20, 0)
    assert read_members("20+5") == (20, 5, 20, 5)
    assert read_members("20+5/100") == (20, 5, 100, 0)
    rules = find_rules("norske[members=20+5/100]")
    assert find_rules(str(rules)) == rules
    assert rules.array[R_MEMBERS] == rules.array[R_HOLD_WIN] == 1
    assert find_rules("norske[members=0,win_at=home]").array[R_HOLD_WIN] == 0
    assert find_rules("norske").array[R_MEMBERS] == 0
    assert np.array_equal(rules.board_array, find_rules("norske").array)


def test_who_never_fails_drinks_everything_and_nothing_else_changes() -> None:
    plain, rules = find_rules("norske"), find_rules("norske[members=0]")
    a, b = started(plain, 50), started(rules, 50)
    k.play_random_batch(a, plain.array, 100_000)
    k.play_random_batch(b, rules.array, 100_000)
    assert (b["drunk"].sum(axis=2) == b["lost"] + b["arrived"]).all()
    assert (b["drunk"][:, :, 1] == 0).all()  # equal chances: the first member drinks
    b["drunk"] = 0
    assert (a == b).all()


def test_a_tiring_member_hands_over_to_his_partner() -> None:
    rules = find_rules("norske[members=0+1]")
    states = started(rules, 200)
    k.play_random_batch(states, rules.array, 100_000)
    apart = np.abs(states["drunk"][:, :, 0].astype(int) - states["drunk"][:, :, 1])
    assert (apart[states["unable"] == 0] <= 4).all()  # in turns, a whole battery at a time


def test_who_always_fails_is_out_and_the_last_team_wins() -> None:
    rules, states = at("norske[members=1000] R3/B1/Y-/G- R 5 1")
    play(rules, states, 4)
    s = states[0]
    assert (s["unable"][1], s["out"][1], s["seat"]) == (3, 1, 2)
    assert s["event_count"] == 1  # the loss is still there to be seen
    states = started(rules, 100)
    k.play_random_batch(states, rules.array, 100_000)
    assert (states["status"] == k.WON).all()
    assert (states["out"] != 0).sum() == 300
    assert (states["places"] == 0).all()


def test_ledger_8_the_last_piece_home_is_not_drunk() -> None:
    rules, states = at("norske[members=1000] R30,Hx3/B4/Y-/G- R 2 1")
    play(rules, states, 31)
    s = states[0]
    assert (s["status"], s["out"][0], s["places"][0], s["seat"]) == (k.RUNNING, 1, 0, 1)
    faults = np.zeros(1, np.int64)
    k.faults_batch(states, rules.array, faults)
    assert faults[0] == 0
    rules, states = at("norske[members=1000,win_at=home] R30,Hx3/B4/Y-/G- R 2 1")
    play(rules, states, 31)
    assert (states[0]["status"], states[0]["winner"]) == (k.WON, 0)


def test_the_chance_is_what_the_option_says() -> None:
    rules, states = at("norske[members=100+50/1000] R9/B4x3,20/Y-/G- R 2 1")
    failed = np.zeros(3)
    for seed in range(4000):
        game = states.copy()
        game["seed"] = np.uint64(k.game_key(np.uint64(seed), 0))
        play(rules, game, 10)
        if game[0]["unable"][1]:
            failed[game[0]["drunk"][1, 0]] += 1
    expected = 4000 * np.array([0.1, 0.9 * 0.15, 0.9 * 0.85 * 0.2])
    assert (np.abs(failed - expected) < 4 * np.sqrt(expected)).all()


def test_a_game_leaves_members_to_its_referee() -> None:
    game = Game.from_text("norske[members=1000] R3/B1/Y-/G- R 5 1")
    game.play("3-8")
    assert game.to_text() == "norske[members=1000] R8/B-/Y-/G- B - 3"
    assert RefereedGame.from_text("norske[members=1000] R3/B1/Y-/G- R 5 1").die == 5


def test_two_threads_and_any_split_give_the_same_games() -> None:
    rules = find_rules("norske[members=50+10]")
    whole, parts = started(rules, 60), started(rules, 60)
    k.play_random_batch(whole, rules.array, 100_000)
    for start in range(0, 60, 7):
        k.play_random_batch(parts[start : start + 7], rules.array, 100_000)
    assert (whole == parts).all()


# --------------------------------------------------------------- the same draws, by the referee


class Drinkers:
    """Members who fail as the compiled ones do: the same stream, written down a second time."""

    def __init__(self, game: RefereedGame, chances: tuple[int, int, int, int]) -> None:
        self.game, self.chances = game, chances
        self.tried = [0, 0, 0, 0]
        self.seed = game.state["seed"][0]

    def chance(self, seat: int, member: int) -> int:
        drunk = self.game.referee.state.teams[seat].members[member].drunk
        return min(1000, self.chances[2 * member] + self.chances[2 * member + 1] * drunk)

    def fails(self, seat: int, member: int) -> bool:
        u = int(k.draw(self.seed, k.MEMBER_STREAM + seat, self.tried[seat]))
        self.tried[seat] += 1
        return (u >> 33) * 1000 >> 31 < self.chance(seat, member)

    def drink(self) -> None:
        """Let the referee see to all that is owed."""
        referee = self.game.referee
        while front := referee.state.front:
            t, seat = referee.now, front.seat
            members = [i for i in (0, 1) if referee.state.teams[seat].members[i].playing]
            if front.drinker is None:
                best = min(members, key=lambda i: (self.chance(seat, i), i))
                referee.drinker(t, seat, best)
                continue
            drinker = front.drinker
            if self.fails(seat, drinker):
                referee.unable(t, seat, drinker)
                if referee.state.undecided():
                    referee.go_on(t, seat)
                continue
            referee.pour(t, seat, drinker)
            referee.table(t, seat)
            referee.start(t, seat)
            referee.end(t + 1, seat)


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("norske[members=60+20]", 1),
        ("norske[members=100/300+50]", 2),
        ("norske[members=150,play_for_places=yes,pieces=2]", 3),
        ("norske[members=200,win_at=home,pieces=2]", 4),
        ("norske[members=0+30,pieces=3]", 5),
    ],
)
def test_elimination_in_training_equals_the_referee_on_the_same_draws(text: str, seed: int) -> None:
    rules = find_rules(text)
    assert rules.members is not None
    rng, outs = random.Random(seed), 0
    for number in range(4):
        game = RefereedGame(rules, seed=10 * seed + number)
        drinkers = Drinkers(game, read_members(rules.members))
        states = game.state
        actions = np.zeros(1, np.int64)
        for _ in range(4000):
            if game.over:
                break
            k.throw_batch(states, rules.array, np.zeros(1, np.int8), actions)
            assert game.throw() == states[0]["last_die"]
            if game.die is not None:
                move = rng.choice(game.legal_moves)
                play(rules, states, move.action)
                game.play(move)
                if not game.over:
                    drinkers.drink()
            same(states[0], game)
        assert game.over
        outs += int((states["out"] != 0).sum())
    assert outs > 0, "nobody ever went out"


def same(s: Any, game: RefereedGame) -> None:
    mine = game.state[0]
    names = ("out", "places", "seat", "die", "throws", "status", "winner", "plies", "lost")
    for name in (*names, "arrived", "taken", "throw_count"):
        assert (s[name] == mine[name]).all(), name
    assert (np.sort(s["pieces"]) == np.sort(mine["pieces"])).all()
    if not game.over:
        for seat, team in game.referee.state.teams.items():
            playing = [not s["unable"][seat] >> i & 1 for i in (0, 1)]
            assert [m.playing for m in team.members] == playing
            assert [m.drunk for m in team.members] == s["drunk"][seat].tolist()


# ------------------------------------------------------------------------ cups as a cost, and envs


def random_agent_iter(env: Any, seed: int) -> tuple[dict[str, float], dict[str, int]]:
    """Play one game; return what every agent got and drank, as ``last`` tells."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    got = dict.fromkeys(env.possible_agents, 0.0)
    drunk = dict.fromkeys(env.possible_agents, 0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        got[agent] += reward
        drunk[agent] += info["drinks"]
        mask = observation["action_mask"]
        over = terminated or truncated
        env.step(None if over else int(rng.choice(np.flatnonzero(mask))))
    return got, drunk


@pytest.mark.parametrize("rules", ["norske", "norske[members=100]", "kimble[two_colours=yes]"])
def test_aec_prices_every_cup_once(rules: str) -> None:
    from kimble_env import kimble_v0

    for seed in range(3):
        free, _ = random_agent_iter(kimble_v0.raw_env(rules=rules), seed)
        got, drunk = random_agent_iter(kimble_v0.raw_env(rules=rules, cup_cost=0.01), seed)
        assert sum(drunk.values()) > 0
        for agent, reward in got.items():
            assert reward == pytest.approx(free[agent] - 0.01 * drunk[agent])


def test_aec_prices_cups_before_an_illegal_action_once() -> None:
    from kimble_env import kimble_v0

    env = kimble_v0.raw_env(rules="norske", cup_cost=0.01, illegal="lose", ask_forced=True)
    env.reset(seed=2, options={"position": "norske R9/B4x3,20/Y-/G- R 2 1"})
    env.step(10)
    while env.agent_selection != "player_1":
        env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    assert env.last()[1] == pytest.approx(-0.01 * env.last()[4]["drinks"])
    before = env.last()[1]
    env.step(33)
    assert env.last()[0] is not None
    assert env.rewards["player_1"] == pytest.approx(-1 / 3)
    assert before <= -0.03


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
@pytest.mark.parametrize("opponents", [None, "random"])
def test_vector_env_prices_every_cup_once(mode: str, opponents: str | None) -> None:
    from kimble_env.vector import KimbleVectorEnv, sample_actions

    games, cost = 16, 0.25
    words: dict[str, Any] = {"opponents": opponents, "autoreset_mode": mode, "pieces": 2}
    free = KimbleVectorEnv(games, "norske", **words)
    priced = KimbleVectorEnv(games, "norske", cup_cost=cost, **words)
    _, info = free.reset(seed=4)
    priced.reset(seed=4)
    sums, drinks = np.zeros((games, 4)), np.zeros((games, 4))
    paid = np.zeros(2)
    for n in range(600):
        actions = sample_actions(info["action_mask"], n)
        _, reward_free, _, _, info = free.step(actions)
        _, reward, _, _, info_priced = priced.step(actions)
        sums += info_priced["rewards"] - info["rewards"]
        drinks += info["drinks"]
        paid += reward_free.sum(), reward.sum()
        assert np.allclose(info_priced["rewards"] - info["rewards"], -cost * info["drinks"])
    assert np.allclose(sums, -cost * drinks)
    assert drinks.sum() > 100
    assert paid[1] < paid[0] - 1


def test_single_seat_prices_cups() -> None:
    from kimble_env.single_seat import KimbleSingleSeat

    env = KimbleSingleSeat("norske", opponents="random", cup_cost=0.5)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=3)
    total, drunk, over = 0.0, info["drinks"], False
    while not over:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, truncated, info = env.step(action)
        total, drunk = total + float(reward), drunk + info["drinks"]
        over = terminated or truncated
    assert total + 0.5 * drunk in (pytest.approx(1.0), pytest.approx(-1 / 3))


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), "1", True])
def test_a_cost_that_cannot_be(cost: Any) -> None:
    from kimble_env import KimbleError, kimble_v0
    from kimble_env.vector import KimbleVectorEnv

    with pytest.raises(KimbleError, match="cup_cost must be a finite number"):
        kimble_v0.raw_env(cup_cost=cost)
    with pytest.raises(KimbleError, match="cup_cost must be a finite number"):
        KimbleVectorEnv(2, cup_cost=cost)


def test_teams_go_out_inside_the_vector_env() -> None:
    from kimble_env.vector import KimbleVectorEnv, sample_actions

    envs = KimbleVectorEnv(32, "norske[members=150+20]", autoreset_mode="SAME_STEP")
    _, info = envs.reset(seed=1)
    ended = 0
    for n in range(500):
        _, _, terminated, _, info = envs.step(sample_actions(info["action_mask"], n))
        ended += int(terminated.sum())
    assert ended > 32
    assert (envs._states["out"] != 0).any()
