"""The referee's ledger: the worked cases by name, each illegal call, rulings, JSON and replay."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kimble_env.errors import KimbleError
from kimble_env.ledger import (
    BreakError,
    ClockError,
    CupError,
    DecisionError,
    DrinkerError,
    DrinkError,
    DrinkingError,
    GatedError,
    LeaveError,
    LedgerError,
    LedgerFormatError,
    MatchOverError,
    MemberError,
    RulingError,
    RulingNeededError,
    TeamError,
    state_faults,
)
from kimble_env.ledger_rules import RULINGS
from kimble_env.referee import Referee
from kimble_env.rules import PRESETS, find_rules

R, B, Y, G = range(4)
A_MEMBER, OTHER = 0, 1
MIXED = {
    "R": [("Aino", "vichy"), ("Eero", "beer")],
    "B": [("Bo", "vichy"), ("Ida", "cider")],
    "Y": ["long drink", "vichy"],
}


def refuses(
    referee: Referee, kind: type[LedgerError], code: str, call: Callable[..., Any], *args: Any
) -> None:
    """Check that a call raises the named error and changes nothing."""
    before = referee.to_json()
    with pytest.raises(kind) as caught:
        call(*args)
    assert caught.value.code == code
    assert isinstance(caught.value, KimbleError)
    assert len(str(caught.value)) > 10
    assert referee.to_json() == before


def hit(cups: int, seat: int = B, **options: Any) -> Referee:
    """A referee before whom a team has lost cups at second 0."""
    referee = Referee(MIXED, **options)
    referee.move(0, (seat - 1) % 4, [("loss", seat, cups)])
    return referee


def served(referee: Referee, t: int, seat: int = B, member: int = A_MEMBER) -> None:
    """Name the drinker if that is still to do, pour, and put the cup on the table."""
    front = referee.state.front
    assert front is not None
    if front.drinker is None:
        referee.drinker(t, seat, member)
    referee.pour(t, seat, member)
    referee.table(t, seat)


def drinks(referee: Referee, start: int, end: int, seat: int = B, member: int = A_MEMBER) -> None:
    served(referee, start, seat, member)
    referee.start(start, seat)
    referee.end(end, seat)


def member(referee: Referee, seat: int, index: int) -> Any:
    return referee.state.teams[seat].members[index]


def queue(referee: Referee) -> list[tuple[int, str, int, int | None]]:
    return [(ob.seat, ob.cause, ob.left, ob.drinker) for ob in referee.state.obligations]


# ------------------------------------------------------------------------------- the worked cases


def test_ledger_1_a_single_cup_in_38_seconds() -> None:
    referee = hit(1)
    drinks(referee, 0, 38)
    assert not referee.gated
    assert member(referee, B, A_MEMBER).stay_until == 338
    refuses(referee, LeaveError, "leaving_early", referee.leave, 200, B, A_MEMBER)
    refuses(referee, LeaveError, "leaving_early", referee.leave, 337, B, A_MEMBER)
    referee.copy().leave(338, B, A_MEMBER)  # L5: exactly 300 s is enough
    referee.leave(340, B, A_MEMBER)


def test_ledger_2_a_battery_of_two() -> None:
    referee = hit(2)
    drinks(referee, 0, 41)
    assert referee.state.obligations[0].break_until == 71
    served(referee, 50)
    referee.start(60, B)
    referee.end(100, B)
    assert not referee.gated
    assert member(referee, B, A_MEMBER).stay_until == 400
    assert member(referee, B, A_MEMBER).drunk == 2


def test_ledger_3_too_late() -> None:
    referee = hit(1)
    served(referee, 0)
    referee.start(0, B)
    assert referee.view(45).teams[B].members[A_MEMBER].playing
    assert not referee.view(46).teams[B].members[A_MEMBER].playing
    refuses(referee, DrinkingError, "clock_stopped", referee.end, 46, B)
    alone, gone = referee.copy(), referee.copy()
    alone.go_on(50, B)
    assert alone.status(B) == "solo"
    assert queue(alone) == [(B, "refill", 1, OTHER)]
    gone.decline(50, B)
    assert gone.status(B) == "out"
    assert not gone.gated


def test_ledger_4_vomiting_after_a_battery() -> None:
    referee = hit(2)
    drinks(referee, 0, 41)
    served(referee, 50)
    referee.start(60, B)
    referee.end(100, B)
    inside, exactly, outside = referee.copy(), referee.copy(), referee.copy()
    for late, t in ((inside, 350), (exactly, 400), (outside, 401)):
        late.vomit(t, B, A_MEMBER)
        late.go_on(t, B)
    assert queue(inside) == [(B, "redrink", 2, OTHER)]
    assert queue(exactly) == [(B, "redrink", 2, OTHER)]
    assert queue(outside) == []
    drinks(inside, 351, 360, member=OTHER)  # a redrunk battery keeps its break
    assert inside.state.obligations[0].break_until == 390


def test_ledger_5_a_solo_member_vomits() -> None:
    referee = Referee()
    referee.unable(0, B, A_MEMBER)
    referee.go_on(5, B)
    assert referee.status(B) == "solo"
    then = referee.vomit(9, B, OTHER)
    assert [h.kind for h in then] == ["member_out", "team_out"]
    for seat in (R, Y):
        for index in (A_MEMBER, OTHER):
            referee.unable(20, seat, index)
    assert referee.winner == G  # the last team wins
    assert referee.over


def test_ledger_6_when_drinks_are_opened() -> None:
    referee = Referee(MIXED)
    referee.move(0, B, [("entry", B, 1)], text="enter")
    refuses(referee, DrinkError, "vichy_early", referee.open, 1, B, "Bo")
    referee.open(1, B, "Ida")
    referee.move(2, R, [("entry", R, 1)], text="enter")
    referee.open(3, R, "Eero")  # beer
    assert member(referee, R, 1).opened == 1


def test_ledger_7_a_battery_of_three_changes_hands() -> None:
    referee = hit(3)
    drinks(referee, 0, 20)
    refuses(referee, DrinkerError, "drinker_changed", referee.drinker, 21, B, OTHER)
    unable, vomits = referee.copy(), referee.copy()
    unable.unable(25, B, A_MEMBER)
    unable.go_on(26, B)
    assert queue(unable) == [(B, "refill", 2, OTHER)]
    vomits.vomit(25, B, A_MEMBER)
    vomits.go_on(26, B)
    assert sum(ob.left for ob in vomits.state.obligations) == 3
    assert queue(vomits) == [(B, "redrink", 3, OTHER)]


def test_ledger_8_the_last_piece_home_is_not_yet_drunk() -> None:
    referee = Referee(MIXED, home={R: 3})
    referee.move(0, R, [("arrival", R, 1)])
    assert referee.winner is None
    refuses(referee, GatedError, "gated", referee.throw, 1, B)
    referee.drinker(2, R, "Aino")
    referee.unable(3, R, "Aino")
    referee.decline(4, R)
    assert referee.status(R) == "out"
    assert referee.winner is None
    referee.throw(5, B)


# ------------------------------------------------------------------------- times and what follows


@pytest.mark.parametrize(("end", "earned"), [(44, True), (45, False)])
def test_a_cup_of_exactly_45_seconds_is_in_time_but_earns_no_break(end: int, earned: bool) -> None:
    referee = hit(2)
    drinks(referee, 0, end)
    assert member(referee, B, A_MEMBER).playing
    assert (referee.state.obligations[0].break_until is not None) == earned


def test_a_break_is_over_by_itself_after_30_seconds_and_a_late_start_is_no_failure() -> None:
    referee = hit(2)
    drinks(referee, 0, 40)
    front = referee.view(69).front
    assert front is not None
    assert front.break_until == 70
    front = referee.view(70).front
    assert front is not None
    assert front.break_until is None
    served(referee, 1000)
    referee.start(1001, B)
    referee.end(1046, B)
    assert not referee.gated


def test_the_break_can_end_early_by_word_or_by_start() -> None:
    referee = hit(3)
    drinks(referee, 0, 10)
    assert [h.kind for h in referee.take_break(12, B)] == ["break"]
    assert [h.kind for h in referee.end_break(15, B)] == ["break_over"]
    served(referee, 15)
    referee.start(16, B)
    referee.end(20, B)
    served(referee, 21)
    assert [h.kind for h in referee.start(22, B)] == ["break_over"]


def test_a_refilled_battery_keeps_its_break() -> None:
    referee = hit(2)
    referee.drinker(0, B, A_MEMBER)
    referee.unable(1, B, A_MEMBER)
    referee.go_on(2, B)
    drinks(referee, 5, 15, member=OTHER)
    assert referee.state.obligations[0].break_until == 45


def test_all_cups_of_a_battery_can_be_poured_at_once() -> None:
    referee = hit(2)
    referee.drinker(0, B, A_MEMBER)
    referee.pour(1, B, A_MEMBER)
    referee.pour(1, B, A_MEMBER)
    refuses(referee, CupError, "all_poured", referee.pour, 2, B, A_MEMBER)


def test_obligations_are_drunk_first_in_first_out() -> None:
    referee = hit(1)
    drinks(referee, 0, 30)
    referee.move(40, B, [("loss", Y, 1)])
    referee.vomit(50, B, A_MEMBER)  # within 300 s
    referee.go_on(51, B)
    assert queue(referee) == [(Y, "hit", 1, None), (B, "redrink", 1, OTHER)]
    refuses(referee, TeamError, "wrong_team", referee.pour, 52, B, OTHER)
    drinks(referee, 52, 60, seat=Y)
    drinks(referee, 61, 70, member=OTHER)
    assert not referee.gated


def test_only_the_last_round_is_drunk_again() -> None:
    referee = hit(2)
    drinks(referee, 0, 10)
    drinks(referee, 11, 20)
    referee.move(30, R, [("loss", B, 1)])
    drinks(referee, 31, 40)
    referee.vomit(50, B, A_MEMBER)
    referee.go_on(50, B)
    assert queue(referee) == [(B, "redrink", 1, OTHER)]


def test_vomiting_over_a_new_cup_owes_that_one_and_the_round_before() -> None:
    referee = hit(2)
    drinks(referee, 0, 10)
    drinks(referee, 11, 20)
    referee.move(30, R, [("loss", B, 1)])
    served(referee, 31)
    referee.start(32, B)
    referee.vomit(33, B, A_MEMBER)
    referee.go_on(34, B)
    assert queue(referee) == [(B, "refill", 1, OTHER), (B, "redrink", 2, OTHER)]


def test_the_partner_of_somebody_who_fails_drinks_on_while_he_decides() -> None:
    referee = hit(1)
    served(referee, 0)
    referee.start(0, B)
    referee.unable(5, B, OTHER)
    refuses(referee, GatedError, "gated", referee.throw, 6, R)
    referee.end(30, B)
    refuses(referee, GatedError, "gated", referee.throw, 31, R)  # the word is still missing
    referee.go_on(32, B)
    referee.throw(33, R)


def test_a_team_of_one_needs_no_choice_of_drinker() -> None:
    referee = Referee()
    referee.unable(0, B, A_MEMBER)
    referee.go_on(0, B)
    referee.move(1, R, [("loss", B, 1)])
    assert queue(referee) == [(B, "hit", 1, OTHER)]
    refuses(referee, DrinkerError, "drinker_named", referee.drinker, 2, B, OTHER)


def test_a_team_that_goes_out_owes_nothing_any_more() -> None:
    referee = hit(3)
    drinks(referee, 0, 10)
    referee.unable(11, B, A_MEMBER)
    referee.unable(12, B, OTHER)
    team = referee.state.teams[B]
    assert (team.owed, team.drunk, team.dropped) == (3, 1, 2)
    assert not referee.gated


def test_the_win_waits_until_the_last_piece_is_drunk() -> None:
    referee = Referee(home={R: 2})
    referee.move(0, R, [("arrival", R, 2)])
    drinks(referee, 1, 30, seat=R)
    assert referee.winner is None
    served(referee, 31, seat=R)
    referee.start(31, R)
    then = referee.end(60, R)
    assert [h.kind for h in then] == ["empty", "done", "placed", "won"]
    assert referee.winner == R
    refuses(referee, MatchOverError, "match_over", referee.throw, 61, B)
    refuses(referee, MatchOverError, "match_over", referee.move, 61, B)


def test_win_at_home_does_not_wait() -> None:
    referee = Referee(rules="norske[win_at=home]", home={R: 3})
    referee.move(0, R, [("arrival", R, 1)])
    assert referee.winner == R
    drinks(referee, 1, 30, seat=R)  # owed all the same
    assert not referee.gated


def test_late_no_break_counts_the_cup_once_it_is_empty() -> None:
    referee = hit(2, rules="norske[late=no_break]")
    drinks(referee, 0, 80)
    assert member(referee, B, A_MEMBER).playing
    front = referee.state.front
    assert front is not None
    assert (front.left, front.break_until) == (1, None)
    assert referee.next_change() is None


def test_late_referee_waits_for_a_ruling() -> None:
    referee = hit(2, rules="norske[late=referee]")
    served(referee, 0)
    referee.start(0, B)
    assert referee.next_change() == 46
    refuses(referee, RulingNeededError, "ruling_needed", referee.end, 46, B)
    refuses(referee, RulingNeededError, "ruling_needed", referee.pour, 46, B, A_MEMBER)
    referee.copy().end(45, B)
    referee.tick(46)
    counted, out = referee.copy(), referee.copy()
    counted.ruling(60, "hardly late", do="cup_drunk", seat=B)
    assert queue(counted) == [(B, "hit", 1, A_MEMBER)]
    assert counted.state.obligations[0].break_until is None
    out.ruling(60, "far too late", do="member_out", seat=B, member=A_MEMBER)
    out.go_on(61, B)
    assert queue(out) == [(B, "refill", 2, OTHER)]


def test_play_for_places_goes_on_after_the_first_team() -> None:
    referee = Referee(rules="norske[play_for_places=yes]", home={R: 3, B: 3})
    referee.move(0, R, [("arrival", R, 1)])
    drinks(referee, 1, 20, seat=R)
    assert referee.winner == R
    assert not referee.over
    refuses(referee, MatchOverError, "match_over", referee.throw, 21, R)
    referee.throw(21, B)
    referee.move(22, B, [("arrival", B, 1)])
    drinks(referee, 23, 30)
    assert referee.state.places == [R, B]
    for index in (A_MEMBER, OTHER):
        referee.unable(40, Y, index)
    assert referee.over


# -------------------------------------------------------------------------------- illegal calls


def named() -> Referee:
    referee = hit(2)
    referee.drinker(0, B, A_MEMBER)
    return referee


def poured() -> Referee:
    referee = named()
    referee.pour(0, B, A_MEMBER)
    return referee


def running() -> Referee:
    referee = poured()
    referee.table(0, B)
    referee.start(0, B)
    return referee


def resting() -> Referee:
    referee = running()
    referee.end(20, B)
    return referee


def undecided() -> Referee:
    referee = running()
    referee.unable(20, B, A_MEMBER)
    return referee


def out() -> Referee:
    referee = undecided()
    referee.decline(20, B)
    return referee


def rested() -> Referee:
    referee = resting()
    referee.end_break(21, B)
    return referee


ILLEGAL: list[tuple[str, Callable[[], Referee], type[LedgerError], str, str, tuple[Any, ...]]] = [
    ("throw while owed", hit_one := lambda: hit(1), GatedError, "gated", "throw", (R,)),
    ("move while owed", hit_one, GatedError, "gated", "move", (R,)),
    ("throw while undecided", undecided, GatedError, "gated", "throw", (R,)),
    ("drinker when nothing is owed", Referee, TeamError, "wrong_team", "drinker", (B, 0)),
    ("drinker of another team", hit_one, TeamError, "wrong_team", "drinker", (R, 0)),
    ("drinker who is out", undecided, MemberError, "member_out", "drinker", (B, 0)),
    ("drinker before the decision", undecided, DecisionError, "undecided", "drinker", (B, 1)),
    ("drinker named twice", named, DrinkerError, "drinker_named", "drinker", (B, 0)),
    ("drinker changed", resting, DrinkerError, "drinker_changed", "drinker", (B, 1)),
    ("pour before it is owed", Referee, TeamError, "wrong_team", "pour", (B, 0)),
    ("pour before a drinker is named", hit_one, DrinkerError, "no_drinker", "pour", (B, 0)),
    ("pour by the other member", named, MemberError, "wrong_member", "pour", (B, 1)),
    ("pour of the other's drink", named, DrinkError, "wrong_drink", "pour", (B, 0, "cider")),
    ("table without a poured cup", named, CupError, "not_poured", "table", (B,)),
    ("table before a drinker is named", hit_one, DrinkerError, "no_drinker", "table", (B,)),
    ("start before a drinker is named", hit_one, DrinkerError, "no_drinker", "start", (B,)),
    ("start without a poured cup", named, CupError, "not_poured", "start", (B,)),
    ("start with the cup in the hand", poured, CupError, "not_on_table", "start", (B,)),
    ("start while the clock runs", running, DrinkingError, "clock_running", "start", (B,)),
    ("start for a team that owes nothing", running, TeamError, "wrong_team", "start", (R,)),
    ("end without a start", poured, DrinkingError, "clock_stopped", "end", (B,)),
    ("end for another team", running, TeamError, "wrong_team", "end", (Y,)),
    ("break for a single cup", hit_one, BreakError, "break_single", "take_break", (B,)),
    ("break after the last cup", Referee, BreakError, "break_after_last", "take_break", (B,)),
    ("break before the first cup", named, BreakError, "break_first", "take_break", (B,)),
    ("break into a cup", running, BreakError, "break_drinking", "take_break", (B,)),
    ("break that is over", rested, BreakError, "no_break", "end_break", (B,)),
    ("vichy opened early", Referee, DrinkError, "vichy_early", "open", (B, 0)),
    ("drinks ahead of entries", hit_one, DrinkError, "too_many_open", "open", (R, 1)),
    ("go on without a failure", hit_one, DecisionError, "nothing_to_decide", "go_on", (B,)),
    ("decline without a failure", hit_one, DecisionError, "nothing_to_decide", "decline", (B,)),
    ("unable twice", undecided, MemberError, "member_out", "unable", (B, 0)),
    ("vomit after being out", undecided, MemberError, "member_out", "vomit", (B, 0)),
    ("leave with a cup to drink", named, LeaveError, "leaving_owing", "leave", (B, 0)),
    ("back without having left", Referee, LeaveError, "at_the_table", "back", (B, 0)),
    ("throw of a team that is out", out, TeamError, "team_out", "throw", (B,)),
    ("move of a team that is out", out, TeamError, "team_out", "move", (B,)),
    ("hit of a team that is out", out, TeamError, "team_out", "move", (R, [("loss", "B", 1)])),
    ("vomit in a team that is out", out, TeamError, "team_out", "vomit", (B, 1)),
    ("leave in a team that is out", out, TeamError, "team_out", "leave", (B, 1)),
    ("go on in a team that is out", out, TeamError, "team_out", "go_on", (B,)),
    ("a team that does not exist", Referee, TeamError, "no_such_team", "throw", (4,)),
    ("a member who does not exist", Referee, MemberError, "no_such_member", "unable", (B, 2)),
    ("a name that nobody has", Referee, MemberError, "no_such_member", "unable", (B, "Zoe")),
    ("an arrival of another team", Referee, TeamError, "wrong_team", "move",
     (R, [("arrival", B, 1)])),
    ("an entry of another team", Referee, TeamError, "wrong_team", "move", (R, [("entry", B, 1)])),
    ("five pieces", Referee, LedgerFormatError, "format", "move", (R, [("loss", B, 5)])),
    ("an unknown event", Referee, LedgerFormatError, "format", "move", (R, [("hit", B, 1)])),
    ("no events", Referee, LedgerFormatError, "format", "move", (R, [1])),
    ("a die of seven", Referee, LedgerFormatError, "format", "throw", (R, 7)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "kind", "code", "call", "args"),
    [case[1:] for case in ILLEGAL],
    ids=[case[0] for case in ILLEGAL],
)
def test_illegal(
    make: Callable[[], Referee], kind: type[LedgerError], code: str, call: str, args: tuple[Any]
) -> None:
    referee = make()
    refuses(referee, kind, code, getattr(referee, call), referee.now, *args)


@pytest.mark.parametrize("t", [19, 0, -1, 20.0, "20", None, True, 2**31])
def test_time_never_runs_backwards_and_is_whole_seconds(t: Any) -> None:
    referee = resting()
    code = "time_backwards" if t in (19, 0) and t is not False else "time"
    refuses(referee, ClockError, code, referee.tick, t)
    refuses(referee, ClockError, code, referee.view, t)
    refuses(referee, ClockError, code, referee.ruling, t, "for the sake of order")


def test_a_member_who_left_must_be_back_before_the_start() -> None:
    referee = Referee()
    referee.leave(0, B, 0)
    refuses(referee, LeaveError, "away", referee.leave, 1, B, 0)
    referee.move(1, R, [("loss", B, 1)])
    refuses(referee, MemberError, "away", referee.drinker, 2, B, 0)
    referee.back(2, B, 0)
    served(referee, 2)
    referee.ruling(3, "he walked off", put={"teams/B/members/0/away": True})
    refuses(referee, MemberError, "away", referee.start, 3, B)
    referee.back(4, B, 0)
    referee.start(5, B)


def test_a_member_who_is_away_neither_is_named_nor_pours() -> None:
    referee = hit(1)
    referee.leave(1, B, 0)
    refuses(referee, MemberError, "away", referee.drinker, 2, B, 0)
    referee.back(3, B, 0)
    referee.drinker(3, B, 0)
    alone = Referee(MIXED)  # who is alone drinks without being named, but not from afar
    alone.unable(0, B, 1)
    alone.go_on(0, B)
    alone.leave(1, B, 0)
    alone.move(2, R, [("loss", B, 1)])
    refuses(alone, MemberError, "away", alone.pour, 3, B, 0)
    alone.back(4, B, 0)
    alone.pour(4, B, 0)


def last_cup() -> Referee:
    """Red's last piece is home and its cup is being drunk by the first member since second 0."""
    referee = Referee(MIXED, home={R: 3})
    referee.move(0, R, [("arrival", R, 1)])
    served(referee, 0, R)
    referee.start(0, R)
    return referee


