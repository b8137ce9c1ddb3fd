"""What is always true (rules, section 10), under hypothesis: random positions, dice and choices."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_position

from kimble_env import Game
from kimble_env.board import BOARDS, SEATS

RULES: list[tuple[str, dict[str, Any]]] = [
    ("kimble", {}),
    ("kimble", {"pass_allowed": False}),
    ("kimble", {"two_colours": True}),
    ("kombat", {}),
    ("norske", {}),
    ("norske", {"own_collision": "mover"}),
    ("norske", {"own_collision": "stander", "three_throws_when": "none_on_track"}),
    ("norske", {"play_for_places": True}),
]


@st.composite
def positions(draw: st.DrawFn, only: str = "") -> str:
    """Position texts over rule sets, boards, seatings and numbers of pieces."""
    rules = [(name, options) for name, options in RULES if name.startswith(only)]
    preset, options = draw(st.sampled_from(rules))
    seats = [(0, 1, 2, 3)] if options.get("two_colours") else [(0, 1, 2, 3), (0, 2), (1, 2, 3)]
    full = {
        "board": draw(st.sampled_from(sorted(BOARDS))),
        "pieces": draw(st.integers(1, 4)),
        **options,
    }
    rng = random.Random(draw(st.integers(0, 2**32)))
    return random_position(rng, preset, draw(st.sampled_from(seats)), **full)


def play_on(game: Game, rng: random.Random, throws: int) -> list[Game]:
    """Play up to ``throws`` random throws and return a copy of the game after every call."""
    seen = [game.copy()]
    for _ in range(throws):
        if game.over:
            break
        if game.die is None:
            game.throw()
            seen.append(game.copy())
        if game.legal_moves:
            game.play(rng.choice(game.legal_moves))
            seen.append(game.copy())
    return seen


def check_position(game: Game) -> None:
    """Every seat has all its pieces somewhere, and no field holds what it must not hold."""
    rules = game.rules
    board = rules.board
    on_ring: dict[int, int] = {}
    for seat, pieces in game.pieces.items():
        assert len(pieces) == rules.pieces
        assert all(-1 <= p <= rules.last_progress for p in pieces)
        standing = [p for p in pieces if 0 <= p < (board.home if rules.home else board.home + 1)]
        if not rules.batteries:
            assert len(set(standing)) == len(standing)
        for field in {board.field(seat, p) for p in standing} - {None}:
            assert on_ring.setdefault(field, seat) == seat, "two seats share a field"
    if game.over:
        assert not game.legal_moves
    elif game.die is not None:
        assert game.legal_moves, "a seat is to act and has nothing to choose"


@settings(max_examples=150, deadline=None)
@given(text=positions(), seed=st.integers(0, 2**63))
def test_every_position_of_a_game_can_be(text: str, seed: int) -> None:
    for game in play_on(Game.from_text(text, seed=seed), random.Random(seed), 40):
        check_position(game)
        assert Game.from_text(game.to_text()).to_text() == game.to_text()


@settings(max_examples=150, deadline=None)
@given(text=positions(), seed=st.integers(0, 2**63))
def test_progress_falls_only_to_home_base_and_arrivals_stay(text: str, seed: int) -> None:
    seen = play_on(Game.from_text(text, seed=seed), random.Random(seed), 40)
    for before, after in itertools.pairwise(seen):
        for seat in before.pieces:
            old, new = sorted(before.pieces[seat]), sorted(after.pieces[seat])
            lost = new.count(-1) - old.count(-1)
            kept = new[max(new.count(-1), 0) :]
            # Every piece still on the route stands where one stood before, or further on.
            pool = sorted(p for p in old if p >= 0) + [0] * max(0, -lost)
            for p in sorted(kept):
                assert any(q <= p for q in pool)
                pool.remove(max(q for q in pool if q <= p))
            if after.rules.home:
                home = after.rules.board.home
                assert new.count(home) >= old.count(home)


def changed_progress(before: Game, after: Game, seat: int) -> list[tuple[int, int]]:
    """The numbers of pieces of a seat on each progress that differ: (progress, difference)."""
    old, new = before.pieces[seat], after.pieces[seat]
    places = sorted(set(old) | set(new))
    return [(p, new.count(p) - old.count(p)) for p in places if new.count(p) != old.count(p)]


@settings(max_examples=150, deadline=None)
@given(text=positions(), seed=st.integers(0, 2**63))
def test_a_throw_moves_one_unit_and_sends_home_what_its_events_say(text: str, seed: int) -> None:
    game = Game.from_text(text, seed=seed)
    rng = random.Random(seed)
    for _ in range(30):
        if game.over:
            return
        if game.die is None:
            game.throw()
        if not game.legal_moves:
            continue
        before = game.copy()
        game.play(rng.choice(game.legal_moves))
        for seat in before.pieces:
            lost = sum(e.count for e in game.events if e.kind == "loss" and e.seat == seat)
            entered = 0 if seat != before.seat else before.pieces[seat].count(-1)
            fell = game.pieces[seat].count(-1) - before.pieces[seat].count(-1)
            assert lost - 1 <= fell <= lost
            assert fell == lost or entered
            if seat != before.seat and not lost:
                assert changed_progress(before, game, seat) == []


@settings(max_examples=200, deadline=None)
@given(text=positions("norske"), die=st.integers(1, 6))
def test_norske_moves_are_all_clean_or_all_bad(text: str, die: int) -> None:
    """R28, R29, judged by what the moves do: a bad move loses pieces of the mover's own seat."""
    game = Game.from_text(text)
    if game.die is None:
        game.throw(die)
    if game.die is None:
        return
    seat, kinds = game.seat, set()
    for move in game.legal_moves:
        after = game.copy()
        after.play(move)
        kinds.add(any(e.kind == "loss" and e.seat == seat for e in after.events))
    assert len(kinds) == 1


