"""``kimble watch``: a recorded game step by step, by keys in a terminal or as lines in a pipe."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import GameRecord, format_position, read_records
from kimble_env.render.as_text import text as board_text
from kimble_env.render.view import LastMove, make_view
from kimble_env.rules import Rules

KEYS = "space forward   b back   a goes by itself   g start   G end   q stops"


@dataclass(frozen=True)
class Step:
    """What stands after one call of the game: a throw, a move, or a seat that went out."""

    state: npt.NDArray[np.void]
    last: LastMove | None
    """The last throw that is over."""
    resolved: int
    """Throws resolved so far in this game."""


def steps_of(record: GameRecord) -> tuple[Rules, list[Step]]:
    """Replay a record; return its rules and every position it went through, the first included.

    Raises:
        KimbleError: the record does not replay; it says where.
    """
    game = Game.from_record(record)
    states = [game.state]
    while True:
        try:
            game.undo()
        except KimbleError:
            break
        states.append(game.state)
    steps: list[Step] = []
    last = None
    for state in reversed(states):
        last = LastMove.from_state(game.rules, state) or last
        steps.append(Step(state, last, int(state["plies"][0])))
    return game.rules, steps


def pick_game(path: Path, number: int | None) -> tuple[GameRecord, int]:
    """Return a game of a file and how many it holds; the last one if no number is given.

    Raises:
        KimbleError: the file has no such game, or none at all.
        OSError: it cannot be opened.
    """
    try:
        records = read_records(path)
    except KimbleError as error:
        raise KimbleError(f"{path}: {error}") from error
    if not records:
        raise KimbleError(f"{path} holds no game")
    if number is not None and not 1 <= number <= len(records):
        raise KimbleError(f"{path} holds games 1 to {len(records)}, got {number}")
    return records[(number or len(records)) - 1], len(records)


def watch(path: Path, number: int | None, boards: bool, delay: float | None, as_json: bool) -> None:
    """Show a recorded game.

    Raises:
        KimbleError: the record cannot be read or replayed.
        OSError: the file cannot be opened.
    """
    record, _ = pick_game(path, number)
    rules, steps = steps_of(record)
    terminal = sys.stdout.isatty() and sys.stdin.isatty()
    if as_json:
        for line in json_lines(rules, steps):
            print(json.dumps(line))
    elif boards or not terminal:
        for text in plain_lines(record, rules, steps, boards):
            print(text)
    else:
        _Viewer(record, rules, steps, delay).run()


def _after_throws(steps: list[Step]) -> Iterator[Step]:
    """Yield the steps at which a throw was over, or a seat went out."""
    for before, step in pairwise(steps):
        thrown = step.state["die"][0] != 0 and before.state["die"][0] == 0
        if not thrown or step is steps[-1]:
            yield step


def json_lines(rules: Rules, steps: list[Step]) -> Iterator[dict[str, Any]]:
    """Yield the start, then a line for every throw: what happened and where it led."""
    yield {"throw": 0, "position": format_position(rules, steps[0].state), "text": ""}
    for step in _after_throws(steps):
        view = make_view(rules, step.state, step.last)
        last = step.last if step.state["die"][0] == 0 else None
        yield {
            "throw": step.resolved,
            "seat": None if last is None else SEAT_LETTERS[last.seat],
            "die": view.die,
            "position": format_position(rules, step.state),
            "text": view.last_sentence() if last is not None else view.headline(),
        }


def heading(record: GameRecord, rules: Rules) -> str:
    """Return one line: the rules and who plays."""
    names = ", ".join(record.players) or f"{rules.players} players"
    return f"{rules}: {names}"


def plain_lines(record: GameRecord, rules: Rules, steps: list[Step], boards: bool) -> Iterator[str]:
    """Yield the game as text: a line for every throw, with its board if ``boards``."""
    yield heading(record, rules)
    for step in _after_throws(steps):
        view = make_view(rules, step.state, step.last)
        if boards:
            yield ""
            yield board_text(rules, step.state, last=step.last).rstrip("\n")
        else:
            waits = step.state["die"][0] != 0
            yield f"{step.resolved:4}  {view.headline() if waits else view.last_sentence()}"
    yield ""
    yield make_view(rules, steps[-1].state).headline()


class _Viewer:
    """The game on the terminal's other screen, moved through by keys."""

    def __init__(
        self, record: GameRecord, rules: Rules, steps: list[Step], delay: float | None
    ) -> None:
        self.record, self.rules, self.steps = record, rules, steps
        self.delay = 0.6 if delay is None else delay
        self.at, self.runs, self.done = 0, delay is not None, False

    def run(self) -> None:
        from kimble_app.terminal import keyboard, screen

        due = time.monotonic() + self.delay
        with screen(), keyboard() as keys:
            self._draw()
            while not self.done:
                wait = max(0.01, due - time.monotonic()) if self.runs else 0.5
                for key in keys.read(min(wait, 0.5)):
                    self.press(key)
                    self._draw()
                if self.runs and time.monotonic() >= due:
                    self._go(1)
                    due = time.monotonic() + self.delay
                    self._draw()

    def press(self, key: str) -> None:
        if key in (" ", "n", "right", "down", "enter"):
            self._go(1)
        elif key in ("b", "p", "left", "up", "back"):
            self._go(-1)
        elif key == "a":
            self.runs = not self.runs
        elif key == "g":
            self.at = 0
        elif key == "G":
            self.at = len(self.steps) - 1
        elif key in ("q", "stop", "escape"):
            self.done = True

    def _go(self, by: int) -> None:
        self.at = min(max(self.at + by, 0), len(self.steps) - 1)
        if self.at == len(self.steps) - 1:
            self.runs = False

    def _draw(self) -> None:
        step = self.steps[self.at]
        colour = "NO_COLOR" not in os.environ
        board = board_text(self.rules, step.state, colour=colour, last=step.last)
        lines = [heading(self.record, self.rules), *board.rstrip("\n").split("\n")[2:], ""]
        lines += [f"step {self.at} of {len(self.steps) - 1}   {KEYS}"]
        lines = lines[: shutil.get_terminal_size().lines]
        text = "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in lines[:-1])
        sys.stdout.write(text + f"{lines[-1]}\x1b[K\x1b[J")
        sys.stdout.flush()