@pytest.mark.parametrize("failing", ["unable", "vomit"])
def test_the_last_cup_wins_though_the_partner_failed_meanwhile(failing: str) -> None:
    referee = last_cup()
    referee.call(failing, 5, seat=R, member=OTHER)
    then = referee.end(20, R)
    assert [h.kind for h in then] == ["empty", "done", "placed", "won"]
    assert referee.winner == R
    referee.decline(30, R)
    assert referee.winner == R  # what has been won stays won


@pytest.mark.parametrize(("word", "wins"), [("go_on", True), ("decline", False)])
def test_cups_to_redrink_keep_the_win_open(word: str, wins: bool) -> None:
    referee = Referee(MIXED, home={R: 2})
    referee.move(0, R, [("arrival", R, 1)])
    drinks(referee, 0, 20, R, OTHER)
    referee.move(21, R, [("arrival", R, 1)])
    served(referee, 21, R)
    referee.start(30, R)
    referee.vomit(40, R, OTHER)  # L4: his cup, finished at second 20, is to be drunk again
    referee.end(50, R)
    assert referee.winner is None
    referee.call(word, 51, seat=R)
    assert referee.winner is None
    if wins:
        drinks(referee, 52, 60, R)
    assert (referee.winner == R) == wins
    assert referee.state.teams[R].out != wins


