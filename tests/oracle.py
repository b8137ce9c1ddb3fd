"""The rules of Kimble, Kombat Kimble and Norske Kimble a second time: slow, plain and obvious.

This file exists to disagree with the compiled rules. It was written from the rule texts alone and
shares no code with the package, so that a mistake has to be made twice to go unnoticed. Nothing is
cached and nothing is clever: read it next to the rules, whose numbers stand in the comments (R14).

    game = Oracle.from_text("norske R3,20/B0/Y-/G- R - 1")
    game.throw(4)
    game.legal_moves()        # ["20-24"]
    game.play("20-24")
    game.to_text()            # "norske R3,24/B0/Y-/G- B - 1"
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LETTERS = "RBYG"  # red 0, blue 1, yellow 2, green 3
WAITING = -1  # progress of a piece in its home base

Event = tuple[Any, ...]  # ("loss", seat, count, cause) or ("arrival", seat, count)


# --- geometry ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """One board: a ring of fields, four starts on it, and each seat's own stretch and home."""

    ring: int
    starts: tuple[int, int, int, int]
    last_track: int  # the last progress on the ring
    stretch: int  # number of stretch fields

    @property
    def first_stretch(self) -> int:
        return self.last_track + 1

    @property
    def last_stretch(self) -> int:
        return self.last_track + self.stretch

    @property
    def home(self) -> int:
        return self.last_track + self.stretch + 1

    def field(self, seat: int, progress: int) -> int | None:
        """The ring field on which a piece stands, or None when it is not on the ring."""
        if 0 <= progress <= self.last_track:
            return (self.starts[seat] + progress) % self.ring
        return None

    def sector_owner(self, field: int) -> int:
        """R19: the seat with the nearest start at or behind this field, whoever plays."""
        while field not in self.starts:
            field = (field - 1) % self.ring
        return self.starts.index(field)


BOARDS = {
    "kimble28": Board(ring=28, starts=(0, 7, 14, 21), last_track=27, stretch=4),
    "cross40": Board(ring=40, starts=(0, 10, 20, 30), last_track=39, stretch=4),
    "ludo52": Board(ring=52, starts=(0, 13, 26, 39), last_track=50, stretch=5),
}


# --- options ----------------------------------------------------------------------------------

PRESETS = ("kimble", "kombat", "norske")

# option: its value in kimble, kombat and norske
DEFAULTS: dict[str, tuple[Any, Any, Any]] = {
    "board": ("kimble28", "kimble28", "kimble28"),
    "pieces": (4, 4, 4),
    "max_turns": (None, None, None),  # R9
    "max_sixes": (None, None, None),  # R3
    "extra_throw_needs_move": (False, False, False),  # R3
    "play_for_places": (False, False, False),  # R6
    "pass_allowed": (True, True, False),  # R12, R22
    "stretch_block": (False, False, False),  # R15
    "two_colours": (False, False, False),  # R17
    "battles": (False, True, False),  # R18
    "batteries": (False, False, True),  # R25
    "protected_start": (False, False, True),  # R27, R30
    "own_collision": ("illegal", "illegal", "smaller"),  # R13, R31
    "home": (False, False, True),  # does the route end in a home behind the stretch (R32)
    "empty_throws": (1, 1, 3),  # R11, R23
    "three_throws_when": ("none_in_play", "none_in_play", "none_in_play"),  # R23
}

WORDS = {
    "board": tuple(BOARDS),
    "own_collision": ("illegal", "smaller", "mover", "stander"),
    "three_throws_when": ("none_in_play", "none_on_track"),
}

NUMBERS = ("pieces", "max_turns", "max_sixes", "empty_throws")


def preset_options(preset: str) -> dict[str, Any]:
    """All options of a preset by name."""
    if preset not in PRESETS:
        raise ValueError(f"unknown rule set {preset!r}")
    column = PRESETS.index(preset)
    return {name: values[column] for name, values in DEFAULTS.items()}


