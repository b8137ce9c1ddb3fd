"""The referee's ledger a second time: slow, plain and obvious, written from the rule texts alone.

It keeps nothing but the list of what was called. Every question is answered by living through the
whole match again, second by second, with every cup an object of its own. Shares no code with the
package. The rule numbers stand in the comments.

    slow = SlowReferee({0: ("vichy", "beer"), 1: ("vichy", "vichy")})
    slow.objections(0, "pour", seat=1, member=0)     # {"wrong_team"}
    slow.do(0, "move", seat=0, events=[("loss", 1, 1)])
    slow.facts(10)["gated"]                          # True
"""

from __future__ import annotations

from typing import Any

CUP, BREAK, STAY = 45, 30, 300


class SlowReferee:
    """The list of calls, and nothing else."""

    def __init__(self, drinks: dict[int, tuple[str, str]], **agreed: Any) -> None:
        self.drinks = drinks
        self.agreed = {"pieces": 4, "late": "out", "win_at": "drunk", "places": False, **agreed}
        self.calls: list[tuple[int, str, dict[str, Any]]] = []
        self.past: list[list[tuple[int, str, dict[str, Any]]]] = [[]]  # calls after each log entry
        self.clock = 0

    def world(self, t: int) -> World:
        """Live through the match up to second t."""
        world = World(self.drinks, self.agreed)
        calls = list(self.calls)
        for second in range(t + 1):
            world.begin_second(second)
            while calls and calls[0][0] == second:
                _, name, words = calls.pop(0)
                getattr(world, name)(**words)
                world.look_for_winners()
        return world

    def objections(self, t: int, name: str, **words: Any) -> set[str]:
        """Every reason to refuse a call; empty for a legal one."""
        if t < self.clock:
            return {"time_backwards"}
        return self.world(t).objections(name, words)

    def do(self, t: int, name: str, **words: Any) -> None:
        """Add a legal call."""
        self.clock = t
        self.calls.append((t, name, words))
        self.past.append(list(self.calls))

    def go_back(self, t: int, entries: int) -> None:
        """The head referee takes back all but so many entries of the log, the header included."""
        self.clock = t
        self.calls = list(self.past[entries - 1])
        self.past.append(list(self.calls))

    def facts(self, t: int) -> dict[str, Any]:
        """All that can be seen at second t."""
        return self.world(t).facts()