def test_drinks_opened_ahead_are_counted_by_entries_and_used_when_pouring() -> None:
    referee = Referee({"B": ["beer", "cider"]})
    referee.move(0, B, [("entry", B, 1)])
    referee.open(1, B, 1)
    refuses(referee, DrinkError, "too_many_open", referee.open, 1, B, 0)
    referee.move(2, R, [("loss", B, 2)])
    referee.drinker(3, B, 1)
    referee.open(4, B, 1)  # for the second cup: owed, so it is always legal
    refuses(referee, DrinkError, "too_many_open", referee.open, 4, B, 1)
    referee.pour(5, B, 1)
    referee.pour(5, B, 1)
    assert member(referee, B, 1).opened == 0


def test_numpy_integers_and_names_are_understood() -> None:
    referee = Referee(MIXED)
    referee.move(np.int64(0), np.int8(R), [("loss", "blue", np.int8(1))], die=np.int8(3))  # type: ignore[arg-type]
    referee.drinker(0, "blue", "Bo")
    json.dumps(referee.log)


def test_unknown_calls_and_arguments() -> None:
    referee = Referee()
    refuses(referee, LedgerFormatError, "format", referee.call, "drink", 0)
    refuses(referee, LedgerFormatError, "format", referee.call, "start", 0)
    with pytest.raises(LedgerFormatError, match="unknown argument 'cup'"):
        referee.call("start", 0, seat=0, cup=1)


