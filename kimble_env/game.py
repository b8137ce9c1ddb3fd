"""``Game``: one game for people, front ends and search.

>>> from kimble_env import Game
>>> game = Game.from_text("norske R3,20/B0/Y-/G- R 4 1")
>>> [str(move) for move in game.legal_moves]
['20-24']
>>> game.play("20-24")
>>> game.to_text()
'norske R3,24/B0/Y-/G- B - 1'

``throw`` and ``play`` take turns. A throw without a legal move is over at once: the position has
then moved on to the next throw or seat, and ``legal_moves`` is empty. Whatever is asked for and
cannot be raises a ``KimbleError`` and changes nothing.

The rules are not here but in ``kernel.py``; this is the checked door to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kimble_env import kernel
from kimble_env.board import SEAT_LETTERS, SEAT_NAMES, SEATS
from kimble_env.errors import (
    GameOverError,
    IllegalMoveError,
    IllegalThrowError,
    KimbleError,
    NotationError,
    PositionError,
)
from kimble_env.kernel import STATE, WON
from kimble_env.notation import (
    CAUSES,
    EventTuple,
    GameRecord,
    RecordedRemoval,
    RecordedThrow,
    Result,
    State,
    format_move,
    format_position,
    parse_position,
    plain,
    position_faults,
    read_record,
    record_of,
    seats_in_order,
    shown_action,
)
from kimble_env.rules import Rules, find_rules

SNAPSHOT_FORMAT = "kimble-snapshot/1"
STARTER_LOG_ROWS = 256  # ties can go on; 64 rounds of four have a chance below 10^-30
_ACTIONS = (1 << 60) - 1  # throw_one returns actions | die << 60
_CAUSE_OF_KIND = {
    kernel.LOST_CAPTURED: "captured",
    kernel.LOST_PROTECTED: "protected",
    kernel.LOST_OWN_COLLISION: "own_collision",
    kernel.LOST_BATTLE: "battle",
}
assert set(_CAUSE_OF_KIND.values()) == set(CAUSES)


@dataclass(frozen=True, slots=True)
class Move:
    """A legal move. Prints as its text: ``enter``, ``3-8``, ``30-H``, ``pass``.

    Args:
        action: the action code, as in the environments: 0 enter, ``1 + p``, last pass.
        source: progress where the unit stands, -1 for home base, None for pass.
        target: progress that it would reach, None for pass.
    """

    action: int
    source: int | None
    target: int | None
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a call did to pieces, for the referee and the log (R33).

    Args:
        kind: "loss" (pieces sent to home base) or "arrival" (pieces come home).
        seat: whose pieces.
        count: how many.
        cause: of a loss: "captured", "protected", "own_collision" or "battle"; else None.
        by: of a loss: the seat that caused it; the seat itself for own_collision; else None.
    """

    kind: str
    seat: int
    count: int
    cause: str | None = None
    by: int | None = None

    def as_tuple(self) -> EventTuple:
        """Return ("loss", seat, count, cause) or ("arrival", seat, count)."""
        if self.cause is None:
            return ("arrival", self.seat, self.count)
        return ("loss", self.seat, self.count, self.cause)

    def __str__(self) -> str:
        pieces = f"{self.count} piece" + "s" * (self.count > 1)
        if self.cause is None:
            return f"{SEAT_NAMES[self.seat]} brings {pieces} home"
        return f"{SEAT_NAMES[self.seat]} loses {pieces} ({self.cause.replace('_', ' ')})"


MoveLike: TypeAlias = "Move | str | int"


@lru_cache(maxsize=64)
def _moves_of(rules: Rules) -> tuple[tuple[dict[int, Move], dict[str, int]], ...]:
    """Return, per die 0..6, the moves that can be by action, and their actions by text."""
    tables = []
    board = rules.board
    for die in range(7):
        moves = {
            kernel.ENTER: Move(kernel.ENTER, -1, 0, "enter"),
            board.pass_action: Move(board.pass_action, None, None, "pass"),
        }
        for source in range(board.stretch_last + 1) if die else ():
            if source + die <= rules.last_progress:
                text = format_move(rules, source + 1, die)
                moves[source + 1] = Move(source + 1, source, source + die, text)
        tables.append((moves, {move.text: action for action, move in moves.items()}))
    return tuple(tables)


def _unpack(data: bytes) -> npt.NDArray[np.void]:
    """Return a writable STATE [1] from its bytes (numpy copies records field by field: slow)."""
    return np.frombuffer(bytearray(data), STATE)


