"""The referee against the slow ledger in ``slow_referee.py``, driven together by hypothesis."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from slow_referee import SlowReferee, World

from kimble_env.ledger import DRINKS, LedgerError, State, state_faults
from kimble_env.referee import Referee

SEATS = st.integers(0, 3)
MEMBERS = st.integers(0, 1)
WAITS = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 5, 29, 30, 31, 44, 45, 46, 47, 100, 299, 300, 301])
WITH_MEMBER = ("open", "drinker", "pour", "unable", "vomit", "leave", "back")
WITH_SEAT = ("table", "start", "end", "take_break", "end_break", "go_on", "decline", "throw")
RULINGS = ("member_out", "team_out", "cup_drunk", "stop_clock", "drop")


def facts(state: State) -> dict[str, Any]:
    """What ``World.facts`` says, from the package's ledger."""
    teams = {}
    for seat, team in state.teams.items():
        teams[seat] = {
            "status": team.status,
            "playing": [m.playing for m in team.members],
            "away": [m.away for m in team.members],
            "stay_until": [m.stay_until for m in team.members],
            "opened": [m.opened for m in team.members],
            "drunk": [m.drunk for m in team.members],
            "owed": team.owed,
            "dropped": team.dropped,
            "left": state.left(seat),
            "home": team.home,
            "undecided": team.decision is not None,
        }
    queue = [
        (ob.seat, ob.cause, ob.cups, ob.left, ob.drinker, state.phase(ob))
        for ob in state.obligations
    ]
    return {
        "teams": teams,
        "queue": queue,
        "gated": state.gated,
        "places": state.places,
        "winner": state.winner,
        "over": state.over,
    }


