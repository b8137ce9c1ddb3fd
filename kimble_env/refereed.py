"""A Norske game with its referee: the cups gate the board, and the board feeds the cups.

>>> from kimble_env import Game
>>> game = Game("norske", seed=7, referee=True)     # everybody drinks vichy
>>> game.throw(6, at=0), game.play("enter", at=4)
(6, None)
>>> referee = game.referee                            # the calls beside the board go here
>>> _ = referee.leave(5, game.seat, 0)

``throw`` and ``play`` take the second ``at`` which they happen (that of the last call unless
given) and are refused while anything is owed, the error saying what (L1). Losses and arrivals
become obligations, a team that goes out leaves the board (R34), and a team wins when its last piece
home has been drunk (L6; option ``win_at``). Nothing is taken back but by a ruling (L7):
``game.referee.ruling(t, reason, back_to=n)`` sets board and ledger back to what they were after n
entries of the log, ``position=`` puts the cups elsewhere.

The match log, ``game.log``, holds all of a match: throws, moves, cups, times, rulings.
``RefereedGame.from_log`` plays it again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from kimble_env import kernel
from kimble_env.board import SEAT_NAMES
from kimble_env.errors import KimbleError, PositionError, RulesError
from kimble_env.game import Game, Move, MoveLike, _range_faults, _state_from_fields, read_seed
from kimble_env.kernel import ENTER, STATE
from kimble_env.ledger import LedgerFormatError, RulingError, State
from kimble_env.ledger_rules import Happening
from kimble_env.notation import (
    GameRecord,
    parse_position,
    position_faults,
    seats_in_order,
)
from kimble_env.referee import Referee
from kimble_env.rules import R_HOLD_WIN, Rules, find_rules

MATCH_FORMAT = "kimble-match/1"
_KEPT = ("throw_count", "battle_count", "choice_count", "seed", "lost", "arrived", "taken")


class RefereedGame(Game):
    """A :class:`~kimble_env.Game` with a referee; ``Game("norske", referee=True)`` makes one.

    Args:
        rules: rules with a home: ``norske`` and its options, ``late`` and ``win_at`` among them.
        seed: as in ``Game``.
        referee: always True.
        teams: per seat the two members: drinks or pairs (name, drink); seats that are not named
            drink vichy. See :class:`~kimble_env.referee.Referee`.
        cups: ``marked`` (at 33 cl) or ``equal``.
        time: the second at which the match begins.
        options: any option of the rules, ``players`` or ``seats``.

    Raises:
        RulesError: naming every fault of the options, or rules without a home.
        LedgerFormatError: teams, cups or time that cannot be.
    """

    __slots__ = ("_first", "_marks", "_referee")

    _referee: Referee
    _first: bytes  # the record at the beginning of the match
    _marks: list[tuple[bytes, list[bytes], int]]  # after each entry of the log: board and history

    def __init__(
        self,
        rules: str | Rules = "norske",
        *,
        seed: int | None = None,
        referee: bool = True,
        teams: Mapping[Any, Sequence[Any]] | None = None,
        cups: str = "marked",
        time: int = 0,
        **options: Any,
    ) -> None:
        found = find_rules(rules, **options)
        _check_rules(found)
        super().__init__(found, seed=seed)
        self._appoint(Referee(teams, rules=found, time=time, cups=cups))

    def _set_up(
        self,
        rules: Rules,
        states: npt.NDArray[np.void],
        seed: int | None,
        starter_dice: tuple[tuple[int, int], ...],
        past: list[bytes],
    ) -> None:
        _check_rules(rules)
        super()._set_up(rules, states, seed, starter_dice, past)
        if rules.win_at == "drunk":  # L6: the kernel stops short of the win
            array = rules.board_array.copy()
            array[R_HOLD_WIN] = 1
            array.setflags(write=False)  # compiled code takes a writable array for another type
            self._array = array
        self._appoint(_referee_for(rules, states, {}))

    def _appoint(self, referee: Referee) -> None:
        """Begin a match under this referee, who has called nothing yet."""
        referee.listener = self._follow
        self._referee = referee
        self._first = self._states.tobytes()
        self._marks = [(self._first, self._past, len(self._past))]

    @classmethod
    def from_text(
        cls,
        text: str,
        seed: int | None = None,
        *,
        teams: Mapping[Any, Sequence[Any]] | None = None,
        cups: str = "marked",
        time: int = 0,
    ) -> RefereedGame:
        """Return a game that stands at a position text, nothing owed.

        Raises:
            NotationError, RulesError, PositionError, KimbleError: as ``Game.from_text``.
            LedgerFormatError: teams, cups or time that cannot be.
        """
        game = super().from_text(text, seed)
        assert isinstance(game, RefereedGame)
        words = {"teams": teams, "cups": cups, "time": time}
        game._appoint(_referee_for(game._rules, game._states, words))
        return game

    # ------------------------------------------------------------------------------- what there is

    @property
    def referee(self) -> Referee:
        """The ledger; its calls are made here, and the board follows them."""
        return self._referee

    @property
    def log(self) -> list[dict[str, Any]]:
        """The match log: the beginning, then every call, as JSON data; one line each in a file."""
        begin, *calls = self._referee.log
        header = {
            "format": MATCH_FORMAT,
            "rules": str(self._rules),
            "seats": list(self._rules.seats),
            "seed": self._seed,
            "starter_dice": [list(pair) for pair in self._starter_dice],
            "start": _fields_of(np.frombuffer(self._first, STATE)),
            "referee": begin,
        }
        return [header, *calls]

    @property
    def waits_for_cups(self) -> bool:
        """True while the winner-to-be has all pieces home but not yet drunk (L6)."""
        over, throws = self._over, int(self._states["throws"][0])
        return not over and throws == 0

    @property
    def legal_moves(self) -> list[Move]:
        """The legal moves for the die thrown, as in ``Game``; [] while cups hold it up (L1)."""
        return [] if self._referee.gated else super().legal_moves

    # ------------------------------------------------------------------------------- what one does

    def throw(self, die: int | None = None, at: int | None = None) -> int:
        """Throw the die and return it, as ``Game.throw``; refused while anything is owed (L1).

        Args:
            die: 1..6 as thrown, None draws it.
            at: the second; None: that of the last call.

        Raises:
            LedgerError: what is owed or undecided, or a time that runs backwards.
            IllegalThrowError, GameOverError: as ``Game.throw``.
        """
        t = self._referee.now if at is None else at
        if self._change_is_due(t):
            other = self._at(t)
            thrown = other.throw(die, t)
            self._become(other)
            return thrown
        if not self._over:
            self._referee.check_open(t, self.seat, "throw")
        seat = self.seat
        thrown = super().throw(die)
        self._referee.throw(t, seat, thrown)
        return thrown

    def play(
        self, move: MoveLike, battle: tuple[int, int] | None = None, at: int | None = None
    ) -> None:
        """Play a legal move, as ``Game.play``; what it does to pieces is owed from then on (R33).

        Raises:
            LedgerError: what is owed or undecided, or a time that runs backwards.
            IllegalMoveError, IllegalThrowError, GameOverError: as ``Game.play``.
        """
        t = self._referee.now if at is None else at
        if self._change_is_due(t):
            other = self._at(t)
            other.play(move, battle, t)
            self._become(other)
            return
        if not self._over:
            self._referee.check_open(t, self.seat, "move")
        action = self._legal_action(move)
        seat, die = self.seat, self._die
        text = self._tables[die][0][action].text
        before, count = self._states.tobytes(), len(self._past)
        super().play(action, battle)
        events: list[Any] = [("entry", seat, 1)] if action == ENTER else []
        events += [(event.kind, event.seat, event.count) for event in self.events]
        try:
            self._referee.move(t, seat, events, text, die)
        except KimbleError:
            self._stand_at(np.frombuffer(bytearray(before), STATE))
            del self._past[count:]
            raise

    def _change_is_due(self, t: Any) -> bool:
        """Tell whether a clock runs out before second t, which can change who is to act."""
        change = self._referee.next_change()
        return change is not None and hasattr(t, "__index__") and change <= t

    def _at(self, t: int) -> RefereedGame:
        """Return a copy in which the time has passed."""
        other = self.copy()
        other._referee.tick(t)
        return other

    def _become(self, other: RefereedGame) -> None:
        for name in Game.__slots__:
            if name != "__weakref__":
                setattr(self, name, getattr(other, name))
        self._first, self._marks = other._first, other._marks
        self._referee.take_over(other._referee)

    def remove_seat(self, seat: int | str) -> NoReturn:
        """Refused: a team goes out through its members (L3) or by a ruling (L7).

        Raises:
            RulingError: always.
        """
        raise RulingError(
            "ruling", "with a referee a team goes out by its members or by a ruling: do='team_out'"
        )

    def undo(self) -> NoReturn:
        """Refused: only a ruling takes anything back (L7).

        Raises:
            RulingError: always.
        """
        raise RulingError(
            "ruling",
            "with a referee only a ruling takes anything back: referee.ruling(back_to=...)",
        )

    # ---------------------------------------------------------------------------- the board follows

    def _follow(self, entry: dict[str, Any], state: State, then: Sequence[Happening]) -> None:
        """Do on the board what a call of the referee means for it, before the call counts."""
        board, past, length = self._states.tobytes(), self._past, len(self._past)
        try:
            if entry["call"] == "ruling":
                self._follow_ruling(entry)
            for happening in then:
                self._follow_happening(happening)
            if then or entry["call"] == "ruling":
                self._check_agreement(state)
        except KimbleError:
            del past[length:]
            self._past = past
            self._stand_at(np.frombuffer(bytearray(board), STATE))
            raise
        self._marks.append((self._states.tobytes(), self._past, len(self._past)))

    def _follow_happening(self, happening: Happening) -> None:
        one = np.array([happening.seat], np.int8)
        s = self._states[0]
        if self._over or s["places"][happening.seat] or s["out"][happening.seat]:
            return
        if happening.kind == "team_out":  # R34
            self._past.append(self._states.tobytes())
            kernel.remove_seat_batch(self._states, self._array, one)
        elif happening.kind == "placed" and self.waits_for_cups:  # L6
            kernel.settle_finish_batch(self._states, self._array, one)
        else:
            return
        self._stand_at(self._states)

    def _follow_ruling(self, entry: dict[str, Any]) -> None:
        if "back_to" in entry:
            board, past, length = self._marks[entry["back_to"] - 1]
            self._past = past[:length]
            self._stand_at(np.frombuffer(bytearray(board), STATE))
        if "position" in entry:
            self._put_position(entry["position"])

    def _put_position(self, text: str) -> None:
        """Set the board to a position; random state and counts go on (L7)."""
        try:
            rules, states = parse_position(text)
        except KimbleError as error:
            raise RulingError("ruling", f"position: {error}") from error
        if str(rules) != str(self._rules) or rules.seats != self._rules.seats:
            raise RulingError("ruling", f"the match is played by {self._rules}, not by {rules}")
        for name in _KEPT:
            states[name] = self._states[name]
        self._past = []
        self._stand_at(states)

    def _check_agreement(self, state: State) -> None:
        """Refuse a call after which board and ledger would not tell of the same match."""
        s, home = self._states[0], self._rules.board.home
        faults = []
        self._check_settings(state)
        for seat, team in state.teams.items():
            at_home = int((s["pieces"][seat] == home).sum())
            if at_home != team.home:
                faults.append(f"{SEAT_NAMES[seat]} has {at_home} home, in the ledger {team.home}")
            out = team.out and seat not in state.places
            if bool(s["out"][seat]) != out and not self._over:  # the board of a won game rests
                word = "out" if s["out"][seat] else "in the game"
                faults.append(f"{SEAT_NAMES[seat]} is {word} on the board only")
        places = list(seats_in_order(s["places"].tolist()))
        if places != state.places:
            faults.append(f"places are {places} on the board, {state.places} in the ledger")
        if faults:
            text = "; ".join(faults)
            raise RulingError(
                "ruling", f"board and ledger would disagree: {text}; position= sets the board"
            )

    def _check_settings(self, state: State) -> None:
        """Refuse settings of the ledger that are not those of the rules that the board plays by."""
        for name in ("pieces", "late", "win_at", "play_for_places"):
            agreed, found = getattr(self._rules, name), getattr(state.settings, name)
            if agreed != found:
                raise RulingError(
                    "ruling", f"settings: the match is played with {name}={agreed}, not {found}"
                )

    # ----------------------------------------------------------------------- copies, records, logs

    def copy(self) -> RefereedGame:
        """Return an independent copy, board, ledger and log."""
        other = super().copy()
        assert isinstance(other, RefereedGame)
        other._first = self._first
        other._marks = self._marks[:-1]
        other._referee = self._referee.copy()
        other._referee.listener = other._follow
        other._marks.append((self._marks[-1][0], other._past, len(other._past)))
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> RefereedGame:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return RefereedGame.from_log, (self.log,)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole match as plain data that JSON can hold: its log."""
        return {"format": MATCH_FORMAT, "log": self.log}

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> RefereedGame:
        """Return the match of a snapshot.

        Raises:
            KimbleError: the snapshot is damaged; it says where.
        """
        if not isinstance(snapshot, Mapping) or set(snapshot) != {"format", "log"}:
            raise LedgerFormatError("format", "the snapshot of a match has a format and a log")
        if snapshot["format"] != MATCH_FORMAT:
            raise LedgerFormatError("format", f"the format must be {MATCH_FORMAT!r}")
        return cls.from_log(snapshot["log"])

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Become the match of a snapshot, whatever was played before.

        Raises:
            KimbleError: the snapshot is damaged; this match is left as it was.
        """
        self._become(type(self).from_snapshot(snapshot))

    @classmethod
    def from_log(cls, log: Iterable[Mapping[str, Any]]) -> RefereedGame:
        """Return the match that a log tells, by doing again all that it says.

        Raises:
            LedgerFormatError: the log is damaged or the rules say otherwise; it says where.
        """
        header, *calls = list(log) or [{}]
        game = _begin_again(cls, header)
        for number, entry in enumerate(calls, 2):
            try:
                game._repeat_entry(entry)
            except KimbleError as error:
                raise LedgerFormatError("format", f"match, line {number}: {error}") from error
        return game

    def _repeat_entry(self, entry: Any) -> None:
        """Do again one line of a log."""
        kind = entry.get("call") if isinstance(entry, Mapping) else None
        if kind in ("throw", "move"):
            if kind == "throw":
                self.throw(entry.get("die"), entry.get("t"))
            else:
                self.play(entry.get("text", ""), None, entry.get("t"))
            if self._referee.last_entry != entry:
                raise LedgerFormatError(
                    "format", f"led to {self._referee.last_entry}, not to {entry}"
                )
        else:
            self._referee.repeat(entry)

    def record(self, players: Iterable[str] | None = None) -> GameRecord:
        """Return the board's part of the match as a record; ``log`` has all of it.

        After a ruling that moved the board the record begins there.

        Raises:
            KimbleError: a team went out after its last piece had come home (L6): a record, which
                knows of no cups, cannot tell this.
        """
        records = self._records()
        if bool(((records["throws"] == 0) & (records["status"] == kernel.RUNNING)).any()):
            raise KimbleError("only the log can tell of pieces home that were not drunk")
        record = super().record(players)
        if records[0].tobytes() != self._first:
            return dataclasses.replace(record, starter_dice=())
        return record

    @classmethod
    def from_record(cls, record: Any) -> NoReturn:
        """Refused: a record has no cups; ``from_log`` reads a match.

        Raises:
            LedgerFormatError: always.
        """
        raise LedgerFormatError("format", "a record has no cups; from_log reads a match")


# ----------------------------------------------------------------------------------------- helpers


def _check_rules(rules: Rules) -> None:
    if not rules.home:
        raise RulesError(f"a referee needs rules with a home, as in norske, not {rules}")


def _referee_for(rules: Rules, states: npt.NDArray[np.void], words: dict[str, Any]) -> Referee:
    """Return a referee who knows what has entered and what is home on a board."""
    pieces = states["pieces"][0]
    home = {seat: int((pieces[seat] == rules.board.home).sum()) for seat in rules.seats}
    entries = {seat: int((pieces[seat] >= 0).sum()) for seat in rules.seats}
    return Referee(rules=rules, home=home, entries=entries, **words)


def _fields_of(states: npt.NDArray[np.void]) -> dict[str, Any]:
    return {name: states[name][0].tolist() for name in STATE.names or ()}


def _begin_again(cls: type[RefereedGame], header: Any) -> RefereedGame:
    """Return the match of the first line of a log, at its beginning."""
    keys = {"format", "rules", "seats", "seed", "starter_dice", "start", "referee"}
    if not isinstance(header, Mapping) or header.get("format") != MATCH_FORMAT:
        raise LedgerFormatError("format", f"a match begins with format {MATCH_FORMAT!r}")
    if set(header) != keys:
        raise LedgerFormatError("format", f"match, line 1: expected the keys {sorted(keys)}")
    try:
        rules = find_rules(header["rules"], seats=header["seats"])
        states = _state_from_fields(header["start"])
        faults = position_faults(rules, states) + _range_faults(rules, states)
        if faults:
            raise PositionError(faults)
        seed = None if header["seed"] is None else read_seed(header["seed"])
        dice = tuple((int(seat), int(face)) for seat, face in header["starter_dice"])
        game = cls._made(rules, states, seed, dice, [])
        assert isinstance(game, RefereedGame)
        game._appoint(Referee.replay([header["referee"]]))
        game._check_agreement(game._referee.state)
    except (KimbleError, TypeError, ValueError) as error:
        raise LedgerFormatError("format", f"match, line 1: {error}") from error
    return game