def check_options(options: Mapping[str, Any], seats: Sequence[int]) -> None:
    """Refuse values and combinations that the rules do not know."""
    for name, value in options.items():
        if name in WORDS:
            good = value in WORDS[name]
        elif name in NUMBERS:
            optional = name in ("max_turns", "max_sixes") and value is None
            good = optional or (type(value) is int and value >= 1)
        else:
            good = type(value) is bool
        if not good:
            raise ValueError(f"option {name} cannot be {value!r}")
    if options["pieces"] > 4:
        raise ValueError("a seat has one to four pieces")
    if len(seats) < 2 or list(seats) != sorted(set(seats)) or not set(seats) <= {0, 1, 2, 3}:
        raise ValueError(f"bad seats {tuple(seats)}")
    stacks_or_bad_moves = (
        options["batteries"] or options["protected_start"] or options["own_collision"] != "illegal"
    )
    if options["battles"] and stacks_or_bad_moves:
        raise ValueError("battles go with no batteries, protected starts or own collisions")
    if options["two_colours"]:
        if stacks_or_bad_moves:
            raise ValueError("two_colours goes with no batteries, protected starts, own collisions")
        if options["play_for_places"] or len(seats) != 4:
            raise ValueError("two_colours needs four seats and no play for places")


def option_text(value: Any) -> str:
    """An option's value as position texts spell it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def option_value(name: str, text: str) -> Any:
    """The inverse of option_text; check_options judges the result."""
    if name not in DEFAULTS:
        raise ValueError(f"unknown option {name!r}")
    if name in WORDS:
        return text
    if name in NUMBERS:
        return int(text)
    return {"yes": True, "no": False}.get(text, text)


# --- the game ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A unit's way from one progress to another on the route of the seat to act."""

    source: int
    target: int
    clean: bool  # R28


