"""The referee's desk: one key per call, and the lines that the terminal shows.

Nothing here knows a terminal: :meth:`Desk.press` takes a key, :meth:`Desk.lines` returns text, and
the clock is a function, so that all of it can be tested. ``referee_cli`` draws it.
"""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.errors import KimbleError
from kimble_env.ledger import CUP_SECONDS, Obligation, State
from kimble_env.ledger_rules import RULINGS
from kimble_env.notation import parse_position
from kimble_env.refereed import RefereedGame

COLOURS = {0: "31", 1: "34", 2: "33", 3: "32"}
BOLD, FAINT, REVERSED, ALARM = "1", "2", "7", "1;31"
MESSAGES = 6

HELP = (
    "1-6     the die thrown; then the number of the move   r  the program throws",
    "space   the call that is due next (pour, table, start, empty)",
    "a b     who drinks: the first or second member        p  pour   c  cup on table",
    "s       the referee's start                           e  empty cup put down",
    "k       ready before the break is over                y n  goes on alone, or not",
    "up down choose a member (>) for:   u unable   v vomits   o opens a drink",
    "                                   l leaves the table    z is back",
    "U       take the last call back (a ruling)            R  any other ruling",
    "P       write the protocol page                       q  stop; can be resumed",
)
MENU = (*RULINGS, "in_time", "position")
"""What the key R offers, by number; 0 is ``put``."""


def paint(text: str, style: str) -> str:
    """Return text in an ANSI style."""
    return f"\x1b[{style}m{text}\x1b[0m"


