"""A game at the terminal: people and agents around one board, kept in a record after every throw.

Nothing is printed here: :class:`Sitting` says what happened and what may be answered, so that the
same game is played by keys, by lines from a pipe, and in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import read_record, write_record
from kimble_env.opponents import Agent, choose, make_agent
from kimble_env.render.view import make_view
from kimble_env.rules import Rules, find_rules

HUMAN = "human"
"""Who a person is in the record, so that a game can be resumed without being told again."""


def player_of(rules: Rules, seat: int) -> int:
    """Return the number of the player that a seat belongs to (R17)."""
    return seat % 2 if rules.two_colours else rules.seats.index(seat)


def seat_rules(rules: str | Rules, players: int | None, agents: int) -> Rules:
    """Return the rules with their seats: for ``players``, else one person and the agents.

    Raises:
        KimbleError: they cannot be, or more agents than seats are given.
    """
    found = find_rules(rules)
    if not found.two_colours:
        count = players if players is not None else max(2, agents + 1)
        found = found.replace(players=count)
    elif players not in (None, 2):
        raise KimbleError(f"{found} is for 2 players, but players={players}")
    if agents > found.players:
        raise KimbleError(f"{agents} agents are given for {found.players} players")
    return found


def line_up(rules: Rules, people: tuple[int, ...], agents: list[str]) -> tuple[str, ...]:
    """Return who plays: people where they sit, the agents clockwise behind the first of them.

    The last agent takes the places that are left.

    Args:
        rules: with their seats.
        people: seats of people; may be empty.
        agents: specs.

    Raises:
        KimbleError: a seat that does not play, or agents for whom no place is left.
    """
    for seat in people:
        if seat not in rules.seats:
            raise KimbleError(f"{SEAT_NAMES[seat]} does not play in a game of {rules.players}")
    names = [""] * rules.players
    for seat in people:
        names[player_of(rules, seat)] = HUMAN
    first = names.index(HUMAN) if HUMAN in names else 0
    order = [(first + k) % len(names) for k in range(len(names))]
    free = [player for player in order if not names[player]]
    if len(agents) > len(free):
        raise KimbleError(
            f"{len(agents)} agents are given, but only {len(free)} of {rules.players} places are "
            "free for them"
        )
    if free and not agents:
        raise KimbleError(f"{len(free)} of {rules.players} places have nobody to play them")
    for k, player in enumerate(free):
        names[player] = agents[min(k, len(agents) - 1)]
    return tuple(names)


class Sitting:
    """A game that people and agents play.

    Args:
        game: where it stands.
        names: who plays, one per player: ``human`` or the spec of an agent.
        path: where the record is kept; None to keep none.

    Raises:
        AgentError: an agent that is not known or does not fit the rules.
    """

    def __init__(self, game: Game, names: tuple[str, ...], path: Path | None) -> None:
        self.game, self.names, self.path = game, names, path
        made: dict[str, Agent] = {
            name: make_agent(name, game.rules) for name in set(names) - {HUMAN}
        }
        self.agents: Mapping[int, Agent | None] = {
            seat: made.get(names[player_of(game.rules, seat)]) for seat in game.rules.seats
        }
        self.last = make_view(game).last
        self.said: list[str] = []

    @classmethod
    def resume(cls, path: Path) -> Sitting:
        """Go on with the game of a record.

        Raises:
            KimbleError: the record cannot be read or replayed, or does not say who played.
            OSError: the file cannot be opened.
        """
        record = read_record(path)
        game = Game.from_record(record)
        if not record.players:
            raise KimbleError(f"{path} does not say who plays, so it cannot be gone on with")
        return cls(game, record.players, path)

    # ------------------------------------------------------------------------------ what stands

    @property
    def waits(self) -> bool:
        """True while a person has to throw or to choose."""
        return not self.game.over and self.agents[self.game.seat] is None

    def who(self, seat: int) -> str:
        """Return "red (cautious)", or the colour alone for a person."""
        agent = self.agents[seat]
        return SEAT_NAMES[seat] + (f" ({agent.spec})" if agent is not None else "")

    def result(self) -> dict[str, Any]:
        """Return how the game stands, as data for JSON."""
        game, end = self.game, self.game.result
        return {
            "position": game.to_text(),
            "over": game.over,
            "winner": None if end is None or end.winner is None else SEAT_LETTERS[end.winner],
            "players": list(self.names),
            "throws": game.plies,
            "seed": game.seed,
            "record": None if self.path is None else str(self.path),
        }

    # ------------------------------------------------------------------------------ what is done

    def throw(self) -> None:
        """Throw the die for the seat to act."""
        self.last = make_view(self.game).last
        self.game.throw()
        if self.game.die is None:
            self._tell()
        self.save()

    def play(self, move: str) -> None:
        """Play a move of the die thrown.

        Raises:
            IllegalMoveError: it is not legal.
        """
        self.game.play(move)
        self._tell()
        self.save()

    def let_agents_play(self, most: int | None = None) -> None:
        """Let agents throw and move until a person has to act, or the game is over."""
        count = 0
        while not (self.game.over or self.waits) and (most is None or count < most):
            self._agent_throw()
            count += 1
        if count:
            self.save()

    def _agent_throw(self) -> None:
        agent = self.agents[self.game.seat]
        if self.game.die is None:
            self.game.throw()
        if self.game.die is not None:
            self.game.play(choose(agent, self.game))  # type: ignore[arg-type]
        self._tell()

    def undo(self) -> None:
        """Take back until a person's last choice of two moves or more stands again.

        Raises:
            KimbleError: there is no such choice.
        """
        before = self.game.copy()
        while True:
            try:
                self.game.undo()
            except KimbleError:
                self.game = before
                raise KimbleError("there is no choice of yours to take back") from None
            if self.waits and len(self.game.legal_moves) > 1:
                break
        self.last = None
        self.said = ["taken back"]
        self.save()

    def _tell(self) -> None:
        view = make_view(self.game)
        self.last = view.last
        self.said.append(view.last_sentence())

    def tell(self) -> list[str]:
        """Return what has happened since this was last asked."""
        said, self.said = self.said, []
        return said

    def save(self) -> None:
        """Write the record; it is on the disk whole before this returns."""
        if self.path is not None:
            write_record(self.game.record(self.names), self.path)