def read_seed(seed: int | None) -> int:
    """Return a seed 0..2**64-1; None draws one below 2**53, which every JSON reader keeps exact.

    Raises:
        KimbleError: not such a number.
    """
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 11
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**64:
        raise KimbleError(f"seed must be a whole number 0..2**64-1 or None, got {seed!r}")
    return int(seed)


def read_options(options: Any) -> Mapping[str, Any]:
    """Return the ``options`` of an environment's ``reset``; None means none.

    Raises:
        KimbleError: not a mapping.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise KimbleError(f"options must be a dict or None, got {options!r}")
    return options


def read_die(die: object, what: str = "the die") -> int:
    """Return a die 1..6 as an int.

    Raises:
        IllegalThrowError: it is no whole number 1..6.
    """
    if isinstance(die, int | np.integer) and not isinstance(die, bool) and 1 <= die <= 6:
        return int(die)
    raise IllegalThrowError(f"{what} must be a whole number 1..6, got {die!r}")


def read_seat(seat: object) -> int:
    """Return a seat 0..3 from its number, letter or name.

    Raises:
        KimbleError: it is none of these.
    """
    if isinstance(seat, int | np.integer) and not isinstance(seat, bool) and 0 <= seat < SEATS:
        return int(seat)
    if isinstance(seat, str) and seat:
        if seat in SEAT_NAMES:
            return SEAT_NAMES.index(seat)
        if len(seat) == 1 and seat in SEAT_LETTERS:
            return SEAT_LETTERS.index(seat)
    names = ", ".join([*SEAT_LETTERS, *SEAT_NAMES])
    raise KimbleError(f"a seat is a number 0..3 or one of {names}; got {seat!r}")


class Game:
    """One game.

    ``Game("norske", seed=7)``, ``Game("kimble[pieces=2]", players=2)``,
    ``Game("kombat", seats="RBG", die="popomatic")``: any option of ``rules.OPTIONS`` can be a
    keyword. Two players sit at R and Y, three at R, B, Y, unless ``seats`` says otherwise. With
    equal seeds all dice are equal, and the dice of a seat do not depend on anybody's decisions
    (with ``die="popomatic"`` the one dome ties the dice of all together).

    Args:
        rules: a preset, a rules text or Rules.
        seed: 0..2**64-1; None draws one. It is game 0 of a batch started with this seed.
        referee: True for a :class:`~kimble_env.refereed.RefereedGame`, in which the cups of Norske
            Kimble gate the board; it takes ``teams``, ``cups`` and ``time`` as well.
        options: any option of the rules, ``players`` (2..4), ``seats`` (letters or numbers).

    Raises:
        RulesError: naming every fault of the options.
        KimbleError: a bad seed.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_bits",
        "_die",
        "_moves",
        "_over",
        "_past",
        "_rules",
        "_seed",
        "_starter_dice",
        "_states",
        "_tables",
    )

    _rules: Rules
    _array: npt.NDArray[np.int64]
    _tables: tuple[tuple[dict[int, Move], dict[str, int]], ...]
    _states: npt.NDArray[np.void]  # STATE [1], this game
    _past: list[bytes]  # the records before each call, for undo and records
    _bits: int  # legal actions; 0 exactly when no die waits to be played
    _die: int  # that die, else 0
    _over: bool
    _moves: list[Move] | None  # legal_moves, made when asked for
    _seed: int | None
    _starter_dice: tuple[tuple[int, int], ...]

    def __new__(cls, *args: Any, referee: bool = False, **options: Any) -> Game:
        """Make room for a game, or for one with a referee."""
        if referee:
            from kimble_env.refereed import RefereedGame

            return object.__new__(RefereedGame)
        return object.__new__(cls)

    def __init__(
        self,
        rules: str | Rules = "kimble",
        *,
        seed: int | None = None,
        referee: bool = False,
        **options: Any,
    ) -> None:
        found = find_rules(rules, **options)
        number = read_seed(seed)
        states = kernel.empty_states(1)
        keys = np.zeros(1, np.uint64)
        kernel.game_keys(np.uint64(number), 0, keys)
        plays = np.zeros((1, SEATS), np.int8)
        plays[0, list(found.seats)] = 1
        log = np.zeros((STARTER_LOG_ROWS, 2), np.int8)
        rows = kernel.new_game_batch(states, found.array, plays, keys, log)
        starter_dice = tuple((seat, face) for seat, face in log[:rows].tolist())
        self._set_up(found, states, number, starter_dice, [])

    def _set_up(
        self,
        rules: Rules,
        states: npt.NDArray[np.void],
        seed: int | None,
        starter_dice: tuple[tuple[int, int], ...],
        past: list[bytes],
    ) -> None:
        self._rules = rules
        self._array = rules.board_array  # members act in environments; here the referee speaks
        self._tables = _moves_of(rules)
        self._seed = seed
        self._starter_dice = starter_dice
        self._past = past
        self._stand_at(states)

    def _stand_at(self, states: npt.NDArray[np.void]) -> None:
        """Take a record over and work out all that is kept beside it."""
        self._states = states
        self._bits = int(kernel.legal_one(states, self._array))
        self._die = int(states["die"][0])
        self._over = bool(states["status"][0] != kernel.RUNNING)
        self._moves = None

    @classmethod
    def _made(cls, *parts: Any) -> Game:
        game = object.__new__(cls)
        game._set_up(*parts)
        return game

    # ------------------------------------------------------------------------ other ways to begin

    @classmethod
    def from_text(cls, text: str, seed: int | None = None) -> Game:
        """Return a game that stands at a position text (see ``notation``).

        Raises:
            NotationError, RulesError, PositionError: naming every fault, a die without a legal move
                among them.
            KimbleError: a bad seed.
        """
        rules, states = parse_position(text)
        number = read_seed(seed)
        keys = np.zeros(1, np.uint64)
        kernel.game_keys(np.uint64(number), 0, keys)
        states["seed"] = keys
        return cls._made(rules, states, number, (), [])

    @classmethod
    def from_state(cls, rules: Rules, state: State, seed: int | None = None) -> Game:
        """Return a game that stands at a copy of a record of STATE (or STATE [1]).

        Its random state is kept, unless a seed is given. ``rules.seats`` must be those that play.

        Raises:
            PositionError: naming every fault of the record.
        """
        if not isinstance(rules, Rules):
            raise KimbleError(f"rules must be Rules, got {type(rules).__name__}")
        states = _unpack(record_of(state).tobytes())
        faults = position_faults(rules, states) + _range_faults(rules, states)
        if faults:
            raise PositionError(faults)
        if seed is None:
            return cls._made(rules, states, None, (), [])
        number = read_seed(seed)
        keys = np.zeros(1, np.uint64)
        kernel.game_keys(np.uint64(number), 0, keys)
        states["seed"] = keys
        for name in ("throw_count", "battle_count", "choice_count"):
            states[name] = 0
        return cls._made(rules, states, number, (), [])

    # ------------------------------------------------------------------------------- what there is

    @property
    def rules(self) -> Rules:
        """The rules, with the seats that play."""
        return self._rules

    @property
    def seed(self) -> int | None:
        """The seed of this game; None if it was made from a record of STATE without one."""
        return self._seed

    @property
    def seat(self) -> int:
        """The seat to act, 0..3; in a finished game the winner."""
        return int(self._states["seat"][0])

    @property
    def die(self) -> int | None:
        """The die thrown and still to be played, None before the throw."""
        return self._die or None

    @property
    def throws(self) -> int:
        """Throws left of this throwing turn, including this one (R23); 0 in a won game."""
        return int(self._states["throws"][0])

    @property
    def plies(self) -> int:
        """Throws resolved so far, those without a legal move included."""
        return int(self._states["plies"][0])

    @property
    def pieces(self) -> dict[int, tuple[int, ...]]:
        """Per playing seat the progress of its pieces, ascending; -1 is home base."""
        places = self._states["pieces"][0, :, : self._rules.pieces].tolist()
        return {seat: tuple(sorted(places[seat])) for seat in self._rules.seats}

    @property
    def state(self) -> npt.NDArray[np.void]:
        """A copy of the record, STATE [1], random state included."""
        return _unpack(self._states.tobytes())

    @property
    def starter_dice(self) -> tuple[tuple[int, int], ...]:
        """The throws that decided who begins, as (seat, face) (R8); () if none were thrown."""
        return self._starter_dice

    @property
    def legal_moves(self) -> list[Move]:
        """The legal moves for the die thrown: enter, by progress, pass. [] before a throw."""
        moves = self._moves
        if moves is None:
            table, moves, bits = self._tables[self._die][0], [], self._bits
            while bits:
                low = bits & -bits
                moves.append(table[low.bit_length() - 1])
                bits ^= low
            self._moves = moves
        return moves.copy()

    @property
    def events(self) -> list[Event]:
        """What the last ``throw``, ``play`` or ``remove_seat`` did to pieces; [] for nothing."""
        return _events_of(self._states[0])

    @property
    def over(self) -> bool:
        """True once the game has been won or cut off."""
        return self._over

    @property
    def winner(self) -> int | None:
        """The seat that won, None if nobody has (yet)."""
        return int(self._states["winner"][0]) if self._states["status"][0] == WON else None

    @property
    def result(self) -> Result | None:
        """How the game ended; None while it goes on."""
        if not self._over:
            return None
        s = self._states[0]
        won = s["status"] == WON
        return Result(
            "won" if won else "truncated",
            int(s["winner"]) if won else None,
            seats_in_order(s["places"].tolist()),
            seats_in_order(s["out"].tolist()),
        )

    @property
    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The (die, probability) of the next throw, die 1..6 (R10); [] if none is to be thrown."""
        if self._over or self._die:
            return []
        return list(enumerate(self._face_chances(int(self._states["face"][0])), 1))

    def starts_battle(self, move: MoveLike) -> bool:
        """Tell whether a legal move starts a battle, for which two dice are thrown (R18).

        Raises:
            IllegalMoveError: the move is not legal here.
        """
        return self._is_battle(self._legal_action(move))

    def battle_outcomes(self, move: MoveLike) -> list[tuple[tuple[int, int], float]]:
        """Return the 36 ((attacker, defender), probability) of a legal move's battle dice (R18).

        A legal move that starts no battle gives [].

        Raises:
            IllegalMoveError: the move is not legal here.
        """
        action = self._legal_action(move)
        if not self._is_battle(action):
            return []
        attack = self._face_chances(int(self._states["face"][0]))
        defence = [self._face_chances(a) for a in range(1, 7)]
        return [((a + 1, d + 1), attack[a] * defence[a][d]) for a in range(6) for d in range(6)]

    def _face_chances(self, last: int) -> list[float]:
        """The probabilities of the faces 1..6 after the face ``last`` (0: none yet) (R10)."""
        chance = plain(kernel.face_probability)
        return [float(chance(self._array, last, face)) for face in range(1, 7)]

    # ------------------------------------------------------------------------------- what one does

    def throw(self, die: int | None = None) -> int:
        """Throw the die and return it; ``die`` 1..6 is taken as thrown, None draws it.

        If no legal move exists the throw is over at once: the position has moved on to the next
        throw or seat (R22, R23). Else a move from ``legal_moves`` is to be played.

        Raises:
            IllegalThrowError: ``die`` is not 1..6, or a die waits to be played.
            GameOverError: the game is over.
        """
        given = 0 if die is None else read_die(die)
        if self._bits or self._over:
            self._refuse("throw")
            raise IllegalThrowError(
                f"{SEAT_NAMES[self.seat]} has thrown {self._die} and must play one of: "
                f"{self._legal_texts()}"
            )
        states = self._states
        self._past.append(states.tobytes())
        packed = kernel.throw_one(states, self._array, given)
        thrown: int = packed >> 60
        self._bits = packed & _ACTIONS
        self._moves = None
        if self._bits:
            self._die = thrown
        else:
            self._over = bool(states["status"][0] != kernel.RUNNING)
        return thrown

    def play(self, move: MoveLike, battle: tuple[int, int] | None = None) -> None:
        """Play a legal move. The position then stands before the next throw.

        Args:
            move: one of ``legal_moves``, its text, or its action code.
            battle: the battle dice (attacker, defender), each 1..6, for a move that starts a battle
                (R18); None draws them.

        Raises:
            IllegalMoveError: the move is not legal (the legal ones are listed), no die has been
                thrown, or battle dice are given for a move that starts no battle.
            IllegalThrowError: the battle dice are not two numbers 1..6.
            GameOverError: the game is over.
        """
        action = self._legal_action(move)
        attack, defence = (0, 0) if battle is None else self._read_battle(action, battle)
        states = self._states
        self._past.append(states.tobytes())
        status = kernel.play_one(states, self._array, action, attack, defence)
        self._bits = self._die = 0
        self._moves = None
        self._over = bool(status)

    def remove_seat(self, seat: int | str) -> None:
        """Take a team out of the game (R34): a number, letter or name of a seat.

        Its pieces in play go to home base for good, its turns are skipped. If it was to act, its
        die lapses and the turn passes; a die that another has thrown is judged on the new position.
        The last team left wins if none has finished. There are no events.

        Raises:
            KimbleError: no such seat, the seat does not play, has finished or is out already, or
                the rules are ``two_colours``.
            GameOverError: the game is over.
        """
        number = read_seat(seat)
        self._refuse("remove a seat")
        s = self._states[0]
        name = SEAT_NAMES[number]
        if self._rules.two_colours:
            raise KimbleError("with two_colours no seat goes out: its player has another colour")
        if not s["plays"][number]:
            raise KimbleError(f"{name} does not play")
        if s["places"][number] or s["out"][number]:
            why = "has finished" if s["places"][number] else "is out already"
            raise KimbleError(f"{name} {why}")
        self._past.append(self._states.tobytes())
        kernel.remove_seat_batch(self._states, self._array, np.array([number], np.int8))
        self._stand_at(self._states)

    def undo(self) -> None:
        """Take back the last ``throw``, ``play`` or ``remove_seat``, the random state included:
        throwing again gives the same die.

        Raises:
            KimbleError: nothing has been done.
        """
        if not self._past:
            raise KimbleError("there is nothing to undo")
        self._stand_at(_unpack(self._past.pop()))

    def _refuse(self, what: str) -> None:
        if self._over:
            raise GameOverError(f"cannot {what}: the game is over ({self.result})")

    def _legal_texts(self) -> str:
        return ", ".join(move.text for move in self.legal_moves)

    def _legal_action(self, move: MoveLike) -> int:
        """Return the action code of a move if it is legal, else say why it is not."""
        action: int | None
        if isinstance(move, Move):
            action = self._tables[self._die][1].get(move.text)
        elif isinstance(move, str):
            action = self._tables[self._die][1].get(move)
        elif isinstance(move, int | np.integer) and not isinstance(move, bool):
            action = int(move) if 0 <= move < self._rules.board.actions else None
        else:
            raise IllegalMoveError(f"a move is a Move, a text or an action code, got {move!r}")
        if action is not None and self._bits >> action & 1:
            return action
        self._refuse("play")
        name = SEAT_NAMES[self.seat]
        shown = repr(str(move))
        if isinstance(move, int | np.integer):
            shown = shown_action(self._rules, int(move), self._die)
        if not self._bits:
            raise IllegalMoveError(f"{name} must throw before playing {shown}")
        raise IllegalMoveError(
            f"{shown} is not legal for {name} with a {self._die}; legal: "
            f"{self._legal_texts()}"
        )

    def _is_battle(self, action: int) -> bool:
        if not self._rules.battles:
            return False
        defenders = np.zeros(1, np.int8)
        kernel.battle_batch(self._states, self._array, np.array([action], np.int16), defenders)
        return bool(defenders[0] >= 0)

    def _read_battle(self, action: int, battle: object) -> tuple[int, int]:
        if not self._is_battle(action):
            text = self._tables[self._die][0][action].text
            raise IllegalMoveError(f"{text} starts no battle, so it takes no battle dice")
        if not isinstance(battle, tuple | list) or len(battle) != 2:
            raise IllegalThrowError(f"battle dice are (attacker, defender), got {battle!r}")
        return (
            read_die(battle[0], "the attacker's die"),
            read_die(battle[1], "the defender's die"),
        )

    # ----------------------------------------------------------------------- texts, copies, records

    def to_text(self) -> str:
        """Return the position text (see ``notation``).

        Raises:
            NotationError: the board is not one that texts know (see ``register_board``).
        """
        return format_position(self._rules, self._states)

    def copy(self) -> Game:
        """Return an independent copy, history and future dice included."""
        other = object.__new__(type(self))
        other._rules, other._array, other._tables = self._rules, self._array, self._tables
        other._seed, other._starter_dice = self._seed, self._starter_dice
        other._states, other._past = _unpack(self._states.tobytes()), self._past.copy()
        other._bits, other._die, other._over = self._bits, self._die, self._over
        other._moves = self._moves
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        data = (self._states.tobytes(), tuple(self._past))
        return _unpickle, (type(self), self._rules, self._seed, self._starter_dice, *data)

    def snapshot(self) -> dict[str, Any]:
        """Return all of the game as plain data that JSON can hold: rules, position, random state,
        and every call since it began. ``restore`` and ``from_snapshot`` read it.

        Raises:
            NotationError: the board is not one that texts know (see ``register_board``).
        """
        records = self._records()
        start = {name: records[name][0].tolist() for name in STATE.names or ()}
        return {
            "format": SNAPSHOT_FORMAT,
            "rules": str(self._rules),
            "seats": list(self._rules.seats),
            "seed": self._seed,
            "starter_dice": [list(pair) for pair in self._starter_dice],
            "start": start,
            "calls": [list(call) for call in self._calls(records)],
            "position": self.to_text(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Game:
        """Return the game of a snapshot, by doing again all that was done in it.

        Raises:
            KimbleError: the snapshot is damaged; it says where.
        """
        keys = ("format", "rules", "seats", "seed", "starter_dice", "start", "calls", "position")
        if not isinstance(snapshot, Mapping) or snapshot.get("format") != SNAPSHOT_FORMAT:
            raise NotationError(f"a snapshot is a mapping with format {SNAPSHOT_FORMAT!r}")
        faults = [f"{key!r} is missing" for key in keys if key not in snapshot]
        faults += [f"unknown key {key!r}" for key in snapshot if key not in keys]
        if faults:
            raise NotationError("snapshot: " + "; ".join(faults))
        rules = find_rules(snapshot["rules"], seats=snapshot["seats"])
        states = _state_from_fields(snapshot["start"])
        seed = None if snapshot["seed"] is None else read_seed(snapshot["seed"])
        pairs = _as_list(snapshot["starter_dice"], "starter_dice")
        dice = tuple(_read_starter_die(pair) for pair in pairs)
        faults = position_faults(rules, states) + _range_faults(rules, states)
        if faults:
            raise PositionError([f"snapshot: {fault}" for fault in faults])
        game = cls._made(rules, states, seed, dice, [])
        for n, call in enumerate(_as_list(snapshot["calls"], "calls")):
            game._repeat(call, n)
        if game.to_text() != snapshot["position"]:
            raise NotationError(
                f"snapshot: its calls lead to {game.to_text()!r}, not to {snapshot['position']!r}"
            )
        return game

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Become the game of a snapshot, whatever was played before.

        Raises:
            KimbleError: the snapshot is damaged; this game is left as it was.
        """
        other = type(self).from_snapshot(snapshot)
        self._set_up(other._rules, other._states, other._seed, other._starter_dice, other._past)

    def record(self, players: Iterable[str] | None = None) -> GameRecord:
        """Return the record of the game since it began; it replays without a random generator.

        Args:
            players: a name for each player, in the order of seats; ``player_0`` and so on if None.

        Raises:
            KimbleError: not as many names as players.
            NotationError: the board is not one that texts know (see ``register_board``).
        """
        count = self._rules.players
        names = tuple(f"player_{i}" for i in range(count)) if players is None else tuple(players)
        if len(names) != count or not all(isinstance(name, str) for name in names):
            raise KimbleError(f"expected the names of {count} players, got {names!r}")
        records = self._records()
        return GameRecord(
            rules=str(self._rules),
            start=format_position(self._rules, records[0]),
            entries=tuple(self._entries(records)),
            result=self.result,
            starter_dice=self._starter_dice,
            players=names,
            seed=self._seed,
        )

    @classmethod
    def from_record(cls, record: GameRecord | str | os.PathLike[str] | Iterable[str]) -> Game:
        """Replay a record (or the file or lines of one) and return the game at its end.

        Every seat, die, move, battle, event and the result are checked on the way. The dice come
        from the record alone; those thrown afterwards come from its seed.

        Raises:
            NotationError: the record cannot be read, or the rules say otherwise; it says where.
            RulesError, PositionError: its rules or its start cannot be.
            OSError: the file cannot be opened.
        """
        if not isinstance(record, GameRecord):
            if not isinstance(record, str | os.PathLike | Iterable):
                raise NotationError(
                    f"expected a GameRecord, a path or lines, got {type(record).__name__}"
                )
            record = read_record(record)
        game = cls.from_text(record.start, record.seed)
        if record.rules != str(game._rules):
            raise NotationError(f"record: rules {record.rules!r} but start {record.start!r}")
        if record.players and len(record.players) != game._rules.players:
            raise NotationError(f"record: {game._rules.players} players, named {record.players}")
        game._check_starter(record.starter_dice)
        game._starter_dice = record.starter_dice
        for n, entry in enumerate(record.entries):
            last = n == len(record.entries) - 1
            try:
                game._replay(entry, last)
            except KimbleError as error:
                raise NotationError(f"record, entry {n + 1}: {error}") from error
        if record.result != game.result:
            raise NotationError(f"record: result {record.result} but the game's is {game.result}")
        return game

    # ------------------------------------------------------------------------------ history in use

    def _records(self) -> npt.NDArray[np.void]:
        """All records since the game began, the present one last: STATE [calls + 1]."""
        return np.frombuffer(b"".join([*self._past, self._states.tobytes()]), STATE)

    def _calls(self, records: npt.NDArray[np.void]) -> list[tuple[Any, ...]]:
        """What was done: ("throw", die), ("play", move, battle or None), ("out", letter)."""
        calls: list[tuple[Any, ...]] = []
        for before, after in pairwise(records):
            gone = np.flatnonzero(after["out"] != before["out"])
            if gone.size:
                calls.append(("out", SEAT_LETTERS[int(gone[0])]))
            elif before["die"] == 0:
                calls.append(("throw", int(after["last_die"])))
            else:
                move = self._tables[int(before["die"])][0][int(after["last_action"])]
                battle = after["last_battle"].tolist()
                calls.append(("play", move.text, battle if battle[0] else None))
        return calls

    def _repeat(self, call: Any, n: int) -> None:
        """Do again one call of a snapshot."""
        try:
            if isinstance(call, list | tuple) and len(call) == 2 and call[0] == "throw":
                self.throw(read_die(call[1]))
            elif isinstance(call, list | tuple) and len(call) == 2 and call[0] == "out":
                self.remove_seat(call[1])
            elif isinstance(call, list | tuple) and len(call) == 3 and call[0] == "play":
                self.play(call[1], call[2])
            else:
                raise NotationError(f"unknown call {call!r}")
        except KimbleError as error:
            raise NotationError(f"snapshot, call {n + 1}: {error}") from error

    def _entries(self, records: npt.NDArray[np.void]) -> list[RecordedThrow | RecordedRemoval]:
        """The entries of a record: one for each throw that is over, one that waits at the end."""
        entries: list[RecordedThrow | RecordedRemoval] = []
        for call, (before, after) in zip(self._calls(records), pairwise(records), strict=True):
            if call[0] == "out":
                die = int(before["die"]) or None
                entries.append(RecordedRemoval(SEAT_LETTERS.index(call[1]), die))
            elif after["die"] == 0:
                move, battle = (call[1], call[2]) if call[0] == "play" else (None, None)
                events = tuple(event.as_tuple() for event in _events_of(after))
                die = int(before["die"] or after["last_die"])
                dice = (battle[0], battle[1]) if battle else None
                entries.append(RecordedThrow(int(before["seat"]), die, move, dice, events))
        if self._die:
            entries.append(RecordedThrow(self.seat, self._die, None))
        return entries

    def _replay(self, entry: RecordedThrow | RecordedRemoval, last: bool) -> None:
        """Do again one entry of a record, and check all that it says."""
        if isinstance(entry, RecordedRemoval):
            if entry.die is not None and not self._die:
                self.throw(entry.die)
            if entry.die != self.die:
                raise NotationError(f"the die is {self.die}, the record says {entry.die}")
            self.remove_seat(entry.seat)
            return
        self._refuse("throw")
        if entry.seat != self.seat:
            raise NotationError(
                f"{SEAT_NAMES[self.seat]} is to throw, the record says {SEAT_NAMES[entry.seat]}"
            )
        if self._die not in (0, entry.die):
            raise NotationError(f"the die is {self._die}, the record says {entry.die}")
        if not self._die:
            self.throw(entry.die)
        self._replay_move(entry, last)
        events = tuple(event.as_tuple() for event in self.events)
        if events != entry.events:
            raise NotationError(f"the events are {events}, the record says {entry.events}")

    def _replay_move(self, entry: RecordedThrow, last: bool) -> None:
        if entry.move is None:
            if self._die and not last:
                raise NotationError(f"no move is recorded, but legal are: {self._legal_texts()}")
            return
        if not self._die:
            raise NotationError(f"{entry.move!r} is recorded, but there was no legal move")
        action = self._legal_action(entry.move)
        if self._is_battle(action) and entry.battle is None:
            raise NotationError(f"{entry.move} starts a battle, but no battle dice are recorded")
        self.play(action, entry.battle)

    def _check_starter(self, dice: tuple[tuple[int, int], ...]) -> None:
        """Check that starter dice make the seat to act the starter (R8)."""
        if not dice:
            return
        if self._rules.starter != "highest_roll":
            raise NotationError(f"record: starter={self._rules.starter} throws no starter dice")
        starter = kernel.starter_by_dice(self._states[0], self._array, np.array(dice, np.int8))
        if starter < 0:
            raise NotationError(f"record: starter dice {dice} are not whole rounds up to one seat")
        if starter != self.seat:
            raise NotationError(
                f"record: by the starter dice {SEAT_NAMES[starter]} begins, not "
                f"{SEAT_NAMES[self.seat]}"
            )

    # ------------------------------------------------------------------------------------- pictures

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            return f"{name}.from_text({self.to_text()!r})"
        except NotationError:
            return f"<{name} on the unregistered board {self._rules.board.name!r}>"

    def __str__(self) -> str:
        """The board for a terminal, without colours."""
        from kimble_env import render

        return render.text(self)

    def _repr_svg_(self) -> str:
        """The picture that notebooks show."""
        from kimble_env import render

        return render.svg(self)