# ----------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("teams", "message"),
    [
        ({"R": ["vichy"]}, "exactly two members"),
        ({"R": ["vichy", "vichy", "vichy"]}, "exactly two members"),
        ({"R": "vichy"}, "exactly two members"),
        ({"R": ["vichy", "wine"]}, "beer, cider, long drink, vichy"),
        ({"R": [("Ann", "vichy"), ("Ann", "vichy")]}, "different names"),
        ({"R": [("", "vichy"), ("Ann", "vichy")]}, "name"),
        ({"R": [3, "vichy"]}, "a member is a drink or a pair"),
        ({"red": ["vichy", "beer"], "R": ["vichy", "beer"]}, "named twice"),
    ],
)
def test_teams_that_cannot_be(teams: Any, message: str) -> None:
    with pytest.raises(LedgerFormatError, match=message):
        Referee(teams)


def test_settings_come_from_the_rules() -> None:
    rules = find_rules("norske[late=no_break,win_at=home,pieces=2]", players=3)
    referee = Referee(rules=rules, cups="equal", time=100)
    assert (referee.settings.late, referee.settings.win_at) == ("no_break", "home")
    assert (referee.settings.pieces, referee.settings.cups) == (2, "equal")
    assert sorted(referee.state.teams) == [0, 1, 2]
    assert referee.now == 100
    assert all(m.drink == "vichy" for team in referee.state.teams.values() for m in team.members)
    with pytest.raises(LedgerFormatError, match="team green does not play"):
        Referee({"G": ["vichy", "vichy"]}, rules=rules)
    with pytest.raises(LedgerFormatError, match="cups"):
        Referee(cups="big")
    with pytest.raises(LedgerFormatError, match="home"):
        Referee(rules="kimble")
    with pytest.raises(KimbleError, match="late"):
        find_rules("norske[late=never]")


