"""Differential play: the package against the independent oracle, over every option and board.

Both play the same dice, moves and battles from random positions; after every call the position
text, the legal moves and the events must be equal. ``KIMBLE_SEED`` shifts the random positions,
so that repeated long runs see new ones.
"""

from __future__ import annotations

import os
import random
import zlib
from typing import Any

import pytest
from oracle import Oracle, random_position

from kimble_env import Game
from kimble_env.rules import OPTIONS

BOARDS = ("kimble28", "cross40", "ludo52")
SEATINGS = ((0, 1, 2, 3), (0, 2), (0, 1, 2), (1, 2), (1, 2, 3))
FAST_PLIES = 2_000
LONG_PLIES = 40_000
STEPS_PER_GAME = 60

CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("kimble", {}),
    ("kimble", {"pass_allowed": False}),
    ("kombat", {}),
    ("norske", {}),
    ("kombat", {"pass_allowed": False}),
    ("norske", {"own_collision": "mover"}),
    ("norske", {"own_collision": "stander"}),
    ("norske", {"three_throws_when": "none_on_track"}),
    ("norske", {"pass_allowed": True}),
    ("norske", {"batteries": False}),
    ("norske", {"own_collision": "illegal"}),
    ("kimble", {"batteries": True}),
    ("norske", {"protected_start": False}),
    ("norske", {"home": False}),
    ("norske", {"empty_throws": 1}),
    ("kimble", {"home": True}),
    ("kimble", {"protected_start": True, "pass_allowed": False}),
    ("kimble", {"own_collision": "smaller", "pass_allowed": False}),
    ("kimble", {"two_colours": True}),
    ("kombat", {"two_colours": True, "pass_allowed": False}),
    ("kimble", {"play_for_places": True}),
    ("kombat", {"play_for_places": True}),
    ("norske", {"play_for_places": True}),
    ("kimble", {"max_sixes": 2}),
    ("norske", {"max_sixes": 3}),
    ("kimble", {"extra_throw_needs_move": True}),
    ("norske", {"extra_throw_needs_move": True, "three_throws_when": "none_on_track"}),
    ("kimble", {"stretch_block": True}),
    ("norske", {"stretch_block": True}),
    ("kimble", {"max_turns": 50}),
    ("norske", {"max_turns": 30}),
    ("kimble", {"empty_throws": 3}),
    ("kimble", {"empty_throws": 3, "home": True, "three_throws_when": "none_on_track"}),
    ("kombat", {"max_sixes": 1, "extra_throw_needs_move": True, "stretch_block": True}),
]


def name_of(config: tuple[str, dict[str, Any]]) -> str:
    """A readable test id, for example ``norske-own_collision=mover``."""
    preset, options = config
    return "-".join([preset, *(f"{name}={value}" for name, value in options.items())])


class Pair:
    """One game on both sides, compared after every call."""

    def __init__(self, text: str) -> None:
        self.oracle = Oracle.from_text(text)
        self.game = Game.from_text(text)
        self.story = [text]
        self.compare(events=False)

    def compare(self, events: bool = True) -> None:
        """Position text, legal moves, events and the end must be the same on both sides."""
        assert self.game.to_text() == self.oracle.to_text(), self.story
        legal = [str(move) for move in self.game.legal_moves]
        assert legal == self.oracle.legal_moves(), self.story
        if events:
            assert [e.as_tuple() for e in self.game.events] == self.oracle.events, self.story
        assert self.game.over == self.oracle.over, self.story
        if self.oracle.over:
            result = self.game.result
            assert result is not None
            assert result.winner == self.oracle.winner, self.story
            assert result.truncated == self.oracle.truncated, self.story

    def throw(self, die: int) -> None:
        self.story.append(f"throw {die}")
        self.game.throw(die)
        self.oracle.throw(die)
        self.compare()

    def play(self, move: str, battle: tuple[int, int] | None) -> None:
        self.story.append(f"play {move} {battle or ''}")
        self.game.play(move, battle=battle)
        self.oracle.play(move, battle)
        self.compare()

    def remove(self, seat: int) -> None:
        self.story.append(f"remove {seat}")
        self.game.remove_seat(seat)
        self.oracle.remove(seat)
        self.compare()


def start_text(rng: random.Random, preset: str, seats: tuple[int, ...], options: Any) -> str:
    """A random position, or now and then the first position of a game."""
    if rng.random() < 0.3:
        oracle = Oracle(preset, seats, **options)
        oracle.set({}, rng.choice(seats))
        return oracle.to_text()
    return random_position(rng, preset, seats, **options)


def play_pair(rng: random.Random, pair: Pair) -> int:
    """Play one game of random dice, moves and (rarely) seats going out; return its plies."""
    oracle, plies = pair.oracle, 0
    while not oracle.over and plies < STEPS_PER_GAME:
        plies += 1
        if oracle.die is None:
            pair.throw(rng.choice((1, 2, 3, 4, 5, 6, 6)))
        moves = oracle.legal_moves()
        if not moves:
            continue
        if len(oracle.seats) > 2 and not oracle.options["two_colours"] and rng.random() < 0.01:
            gone = oracle.places + oracle.out
            pair.remove(rng.choice([s for s in oracle.seats if s not in gone]))
            continue
        move = rng.choice(moves)
        is_battle = pair.game.starts_battle(move)
        pair.play(move, (rng.randint(1, 6), rng.randint(1, 6)) if is_battle else None)
    return plies


def run(preset: str, options: dict[str, Any], board: str, plies: int) -> int:
    """Play at least ``plies`` plies, cycling through seatings and piece counts."""
    seed = f"{preset} {options} {board} {os.environ.get('KIMBLE_SEED', 0)}"
    rng, done, k = random.Random(zlib.crc32(seed.encode())), 0, 0
    while done < plies:
        seats = SEATINGS[0] if options.get("two_colours") else SEATINGS[k % len(SEATINGS)]
        full = {"board": board, "pieces": (4, 4, 3, 2, 1)[k // len(SEATINGS) % 5], **options}
        done += play_pair(rng, Pair(start_text(rng, preset, seats, full)))
        k += 1
    return done


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_package_and_oracle_agree(config: tuple[str, dict[str, Any]], board: str) -> None:
    """Together over 300,000 plies where the engine is compiled (a tenth of that uncompiled)."""
    preset, options = config
    plain = len(options) == 0 and board == "kimble28"
    plies = FAST_PLIES * (20 if plain else 1)
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        plies //= 20
    assert run(preset, options, board, plies) >= plies


@pytest.mark.long
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_package_and_oracle_agree_for_long(
    config: tuple[str, dict[str, Any]], board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together about four million plies, on other positions than the fast test."""
    preset, options = config
    monkeypatch.setenv("KIMBLE_SEED", os.environ.get("KIMBLE_SEED", "long"))
    assert run(preset, options, board, LONG_PLIES) >= LONG_PLIES


def test_every_option_is_played_differently_from_its_default() -> None:
    """A new option without differential play fails here.

    What is left out is random, the starting order, or off the board (the referee's own tests).
    """
    played = {name for _, options in CONFIGS for name in options} | {"board", "pieces", "battles"}
    assert played | {"starter", "die"} >= set(OPTIONS) - {"late", "win_at", "members"}
