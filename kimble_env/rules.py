"""Rule sets: one frozen dataclass of options, three presets, and their short text.

``find_rules("norske[own_collision=mover,pieces=2]")`` reads the text that position texts begin
with; ``str(rules)`` writes it. The kernel reads the rules as one small int64 array,
``rules.array``; the indices of that array are the ``R_*`` constants below.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env.board import BOARDS, SEAT_LETTERS, SEATS, Board, find_board
from kimble_env.errors import RulesError, nearest

# Indices of Rules.array. 0..15 hold start distances, see Rules.array.
R_RING = 16
R_LEAVE = 17
R_STRETCH_LAST = 18
R_GOAL = 19  # last progress of the route: home where there is one, else the last stretch field
R_HOME = 20  # progress of home, or NO_HOME
R_PASS = 21  # action code of pass
R_PIECES = 22
R_PASS_ALLOWED = 23  # R12, R22
R_STRETCH_BLOCK = 24  # R15
R_TWO_COLOURS = 25  # R17
R_BATTLES = 26  # R18-R21
R_BATTERIES = 27  # R25
R_PROTECTED = 28  # R27
R_OWN_COLLISION = 29  # R13, R31
R_EMPTY_THROWS = 30  # R11, R23
R_EMPTY_MEANS_TRACK = 31  # R23, three_throws_when
R_SIX_NEEDS_MOVE = 32  # R3
R_MAX_SIXES = 33  # R3, 0 = no limit
R_PLACES = 34  # R6
R_MAX_TURNS = 35  # R9, 0 = no limit
R_POPOMATIC = 36  # R10
R_STARTER = 37  # R8: 0..3 a fixed seat, or one of the two below
R_SECTORS = 38  # R19: 4 sector lengths
R_HOLD_WIN = 42  # L6: a seat with all pieces home has won only when they are drunk
R_MEMBERS = 43  # L3: 1 if members of the teams can fail, option members
R_MEMBER_CHANCE = 44  # per mille: first cup and increase per cup of member 0, then of member 1
R_SIZE = 48

NO_HOME = 100
STARTER_HIGHEST_ROLL = 4
STARTER_RANDOM = 5
OWN_COLLISIONS = ("illegal", "smaller", "mover", "stander")
DEFAULT_SEATS = {2: (0, 2), 3: (0, 1, 2), 4: (0, 1, 2, 3)}


@dataclass(frozen=True)
class Option:
    """What one option of a rule set means: its kind, its choices, its rule number, a sentence."""

    kind: str  # "yesno", "int", "word", "board", "members"
    rule: str
    text: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    optional: bool = False  # None allowed
    hashed: bool = True


OPTIONS: dict[str, Option] = {
    "board": Option("board", "section 2", "the board"),
    "pieces": Option("int", "section 2", "pieces per seat", low=1, high=4),
    "starter": Option(
        "word", "R8", "who starts", ("highest_roll", "random", *SEAT_LETTERS), hashed=False
    ),
    "max_turns": Option(
        "int",
        "R9",
        "turns after which the game is cut off without a winner",
        low=1,
        high=2**31 - 1,
        optional=True,
        hashed=False,
    ),
    "die": Option("word", "R10", "how the die falls", ("uniform", "popomatic")),
    "extra_throw_needs_move": Option("yesno", "R3", "a 6 that moves nothing gives no throw"),
    "max_sixes": Option(
        "int", "R3", "the n-th 6 in a row gives no further throw", low=1, high=100, optional=True
    ),
    "play_for_places": Option("yesno", "R6", "play on until one seat is left"),
    "pass_allowed": Option("yesno", "R12, R22", "any throw may be passed"),
    "stretch_block": Option("yesno", "R15", "own pieces on the stretch may not be passed"),
    "two_colours": Option("yesno", "R17", "two players with two colours each"),
    "battles": Option("yesno", "R18-R21", "landing on another seat starts a battle of dice"),
    "batteries": Option("yesno", "R25", "entering onto own pieces joins them into one unit"),
    "protected_start": Option("yesno", "R27, R30", "pieces on their own start are protected"),
    "own_collision": Option(
        "word", "R13, R31", "landing on an own unit: illegal, or who goes home", OWN_COLLISIONS
    ),
    "home": Option("yesno", "R32", "the route ends in home behind the stretch"),
    "empty_throws": Option(
        "int", "R11, R23", "throws of a turn that starts with nothing in play", low=1, high=3
    ),
    "three_throws_when": Option(
        "word", "R23", "what counts as nothing in play", ("none_in_play", "none_on_track")
    ),
    # The two options of the referee's ledger are part of a rule set, so that a text says all that
    # was agreed, but not of its hash: with the ledger off they change nothing, and with it on they
    # change when the board stands still and who is sent away, never which moves are legal.
    "late": Option(
        "word", "L3", "ledger: a cup after 45 s", ("out", "no_break", "referee"), hashed=False
    ),
    "win_at": Option(
        "word", "L6", "ledger: won when the last piece home is", ("drunk", "home"), hashed=False
    ),
    # Hashed unless none, so that the hash of rules without members is what it always was.
    "members": Option(
        "members", "L3", "environments: chance per mille that a member fails a cup", optional=True
    ),
}
"""Every option of a rule set, in the order of the documentation (``seats`` apart)."""


@dataclass(frozen=True)
class Rules:
    """The options of a game. Make one with :func:`find_rules` or ``rules.replace(...)``.

    ``seats`` (the playing seats, clockwise), ``starter`` and ``max_turns`` do not enter the hash:
    they change who plays and how long, not what is legal.

    Raises:
        RulesError: naming every fault.
    """

    name: str = "kimble"
    board: Board = field(default_factory=lambda: BOARDS["kimble28"])
    pieces: int = 4
    seats: tuple[int, ...] = (0, 1, 2, 3)
    starter: str = "highest_roll"
    max_turns: int | None = None
    die: str = "uniform"
    extra_throw_needs_move: bool = False
    max_sixes: int | None = None
    play_for_places: bool = False
    pass_allowed: bool = True
    stretch_block: bool = False
    two_colours: bool = False
    battles: bool = False
    batteries: bool = False
    protected_start: bool = False
    own_collision: str = "illegal"
    home: bool = False
    empty_throws: int = 1
    three_throws_when: str = "none_in_play"
    late: str = "out"
    win_at: str = "drunk"
    members: str | None = None

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise RulesError([f"rules {self.name!r}: {fault}" for fault in faults])

    def replace(self, **options: Any) -> Rules:
        """Return these rules with other options (``players=n`` is short for default seats).

        Raises:
            RulesError: unknown option, or values that do not fit together (all faults named).
        """
        return dataclasses.replace(self, **_read_options(options))

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave the cached array out: it would come back writable, and compiled
        code takes a writable array for another type and compiles anew."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def players(self) -> int:
        """Number of players: the playing seats, or 2 with ``two_colours`` (R17)."""
        return 2 if self.two_colours else len(self.seats)

    @property
    def last_progress(self) -> int:
        """Where the route ends: home, or the last stretch field."""
        return self.board.home if self.home else self.board.stretch_last

    def __str__(self) -> str:
        """The rules as text: the preset's name and, in brackets, options that differ from it."""
        preset = PRESETS[self.name]
        parts = []
        for name in sorted(OPTIONS):
            value = getattr(self, name)
            if value != getattr(preset, name):
                parts.append(f"{name}={_option_text(value)}")
        return self.name + (f"[{','.join(parts)}]" if parts else "")

    @cached_property
    def hash(self) -> str:
        """16 hex digits over the board and every option that changes legal moves or outcomes."""
        board = dataclasses.asdict(self.board)
        del board["name"]
        options = {
            name: getattr(self, name)
            for name, option in OPTIONS.items()
            if option.hashed and name != "board"
        }
        if self.members is None:
            del options["members"]
        else:  # members can go out, and then win_at decides games
            options["members"] = read_members(self.members)
            options["win_at"] = self.win_at
        text = json.dumps({"board": board, **options}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def array(self) -> npt.NDArray[np.int64]:
        """The rules for the kernel: int64 [R_SIZE], read-only.

        Entry ``4 * a + b`` is ``(start_a - start_b) mod ring``: a field with progress t for seat a
        has progress ``(t + that) mod ring`` for seat b. The rest is named by the R_* constants.
        """
        board, out = self.board, np.zeros(R_SIZE, np.int64)
        for a in range(SEATS):
            for b in range(SEATS):
                out[4 * a + b] = (board.starts[a] - board.starts[b]) % board.ring
            following = board.starts[(a + 1) % SEATS]
            out[R_SECTORS + a] = (following - board.starts[a]) % board.ring
        out[R_RING] = board.ring
        out[R_LEAVE] = board.leave
        out[R_STRETCH_LAST] = board.stretch_last
        out[R_GOAL] = self.last_progress
        out[R_HOME] = board.home if self.home else NO_HOME
        out[R_PASS] = board.pass_action
        out[R_PIECES] = self.pieces
        out[R_PASS_ALLOWED] = self.pass_allowed
        out[R_STRETCH_BLOCK] = self.stretch_block
        out[R_TWO_COLOURS] = self.two_colours
        out[R_BATTLES] = self.battles
        out[R_BATTERIES] = self.batteries
        out[R_PROTECTED] = self.protected_start
        out[R_OWN_COLLISION] = OWN_COLLISIONS.index(self.own_collision)
        out[R_EMPTY_THROWS] = self.empty_throws
        out[R_EMPTY_MEANS_TRACK] = self.three_throws_when == "none_on_track"
        out[R_SIX_NEEDS_MOVE] = self.extra_throw_needs_move
        out[R_MAX_SIXES] = self.max_sixes or 0
        out[R_PLACES] = self.play_for_places
        out[R_MAX_TURNS] = self.max_turns or 0
        out[R_POPOMATIC] = self.die == "popomatic"
        out[R_STARTER] = _starter_code(self.starter)
        if self.members is not None:
            out[R_MEMBERS] = 1
            out[R_MEMBER_CHANCE : R_MEMBER_CHANCE + 4] = read_members(self.members)
            out[R_HOLD_WIN] = self.win_at == "drunk"
        out.setflags(write=False)
        return out

    @cached_property
    def board_array(self) -> npt.NDArray[np.int64]:
        """The same without the members: what is legal and happens on the board alone."""
        return self.array if self.members is None else self.replace(members=None).array


_MEMBER = re.compile(r"([0-9]{1,4})(?:\+([0-9]{1,4}))?")


def read_members(text: str) -> tuple[int, int, int, int]:
    """Read the option ``members``: chances per mille that a member fails a cup.

    ``"20"`` for everybody 20 per mille; ``"20+5"`` and 5 more for every cup already drunk;
    ``"20+5/100"`` the first member of each team so, the second always 100.

    Returns:
        Chance of the first cup and increase per cup, of the first and of the second member.

    Raises:
        RulesError: it cannot be read.
    """
    matches = [_MEMBER.fullmatch(part) for part in text.split("/")]
    numbers = [(int(m[1]), int(m[2] or 0)) for m in matches if m]
    if len(numbers) not in (1, 2) or None in matches or max(map(max, numbers)) > 1000:
        raise RulesError(f"members must be like 20, 20+5 or 20+5/100 (per mille), got {text!r}")
    return (*numbers[0], *numbers[-1])


def members_text(text: str) -> str:
    """Return the shortest text of the option ``members`` that says the same."""
    first, more, second, more_2 = read_members(text)
    parts = [f"{a}+{b}" if b else f"{a}" for a, b in ((first, more), (second, more_2))]
    return parts[0] if parts[0] == parts[1] else "/".join(parts)


def _starter_code(starter: str) -> int:
    if starter == "highest_roll":
        return STARTER_HIGHEST_ROLL
    return STARTER_RANDOM if starter == "random" else SEAT_LETTERS.index(starter)


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Board):
        return value.name
    return "none" if value is None else str(value)