def test_the_ledger_options_are_not_part_of_the_hash() -> None:
    norske = PRESETS["norske"]
    other = find_rules("norske[late=referee,win_at=home]")
    assert other.hash == norske.hash
    assert str(other) == "norske[late=referee,win_at=home]"


# ------------------------------------------------------------------------------------- rulings


def test_a_ruling_may_set_anything_and_is_logged() -> None:
    referee = resting()
    referee.ruling(
        25,
        "the second cup had a hole",
        put={"obligations/0/left": 1, "teams/B/members/0/stay_until": 40},
    )
    assert member(referee, B, 0).stay_until == 40
    entry = referee.log[-1]
    assert entry["call"] == "ruling"
    assert entry["reason"] == "the second cup had a hole"
    referee.ruling(26, "drop it", put={"obligations": []})
    assert not referee.gated
    assert Referee.replay(referee.log) == referee


def test_a_ruling_takes_back_a_call_and_the_log_keeps_it() -> None:
    referee = running()
    length = len(referee.log)
    referee.end(30, B)
    referee.ruling(33, "the cup was not empty", back_to=length)
    front = referee.state.front
    assert front is not None
    assert front.started == 0
    assert referee.now == 33
    assert [entry["call"] for entry in referee.log[-2:]] == ["end", "ruling"]
    referee.end(40, B)
    assert member(referee, B, 0).stay_until == 340
    assert Referee.replay(referee.log) == referee


