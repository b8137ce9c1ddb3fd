"""Texts: positions, moves and game records. What is printed here is read back to the same thing.

**Position**: ``norske R3,20/B0x2/Y-/G- R 4 1`` is the rule set with the options that differ from
it in brackets; the seats clockwise with the progress of every piece not in home base (``x2`` a
battery, ``H`` or ``Hx3`` home, ``-`` none; a colour that does not play is left out); the seat to
act; the die thrown, ``-`` before the throw or ``*`` in a finished game; the throws left, including
this one. Optional fields follow when they are not at their defaults, in this order:

========  ===========================================  =======================================
field     meaning                                      default
========  ===========================================  =======================================
sixes=2   sixes in a row so far (R3)                   0
turn=140  turns ended so far (R9)                      0
face=5    the face that the dome shows (R10)           none; with a popomatic die, the die out
places=RB the seats that have finished, in order (R6)  none; only with ``play_for_places``
out=G     the seats that are out, in order (R34)       none
========  ===========================================  =======================================

``sixes``, ``turn`` and ``face`` matter only with ``max_sixes``, ``max_turns`` and
``die=popomatic``, and are counted only then; given without, they are kept. Of the order in which
things are written only the order of pieces, of options and of optional fields is free in a text
that is read; :func:`format_position` writes the one order shown. The random state, the history and
the ledger are not in the text.

**Move**: ``enter``, ``3-8``, ``30-H``, ``pass``.

**Record** (JSON lines): a header, one line a throw, the result; see :class:`GameRecord`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kimble_env import kernel
from kimble_env.board import BOARDS, SEAT_LETTERS, SEAT_NAMES, SEATS
from kimble_env.errors import NotationError, PositionError
from kimble_env.files import write_whole
from kimble_env.kernel import ENTER, RUNNING, STATE, TRUNCATED, WON
from kimble_env.rules import Rules, find_rules

State: TypeAlias = Any
"""A record of ``kernel.STATE``, or an array STATE [1]."""

_HEAD = re.compile(r"([^\s\[\]]+(?:\[[^\[\]]*\])?)\s+(.*)", re.DOTALL)
_UNIT = re.compile(r"(0|[1-9][0-9]?|H)(?:x([2-9]))?")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_MOVE = re.compile(r"(0|[1-9][0-9]?)-(0|[1-9][0-9]?|H)")
_FIELDS = ("sixes", "turn", "face", "places", "out")
_FIELD_RANGES = {"sixes": (0, 127), "turn": (0, 2**31 - 1), "face": (1, 6)}


def record_of(state: State) -> Any:
    """Return the record itself from a record of STATE or an array STATE [1].

    Raises:
        PositionError: anything else.
    """
    if getattr(state, "dtype", None) != STATE or getattr(state, "size", 0) != 1:
        raise PositionError(f"expected one record of STATE, got {type(state).__name__}")
    return state if isinstance(state, np.void) else state.reshape(-1)[0]


# ------------------------------------------------------------------------------------------ moves


def format_move(rules: Rules, action: int, die: int) -> str:
    """Return the text of an action for the die thrown: ``enter``, ``3-8``, ``30-H``, ``pass``.

    Raises:
        NotationError: no such action on this board, or a move beyond the end of the route (R4).
    """
    if action == ENTER:
        return "enter"
    if action == rules.board.pass_action:
        return "pass"
    source, target = int(action) - 1, int(action) - 1 + int(die)
    if not 0 <= source <= rules.board.stretch_last or not 1 <= die <= 6:
        raise NotationError(
            f"no move has action {action} and die {die}; expected 0..{rules.board.pass_action} "
            "and 1..6"
        )
    if target > rules.last_progress:
        raise NotationError(f"{source}-{target} goes beyond {rules.last_progress}, the route's end")
    return f"{source}-{'H' if target == rules.board.home else target}"


def shown_action(rules: Rules, action: int, die: int) -> str:
    """Return an action for a message, ``action 4 (3-8)``; without a move where that is none."""
    try:
        return f"action {action} ({format_move(rules, action, die)})"
    except NotationError:
        return f"action {action}"


def shown_actions(rules: Rules, bits: int, die: int) -> str:
    """Return legal actions, given as bits, for a message: ``0 (enter), 4 (3-8), 33 (pass)``."""
    codes = [a for a in range(rules.board.actions) if bits >> a & 1]
    return ", ".join(f"{a} ({format_move(rules, a, die)})" for a in codes)


def parse_move(rules: Rules, text: str) -> int:
    """Return the action code of a move's text: 0 enter, ``1 + p`` from progress p, last pass.

    Raises:
        NotationError: the text is no move on this board; it says why.
    """
    if text == "enter":
        return ENTER
    if text == "pass":
        return rules.board.pass_action
    match = _MOVE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise NotationError(f"cannot read move {text!r}; expected enter, pass, 3-8 or 30-H")
    if (match[2] == "H") and not rules.home:
        raise NotationError(f"move {text!r}: {rules.name} has no home here")
    source = int(match[1])
    target = rules.board.home if match[2] == "H" else int(match[2])
    if source > rules.board.stretch_last or target > rules.last_progress:
        raise NotationError(f"move {text!r}: the route ends at {rules.last_progress}")
    if match[2] != "H" and rules.home and target == rules.board.home:
        raise NotationError(f"move {text!r}: home is written H")
    if not 1 <= target - source <= 6:
        raise NotationError(f"move {text!r}: a move goes 1 to 6 forward, not {target - source}")
    return source + 1


# ------------------------------------------------------------------------------ printing positions


def format_position(rules: Rules, state: State) -> str:
    """Return the position text of a record of STATE (or STATE [1]).

    Raises:
        NotationError: the board is not one that texts know by name (see ``register_board``).
        PositionError: ``state`` is not one record of STATE.
    """
    if BOARDS.get(rules.board.name) != rules.board:
        raise NotationError(
            f"board {rules.board.name!r} is unknown to texts; call register_board with it first"
        )
    s = record_of(state)
    pieces, plays = s["pieces"].tolist(), s["plays"].tolist()
    seats = "/".join(
        SEAT_LETTERS[x] + _pieces_text(rules, pieces[x]) for x in range(SEATS) if plays[x]
    )
    die = "*" if s["status"] == WON else str(int(s["die"]) or "-")
    words = [str(rules), seats, SEAT_LETTERS[int(s["seat"])], die, str(int(s["throws"]))]
    return " ".join(words + _optional_fields(rules, s))


def _pieces_text(rules: Rules, pieces: list[int]) -> str:
    parts = []
    for p in sorted({p for p in pieces if p >= 0}):
        place = "H" if rules.home and p == rules.board.home else str(p)
        n = pieces.count(p)
        parts.append(place if n == 1 else f"{place}x{n}")
    return ",".join(parts) or "-"


def _optional_fields(rules: Rules, s: Any) -> list[str]:
    fields = []
    face = int(s["face"])
    if rules.die == "popomatic" and face == s["die"]:
        face = 0
    for name, value in (("sixes", int(s["sixes"])), ("turn", int(s["turn"])), ("face", face)):
        if value:
            fields.append(f"{name}={value}")
    if rules.play_for_places and (s["places"] > 0).any():
        fields.append("places=" + _in_order(s["places"].tolist()))
    if (s["out"] > 0).any():
        fields.append("out=" + _in_order(s["out"].tolist()))
    return fields


def _in_order(numbers: Sequence[int]) -> str:
    """Return the letters of the seats numbered 1, 2, ... in that order."""
    ranked = sorted((n, seat) for seat, n in enumerate(numbers) if n > 0)
    return "".join(SEAT_LETTERS[seat] for _, seat in ranked)


def seats_in_order(numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the seats numbered 1, 2, ... in ``places`` or ``out``, in that order."""
    return tuple(SEAT_LETTERS.index(letter) for letter in _in_order(numbers))


