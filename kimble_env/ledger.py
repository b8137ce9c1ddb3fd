"""What the Norske referee writes down: members, teams, obligations, errors (rules, section 7).

This file holds the data and its JSON; :mod:`kimble_env.ledger_rules` holds the rules that
change it, and :mod:`kimble_env.referee` is the door to both.
All times are whole seconds on a clock of the caller's choice; none of this reads a wall clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.errors import KimbleError

DRINKS = ("beer", "cider", "long drink", "vichy")
"""The drinks of the rules; vichy is mineral water, and a full citizen of the game."""
CAUSES = ("hit", "home", "refill", "redrink")
LATE_RULES = ("out", "no_break", "referee")
WIN_RULES = ("drunk", "home")
CUP_RULES = ("marked", "equal")
CUP_SECONDS = 45
"""A cup is drunk within this many seconds, this one included (L2)."""
BREAK_SECONDS = 30
STAY_SECONDS = 300
MEMBERS = 2
LAST_SECOND = 2**31 - 1
"""Times are whole seconds from 0 to this one."""
FORMAT = "kimble-referee/1"


# ----------------------------------------------------------------------------------------- errors


class LedgerError(KimbleError):
    """A call that the referee refuses. Nothing has been changed; ``code`` names the reason."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self))


class ClockError(LedgerError):
    """A time that is no whole second or runs backwards; codes ``time``, ``time_backwards``."""


class GatedError(LedgerError):
    """A throw or move while something is owed or undecided (L1); code ``gated``."""


class MatchOverError(LedgerError):
    """A throw or move after the match has been won; code ``match_over``."""


class TeamError(LedgerError):
    """The wrong team: ``no_such_team``, ``team_out``, ``wrong_team`` (it owes nothing now)."""


class MemberError(LedgerError):
    """The wrong member: ``no_such_member``, ``member_out``, ``wrong_member``, ``away``."""


class DrinkerError(LedgerError):
    """Naming a drinker: ``no_drinker``, ``drinker_named``, ``drinker_changed``."""


class DrinkError(LedgerError):
    """Opening or pouring: ``wrong_drink``, ``vichy_early``, ``too_many_open``."""


class CupError(LedgerError):
    """A cup in the wrong place: ``all_poured``, ``not_poured``, ``not_on_table``."""


class DrinkingError(LedgerError):
    """The drinking clock: ``clock_running``, ``clock_stopped``."""


class BreakError(LedgerError):
    """A break that is not due: ``break_single``, ``break_after_last``, ``break_drinking``,
    ``break_first``, ``no_break``."""


class LeaveError(LedgerError):
    """Leaving the table, or returning: ``leaving_early``, ``leaving_owing``, ``at_the_table``."""


class DecisionError(LedgerError):
    """The partner's word: ``undecided`` (say it first), ``nothing_to_decide``."""


class RulingNeededError(LedgerError):
    """A late cup waits for the head referee (option ``late=referee``); code ``ruling_needed``."""


class RulingError(LedgerError):
    """A ruling that cannot be carried out; code ``ruling``."""


class LedgerFormatError(LedgerError):
    """Settings, JSON or a log that cannot be read; code ``format``."""


# ------------------------------------------------------------------------------------------ records


@dataclass(slots=True)
class Member:
    """One of the two members of a team.

    Attributes:
        name: as called at the table; unique within the team.
        drink: the assigned drink, one of ``DRINKS``.
        playing: False once out of the competition (L3).
        away: has left the table.
        stay_until: may leave from this second on (L5); 0 before the first cup.
        opened: drinks opened and not yet poured.
        drunk: cups emptied so far.
        finished: the second at which the last cup was empty, None before the first.
        round_number: the obligation that this cup belonged to, 0 before the first.
        round_cups: how many cups of that obligation this member has emptied (L4).
    """

    name: str
    drink: str
    playing: bool = True
    away: bool = False
    stay_until: int = 0
    opened: int = 0
    drunk: int = 0
    finished: int | None = None
    round_number: int = 0
    round_cups: int = 0