def test_named_rulings() -> None:
    referee = running()
    referee.ruling(5, "the cup leaked", do="stop_clock", seat=B)
    front = referee.state.front
    assert front is not None
    assert (front.started, front.ready) == (None, 1)
    referee.start(100, B)
    referee.end(110, B)
    referee.ruling(111, "let off", do="drop", seat="blue")
    assert not referee.gated
    referee.ruling(112, "fighting", do="member_out", seat=B, member=0)
    assert referee.state.undecided() == [B]
    referee.ruling(113, "it was the other one", do="member_in", seat=B, member=0)
    assert not referee.gated
    assert referee.status(B) == "duo"
    referee.ruling(114, "all of them", do="team_out", seat=B)
    assert referee.status(B) == "out"
    referee.ruling(115, "mercy", do="team_in", seat=B)
    assert referee.status(B) == "duo"
    assert referee.state.teams[B].owed == 2
    assert set(RULINGS) == {
        *("cup_drunk", "stop_clock", "drop", "member_out", "member_in", "team_out", "team_in")
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"reason": ""}, "needs a reason"),
        ({"do": "dance", "seat": B}, "unknown ruling"),
        ({"do": "team_out"}, "must name a team"),
        ({"do": "member_out", "seat": B}, "must name a member"),
        ({"do": "member_in", "seat": B, "member": 0}, "is not out"),
        ({"do": "team_in", "seat": B}, "is not out"),
        ({"do": "cup_drunk", "seat": R}, "drinking no cup"),
        ({"do": "drop", "seat": R}, "owes nothing"),
        ({"put": {"now": 0}}, "cannot set the time"),
        ({"put": {"teams/X/home": 1}}, "nothing is at 'teams/X/home'"),
        ({"put": {"obligations/7/left": 1}}, "nothing is at"),
        ({"put": {"obligations/0/left": 9}}, "left must lie in 1..2"),
        ({"put": {"obligations/0/cause": "fun"}}, "cause must be one of"),
        ({"put": {"teams/B/members/0/drink": "wine"}}, "drink"),
        ({"put": {"teams/B/members/0": {"name": "x"}}}, "cannot be"),
        ({"put": {"teams/B/home": 2.5}}, "count"),
        ({"put": {"places": ["R", "R"]}}, "places"),
        ({"put": {"": 1}}, "a path is"),
        ({"put": 7}, "a mapping"),
        ({"put": {"teams/B/home": {1}}}, "not JSON"),
        ({"back_to": 0}, "back_to must lie in"),
        ({"back_to": 99}, "back_to must lie in"),
        ({"back_to": 1.0}, "back_to must lie in"),
        ({"position": 3}, "a position is a text"),
    ],
)
def test_rulings_that_cannot_be(words: dict[str, Any], message: str) -> None:
    referee = running()
    before = referee.to_json()
    with pytest.raises(RulingError, match=message):
        referee.ruling(9, **{"reason": "why not", **words})
    assert referee.to_json() == before


