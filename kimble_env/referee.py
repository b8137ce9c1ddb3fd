"""The Norske referee: cups, clocks, members and rulings beside the board (rules, section 7).

>>> from kimble_env.referee import Referee
>>> referee = Referee()                     # four teams of two, everybody drinks vichy
>>> _ = referee.move(0, "R", [("loss", "B", 1)])
>>> referee.waiting_for()
['blue owes 1 cup (hit): choose who drinks']
>>> _ = referee.drinker(1, "B", 0)
>>> _ = referee.pour(5, "B", 0)
>>> _ = referee.table(9, "B")
>>> _ = referee.start(10, "B")
>>> [str(h) for h in referee.end(48, "B")]
['blue, B1: the cup is empty after 38 s', 'blue: all cups drunk']
>>> referee.waiting_for(), referee.state.teams[1].members[0].stay_until
([], 348)

A pure state machine. Every call names its time in whole seconds, which never runs backwards, and
either does what it says, is written to an append-only log and returns what followed from it, or
raises a :class:`~kimble_env.ledger.LedgerError` whose ``code`` names the reason and changes
nothing at all. ``Referee.replay(referee.log)`` leads to the same state.

Two things happen by themselves when time passes, and count as having happened before the call that
brings the later time: from 46 s on a cup is late (L3), and 30 s after an empty cup its break is
over (L2). ``view(t)`` shows the ledger at a later time without touching it.

A seat is a number 0..3, a letter or a name; a member is 0, 1 or the name. The board is not known
here: ``move`` reports what a move did to pieces (R33). :class:`kimble_env.refereed.RefereedGame`
joins both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.ledger import (
    CUP_SECONDS,
    FORMAT,
    MEMBERS,
    LedgerError,
    LedgerFormatError,
    Settings,
    State,
    Team,
    read_member,
    state_faults,
    state_from_json,
    state_to_json,
)
from kimble_env.ledger_rules import Happening, Step, check_arguments, known_team, read_seat
from kimble_env.rules import Rules, find_rules

SeatLike: TypeAlias = int | str
MemberLike: TypeAlias = int | str
BoardEvent: TypeAlias = "tuple[str, SeatLike, int]"
Listener: TypeAlias = Callable[[dict[str, Any], State, Sequence[Happening]], None]
"""Hears each call before it counts: its entry of the log, the new ledger, and what followed. A
LedgerError that it raises refuses the call."""


class Referee:
    """The ledger of one match.

    Args:
        teams: per seat the two members: drinks or pairs (name, drink), for example
            ``{"R": [("Aino", "vichy"), ("Eero", "beer")]}``. Seats that play and are
            not named get two members who drink vichy. None: all of them.
        rules: the rule set: who plays, pieces, and the options ``late``, ``win_at`` and
            ``play_for_places``.
        time: the second at which the match begins.
        cups: ``marked`` (at 33 cl) or ``equal``: how the cups were found to be right.
        home: pieces already home, per seat.
        entries: pieces that have entered the board already, per seat.

    Raises:
        LedgerFormatError: naming the faults.
        RulesError: rules that cannot be.
    """

    def __init__(
        self,
        teams: Mapping[Any, Sequence[Any]] | None = None,
        *,
        rules: str | Rules = "norske",
        time: int = 0,
        cups: str = "marked",
        home: Mapping[int, int] | None = None,
        entries: Mapping[int, int] | None = None,
    ) -> None:
        found = find_rules(rules)
        if not found.home:
            raise LedgerFormatError("format", f"a referee needs rules with a home, not {found}")
        settings = Settings(found.pieces, found.late, found.win_at, found.play_for_places, cups)
        state = State(settings, _read_teams(teams or {}, found.seats), time)
        for seat, count in (home or {}).items():
            state.teams[known_team(state, seat)].home = count
        for seat, count in (entries or {}).items():
            state.teams[known_team(state, seat)].entries = count
        faults = state_faults(state)
        if faults:
            raise LedgerFormatError("format", "; ".join(faults))
        self._begin(state)

    def _begin(self, state: State) -> None:
        """Stand at the beginning of a match and open its log."""
        header = {"t": state.now, "call": "match", "format": FORMAT, "state": state_to_json(state)}
        self._states = [state]
        self._log: list[dict[str, Any]] = [header]
        self.listener: Listener | None = None

    # ---------------------------------------------------------------------------------- questions

    @property
    def state(self) -> State:
        """A copy of the ledger as the last call left it."""
        return self._states[-1].copy()

    @property
    def now(self) -> int:
        """The second of the last call."""
        return self._states[-1].now

    @property
    def settings(self) -> Settings:
        """What was agreed before the match."""
        return self._states[-1].settings

    @property
    def log(self) -> tuple[dict[str, Any], ...]:
        """Every call that was carried out, the beginning first, as JSON data."""
        return tuple(json.loads(json.dumps(entry)) for entry in self._log)

    @property
    def history(self) -> tuple[State, ...]:
        """Copies of the ledger after each entry of the log, the beginning first."""
        return tuple(state.copy() for state in self._states)

    @property
    def last_entry(self) -> dict[str, Any]:
        """The last entry of the log."""
        entry: dict[str, Any] = json.loads(json.dumps(self._log[-1]))
        return entry

    @property
    def gated(self) -> bool:
        """True while no throw or move is legal (L1)."""
        return self._states[-1].gated

    @property
    def over(self) -> bool:
        """True once the match is decided."""
        return self._states[-1].over

    @property
    def winner(self) -> int | None:
        """The seat of the team that has won, or None (L6, R34)."""
        return self._states[-1].winner

    def status(self, seat: SeatLike) -> str:
        """Return ``duo``, ``solo`` or ``out``."""
        return self._team(seat).status

    def owed(self, seat: SeatLike) -> int:
        """Return the cups that a team still owes."""
        return self._states[-1].left(known_team(self._states[-1], seat))

    def waiting_for(self) -> list[str]:
        """Return, in words, what the table waits for; empty when a throw is legal."""
        return self._states[-1].waiting_for()

    def view(self, t: int) -> State:
        """Return a copy of the ledger as it will stand at second ``t`` if nothing is called.

        Raises:
            ClockError: ``t`` lies before the last call.
        """
        return Step(self._states, t).state

    def next_change(self) -> int | None:
        """Return the second at which something happens by itself (L2, L3), or None."""
        front = self._states[-1].front
        if front is None:
            return None
        if front.started is not None:
            waits = front.late or self.settings.late == "no_break"
            return None if waits else front.started + CUP_SECONDS + 1
        return front.break_until

    def check_open(self, t: int, seat: SeatLike, what: str) -> None:
        """Refuse what ``throw`` and ``move`` would refuse, and note nothing; ``what`` names it.

        Raises:
            LedgerError: why the board must wait (L1), or the match is over.
        """
        Step(self._states, t).check_open(seat, what)

    def _team(self, seat: SeatLike) -> Team:
        state = self._states[-1]
        return state.teams[known_team(state, seat)]

    # -------------------------------------------------------------------------------------- calls

    def throw(self, t: int, seat: SeatLike, die: int | None = None) -> tuple[Happening, ...]:
        """Note that a team throws; refused while anything is owed or undecided (L1)."""
        return self.call("throw", t, seat=seat, die=die)

    def move(
        self,
        t: int,
        seat: SeatLike,
        events: Iterable[BoardEvent] = (),
        text: str | None = None,
        die: int | None = None,
    ) -> tuple[Happening, ...]:
        """Note a move and what it did: refused while anything is owed or undecided (L1).

        Args:
            t: the second.
            seat: the team that moves.
            events: ``("entry", seat, pieces)``, ``("loss", seat, pieces)`` or
                ``("arrival", seat, pieces)``; entries and arrivals are those of the mover.
            text: the move's text, for the log.
            die: the die, for the log.
        """
        return self.call("move", t, seat=seat, events=list(events), text=text, die=die)

    def open(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """A member opens a drink: for a cup he owes, or ahead, one for each entry (not vichy)."""
        return self.call("open", t, seat=seat, member=member)

    def drinker(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """The team says who drinks: one member for a whole battery (L2)."""
        return self.call("drinker", t, seat=seat, member=member)

    def pour(
        self, t: int, seat: SeatLike, member: MemberLike, drink: str | None = None
    ) -> tuple[Happening, ...]:
        """The drinker pours one cup of his own drink, opening one if none is open (L2)."""
        return self.call("pour", t, seat=seat, member=member, drink=drink)

    def table(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """A poured cup stands on the table."""
        return self.call("table", t, seat=seat)

    def start(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The referee's start: the clock of 45 s runs. Ends a break early."""
        return self.call("start", t, seat=seat)

    def end(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The empty cup is put down."""
        return self.call("end", t, seat=seat)

    def take_break(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The team says that it uses its break, which has begun with the empty cup (L2)."""
        return self.call("take_break", t, seat=seat)

    def end_break(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The team is ready before its break is over."""
        return self.call("end_break", t, seat=seat)

    def unable(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """A member cannot (go on): out of the competition (L3)."""
        return self.call("unable", t, seat=seat, member=member)

    def vomit(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """A member vomits: out, and his last round may have to be drunk again (L3, L4)."""
        return self.call("vomit", t, seat=seat, member=member)

    def go_on(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The partner goes on alone and drinks what is left (L3, L4)."""
        return self.call("go_on", t, seat=seat)

    def decline(self, t: int, seat: SeatLike) -> tuple[Happening, ...]:
        """The partner does not go on: the team is out (L3, R34)."""
        return self.call("decline", t, seat=seat)

    def leave(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """A member leaves the table, not within 300 s of his last cup (L5)."""
        return self.call("leave", t, seat=seat, member=member)

    def back(self, t: int, seat: SeatLike, member: MemberLike) -> tuple[Happening, ...]:
        """A member is back at the table."""
        return self.call("back", t, seat=seat, member=member)

    def tick(self, t: int) -> tuple[Happening, ...]:
        """Time passes; what happens by itself is noted."""
        return self.call("tick", t)

    def ruling(
        self,
        t: int,
        reason: str,
        *,
        do: str | None = None,
        seat: SeatLike | None = None,
        member: MemberLike | None = None,
        put: Mapping[str, Any] | None = None,
        back_to: int | None = None,
        position: str | None = None,
    ) -> tuple[Happening, ...]:
        """The head referee decides (L7): logged, final, and the only repair of a record.

        Args:
            t: the second.
            reason: why; some text.
            do: one of ``RULINGS``, about ``seat`` and, where one is meant, ``member``.
            seat: the team.
            member: the member.
            put: values to set, by path in the JSON of the state, for example
                ``{"teams/R/members/0/stay_until": 500, "obligations/0/left": 2}``. Anything but
                the time can be set; the result must be a ledger that can be.
            back_to: return to the ledger as it was after this many entries of the log (1: the
                beginning). The time goes on and the log keeps everything. ``do`` and ``put`` come
                next, and only then what happens by itself: a cup held to be late can so be drunk.
            position: the position text that the board is set to; the board's business, only
                logged here.

        Raises:
            RulingError: what it asks for cannot be.
        """
        return self.call(
            "ruling", t, reason=reason, do=do, seat=seat, member=member,
            put=put, back_to=back_to, position=position,
        )  # fmt: skip

    def call(self, kind: str, t: int, **arguments: Any) -> tuple[Happening, ...]:
        """Carry out a call by its name, one of ``CALLS``; return what followed.

        Raises:
            LedgerError: why it is refused; nothing has changed.
        """
        return self._carry_out(kind, t, arguments)

    def _carry_out(self, kind: Any, t: Any, arguments: dict[str, Any]) -> tuple[Happening, ...]:
        given = check_arguments(kind, arguments)
        step = Step(self._states, t)
        entry = {"t": step.t, "call": kind, **step.carry_out(kind, given)}
        then = tuple(step.then)
        if then:
            entry["then"] = [happening.to_json() for happening in then]
        if self.listener is not None:
            self.listener(entry, step.state, then)
        self._log.append(entry)
        self._states.append(step.state)
        return then

    # ------------------------------------------------------------------------ copies, JSON, replay

    def copy(self) -> Referee:
        """Return an independent copy, without the listener."""
        other = object.__new__(type(self))
        other._states = list(self._states)  # a state is never changed once a call has left it
        other._log = list(self._log)
        other.listener = None
        return other

    def take_over(self, other: Referee) -> None:
        """Become the ledger of another referee, who is not used any more. The listener stays."""
        self._states, self._log = other._states, other._log

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Referee:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {"_states": self._states, "_log": self._log, "listener": None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Referee):
            return NotImplemented
        return self._states[-1] == other._states[-1] and self._log == other._log

    __hash__ = None  # type: ignore[assignment]  # it changes with every call

    def snapshot(self) -> dict[str, Any]:
        """Return the whole ledger, log included, as plain data that JSON can hold."""
        return {"format": FORMAT, "state": state_to_json(self._states[-1]), "log": list(self.log)}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Become the ledger of a snapshot. The listener stays.

        Raises:
            LedgerFormatError: the snapshot is damaged; this ledger is left as it was.
        """
        self.take_over(self.from_snapshot(snapshot))

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Referee:
        """Return the ledger of a snapshot.

        Raises:
            LedgerFormatError: the snapshot is damaged, or its log does not lead to its state.
        """
        if not isinstance(snapshot, Mapping) or snapshot.get("format") != FORMAT:
            raise LedgerFormatError("format", f"a snapshot is a mapping with format {FORMAT!r}")
        if set(snapshot) != {"format", "state", "log"}:
            raise LedgerFormatError("format", "a snapshot has the keys format, state and log")
        referee = cls.replay(snapshot["log"])
        if state_to_json(referee._states[-1]) != snapshot["state"]:
            raise LedgerFormatError("format", "the log of the snapshot leads to another state")
        return referee

    def to_json(self) -> str:
        """Return the snapshot as one line of JSON."""
        return json.dumps(self.snapshot(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Referee:
        """Return the ledger of ``to_json``.

        Raises:
            LedgerFormatError: it is damaged.
        """
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise LedgerFormatError("format", f"not JSON: {error}") from None
        return cls.from_snapshot(data)

    @classmethod
    def replay(cls, log: Iterable[Mapping[str, Any]]) -> Referee:
        """Return the ledger that a log leads to, by doing again all that it says.

        Raises:
            LedgerFormatError: an entry cannot be carried out, or led to something else; its number
                is named.
        """
        entries = list(log)
        first = entries[0] if entries else None
        if not isinstance(first, Mapping) or first.get("format") != FORMAT:
            raise LedgerFormatError("format", f"a log begins with a match of format {FORMAT!r}")
        referee = object.__new__(cls)
        referee._begin(state_from_json(first.get("state")))
        if referee._log[0] != first:
            raise LedgerFormatError("format", "log, entry 1: time and state do not agree")
        for number, entry in enumerate(entries[1:], 2):
            try:
                referee.repeat(entry)
            except LedgerError as error:
                raise LedgerFormatError("format", f"log, entry {number}: {error}") from error
        return referee

    def repeat(self, entry: Any) -> None:
        """Do again one entry of a log.

        Raises:
            LedgerError: it cannot be carried out, or leads to something else (the ledger is then
                left after it).
        """
        if not isinstance(entry, Mapping) or not {"t", "call"} <= set(entry):
            raise LedgerFormatError("format", f"an entry has a time and a call, got {entry!r}")
        arguments = {k: v for k, v in entry.items() if k not in ("t", "call", "then")}
        then = self._carry_out(entry["call"], entry["t"], arguments)
        led_to = [happening.to_json() for happening in then]
        if led_to != entry.get("then", []):
            raise LedgerFormatError("format", f"led to {led_to}, not to {entry.get('then', [])}")


def _read_teams(teams: Mapping[Any, Sequence[Any]], seats: Sequence[int]) -> dict[int, Team]:
    """Return the teams of a match; seats that are not named drink vichy."""
    named: dict[int, Sequence[Any]] = {}
    for key, members in teams.items():
        seat = read_seat(key)
        if seat not in seats or seat in named:
            why = "is named twice" if seat in named else "does not play"
            raise LedgerFormatError("format", f"team {SEAT_NAMES[seat]} {why}")
        named[seat] = members
    out = {}
    for seat in sorted(seats):
        members = named.get(seat, ("vichy", "vichy"))
        if isinstance(members, str) or not isinstance(members, Sequence) or len(members) != MEMBERS:
            raise LedgerFormatError(
                "format", f"team {SEAT_NAMES[seat]} has exactly two members, got {members!r}"
            )
        names = [f"{SEAT_LETTERS[seat]}{i + 1}" for i in range(MEMBERS)]
        out[seat] = Team([read_member(m, n) for m, n in zip(members, names, strict=True)])
    return out