class TwoLedgers(RuleBasedStateMachine):
    """Each call goes to both; they must agree on whether it is legal, why not, and what follows."""

    @initialize(
        drinks=st.lists(st.sampled_from(DRINKS), min_size=8, max_size=8),
        late=st.sampled_from(["out", "out", "no_break", "referee"]),
        win_at=st.sampled_from(["drunk", "drunk", "home"]),
        places=st.booleans(),
        pieces=st.integers(1, 4),
    )
    def begin(self, drinks: list[str], late: str, win_at: str, places: bool, pieces: int) -> None:
        of_seat = {seat: (drinks[2 * seat], drinks[2 * seat + 1]) for seat in range(4)}
        self.slow = SlowReferee(
            of_seat, pieces=pieces, late=late, win_at=win_at, places=places
        )
        options = f"late={late},pieces={pieces},play_for_places={'yes' if places else 'no'}"
        self.fast = Referee(of_seat, rules=f"norske[{options},win_at={win_at}]")
        self.world: World | None = None
        self.cups_owed = 0

    def both(self, wait: int, name: str, **words: Any) -> bool:
        """Make a call on both; return whether it was legal."""
        t = self.fast.now + wait
        world = self.slow.world(t)
        against = world.objections(name, words)
        before, length = self.fast.snapshot(), len(self.fast.log)
        try:
            if name in RULINGS:
                self.fast.ruling(t, "as the rules test wants it", do=name, **words)
            else:
                self.fast.call(name, t, **words)
        except LedgerError as error:
            assert error.code in against, f"{name} {words} at {t}: {error.code}, not {against}"
            assert str(error)
            assert self.fast.snapshot() == before, "a refused call changed something"
            return False
        assert not against, f"{name} {words} at {t} is legal, but {against}"
        assert len(self.fast.log) == length + 1
        assert self.fast.log[:length] == tuple(before["log"]), "the log is not append-only"
        self.slow.do(t, name, **words)
        getattr(world, name)(**words)
        world.look_for_winners()
        self.world = world
        return True

    @rule(wait=WAITS, seat=SEATS, member=MEMBERS, name=st.sampled_from(WITH_MEMBER))
    def call_member(self, wait: int, seat: int, member: int, name: str) -> None:
        self.both(wait, name, seat=seat, member=member)

    @rule(wait=WAITS, seat=SEATS, name=st.sampled_from(WITH_SEAT))
    def call_team(self, wait: int, seat: int, name: str) -> None:
        self.both(wait, name, seat=seat)

    @rule(wait=WAITS, seat=SEATS, drink=st.sampled_from(DRINKS), member=MEMBERS)
    def pour_a_drink(self, wait: int, seat: int, drink: str, member: int) -> None:
        self.both(wait, "pour", seat=seat, member=member, drink=drink)

    @rule(
        wait=WAITS,
        seat=SEATS,
        kind=st.sampled_from(["entry", "loss", "loss", "arrival", "arrival"]),
        whose=SEATS,
        pieces=st.integers(1, 4),
    )
    def move(self, wait: int, seat: int, kind: str, whose: int, pieces: int) -> None:
        whose = whose if kind == "loss" else seat
        pieces = min(pieces, self.fast.settings.pieces)
        self.both(wait, "move", seat=seat, events=[(kind, whose, pieces)])

    @rule(wait=WAITS)
    def tick(self, wait: int) -> None:
        self.both(wait, "tick")

    @rule(waits=st.lists(WAITS, min_size=4, max_size=4), member=MEMBERS, stop=st.integers(1, 8))
    def drink(self, waits: list[int], member: int, stop: int) -> None:
        """Do what is due next, so that cups also get empty."""
        for wait in (*waits, *waits)[:stop]:
            world = self.slow.world(self.fast.now)
            asked = next(iter(world.open_question), None)
            first = world.first()
            if asked is not None:
                self.both(wait, "decline" if wait == 31 else "go_on", seat=asked)
            elif first is not None:
                seat, by = first["seat"], first["by"]
                due = {
                    "drinker": ("drinker", {"member": member}),
                    "break": ("pour", {"member": by}),
                    "pour": ("pour", {"member": by}),
                    "table": ("table", {}),
                    "start": ("start", {}),
                    "drinking": ("end", {}),
                    "ruling": ("cup_drunk", {}),
                }
                name, words = due[world.phase(first)]
                self.both(wait, name, seat=seat, **words)

    @rule(wait=WAITS, seat=SEATS, member=MEMBERS, verb=st.sampled_from(RULINGS))
    def ruling(self, wait: int, seat: int, member: int, verb: str) -> None:
        words = {"member": member} if verb == "member_out" else {}
        self.both(wait, verb, seat=seat, **words)

    @rule(wait=WAITS, share=st.floats(0.5, 1))
    def take_back(self, wait: int, share: float) -> None:
        entries = max(1, round(share * len(self.fast.log)))
        t = self.fast.now + wait
        self.fast.ruling(t, "that was a mistake", back_to=entries)
        self.slow.go_back(t, entries)
        self.world = self.slow.world(t)

    @rule(back=st.integers(1, 50))
    def time_runs_backwards(self, back: int) -> None:
        t = self.fast.now - back
        with pytest.raises(LedgerError) as caught:
            self.fast.tick(t)
        assert caught.value.code == ("time_backwards" if t >= 0 else "time")

    @rule(wait=WAITS)
    def look_ahead(self, wait: int) -> None:
        t = self.fast.now + wait
        before = self.fast.snapshot()
        assert facts(self.fast.view(t)) == self.slow.facts(t)
        change = self.fast.next_change()
        if change is None or t < change:
            assert facts(self.fast.view(t))["queue"] == facts(self.fast.state)["queue"]
        assert self.fast.snapshot() == before

    @invariant()
    def agree(self) -> None:
        if getattr(self, "world", None) is not None:
            assert facts(self.fast.state) == self.world.facts()

    @invariant()
    def nothing_owed_is_lost(self) -> None:
        if not hasattr(self, "fast"):
            return
        state = self.fast.state
        for seat, team in state.teams.items():
            assert team.owed == team.drunk + team.dropped + state.left(seat)
            assert team.drunk == sum(m.drunk for m in team.members)
        assert state_faults(state) == []

    def teardown(self) -> None:
        if not hasattr(self, "fast"):
            return
        assert self.slow.facts(self.fast.now) == facts(self.fast.state)
        again = Referee.replay(self.fast.log)
        assert again == self.fast
        assert Referee.from_json(self.fast.to_json()) == self.fast
        assert self.fast.copy() == self.fast


TestTwoLedgers = TwoLedgers.TestCase
TestTwoLedgers.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestTwoLedgers = pytest.mark.filterwarnings("default::hypothesis.errors.HypothesisWarning")(
    TestTwoLedgers
)


@pytest.mark.long
def test_two_ledgers_for_long() -> None:
    class Long(TwoLedgers.TestCase):
        settings = settings(max_examples=1500, stateful_step_count=80, deadline=None)

    Long().runTest()