@dataclass(slots=True)
class Decision:
    """A member is out and the partner has not yet said whether he goes on alone (L3).

    Attributes:
        failed: index of the member who is out.
        why: ``late``, ``unable``, ``vomit`` or ``ruling``.
        interrupted: number of the obligation he was drinking, 0 for none.
        redrink: cups of his last round to drink again (L4), 0 for none.
        redrink_of: number of that obligation.
    """

    failed: int
    why: str
    interrupted: int = 0
    redrink: int = 0
    redrink_of: int = 0


@dataclass(slots=True)
class Obligation:
    """Cups that a team owes.

    Attributes:
        number: counts all obligations of the match from 1.
        seat: the owing team.
        cause: ``hit``, ``home``, ``refill`` (left over by a failed partner) or ``redrink`` (L4).
        cups: cups of the battery, 1 for a single one.
        left: cups not yet empty, the one being drunk included.
        drinker: index of the member, None until named.
        poured: cups poured that do not stand on the table yet.
        ready: full cups on the table.
        started: the second of the referee's start for the cup being drunk, else None.
        break_until: the second at which the break is over, None without a break.
        late: the running cup is late and waits for a ruling (``late="referee"``).
    """

    number: int
    seat: int
    cause: str
    cups: int
    left: int
    drinker: int | None = None
    poured: int = 0
    ready: int = 0
    started: int | None = None
    break_until: int | None = None
    late: bool = False

    @property
    def to_pour(self) -> int:
        """Cups that still have to be poured."""
        return self.left - self.poured - self.ready - (self.started is not None)