# ------------------------------------------------------------------------------- reading positions


@dataclass
class _Words:
    """What a position text says, before the rules have judged it."""

    pieces: dict[int, list[tuple[int | str, int]]]
    seat: int
    die: int
    over: bool
    throws: int
    fields: dict[str, Any]


def parse_position(text: str) -> tuple[Rules, npt.NDArray[np.void]]:
    """Read a position text.

    Returns:
        The rules, with the seats that play, and the position, STATE [1]. Its random state (seed and
        stream counters) is zero, and so are the tallies of losses and arrivals.

    Raises:
        NotationError: the text cannot be read; all faults of spelling are named.
        RulesError: the rule set or its options cannot be.
        PositionError: the position cannot be; all its faults are named, a die without a legal move
            among them.
    """
    rules, words = _read_text(text)
    return rules, _build(rules, words)


def read_start(text: Any, rules: Rules) -> npt.NDArray[np.void]:
    """Return the game STATE [1] that a position text describes, to be played on under ``rules``.

    Whether it is over is judged by the ``max_turns`` of ``rules``, not by that of the text.

    Raises:
        NotationError: the text cannot be read.
        RulesError: its rule set or options cannot be.
        PositionError: it is no text, cannot be, is over, or is of other rules or seats.
    """
    if not isinstance(text, str):
        raise PositionError(f"a position must be a text, got {text!r}")
    found, words = _read_text(text)
    faults = []
    if found.hash != rules.hash:
        faults.append(f"the position is of {found}, this environment plays {rules}")
    if found.seats != rules.seats:
        faults.append(f"the position is of seats {found.seats}, here play seats {rules.seats}")
    turn, limit = words.fields.get("turn", 0), rules.max_turns
    if words.over or (limit is not None and turn >= limit):
        faults.append("the game of the position is over")
    if faults:
        raise PositionError([f"{text!r}: {fault}" for fault in faults])
    return _build(found.replace(max_turns=limit), words)


