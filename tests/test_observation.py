"""Observation and mask: every element against a plain second encoding, and turning the board."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kimble_env import kernel, observation
from kimble_env.board import BOARDS, Board
from kimble_env.observation import (
    mask_batch,
    named_views,
    observation_layout,
    observation_size,
    observe_batch,
)
from kimble_env.rules import Rules, find_rules

RULES = [
    find_rules("kimble"),
    find_rules("kimble", seats="RY", pieces=2),
    find_rules("kombat[two_colours=yes]"),
    find_rules("norske"),
    find_rules("norske[max_sixes=3]", seats="BYG"),
    *(find_rules(name, board=board) for name in ("kimble", "norske") for board in BOARDS),
]
SIZES = {"kimble28": 160, "cross40": 208, "ludo52": 260}


def some_positions(rules: Rules, count: int = 120, seed: int = 3) -> Any:
    """Positions from random games of all lengths; with a die thrown, before the throw, and over."""
    states, keys = kernel.empty_states(count), np.zeros(count, np.uint64)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.game_keys(np.uint64(seed), 0, keys)
    kernel.new_game_batch(states, rules.array, plays, keys, np.zeros((0, 2), np.int8))
    step = 60
    for first in range(0, count, 10):
        kernel.play_random_batch(states[first:], rules.array, step)
    thrown = np.flatnonzero((states["status"] == kernel.RUNNING) & (np.arange(count) % 7 > 0))
    for i in thrown:
        kernel.throw_batch(
            states[i : i + 1], rules.array, np.zeros(1, np.int8), np.zeros(1, np.int64)
        )
    return states


def observe(states: Any, rules: Rules, observers: Any) -> Any:
    out = np.full((len(states), observation_size(rules.board)), 99, np.int8)
    observe_batch(states, rules.array, np.asarray(observers, np.int8), out)
    return out


def legal_masks(states: Any, rules: Rules) -> Any:
    actions = np.zeros(len(states), np.int64)
    kernel.legal_batch(states, rules.array, actions)
    out = np.full((len(states), rules.board.actions), 99, np.int8)
    mask_batch(actions, out)
    return out, actions


def plain_block(s: Any, rules: Rules, seat: int, observer: int) -> list[int]:
    """One seat's block, written from the page of the module, not from the compiled code."""
    board = rules.board
    pieces = [int(p) for p in s["pieces"][seat][: rules.pieces]]
    fields = [board.field(seat, p) for p in pieces]
    first = board.starts[observer]
    block = [fields.count((first + k) % board.ring) for k in range(board.ring)]
    block += [pieces.count(p) for p in range(board.stretch_first, board.stretch_last + 1)]
    partner = rules.two_colours and (seat - observer) % 4 == 2
    home = pieces.count(board.home)
    return [*block, pieces.count(-1), home, 1, int(s["out"][seat] > 0), int(partner)]


def plain_observation(s: Any, rules: Rules, observer: int) -> list[int]:
    out: list[int] = []
    for step in range(4):
        seat = (observer + step) % 4
        if s["plays"][seat]:
            out += plain_block(s, rules, seat, observer)
        else:
            out += [0] * (rules.board.ring + rules.board.stretch + 5)
    out += [int((observer + k) % 4 == s["seat"]) for k in range(4)]
    out += [int(s["die"] == face) for face in range(1, 7)]
    return [*out, int(s["throws"]), int(s["sixes"]) if rules.max_sixes else 0]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_element_is_that_of_the_plain_encoding(rules: Rules) -> None:
    states = some_positions(rules)
    layout = observation_layout(rules)
    assert (states["die"] > 0).any()
    assert (states["die"] == 0).any()
    for observer in range(4):
        seen = observe(states, rules, [observer] * len(states))
        for s, row in zip(states, seen, strict=True):
            assert row.tolist() == plain_observation(s, rules, observer)
        assert (seen >= layout.low).all()
        assert (seen <= layout.high).all()


def test_out_seats_finished_games_and_sixes_are_shown() -> None:
    rules = find_rules("norske", max_sixes=3)
    states = some_positions(rules, 400)
    running = np.flatnonzero(states["status"] == kernel.RUNNING)[:20]
    gone = np.full(len(states), -1, np.int8)
    gone[running] = (states["seat"][running] + 1) % 4
    gone[running[states["out"][running, gone[running]] > 0]] = -1
    kernel.remove_seat_batch(states, rules.array, gone)
    states["sixes"][running] = 2
    assert (states["status"] == kernel.WON).any()
    seen = observe(states, rules, np.zeros(len(states)))
    views = named_views(seen, rules)
    assert (views["out"] == (states["out"] > 0)).all()
    assert (views["sixes"] == np.minimum(states["sixes"], 3)).all()
    won = states["status"] == kernel.WON
    assert (views["seat_to_act"][won].argmax(axis=1) == states["winner"][won]).all()
    assert not views["die"][won].any()
    assert not views["throws"][won].any()