def _columns(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(line: str, width: int) -> str:
    """Return a line cut to a width in columns; ANSI styles take none and are kept."""
    parts, left = [], width
    for part in re.split("(\x1b\\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            parts.append(part)
            continue
        for character in part:
            left -= _columns(character)
            if left < 0:
                break
            parts.append(character)
    return "".join(parts)


def wrap(text: str, width: int, style: str) -> list[str]:
    """Return a text in a style as lines of at most a width, at least one."""
    lines = textwrap.wrap(text, max(width, 10), subsequent_indent="   ") or [""]
    return [paint(line, style) for line in lines]


def minutes(seconds: int) -> str:
    """Return seconds as m:ss, or h:mm:ss."""
    hours, rest = divmod(seconds, 3600)
    clock = f"{rest // 60}:{rest % 60:02d}" if not hours else f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{clock}" if hours else clock


def in_effect(log: list[dict[str, Any]]) -> list[int]:
    """Return the numbers (from 1) of the entries of a log that no ruling has taken back.

    A ruling that goes back is in effect itself if it also sets something.
    """
    before: list[list[int]] = []
    for number, entry in enumerate(log, 1):
        stack = before[-1] if before else []
        if "back_to" in entry:
            stack = before[entry["back_to"] - 1]
        if "back_to" not in entry or entry.keys() & {"do", "put", "position"}:
            stack = [*stack, number]
        before.append(stack)
    return before[-1]


@dataclass
class Prompt:
    """A question whose answer is typed."""

    text: str
    answer: Callable[[str], None]
    typed: str = ""


class Desk:
    """Everything between a key and the match.

    Args:
        game: the match.
        exact: returns the seconds of the match so far, with fractions; never falls.
        save: called after every call, before anybody sees what came of it.
        protocol: writes the protocol page and returns where.
    """

    def __init__(
        self,
        game: RefereedGame,
        exact: Callable[[], float],
        save: Callable[[], None],
        protocol: Callable[[], str],
    ) -> None:
        self.game, self._exact, self._save, self._protocol = game, exact, save, protocol
        self.messages: list[tuple[str, str]] = []  # style, text
        self.cursor = 0
        self.prompt: Prompt | None = None
        self.menu = False
        self.help = True
        self.board = True
        self.done = False
        self.bell = False
        self._started: tuple[int, int, float] | None = None  # cup: number, start, exact start
        self._members = [(seat, i) for seat in game.referee.state.teams for i in (0, 1)]
        self._was_over = game.over

    # ---- time

    def now(self) -> int:
        """Return the second of the match.

        While a cup is drunk whole seconds are counted from the very moment of the start, so that
        45 s are 45 s whatever fraction of a second it began at.
        """
        exact, referee = self._exact(), self.game.referee
        front = referee.state.front
        t = int(exact)
        if front is not None and front.started is not None and self._started is not None:
            number, started, since = self._started
            if (number, started) == (front.number, front.started):
                t = started + int(exact - since)
        return max(t, referee.now)

    def tick(self) -> bool:
        """Let what happens by itself happen; tell whether something did."""
        change = self.game.referee.next_change()
        t = self.now()
        if change is None or t < change:
            return False
        self._call(lambda: self.game.referee.tick(t))
        return True

    # ---- keys

    def press(self, key: str) -> None:
        """Do what a key means: a character, or up, down, enter, back, escape."""
        self.bell = False
        try:
            self.tick()
            if key == "stop":
                self.done = True
            elif self.prompt is not None:
                self._type(self.prompt, key)
            elif self.menu:
                self._choose_ruling(key)
            else:
                self._command(key)
        except KimbleError as error:
            self._say(str(error), ALARM)
            self.bell = True

    def _type(self, prompt: Prompt, key: str) -> None:
        if key == "enter":
            self.prompt = None
            prompt.answer(prompt.typed.strip())
        elif key == "escape":
            self.prompt = None
            self._say("never mind", FAINT)
        elif key == "back":
            prompt.typed = prompt.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            prompt.typed += key

    def _command(self, key: str) -> None:
        simple: dict[str, Callable[[], None]] = {
            "r": self._throw,
            " ": self._due,
            "a": lambda: self._drinker(0),
            "b": lambda: self._drinker(1),
            "p": self._pour,
            "c": lambda: self._team_call("table"),
            "s": lambda: self._team_call("start"),
            "e": lambda: self._team_call("end"),
            "k": lambda: self._team_call("end_break"),
            "y": lambda: self._decide("go_on"),
            "n": lambda: self._decide("decline"),
            "up": lambda: self._move_cursor(-1),
            "down": lambda: self._move_cursor(1),
            "U": self._ask_undo,
            "R": self._open_menu,
            "P": lambda: self._say(f"protocol: {self._protocol()}", BOLD),
            "?": self._toggle_help,
            "m": self._toggle_board,
            "q": self._stop,
        }
        calls = {"u": "unable", "v": "vomit", "o": "open", "l": "leave", "z": "back"}
        if key in simple:
            simple[key]()
        elif key in calls:
            seat, member = self._members[self.cursor]
            self._member_call(calls[key], seat, member)
        elif key.isdecimal() and len(key) == 1:
            self._number(int(key))
        elif key not in ("enter", "escape", "back", "left", "right", "unknown"):
            self._say(f"the key {key!r} means nothing here; ? shows the keys", FAINT)

    def _number(self, number: int) -> None:
        moves = self.game.legal_moves
        if not moves:
            self._throw(number)
        elif 1 <= number <= len(moves):
            move, t = moves[number - 1], self.now()
            seat = self.game.seat
            self._call(lambda: self.game.play(move, at=t), f"{SEAT_NAMES[seat]} {move}")
        else:
            self._say(f"there are {len(moves)} moves, press 1 to {len(moves)}", FAINT)

    def _throw(self, die: int | None = None) -> None:
        seat, t = self.game.seat, self.now()
        self._call(lambda: self.game.throw(die, at=t))
        thrown = self.game.log[-1]["die"]
        rest = "" if self.game.legal_moves else ", nothing to move"
        self._say(f"{SEAT_NAMES[seat]} throws {thrown}{rest}", "0")

    # ---- cups

    def _front(self) -> Obligation:
        front = self.game.referee.state.front
        if front is None:
            raise KimbleError("nothing is owed")
        return front

    def _drinker(self, member: int) -> None:
        front = self._front()
        self._member_call("drinker", front.seat, member)
        self.cursor = self._members.index((front.seat, member))

    def _pour(self) -> None:
        front = self._front()
        member = 0 if front.drinker is None else front.drinker
        self._member_call("pour", front.seat, member)

    def _due(self) -> None:
        """Make the call that comes next, where there is only one."""
        state = self.game.referee.state
        front = state.front
        if front is None or state.undecided():
            raise KimbleError("press 1-6 for the die or the move" if not state.gated else "y or n")
        phase = state.phase(front)
        if phase == "break":  # what comes next can be done in a break too
            phase = "start" if front.ready else "table" if front.poured else "pour"
        if phase == "drinker":
            raise KimbleError("press a or b: who drinks")
        if phase == "ruling":
            raise KimbleError("the cup is late: press R for the head referee's ruling")
        if phase == "pour":
            self._pour()
        else:
            self._team_call({"table": "table", "start": "start", "drinking": "end"}[phase])

    def _team_call(self, call: str) -> None:
        front, t = self._front(), self.now()
        exact = self._exact()
        words = {"table": "cup on the table", "start": "START", "end_break": "ready"}
        self._call(
            lambda: self.game.referee.call(call, t, seat=front.seat),
            f"{SEAT_NAMES[front.seat]}: {words[call]}" if call in words else None,
        )
        if call == "start":
            self._started = (front.number, t, exact)

    def _decide(self, call: str) -> None:
        undecided = self.game.referee.state.undecided()
        if not undecided:
            raise KimbleError("nobody has to decide whether to go on alone")
        seat, t = undecided[0], self.now()
        said = "goes on alone" if call == "go_on" else "does not go on"
        self._call(lambda: self.game.referee.call(call, t, seat=seat), f"{SEAT_NAMES[seat]} {said}")

    def _member_call(self, call: str, seat: int, member: int) -> None:
        t = self.now()
        name = self.game.referee.state.teams[seat].members[member].name
        words = {"drinker": "drinks", "pour": "pours", "open": "opens a drink"}
        words |= {"leave": "leaves the table", "back": "is back", "vomit": "vomits"}
        said = f"{SEAT_NAMES[seat]}, {name}: {words.get(call, call)}"
        self._call(lambda: self.game.referee.call(call, t, seat=seat, member=member), said)

    # ---- rulings

    def _ask_undo(self) -> None:
        effective = in_effect(self.game.log)
        if len(effective) < 2:
            raise KimbleError("there is nothing to take back")
        last, before = effective[-1], effective[-2]
        if "back_to" in self.game.log[last - 1]:  # what that ruling took back counts again
            before = last - 1
        text = f"take back {describe(self.game.log[last - 1])!r}; the reason: "
        self.prompt = Prompt(text, lambda reason: self._rule(reason, back_to=before))

    def _open_menu(self) -> None:
        self.menu = True

    def _choose_ruling(self, key: str) -> None:
        self.menu = False
        if key == "0":
            hint = "path = value, for example teams/R/members/0/stay_until = 500: "
            self._ask(hint, self._put)
            return
        if not key.isdecimal() or not 1 <= int(key) <= len(MENU):
            self._say("no ruling", FAINT)
            return
        self._rule_about(MENU[int(key) - 1])

    def _rule_about(self, verb: str) -> None:
        """Ask for what a ruling needs besides the member under the cursor."""
        seat, member = self._members[self.cursor]
        if verb == "position":
            self._ask("the new position: ", self._set_board)
        elif verb == "in_time":
            self._rule_in_time()
        elif verb.startswith("member"):
            self._ask_reason(do=verb, seat=seat, member=member)
        else:
            front = self.game.referee.state.front
            needs_cup = verb in ("cup_drunk", "stop_clock", "drop")
            seat = front.seat if front is not None and needs_cup else seat
            if verb == "team_in":
                self._ask(
                    "the position with that team: ",
                    lambda text: self._set_board(text, do=verb, seat=seat),
                )
            else:
                self._ask_reason(do=verb, seat=seat)

    def _rule_in_time(self) -> None:
        """Take back the last lateness and all that followed; the cup counts as drunk."""
        log = self.game.log
        effective = in_effect(log)
        for before, number in reversed(list(pairwise(effective))):
            late = [then for then in log[number - 1].get("then", ()) if then[0] == "late"]
            if late:
                self._ask_reason(back_to=before, do="cup_drunk", seat=late[0][1])
                return
        raise KimbleError("no cup was late")

    def _set_board(self, text: str, **words: Any) -> None:
        """Set the board, and with it in the ledger the pieces home where they differ (L7)."""
        rules, states = parse_position(text)
        home = (states["pieces"][0] == rules.board.home).sum(axis=1).tolist()
        teams = self.game.referee.state.teams
        changed = {seat: home[seat] for seat, team in teams.items() if team.home != home[seat]}
        if changed:
            words["put"] = {f"teams/{SEAT_LETTERS[s]}/home": n for s, n in changed.items()}
        also = ", ".join(f"{SEAT_NAMES[s]} {n}" for s, n in changed.items())
        question = f"home then, without cups: {also}; the reason: " if also else "the reason: "
        self._ask(question, lambda reason: self._rule(reason, position=text, **words))

    def _put(self, text: str) -> None:
        path, equals, value = text.partition("=")
        if not equals:
            raise KimbleError("expected path = value")
        try:
            found = json.loads(value)
        except ValueError:
            found = value.strip()
        self._ask_reason(put={path.strip(): found})

    def _ask(self, text: str, answer: Callable[[str], None]) -> None:
        self.prompt = Prompt(text, answer)

    def _ask_reason(self, **words: Any) -> None:
        self._ask("the reason: ", lambda reason: self._rule(reason, **words))

    def _rule(self, reason: str, **words: Any) -> None:
        t = self.now()
        self._call(lambda: self.game.referee.ruling(t, reason, **words), f"RULING: {reason}")

    # ---- odds and ends

    def _call(self, call: Callable[[], Any], said: str | None = None) -> None:
        """Make a call, put it on the disk, and only then tell of it."""
        call()
        self._save()
        if said:
            self._say(said, "0")
        for happening in self.game.log[-1].get("then", ()):
            self._say(self._sentence(happening), BOLD)
            self.bell = self.bell or happening[0] in ("late", "break_over")
        if self.game.over and not self._was_over:
            self._say(f"protocol: {self._protocol()}", BOLD)
        self._was_over = self.game.over

    def _sentence(self, happening: list[Any]) -> str:
        from kimble_env.ledger_rules import Happening

        kind, letter, member, value = happening
        seat = SEAT_LETTERS.index(letter)
        members = self.game.referee.state.teams[seat].members
        name = "" if member is None else members[member].name
        return str(Happening(kind, seat, member, value, name))

    def _say(self, text: str, style: str) -> None:
        self.messages = [*self.messages, (style, text)][-MESSAGES:]

    def _move_cursor(self, step: int) -> None:
        self.cursor = (self.cursor + step) % len(self._members)

    def _toggle_help(self) -> None:
        self.help = not self.help

    def _toggle_board(self) -> None:
        self.board = not self.board

    def _stop(self) -> None:
        self.done = True

    # ---- what is shown

    def lines(self, height: int = 60, width: int = 100) -> list[str]:
        """Return the screen as at most ``height`` lines of at most ``width`` columns.

        In a low terminal first the board gives way to its text, then the oldest messages and the
        members far from the cursor; what a key is waited for (prompt, menu, help) always stays.
        """
        t = self.now()
        state = self.game.referee.view(t)
        title = paint(f" Norske Kimble   {minutes(t)}   second {t} ", REVERSED)
        due, table = self._due_lines(state, t, width), self._table_lines(state, t)
        messages = [wrap(text, width, style) for style, text in self.messages or [(FAINT, "…")]]
        said = [line for message in messages for line in message]
        foot = self._foot_lines(width)
        short = [self.game.to_text(), ""]
        for board in (self._board_lines(), short) if self.board else (short,):
            shown = [title, "", *board, *due, "", *table, "", *said, "", *foot]
            if len(shown) <= height:
                break
        else:
            rest = self._low(height - len(foot) - 1, due, table, said, len(messages[-1]))
            shown = [title, *rest, *foot] if len(foot) < height else foot
        return [clip(line, width) for line in shown[: max(height, 1)]]

    def _low(
        self, room: int, due: list[str], table: list[str], said: list[str], new: int
    ) -> list[str]:
        """Return what fits between title and foot: first the last message, of ``new`` lines, then
        what is due, the members around the cursor, the board's text and older messages."""
        new = max(min(new, room), 0)
        due = due[: max(room - new, 0)]
        rows = min(max(room - new - len(due), 0), len(table))
        first = min(max(self.cursor - rows // 2, 0), len(table) - rows)
        left = room - new - len(due) - rows
        text = [self.game.to_text()] if left > 0 else []
        shown = min(new + left - len(text), len(said)) if left > 0 else new
        messages = said[len(said) - shown :]
        return [*text, *due, *table[first : first + rows], *messages]

    def _board_lines(self) -> list[str]:
        from kimble_env import render

        return [*render.text(self.game, colour=True).splitlines(), ""]

    def _due_lines(self, state: State, t: int, width: int) -> list[str]:
        """Say what the table waits for, with the clock of the cup in front."""
        lines = []
        for text in state.waiting_for():
            lines += wrap(text, width, BOLD)
        front = state.front
        if front is not None:
            lines += self._clock_line(front, t)
        if self.game.over:
            winner = state.winner
            lines.append(
                paint(f"{SEAT_NAMES[winner]} has won" if winner is not None else "over", BOLD)
            )
        elif not state.gated:
            lines += self._board_call()
        return lines

    def _clock_line(self, front: Obligation, t: int) -> list[str]:
        if front.started is not None:
            spent = t - front.started
            style = ALARM if spent > CUP_SECONDS - 10 else BOLD
            bar = "#" * min(spent, CUP_SECONDS) + "." * max(0, CUP_SECONDS - spent)
            return [paint(f"   {spent:2d} of {CUP_SECONDS} s  [{bar}]", style)]
        if front.break_until is not None:
            return [paint(f"   break: {front.break_until - t} s left", BOLD)]
        return []

    def _board_call(self) -> list[str]:
        seat = self.game.seat
        name = paint(SEAT_NAMES[seat], COLOURS[seat])
        moves = self.game.legal_moves
        if not moves:
            left = self.game.throws
            throws = f"{left} throws" if left > 1 else "1 throw"
            return [f"{name} to throw ({throws} left): press the number of the die"]
        choices = "   ".join(f"{n} {move}" for n, move in enumerate(moves, 1))
        return [f"{name} has thrown {self.game.die}: {choices}"]

    def _table_lines(self, state: State, t: int) -> list[str]:
        lines = []
        for number, (seat, i) in enumerate(self._members):
            team, member = state.teams[seat], state.teams[seat].members[i]
            mark = ">" if number == self.cursor else " "
            where = "out" if team.out or not member.playing else "away" if member.away else "in"
            stay = ""
            if where == "in" and member.stay_until > t:
                stay = f"stays {minutes(member.stay_until - t)}"
            opened = f"{member.opened} open" if member.opened else ""
            row = f"{mark} {SEAT_NAMES[seat]:7}{member.name:14.14}{member.drink:11}{where:5}"
            cups = "cup " if member.drunk == 1 else "cups"
            row += f"{member.drunk:3d} {cups}  {stay:12}{opened:7}{team.status if i == 0 else ''}"
            style = (
                REVERSED if number == self.cursor else FAINT if where == "out" else COLOURS[seat]
            )
            lines.append(paint(row, style))
        return lines

    def _foot_lines(self, width: int) -> list[str]:
        if self.prompt is not None:
            asked = self.prompt.text + self.prompt.typed + "_"
            lines = [asked[at : at + width] for at in range(0, len(asked), width)]
            return [*(paint(line, BOLD) for line in lines), "enter: yes   esc: no"]
        if self.menu:
            texts = {
                **RULINGS,
                "in_time": "the cup that was late counts: all since then is taken back",
                "position": "set the board to a position",
            }
            seat, i = self._members[self.cursor]
            about = f"{SEAT_NAMES[seat]}, {self.game.referee.state.teams[seat].members[i].name}"
            rows = [f"{n}  {verb:12}{texts[verb]}" for n, verb in enumerate(MENU, 1)]
            rows = [f"0  {'put':12}set any value", *rows]
            return [paint(f"Ruling about {about} or the cup in front:", BOLD), *rows, "esc  none"]
        return list(HELP) if self.help else ["? shows the keys"]


def describe(entry: dict[str, Any]) -> str:
    """Return an entry of the log in a few words."""
    words = [entry["call"]]
    for name in ("seat", "member", "die", "text", "drink", "do", "reason"):
        if name in entry:
            words.append(str(entry[name]))
    return " ".join(words)
