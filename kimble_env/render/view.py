"""What a picture of a position shows, as plain data and short sentences; no drawing here.

This is the one place of the renderers that reads the record of a game. It decides nothing that is
a rule: what may be played, who is next and what a move did stands in the record already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.board import SEAT_NAMES, SEATS
from kimble_env.errors import PositionError, RulesError
from kimble_env.kernel import (
    ARRIVED,
    ENTER,
    LOG_COLUMNS,
    LOST_BATTLE,
    LOST_OWN_COLLISION,
    LOST_PROTECTED,
    RUNNING,
    WON,
)
from kimble_env.notation import format_move, record_of
from kimble_env.rules import Rules, find_rules

ORDINALS = ("", "1st", "2nd", "3rd", "4th")


@dataclass(frozen=True)
class Unit:
    """A piece, or pieces that move as one or stand at home together (``count`` above 1)."""

    seat: int
    progress: int
    count: int


@dataclass(frozen=True)
class Loss:
    """Pieces sent to home base by a move: whose, how many, the kernel's kind of event."""

    seat: int
    count: int
    kind: int


@dataclass(frozen=True)
class LastMove:
    """A throw and what was done with it.

    ``source`` and ``target`` are progresses of ``seat``: -1 is home base; None and None for a pass
    or a throw without a legal move (``action`` is then -1).
    """

    seat: int
    die: int
    action: int
    source: int | None
    target: int | None
    battle: tuple[int, int] | None
    losses: tuple[Loss, ...]
    arrived: int
    defender: int | None = None  # the other seat of a battle

    @classmethod
    def from_state(cls, rules: Rules, state: Any) -> LastMove | None:
        """Return the last throw that is over, or None if there is none in the record.

        A record remembers one throw. While a die waits to be played that is the present one, and
        what came before is gone: keep ``LastMove.from_state(rules, state)`` from before the throw
        and hand it to the renderer as ``last``.
        """
        s = record_of(state)
        if s["last_seat"] < 0 or s["die"] != 0:
            return None
        row = [s["last_seat"], s["last_die"], s["last_action"], *s["last_battle"]]
        row += [s["event_count"], *s["events"].ravel()]
        return cls.from_log(rules, np.array(row, np.int8))

    @classmethod
    def from_log(cls, rules: Rules, row: npt.NDArray[np.int8]) -> LastMove:
        """Return one row of a log of throws, int8 [LOG_COLUMNS] (``kernel.advance``).

        Raises:
            PositionError: not a row of a log, or an action that these rules do not have.
        """
        if np.shape(row) != (LOG_COLUMNS,):
            raise PositionError(
                f"a row of a log has {LOG_COLUMNS} numbers, got shape {np.shape(row)}"
            )
        seat, die, action, attack, defence, count, *events = (int(n) for n in row)
        if not -1 <= action < rules.board.actions:
            raise PositionError(f"action {action} is not one of {rules.board.name}")
        source = target = None
        if action not in (-1, rules.board.pass_action):
            source = action - 1
            target = 0 if action == ENTER else source + die
        losses, arrived, defender = [], 0, None
        for k in range(min(count, 2)):
            kind, owner, number, by = events[4 * k : 4 * k + 4]
            if kind == ARRIVED:
                arrived += number
            else:
                losses.append(Loss(owner, number, kind))
                if kind == LOST_BATTLE:
                    defender = by if owner == seat else owner
        battle = (attack, defence) if attack else None
        return cls(seat, die, action, source, target, battle, tuple(losses), arrived, defender)


@dataclass(frozen=True)
class SeatView:
    """One seat: pieces in home base and at home, and how it stands in the game."""

    seat: int
    plays: bool
    waiting: int
    home: int
    acts: bool
    wins: bool
    place: int
    out: bool
    player: int | None  # with two colours: who owns this one (R17)

    @property
    def status(self) -> str:
        """A word or two: the place taken, out of the game, or nothing."""
        if self.out:
            return "out"
        return ORDINALS[self.place]


@dataclass(frozen=True)
class View:
    """Everything that a picture shows.

    ``die`` is the die to be played (``die_waits``), else the last one thrown, 0 before the first;
    ``die_seat`` threw it. ``throws`` is 0 once the game has ended.
    """

    rules: Rules
    seats: tuple[SeatView, ...]
    units: tuple[Unit, ...]  # everything outside home base
    die: int
    die_waits: bool
    die_seat: int
    throws: int
    running: bool
    won: bool
    last: LastMove | None

    @property
    def acting(self) -> SeatView | None:
        """The seat to act, None once the game has ended."""
        return next((seat for seat in self.seats if seat.acts), None)

    def headline(self) -> str:
        """Who is to do what, or who has won, in a few words."""
        seat = self.acting
        if seat is None:
            winners = [SEAT_NAMES[s.seat] for s in self.seats if s.wins]
            if not self.won:
                return "Cut off: no winner"
            verb = "win" if len(winners) > 1 else "wins"
            return f"{' and '.join(winners)} {verb}".capitalize()
        name = SEAT_NAMES[seat.seat].capitalize()
        if self.die_waits:
            doing = f"to play a {self.die}"
        else:
            doing = "to throw"
        return f"{name} {doing}" + (f", {self.throws} throws left" if self.throws > 1 else "")

    def last_sentence(self) -> str:
        """The last throw and what came of it, in a few words; empty before the first."""
        if self.last is None:
            return ""
        move, name = self.last, SEAT_NAMES[self.last.seat].capitalize()
        if move.action == -1:
            return f"{name} threw {move.die}: no move"
        parts = [f"{name} threw {move.die}: {format_move(self.rules, move.action, move.die)}"]
        if move.battle is not None:
            parts.append(f"battle {move.battle[0]}:{move.battle[1]}")
        parts += [_loss_words(loss) for loss in move.losses]
        if move.arrived:
            parts.append("home" + (f" ×{move.arrived}" if move.arrived > 1 else ""))
        return ", ".join(parts)

    def description(self) -> str:
        """The position in sentences, for those who cannot see the picture."""
        sentences = [f"{self.rules.name.capitalize()} board. {self.headline()}."]
        for seat in self.seats:
            if seat.plays:
                sentences.append(self._seat_sentence(seat))
        if self.last_sentence():
            sentences.append(f"Last: {self.last_sentence()}.")
        return " ".join(sentences)

    def _seat_sentence(self, seat: SeatView) -> str:
        words = [f"{seat.waiting} in home base"]
        for unit in self.units:
            if unit.seat == seat.seat:
                if self.rules.home and unit.progress == self.rules.board.home:
                    words.append(f"{unit.count} home")
                else:
                    number = f"battery of {unit.count}" if unit.count > 1 else "one"
                    words.append(f"{number} on {unit.progress}")
        status = f" ({seat.status})" if seat.status else ""
        return f"{SEAT_NAMES[seat.seat].capitalize()}{status}: {', '.join(words)}."


