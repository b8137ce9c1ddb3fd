"""Boards: the three that are built in, boards of one's own, and every fault of a description."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kimble_env import Board, Game, RulesError, find_rules, register_board
from kimble_env.board import BOARDS, find_board

GOOD = {"name": "mine", "ring": 24, "starts": (0, 6, 12, 18), "leave": 23, "stretch": 4}


@pytest.fixture
def known_boards() -> Iterator[None]:
    """Forget the boards that a test registers."""
    before = dict(BOARDS)
    yield
    BOARDS.clear()
    BOARDS.update(before)


@pytest.mark.parametrize(
    ("name", "ring", "starts", "leave", "stretch", "home", "actions"),
    [
        ("kimble28", 28, (0, 7, 14, 21), 27, (28, 31), 32, 34),
        ("cross40", 40, (0, 10, 20, 30), 39, (40, 43), 44, 46),
        ("ludo52", 52, (0, 13, 26, 39), 50, (51, 55), 56, 58),
    ],
)
def test_built_in_board(name, ring, starts, leave, stretch, home, actions):
    board = find_board(name)
    assert (board.ring, board.starts, board.leave) == (ring, starts, leave)
    assert (board.stretch_first, board.stretch_last) == stretch
    assert board.home == home
    assert (board.actions, board.pass_action) == (actions, actions - 1)


def test_fields_are_counted_from_the_own_start():
    board = find_board("kimble28")
    assert [board.field(1, p) for p in (-1, 0, 20, 21, 27, 28)] == [None, 7, 27, 0, 6, None]


def test_the_field_before_the_start_is_not_on_the_ludo_route():
    board = find_board("ludo52")
    assert board.field(0, 50) == 50
    assert board.field(0, 51) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"ring": 7, "starts": (0, 1, 2, 3), "leave": 6}, "ring must have at least 8 fields"),
        ({"ring": 24.0}, "must be whole numbers"),
        ({"ring": True}, "must be whole numbers"),
        ({"starts": [0, 6, 12, 18]}, "starts must be a tuple of 4 whole numbers"),
        ({"starts": 5}, "starts must be a tuple of 4 whole numbers"),
        ({"starts": (0, 6, 12)}, "expected 4 starts, got 3"),
        ({"starts": (0, 6, 12, 24)}, "starts must lie in 0..23"),
        ({"starts": (0, 6, 6, 18)}, "starts must be distinct"),
        ({"starts": (0, 12, 6, 18)}, "starts must go clockwise"),
        ({"leave": 24}, "the lap returns to its own start: leave must be below ring 24, got 24"),
        ({"leave": 5}, "leave must be at least 6, got 5"),
        ({"stretch": 0}, "the stretch needs at least 1 field, got 0"),
        ({"ring": 60, "leave": 52}, "the route is too long"),
    ],
)
def test_fault_of_a_board_is_named(change, fault):
    with pytest.raises(RulesError, match=r"board 'mine': ") as caught:
        Board(**{**GOOD, **change})
    assert any(fault in text for text in caught.value.faults)


def test_all_faults_of_a_board_are_named_at_once():
    with pytest.raises(RulesError) as caught:
        Board("mine", ring=24, starts=(0, 6, 6, 30), leave=30, stretch=0)
    assert len(caught.value.faults) == 4


def test_clockwise_starts_may_wrap_round():
    assert Board(**{**GOOD, "starts": (20, 2, 8, 14)}).field(0, 5) == 1


def test_registered_board_plays_and_is_written(known_boards):
    board = register_board(Board("tiny", ring=12, starts=(0, 3, 6, 9), leave=11, stretch=2))
    game = Game("kimble", board="tiny", pieces=2, seed=3)
    assert game.to_text().startswith("kimble[board=tiny,pieces=2] R-/B-/Y-/G- ")
    assert Game.from_text(game.to_text()).to_text() == game.to_text()
    while not game.result:
        game.throw()
        game.play(game.legal_moves[0])
    assert all(p >= board.stretch_first for p in game.pieces[game.winner])


def test_unregistered_board_plays_but_has_no_text():
    board = Board("tiny", ring=12, starts=(0, 3, 6, 9), leave=11, stretch=2)
    game = Game("kimble", board=board, pieces=2)
    game.throw(6)
    with pytest.raises(ValueError, match="register_board"):
        game.to_text()
    assert "tiny" in repr(game)


def test_register_board_refuses_another_of_the_same_name(known_boards):
    register_board(Board(**GOOD))
    register_board(Board(**GOOD))
    with pytest.raises(RulesError, match="exists already and is different"):
        register_board(Board(**{**GOOD, "stretch": 5}))


def test_register_board_wants_a_plain_word(known_boards):
    with pytest.raises(RulesError, match="must be a plain word"):
        register_board(Board(**{**GOOD, "name": "my board"}))
    assert "my board" not in BOARDS


def test_names_and_boards_are_checked():
    with pytest.raises(RulesError, match="expected a Board, got None"):
        register_board(None)
    with pytest.raises(RulesError, match="the name must be a word, got 5"):
        Board(**{**GOOD, "name": 5})


@pytest.mark.parametrize("name", ["chess64", "", None, 28, ["kimble28"]])
def test_unknown_board(name):
    with pytest.raises(RulesError, match=r"unknown board .*; known: kimble28, cross40, ludo52"):
        find_board(name)


def test_a_board_too_small_for_the_pieces():
    with pytest.raises(RulesError, match="4 pieces need as many stretch fields, tiny has 2"):
        find_rules("kimble", board=Board("tiny", 12, (0, 3, 6, 9), leave=11, stretch=2))