def _value_fault(name: str, option: Option, value: Any) -> str | None:
    """Return what is wrong with one value of one option, or None."""
    if value is None and option.optional:
        return None
    if option.kind == "board":
        return None if isinstance(value, Board) else f"board must be a Board, got {value!r}"
    if option.kind == "yesno":
        return None if isinstance(value, bool) else f"{name} must be yes or no, got {value!r}"
    if option.kind == "word":
        if isinstance(value, str) and value in option.choices:
            return None
        return f"{name} must be one of {', '.join(option.choices)}, got {value!r}"
    if option.kind == "members":
        try:
            read_members(value if isinstance(value, str) else "")
        except RulesError:
            return f"{name} must be like 20, 20+5 or 20+5/100 (per mille) or none, got {value!r}"
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return f"{name} must be a whole number{' or none' * option.optional}, got {value!r}"
    if not option.low <= value <= option.high:
        return f"{name} must lie in {option.low}..{option.high}, got {value}"
    return None


def _seat_faults(rules: Rules) -> list[str]:
    seats = rules.seats
    if not isinstance(seats, tuple) or any(
        isinstance(s, bool) or not isinstance(s, int) or not 0 <= s < SEATS for s in seats
    ):
        return [f"seats must be a tuple of seat numbers 0..3, got {seats!r}"]
    if len(set(seats)) != len(seats) or tuple(sorted(seats)) != seats:
        return [f"seats must be distinct and in clockwise order, got {seats!r}"]
    if len(seats) < 2:
        return [f"at least two seats must play, got {len(seats)}"]
    return []