def turned(states: Any) -> Any:
    """The same games with every seat's things given to the next seat clockwise."""
    out = states.copy()
    for name in ("pieces", "plays", "places", "out"):
        out[name] = np.roll(states[name], 1, axis=1)
    out["seat"] = (states["seat"] + 1) % 4
    out["winner"] = np.where(states["winner"] >= 0, (states["winner"] + 1) % 4, -1)
    return out


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
@pytest.mark.parametrize("name", ["kimble", "kombat[two_colours=yes]", "norske"])
def test_turning_the_board_turns_observations_and_masks(name: str, board: Board) -> None:
    rules = find_rules(name, board=board)
    before = some_positions(rules)
    masks, actions = legal_masks(before, rules)
    observers = np.arange(len(before)) % 4
    seen = observe(before, rules, observers)
    after = before
    for turn in range(1, 4):
        after = turned(after)
        assert (observe(after, rules, (observers + turn) % 4) == seen).all()
        assert (legal_masks(after, rules)[0] == masks).all()
        assert (legal_masks(after, rules)[1] == actions).all()
    other = observe(after, rules, observers)
    assert (other != seen).any(), "who looks makes no difference: the test proves nothing"


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_turning_a_board_with_absent_seats(board: Board) -> None:
    red_blue = find_rules("norske", board=board, seats="RB")
    blue_yellow = find_rules("norske", board=board, seats="BY")
    before = some_positions(red_blue)
    after = turned(before)
    for observer in range(4):
        here = observe(before, red_blue, [observer] * len(before))
        there = observe(after, blue_yellow, [(observer + 1) % 4] * len(after))
        assert (here == there).all()


def test_the_mask_shows_the_legal_actions_bit_by_bit() -> None:
    rules = find_rules("kimble", board="ludo52")
    masks, actions = legal_masks(some_positions(rules), rules)
    assert masks.shape[1] == rules.board.actions == 58
    expected = [[bits >> a & 1 for a in range(58)] for bits in actions.tolist()]
    assert masks.tolist() == expected
    assert masks[:, -1].any()


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_observation_and_action_speak_of_the_same_field(board: Board) -> None:
    """On the track element p of the own block and action 1 + p are one field."""
    rules = find_rules("kimble", board=board)
    states = kernel.empty_states(1)
    states["plays"], states["pieces"], states["throws"] = 1, -1, 1
    states["seat"], states["die"] = 2, 1
    for p in range(board.leave):
        states["pieces"][0, 2, 0] = p
        own_track = observe(states, rules, [2])[0][observation_layout(rules).slice("track", 0)]
        mask = legal_masks(states, rules)[0][0]
        assert np.flatnonzero(own_track).tolist() == [p]
        assert np.flatnonzero(mask[:-1]).tolist() == [1 + p]


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_the_parts_of_the_layout_cover_the_observation_once(board: Board) -> None:
    layout = observation_layout(find_rules("kimble", board=board, pieces=3))
    assert layout.size == observation_size(board) == SIZES[board.name]
    assert layout.actions == board.actions
    elements = [k for part in layout.parts for k in range(part.start, part.stop)]
    assert elements == list(range(layout.size))
    for part in layout.parts:
        assert (layout.high[part.slice] == part.high).all()
    assert not layout.low.any()
    assert layout.high.max() == 3
    with pytest.raises(ValueError, match="read-only"):
        layout.high[0] = 5


def test_the_layout_names_its_parts() -> None:
    layout = observation_layout(find_rules("kimble"))
    assert layout.slice("track", 0) == slice(0, 28)
    assert layout.slice("home_base", 3) == slice(143, 144)
    assert layout.slice("die") == slice(152, 158)
    with pytest.raises(KeyError, match="no part 'dice' with seat None; known: track"):
        layout.slice("dice")
    with pytest.raises(KeyError, match="no part 'die' with seat 0"):
        layout.slice("die", 0)


def test_equal_rules_share_one_layout() -> None:
    assert observation_layout(find_rules("norske")) is observation_layout(find_rules("norske"))


def test_named_views_are_views_of_one_observation_or_many() -> None:
    rules = find_rules("norske")
    states = some_positions(rules, 24)
    seen = observe(states, rules, states["seat"])
    views = named_views(seen.reshape(4, 6, -1), rules)
    assert views["track"].shape == (4, 6, 4, 28)
    assert views["stretch"].shape == (4, 6, 4, 4)
    assert views["home"].shape == views["seat_to_act"].shape == (4, 6, 4)
    assert views["die"].shape == (4, 6, 6)
    assert views["throws"].shape == views["sixes"].shape == (4, 6)
    assert all(np.shares_memory(view, seen) for view in views.values())
    whole = views["track"].sum(axis=(2, 3)) + views["stretch"].sum(axis=(2, 3))
    whole += views["home_base"].sum(axis=2) + views["home"].sum(axis=2)
    assert (whole == 16).all()
    assert (views["seat_to_act"][..., 0] == 1).all()
    one = named_views(seen[0], rules)
    one["throws"][...] = 3
    one["sixes"][...] = 1
    assert seen[0, -2:].tolist() == [3, 1]


def test_named_views_refuse_what_is_no_observation() -> None:
    with pytest.raises(ValueError, match=r"160 elements in its last axis, .* \(3, 159\)"):
        named_views(np.zeros((3, 159), np.int8), find_rules("kimble"))


def test_an_absent_seat_is_all_zeros() -> None:
    rules = find_rules("kimble", seats="RY")
    states = some_positions(rules, 30)
    seen = observe(states, rules, np.full(30, 2))
    block = observation_layout(rules).block
    assert not seen[:, block : 2 * block].any()
    assert not seen[:, 3 * block : 4 * block].any()
    assert seen[:, 2 * block : 3 * block].any()


def test_versions_are_positive_whole_numbers() -> None:
    assert isinstance(observation.OBSERVATION_VERSION, int)
    assert isinstance(observation.ACTION_VERSION, int)
    assert observation.OBSERVATION_VERSION > 0
    assert observation.ACTION_VERSION > 0