class Oracle:
    """One game. All dice are handed in; nothing here is random."""

    def __init__(
        self, preset: str = "kimble", seats: Sequence[int] = (0, 1, 2, 3), **options: Any
    ) -> None:
        """The first position of a game: all pieces wait, the first of the seats is to throw."""
        self.preset = preset
        self.options = preset_options(preset)
        for name in options:
            if name not in self.options:
                raise ValueError(f"unknown option {name!r}")
        self.options.update(options)
        check_options(self.options, seats)
        self.seats = tuple(seats)
        self.board = BOARDS[self.options["board"]]
        self.set({}, self.seats[0])

    # --- positions ---

    def set(
        self,
        pieces: Mapping[int, Sequence[int]],
        seat: int,
        die: int | None = None,
        throws: int | None = None,
        sixes: int = 0,
        turn: int = 0,
        places: Sequence[int] = (),
        out: Sequence[int] = (),
    ) -> None:
        """Put up any position; raise ValueError when it is not one.

        Pieces that are not named wait in home base. Without `throws` R23 decides. The seat of a
        finished game is its winner.
        """
        self.pieces: dict[int, list[int]] = {}
        for who in self.seats:
            named = list(pieces.get(who, ()))
            self.pieces[who] = sorted(named + [WAITING] * (self.options["pieces"] - len(named)))
        if not set(pieces) <= set(self.seats):
            raise ValueError("pieces of a seat that does not play")
        self.seat = seat
        self.die: int | None = None
        self.sixes = sixes
        self.turn = turn
        self.places = list(places)
        self.out = list(out)
        self.events: list[Event] = []
        self.winner: int | None = None
        self.throws = 0
        self._check_pieces()
        self._check_counters()
        if self._settle_winner(seat):
            self._check_finished(seat, die, throws)
        else:
            self._check_to_act(die, throws)

    def _check_pieces(self) -> None:
        """Every piece on its route, one seat to a field, stacks only where the rules make them."""
        for seat, pieces in self.pieces.items():
            if len(pieces) != self.options["pieces"]:
                raise ValueError(f"{LETTERS[seat]} has too many pieces")
            if pieces[0] < WAITING or pieces[-1] > self._end():
                raise ValueError(f"{LETTERS[seat]} has a piece off its route")
            moving = [p for p in pieces if self._in_play(p)]
            if len(set(moving)) < len(moving) and not self.options["batteries"]:
                raise ValueError(f"{LETTERS[seat]} has two pieces on one field")  # R13
            if seat in self.out and moving:
                raise ValueError(f"{LETTERS[seat]} is out and has a piece in play")  # R34
        owner: dict[int, int] = {}
        for seat, pieces in self.pieces.items():
            for progress in pieces:
                field = self.board.field(seat, progress)
                if field is not None and owner.setdefault(field, seat) != seat:
                    raise ValueError(f"two seats on field {field}")

    def _check_counters(self) -> None:
        """The optional fields: sixes, turn, places, out."""
        limit = self.options["max_sixes"]
        if self.sixes < 0 or (limit is not None and self.sixes >= limit):
            raise ValueError(f"bad number of sixes {self.sixes}")
        if self.turn < 0:
            raise ValueError(f"bad turn {self.turn}")
        if len(set(self.out)) < len(self.out) or not set(self.out) <= set(self.seats):
            raise ValueError("bad list of seats that are out")
        if self.out and self.options["two_colours"]:
            raise ValueError("with two colours no seat goes out")
        finished = [seat for seat in self.seats if self._finished(seat)]
        if self.options["play_for_places"]:
            if sorted(self.places) != finished:
                raise ValueError("the places do not name the finished seats")
        elif self.places:
            raise ValueError("places without play_for_places")
        elif len(finished) > 1 and not self.options["two_colours"]:
            raise ValueError("two seats have finished")
        if not [seat for seat in self.seats if seat not in self.out]:
            raise ValueError("all seats are out")

    def _check_finished(self, seat: int, die: int | None, throws: int | None) -> None:
        if seat not in self.seats or seat != self.winner:
            raise ValueError("a finished game names its winner")
        if die is not None or throws not in (None, 0):
            raise ValueError("the game is finished: no die, no throws")

    def _check_to_act(self, die: int | None, throws: int | None) -> None:
        if self.seat not in self._playing():
            raise ValueError("the seat to act does not play")
        most = self._throws_at_start()
        self.throws = most if throws is None else throws
        if not 1 <= self.throws <= most:
            raise ValueError(f"bad number of throws {throws}")
        if die is None:
            return
        if self.truncated:
            raise ValueError("the game is over: no die")
        self._check_die(die)
        self.die = die
        if not self.legal_moves():
            raise ValueError(f"the die {die} has no legal move")

    @staticmethod
    def _check_die(die: int) -> None:
        if die not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"not a die: {die!r}")

    # --- texts ---

    @classmethod
    def from_text(cls, text: str) -> Oracle:
        """The game that stands at a position text. Only the canonical spelling is accepted."""
        words = text.split(" ")
        if len(words) < 5:
            raise ValueError(f"too short for a position: {text!r}")
        name, board, seat, die, throws, *fields = words
        preset, _, bracket = name.partition("[")
        options = {}
        for item in bracket.removesuffix("]").split(",") if bracket else []:
            key, _, value = item.partition("=")
            options[key] = option_value(key, value)
        pieces_texts = {LETTERS.index(part[:1]): part[1:] for part in board.split("/")}
        game = cls(preset, tuple(pieces_texts), **options)
        extra = dict(field.split("=") for field in fields)
        if set(extra) - {"sixes", "turn", "places", "out"}:
            raise ValueError(f"unknown field in {text!r}")
        game.set(
            {who: game._parse_pieces(part) for who, part in pieces_texts.items()},
            LETTERS.index(seat),
            die=None if die in "-*" else int(die),
            throws=int(throws),
            sixes=int(extra.get("sixes", 0)),
            turn=int(extra.get("turn", 0)),
            places=[LETTERS.index(letter) for letter in extra.get("places", "")],
            out=[LETTERS.index(letter) for letter in extra.get("out", "")],
        )
        if game.to_text() != text:
            raise ValueError(f"{text!r} should be written {game.to_text()!r}")
        return game

    def _parse_pieces(self, text: str) -> list[int]:
        """'3,20x2,H' as progress numbers, one a piece; '-' is none."""
        found: list[int] = []
        for item in [] if text == "-" else text.split(","):
            place, _, count = item.partition("x")
            progress = self.board.home if place == "H" else int(place)
            found += [progress] * int(count or 1)
        return found

    def to_text(self) -> str:
        """The position text."""
        usual = preset_options(self.preset)
        changed = []
        for name, value in sorted(self.options.items()):
            if value != usual[name]:
                changed.append(f"{name}={option_text(value)}")
        bracket = "[" + ",".join(changed) + "]" if changed else ""
        board = "/".join(LETTERS[seat] + self._pieces_text(seat) for seat in self.seats)
        die = "*" if self.winner is not None else "-" if self.die is None else str(self.die)
        words = [self.preset + bracket, board, LETTERS[self.seat], die, str(self.throws)]
        if self.sixes:
            words.append(f"sixes={self.sixes}")
        if self.turn:
            words.append(f"turn={self.turn}")
        if self.places:
            words.append("places=" + "".join(LETTERS[seat] for seat in self.places))
        if self.out:
            words.append("out=" + "".join(LETTERS[seat] for seat in self.out))
        return " ".join(words)

    def _pieces_text(self, seat: int) -> str:
        items = []
        for progress in sorted(set(self.pieces[seat]) - {WAITING}):
            count = self.pieces[seat].count(progress)
            items.append(self._place_text(progress) + (f"x{count}" if count > 1 else ""))
        return ",".join(items) or "-"

    def _place_text(self, progress: int) -> str:
        return "H" if progress == self.board.home else str(progress)

    def _step_text(self, step: Step) -> str:
        if step.source == WAITING:
            return "enter"
        return f"{step.source}-{self._place_text(step.target)}"

    # --- what is true of the position ---

    def _end(self) -> int:
        """The last progress of the route: home if there is one, else the last stretch field."""
        return self.board.home if self.options["home"] else self.board.last_stretch

    def _in_play(self, progress: int) -> bool:
        """Neither in home base nor home."""
        return progress not in (WAITING, self.board.home)

    def _finished_from(self) -> int:
        """R16: all pieces must stand on the stretch; R32: all must be home."""
        return self.board.home if self.options["home"] else self.board.first_stretch

    def _finished(self, seat: int) -> bool:
        """A seat that is out has not finished, wherever its pieces are."""
        return seat not in self.out and self.pieces[seat][0] >= self._finished_from()

    def _playing(self) -> list[int]:
        """The seats that still get turns."""
        return [s for s in self.seats if s not in self.out and not self._finished(s)]

    def _partner(self, seat: int) -> int | None:
        """R17: the player's other colour."""
        return (seat + 2) % 4 if self.options["two_colours"] else None

    def _throws_at_start(self) -> int:
        """R11, R23: the throws of the seat to act at the start of a throwing turn."""
        in_play = [p for p in self.pieces[self.seat] if self._in_play(p)]
        if self.options["three_throws_when"] == "none_on_track":
            in_play = [p for p in in_play if p <= self.board.last_track]
        return 1 if in_play else self.options["empty_throws"]

    @property
    def truncated(self) -> bool:
        """R9: broken off at max_turns, without a winner."""
        limit = self.options["max_turns"]
        return self.winner is None and limit is not None and self.turn >= limit

    @property
    def over(self) -> bool:
        return self.winner is not None or self.truncated

    def ranking(self) -> list[int]:
        """The seats, best first.

        Finished seats as they finished (else the winner first), then seats still playing, then
        the seats that are out, the last to go out first. With play_for_places a game that was
        played to its end has at most one seat in the middle; otherwise these stand clockwise.
        """
        order = list(self.places)
        if self.winner is not None and self.winner not in order:
            order.append(self.winner)
        order += [s for s in self.seats if self._finished(s) and s not in order]
        order += [s for s in self._playing() if s not in order]
        return order + self.out[::-1]

    # --- moves ---

    def legal_moves(self) -> list[str]:
        """The legal moves for the die: enter, then by progress, then pass. None before a throw."""
        if self.die is None:
            return []
        moves = [self._step_text(step) for step in self._legal_steps()]
        if self.options["pass_allowed"]:  # R12, R22
            moves.append("pass")
        return moves

    def _legal_steps(self) -> list[Step]:
        """R28: only clean moves if there is one. R29: else the bad ones."""
        steps = self._possible_steps()
        clean = [step for step in steps if step.clean]
        return clean if clean else steps

    def _possible_steps(self) -> list[Step]:
        """All that the die could move, clean or bad, by progress (home base is -1: it leads)."""
        assert self.die is not None
        steps = []
        for source in sorted(set(self.pieces[self.seat])):
            if source == WAITING:
                if self.die != 6:  # R2
                    continue
                target = 0
            else:
                target = source + self.die  # R1
            if self._is_possible(source, target):
                steps.append(Step(source, target, self._is_clean(source, target)))
        return steps

    def _is_possible(self, source: int, target: int) -> bool:
        if target > self._end():  # R4
            return False
        if self.options["stretch_block"] and self._passes_own_on_stretch(source, target):  # R15
            return False
        if self.options["own_collision"] == "illegal" and self._hits_own(source, target):  # R13
            return False
        other = self._other_seat_on(target)
        return other is None or other != self._partner(self.seat)  # R17

    def _is_clean(self, source: int, target: int) -> bool:
        """R28."""
        return not self._hits_own(source, target) and not self._hits_protected(target)

    def _passes_own_on_stretch(self, source: int, target: int) -> bool:
        """R15: an own piece stands on a stretch field strictly between source and target."""
        for progress in self.pieces[self.seat]:
            on_stretch = self.board.first_stretch <= progress <= self.board.last_stretch
            if on_stretch and source < progress < target:
                return True
        return False

    def _hits_own(self, source: int, target: int) -> bool:
        """Does the move land on an own unit, other than home or to make a battery?"""
        if target == self.board.home:  # R28: home never collides
            return False
        if source == WAITING and self.options["batteries"]:  # R25
            return False
        return target in self.pieces[self.seat]

    def _other_seat_on(self, target: int) -> int | None:
        """The other seat whose pieces stand where this progress of the seat to act lies."""
        field = self.board.field(self.seat, target)
        if field is None:  # R7
            return None
        for other in self.seats:
            if other != self.seat:
                if field in [self.board.field(other, p) for p in self.pieces[other]]:
                    return other
        return None

    def _hits_protected(self, target: int) -> bool:
        """R27: do pieces of another seat stand there, on the start of their own colour?"""
        other = self._other_seat_on(target)
        if other is None or not self.options["protected_start"]:
            return False
        return self.board.field(self.seat, target) == self.board.starts[other]

    def _is_battle(self, step: Step) -> bool:
        """R18."""
        return bool(self.options["battles"]) and self._other_seat_on(step.target) is not None

    # --- the three things that happen: throws, moves, and a team going out ---

    def throw(self, die: int) -> None:
        """Throw this die. Without a legal move the throw is over at once."""
        if self.over:
            raise ValueError("the game is over")
        if self.die is not None:
            raise ValueError("a die is waiting to be played")
        self._check_die(die)
        self.events = []
        self.die = die
        if not self.legal_moves():
            self._end_throw(moved=False)

    def play(self, move: str, battle: tuple[int, int] | None = None) -> None:
        """Play a legal move; a move that starts a battle needs both dice, attacker's first."""
        if self.over:
            raise ValueError("the game is over")
        if move not in self.legal_moves():
            raise ValueError(f"{move!r} is not legal, but {self.legal_moves()}")
        steps = {self._step_text(step): step for step in self._legal_steps()}
        is_battle = move in steps and self._is_battle(steps[move])
        if is_battle != (battle is not None):
            raise ValueError("battle dice exactly when the move starts a battle")
        for die in battle or ():
            self._check_die(die)
        self.events = []
        if move in steps:
            self._move(steps[move], battle)
        self._end_throw(moved=move in steps)

    def remove(self, seat: int) -> None:
        """R34: the team is out of the game. Removals make no events."""
        if self.options["two_colours"]:
            raise ValueError("with two colours no seat goes out")
        if self.over or seat not in self._playing():
            raise ValueError("only a seat that plays can go out")
        self.events = []
        self.out.append(seat)
        home = self.board.home
        self.pieces[seat] = sorted(home if p == home else WAITING for p in self.pieces[seat])
        if self._settle_winner(self.seat):
            return
        if seat == self.seat:
            self._pass_turn()
        elif self.die is not None and not self.legal_moves():
            self._end_throw(moved=False)

    # --- how a move ends ---

    def _move(self, step: Step, battle: tuple[int, int] | None) -> None:
        """Move the unit and do what follows on the target field."""
        me, source, target = self.seat, step.source, step.target
        count = 1 if source == WAITING else self.pieces[me].count(source)  # R25: a battery is one
        other = self._other_seat_on(target)
        if self._hits_protected(target):  # R30
            self._lose(me, source, "protected")
        elif self._hits_own(source, target):  # R31
            if self._mover_is_lost(count, self.pieces[me].count(target)):
                self._lose(me, source, "own_collision")
            else:
                self._lose(me, target, "own_collision")
                self._shift(me, source, target, count)
        elif battle is not None:
            assert other is not None
            self._fight(step, other, battle)
        else:
            if other is not None:  # R14, R26
                self._lose(other, self._progress_of(other, target), "captured")
            self._shift(me, source, target, count)
            if target == self.board.home:  # R33
                self.events.append(("arrival", me, count))

    def _mover_is_lost(self, mover: int, stander: int) -> bool:
        """R31: which of two own units goes to home base (equal ones: no difference)."""
        if self.options["own_collision"] == "smaller":
            return mover <= stander
        return bool(self.options["own_collision"] == "mover")

    def _fight(self, step: Step, other: int, battle: tuple[int, int]) -> None:
        """R18, R20: both throw; the smaller result goes to home base, a tie sends both."""
        field = self.board.field(self.seat, step.target)
        assert field is not None
        owner = self.board.sector_owner(field)
        attack = battle[0] + 2 + (1 if owner == self.seat else 0)
        defence = battle[1] + (1 if owner == other else 0)
        if attack <= defence:
            self._lose(self.seat, step.source, "battle")
        if defence <= attack:
            self._lose(other, self._progress_of(other, step.target), "battle")
        if attack > defence:
            self._shift(self.seat, step.source, step.target, 1)

    def _progress_of(self, other: int, target: int) -> int:
        """The progress, on its own route, of the other seat's piece that stands on the target."""
        field = self.board.field(self.seat, target)
        return next(p for p in self.pieces[other] if self.board.field(other, p) == field)

    def _lose(self, seat: int, progress: int, cause: str) -> None:
        """R33: the whole unit at this progress goes to home base: one event.

        A piece that was to enter and is lost at once never leaves home base.
        """
        count = 1 if progress == WAITING else self.pieces[seat].count(progress)
        self._shift(seat, progress, WAITING, count)
        self.events.append(("loss", seat, count, cause))

    def _shift(self, seat: int, source: int, target: int, count: int) -> None:
        for _ in range(count):
            self.pieces[seat].remove(source)
            self.pieces[seat].append(target)
        self.pieces[seat].sort()

    # --- how a throw ends ---

    def _end_throw(self, moved: bool) -> None:
        """The throw is played out: who throws next, and how often?"""
        six = self.die == 6
        self.die = None
        extra = six and (moved or not self.options["extra_throw_needs_move"])  # R3
        if self.options["max_sixes"] is not None:
            self.sixes = self.sixes + 1 if six else 0
            extra = extra and self.sixes < self.options["max_sixes"]  # R3
        if self._finished(self.seat):
            if self.options["play_for_places"]:
                self.places.append(self.seat)
            extra = False  # R6
        if self._settle_winner(self.seat):
            return
        if extra:
            self.throws = self._throws_at_start()  # R24
        elif not six and not moved and self.throws > 1:
            self.throws -= 1  # R23
        else:
            self._pass_turn()

    def _pass_turn(self) -> None:
        """R5: the die goes clockwise to the next seat that still plays."""
        self.die = None
        if self.options["max_sixes"] is not None:
            self.sixes = 0
        if self.options["max_turns"] is not None:
            self.turn += 1  # R9
        self.seat = (self.seat + 1) % 4
        while self.seat not in self._playing():
            self.seat = (self.seat + 1) % 4
        self.throws = self._throws_at_start()

    def _settle_winner(self, last_to_act: int) -> bool:
        """R6, R17, R34: is the game finished? Then name the winner; nobody is to act."""
        self.winner = self._find_winner(last_to_act)
        if self.winner is None:
            return False
        self.seat = self.winner
        self.die = None
        self.throws = 0
        if self.options["max_sixes"] is not None:
            self.sixes = 0
        return True

    def _find_winner(self, last_to_act: int) -> int | None:
        """The winner; with two colours the winning player's seat that finished last."""
        finished = [seat for seat in self.seats if self._finished(seat)]
        if self.options["two_colours"]:  # R17
            both = [seat for seat in finished if self._partner(seat) in finished]
            return last_to_act if last_to_act in both else both[0] if both else None
        if finished and not self.options["play_for_places"]:  # R6
            return finished[0]
        playing = self._playing()
        if len(playing) > 1:
            return None
        return self.places[0] if self.places else playing[0]  # R6, R34


