"""Rule sets: every option acts, every fault is named, texts and hashes say what is played.

The worked cases are in ``test_worked_cases.py``, boards in ``test_board.py``.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from kimble_env import PRESETS, Board, Game, KimbleError, Rules, RulesError, find_rules
from kimble_env.rules import OPTIONS, R_SIZE

# ------------------------------------------------------------------------- what each option does


@dataclass(frozen=True)
class Effect:
    """What an option changes: the same dice and moves, without it and with it.

    ``lines`` are pairs (without, with) of what :func:`story` tells.
    """

    preset: str
    option: str
    position: str
    play: str
    without: str
    within: str


EFFECTS = {
    "board": Effect("kimble", "cross40", "R30/B-/Y-/G- R 1 1", "30-31", "R31/B-/Y-/G- B", ""),
    "pieces": Effect("kimble", "1", "R29/B-/Y-/G- R - 1", "", "R29/B-/Y-/G- R", "fault"),
}


def story(text: str, script: str) -> str:
    """Play a script of dice and moves (``6 enter 4 pass``) and return the position, or the error."""
    try:
        game = Game.from_text(text)
        for word in script.split():
            if word.isdigit():
                game.throw(int(word))
            elif ":" in word:
                move, a, d = word.split(":")
                game.play(move, (int(a), int(d)))
            else:
                game.play(word)
        return game.to_text().split(" ", 1)[1]
    except KimbleError as error:
        return type(error).__name__


def legal(text: str) -> str:
    """The legal moves of a position, or the error."""
    try:
        return " ".join(str(move) for move in Game.from_text(text).legal_moves)
    except KimbleError as error:
        return type(error).__name__


# option: preset, value, position, script, what follows without, what follows with
PLAYED = {
    "board": (
        "kimble", "cross40", "R27/B-/Y-/G- R - 1", "1 27-28 4 pass",
        "R28/B-/Y-/G- Y - 1", "R28/B-/Y-/G- Y - 1",
    ),
    "pieces": (
        "kimble", "2", "R27,28/B-/Y-/G- R - 1", "4 27-31",
        "R28,31/B-/Y-/G- B - 1", "R28,31/B-/Y-/G- R * 0",
    ),
    "max_turns": (
        "kimble", "1", "R-/B-/Y-/G- R - 1", "1 pass 1 pass",
        "R-/B-/Y-/G- Y - 1", "GameOverError",
    ),
    "extra_throw_needs_move": (
        "kimble", "yes", "R3/B-/Y-/G- R - 1", "6 pass",
        "R3/B-/Y-/G- R - 1", "R3/B-/Y-/G- B - 1",
    ),
    "max_sixes": (
        "kimble", "2", "R-/B-/Y-/G- R - 1", "6 enter 6 0-6",
        "R6/B-/Y-/G- R - 1", "R6/B-/Y-/G- B - 1",
    ),
    "play_for_places": (
        "kimble", "yes", "R27,29,30,31/B-/Y-/G- R - 1", "1 27-28",
        "R28,29,30,31/B-/Y-/G- R * 0", "R28,29,30,31/B-/Y-/G- B - 1 places=R",
    ),
    "pass_allowed": (
        "kimble", "no", "R3/B-/Y-/G- R - 1", "2 pass",
        "R3/B-/Y-/G- B - 1", "IllegalMoveError",
    ),
    "stretch_block": (
        "kimble", "yes", "R27,29/B-/Y-/G- R - 1", "4 27-31",
        "R29,31/B-/Y-/G- B - 1", "IllegalMoveError",
    ),
    "two_colours": (
        "kimble", "yes", "R3/B-/Y20/G- R - 1", "3 3-6",  # Y20 stands on red's 6
        "R6/B-/Y-/G- B - 1", "IllegalMoveError",
    ),
    "battles": (
        "kimble", "yes", "R3/B1/Y-/G- R - 1", "5 3-8:1:6",
        "IllegalMoveError", "R-/B1/Y-/G- B - 1",
    ),
    "batteries": (
        "norske", "no", "R0/B-/Y-/G- R - 1", "6 0-6 6 enter 6 enter",
        "R0x2,6/B-/Y-/G- R - 1", "IllegalMoveError",
    ),
    "protected_start": (
        "norske", "no", "R3/B0/Y-/G- R - 1", "4 3-7",
        "R-/B0/Y-/G- B - 1", "R7/B-/Y-/G- B - 3",
    ),
    "own_collision": (
        "norske", "mover", "R29x2,31/B-/Y-/G- R - 1", "2 29-31",
        "R31x2/B-/Y-/G- B - 3", "R31/B-/Y-/G- B - 3",
    ),
    "home": (
        "norske", "no", "R30/B-/Y-/G- R - 1", "2 30-H",
        "RH/B-/Y-/G- B - 3", "IllegalMoveError",
    ),
    "empty_throws": (
        "norske", "2", "R3/B-/Y-/G- R - 1", "2 3-5",
        "R5/B-/Y-/G- B - 3", "R5/B-/Y-/G- B - 2",
    ),
    "three_throws_when": (
        "norske", "none_on_track", "R26/B-/Y-/G30 Y - 1", "",
        "PositionError", "",
    ),
}  # fmt: skip
