"""``kimble play``: draws the board, reads lines and does in the game what they say."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from kimble_app.sitting import Sitting, line_up, seat_rules
from kimble_env.board import SEAT_NAMES
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.render.as_text import text as board_text
from kimble_env.rules import find_rules, read_seats

HELP = (
    "Enter throws or plays the only move; a number or a text such as 3-8 plays a move; "
    "? ranks the moves; u takes back your last choice; q stops."
)


@dataclass
class Settings:
    """What the command was given; see its --help."""

    agents: list[str]
    rules: str
    players: int | None
    pieces: int | None
    seat: str
    seed: int | None
    record: Path | None
    resume: Path | None
    hint: str | None
    auto: bool
    json: bool


def run(settings: Settings) -> None:
    """Play a game, from the first throw or from where a record ends.

    Raises:
        KimbleError: settings that cannot be.
        OSError: the record cannot be read or written.
    """
    sitting = begin(settings)
    out = sys.stderr if settings.json else sys.stdout
    Screen(sitting, settings, out).run()
    if settings.json:
        print(json.dumps(sitting.result()))


def begin(settings: Settings) -> Sitting:
    """Return the game that the settings mean, its record begun.

    Raises:
        KimbleError: they cannot be, or the record exists already.
    """
    if settings.resume is not None:
        if settings.agents or settings.record is not None:
            raise KimbleError("--resume takes agents and record from the game that it goes on with")
        return Sitting.resume(settings.resume)
    rules = settings.rules
    found = find_rules(rules) if settings.pieces is None else find_rules(
        rules, pieces=settings.pieces)  # fmt: skip
    people = () if settings.seat.lower() == "none" else read_seats(settings.seat)
    named = settings.agents
    seated = seat_rules(found, settings.players, len(named) if people else len(named) - 1)
    agents = named or [_best(seated)]
    names = line_up(seated, people, agents)
    path = settings.record or Path(time.strftime("kimble-%Y%m%d-%H%M%S.jsonl"))
    if path.exists():
        raise KimbleError(f"{path} exists already: --resume {path} goes on with its game")
    sitting = Sitting(Game(seated, seed=settings.seed), names, path)
    sitting.save()
    return sitting


def _best(rules: Any) -> str:
    from kimble_app.api.specs import default_agent

    return default_agent(rules)


class Screen:
    """The board, the prompts and the answers.

    Args:
        sitting: the game.
        settings: of the command.
        out: where everything is written.
    """

    def __init__(self, sitting: Sitting, settings: Settings, out: TextIO) -> None:
        self.sitting, self.settings, self.out = sitting, settings, out
        terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = terminal and "NO_COLOR" not in os.environ
        self.clears = terminal and sys.stdin.isatty()

    def run(self) -> None:
        """Play until the game is over or the person stops."""
        self._say(f"record: {self.sitting.path}")
        while True:
            self.sitting.let_agents_play()
            if self.sitting.game.over:
                break
            if self.settings.auto and self._goes_by_itself():
                continue
            self._draw()
            if not self._turn():
                self._say(f"stopped; kimble play --resume {self.sitting.path} goes on")
                return
        self._draw()
        self._say(f"record: {self.sitting.path}; kimble analyze {self.sitting.path} judges it")

    def _goes_by_itself(self) -> bool:
        """Throw, or play the only move; return False where there is a choice."""
        game = self.sitting.game
        if game.die is None:
            self.sitting.throw()
        elif len(game.legal_moves) == 1:
            self.sitting.play(game.legal_moves[0].text)
        else:
            return False
        return True

    def _turn(self) -> bool:
        """Ask until something was done; return False to stop."""
        while True:
            line = self._ask()
            if line is None or line in ("q", "quit", "exit"):
                return False
            try:
                if self._answer(line):
                    return True
            except KimbleError as error:
                self._say(f"  {error}")

    def _answer(self, line: str) -> bool:
        """Do what a line says; return True if the position has changed."""
        sitting, game = self.sitting, self.sitting.game
        moves = [move.text for move in game.legal_moves]
        if line in ("?", "hint"):
            self._hint()
            return False
        if line in ("h", "help"):
            self._say(f"  {HELP}")
            return False
        if line in ("u", "undo"):
            sitting.undo()
        elif game.die is None and line in ("", "t", "throw"):
            sitting.throw()
        elif game.die is None:
            raise KimbleError(f"no die has been thrown yet: Enter throws it, got {line!r}")
        elif line == "" and len(moves) == 1:
            sitting.play(moves[0])
        elif line.isdecimal() and 1 <= int(line) <= len(moves):
            sitting.play(moves[int(line) - 1])
        elif line in moves:
            sitting.play(line)
        else:
            listed = ", ".join(f"{k} {text}" for k, text in enumerate(moves, 1))
            raise KimbleError(f"cannot play {line!r}: one of {listed}; or ? u q h")
        return True

    def _hint(self) -> None:
        from kimble_app.api.answers import answer_move
        from kimble_app.api.schema import MoveRequest
        from kimble_app.ranking import best_judge, ranked_lines

        game = self.sitting.game
        if game.die is None:
            raise KimbleError("throw first: there is nothing to rank before the die")
        judge = self.settings.hint or best_judge(game.rules)
        answer = answer_move(MoveRequest(position=game.to_text(), agent=judge))
        numbers = {move.text: k for k, move in enumerate(game.legal_moves, 1)}
        for line in ranked_lines(answer, numbers):
            self._say(line)

    def _draw(self) -> None:
        sitting = self.sitting
        if self.clears:
            self.out.write("\x1b[H\x1b[2J")
        told = sitting.tell()
        if sitting.last is not None:
            told = told[:-1]  # the board ends with it
        for line in told:
            self._say(f"  {line}")
        seat = min((s for s, agent in sitting.agents.items() if agent is None), default=0)
        self._say(board_text(sitting.game, colour=self.colour, viewer=seat, last=sitting.last))

    def _ask(self) -> str | None:
        """Return the person's answer, None at the end of what is read."""
        game = self.sitting.game
        name = SEAT_NAMES[game.seat].capitalize()
        moves = [move.text for move in game.legal_moves]
        if game.die is None:
            prompt = f"{name}: Enter throws > "
        elif len(moves) == 1:
            prompt = f"{name} has thrown {game.die}: Enter plays {moves[0]}, the only move > "
        else:
            listed = "   ".join(f"{k} {text}" for k, text in enumerate(moves, 1))
            prompt = f"{name} has thrown {game.die}:   {listed}   (? hint) > "
        self.out.write(prompt)
        self.out.flush()
        line = sys.stdin.readline()
        if not sys.stdin.isatty():
            self.out.write("\n")
        return line.strip() if line else None

    def _say(self, text: str) -> None:
        self.out.write(text + "\n")