def _combination_faults(rules: Rules) -> list[str]:
    faults = []
    landing = {
        "batteries": rules.batteries,
        "protected_start": rules.protected_start,
        "own_collision other than illegal": rules.own_collision != "illegal",
    }
    for name, used in landing.items():
        if used and rules.battles:
            faults.append(f"battles cannot be combined with {name}")
        if used and rules.two_colours:
            faults.append(f"two_colours (Kimble and Kombat only) cannot be combined with {name}")
    if rules.two_colours and len(rules.seats) != SEATS:
        faults.append(f"two_colours needs all four seats, got {len(rules.seats)}")
    if rules.two_colours and rules.play_for_places:
        faults.append("two_colours cannot be combined with play_for_places: two players, one place")
    if rules.two_colours and rules.members is not None:
        faults.append("two_colours cannot be combined with members: no colour goes out alone")
    stacks = rules.batteries or rules.home
    if not stacks and rules.board.stretch < rules.pieces:
        faults.append(
            f"{rules.pieces} pieces need as many stretch fields, {rules.board.name} has "
            f"{rules.board.stretch}"
        )
    if rules.starter in SEAT_LETTERS and SEAT_LETTERS.index(rules.starter) not in rules.seats:
        faults.append(f"starter {rules.starter} does not play")
    return faults