def turned(text: str) -> str:
    """The same position one seat further round the table."""
    head, pieces, seat, *rest = text.split(" ")
    letters = "RBYG"
    turn = {letter: letters[(k + 1) % SEATS] for k, letter in enumerate(letters)}
    words = [turn[p[0]] + p[1:] for p in pieces.split("/")]
    parts = sorted(words, key=lambda word: letters.find(word[0]))
    rest = [
        key + "=" + "".join(turn[c] for c in value) if key in ("places", "out") else word
        for word in rest
        for key, _, value in [word.partition("=")]
    ]
    return " ".join([head, "/".join(parts), turn[seat], *rest])


@settings(max_examples=200, deadline=None)
@given(text=positions(), die=st.integers(1, 6))
def test_turning_the_board_turns_the_legal_moves(text: str, die: int) -> None:
    here, there = Game.from_text(text), Game.from_text(turned(text))
    if here.die is None:
        here.throw(die)
        there.throw(die)
        assert turned(here.to_text()) == there.to_text()
    assert [str(m) for m in here.legal_moves] == [str(m) for m in there.legal_moves]
    for move in here.legal_moves:
        one, other = here.copy(), there.copy()
        battle = (3, 4) if one.starts_battle(move) else None
        one.play(move, battle=battle)
        other.play(str(move), battle=battle)
        assert turned(one.to_text()) == other.to_text()


@settings(max_examples=60, deadline=None)
@given(text=positions(), seed=st.integers(0, 2**63))
def test_a_recorded_game_replays_to_the_same_positions(text: str, seed: int) -> None:
    game = Game.from_text(text, seed=seed)
    play_on(game, random.Random(seed), 60)
    replayed = Game.from_record(game.record())
    assert replayed.to_text() == game.to_text()
    while replayed.plies > 0 and game.plies > 0:
        replayed.undo()
        game.undo()
        assert replayed.to_text() == game.to_text()


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_games_come_to_an_end(name: str) -> None:
    """Random games of every rule set end with a winner whose pieces are all up."""
    rng = random.Random(5)
    for seed in range(20):
        game = Game(name, seed=seed)
        while not game.over:
            if game.die is None:
                game.throw()
            if game.legal_moves:
                moves = [m for m in game.legal_moves if str(m) != "pass"] or game.legal_moves
                game.play(rng.choice(moves))
        assert game.winner is not None
        assert min(game.pieces[game.winner]) > game.rules.board.leave