# --- random positions for tests ---------------------------------------------------------------


def random_position(
    rng: random.Random, preset: str = "norske", seats: Sequence[int] = (0, 1, 2, 3), **options: Any
) -> str:
    """The text of a random unfinished position, rich in meetings, full starts and late pieces."""
    game = Oracle(preset, seats, **options)
    finished, out = _random_finished_and_out(rng, game)
    pieces: dict[int, list[int]] = {seat: [] for seat in game.seats}
    stages = {seat: rng.choice(["early", "middle", "late"]) for seat in game.seats}
    for _ in range(game.options["pieces"]):
        for seat in game.seats:
            route = list(range(WAITING, game._end() + 1))
            if seat in finished:
                route = [p for p in route if p >= game._finished_from()]
            elif seat in out:
                route = [p for p in route if not game._in_play(p)]
            pieces[seat].append(_random_progress(rng, game, seat, pieces, route, stages[seat]))
    for seat in game.seats:
        if seat not in finished + out and min(pieces[seat]) >= game._finished_from():
            pieces[seat][0] = WAITING
    max_sixes, max_turns = game.options["max_sixes"], game.options["max_turns"]
    sixes = rng.randrange(max_sixes) if max_sixes else 0
    turn = rng.randrange(max_turns) if max_turns else 0
    places = finished if game.options["play_for_places"] else []
    seat = rng.choice([s for s in game.seats if s not in finished and s not in out])
    game.set(pieces, seat, sixes=sixes, turn=turn, places=places, out=out)
    game.throws = rng.randint(1, game.throws)
    game.die = rng.choice([None, 1, 2, 3, 4, 5, 6, 6])
    if not game.legal_moves():
        game.die = None
    return game.to_text()


