"""The rules of the ledger: what each call needs, what it changes, what follows (section 7, L1-L8).

One :class:`Step` carries out one call on a copy of the ledger. :class:`kimble_env.referee.Referee`
keeps the copy if the call is legal and throws it away if it is refused, so a refused call changes
nothing. Times are whole seconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.ledger import (
    BREAK_SECONDS,
    CUP_SECONDS,
    LAST_SECOND,
    MEMBERS,
    STAY_SECONDS,
    BreakError,
    ClockError,
    CupError,
    Decision,
    DecisionError,
    DrinkerError,
    DrinkError,
    DrinkingError,
    GatedError,
    LeaveError,
    LedgerFormatError,
    MatchOverError,
    Member,
    MemberError,
    Obligation,
    RulingError,
    RulingNeededError,
    State,
    TeamError,
    state_faults,
    state_from_json,
    state_to_json,
)

BOARD_EVENTS = ("entry", "loss", "arrival")

CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "throw": (("seat",), ("die",)),
    "move": (("seat", "events"), ("text", "die")),
    "open": (("seat", "member"), ()),
    "drinker": (("seat", "member"), ()),
    "pour": (("seat", "member"), ("drink",)),
    "table": (("seat",), ()),
    "start": (("seat",), ()),
    "end": (("seat",), ()),
    "take_break": (("seat",), ()),
    "end_break": (("seat",), ()),
    "unable": (("seat", "member"), ()),
    "vomit": (("seat", "member"), ()),
    "go_on": (("seat",), ()),
    "decline": (("seat",), ()),
    "leave": (("seat", "member"), ()),
    "back": (("seat", "member"), ()),
    "tick": ((), ()),
    "ruling": (("reason",), ("do", "seat", "member", "put", "back_to", "position")),
}
"""Every call with the names of its arguments: those it needs, those it may have."""

RULINGS = {
    "cup_drunk": "the cup being drunk counts as empty now; it earns no break",
    "stop_clock": "the clock is stopped; the full cup stands on the table again",
    "drop": "the first obligation of the team is let off",
    "member_out": "the member is out of the competition",
    "member_in": "the member is in again, his partner has nothing to decide",
    "team_out": "the team is out of the game",
    "team_in": "the team plays again, all members in (its pieces: position)",
}
"""What a ruling can do by name; ``put`` can set anything else (L7)."""


@dataclass(frozen=True, slots=True)
class Happening:
    """What followed from a call.

    Attributes:
        kind: ``owed``, ``empty``, ``break``, ``break_over``, ``done``, ``late``, ``member_out``,
            ``refill``, ``redrink``, ``team_out``, ``placed`` or ``won``.
        seat: the team.
        member: index of the member, where one is meant.
        value: cups (owed, refill, redrink), seconds (empty), the second at which it ends (break),
            the reason (member_out), the place (placed); else None.
    """

    kind: str
    seat: int
    member: int | None = None
    value: int | str | None = None
    name: str = ""

    def to_json(self) -> list[Any]:
        """Return ``[kind, letter, member, value]``."""
        return [self.kind, SEAT_LETTERS[self.seat], self.member, self.value]

    def __str__(self) -> str:
        who = SEAT_NAMES[self.seat] + (f", {self.name}" if self.name else "")
        return f"{who}: {_SENTENCES[self.kind].format(self.value)}"


_SENTENCES = {
    "owed": "owes {}",
    "empty": "the cup is empty after {} s",
    "break": "break until second {}",
    "break_over": "the break is over",
    "done": "all cups drunk",
    "late": "the cup is late",
    "member_out": "out of the competition ({})",
    "refill": "drinks the unfinished cups, refilled: {}",
    "redrink": "drinks again: {}",
    "team_out": "the team is out of the game",
    "placed": "place {}",
    "won": "wins",
}


def read_seat(seat: Any) -> int:
    """Return a seat 0..3 from its number, letter or name.

    Raises:
        TeamError: it is none of these.
    """
    if isinstance(seat, str):
        if seat in SEAT_NAMES:
            return SEAT_NAMES.index(seat)
        if len(seat) == 1 and seat in SEAT_LETTERS:
            return SEAT_LETTERS.index(seat)
    number = _whole(seat)
    if number is not None and 0 <= number < len(SEAT_LETTERS):
        return number
    raise TeamError("no_such_team", f"no such team: {seat!r}; expected 0..3, R, B, Y, G or a name")


def known_team(state: State, seat: Any) -> int:
    """Return the number of a team that takes part in the match."""
    number = read_seat(seat)
    if number not in state.teams:
        raise TeamError("no_such_team", f"team {SEAT_NAMES[number]} does not play")
    return number


def _whole(value: Any) -> int | None:
    """Return a whole number (numpy's too) as an int, None for anything else."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return int(value.__index__())


def _set_path(data: Any, path: Any, value: Any) -> None:
    """Set one value in JSON data by its path; the place must exist."""
    if not isinstance(path, str) or not path:
        raise RulingError("ruling", f"a path is some text such as 'teams/R/home', got {path!r}")
    steps: list[Any] = path.split("/")
    if steps[0] == "now":
        raise RulingError("ruling", "a ruling cannot set the time")
    for depth, step in enumerate(steps):
        if isinstance(data, list) and step.isdecimal():
            step = int(step)
        known = range(len(data)) if isinstance(data, list) else data
        if not isinstance(data, list | dict) or step not in known:
            raise RulingError("ruling", f"nothing is at {path!r} in the ledger")
        if depth == len(steps) - 1:
            data[step] = value
        else:
            data = data[step]


def check_arguments(kind: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without those that are None; refuse others."""
    if not isinstance(kind, str) or kind not in CALLS:
        raise LedgerFormatError("format", f"unknown call {kind!r}; known: {', '.join(CALLS)}")
    needed, optional = CALLS[kind]
    given = {name: value for name, value in arguments.items() if value is not None}
    faults = [f"{name} is missing" for name in needed if name not in given]
    faults += [f"unknown argument {name!r}" for name in given if name not in needed + optional]
    if faults:
        raise LedgerFormatError("format", f"{kind}: " + "; ".join(faults))
    return given


class Step:
    """One call on a copy of the ledger, which is thrown away when the call is refused."""

    def __init__(self, states: Sequence[State], t: Any) -> None:
        last, second = states[-1], _whole(t)
        if second is None or not 0 <= second <= LAST_SECOND:
            raise ClockError("time", f"a time is a whole second 0..{LAST_SECOND}, got {t!r}")
        if second < last.now:
            raise ClockError("time_backwards", f"time runs backwards: {second} after {last.now}")
        self.states = states
        self.state = last.copy()
        self.t = second
        self.then: list[Happening] = []
        self._pass_time()

    def _pass_time(self) -> None:
        """Do what has happened by itself up to this second (L2, L3)."""
        front = self.state.front
        self.state.now = self.t
        if front is None:
            return
        if front.started is not None and self.t > front.started + CUP_SECONDS and not front.late:
            self._note_late(front)
        elif front.break_until is not None and self.t >= front.break_until:
            front.break_until = None
            self._happen("break_over", front.seat)
        self._settle()

    def _note_late(self, front: Obligation) -> None:
        assert front.drinker is not None
        late = self.state.settings.late
        if late == "out":
            self._happen("late", front.seat, front.drinker)
            self._fail(front.seat, front.drinker, "late")
        elif late == "referee":
            self._happen("late", front.seat, front.drinker)
            front.late = True

    def _happen(
        self, kind: str, seat: int, member: int | None = None, value: int | str | None = None
    ) -> None:
        name = "" if member is None else self.state.teams[seat].members[member].name
        self.then.append(Happening(kind, seat, member, value, name))

    def carry_out(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        """Carry out a call; return its arguments as they are logged."""
        logged = dict(given)
        if kind == "ruling":
            return self._ruling(given)
        if "seat" in given:
            seat = self._playing_team(given["seat"])
            logged["seat"] = SEAT_LETTERS[seat]
            given["seat"] = seat
            if "member" in given:
                logged["member"] = given["member"] = self._playing_member(seat, given["member"])
        if kind == "move":
            given["events"] = self._read_events(given["seat"], given["events"])
            logged["events"] = [[k, SEAT_LETTERS[s], n] for k, s, n in given["events"]]
        for name in ("text", "drink"):
            if not isinstance(given.get(name, ""), str):
                raise LedgerFormatError("format", f"{name} must be a text, got {given[name]!r}")
        if "die" in given:
            logged["die"] = given["die"] = self._read_die(given["die"])
        getattr(self, f"_{kind}")(**given)
        self._settle()
        return logged

    # ---- reading

    def _playing_team(self, seat: Any) -> int:
        number = known_team(self.state, seat)
        if self.state.teams[number].out:
            raise TeamError("team_out", f"team {SEAT_NAMES[number]} is out of the game")
        return number

    def _member_index(self, seat: int, member: Any) -> int:
        members = self.state.teams[seat].members
        for i, other in enumerate(members):
            if isinstance(member, str) and member == other.name:
                return i
        index = _whole(member)
        if index is not None and 0 <= index < MEMBERS:
            return index
        names = " or ".join(other.name for other in members)
        raise MemberError(
            "no_such_member", f"team {SEAT_NAMES[seat]} has no member {member!r}: 0, 1, {names}"
        )

    def _playing_member(self, seat: int, member: Any) -> int:
        index = self._member_index(seat, member)
        found = self.state.teams[seat].members[index]
        if not found.playing:
            raise MemberError("member_out", f"{found.name} is out of the competition")
        return index

    def _read_die(self, die: Any) -> int:
        number = _whole(die)
        if number is None or not 1 <= number <= 6:
            raise LedgerFormatError("format", f"a die is 1..6, got {die!r}")
        return number

    def _read_events(self, mover: int, events: Any) -> list[tuple[str, int, int]]:
        out: list[tuple[str, int, int]] = []
        pieces = self.state.settings.pieces
        if not isinstance(events, list | tuple):
            raise LedgerFormatError("format", f"events are a list, got {events!r}")
        for event in events:
            if not isinstance(event, list | tuple) or len(event) != 3:
                raise LedgerFormatError("format", f"an event is (kind, seat, pieces): {event!r}")
            kind, seat, count = event[0], self._playing_team(event[1]), _whole(event[2])
            if kind not in BOARD_EVENTS:
                words = ", ".join(BOARD_EVENTS)
                raise LedgerFormatError("format", f"an event is one of {words}, got {kind!r}")
            if count is None or not 1 <= count <= pieces:
                raise LedgerFormatError("format", f"an event is of 1..{pieces} pieces: {event!r}")
            if kind != "loss" and seat != mover:
                raise TeamError("wrong_team", f"{kind} of {SEAT_NAMES[seat]}, who does not move")
            out.append((kind, seat, count))
        return out

    # ---- the board

    def check_open(self, seat: Any, what: str) -> None:
        """Refuse a throw or move while the board waits, or after the end (L1)."""
        number = self._playing_team(seat)
        if self.state.over:
            raise MatchOverError("match_over", f"no {what}: the match is over")
        if self.state.gated:
            reasons = "; ".join(self.state.waiting_for())
            raise GatedError("gated", f"no {what} yet: {reasons}")
        if number in self.state.places:
            raise MatchOverError("match_over", f"team {SEAT_NAMES[number]} has finished")

    def _throw(self, seat: int, die: int | None = None) -> None:
        self.check_open(seat, "throw")

    def _move(
        self, seat: int, events: list[tuple[str, int, int]], text: str | None = None,
        die: int | None = None,
    ) -> None:  # fmt: skip
        self.check_open(seat, "move")
        for kind, other, count in events:
            team = self.state.teams[other]
            if kind == "entry":
                team.entries += count
            elif kind == "loss":
                self._owe(other, "hit", count)
            else:
                if team.home + count > self.state.settings.pieces:
                    raise LedgerFormatError(
                        "format", f"{SEAT_NAMES[other]} has {team.home} pieces home already"
                    )
                team.home += count
                self._owe(other, "home", count)

    def _owe(self, seat: int, cause: str, cups: int, drinker: int | None = None) -> None:
        """Queue an obligation (L1). A team of one has no choice of drinker."""
        team, state = self.state.teams[seat], self.state
        if team.status == "solo":
            drinker = next(i for i, m in enumerate(team.members) if m.playing)
        state.obligations.append(Obligation(state.next_number, seat, cause, cups, cups, drinker))
        state.next_number += 1
        team.owed += cups
        self._happen("owed" if cause != "redrink" else "redrink", seat, drinker, cups)

    def _tick(self) -> None:
        """Nothing but the time."""

    # ---- a cup

    def _front(self, seat: int) -> Obligation:
        """Return the obligation that is drunk now; refuse if it is not this team's."""
        front = self.state.front
        if front is None:
            raise TeamError("wrong_team", f"{SEAT_NAMES[seat]} owes nothing")
        if front.seat != seat:
            owes = "owes cups after it" if self.state.left(seat) else "owes nothing"
            raise TeamError(
                "wrong_team", f"{SEAT_NAMES[front.seat]} is to drink now; {SEAT_NAMES[seat]} {owes}"
            )
        return front

    def _decided_front(self, seat: int) -> Obligation:
        """Return the obligation of ``_front`` if neither a decision nor a ruling is missing."""
        front = self._front(seat)
        decision = self.state.teams[seat].decision
        if decision is not None:
            partner = self.state.teams[seat].members[1 - decision.failed].name
            raise DecisionError("undecided", f"{partner} must first say whether to go on alone")
        if front.late:
            raise RulingNeededError("ruling_needed", "the cup is late: the head referee must rule")
        return front

    def _member(self, seat: int, index: int) -> Member:
        return self.state.teams[seat].members[index]

    def _named(self, seat: int, front: Obligation) -> int:
        if front.drinker is None:
            raise DrinkerError("no_drinker", f"{SEAT_NAMES[seat]} must first say who drinks")
        return front.drinker

    def _drinker(self, seat: int, member: int) -> None:
        front = self._decided_front(seat)
        if front.drinker is None:
            self._check_at_table(seat, member)
            front.drinker = member
        elif front.drinker == member:
            raise DrinkerError("drinker_named", f"{self._member(seat, member).name} drinks already")
        else:
            named = self._member(seat, front.drinker).name
            raise DrinkerError(
                "drinker_changed", f"{named} drinks all of it: no change without a failure"
            )

    def _check_drinker(self, seat: int, front: Obligation, member: int) -> None:
        named = self._named(seat, front)
        if named != member:
            raise MemberError(
                "wrong_member",
                f"{self._member(seat, named).name} drinks, not {self._member(seat, member).name}",
            )

    def _check_at_table(self, seat: int, member: int) -> None:
        """Refuse a member who has left the table and is not back (L5)."""
        who = self._member(seat, member)
        if who.away:
            raise MemberError("away", f"{who.name} has left the table and is not back")

    def _open(self, seat: int, member: int) -> None:
        who, team, front = self._member(seat, member), self.state.teams[seat], self.state.front
        mine = front is not None and front.seat == seat and front.drinker == member
        if mine and team.decision is None and front is not None and not front.late:
            if front.to_pour > who.opened:  # always legal for an owed cup (L8)
                who.opened += 1
                return
        if who.drink == "vichy":
            raise DrinkError("vichy_early", "vichy is opened only to pour an owed cup")
        if team.opened_ahead >= team.entries:
            raise DrinkError(
                "too_many_open",
                f"{SEAT_NAMES[seat]} has opened {team.opened_ahead} drinks ahead, one for each of "
                f"its {team.entries} entries",
            )
        team.opened_ahead += 1
        who.opened += 1

    def _pour(self, seat: int, member: int, drink: str | None = None) -> None:
        front = self._decided_front(seat)
        self._check_drinker(seat, front, member)
        self._check_at_table(seat, member)
        who = self._member(seat, member)
        if drink is not None and drink != who.drink:
            raise DrinkError("wrong_drink", f"{who.name} drinks {who.drink}, not {drink}")
        if front.to_pour == 0:
            raise CupError("all_poured", f"all {front.left} cups are poured")
        who.opened = max(who.opened - 1, 0)
        front.poured += 1

    def _table(self, seat: int) -> None:
        front = self._decided_front(seat)
        self._named(seat, front)
        if front.poured == 0:
            raise CupError("not_poured", "no poured cup waits to be put on the table")
        front.poured -= 1
        front.ready += 1

    def _start(self, seat: int) -> None:
        front = self._decided_front(seat)
        drinker = self._named(seat, front)
        if front.started is not None:
            raise DrinkingError("clock_running", "the clock of this cup runs already")
        if front.ready == 0:
            why = "stands on the table" if front.poured else "is poured"
            raise CupError("not_on_table" if front.poured else "not_poured", f"no full cup {why}")
        self._check_at_table(seat, drinker)
        front.ready -= 1
        front.started = self.t
        self._end_of_break(front)

    def _end(self, seat: int) -> None:
        front = self._front(seat)
        if front.late:
            raise RulingNeededError("ruling_needed", "the cup is late: the head referee must rule")
        if front.started is None:
            raise DrinkingError("clock_stopped", "no clock runs: the referee has not given a start")
        self._empty(front, self.t - front.started)

    def _empty(self, front: Obligation, spent: int | None) -> None:
        """A cup is empty after ``spent`` seconds; None: by ruling, without a break."""
        seat, index = front.seat, front.drinker
        assert index is not None
        assert front.started is not None
        who = self._member(seat, index)
        who.round_cups = who.round_cups + 1 if who.round_number == front.number else 1
        who.round_number = front.number
        who.finished, who.stay_until = self.t, self.t + STAY_SECONDS  # L4, L5
        who.drunk += 1
        self.state.teams[seat].drunk += 1
        self._happen("empty", seat, index, self.t - front.started)
        front.started, front.late = None, False
        front.left -= 1
        if front.left == 0:
            self.state.obligations.remove(front)
            self._happen("done", seat)
        elif spent is not None and spent < CUP_SECONDS:  # exactly 45 s earns no break
            front.break_until = self.t + BREAK_SECONDS
            self._happen("break", seat, index, front.break_until)

    # ---- breaks

    def _break(self, seat: int) -> Obligation:
        """Return the obligation whose break runs, or say why there is none."""
        front = self.state.front
        if front is None or front.seat != seat:
            raise BreakError("break_after_last", f"{SEAT_NAMES[seat]} has no cup to drink")
        if front.started is not None:
            raise BreakError("break_drinking", "a break falls between two cups, not into one")
        if front.cups == 1:
            raise BreakError("break_single", "a single cup has no break")
        if front.left == front.cups:
            raise BreakError("break_first", "no cup of this battery is empty yet")
        if front.break_until is None:
            raise BreakError("no_break", "the break is over, or was not earned in under 45 s")
        return front

    def _take_break(self, seat: int) -> None:
        front = self._break(seat)
        self._happen("break", seat, front.drinker, front.break_until)

    def _end_break(self, seat: int) -> None:
        self._end_of_break(self._break(seat))

    def _end_of_break(self, front: Obligation) -> None:
        if front.break_until is not None:
            front.break_until = None
            self._happen("break_over", front.seat)

    # ---- failing

    def _unable(self, seat: int, member: int) -> None:
        self._fail(seat, member, "unable")

    def _vomit(self, seat: int, member: int) -> None:
        self._fail(seat, member, "vomit")

    def _fail(self, seat: int, index: int, why: str) -> None:
        """A member is out of the competition (L3)."""
        team, who = self.state.teams[seat], self._member(seat, index)
        who.playing = False
        self._happen("member_out", seat, index, why)
        decision = Decision(index, why)
        if why == "vomit" and who.finished is not None:
            if self.t - who.finished <= STAY_SECONDS:  # L4: exactly 300 s is inside
                decision.redrink, decision.redrink_of = who.round_cups, who.round_number
        for ob in self.state.obligations:
            if ob.seat == seat and ob.drinker == index:
                decision.interrupted = ob.number
                ob.drinker = ob.started = ob.break_until = None
                ob.poured = ob.ready = 0
                ob.late = False
        if team.members[1 - index].playing:
            team.decision = decision
        else:
            self._team_out(seat)

    def _team_out(self, seat: int) -> None:
        """A team is out of the game and owes nothing any more (L3, R34)."""
        team, state = self.state.teams[seat], self.state
        team.out, team.decision = True, None
        team.dropped += state.left(seat)
        state.obligations = [ob for ob in state.obligations if ob.seat != seat]
        self._happen("team_out", seat)

    def _undecided(self, seat: int) -> Decision:
        decision = self.state.teams[seat].decision
        if decision is None:
            raise DecisionError(
                "nothing_to_decide", f"no partner of {SEAT_NAMES[seat]} has anything to decide"
            )
        return decision

    def _decline(self, seat: int) -> None:
        self._undecided(seat)
        self._team_out(seat)

    def _go_on(self, seat: int) -> None:
        decision, team = self._undecided(seat), self.state.teams[seat]
        partner, redrink = 1 - decision.failed, decision.redrink
        team.decision = None
        for ob in self.state.obligations:
            if ob.seat == seat and ob.number == decision.interrupted:
                again = redrink if ob.number == decision.redrink_of else 0
                redrink -= again
                self._refill(ob, partner, again)
            elif ob.seat == seat and ob.drinker is None:
                ob.drinker = partner
        if redrink:
            self._owe(seat, "redrink", redrink)

    def _refill(self, ob: Obligation, partner: int, again: int) -> None:
        """The partner takes unfinished cups over, and those of the same battery to redrink.

        All of them together are one battery, so that each keeps its break (L2).
        """
        ob.cups = ob.left = ob.left + again
        ob.cause = "redrink" if again else "refill"
        ob.drinker = partner
        self.state.teams[ob.seat].owed += again
        self._happen(ob.cause, ob.seat, partner, ob.left)

    # ---- the table

    def _leave(self, seat: int, member: int) -> None:
        who, front = self._member(seat, member), self.state.front
        if who.away:
            raise LeaveError("away", f"{who.name} has left already")
        if front is not None and front.seat == seat and front.drinker == member:
            raise LeaveError("leaving_owing", f"{who.name} has a cup to drink")
        if self.t < who.stay_until:  # L5
            raise LeaveError(
                "leaving_early",
                f"{who.name} stays at the table until second {who.stay_until}, it is {self.t}",
            )
        who.away = True

    def _back(self, seat: int, member: int) -> None:
        who = self._member(seat, member)
        if not who.away:
            raise LeaveError("at_the_table", f"{who.name} has not left the table")
        who.away = False

    # ---- the end

    def _settle(self) -> None:
        """See whether a team has finished (L6), or is the last one left (R34)."""
        state = self.state
        for seat, team in state.teams.items():
            if team.home < state.settings.pieces or team.out or seat in state.places:
                continue
            if state.places and not state.settings.play_for_places:
                continue
            # L6: a partner's open word about going on takes no win away, cups to redrink do (L4)
            again = team.decision is not None and team.decision.redrink > 0
            drunk = state.left(seat) == 0 and not again
            if drunk or state.settings.win_at == "home":
                state.places.append(seat)
                self._happen("placed", seat, None, len(state.places))
        if state.winner is not None and self.states[-1].winner is None:
            if not any(happening.kind == "won" for happening in self.then):
                self._happen("won", state.winner)

    # ---- rulings

    def _ruling(self, given: dict[str, Any]) -> dict[str, Any]:
        """Carry out a ruling (L7); return its arguments as they are logged."""
        logged = dict(given)
        if not isinstance(given["reason"], str) or not given["reason"].strip():
            raise RulingError("ruling", "a ruling needs a reason, some text")
        if not isinstance(given.get("position", ""), str):
            raise RulingError("ruling", f"a position is a text, got {given['position']!r}")
        if "seat" in given:
            given["seat"] = known_team(self.state, given["seat"])
            logged["seat"] = SEAT_LETTERS[given["seat"]]
            if "member" in given:
                member = self._member_index(given["seat"], given["member"])
                logged["member"] = given["member"] = member
        if "back_to" in given:
            self._go_back(given["back_to"])
        if "do" in given:
            self._do(given["do"], given.get("seat"), given.get("member"))
        if "put" in given:
            logged["put"] = self._put(given["put"])
        if "back_to" in given:
            self._pass_time()
        faults = state_faults(self.state)
        if faults:
            raise RulingError("ruling", "it leads to a ledger that cannot be: " + "; ".join(faults))
        self._settle()
        return logged

    def _go_back(self, entries: Any) -> None:
        number, count = _whole(entries), len(self.states)
        if number is None or not 1 <= number <= count:
            raise RulingError("ruling", f"back_to must lie in 1..{count}, got {entries!r}")
        self.then.clear()
        self.state = self.states[number - 1].copy()
        self.state.now = self.t

    def _put(self, put: Any) -> dict[str, Any]:
        """Set values by their paths; return them as JSON data."""
        try:
            values = json.loads(json.dumps(put))
        except (TypeError, ValueError) as error:
            raise RulingError("ruling", f"put is not JSON data: {error}") from None
        if not isinstance(values, dict):
            raise RulingError("ruling", f"put is a mapping of paths to values, got {put!r}")
        data = json.loads(json.dumps(state_to_json(self.state)))
        for path, value in values.items():
            _set_path(data, path, value)
        try:
            self.state = state_from_json(data)
        except LedgerFormatError as error:
            raise RulingError("ruling", f"it leads to a ledger that cannot be: {error}") from None
        return values

    def _do(self, verb: Any, seat: int | None, member: int | None) -> None:
        if verb not in RULINGS:
            raise RulingError("ruling", f"unknown ruling {verb!r}; known: {', '.join(RULINGS)}")
        if seat is None:
            raise RulingError("ruling", f"{verb} must name a team")
        if verb in ("member_out", "member_in") and member is None:
            raise RulingError("ruling", f"{verb} must name a member")
        team = self.state.teams[seat]
        if team.out and verb != "team_in":
            raise RulingError("ruling", f"{verb}: team {SEAT_NAMES[seat]} is out")
        getattr(self, f"_rule_{verb}")(seat, member)

    def _owed_now(self, seat: int, running: bool) -> Obligation:
        front = self.state.front
        if front is None or front.seat != seat or (running and front.started is None):
            what = "is drinking no cup" if running else "owes nothing now"
            raise RulingError("ruling", f"{SEAT_NAMES[seat]} {what}")
        return front

    def _rule_cup_drunk(self, seat: int, member: int | None) -> None:
        self._empty(self._owed_now(seat, True), None)

    def _rule_stop_clock(self, seat: int, member: int | None) -> None:
        front = self._owed_now(seat, True)
        front.started, front.late = None, False
        front.ready += 1

    def _rule_drop(self, seat: int, member: int | None) -> None:
        front = self._owed_now(seat, False)
        self.state.obligations.remove(front)
        self.state.teams[seat].dropped += front.left

    def _rule_member_out(self, seat: int, member: int | None) -> None:
        assert member is not None
        if not self._member(seat, member).playing:
            raise RulingError("ruling", f"{self._member(seat, member).name} is out already")
        self._fail(seat, member, "ruling")

    def _rule_member_in(self, seat: int, member: int | None) -> None:
        assert member is not None
        team = self.state.teams[seat]
        if self._member(seat, member).playing:
            raise RulingError("ruling", f"{self._member(seat, member).name} is not out")
        self._member(seat, member).playing = True
        team.decision = None

    def _rule_team_out(self, seat: int, member: int | None) -> None:
        self._team_out(seat)

    def _rule_team_in(self, seat: int, member: int | None) -> None:
        team = self.state.teams[seat]
        if not team.out:
            raise RulingError("ruling", f"team {SEAT_NAMES[seat]} is not out")
        team.out = False
        for who in team.members:
            who.playing = True
