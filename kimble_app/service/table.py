"""One game at the service: who sits where, the dice, undo by agreement. No database, no clock.

Whatever happens is an *event*, a dict that JSON can hold. A method checks what is asked and returns
the events that it leads to, which have then taken effect; :meth:`Table.apply` lets stored events
take effect again. So a table is exactly its events, and nothing of it can be lost but with them.

A *chair* is where a player sits: a seat, or with ``two_colours`` the first of a player's two seats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kimble_app.api.answers import event_dict, result_dict, standing
from kimble_app.api.errors import ApiError
from kimble_app.service.dice import Dice, commitment
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import GameRecord, Result
from kimble_env.opponents import Agent, choose
from kimble_env.rules import Rules, find_rules

MOST_EVENTS = 20_000
"""A game with so many events goes nowhere (bots may pass for ever): it is cut off, nobody wins."""
OPEN, RUNNING, OVER = "open", "running", "over"

Event = dict[str, Any]
FindAgent = Callable[[str, int | None, Rules], Agent]


class _Call(NamedTuple):
    """A call of the game: "throw" or "move", for which chair and seat, and whether it fought."""

    kind: str
    chair: int
    seat: int
    fought: bool = False


@dataclass
class Chair:
    """Who sits there: ``kind`` is "open", "human" or "bot"."""

    kind: str = "open"
    name: str = ""
    agent: str | None = None
    level: int | None = None
    nonce: str = ""


class Table:
    """A game. ``events`` are not kept here, only their number ``last``.

    Args:
        game: its id.
        secret: of its dice, 32 bytes.
        find_agent: returns the agent of a bot, by spec, level and rules.
    """

    def __init__(self, game: str, secret: bytes, find_agent: FindAgent) -> None:
        self.id, self.secret, self._find_agent = game, secret, find_agent
        self.status, self.last = OPEN, 0
        self.chairs: dict[int, Chair] = {}
        self.game: Game | None = None
        self._calls: list[_Call] = []  # for each call of the game
        self._agreed: set[int] | None = None  # chairs that agree to the undo that was asked for
        self._made: list[Event] = []
        self._result: dict[str, Any] | None = None  # how it ended

    # ------------------------------------------------------------------------------ what is asked

    def create(self, rules: Rules, bots: Mapping[int, Chair]) -> list[Event]:
        """Set the table up; it begins at once if bots take every chair.

        Raises:
            ApiError: a bot on a chair that there is not, or that does not fit the rules.
        """
        chairs = chairs_of(rules)
        for chair, bot in bots.items():
            if chair not in chairs:
                there = ", ".join(SEAT_LETTERS[c] for c in chairs)
                raise ApiError("bad_request", f"there is no chair {SEAT_LETTERS[chair]}; there "
                               f"are {there}", "bots")  # fmt: skip
            self._find_agent(bot.agent or "", bot.level, rules)
        self._do(
            "created",
            rules=str(rules),
            rules_hash=rules.hash,
            seats=[SEAT_LETTERS[seat] for seat in rules.seats],
            commitment=commitment(self.secret),
            chairs={SEAT_LETTERS[c]: _chair_dict(bots.get(c, Chair())) for c in chairs},
        )
        self._begin_if_full()
        return self._take()

    def join(self, chair: int | None, name: str, nonce: str) -> list[Event]:
        """Take a chair, or any that is free (None).

        Raises:
            ApiError: it is taken, or there is none.
        """
        free = [c for c, who in self.chairs.items() if who.kind == "open"]
        taken = free[0] if chair is None and free else chair
        if taken is None or taken not in free:
            raise ApiError("conflict", "that chair is taken, or there is none", "seat")
        self._do("joined", seat=SEAT_LETTERS[taken], name=name, nonce=nonce)
        self._begin_if_full()
        return self._take()

    def throw(self, chair: int) -> list[Event]:
        """Throw the die for a chair.

        Raises:
            ApiError: it is not its turn, or a die waits to be played.
        """
        game = self._turn_of(chair)
        if game.die is not None:
            raise ApiError("illegal_throw", f"a die waits to be played: {game.die}")
        self._throw()
        return self._take()

    def move(self, chair: int, move: str) -> list[Event]:
        """Play a move for a chair.

        Raises:
            ApiError: it is not its turn, or the move is not legal.
            KimbleError: the same, as the game says it.
        """
        self._turn_of(chair)
        self._play(move)
        return self._take()

    def undo(self, chair: int, agree: bool) -> list[Event]:
        """Ask for undo, agree to it, or refuse it; it happens when every person agrees.

        It takes back the last move of a person and all that came after it.

        Raises:
            ApiError: there is no such move, or the game is over (its secret is known).
        """
        if self.status != RUNNING:
            raise ApiError("conflict", "there is nothing to undo: the game is not going on")
        letter = SEAT_LETTERS[chair]
        if not agree:
            if self._agreed is None:
                raise ApiError("conflict", "nobody has asked for undo", "agree")
            self._do("undo_refused", seat=letter)
            return self._take()
        target = self._undo_target()
        if self._agreed is None or chair not in self._agreed:
            self._do("undo_asked" if self._agreed is None else "undo_agreed", seat=letter)
        people = {c for c, who in self.chairs.items() if who.kind == "human"}
        if people <= (self._agreed or set()):
            self._do("undone", calls=target)
        return self._take()

    def play_bots(self, most: int) -> list[Event]:
        """Let bots throw and play while it is their turn, up to so many events and a few."""
        while self.bot_waits and len(self._made) < most and self.last < MOST_EVENTS:
            game = self._running()
            if game.die is None:
                self._throw()
                continue
            who = self.chairs[self.chair_to_act]
            try:
                agent = self._find_agent(who.agent or "", who.level, game.rules)
                move = choose(agent, game).text
            except KimbleError:
                if self._made:
                    break  # what has happened stands; the next call meets the fault again
                raise
            self._play(move)
        return self._take()

    # ---------------------------------------------------------------------------- what it leads to

    def _do(self, kind: str, **body: Any) -> None:
        """Make an event and let it take effect."""
        if self.last >= MOST_EVENTS and kind != "over":
            raise ApiError("too_large", f"a game may have {MOST_EVENTS} events at most")
        event = {"n": self.last + 1, "kind": kind, **body}
        self.apply(event)
        if kind in ("started", "throw", "move", "undone"):
            event.update(standing(self._running()))
        self._made.append(event)

    def _take(self) -> list[Event]:
        """Return the events since this was last asked; a game that has too many ends with them."""
        if self.status == RUNNING and self.last >= MOST_EVENTS:
            self._end(Result("truncated", None))
        made, self._made = self._made, []
        return made

    def _begin_if_full(self) -> None:
        if any(who.kind == "open" for who in self.chairs.values()):
            return
        dice = [[SEAT_LETTERS[seat], face] for seat, face in self._start().starter_dice]
        self._do("started", starter_dice=dice)

    def _throw(self) -> None:
        game = self._running()
        chair = self.chair_to_act
        die = self.dice.throw(game, self._count("throw", game.seat))
        self._do("throw", thrown_by=SEAT_LETTERS[game.seat], chair=SEAT_LETTERS[chair], die=die)
        self._finish_if_over()

    def _play(self, move: str) -> None:
        game = self._running()
        seat, chair = game.seat, self.chair_to_act
        battle = None
        if game.starts_battle(move):
            battle = list(self.dice.battle(game, move, self._count("move", seat, True)))
        self._do("move", played_by=SEAT_LETTERS[seat], chair=SEAT_LETTERS[chair], move=move,
                 battle=battle)  # fmt: skip
        self._made[-1]["events"] = [event_dict(event) for event in game.events]
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        game = self._running()
        if game.over:
            self._end(game.result)

    def _end(self, result: Result | None) -> None:
        nonces = {SEAT_LETTERS[c]: who.nonce for c, who in self.chairs.items()}
        self._do("over", result=result_dict(result), secret=self.secret.hex(), nonces=nonces)

    def _count(self, kind: str, seat: int, fought: bool = False) -> int:
        """Return how many throws, or moves that fought, of a seat stand in the game."""
        return sum(
            call.kind == kind and call.seat == seat and call.fought == fought
            for call in self._calls
        )

    # -------------------------------------------------------------------------------- taking effect

    def apply(self, event: Mapping[str, Any]) -> None:
        """Let an event take effect, one just made or one that was stored."""
        getattr(self, f"_on_{event['kind']}")(event)
        self.last = event["n"]

    def replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Let stored events take effect."""
        for event in events:
            self.apply(event)

    def _on_created(self, event: Mapping[str, Any]) -> None:
        seats = "".join(event["seats"])
        self.rules = find_rules(event["rules"], seats=seats)
        self.chairs = {
            SEAT_LETTERS.index(letter): Chair(**who) for letter, who in event["chairs"].items()
        }

    def _on_joined(self, event: Mapping[str, Any]) -> None:
        chair = SEAT_LETTERS.index(event["seat"])
        self.chairs[chair] = Chair("human", event["name"], nonce=event["nonce"])

    def _on_started(self, event: Mapping[str, Any]) -> None:
        self.game, self.status = self._start(), RUNNING

    def _on_throw(self, event: Mapping[str, Any]) -> None:
        game = self._running()
        self._calls.append(_Call("throw", self.chair_to_act, game.seat))
        game.throw(event["die"])
        self._agreed = None

    def _on_move(self, event: Mapping[str, Any]) -> None:
        game = self._running()
        battle = event["battle"]
        self._calls.append(_Call("move", self.chair_to_act, game.seat, battle is not None))
        game.play(event["move"], None if battle is None else (battle[0], battle[1]))
        self._agreed = None

    def _on_undo_asked(self, event: Mapping[str, Any]) -> None:
        self._agreed = {SEAT_LETTERS.index(event["seat"])}

    def _on_undo_agreed(self, event: Mapping[str, Any]) -> None:
        assert self._agreed is not None
        self._agreed.add(SEAT_LETTERS.index(event["seat"]))

    def _on_undo_refused(self, event: Mapping[str, Any]) -> None:
        self._agreed = None

    def _on_undone(self, event: Mapping[str, Any]) -> None:
        game = self._running()
        while len(self._calls) > event["calls"]:
            game.undo()
            self._calls.pop()
        self._agreed = None

    def _on_over(self, event: Mapping[str, Any]) -> None:
        self.status, self._result = OVER, event["result"]

    # ------------------------------------------------------------------------------- what there is

    @property
    def dice(self) -> Dice:
        """The dice, once everybody has had a chance to mix something in."""
        return Dice(self.secret, {chair: who.nonce for chair, who in self.chairs.items()})

    def _start(self) -> Game:
        return self.dice.start(self.rules)

    def _running(self) -> Game:
        if self.game is None:
            raise ApiError("conflict", "the game has not begun: chairs are free")
        return self.game

    @property
    def chair_to_act(self) -> int:
        """The chair whose turn it is."""
        return chair_of(self.rules, self._running().seat)

    @property
    def bot_waits(self) -> bool:
        """True while it is the turn of a bot."""
        return self.status == RUNNING and self.chairs[self.chair_to_act].kind == "bot"

    def _turn_of(self, chair: int) -> Game:
        game = self._running()
        if self.status == OVER:
            ended = game.result or f"cut off after {MOST_EVENTS} events, no winner"
            raise ApiError("game_over", f"the game is over: {ended}")
        if self.chair_to_act != chair:
            whose = SEAT_LETTERS[self.chair_to_act]
            raise ApiError("not_your_turn", f"it is the turn of {whose}")
        return game

    def _undo_target(self) -> int:
        """Return how many calls are left once the last move of a person is taken back."""
        for i in range(len(self._calls) - 1, -1, -1):
            call = self._calls[i]
            if call.kind == "move" and self.chairs[call.chair].kind == "human":
                return i
        raise ApiError("conflict", "there is no move to take back")

    def view(self) -> dict[str, Any]:
        """Return all that may be known of the game now: a ``GameView``."""
        game, agreed = self.game, self._agreed
        view: dict[str, Any] = {
            "game": self.id,
            "status": self.status,
            "last": self.last,
            "rules": str(self.rules),
            "rules_hash": self.rules.hash,
            "chairs": {
                SEAT_LETTERS[c]: {"kind": w.kind, "name": w.name, "agent": w.agent,
                                  "level": w.level}
                for c, w in self.chairs.items()
            },
            "commitment": commitment(self.secret),
            "secret": self.secret.hex() if self.status == OVER else None,
            "undo": None if agreed is None else [SEAT_LETTERS[c] for c in sorted(agreed)],
            "position": None, "seat": None, "chair": None, "die": None, "throws": None,
            "legal": [], "over": False, "result": None,
        }  # fmt: skip
        if game is not None:
            chair = SEAT_LETTERS[self.chair_to_act]
            view.update(standing(game), chair=chair, die=game.die)
        if self.status == OVER:  # the game itself may not know that it was cut off
            view.update(legal=[], over=True, result=self._result)
        return view

    def fair_record(self) -> dict[str, Any]:
        """Return the record of the game with what checks its dice: a ``FairRecord``."""
        record = self._running().record(
            self.chairs[c].name or SEAT_LETTERS[c] for c in sorted(self.chairs)
        )
        told = GameRecord(**{**vars(record), "seed": None})  # the seed of its start is no secret's
        return {
            "format": "kimble-fair-game/1",
            "game": self.id,
            "record": told.to_lines(),
            "dice": {
                "commitment": commitment(self.secret),
                "secret": self.secret.hex() if self.status == OVER else None,
                "nonces": {SEAT_LETTERS[c]: who.nonce for c, who in self.chairs.items()},
            },
        }


def chairs_of(rules: Rules) -> tuple[int, ...]:
    """Return the chairs of a rule set: a seat for each player."""
    return rules.seats[:2] if rules.two_colours else rules.seats


def chair_of(rules: Rules, seat: int) -> int:
    """Return the chair that plays a seat (R17: with two colours also the one opposite)."""
    return seat & 1 if rules.two_colours else seat


def _chair_dict(chair: Chair) -> dict[str, Any]:
    return {
        "kind": chair.kind, "name": chair.name, "agent": chair.agent, "level": chair.level,
        "nonce": chair.nonce,
    }  # fmt: skip