@dataclass(slots=True)
class Team:
    """A team of two.

    Attributes:
        members: both, also those who are out.
        out: out of the game (R34).
        home: pieces that have come home.
        entries: pieces that have entered the board so far.
        opened_ahead: drinks opened before a cup was owed, so far (L8: at most ``entries``).
        owed: cups ever owed; always ``drunk + dropped +`` what is open, rulings apart.
        drunk: cups emptied.
        dropped: cups let off when the team went out.
        decision: what the partner has to say, or None.
    """

    members: list[Member]
    out: bool = False
    home: int = 0
    entries: int = 0
    opened_ahead: int = 0
    owed: int = 0
    drunk: int = 0
    dropped: int = 0
    decision: Decision | None = None

    @property
    def status(self) -> str:
        """``duo``, ``solo`` or ``out``; a team that has not decided yet still counts as duo."""
        if self.out:
            return "out"
        alone = sum(m.playing for m in self.members) < MEMBERS and self.decision is None
        return "solo" if alone else "duo"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is agreed before the match; the options are those of the rule set.

    Attributes:
        pieces: cups per team on the board, 1 to 4.
        late: what a cup after 45 s means (L3): ``out``, ``no_break`` or ``referee``.
        win_at: won when the last piece home is ``drunk`` (L6) or as soon as it is ``home``.
        play_for_places: the match goes on after the first team has won (R6).
        cups: the cups are ``marked`` at 33 cl, or ``equal`` in size.

    Raises:
        LedgerFormatError: naming every fault.
    """

    pieces: int = 4
    late: str = "out"
    win_at: str = "drunk"
    play_for_places: bool = False
    cups: str = "marked"

    def __post_init__(self) -> None:
        faults = []
        if not _is_count(self.pieces, 1, 4):
            faults.append(f"pieces must be 1..4, got {self.pieces!r}")
        choices = {"late": LATE_RULES, "win_at": WIN_RULES, "cups": CUP_RULES}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                words = ", ".join(allowed)
                faults.append(f"{name} must be one of {words}, got {getattr(self, name)!r}")
        if not _is_flag(self.play_for_places):
            faults.append(f"play_for_places must be true or false, got {self.play_for_places!r}")
        if faults:
            raise LedgerFormatError("format", "; ".join(faults))


@dataclass(slots=True)
class State:
    """The whole ledger at one moment: what a call reads and changes."""

    settings: Settings
    teams: dict[int, Team]
    now: int = 0
    obligations: list[Obligation] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    next_number: int = 1

    def copy(self) -> State:
        """Return an independent copy."""
        return State(
            self.settings,
            {seat: _copy_team(team) for seat, team in self.teams.items()},
            self.now,
            [dataclasses.replace(ob) for ob in self.obligations],
            list(self.places),
            self.next_number,
        )

    # ---- questions

    @property
    def front(self) -> Obligation | None:
        """The obligation that is drunk now: first in, first out (L1)."""
        return self.obligations[0] if self.obligations else None

    def left(self, seat: int) -> int:
        """Return the cups that a team still owes."""
        return sum(ob.left for ob in self.obligations if ob.seat == seat)

    def undecided(self) -> list[int]:
        """Return the teams whose partner has not yet said whether he goes on alone."""
        return [seat for seat, team in self.teams.items() if team.decision is not None]

    @property
    def gated(self) -> bool:
        """True while no throw or move is legal (L1)."""
        return bool(self.obligations) or bool(self.undecided())

    def active(self) -> list[int]:
        """Return the teams that are neither out nor placed."""
        return [s for s, team in self.teams.items() if not team.out and s not in self.places]

    @property
    def winner(self) -> int | None:
        """The team that has won (L6, R34), or None."""
        if self.places:
            return self.places[0]
        active = self.active()
        return active[0] if len(active) == 1 else None

    @property
    def over(self) -> bool:
        """True once the match is decided (R6, R34)."""
        if self.places and not self.settings.play_for_places:
            return True
        return len(self.active()) < 2

    def phase(self, ob: Obligation) -> str:
        """Return where an obligation stands (L2).

        ``partner`` (a partner must decide first), ``drinker``, ``pour``, ``table``, ``start``,
        ``drinking``, ``break`` or ``ruling``; the obligations behind the first are ``waiting``.
        """
        if self.front is None or ob.number != self.front.number:
            return "waiting"
        if ob.late:
            return "ruling"
        if ob.started is not None:
            return "drinking"
        if self.teams[ob.seat].decision is not None:
            return "partner"
        if ob.drinker is None:
            return "drinker"
        if ob.break_until is not None:
            return "break"
        if ob.ready:
            return "start"
        return "table" if ob.poured else "pour"

    def waiting_for(self) -> list[str]:
        """Return, in words, all that the table waits for; empty when the next throw is legal."""
        lines = []
        for seat in self.undecided():
            decision = self.teams[seat].decision
            assert decision is not None
            failed = self.teams[seat].members[decision.failed].name
            partner = self.teams[seat].members[1 - decision.failed].name
            lines.append(
                f"{SEAT_NAMES[seat]}: {failed} is out ({decision.why}); "
                f"{partner} must say whether to go on alone"
            )
        for ob in self.obligations:
            team, phase = self.teams[ob.seat], self.phase(ob)
            who = "" if ob.drinker is None else f" by {team.members[ob.drinker].name}"
            cups = "1 cup" if ob.left == 1 else f"{ob.left} cups"
            lines.append(f"{SEAT_NAMES[ob.seat]} owes {cups} ({ob.cause}){who}: {PHASES[phase]}")
        return lines


PHASES = {
    "partner": "waits for the partner's decision",
    "drinker": "choose who drinks",
    "pour": "pour",
    "table": "put the cup on the table",
    "start": "the referee gives the start",
    "drinking": "drinking",
    "break": "break between two cups",
    "ruling": "late, waits for the head referee's ruling",
    "waiting": "after the cups before it",
}
"""The phases of an obligation and what each waits for."""


def _copy_team(team: Team) -> Team:
    decision = None if team.decision is None else dataclasses.replace(team.decision)
    members = [dataclasses.replace(member) for member in team.members]
    return dataclasses.replace(team, members=members, decision=decision)


# ----------------------------------------------------------------------------------------- JSON


def state_to_json(state: State) -> dict[str, Any]:
    """Return a state as plain JSON data; seats are letters."""
    return {
        "settings": dataclasses.asdict(state.settings),
        "now": state.now,
        "teams": {SEAT_LETTERS[s]: dataclasses.asdict(team) for s, team in state.teams.items()},
        "obligations": [
            {**dataclasses.asdict(ob), "seat": SEAT_LETTERS[ob.seat]} for ob in state.obligations
        ],
        "places": [SEAT_LETTERS[seat] for seat in state.places],
        "next_number": state.next_number,
    }


def state_from_json(data: Any) -> State:
    """Read a state from JSON data.

    Raises:
        LedgerFormatError: naming the faults; a state that is accepted is consistent.
    """
    try:
        state = _read_state(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, LedgerFormatError):
            raise
        reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise LedgerFormatError("format", f"cannot read the ledger: {reason}") from None
    faults = state_faults(state)
    if faults:
        raise LedgerFormatError("format", "; ".join(faults))
    return state


def _read_state(data: Any) -> State:
    teams = {}
    for letter, team in data["teams"].items():
        decision = None if team["decision"] is None else Decision(**team["decision"])
        members = [Member(**member) for member in team["members"]]
        teams[_letter(letter)] = Team(**{**team, "members": members, "decision": decision})
    extra = set(data) - {"settings", "teams", "now", "obligations", "places", "next_number"}
    if extra:
        raise ValueError(f"unknown keys {sorted(extra)}")
    return State(
        Settings(**data["settings"]),
        dict(sorted(teams.items())),
        data["now"],
        [Obligation(**{**ob, "seat": _letter(ob["seat"])}) for ob in data["obligations"]],
        [_letter(letter) for letter in data["places"]],
        data["next_number"],
    )


def _letter(letter: Any) -> int:
    if not isinstance(letter, str) or len(letter) != 1 or letter not in SEAT_LETTERS:
        raise ValueError(f"a seat must be one letter of {SEAT_LETTERS}, got {letter!r}")
    return SEAT_LETTERS.index(letter)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any, low: int = 0, high: int = LAST_SECOND) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _check(faults: list[str], where: str, rules: Iterable[tuple[str, bool]]) -> None:
    faults += [f"{where}: {text}" for text, holds in rules if not holds]


def state_faults(state: State) -> list[str]:
    """Return every fault of a state, as texts; empty for a state that can be."""
    faults: list[str] = []
    if not 2 <= len(state.teams) <= len(SEAT_LETTERS):
        faults.append(f"two to four teams play, got {len(state.teams)}")
    _check(
        faults,
        "ledger",
        [
            (f"now must be 0..{LAST_SECOND}, got {state.now!r}", _is_count(state.now)),
            (
                f"next_number must be 1 or more, got {state.next_number!r}",
                _is_count(state.next_number, 1),
            ),
        ],
    )
    for seat, team in state.teams.items():
        faults += _team_faults(state, seat, team)
    if not faults:
        faults += _queue_faults(state) + _place_faults(state)
    return faults


def _member_faults(state: State, where: str, member: Member) -> list[str]:
    faults: list[str] = []
    counts = ("stay_until", "opened", "drunk", "round_number", "round_cups")
    _check(
        faults,
        where,
        [
            (
                f"a name must be some text, got {member.name!r}",
                isinstance(member.name, str) and bool(member.name.strip()),
            ),
            (
                f"the drink must be one of {', '.join(DRINKS)}, got {member.drink!r}",
                member.drink in DRINKS,
            ),
            (
                "playing and away must be true or false",
                isinstance(member.playing, bool) and isinstance(member.away, bool),
            ),
            *(
                (
                    f"{name} must be a count, got {getattr(member, name)!r}",
                    _is_count(getattr(member, name)),
                )
                for name in counts
            ),
            (
                f"finished must lie in 0..now or be null, got {member.finished!r}",
                member.finished is None or _is_count(member.finished, 0, state.now),
            ),
        ],
    )
    return faults


def _team_faults(state: State, seat: int, team: Team) -> list[str]:
    where, faults = SEAT_NAMES[seat], []
    if len(team.members) != MEMBERS:
        return [f"{where}: a team has exactly two members, got {len(team.members)}"]
    if not _is_count(state.now):
        return []
    for member in team.members:
        faults += _member_faults(state, f"{where}, {member.name}", member)
    counts = ("home", "entries", "opened_ahead", "owed", "drunk", "dropped")
    playing = [member.playing for member in team.members]
    decision = team.decision
    _check(
        faults,
        where,
        [
            *(
                (
                    f"{name} must be a count, got {getattr(team, name)!r}",
                    _is_count(getattr(team, name)),
                )
                for name in counts
            ),
            ("the two members need different names", team.members[0].name != team.members[1].name),
            ("out must be true or false", isinstance(team.out, bool)),
            (
                f"at most {state.settings.pieces} pieces can be home, got {team.home}",
                not _is_count(team.home) or team.home <= state.settings.pieces,
            ),
            ("a team that plays needs a member who plays", team.out or any(playing)),
            (
                "only a team that plays with one member out has something to decide",
                decision is None or (not team.out and sum(playing) == 1),
            ),
        ],
    )
    if decision is not None:
        faults += _decision_faults(where, team, decision)
    return faults


def _decision_faults(where: str, team: Team, decision: Decision) -> list[str]:
    faults: list[str] = []
    numbers = (decision.interrupted, decision.redrink, decision.redrink_of)
    _check(
        faults,
        f"{where}, decision",
        [
            (
                "failed must be a member who is out",
                _is_count(decision.failed, 0, MEMBERS - 1)
                and not team.members[decision.failed].playing,
            ),
            ("why must be a text", isinstance(decision.why, str)),
            ("interrupted, redrink and redrink_of must be counts", all(map(_is_count, numbers))),
        ],
    )
    return faults


def _queue_faults(state: State) -> list[str]:
    faults: list[str] = []
    numbers = [ob.number for ob in state.obligations]
    if len(set(numbers)) != len(numbers):
        faults.append("obligations need different numbers")
    for ob in state.obligations:
        where = f"obligation {ob.number}"
        if ob.seat not in state.teams or state.teams[ob.seat].out:
            faults.append(f"{where}: team {SEAT_NAMES[ob.seat]} is out or does not play")
            continue
        faults += _obligation_faults(state, where, ob)
    return faults


def _obligation_faults(state: State, where: str, ob: Obligation) -> list[str]:
    faults: list[str] = []
    counts = (ob.number, ob.cups, ob.left, ob.poured, ob.ready)
    if not all(map(_is_count, counts)) or not isinstance(ob.late, bool):
        return [f"{where}: number, cups, left, poured and ready must be counts, late yes or no"]
    members = state.teams[ob.seat].members
    named = ob.drinker is not None
    _check(
        faults,
        where,
        [
            (f"cause must be one of {', '.join(CAUSES)}, got {ob.cause!r}", ob.cause in CAUSES),
            (
                f"number must be below next_number {state.next_number}",
                1 <= ob.number < state.next_number,
            ),
            (f"left must lie in 1..{ob.cups}, got {ob.left}", 1 <= ob.left <= ob.cups),
            (
                "the drinker must be a member who plays",
                ob.drinker is None
                or (_is_count(ob.drinker, 0, MEMBERS - 1) and members[ob.drinker].playing),
            ),
            (
                "started must lie in 0..now or be null",
                ob.started is None or _is_count(ob.started, 0, state.now),
            ),
            (
                "break_until must be a second or null",
                ob.break_until is None or _is_count(ob.break_until),
            ),
            ("more cups are poured than owed", ob.to_pour >= 0),
            (
                "nothing is poured or drunk before a drinker is named",
                named or (ob.poured == ob.ready == 0 and ob.started is None),
            ),
            (
                "only the first obligation is being drunk",
                ob is state.front
                or (ob.poured == ob.ready == 0 and ob.started is None and ob.break_until is None),
            ),
            (
                "a break falls between two cups",
                ob.break_until is None or (ob.started is None and ob.left < ob.cups),
            ),
            ("only a cup being drunk can be late", not ob.late or ob.started is not None),
        ],
    )
    return faults


def _place_faults(state: State) -> list[str]:
    faults: list[str] = []
    if len(set(state.places)) != len(state.places) or not set(state.places) <= set(state.teams):
        faults.append("places must list different teams of this match")
    if state.places and len(state.places) > 1 and not state.settings.play_for_places:
        faults.append("only one team can be placed unless the match is played for places")
    return faults


def read_member(value: Any, name: str) -> Member:
    """Return a member from a Member, a drink, or a pair (name, drink).

    Raises:
        LedgerFormatError: anything else, or an unknown drink.
    """
    if isinstance(value, Member):
        member = dataclasses.replace(value)
    elif isinstance(value, str):
        member = Member(name, value)
    elif isinstance(value, Sequence) and len(value) == 2:
        member = Member(value[0], value[1])
    else:
        raise LedgerFormatError(
            "format", f"a member is a drink or a pair (name, drink), got {value!r}"
        )
    if member.drink not in DRINKS:
        raise LedgerFormatError(
            "format", f"a drink is one of {', '.join(DRINKS)}, got {member.drink!r}"
        )
    return member