def _unpickle(
    cls: type[Game],
    rules: Rules,
    seed: int | None,
    starter_dice: tuple[tuple[int, int], ...],
    state: bytes,
    past: tuple[bytes, ...],
) -> Game:
    return cls._made(rules, _unpack(state), seed, starter_dice, list(past))


def _events_of(s: Any) -> list[Event]:
    count = int(s["event_count"])
    if not count:
        return []
    events = []
    for kind, seat, pieces, by in s["events"][:count].tolist():
        if kind == kernel.ARRIVED:
            events.append(Event("arrival", seat, pieces))
        else:
            events.append(Event("loss", seat, pieces, _CAUSE_OF_KIND[kind], by))
    return events


# ----------------------------------------------------------------------- records from the outside


def _range_faults(rules: Rules, states: npt.NDArray[np.void]) -> list[str]:
    """Return the faults of what a position text does not hold: the last throw and its events."""
    s = states[0]
    last = rules.board.pass_action
    ranges = {"last_seat": (-1, 3), "last_die": (0, 6), "last_action": (-1, last)}
    ranges |= {"last_battle": (0, 6), "event_count": (0, len(s["events"])), "plies": (0, 2**31 - 1)}
    faults = []
    for name, (low, high) in ranges.items():
        values = np.atleast_1d(s[name])
        if values.min() < low or values.max() > high:
            faults.append(f"{name} must lie in {low}..{high}, got {s[name]}")
    if not faults:
        for event in s["events"][: int(s["event_count"])].tolist():
            kinds = (*_CAUSE_OF_KIND, kernel.ARRIVED)
            seats = event[1] in range(SEATS) and event[3] in range(SEATS)
            if event[0] not in kinds or not seats or not 1 <= event[2] <= rules.pieces:
                faults.append(f"event {event} must be kind, seat, count, seat")
    return faults


def _as_list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise NotationError(f"snapshot: {name} must be a list, got {type(value).__name__}")
    return list(value)


def _read_starter_die(pair: object) -> tuple[int, int]:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise NotationError(f"snapshot: a starter die is (seat, face), got {pair!r}")
    return read_seat(pair[0]), read_die(pair[1], "a starter die")


def _state_from_fields(fields: object) -> npt.NDArray[np.void]:
    """Return STATE [1] from a mapping of all its fields to numbers or lists of numbers."""
    names = STATE.names or ()
    if not isinstance(fields, Mapping) or set(fields) != set(names):
        raise NotationError(f"snapshot: start must have exactly the fields {', '.join(names)}")
    states = kernel.empty_states(1)
    for name in names:
        cell = states[name][0]
        try:
            value = np.array(fields[name])
        except (ValueError, OverflowError):
            value = np.array(None)
        info = np.iinfo(cell.dtype)
        good = value.dtype.kind in "iu" and value.shape == np.shape(cell)
        if not good or value.min() < info.min or value.max() > info.max:
            raise NotationError(
                f"snapshot: start field {name} must be {cell.dtype} of shape {np.shape(cell)}, got "
                f"{fields[name]!r}"
            )
        states[name][0] = value
    return states