def _random_finished_and_out(rng: random.Random, game: Oracle) -> tuple[list[int], list[int]]:
    """Now and then a few seats that have finished or are out; two at least still play."""
    others = rng.sample(game.seats, len(game.seats))[2:]
    finished: list[int] = []
    out: list[int] = []
    for seat in others:
        chance = rng.random()
        if chance < 0.1 and not game.options["two_colours"]:
            out.append(seat)
        elif chance > 0.7 and game.options["play_for_places"]:
            finished.append(seat)
        elif chance > 0.7 and game.options["two_colours"] and not finished:
            finished.append(seat)
    return finished, out


def _random_progress(
    rng: random.Random,
    game: Oracle,
    seat: int,
    pieces: Mapping[int, Sequence[int]],
    route: Sequence[int],
    stage: str,
) -> int:
    """Where on this route one more piece of the seat stands."""
    board = game.board
    waiting = {"early": 80.0, "middle": 20.0, "late": 1.0}[stage]
    stretch = {"early": 1.0, "middle": 3.0, "late": 40.0}[stage]
    home = {"early": 1.0, "middle": 3.0, "late": 150.0}[stage]
    others = {board.field(s, p) for s in pieces if s != seat for p in pieces[s]} - {None}
    choice: list[int] = []
    weights: list[float] = []
    for progress in route:
        field = board.field(seat, progress)
        stacked = progress in pieces[seat] and game._in_play(progress)
        if field in others or (stacked and not game.options["batteries"]):
            continue
        if field is None:
            weight = {WAITING: waiting, board.home: home}.get(progress, stretch)
        elif progress == 0 or stacked:
            weight = 12.0
        else:
            ahead = {(field + die) % board.ring for die in range(1, 7)} & others
            weight = 8.0 if ahead & set(board.starts) else 2.0 if ahead else 0.5
        choice.append(progress)
        weights.append(weight)
    return rng.choices(choice, weights)[0]