def test_rulings_reach_a_team_that_is_out() -> None:
    referee = out()
    refuses(referee, RulingError, "ruling", lambda: referee.ruling(30, "x", do="drop", seat=B))
    referee.ruling(30, "they may come back", do="team_in", seat=B)
    referee.throw(31, B)


# ----------------------------------------------------------------- copies, JSON, snapshots, replay


def a_long_match() -> Referee:
    referee = hit(3)
    drinks(referee, 0, 20)
    referee.vomit(25, B, A_MEMBER)
    referee.go_on(26, B)
    drinks(referee, 30, 50, member=OTHER)
    referee.ruling(55, "enough", do="drop", seat=B)
    referee.move(60, Y, [("entry", Y, 1)], text="enter", die=6)
    referee.open(61, Y, 0)
    return referee


def test_snapshot_restore_copy_pickle_and_json() -> None:
    referee = a_long_match()
    snapshot = json.loads(json.dumps(referee.snapshot()))
    for other in (
        Referee.from_snapshot(snapshot),
        Referee.from_json(referee.to_json()),
        Referee.replay(referee.log),
        referee.copy(),
        copy.deepcopy(referee),
        pickle.loads(pickle.dumps(referee)),
    ):
        assert other == referee
        other.tick(99)
        assert other != referee
    later = referee.copy()
    later.tick(500)
    later.restore(snapshot)
    assert later == referee