def _loss_words(loss: Loss) -> str:
    number = f" ×{loss.count}" if loss.count > 1 else ""
    name = SEAT_NAMES[loss.seat]
    if loss.kind == LOST_BATTLE:
        return f"{name} loses"
    if loss.kind == LOST_PROTECTED:
        return f"protected start, {name}{number} goes back"
    if loss.kind == LOST_OWN_COLLISION:
        return f"onto its own, {name}{number} goes back"
    return f"captures {name}{number}"


def read_rules(rules: str | Rules) -> Rules:
    """Return rules from Rules or their text.

    Raises:
        RulesError: neither.
    """
    if not isinstance(rules, (str, Rules)):
        raise RulesError(f"rules must be Rules or a text, got {type(rules).__name__}")
    return find_rules(rules)


def _drawing_faults(rules: Rules, s: Any) -> list[str]:
    """Return what makes a record impossible to draw under these rules."""
    faults = []
    pieces = s["pieces"].tolist()
    for seat, progresses in enumerate(pieces):
        wrong = [p for p in progresses if not -1 <= p <= rules.last_progress]
        if wrong:
            faults.append(
                f"{SEAT_NAMES[seat]} has a piece on {wrong[0]}, the route of {rules} goes from "
                f"-1 to {rules.last_progress}"
            )
        if any(p != -1 for p in progresses[rules.pieces :]):
            faults.append(f"{SEAT_NAMES[seat]} has more than {rules.pieces} pieces")
    if not 0 <= s["seat"] < SEATS:
        faults.append(f"the seat to act must be 0 to 3, got {s['seat']}")
    for name in ("die", "last_die"):
        if not 0 <= s[name] <= 6:
            faults.append(f"{name} must be 0 to 6, got {s[name]}")
    return faults


def _units(pieces: list[list[int]]) -> tuple[Unit, ...]:
    units = []
    for seat, progresses in enumerate(pieces):
        for p in sorted(set(progresses) - {-1}):
            units.append(Unit(seat, p, progresses.count(p)))
    return tuple(units)


def _seat_views(rules: Rules, s: Any) -> tuple[SeatView, ...]:
    winner = int(s["winner"]) if s["status"] == WON else -1
    winners = {winner, (winner + 2) % SEATS} if rules.two_colours and winner >= 0 else {winner}
    views = []
    for seat in range(SEATS):
        pieces = s["pieces"][seat][: rules.pieces].tolist()
        views.append(
            SeatView(
                seat=seat,
                plays=bool(s["plays"][seat]),
                waiting=pieces.count(-1),
                home=pieces.count(rules.board.home) if rules.home else 0,
                acts=bool(s["status"] == RUNNING and s["seat"] == seat),
                wins=seat in winners,
                place=int(s["places"][seat]),
                out=bool(s["out"][seat]),
                player=seat % 2 if rules.two_colours else None,
            )
        )
    return tuple(views)


def make_view(rules: Any, state: Any = None, last: LastMove | None = None) -> View:
    """Read a position for drawing.

    Args:
        rules: Rules or their text; or a Game (anything with ``rules`` and ``state``) alone.
        state: a record of STATE or STATE[1].
        last: the move to show as the last one; taken from the record when None.

    Raises:
        RulesError: no rules.
        PositionError: not one game, or one that these rules cannot have; all faults named.
    """
    if state is None and hasattr(rules, "rules") and hasattr(rules, "state"):
        rules, state = rules.rules, rules.state
    rules, s = read_rules(rules), record_of(state)
    if last is not None and not isinstance(last, LastMove):
        raise PositionError(f"last must be a LastMove or None, got {type(last).__name__}")
    faults = _drawing_faults(rules, s)
    if faults:
        raise PositionError(faults)
    running = bool(s["status"] == RUNNING)
    waits = running and s["die"] > 0
    return View(
        rules=rules,
        seats=_seat_views(rules, s),
        units=_units(s["pieces"].tolist()),
        die=int(s["die"] if waits else s["last_die"]),
        die_waits=bool(waits),
        die_seat=int(s["seat"] if waits else s["last_seat"]),
        throws=int(s["throws"]) if running else 0,
        running=running,
        won=bool(s["status"] == WON),
        last=last if last is not None else LastMove.from_state(rules, s),
    )
