"""Every worked case of the rules, played on the package and on the oracle."""

from __future__ import annotations

import pytest
from cases import BLUE, CASES, Case, Event, Line, Play, Start, Throw, check, loss
from oracle import Oracle

from kimble_env import Game


class OraclePlayer:
    """The plain second implementation."""

    def __init__(self, text: str) -> None:
        self.game = Oracle.from_text(text)

    def throw(self, die: int) -> None:
        self.game.throw(die)

    def legal_moves(self) -> list[str]:
        return self.game.legal_moves()

    def play(self, move: str, battle: tuple[int, int] | None) -> None:
        self.game.play(move, battle)

    def remove(self, seat: int) -> None:
        self.game.remove(seat)

    def to_text(self) -> str:
        return self.game.to_text()

    def events(self) -> list[Event]:
        return self.game.events


class GamePlayer:
    """The package."""

    def __init__(self, text: str) -> None:
        self.game = Game.from_text(text)

    def throw(self, die: int) -> None:
        assert self.game.throw(die) == die

    def legal_moves(self) -> list[str]:
        return [str(move) for move in self.game.legal_moves]

    def play(self, move: str, battle: tuple[int, int] | None) -> None:
        if battle is None:
            self.game.play(move)
        else:
            self.game.play(move, battle=battle)

    def remove(self, seat: int) -> None:
        self.game.remove_seat(seat)

    def to_text(self) -> str:
        return self.game.to_text()

    def events(self) -> list[Event]:
        return [event.as_tuple() for event in self.game.events]


STARTS = [pytest.param(OraclePlayer, id="oracle"), pytest.param(GamePlayer, id="game")]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_worked_case(case: Case, start: Start) -> None:
    check(case, start)


@pytest.mark.parametrize("case", [case for case in CASES if case.needs], ids=lambda case: case.name)
def test_case_of_an_option_fails_without_it(case: Case) -> None:
    """A case that also passes without its option would show nothing."""
    with pytest.raises((AssertionError, ValueError)):
        check(case, OraclePlayer, without=case.needs)


def test_no_two_cases_share_a_name() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "steps",
    [
        (Throw(5, "3-8 pass"), Play("3-8", "R8/B- B - 3", (loss(BLUE, 1, "captured"),))),
        (Throw(5, "3-8"), Play("3-8", "R8/B- R - 1", (loss(BLUE, 1, "captured"),))),
        (Throw(5, "3-8"), Play("3-8", "R8/B- B - 3")),
    ],
    ids=["moves", "position", "events"],
)
def test_the_checker_sees_a_wrong_case(steps: tuple[Throw, Play]) -> None:
    with pytest.raises(AssertionError):
        check(Case("wrong", "", (Line("norske R3/B1 R - 1", steps),)), OraclePlayer)
