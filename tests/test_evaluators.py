"""Evaluators: the registry, the boundary around a user's own, and the helpers that ask them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from agents.evaluators import (
    ExactValue,
    best_actions,
    check_values,
    known_evaluators,
    make_evaluator,
    move_values,
    position_values,
    register_evaluator,
    seat_chances,
    throw_values,
)
from agents.linear_value import LinearValue, make_linear, value_names
from agents.position_features import COUNT, POSITION_FEATURES, position_features_batch
from kimble_env import kernel
from kimble_env.errors import AgentError, KimbleError, PositionError
from kimble_env.notation import parse_position
from kimble_env.rules import Rules, find_rules
from tests.test_afterstates import waiting

NAMES = tuple(f"{r}-{p}p" for r in ("kimble", "kombat", "norske") for p in (2, 3, 4))


class Pips:
    """An evaluator in five lines: chances in proportion to the pips made."""

    def value(self, states: np.ndarray) -> np.ndarray:
        pips = (states["pieces"].astype(float) + 1.0).sum(axis=2) + 1.0
        pips *= states["plays"] != 0
        return pips / pips.sum(axis=1, keepdims=True)


def uniform(states: np.ndarray) -> np.ndarray:
    plays = (states["plays"] != 0).astype(float)
    return plays / plays.sum(axis=1, keepdims=True)


def seated(name: str) -> Rules:
    rules, _, players = name.partition("-")
    return find_rules(rules).replace(players=int(players[0]))


# --------------------------------------------------------------------------------- the linear value


@pytest.mark.parametrize("name", NAMES)
def test_linear_values_are_chances_of_the_seats_that_play(name: str) -> None:
    rules = seated(name)
    value = make_evaluator("linear", rules)
    assert value.name == f"linear:{name}"
    assert len(value.hash) == 16
    states = waiting(rules, 80)
    before = states.tobytes()
    chances = check_values(states, value.value(states), name)
    assert states.tobytes() == before
    plays = states["plays"] != 0
    assert (chances[plays] > 0.0).all()
    assert chances[plays].std() > 0.03, "it tells positions apart"
    halves = [value.value(kernel.take_states(states, np.arange(k, len(states), 2))) for k in (0, 1)]
    assert (halves[0] == chances[::2]).all()
    assert (halves[1] == chances[1::2]).all()


def test_the_file_holds_a_value_for_every_rule_set_and_number_of_players() -> None:
    assert set(NAMES) <= set(value_names())


def test_a_linear_value_knows_who_is_ahead_and_what_is_in_danger() -> None:
    rules, states = parse_position("kimble R20/Y- R - 1")
    value = make_linear("", rules)
    assert value.value(states)[0, 0] > 0.55
    _, safe = parse_position("kimble R20/Y- Y - 1")
    _, hunted = parse_position("kimble R20/Y3 Y - 1")  # Y3 stands three behind R20
    features = np.empty((1, 4, COUNT), np.float32)
    position_features_batch(hunted, rules.array, features)
    named = dict(zip(POSITION_FEATURES, features[0, 0].tolist(), strict=True))
    assert named["hit_0"] == pytest.approx(named["hit_2"])
    assert named["hit_0"] > 0.15
    assert named["stake_2"] == pytest.approx(named["hit_2"] * 21 / 28)
    position_features_batch(safe, rules.array, features)
    two_sixes = features[0, 0, POSITION_FEATURES.index("hit_0")]  # Y enters on R14 and goes on
    assert two_sixes == pytest.approx(1 / 36)


def test_the_seat_to_throw_alone_counts_for_what_hits_now() -> None:
    features = np.empty((1, 4, COUNT), np.float32)
    rules, states = parse_position("kimble R20/B11/Y3 Y - 1")  # R18 and R17: both hit R20
    position_features_batch(states, rules.array, features)
    red = dict(zip(POSITION_FEATURES, features[0, 0].tolist(), strict=True))
    yellow = dict(zip(POSITION_FEATURES, features[0, 2].tolist(), strict=True))
    assert red["hit_0"] > red["hit_2"] > 0.15, "both may hit it, yellow throws now"
    assert red["hit_1"] == 0.0
    assert yellow["gain_1"] > red["hit_2"], "it may hit R20 and B11"
    assert (yellow["turn_0"], red["turn_1"]) == (1.0, 1.0)


def test_linear_refuses_what_it_does_not_fit() -> None:
    with pytest.raises(AgentError, match="no linear value 'draughts'; known: kimble-2p"):
        make_evaluator("linear:draughts", "kimble")
    with pytest.raises(AgentError, match="kimble28, not 'ludo52'"):
        make_evaluator("linear", "kimble[board=ludo52]")
    with pytest.raises(AgentError, match="two colours"):
        make_evaluator("linear:kimble-4p", "kimble[two_colours=yes]")
    with pytest.raises(AgentError, match="finite weights"):
        LinearValue("mine", find_rules("kimble"), [1.0])
    rules, states = parse_position("kimble R3/B3 R 4 1")
    with pytest.raises(PositionError, match="position 0 has a die of 4 to play"):
        make_evaluator("linear", rules.replace(players=2)).value(states)


# ------------------------------------------------------------------------------------ decided games


@pytest.mark.parametrize("spec", ["linear:kimble-2p", "mine"])
def test_decided_games_are_exact(spec: str) -> None:
    rules, states = parse_position("kimble R28,29,30,31/Y3 R * 0")
    evaluator = make_evaluator(Pips() if spec == "mine" else spec, rules)
    assert evaluator.value(states).tolist() == [[1.0, 0.0, 0.0, 0.0]]
    cut = states.copy()
    cut["status"], cut["places"], cut["winner"] = kernel.TRUNCATED, 0, -1
    assert evaluator.value(cut).tolist() == [[0.5, 0.0, 0.5, 0.0]]


def test_with_places_the_first_has_won() -> None:
    rules, states = parse_position(
        "kimble[play_for_places=yes] R28,29,30,31/B5/Y3 B - 1 places=R"
    )
    for evaluator in (make_evaluator("linear:kimble-3p", rules), make_evaluator(Pips(), rules)):
        assert evaluator.value(states).tolist() == [[1.0, 0.0, 0.0, 0.0]]


# -------------------------------------------------------------------------------- users' evaluators


def test_a_users_object_class_function_and_file(tmp_path: Path) -> None:
    rules = seated("kombat-3p")
    states = waiting(rules, 20)
    expected = Pips().value(states)
    file = tmp_path / "mine.py"
    file.write_text(
        "class Pips:\n"
        "    def value(self, states):\n"
        "        assert not states['seed'].any(), 'seeds are not shown'\n"
        "        pips = (states['pieces'].astype(float) + 1.0).sum(axis=2) + 1.0\n"
        "        pips *= states['plays'] != 0\n"
        "        return pips / pips.sum(axis=1, keepdims=True)\n"
    )
    states["seed"] = 7
    made = [make_evaluator(thing, rules) for thing in (Pips(), Pips, Pips().value, f"{file}:Pips")]
    for evaluator in made:
        assert np.allclose(evaluator.value(states), expected)
        assert len(evaluator.hash) == 16
    assert made[0].name == "Pips"
    again = pickle.loads(pickle.dumps(made[3]))
    assert again.name == made[3].name
    assert (again.value(states) == made[3].value(states)).all()
    hash_before = made[3].hash
    file.write_text(file.read_text() + "# changed\n")
    assert make_evaluator(f"{file}:Pips", rules).hash != hash_before
    assert make_evaluator(made[0], rules) is made[0]
    with pytest.raises(AgentError, match="is for kombat, not kimble"):
        make_evaluator(made[0], "kimble")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda s: uniform(s)[:, :3], r"must return chances \[5, 4\], got \[5, 3\]"),
        (lambda s: uniform(s) * 2.0, "do not add to 1"),
        (lambda s: uniform(s) * np.nan, "not finite"),
        (lambda s: uniform(s) + [1.0, 0.0, -1.0, 0.0], r"not in 0\.\.1"),
        (lambda s: np.full((len(s), 4), 0.25), "of a seat that does not play"),
        (lambda s: None, "must return"),
        (lambda s: "abc", "must return an array"),
    ],
)
def test_what_a_users_evaluator_returns_is_checked(wrong: object, text: str) -> None:
    rules = seated("kimble-3p")
    with pytest.raises(AgentError, match=text):
        make_evaluator(wrong, rules).value(waiting(rules, 5))  # type: ignore[arg-type]


def test_specs_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="unknown evaluator 'magic'; known: best, exact, linear"):
        make_evaluator("magic", "kimble")
    with pytest.raises(AgentError, match="there is no file"):
        make_evaluator(f"{tmp_path}/none.py:x", "kimble")
    with pytest.raises(AgentError, match="no evaluator"):
        make_evaluator(7, "kimble")  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="plain word"):
        register_evaluator("a b", lambda argument, rules: Pips())
    with pytest.raises(AgentError, match="registered for evaluators 'linear'"):
        register_evaluator("linear", lambda argument, rules: Pips())
    assert "linear" in known_evaluators()


# -------------------------------------------------------------------------------------- the helpers


def test_helpers_agree_with_game_by_hand() -> None:
    from kimble_env.game import Game

    rules = seated("kombat-3p")
    evaluator = make_evaluator(Pips(), rules)
    states = waiting(rules, 24)
    found = throw_values(evaluator, states, rules)
    for state, given in zip(states, found, strict=True):
        total = np.zeros(4)
        for die, chance in Game.from_state(rules, state).chance_outcomes:
            game = Game.from_state(rules, state)
            game.throw(die)
            total += chance * best_by_hand(game, evaluator)
        assert np.allclose(total, given)


def best_by_hand(game, evaluator) -> np.ndarray:  # type: ignore[no-untyped-def]
    if game.die is None:
        return evaluator.value(game.state)[0]
    seat, after = game.seat, []
    for move in game.legal_moves:
        mean = np.zeros(4)
        for dice, chance in game.battle_outcomes(move) or [(None, 1.0)]:
            copied = game.copy()
            copied.play(move, dice)
            mean += chance * evaluator.value(copied.state)[0]
        after.append(mean)
    return max(after, key=lambda v: round(v[seat], 12))


def test_move_values_are_what_an_agent_may_return_from_evaluate() -> None:
    rules = seated("norske-4p")
    from kimble_env.afterstates import expand_throws

    thrown = expand_throws(waiting(rules, 40), rules).children
    thrown = kernel.take_states(thrown, np.flatnonzero(thrown["die"] != 0))
    values = move_values(make_evaluator("linear", rules), thrown, rules)
    assert values.dtype == np.float32
    assert values.shape == (len(thrown), rules.board.actions, 4)
    legal = np.empty(len(thrown), np.int64)
    kernel.legal_batch(thrown, rules.array, legal)
    mask = legal[:, None] >> np.arange(rules.board.actions) & 1 != 0
    assert np.allclose(values.sum(axis=2), mask)
    best = best_actions(values, thrown, rules)
    assert mask[np.arange(len(best)), best].all()
    own = seat_chances(values, thrown, rules)
    assert (own.max(axis=1) == own[np.arange(len(best)), best]).all()
    with pytest.raises(PositionError, match="no die to play"):
        best_actions(values[:1], waiting(rules, 1), rules)


def test_the_exact_evaluator_is_its_own_mean_over_throws() -> None:
    rules = find_rules("kimble[pieces=1]").replace(players=2)
    exact = make_evaluator("exact", rules)
    assert isinstance(exact, ExactValue)
    states = waiting(rules, 30)
    values = check_values(states, exact.value(states), "exact")
    assert np.abs(throw_values(exact, states, rules) - values).max() < 5e-5  # 16 bits
    assert np.allclose(position_values(exact, states, rules), values)
    with pytest.raises(AgentError, match="two seats"):
        make_evaluator("exact", "kimble")


def test_evaluators_pickle_and_copy() -> None:
    rules = seated("kimble-4p")
    states = waiting(rules, 10)
    linear = make_evaluator("linear", rules)
    for other in (pickle.loads(pickle.dumps(linear)), copy.deepcopy(linear)):
        assert (other.value(states) == linear.value(states)).all()
        assert other.hash == linear.hash


def test_members_have_chances_that_cannot_be_listed() -> None:
    rules = seated("norske-4p").replace(members="20")
    with pytest.raises(KimbleError, match="members"):
        throw_values(make_evaluator(uniform, rules), waiting(rules, 3), rules)
