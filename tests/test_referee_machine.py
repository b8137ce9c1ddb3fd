"""The referee against the slow ledger in ``slow_referee.py``: random matches, and hypothesis."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from slow_referee import CUP, SlowReferee

from kimble_env.ledger import DRINKS, LedgerError, State, state_faults
from kimble_env.referee import Referee

WAITS = (0, 0, 0, 0, 1, 1, 1, 2, 5, 9, 29, 30, 31, 44, 45, 46, 47, 299, 300, 301)
WITH_MEMBER = ("open", "drinker", "pour", "unable", "vomit", "leave", "back")
CALLS = (
    *WITH_MEMBER,
    *("table", "start", "end", "take_break", "end_break", "go_on", "decline", "throw", "tick"),
)
WEIGHTS = tuple(0.3 if call in ("unable", "vomit", "decline", "tick") else 1 for call in CALLS)
RULINGS = ("member_out", "team_out", "cup_drunk", "stop_clock", "drop")
DUE = {
    "drinker": "drinker",
    "break": "pour",
    "pour": "pour",
    "table": "table",
    "start": "start",
    "drinking": "end",
    "ruling": "cup_drunk",
}
HAPPENINGS = (
    *("owed", "empty", "break", "break_over", "done", "late", "member_out", "refill", "redrink"),
    *("team_out", "placed", "won"),
)
CODES = (
    *("gated", "match_over", "team_out", "wrong_team", "member_out", "wrong_member", "away"),
    *("no_drinker", "drinker_named", "drinker_changed", "wrong_drink", "vichy_early"),
    *("too_many_open", "all_poured", "not_poured", "not_on_table", "clock_running"),
    *("clock_stopped", "break_single", "break_after_last", "break_drinking", "break_first"),
    *("no_break", "leaving_early", "leaving_owing", "at_the_table", "undecided"),
    *("nothing_to_decide", "ruling_needed", "ruling"),
)


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


class TwoLedgers:
    """Each call goes to both; they must agree on whether it is legal, why not, and what follows."""

    def __init__(
        self, drinks: list[str], late: str, win_at: str, places: bool, pieces: int
    ) -> None:
        of_seat = {seat: (drinks[2 * seat], drinks[2 * seat + 1]) for seat in range(4)}
        agreed = {"pieces": pieces, "late": late, "win_at": win_at, "places": places}
        self.slow = SlowReferee(of_seat, **agreed)
        options = f"late={late},pieces={pieces},play_for_places={'yes' if places else 'no'}"
        self.fast = Referee(of_seat, rules=f"norske[{options},win_at={win_at}]")
        self.world = self.slow.world(0)
        self.seen: Counter[str] = Counter()

    def both(self, wait: int, name: str, **words: Any) -> bool:
        """Make a call on both; return whether it was legal."""
        t = self.fast.now + wait
        world = self.slow.world(t)
        against = world.objections(name, words)
        before, length = self.fast.snapshot(), len(self.fast.log)
        try:
            if name in RULINGS:
                then = self.fast.ruling(t, "as the rules test wants it", do=name, **words)
            else:
                then = self.fast.call(name, t, **words)
        except LedgerError as error:
            refused: LedgerError | None = error
        else:
            refused = None
        if refused is not None:
            assert refused.code in against, f"{name} {words} at {t}: {refused!r}, not {against}"
            assert str(refused)
            assert self.fast.snapshot() == before, "a refused call changed something"
            self.seen[refused.code] += 1
            return False
        assert not against, f"{name} {words} at {t} is legal, but {against}"
        assert len(self.fast.log) == length + 1
        assert self.fast.log[:length] == tuple(before["log"]), "the log is not append-only"
        self.slow.do(t, name, **words)
        getattr(world, name)(**words)
        world.look_for_winners()
        self.world = world
        self.seen.update([name, *(happening.kind for happening in then)])
        self.agree()
        return True

    def due(self, wait: int, member: int) -> None:
        """Do what is due next, so that cups also get empty and pieces come home."""
        world = self.world
        asked, first = next(iter(world.open_question), None), world.first()
        if asked is not None:
            self.both(wait, "go_on" if wait != 31 else "decline", seat=asked)
        elif first is not None:
            phase = world.phase(first)
            if phase == "drinking" and wait > CUP:
                wait = CUP
            by = {"member": member if phase == "drinker" else first["by"]}
            words = by if phase in ("drinker", "break", "pour") else {}
            self.both(wait, DUE[phase], seat=first["seat"], **words)

    def board(self, wait: int, seat: int, kind: str, whose: int, pieces: int) -> None:
        whose = whose if kind == "loss" else seat
        events = [(kind, whose, min(pieces, self.fast.settings.pieces))]
        self.both(wait, "move", seat=seat, events=events)

    def any_call(self, wait: int, name: str, seat: int, member: int, drink: str | None) -> None:
        words: dict[str, Any] = {} if name == "tick" else {"seat": seat}
        if name in WITH_MEMBER:
            words["member"] = member
        if name == "decline" and wait:
            name = "go_on"  # most go on, or the matches would soon be over
        if name == "pour" and drink is not None:
            words["drink"] = drink
        self.both(wait, name, **words)

    def take_back(self, wait: int, calls: int) -> None:
        entries = max(1, len(self.fast.log) - calls)
        t = self.fast.now + wait
        self.fast.ruling(t, "that was a mistake", back_to=entries)
        self.slow.go_back(t, entries)
        self.world = self.slow.world(t)
        self.agree()

    def time_runs_backwards(self, back: int) -> None:
        t = self.fast.now - back
        with pytest.raises(LedgerError) as caught:
            self.fast.tick(t)
        assert caught.value.code == ("time_backwards" if t >= 0 else "time")

    def look_ahead(self, wait: int) -> None:
        t = self.fast.now + wait
        before = self.fast.snapshot()
        ahead = self.slow.facts(t)
        assert facts(self.fast.view(t)) == ahead
        change = self.fast.next_change()
        if change is None or t < change:
            assert ahead["queue"] == facts(self.fast.state)["queue"]
        assert self.fast.snapshot() == before

    def agree(self) -> None:
        state = self.fast.state
        assert facts(state) == self.world.facts()
        for seat, team in state.teams.items():  # nothing owed is ever lost
            assert team.owed == team.drunk + team.dropped + state.left(seat)
            assert team.drunk == sum(m.drunk for m in team.members)
        assert state_faults(state) == []

    def finish(self) -> None:
        assert self.slow.facts(self.fast.now) == facts(self.fast.state)
        assert Referee.replay(self.fast.log) == self.fast
        assert Referee.from_json(self.fast.to_json()) == self.fast
        assert self.fast.copy() == self.fast


def noise(ledgers: TwoLedgers, random: Random) -> None:
    """Some call at random, legal or not."""
    wait, seat, member = random.choice(WAITS), random.randrange(4), random.randrange(2)
    first = ledgers.world.first()
    if first is not None and random.random() < 0.7:
        seat = first["seat"]
    which = random.randrange(16)
    if which == 0:
        ledgers.take_back(wait, random.randrange(4))
    elif which == 1:
        ledgers.time_runs_backwards(random.randrange(1, 50))
    elif which == 2:
        ledgers.look_ahead(wait)
    elif which == 3:
        verb = random.choices(RULINGS, (1, 1, 3, 3, 3))[0]
        ledgers.both(wait, verb, seat=seat, **({"member": member} if verb == "member_out" else {}))
    elif which == 4:
        kind = random.choice(("entry", "loss", "arrival"))
        ledgers.board(wait, seat, kind, random.randrange(4), random.randrange(1, 5))
    else:
        drink = random.choice((None, *DRINKS))
        ledgers.any_call(wait, random.choices(CALLS, WEIGHTS)[0], seat, member, drink)


def just_in_time(ledgers: TwoLedgers, random: Random) -> None:
    """Somebody vomits or leaves around the end of the 300 s after his last cup."""
    ends = ledgers.world.facts()["teams"]
    seats = [seat for seat, team in ends.items() if max(team["stay_until"])]
    if seats:
        seat, member = random.choice(seats), random.randrange(2)
        t = ends[seat]["stay_until"][member] + random.choice((-1, 0, 1))
        call = random.choice(("vomit", "leave"))
        ledgers.any_call(max(0, t - ledgers.fast.now), call, seat, member, None)


def step(ledgers: TwoLedgers, random: Random) -> None:
    """One step of a match in which most people do what is due."""
    kind = random.random()
    first = ledgers.world.first()
    if kind < 0.4:
        noise(ledgers, random)
    elif kind < 0.46 and first is not None and first["by"] is not None:
        failing = random.choice(("vomit", "vomit", "unable", "leave", "open", "end_break"))
        member = random.choice((first["by"], 1 - first["by"]))
        ledgers.any_call(random.choice(WAITS), failing, first["seat"], member, None)
    elif kind < 0.5:
        just_in_time(ledgers, random)
    elif ledgers.world.gated():
        ledgers.due(random.choice(WAITS), random.randrange(2))
    else:
        kinds = ("entry", "loss", "loss", "loss", "arrival")
        seat, whose = random.randrange(4), random.randrange(4)
        pieces = random.choice((1, 1, 2, 3))
        ledgers.board(random.choice(WAITS), seat, random.choice(kinds), whose, pieces)


def some_match(random: Random) -> TwoLedgers:
    return TwoLedgers(
        random.choices(DRINKS, k=8),
        random.choice(("out", "out", "no_break", "referee")),
        random.choice(("drunk", "drunk", "home")),
        random.random() < 0.3,
        random.randrange(2, 5),
    )


def play_matches(seed: int, matches: int, steps: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(matches):
        random = Random(1000 * seed + number)
        ledgers = some_match(random)
        for _ in range(steps):
            step(ledgers, random)
        ledgers.finish()
        seen.update(ledgers.seen)
    return seen


def test_random_matches_agree_and_meet_everything() -> None:
    seen = play_matches(seed=7, matches=40, steps=70)
    missing = [name for name in (*CALLS, *RULINGS, *HAPPENINGS, *CODES) if not seen[name]]
    assert not missing, f"the matches never met {missing}; they met {seen}"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_many_random_matches_agree(seed: int) -> None:
    play_matches(seed=100 + seed, matches=300, steps=100)


class Machine(RuleBasedStateMachine):
    """The same under hypothesis, which looks for the shortest way to a disagreement."""

    @initialize(
        drinks=st.lists(st.sampled_from(DRINKS), min_size=8, max_size=8),
        late=st.sampled_from(["out", "no_break", "referee"]),
        win_at=st.sampled_from(["drunk", "home"]),
        places=st.booleans(),
        pieces=st.integers(1, 4),
    )
    def begin(self, **agreed: Any) -> None:
        self.ledgers = TwoLedgers(**agreed)

    @rule(random=st.randoms(use_true_random=False))
    def anything(self, random: Random) -> None:
        noise(self.ledgers, random)

    @rule(wait=st.sampled_from(WAITS), member=st.integers(0, 1))
    def what_is_due(self, wait: int, member: int) -> None:
        self.ledgers.due(wait, member)

    @rule(
        wait=st.sampled_from(WAITS),
        seat=st.integers(0, 3),
        kind=st.sampled_from(["loss", "arrival", "entry"]),
        whose=st.integers(0, 3),
        pieces=st.integers(1, 3),
    )
    def move(self, wait: int, seat: int, kind: str, whose: int, pieces: int) -> None:
        self.ledgers.board(wait, seat, kind, whose, pieces)

    def teardown(self) -> None:
        if hasattr(self, "ledgers"):
            self.ledgers.finish()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