def _faults(rules: Rules) -> list[str]:
    """Return every fault of the options, alone and together."""
    faults = [] if rules.name in ("kimble", "kombat", "norske") else ["unknown rule set"]
    for name, option in OPTIONS.items():
        fault = _value_fault(name, option, getattr(rules, name))
        if fault:
            faults.append(fault)
    seat_faults = _seat_faults(rules)
    if faults or seat_faults:
        return faults + seat_faults
    return _combination_faults(rules)


def _read_value(name: str, value: Any) -> Any:
    """Turn the text of an option's value into the value; other values pass unchanged."""
    option = OPTIONS[name]
    if option.kind == "board":
        return find_board(value)
    if option.kind == "int" and isinstance(value, np.integer):
        return int(value)
    if not isinstance(value, str):
        return value
    if option.optional and value == "none":
        return None
    if option.kind == "yesno" and value in ("yes", "no"):
        return value == "yes"
    if option.kind == "int" and re.fullmatch(r"-?[0-9]{1,12}", value):
        return int(value)
    if option.kind == "members" and _value_fault(name, option, value) is None:
        return members_text(value)
    return value


def read_seats(value: Any) -> tuple[int, ...]:
    """Return seat numbers from letters ("RBY"), names or numbers.

    Raises:
        RulesError: a letter or name that is no seat.
    """
    if isinstance(value, str):
        letters = value.replace(",", "").replace(" ", "").upper()
        bad = [c for c in letters if c not in SEAT_LETTERS]
        if bad or not letters:
            raise RulesError(f"seats must be letters of {SEAT_LETTERS}, got {value!r}")
        return tuple(SEAT_LETTERS.index(c) for c in letters)
    if isinstance(value, Sequence) or isinstance(value, np.ndarray):
        return tuple(int(s) if isinstance(s, np.integer) else s for s in value)
    raise RulesError(f"seats must be letters or numbers, got {value!r}")


