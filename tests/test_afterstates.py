"""Afterstates against ``Game``, dice and battles forced: nothing is left out, nothing made up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from kimble_env import kernel
from kimble_env.afterstates import expand_moves, expand_throws, gather_moves
from kimble_env.errors import KimbleError, PositionError
from kimble_env.game import Game
from kimble_env.notation import parse_position
from kimble_env.rules import Rules, find_rules

VARIANTS = (
    "kimble",
    "kimble[pass_allowed=no,max_sixes=3]",
    "kimble[two_colours=yes]",
    "kombat",
    "kombat[die=popomatic]",
    "kombat[play_for_places=yes]",
    "norske",
    "norske[own_collision=mover,pieces=2]",
    "norske[board=ludo52,own_collision=stander]",
)
DICE = ("last_battle", "battle_count", "throw_count")  # a child's battle dice are an example


def waiting(rules: Rules, count: int, seed: int = 1) -> np.ndarray:
    """Positions of random games, from the opening to the end, each waiting for a throw."""
    states = kernel.empty_states(count)
    keys = np.empty(count, np.uint64)
    kernel.game_keys(np.uint64(seed), 0, keys)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    for i in range(count):
        part = kernel.take_states(states, np.array([i]))
        kernel.play_random_batch(part, rules.array, 4 * i)
        kernel.put_states(states, np.array([i]), part)
    return kernel.take_states(states, np.flatnonzero(states["status"] == kernel.RUNNING))


def board_of(state: np.void) -> bytes:
    """All of a record but the order of pieces, dice of battles and counters of streams."""
    copy = state.copy()
    copy["pieces"] = np.sort(copy["pieces"], axis=1)
    for name in DICE:
        copy[name] = 0
    return copy.tobytes()


def after_moves(rules: Rules, state: np.void) -> dict[tuple[int, bytes], float]:
    """(action, position) to chance, each move and each pair of battle dice played by ``Game``."""
    found: dict[tuple[int, bytes], float] = defaultdict(float)
    game = Game.from_state(rules, state)
    for move in game.legal_moves:
        for dice, chance in game.battle_outcomes(move) or [(None, 1.0)]:
            copy = game.copy()
            copy.play(move, dice)
            found[move.action, board_of(copy.state[0])] += chance
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_moves_and_throws_are_those_of_game(variant: str) -> None:
    rules = find_rules(variant)
    states = waiting(rules, 60)
    throws = expand_throws(states, rules)
    assert len(throws.children) == 6 * len(states)
    assert throws.parent.tolist() == np.repeat(np.arange(len(states)), 6).tolist()
    for i, state in enumerate(states):
        game = Game.from_state(rules, state)
        for row, (die, chance) in enumerate(game.chance_outcomes, 6 * i):
            copy = game.copy()
            copy.throw(die)
            assert board_of(copy.state[0]) == board_of(throws.children[row])
            assert throws.chance[row] == pytest.approx(chance)
    moves = expand_moves(throws.children, rules)
    listed: dict[int, dict[tuple[int, bytes], float]] = defaultdict(dict)
    for child, parent, action, chance in zip(*moves, strict=True):
        key = (int(action), board_of(child))
        assert key not in listed[int(parent)], "one child per distinct outcome"
        listed[int(parent)][key] = float(chance)
    for row in range(len(throws.children)):
        expected = after_moves(rules, throws.children[row])
        assert expected.keys() == listed[row].keys()
        for key, chance in expected.items():
            assert listed[row][key] == pytest.approx(chance)
    order = list(zip(moves.parent.tolist(), moves.action.tolist(), strict=True))
    assert order == sorted(order)


def test_a_battle_has_three_outcomes_whose_chances_add_to_one() -> None:
    rules, states = parse_position("kombat R3/B0 R 4 1")  # R7 is B0: B defends on its own start
    moves = expand_moves(states, rules)
    battle = moves.action == 4
    assert battle.sum() == 3
    assert moves.chance[battle].sum() == pytest.approx(1.0)
    pieces = moves.children["pieces"][battle]
    assert [(int(p[0].max()), int(p[1].max())) for p in pieces] == [(7, -1), (-1, -1), (-1, 0)]


def test_a_winning_move_ends_the_game() -> None:
    rules, states = parse_position("kimble[pieces=1] R27/B3 R 4 1")
    moves = expand_moves(states, rules)
    assert moves.children["status"].tolist() == [kernel.WON, kernel.RUNNING]  # the other one passes
    assert moves.children["winner"][0] == 0
    finished = moves.children[:1]
    assert len(expand_moves(finished, rules).children) == 0
    with pytest.raises(PositionError, match="position 0 waits for no throw: the game is over"):
        expand_throws(finished, rules)


def test_a_limit_of_turns_cuts_children_off() -> None:
    rules, states = parse_position("kimble[max_turns=5] R3/B3 R - 1 turn=4")
    throws = expand_throws(states, rules)
    moves = expand_moves(throws.children, rules)
    assert {kernel.TRUNCATED, kernel.RUNNING} == set(moves.children["status"].tolist())
    assert (moves.children["status"][moves.children["last_die"] == 6] == kernel.RUNNING)[:-1].all()


def test_values_are_gathered_by_position_and_action() -> None:
    rules, states = parse_position("kombat R3/B0 R 4 1")
    moves = expand_moves(states, rules)
    values = np.zeros((len(moves.children), 4))
    values[:, 0] = moves.children["pieces"][:, 0].max(axis=1)
    out = gather_moves(moves, values, 1, rules.board.actions)
    win, _, _ = kernel.battle_odds(states[0], rules.array, 2)
    expected = moves.chance[moves.action == 4] @ [7.0, -1.0, -1.0]
    assert out[0, 4, 0] == pytest.approx(expected)
    assert out[0, rules.board.pass_action, 0] == 3.0
    assert np.count_nonzero(out) == 2
    assert 0.0 < win < 1.0
    with pytest.raises(KimbleError, match=r"values must be float64"):
        gather_moves(moves, values[1:], 1, rules.board.actions)


def test_refusals_say_what_was_expected() -> None:
    rules, states = parse_position("kimble R3/B3 R 4 1")
    with pytest.raises(PositionError, match="a die has been thrown already"):
        expand_throws(states, rules)
    with pytest.raises(PositionError, match=r"must be an array STATE \[B\]"):
        expand_moves(np.zeros(3), rules)
    with pytest.raises(KimbleError, match="rules must be Rules"):
        expand_moves(states, "kimble")
    members = rules.replace(members="20")
    for expand in (expand_moves, expand_throws):
        with pytest.raises(KimbleError, match="with the option members"):
            expand(states, members)


def test_nothing_gives_nothing_and_the_positions_are_left_alone() -> None:
    rules, states = parse_position("kimble R3/B3 R - 1")
    before = states.tobytes()
    assert len(expand_moves(states, rules).children) == 0  # nobody has a die to play
    assert len(expand_throws(states, rules).children) == 6
    assert states.tobytes() == before
    none = kernel.empty_states(0)
    assert len(expand_throws(none, rules).children) == 0
    assert len(expand_moves(none, rules).parent) == 0