class World:
    """The table at one second."""

    def __init__(self, drinks: dict[int, tuple[str, str]], agreed: dict[str, Any]) -> None:
        self.agreed = agreed
        self.second = 0
        self.drinks = drinks
        self.failed: dict[int, list[int]] = {seat: [] for seat in drinks}
        self.out: list[int] = []
        self.places: list[int] = []
        self.away: set[tuple[int, int]] = set()
        self.opened: list[tuple[int, int, str]] = []  # seat, member, "ahead" or "owed"
        self.poured: list[tuple[int, int, bool]] = []  # seat, member, from an opened drink
        self.entries: list[int] = []  # a seat for each piece that entered
        self.home: list[int] = []  # a seat for each piece home
        self.batteries: list[dict[str, Any]] = []  # in the order of drinking
        self.cups: list[dict[str, Any]] = []
        self.open_question: dict[int, dict[str, Any]] = {}  # seat -> what the partner must decide

    # ---- looking at it

    def left(self, battery: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            c for c in self.cups if c["battery"] is battery and c["is"] not in ("empty", "dropped")
        ]

    def at(self, battery: dict[str, Any], where: str) -> list[dict[str, Any]]:
        return [cup for cup in self.left(battery) if cup["is"] == where]

    def queue(self) -> list[dict[str, Any]]:
        return [battery for battery in self.batteries if self.left(battery)]  # L1: first in first

    def first(self) -> dict[str, Any] | None:
        queue = self.queue()
        return queue[0] if queue else None

    def running(self) -> dict[str, Any] | None:
        found = [cup for cup in self.cups if cup["is"] == "running"]
        assert len(found) <= 1, "two clocks run"
        return found[0] if found else None

    def owes(self, seat: int) -> int:
        return sum(len(self.left(b)) for b in self.queue() if b["seat"] == seat)

    def in_play(self, seat: int) -> list[int]:
        return [member for member in (0, 1) if member not in self.failed[seat]]

    def cups_of(self, seat: int, member: int) -> list[dict[str, Any]]:
        """What a member has emptied, oldest first."""
        mine = [
            c for c in self.cups if c["is"] == "empty" and (c["seat"], c["by"]) == (seat, member)
        ]
        return sorted(mine, key=lambda cup: cup["order"])

    def last_round(self, seat: int, member: int) -> list[dict[str, Any]]:
        """The last cup a member emptied, or all cups of that battery (L4)."""
        mine = self.cups_of(seat, member)
        return [cup for cup in mine if cup["battery"] is mine[-1]["battery"]] if mine else []

    def may_leave_at(self, seat: int, member: int) -> int:
        mine = self.cups_of(seat, member)
        return mine[-1]["finished"] + STAY if mine else 0  # L5

    def open_drinks(self, seat: int, member: int) -> int:
        bought = sum(o[:2] == (seat, member) for o in self.opened)
        used = sum(p == (seat, member, True) for p in self.poured)
        return bought - used

    def gated(self) -> bool:
        return bool(self.queue()) or bool(self.open_question)  # L1

    def active(self) -> list[int]:
        return [s for s in self.drinks if s not in self.out and s not in self.places]

    def winner(self) -> int | None:
        if self.places:
            return self.places[0]
        return self.active()[0] if len(self.active()) == 1 else None  # R34

    def over(self) -> bool:
        decided = bool(self.places) and not self.agreed["places"]
        return decided or len(self.active()) <= 1

    def phase(self, battery: dict[str, Any]) -> str:
        if battery is not self.first():
            return "waiting"
        if self.at(battery, "running"):
            return "ruling" if self.waits_for_ruling() else "drinking"
        if battery["seat"] in self.open_question:
            return "partner"
        if battery["by"] is None:
            return "drinker"
        if battery["break"] is not None:
            return "break"
        if self.at(battery, "table"):
            return "start"
        return "table" if self.at(battery, "poured") else "pour"

    def waits_for_ruling(self) -> bool:
        cup = self.running()
        late = cup is not None and self.second - cup["started"] > CUP
        return late and self.agreed["late"] == "referee"

    def facts(self) -> dict[str, Any]:
        teams = {}
        for seat in self.drinks:
            solo = len(self.in_play(seat)) == 1 and seat not in self.open_question
            teams[seat] = {
                "status": "out" if seat in self.out else "solo" if solo else "duo",
                "playing": [member in self.in_play(seat) for member in (0, 1)],
                "away": [(seat, member) in self.away for member in (0, 1)],
                "stay_until": [self.may_leave_at(seat, member) for member in (0, 1)],
                "opened": [self.open_drinks(seat, member) for member in (0, 1)],
                "drunk": [len(self.cups_of(seat, member)) for member in (0, 1)],
                "owed": sum(cup["seat"] == seat for cup in self.cups),
                "dropped": sum(cup["seat"] == seat and cup["is"] == "dropped" for cup in self.cups),
                "left": self.owes(seat),
                "home": self.home.count(seat),
                "undecided": seat in self.open_question,
            }
        queue = [
            (b["seat"], b["cause"], b["size"], len(self.left(b)), b["by"], self.phase(b))
            for b in self.queue()
        ]
        return {
            "teams": teams,
            "queue": queue,
            "gated": self.gated(),
            "places": self.places,
            "winner": self.winner(),
            "over": self.over(),
        }

    # ---- what happens by itself

    def begin_second(self, second: int) -> None:
        self.second = second
        cup = self.running()
        if cup is not None and second == cup["started"] + CUP + 1 and self.agreed["late"] == "out":
            self.fail(cup["seat"], cup["by"], "late")  # L3
            self.look_for_winners()
        for battery in self.batteries:
            if battery["break"] is not None and second == battery["break"] + BREAK:
                battery["break"] = None  # L2

    def look_for_winners(self) -> None:
        for seat in self.drinks:
            if seat in self.out or seat in self.places:
                continue
            if self.home.count(seat) < self.agreed["pieces"]:
                continue
            if self.places and not self.agreed["places"]:
                continue
            again = self.open_question.get(seat, {"again": []})["again"]
            drunk = not self.owes(seat) and not again  # L4: to be drunk again is not drunk
            if drunk or self.agreed["win_at"] == "home":  # L6
                self.places.append(seat)

    # ---- the calls, all legal when they come here

    def move(self, seat: int, events: list[tuple[str, int, int]]) -> None:
        for kind, whose, pieces in events:
            if kind == "entry":
                self.entries += [whose] * pieces
            elif kind == "arrival":
                self.home += [whose] * pieces
                self.new_battery(whose, "home", pieces)
            else:
                self.new_battery(whose, "hit", pieces)

    def throw(self, seat: int) -> None:
        pass

    def tick(self) -> None:
        pass

    def new_battery(self, seat: int, cause: str, cups: int) -> None:
        alone = self.in_play(seat) if len(self.in_play(seat)) == 1 else []
        by = alone[0] if alone and seat not in self.open_question else None
        battery = {"seat": seat, "cause": cause, "size": cups, "by": by, "break": None}
        self.batteries.append(battery)
        self.add_cups(battery, cups)

    def add_cups(self, battery: dict[str, Any], cups: int) -> None:
        for _ in range(cups):
            cup = {"seat": battery["seat"], "battery": battery, "is": "owed", "by": None}
            cup |= {"started": None, "finished": None, "order": None}
            self.cups.append(cup)

    def open(self, seat: int, member: int) -> None:
        why = "owed" if self.needs_to_open(seat, member) else "ahead"
        self.opened.append((seat, member, why))

    def needs_to_open(self, seat: int, member: int) -> bool:
        first = self.first()
        if first is None or first["seat"] != seat or first["by"] != member:
            return False
        if seat in self.open_question or self.waits_for_ruling():
            return False
        return len(self.at(first, "owed")) > self.open_drinks(seat, member)

    def drinker(self, seat: int, member: int) -> None:
        first = self.first()
        assert first is not None
        first["by"] = member

    def pour(self, seat: int, member: int, drink: str | None = None) -> None:
        first = self.first()
        assert first is not None
        self.poured.append((seat, member, self.open_drinks(seat, member) > 0))
        self.at(first, "owed")[0]["is"] = "poured"

    def table(self, seat: int) -> None:
        first = self.first()
        assert first is not None
        self.at(first, "poured")[0]["is"] = "table"

    def start(self, seat: int) -> None:
        first = self.first()
        assert first is not None
        first["break"] = None
        cup = self.at(first, "table")[0]
        cup |= {"is": "running", "started": self.second, "by": first["by"]}

    def end(self, seat: int, earns_break: bool = True) -> None:
        cup = self.running()
        assert cup is not None
        order = sum(other["is"] == "empty" for other in self.cups)
        cup |= {"is": "empty", "finished": self.second, "order": order}
        under = self.second - cup["started"] < CUP  # L2: exactly 45 s earns no break
        if self.left(cup["battery"]) and under and earns_break:
            cup["battery"]["break"] = self.second

    def take_break(self, seat: int) -> None:
        pass

    def end_break(self, seat: int) -> None:
        first = self.first()
        assert first is not None
        first["break"] = None

    def unable(self, seat: int, member: int) -> None:
        self.fail(seat, member, "unable")

    def vomit(self, seat: int, member: int) -> None:
        self.fail(seat, member, "vomit")

    def fail(self, seat: int, member: int, why: str) -> None:
        again: list[dict[str, Any]] = []
        if why == "vomit":
            last = self.last_round(seat, member)
            if last and self.second - last[-1]["finished"] <= STAY:  # L4
                again = last
        self.failed[seat].append(member)
        interrupted = None
        for battery in self.queue():
            if battery["seat"] == seat and battery["by"] == member:
                interrupted = battery
                battery["by"] = battery["break"] = None
                for cup in self.left(battery):  # L3: unfinished cups are filled anew
                    cup |= {"is": "owed", "started": None, "by": None}
        if len(self.failed[seat]) == 2:
            self.leave_game(seat)
        else:
            self.open_question[seat] = {"again": again, "interrupted": interrupted}

    def leave_game(self, seat: int) -> None:
        self.open_question.pop(seat, None)
        for battery in self.queue():
            if battery["seat"] == seat:
                for cup in self.left(battery):
                    cup["is"] = "dropped"
                battery["break"] = None
        self.out.append(seat)

    def decline(self, seat: int) -> None:
        self.leave_game(seat)

    def go_on(self, seat: int) -> None:
        question = self.open_question.pop(seat)
        partner = self.in_play(seat)[0]
        for battery in self.queue():
            if battery["seat"] == seat:
                battery["by"] = partner
        again, interrupted = question["again"], question["interrupted"]
        same = bool(again) and again[0]["battery"] is interrupted
        if interrupted is not None:
            if same:
                self.add_cups(interrupted, len(again))
            interrupted["cause"] = "redrink" if same else "refill"
            interrupted["size"] = len(self.left(interrupted))
        if again and not same:
            self.new_battery(seat, "redrink", len(again))

    def leave(self, seat: int, member: int) -> None:
        self.away.add((seat, member))

    def back(self, seat: int, member: int) -> None:
        self.away.discard((seat, member))

    # ---- rulings with a name (L7)

    def member_out(self, seat: int, member: int) -> None:
        self.fail(seat, member, "ruling")

    def team_out(self, seat: int) -> None:
        self.leave_game(seat)

    def cup_drunk(self, seat: int) -> None:
        self.end(seat, earns_break=False)

    def stop_clock(self, seat: int) -> None:
        cup = self.running()
        assert cup is not None
        cup |= {"is": "table", "started": None, "by": None}

    def drop(self, seat: int) -> None:
        first = self.first()
        assert first is not None
        first["break"] = None
        for cup in self.left(first):
            cup["is"] = "dropped"

    # ---- what speaks against a call (L8)

    def objections(self, name: str, words: dict[str, Any]) -> set[str]:
        seat, member = words.get("seat"), words.get("member")
        if name in ("member_out", "team_out", "cup_drunk", "stop_clock", "drop"):
            return {"ruling"} if self.ruling_is_impossible(name, words) else set()
        if seat in self.out or any(e[1] in self.out for e in words.get("events", ())):
            return {"team_out"}
        if member is not None and member in self.failed[seat]:
            return {"member_out"}
        against = getattr(self, f"against_{name}", lambda **_: set())
        return set(against(**words))

    def ruling_is_impossible(self, name: str, words: dict[str, Any]) -> bool:
        seat, cup, first = words["seat"], self.running(), self.first()
        if seat in self.out:
            return True
        if name in ("cup_drunk", "stop_clock"):
            return cup is None or cup["seat"] != seat
        if name == "drop":
            return first is None or first["seat"] != seat
        return name == "member_out" and words["member"] in self.failed[seat]

    def against_throw(self, seat: int) -> set[str]:
        against = {"gated"} if self.gated() else set()
        if self.over() or seat in self.places:
            against.add("match_over")
        return against

    def against_move(self, seat: int, events: list[tuple[str, int, int]]) -> set[str]:
        against = self.against_throw(seat)
        for kind, whose, pieces in events:
            if kind != "loss" and whose != seat:
                against.add("wrong_team")
            if kind == "arrival" and self.home.count(whose) + pieces > self.agreed["pieces"]:
                against.add("format")
        return against

    def against_drinking(self, seat: int) -> set[str]:
        """What speaks against anything that brings the next cup of this team nearer."""
        first = self.first()
        if first is None or first["seat"] != seat:
            return {"wrong_team"}
        against = {"undecided"} if seat in self.open_question else set()
        if self.waits_for_ruling():
            against.add("ruling_needed")
        return against

    def against_drinker(self, seat: int, member: int) -> set[str]:
        against, first = self.against_drinking(seat), self.first()
        if "wrong_team" not in against and first is not None and first["by"] is not None:
            against.add("drinker_named" if first["by"] == member else "drinker_changed")
        if "wrong_team" not in against and (seat, member) in self.away:
            against.add("away")  # L5: who has left the table drinks nothing there
        return against

    def against_pour(self, seat: int, member: int, drink: str | None = None) -> set[str]:
        against, first = self.against_drinking(seat), self.first()
        if "wrong_team" in against or first is None:
            return against
        if first["by"] is None:
            against.add("no_drinker")
        elif first["by"] != member:
            against.add("wrong_member")
        if (seat, member) in self.away:
            against.add("away")
        if drink is not None and drink != self.drinks[seat][member]:
            against.add("wrong_drink")
        if not self.at(first, "owed"):
            against.add("all_poured")
        return against

    def against_table(self, seat: int) -> set[str]:
        against, first = self.against_drinking(seat), self.first()
        if "wrong_team" in against or first is None:
            return against
        if first["by"] is None:
            against.add("no_drinker")
        if not self.at(first, "poured"):
            against.add("not_poured")
        return against

    def against_start(self, seat: int) -> set[str]:
        against, first = self.against_drinking(seat), self.first()
        if "wrong_team" in against or first is None:
            return against
        if first["by"] is None:
            against.add("no_drinker")
        elif (seat, first["by"]) in self.away:
            against.add("away")
        if self.running() is not None:
            against.add("clock_running")
        if not self.at(first, "table"):
            against.add("not_on_table" if self.at(first, "poured") else "not_poured")
        return against

    def against_end(self, seat: int) -> set[str]:
        first = self.first()
        if first is None or first["seat"] != seat:
            return {"wrong_team"}
        if self.running() is None:
            return {"clock_stopped"}
        return {"ruling_needed"} if self.waits_for_ruling() else set()

    def against_end_break(self, seat: int) -> set[str]:
        first = self.first()
        if first is None or first["seat"] != seat:
            return {"break_after_last"}
        against = set()
        if first["size"] == 1:
            against.add("break_single")
        if len(self.left(first)) == first["size"]:
            against.add("break_first")
        if self.at(first, "running"):
            against.add("break_drinking")
        if first["break"] is None:
            against.add("no_break")
        return against

    against_take_break = against_end_break

    def against_open(self, seat: int, member: int) -> set[str]:
        if self.needs_to_open(seat, member):
            return set()
        if self.drinks[seat][member] == "vichy":
            return {"vichy_early"}
        ahead = sum(o[0] == seat and o[2] == "ahead" for o in self.opened)
        return {"too_many_open"} if ahead >= self.entries.count(seat) else set()

    def against_go_on(self, seat: int) -> set[str]:
        return set() if seat in self.open_question else {"nothing_to_decide"}

    against_decline = against_go_on

    def against_leave(self, seat: int, member: int) -> set[str]:
        against, first = set(), self.first()
        if (seat, member) in self.away:
            against.add("away")
        if first is not None and (first["seat"], first["by"]) == (seat, member):
            against.add("leaving_owing")
        if self.second < self.may_leave_at(seat, member):
            against.add("leaving_early")
        return against

    def against_back(self, seat: int, member: int) -> set[str]:
        return set() if (seat, member) in self.away else {"at_the_table"}