def _read_text(text: Any) -> tuple[Rules, _Words]:
    """Read a position text without judging the position."""
    match = _HEAD.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise NotationError(
            f"cannot read position {_short(text)}; expected RULES PIECES SEAT DIE THROWS, "
            "such as 'norske R3,20/B0x2/Y-/G- R 4 1'"
        )
    words = _read_words(match[2].split(), text)
    return find_rules(match[1], seats=tuple(words.pieces)), words


def _short(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 120 else shown[:117] + "..."


def _read_words(words: list[str], text: str) -> _Words:
    """Read the words after the rule set; raise one NotationError with all faults of spelling."""
    if len(words) < 4:
        raise NotationError(
            f"position {_short(text)} is too short: expected pieces, seat, die and throws after "
            f"the rule set, got {len(words)} of them"
        )
    faults: list[str] = []
    pieces = _read_seats(words[0], faults)
    if words[1] not in tuple(SEAT_LETTERS):
        faults.append(f"the seat to act must be one of {', '.join(SEAT_LETTERS)}, got {words[1]!r}")
    elif pieces and SEAT_LETTERS.index(words[1]) not in pieces:
        faults.append(f"the seat to act, {words[1]}, does not play")
    if words[2] not in tuple("-*123456"):
        faults.append(f"the die must be 1..6, - before the throw or * at the end, got {words[2]!r}")
    if words[3] not in tuple("0123"):
        faults.append(f"the throws left must be 0..3, got {words[3]!r}")
    fields = _read_fields(words[4:], faults)
    if faults:
        raise NotationError(f"position {_short(text)}: " + "; ".join(faults))
    die = int(words[2]) if words[2] not in "-*" else 0
    seat = SEAT_LETTERS.index(words[1])
    return _Words(pieces, seat, die, words[2] == "*", int(words[3]), fields)


def _read_seats(word: str, faults: list[str]) -> dict[int, list[tuple[int | str, int]]]:
    """Read ``R3,20/B0x2/Y-/G-`` as units (progress or "H", number of pieces) per seat."""
    pieces: dict[int, list[tuple[int | str, int]]] = {}
    last = -1
    for part in word.split("/"):
        seat = SEAT_LETTERS.find(part[:1]) if part else -1
        if seat < 0:
            faults.append(f"pieces {part!r} must begin with one of {', '.join(SEAT_LETTERS)}")
            continue
        if seat in pieces:
            faults.append(f"{part[0]} is named twice")
        elif seat < last:
            faults.append(f"seats must be written clockwise (R, B, Y, G); {part[0]} comes too late")
        last = max(last, seat)
        pieces[seat] = _read_units(part, faults)
    return pieces


def _read_units(part: str, faults: list[str]) -> list[tuple[int | str, int]]:
    units: list[tuple[int | str, int]] = []
    if part[1:] == "-":
        return units
    for unit in part[1:].split(","):
        match = _UNIT.fullmatch(unit)
        if match is None:
            faults.append(
                f"{part[0]}: cannot read pieces {unit!r}; expected a progress such as 3, a battery "
                "such as 0x2, H, or - for none"
            )
            continue
        place: int | str = match[1] if match[1] == "H" else int(match[1])
        if place in [other for other, _ in units]:
            faults.append(f"{part[0]}: {place} is named twice; two pieces there are {place}x2")
        units.append((place, int(match[2] or 1)))
    return units


def parse_pieces(rules: Rules, text: str) -> tuple[int, ...]:
    """Return the progress of each piece of one seat from its part of a position, such as ``R3,20``.

    Four numbers, -1 for home base. It is for readers of many positions: whether the whole position
    can be is for :func:`parse_position`, or the kernel, to say.

    Raises:
        NotationError, PositionError: naming every fault of the part.
    """
    seat = SEAT_LETTERS.find(text[:1]) if text else -1
    if seat < 0:
        raise NotationError(f"pieces {text!r} must begin with one of {', '.join(SEAT_LETTERS)}")
    faults: list[str] = []
    units = _read_units(text, faults)
    if faults:
        raise NotationError("; ".join(faults))
    record = {"pieces": np.full((SEATS, 4), -1, np.int8)}
    _place_pieces(rules, record, seat, units, faults)
    if faults:
        raise PositionError(faults)
    return tuple(record["pieces"][seat].tolist())


def _read_fields(words: list[str], faults: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name not in _FIELDS or not equals:
            faults.append(f"unknown field {word!r}; known: {', '.join(f + '=' for f in _FIELDS)}")
        elif name in fields:
            faults.append(f"{name}= is given twice")
        elif name in ("places", "out"):
            fields[name] = _read_order(name, value, faults)
        else:
            low, high = _FIELD_RANGES[name]
            number = int(value) if _NUMBER.fullmatch(value) else -1
            if not low <= number <= high:
                faults.append(f"{name}= must be a number {low}..{high}, got {value!r}")
            fields[name] = number
    return fields


def _read_order(name: str, value: str, faults: list[str]) -> list[int]:
    seats = [SEAT_LETTERS.find(letter) for letter in value]
    if not seats or min(seats) < 0 or len(set(seats)) < len(seats):
        faults.append(f"{name}= must be distinct letters of {SEAT_LETTERS}, got {value!r}")
    return seats


def _build(rules: Rules, words: _Words) -> npt.NDArray[np.void]:
    """Make the record; raise one PositionError with every fault of the position."""
    states = kernel.empty_states(1)
    s = states[0]
    faults: list[str] = []
    s["pieces"] = -1
    s["plays"][list(rules.seats)] = 1
    for seat, units in words.pieces.items():
        _place_pieces(rules, s, seat, units, faults)
    for name in ("places", "out"):
        for n, seat in enumerate(words.fields.get(name, ())):
            s[name][seat] = n + 1
            if seat not in rules.seats:
                faults.append(f"{name}= names {SEAT_LETTERS[seat]}, who does not play")
    if "places" in words.fields and not rules.play_for_places:
        faults.append("places= belongs to play_for_places=yes")
    if faults:
        raise PositionError(faults)
    _set_turn(rules, s, words)
    faults = position_faults(rules, states)
    if faults:
        raise PositionError(faults)
    return states


def _place_pieces(
    rules: Rules, s: Any, seat: int, units: list[tuple[int | str, int]], faults: list[str]
) -> None:
    k, name = 0, SEAT_LETTERS[seat]
    for place, count in units:
        if place == "H" and not rules.home:
            faults.append(f"{name}: these rules have no home, so no piece stands on H")
        elif rules.home and place == rules.board.home:
            faults.append(f"{name}: home is written H, not {place}")
        progress = rules.board.home if place == "H" else place
        for _ in range(min(count, rules.pieces - k)):
            s["pieces"][seat, k] = progress
            k += 1
    total = sum(count for _, count in units)
    if total > rules.pieces:
        faults.append(f"{name} has {total} pieces, expected at most {rules.pieces}")


def _set_turn(rules: Rules, s: Any, words: _Words) -> None:
    """Set all but the pieces; where ``places`` is not written it follows from the pieces."""
    s["seat"], s["die"], s["throws"] = words.seat, words.die, words.throws
    s["sixes"], s["turn"] = words.fields.get("sixes", 0), words.fields.get("turn", 0)
    shown = words.die if rules.die == "popomatic" else 0
    s["face"] = words.fields.get("face", shown)
    s["winner"], s["last_seat"], s["last_action"] = -1, -1, -1
    if words.die:
        s["last_seat"], s["last_die"] = words.seat, words.die
    if words.over:
        s["status"], s["winner"] = WON, words.seat
    elif rules.max_turns is not None and words.fields.get("turn", 0) >= rules.max_turns:
        s["status"] = TRUNCATED
    if not rules.play_for_places:
        done = _finished(rules, s)
        # R17: of a player's two colours the one that finished last is named, and is numbered last.
        done.sort(key=lambda x: (x == words.seat) == rules.two_colours)
        for n, x in enumerate(done):
            s["places"][x] = n + 1


def _finished(rules: Rules, s: Any) -> list[int]:
    """The seats that have finished, clockwise (R16, R32); a seat that is out has not (R34)."""
    done = plain(kernel.has_finished)
    return [x for x in rules.seats if not s["out"][x] and done(s, rules.array, x)]


# ---------------------------------------------------------------------------- faults of positions


def position_faults(rules: Rules, state: State) -> list[str]:
    """Return a sentence for every fault of a position, [] if it can be.

    This is the checked door: the kernel finds the faults, this names the seats and numbers.

    Raises:
        PositionError: ``state`` is not one record of STATE.
    """
    s = record_of(state)
    found = np.zeros(1, np.int64)
    one = np.frombuffer(bytearray(s.tobytes()), STATE)
    kernel.faults_batch(one, rules.array, found)
    faults: list[str] = []
    seats = tuple(seat for seat in range(SEATS) if s["plays"][seat])
    if seats != rules.seats:
        faults.append(f"the seats {seats} play, but the rules say {rules.seats}")
    if s["status"] not in (RUNNING, WON, TRUNCATED):
        faults.append(f"status must be 0, 1 or 2, got {int(s['status'])}")
    elif s["status"] != WON:
        cut_off = rules.max_turns is not None and s["turn"] >= rules.max_turns
        if cut_off != (s["status"] == TRUNCATED):
            limit = rules.max_turns or "no limit"
            faults.append(f"turn {int(s['turn'])} of {limit} does not fit the status")
    if rules.die == "popomatic" and s["die"] not in (0, s["face"]):
        faults.append(f"the die is {int(s['die'])}, so the dome cannot show {int(s['face'])}")
    for bit in range(len(kernel.FAULTS)):
        if int(found[0]) >> bit & 1:
            details = _DETAILS[bit](rules, s) if bit in _DETAILS else []
            faults.extend(details or [kernel.FAULTS[bit]])
    return faults


def _route_details(rules: Rules, s: Any) -> list[str]:
    return [
        f"{SEAT_LETTERS[seat]} has a piece on progress {p}, but this route ends at "
        f"{rules.last_progress}"
        for seat in range(SEATS)
        for p in sorted(set(s["pieces"][seat].tolist()))
        if not -1 <= p <= rules.last_progress
    ]


def _shared_details(rules: Rules, s: Any) -> list[str]:
    where: dict[int, list[str]] = {}
    for seat in range(SEATS):
        for p in sorted(set(s["pieces"][seat].tolist())):
            place = rules.board.field(seat, p)
            if place is not None:
                where.setdefault(place, []).append(f"{SEAT_LETTERS[seat]} (progress {p})")
    return [
        f"{' and '.join(who)} stand on the same field {place}"
        for place, who in where.items()
        if len(who) > 1
    ]


def _stack_details(rules: Rules, s: Any) -> list[str]:
    faults = []
    for seat in range(SEATS):
        pieces = s["pieces"][seat].tolist()
        for p in sorted({p for p in pieces if p >= 0 and pieces.count(p) > 1}):
            if not (rules.home and p == rules.board.home):
                faults.append(
                    f"{SEAT_LETTERS[seat]} has {pieces.count(p)} pieces on progress {p}, but these "
                    "rules have no batteries (R13)"
                )
    return faults


def _actor_details(rules: Rules, s: Any) -> list[str]:
    seat = int(s["seat"])
    if not 0 <= seat < SEATS:
        return [f"the seat to act must be 0..3, got {seat}"]
    why = "does not play"
    if s["plays"][seat]:
        why = "has finished" if s["places"][seat] else "is out"
    return [f"the seat to act, {SEAT_LETTERS[seat]}, {why}"]


def _throws_details(rules: Rules, s: Any) -> list[str]:
    seat = int(s["seat"])
    throws_of_turn = plain(kernel.throws_of_turn)
    most = int(throws_of_turn(s, rules.array, seat))
    return [
        f"the throws left of {SEAT_LETTERS[seat]} must lie in 1..{most} here (R23), got "
        f"{int(s['throws'])}"
    ]


def _finished_details(rules: Rules, s: Any) -> list[str]:
    seats = "".join(SEAT_LETTERS[seat] for seat in seats_in_order(s["places"].tolist()))
    winner = seats[-1] if rules.two_colours else seats[0]
    return [f"{seats} has finished, so the game is over: expected {winner} * 0"]


def _place_details(rules: Rules, s: Any) -> list[str]:
    done = "".join(SEAT_LETTERS[seat] for seat in _finished(rules, s)) or "none"
    given = _in_order(s["places"].tolist()) or "none"
    return [f"the finished seats are {done}, but places= names {given} (R6)"]


def _counter_details(rules: Rules, s: Any) -> list[str]:
    faults = []
    if s["sixes"] < 0 or (rules.max_sixes is not None and s["sixes"] >= rules.max_sixes):
        most = 127 if rules.max_sixes is None else rules.max_sixes - 1
        faults.append(f"sixes in a row must lie in 0..{most} (R3), got {int(s['sixes'])}")
    if s["turn"] < 0:
        faults.append(f"turn must be at least 0, got {int(s['turn'])}")
    if not 0 <= s["face"] <= 6:
        faults.append(f"face must lie in 0..6, got {int(s['face'])}")
    return faults


def _stuck_details(rules: Rules, s: Any) -> list[str]:
    return [
        f"the die {int(s['die'])} has no legal move for {SEAT_LETTERS[int(s['seat'])]}: "
        "that throw would be over at once"
    ]


def _out_details(rules: Rules, s: Any) -> list[str]:
    return [
        f"{SEAT_LETTERS[seat]} is out, so it can have no pieces in play (R34)"
        for seat in range(SEATS)
        if s["out"][seat] and any(0 <= p < rules.board.home for p in s["pieces"][seat].tolist())
    ]


_DETAILS: dict[int, Callable[[Rules, Any], list[str]]] = {
    1: _route_details,
    3: _shared_details,
    4: _stack_details,
    5: _out_details,
    6: _actor_details,
    8: _stuck_details,
    9: _throws_details,
    10: _finished_details,
    13: _counter_details,
    14: _place_details,
}


def plain(function: Any) -> Any:
    """Return the Python function behind a jitted one (for rare calls, not worth compiling)."""
    return getattr(function, "py_func", function)


# ----------------------------------------------------------------------------------------- records

RECORD_FORMAT = "kimble-record/1"
CAUSES = ("captured", "protected", "own_collision", "battle")
"""Causes of a loss (R33, R20)."""

EventTuple: TypeAlias = tuple[str, int, int, str] | tuple[str, int, int]
"""("loss", seat, count, cause) or ("arrival", seat, count)."""


@dataclass(frozen=True)
class Result:
    """How a game ended.

    Args:
        status: "won", or "truncated" by ``max_turns`` (R9).
        winner: the seat that won, None if truncated. With ``two_colours`` the colour that finished
            last; its player owns the opposite colour too (R17).
        places: the seats that finished, in order (R6).
        out: the seats that went out, in order (R34).
    """

    status: str
    winner: int | None
    places: tuple[int, ...] = ()
    out: tuple[int, ...] = ()

    @property
    def truncated(self) -> bool:
        """True if the game was cut off and nobody has won (R9)."""
        return self.status == "truncated"

    def __str__(self) -> str:
        if self.winner is None:
            return "cut off, no winner"
        return f"{SEAT_NAMES[self.winner]} wins"


@dataclass(frozen=True)
class RecordedThrow:
    """One throw of a record: who, the die, the move (None: there was none), battle dice, events."""

    seat: int
    die: int
    move: str | None
    battle: tuple[int, int] | None = None
    events: tuple[EventTuple, ...] = ()


@dataclass(frozen=True)
class RecordedRemoval:
    """A seat that went out (R34); ``die`` is the die that lay on the table, None for none."""

    seat: int
    die: int | None = None


@dataclass(frozen=True)
class GameRecord:
    """One game, with all its dice, so that it replays without a random generator.

    As JSON lines, seats being letters::

        {"format": "kimble-record/1", "rules": "norske", "start": POSITION,
            "starter_dice": [["R", 4], ...], "players": ["ann", ...], "seed": 7}
        {"seat": "R", "die": 4, "move": "20-24", "battle": null,
            "events": [["loss", "B", 1, "captured"]]}
        {"out": "G", "die": null}
        {"result": {"status": "won", "winner": "R", "places": "R", "out": ""}}

    A throw without a legal move has the move null, and so has a last throw that waits for its move.
    The ``die`` of an ``out`` line is the one that lay on the table when the seat went out; if it
    was still good afterwards, the line of that throw follows. The result of an unfinished game is
    null.
    """

    rules: str
    start: str
    entries: tuple[RecordedThrow | RecordedRemoval, ...] = ()
    result: Result | None = None
    starter_dice: tuple[tuple[int, int], ...] = ()
    players: tuple[str, ...] = ()
    seed: int | None = None

    def to_lines(self) -> list[str]:
        """Return the record as lines of JSON, without line ends."""
        header = {
            "format": RECORD_FORMAT,
            "rules": self.rules,
            "start": self.start,
            "starter_dice": [[SEAT_LETTERS[seat], face] for seat, face in self.starter_dice],
            "players": list(self.players),
            "seed": self.seed,
        }
        lines = [header, *map(_entry_json, self.entries), {"result": _result_json(self.result)}]
        return [json.dumps(line, ensure_ascii=False) for line in lines]


def _entry_json(entry: RecordedThrow | RecordedRemoval) -> dict[str, Any]:
    if isinstance(entry, RecordedRemoval):
        return {"out": SEAT_LETTERS[entry.seat], "die": entry.die}
    return {
        "seat": SEAT_LETTERS[entry.seat],
        "die": entry.die,
        "move": entry.move,
        "battle": None if entry.battle is None else list(entry.battle),
        "events": [[kind, SEAT_LETTERS[seat], *rest] for kind, seat, *rest in entry.events],
    }


def _result_json(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "status": result.status,
        "winner": None if result.winner is None else SEAT_LETTERS[result.winner],
        "places": "".join(SEAT_LETTERS[seat] for seat in result.places),
        "out": "".join(SEAT_LETTERS[seat] for seat in result.out),
    }


def write_record(record: GameRecord, path: str | os.PathLike[str], append: bool = False) -> None:
    """Write a record to a file of JSON lines; ``append`` adds it to the games already there.

    A new file appears whole or not at all.

    Raises:
        NotationError: a text of the record cannot be written as UTF-8. Nothing has changed.
        OSError: the file cannot be written.
    """
    try:
        data = "".join(line + "\n" for line in record.to_lines()).encode()
    except UnicodeEncodeError as error:
        raise NotationError(f"the record holds text that is not Unicode: {error}") from None
    if append:
        with open(path, "ab") as file:
            file.write(data)
        return
    write_whole(path, data)


def read_record(source: str | os.PathLike[str] | Iterable[str]) -> GameRecord:
    """Read the one game of a file (a path) or of lines of JSON.

    Raises:
        NotationError: a line that cannot be read (its number is named), or not exactly one game.
        OSError: the file cannot be opened.
    """
    records = read_records(source)
    if len(records) != 1:
        raise NotationError(f"expected one game, got {len(records)}; read_records reads several")
    return records[0]


def read_records(source: str | os.PathLike[str] | Iterable[str]) -> list[GameRecord]:
    """Read all games of a file (a path) or of lines of JSON.

    Raises:
        NotationError: a line that cannot be read; its number is named.
        OSError: the file cannot be opened.
    """
    records: list[GameRecord] = []
    header: dict[str, Any] | None = None
    entries: list[RecordedThrow | RecordedRemoval] = []
    number = 0
    for number, line in enumerate(_lines(source), 1):
        data = _json_line(line, number)
        if data is None:
            continue
        if header is None:
            header, entries = _read_header(data, number), []
        elif "result" in data:
            result = _read_result(data, number)
            records.append(GameRecord(**header, entries=tuple(entries), result=result))
            header = None
        else:
            entries.append(_read_entry(data, number))
    if header is not None:
        raise NotationError(f"record line {number}: the game has no result line")
    return records


def _lines(source: str | os.PathLike[str] | Iterable[str]) -> list[str]:
    if not isinstance(source, str | os.PathLike):
        return list(source)
    try:
        # Not splitlines(): JSON may hold other line ends, such as U+2028, inside a string.
        return Path(source).read_text(encoding="utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise NotationError(f"record {os.fspath(source)}: not UTF-8 text ({error})") from None


def _json_line(line: str, number: int) -> dict[str, Any] | None:
    """Return the object of a line, None for an empty line."""
    if not isinstance(line, str):
        raise NotationError(f"record line {number}: expected text, got {type(line).__name__}")
    if not line.strip():
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotationError(f"record line {number}: not JSON ({error})") from None
    if not isinstance(data, dict):
        raise NotationError(f"record line {number}: expected an object, got {_short(data)}")
    return data


def _expect_keys(data: dict[str, Any], keys: tuple[str, ...], number: int) -> None:
    faults = [f"{key!r} is missing" for key in keys if key not in data]
    faults += [f"unknown key {_short(key)}" for key in data if key not in keys]
    if faults:
        raise NotationError(f"record line {number}: " + "; ".join(faults))


def _wrong(number: int, key: str, expected: str, value: object) -> NotationError:
    return NotationError(f"record line {number}: {key} must be {expected}, got {_short(value)}")


def _is_int(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _seat(value: object, key: str, number: int) -> int:
    if not isinstance(value, str) or len(value) != 1 or value not in SEAT_LETTERS:
        raise _wrong(number, key, f"one letter of {SEAT_LETTERS}", value)
    return SEAT_LETTERS.index(value)


def _die(value: object, key: str, number: int) -> int:
    if not _is_int(value, 1, 6):
        raise _wrong(number, key, "a die 1..6", value)
    assert isinstance(value, int)
    return value


def _pair(value: object, key: str, number: int) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong(number, key, "a list of two", value)
    return value


def _read_header(data: dict[str, Any], number: int) -> dict[str, Any]:
    keys = ("format", "rules", "start", "starter_dice", "players", "seed")
    if data.get("format") != RECORD_FORMAT:
        raise _wrong(number, "format", repr(RECORD_FORMAT), data.get("format"))
    _expect_keys(data, keys, number)
    for key in ("rules", "start"):
        if not isinstance(data[key], str):
            raise _wrong(number, key, "a text", data[key])
    for key in ("starter_dice", "players"):
        if not isinstance(data[key], list):
            raise _wrong(number, key, "a list", data[key])
    if not all(isinstance(name, str) for name in data["players"]):
        raise _wrong(number, "players", "a list of names", data["players"])
    if data["seed"] is not None and not _is_int(data["seed"], 0, 2**64 - 1):
        raise _wrong(number, "seed", "a number 0..2**64-1 or null", data["seed"])
    pairs = [_pair(pair, "starter_dice", number) for pair in data["starter_dice"]]
    return {
        "rules": data["rules"],
        "start": data["start"],
        "starter_dice": tuple(
            (_seat(seat, "starter_dice", number), _die(face, "starter_dice", number))
            for seat, face in pairs
        ),
        "players": tuple(data["players"]),
        "seed": data["seed"],
    }


def _read_entry(data: dict[str, Any], number: int) -> RecordedThrow | RecordedRemoval:
    if "out" in data:
        _expect_keys(data, ("out", "die"), number)
        die = None if data["die"] is None else _die(data["die"], "die", number)
        return RecordedRemoval(_seat(data["out"], "out", number), die)
    _expect_keys(data, ("seat", "die", "move", "battle", "events"), number)
    seat, die = _seat(data["seat"], "seat", number), _die(data["die"], "die", number)
    if data["move"] is not None and not isinstance(data["move"], str):
        raise _wrong(number, "move", "a text or null", data["move"])
    battle = None
    if data["battle"] is not None:
        first, second = _pair(data["battle"], "battle", number)
        battle = (_die(first, "battle", number), _die(second, "battle", number))
    if not isinstance(data["events"], list):
        raise _wrong(number, "events", "a list", data["events"])
    events = tuple(_read_event(event, number) for event in data["events"])
    return RecordedThrow(seat, die, data["move"], battle, events)


def _read_event(event: object, number: int) -> EventTuple:
    expected = '["loss", SEAT, COUNT, CAUSE] or ["arrival", SEAT, COUNT]'
    if not isinstance(event, list) or len(event) not in (3, 4):
        raise _wrong(number, "an event", expected, event)
    kind, letter, count, *cause = event
    seat = _seat(letter, "the seat of an event", number)
    if not _is_int(count, 1, 4):
        raise _wrong(number, "the count of an event", "1..4", count)
    if kind == "arrival" and not cause:
        return ("arrival", seat, count)
    if kind != "loss" or len(cause) != 1 or cause[0] not in CAUSES:
        raise _wrong(number, "an event", expected + f" with a cause of {', '.join(CAUSES)}", event)
    return ("loss", seat, count, cause[0])


def _read_result(data: dict[str, Any], number: int) -> Result | None:
    _expect_keys(data, ("result",), number)
    result = data["result"]
    if result is None:
        return None
    if not isinstance(result, dict):
        raise _wrong(number, "result", "an object or null", result)
    _expect_keys(result, ("status", "winner", "places", "out"), number)
    if result["status"] not in ("won", "truncated"):
        raise _wrong(number, "status", "won or truncated", result["status"])
    winner = None if result["winner"] is None else _seat(result["winner"], "winner", number)
    orders = []
    for key in ("places", "out"):
        if not isinstance(result[key], str):
            raise _wrong(number, key, "letters of seats", result[key])
        orders.append(tuple(_seat(letter, key, number) for letter in result[key]))
    return Result(result["status"], winner, orders[0], orders[1])