def _read_options(options: dict[str, Any]) -> dict[str, Any]:
    """Read option values that may be text; name every unknown option at once."""
    out: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in options.items():
        try:
            if name == "players":
                whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
                if not whole or value not in DEFAULT_SEATS:
                    faults.append(f"players must be 2, 3 or 4, got {value!r}")
                else:
                    out.setdefault("seats", DEFAULT_SEATS[value])
            elif name == "seats":
                out["seats"] = read_seats(value)
            elif name in OPTIONS:
                out[name] = _read_value(name, value)
                fault = _value_fault(name, OPTIONS[name], out[name])
                faults += [fault] if fault else []
            else:
                faults.append(
                    f"unknown option {name!r}{nearest(name, OPTIONS)}; known: "
                    f"{', '.join(sorted(OPTIONS))}"
                )
        except RulesError as error:
            faults.extend(error.faults)
    if "players" in options and "seats" in options and not faults:
        if len(out["seats"]) != options["players"]:
            faults.append(f"players={options['players']} but {len(out['seats'])} seats given")
    if faults:
        raise RulesError(faults)
    return out


PRESETS: dict[str, Rules] = {
    "kimble": Rules("kimble"),
    "kombat": Rules("kombat", battles=True),
    "norske": Rules(
        "norske",
        starter="random",
        pass_allowed=False,
        batteries=True,
        protected_start=True,
        own_collision="smaller",
        home=True,
        empty_throws=3,
    ),
}
"""The three rule sets with their default options."""

_TEXT = re.compile(r"([A-Za-z_]+)(?:\[(.*)\])?")


def find_rules(rules: str | Rules = "kimble", **options: Any) -> Rules:
    """Return rules from a text, a preset's name or Rules, with further options applied.

    Args:
        rules: for example ``"kimble"`` or ``"norske[own_collision=mover,pieces=2]"``.
        options: any of ``OPTIONS``, ``seats`` (numbers or letters) and ``players`` (2 to 4). One
            given both in the text and here with different values is an error.

    Raises:
        RulesError: naming every fault.
    """
    if isinstance(rules, Rules):
        return rules.replace(**options) if options else rules
    match = _TEXT.fullmatch(rules.strip()) if isinstance(rules, str) else None
    if match is None:
        raise RulesError(f"cannot read rules {rules!r}; expected NAME or NAME[option=value,...]")
    name, inside = match.group(1), match.group(2)
    if name not in PRESETS:
        raise RulesError(
            f"unknown rule set {name!r}{nearest(name, PRESETS)}; known: {', '.join(PRESETS)}"
        )
    written = _split_options(inside) if inside is not None else {}
    both = [k for k in written if k in options]
    read = _read_options(written)
    given = _read_options(options)
    faults = [
        f"{k} is given twice: {written[k]} and {options[k]}" for k in both if read[k] != given[k]
    ]
    if faults:
        raise RulesError(faults)
    return PRESETS[name].replace(**{**read, **given})


def _split_options(inside: str) -> dict[str, str]:
    """Split ``a=1,b=yes`` and name every malformed or repeated part."""
    out: dict[str, str] = {}
    faults = []
    for part in inside.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or not key or not value:
            faults.append(f"cannot read option {part!r}; expected name=value")
        elif key in out:
            faults.append(f"option {key!r} is given twice")
        elif key in ("seats", "players"):
            faults.append(f"{key} is not written in rule texts: positions show who plays")
        else:
            out[key] = value
    if faults:
        raise RulesError(faults)
    return out