def test_what_is_handed_out_cannot_change_the_ledger() -> None:
    referee = a_long_match()
    before = referee.to_json()
    referee.state.teams[B].home = 3
    referee.log[1]["t"] = 7
    referee.snapshot()["state"]["now"] = 0
    referee.view(100).obligations.clear()
    assert referee.to_json() == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda log: log.clear(), "begins with a match"),
        (lambda log: log[0].update(format="other"), "begins with a match"),
        (lambda log: log[0].update(t=5), "entry 1"),
        (lambda log: log[0]["state"]["teams"]["R"]["members"].pop(), "exactly two members"),
        (lambda log: log[0]["state"].pop("now"), "missing 'now'"),
        (lambda log: log[0]["state"].update(more=1), "unknown keys"),
        (lambda log: log[0].update(state=None), "cannot read the ledger"),
        (lambda log: log.pop(2), "entry 3"),
        (lambda log: log[3].update(t=-1), "entry 4"),
        (lambda log: log[3].update(call=["pour"]), "entry 4: unknown call"),
        (lambda log: log[3].update(kind="pour"), "entry 4: pour: unknown argument"),
        (lambda log: log[1]["then"].clear(), "entry 2: led to"),
        (lambda log: log.append(7), "has a time and a call"),
    ],
)
def test_a_damaged_log_is_refused(damage: Callable[[Any], Any], message: str) -> None:
    log = list(a_long_match().log)
    damage(log)
    with pytest.raises(LedgerFormatError, match=message):
        Referee.replay(log)


def test_a_damaged_snapshot_is_refused_and_changes_nothing() -> None:
    referee = a_long_match()
    for damage in ({"format": "x"}, {"more": 1}, {"state": {}}):
        refuses(referee, LedgerFormatError, "format", referee.restore, referee.snapshot() | damage)
    for text in ("", "[]", "{", "[" * 100_000):
        refuses(referee, LedgerFormatError, "format", referee.from_json, text)


def test_waiting_for_says_what_is_owed() -> None:
    referee = hit(2)
    assert referee.waiting_for() == ["blue owes 2 cups (hit): choose who drinks"]
    served(referee, 0)
    assert referee.waiting_for() == ["blue owes 2 cups (hit) by Bo: the referee gives the start"]
    with pytest.raises(GatedError, match=r"no throw yet: blue owes 2 cups \(hit\) by Bo"):
        referee.throw(0, R)
    referee.unable(1, B, "Bo")
    assert referee.waiting_for()[0] == (
        "blue: Bo is out (unable); Ida must say whether to go on alone"
    )


def test_a_listener_hears_every_call_and_may_refuse_it() -> None:
    referee, heard = Referee(), []

    def listen(entry: Any, state: Any, then: Any) -> None:
        if entry["call"] == "unable":
            raise RulingError("ruling", "not here and not now")
        heard.append((entry["call"], state.now, [str(h) for h in then]))

    referee.listener = listen
    referee.move(0, R, [("loss", B, 1)])
    referee.tick(1)
    refuses(referee, RulingError, "ruling", referee.unable, 2, R, 0)
    assert heard == [("move", 0, ["blue: owes 1"]), ("tick", 1, [])]


def test_errors_travel_between_processes() -> None:
    error = GatedError("gated", "no throw yet")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, str(again)) == (GatedError, "gated", "no throw yet")


def test_a_state_says_all_its_faults() -> None:
    state = hit(1).state
    state.now = -1
    state.next_number = 0
    assert len(state_faults(state)) == 2
