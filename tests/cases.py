"""The worked cases of the rules, as a table that any implementation can be held against.

A case is a few lines of play. Each line starts at a position text and goes on with throws, moves
and removals, and after each of them it says all there is to say: which moves are legal, the whole
position that follows (pieces, next seat, throws left) and every loss and arrival. A game under
test needs the class method `from_text` and `throw`, `legal_moves`, `play`, `remove`, `to_text` and
`events`, with events as tuples (see `Player`). Position texts after the first of a line leave out
the rule set, which never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

RED, BLUE, YELLOW, GREEN = range(4)

Event = tuple[Any, ...]


class Player(Protocol):
    """What a case asks of a game."""

    def throw(self, die: int) -> None: ...
    def legal_moves(self) -> list[str]: ...
    def play(self, move: str, battle: tuple[int, int] | None) -> None: ...
    def remove(self, seat: int) -> None: ...
    def to_text(self) -> str: ...
    def events(self) -> list[Event]: ...


class Start(Protocol):
    """Makes a player from a position text."""

    def __call__(self, text: str) -> Player: ...


@dataclass(frozen=True)
class Throw:
    """A die is thrown: the moves are these, or there are none and the position is `over`."""

    die: int
    moves: str = ""
    over: str = ""


@dataclass(frozen=True)
class Play:
    """A move is played: the position that follows, the events, the battle dice if any."""

    move: str
    text: str
    events: tuple[Event, ...] = ()
    battle: tuple[int, int] | None = None


@dataclass(frozen=True)
class Remove:
    """R34: a team goes out. `moves` are those of a die that is still to be played."""

    seat: int
    text: str
    moves: str = ""


@dataclass(frozen=True)
class Line:
    """One line of play from one position."""

    start: str
    steps: tuple[Throw | Play | Remove, ...]


@dataclass(frozen=True)
class Case:
    """A worked case. `needs` names the option without which it must fail."""

    name: str
    says: str
    lines: tuple[Line, ...]
    needs: str = ""


# --- writing cases ------------------------------------------------------------------------------


def case(name: str, says: str, *lines: Line | Sequence[Line], needs: str = "") -> Case:
    """A case of lines and of groups of lines."""
    flat: list[Line] = []
    for item in lines:
        flat += [item] if isinstance(item, Line) else item
    return Case(name, says, tuple(flat), needs)


def line(start: str, *steps: Throw | Play | Remove) -> Line:
    return Line(start, steps)


def nothing(start: str, die: int, over: str) -> Line:
    """No legal move: the throw is over at once."""
    return line(start, Throw(die, over=over))


def choices(start: str, die: int, results: Mapping[str, str | tuple[Any, ...]]) -> list[Line]:
    """The legal moves are exactly these; one line plays each of them.

    A result is a position text, or a tuple of a position text and the events of the move.
    """
    lines = []
    for move, result in results.items():
        text, *events = (result,) if isinstance(result, str) else result
        steps = (Throw(die, " ".join(results)), Play(move, text, tuple(events)))
        lines.append(Line(start, steps))
    return lines


def battle(
    start: str, die: int, moves: str, dice: tuple[int, int], text: str, *events: Event
) -> Line:
    """The first of the moves is a battle that ends like this."""
    return line(start, Throw(die, moves), Play(moves.split()[0], text, events, dice))


def idle(*texts: str) -> list[Throw]:
    """A throw of 1 at each of these positions, the last one reached, moves nothing."""
    return [Throw(1, over=text) for text in texts]


def loss(seat: int, count: int, cause: str) -> Event:
    return ("loss", seat, count, cause)


def arrival(seat: int, count: int) -> Event:
    return ("arrival", seat, count)


# --- checking cases -----------------------------------------------------------------------------


def check(item: Case, start: Start, without: str = "") -> None:
    """Play every line of the case; raise AssertionError where the game and the case differ.

    `without` takes one option out of the rule set first.
    """
    for one in item.lines:
        rules, _, board = one.start.partition(" ")
        if without:
            rules = drop_option(rules, without)
        game = start(f"{rules} {board}")
        assert game.to_text() == f"{rules} {board}"
        for step in one.steps:
            _check_step(game, rules, step)


def _check_step(game: Player, rules: str, step: Throw | Play | Remove) -> None:
    events: tuple[Event, ...] = ()
    if isinstance(step, Throw):
        before = game.to_text()
        game.throw(step.die)
        text = f"{rules} {step.over}" if step.over else _with_die(before, step.die)
    elif isinstance(step, Play):
        game.play(step.move, step.battle)
        events = step.events
        text = f"{rules} {step.text}"
    else:
        game.remove(step.seat)
        text = f"{rules} {step.text}"
    moves = "" if isinstance(step, Play) else step.moves
    assert " ".join(game.legal_moves()) == moves, step
    assert game.to_text() == text, step
    assert tuple(game.events()) == events, step


def _with_die(text: str, die: int) -> str:
    """The same position with the die thrown."""
    words = text.split(" ")
    assert words[3] == "-"
    words[3] = str(die)
    return " ".join(words)


def drop_option(rules: str, option: str) -> str:
    """The rule set without one option: 'norske[a=1,b=2]' without 'a=1' is 'norske[b=2]'."""
    name, _, bracket = rules.partition("[")
    kept = [part for part in bracket.removesuffix("]").split(",") if part not in ("", option)]
    return name + ("[" + ",".join(kept) + "]" if kept else "")


# --- Norske -------------------------------------------------------------------------------------

NORSKE = [
    case(
        "norske-01",
        "all waiting: three throws without a six, then blue",
        line(
            "norske R-/B-/Y-/G- R - 3",
            Throw(3, over="R-/B-/Y-/G- R - 2"),
            Throw(5, over="R-/B-/Y-/G- R - 1"),
            Throw(2, over="R-/B-/Y-/G- B - 3"),
        ),
    ),
    case(
        "norske-02",
        "all waiting, a six at once: enter, the other two throws lapse, a new turn of one throw",
        line(
            "norske R-/B-/Y-/G- R - 3",
            Throw(6, "enter"),
            Play("enter", "R0/B-/Y-/G- R - 1"),
            Throw(4, "0-4"),
            Play("0-4", "R4/B-/Y-/G- B - 3"),
        ),
        line(
            "norske R-/B-/Y-/G- R - 3",
            Throw(3, over="R-/B-/Y-/G- R - 2"),
            Throw(3, over="R-/B-/Y-/G- R - 1"),
            Throw(6, "enter"),
            Play("enter", "R0/B-/Y-/G- R - 1"),
        ),
    ),
    case(
        "norske-03",
        "a six: enter or move, no pass, a new turn after either",
        choices(
            "norske R10/B-/Y-/G- R - 1",
            6,
            {"enter": "R0,10/B-/Y-/G- R - 1", "10-16": "R16/B-/Y-/G- R - 1"},
        ),
    ),
    case(
        "norske-04",
        "a six with a piece on the start: enter makes a battery",
        choices(
            "norske R0,12/B-/Y-/G- R - 1",
            6,
            {
                "enter": "R0x2,12/B-/Y-/G- R - 1",
                "0-6": "R6,12/B-/Y-/G- R - 1",
                "12-18": "R0,18/B-/Y-/G- R - 1",
            },
        ),
    ),
    case(
        "norske-05",
        "a battery moves as one and cannot be split",
        choices(
            "norske R0x2,12/B-/Y-/G- R - 1",
            5,
            {"0-5": "R5x2,12/B-/Y-/G- B - 3", "12-17": "R0x2,17/B-/Y-/G- B - 3"},
        ),
    ),
    case(
        "norske-06",
        "a capture",
        choices(
            "norske R3/B1/Y-/G- R - 1",
            5,
            {"3-8": ("R8/B-/Y-/G- B - 3", loss(BLUE, 1, "captured"))},
        ),
    ),
    case(
        "norske-07",
        "a battery is captured whole: one loss of three",
        choices(
            "norske R9/B4x3,20/Y-/G- R - 1",
            2,
            {"9-11": ("R11/B20/Y-/G- B - 1", loss(BLUE, 3, "captured"))},
        ),
    ),
    case(
        "norske-08",
        "no move onto a protected start while there is another move",
        choices("norske R3,20/B0/Y-/G- R - 1", 4, {"20-24": "R3,24/B0/Y-/G- B - 1"}),
    ),
    case(
        "norske-09",
        "forced onto a protected start: the mover is lost; three throws next time",
        line(
            "norske R3/B0/Y-/G- R - 1",
            Throw(4, "3-7"),
            Play("3-7", "R-/B0/Y-/G- B - 1", (loss(RED, 1, "protected"),)),
            Throw(1, "0-1"),
            Play("0-1", "R-/B1/Y-/G- Y - 3"),
            *idle("R-/B1/Y-/G- Y - 2", "R-/B1/Y-/G- Y - 1", "R-/B1/Y-/G- G - 3"),
            *idle("R-/B1/Y-/G- G - 2", "R-/B1/Y-/G- G - 1", "R-/B1/Y-/G- R - 3"),
        ),
    ),
    case(
        "norske-10",
        "entering is the clean move when the other one hits a protected battery",
        choices("norske R1/B0x2/Y-/G- R - 1", 6, {"enter": "R0,1/B0x2/Y-/G- R - 1"}),
    ),
    case(
        "norske-11",
        "a battery forced onto a protected start is lost whole",
        choices(
            "norske R5x2/B0/Y-/G- R - 1",
            2,
            {"5-7": ("R-/B0/Y-/G- B - 1", loss(RED, 2, "protected"))},
        ),
    ),
    case(
        "norske-12",
        "on a start of another colour nobody is protected",
        choices(
            "norske R3/B-/Y-/G14 R - 1",
            4,
            {"3-7": ("R7/B-/Y-/G- B - 3", loss(GREEN, 1, "captured"))},
        ),
    ),
    case(
        "norske-13",
        "entering captures all that stand on the own start",
        choices(
            "norske R-/B-/Y-/G7x2 R - 3",
            6,
            {"enter": ("R0/B-/Y-/G- R - 1", loss(GREEN, 2, "captured"))},
        ),
    ),
    case(
        "norske-14",
        "no move onto an own piece while there is another move",
        choices("norske R10,14/B-/Y-/G- R - 1", 4, {"14-18": "R10,18/B-/Y-/G- B - 3"}),
    ),
    case(
        "norske-15",
        "forced onto an own piece on the stretch: one of them is lost",
        choices(
            "norske R29,31/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31/B-/Y-/G- B - 3", loss(RED, 1, "own_collision"))},
        ),
    ),
    case(
        "norske-16",
        "two bad moves: the team chooses between them",
        choices(
            "norske R8,11/B-/Y0/G- R - 1",
            3,
            {
                "8-11": ("R11/B-/Y0/G- B - 3", loss(RED, 1, "own_collision")),
                "11-14": ("R8/B-/Y0/G- B - 3", loss(RED, 1, "protected")),
            },
        ),
    ),
    case(
        "norske-17",
        "a battery forced onto a single own piece: the smaller is lost",
        choices(
            "norske R29x2,31/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31x2/B-/Y-/G- B - 3", loss(RED, 1, "own_collision"))},
        ),
        choices(
            "norske R29,31x2/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31x2/B-/Y-/G- B - 3", loss(RED, 1, "own_collision"))},
        ),
    ),
    case(
        "norske-17-mover",
        "with own_collision=mover the moving battery is lost",
        choices(
            "norske[own_collision=mover] R29x2,31/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31/B-/Y-/G- B - 3", loss(RED, 2, "own_collision"))},
        ),
        needs="own_collision=mover",
    ),
    case(
        "norske-18",
        "home by exact count, no overshooting",
        choices(
            "norske R5,30/B-/Y-/G- R - 1",
            2,
            {
                "5-7": "R7,30/B-/Y-/G- B - 3",
                "30-H": ("R5,H/B-/Y-/G- B - 3", arrival(RED, 1)),
            },
        ),
        choices("norske R5,30/B-/Y-/G- R - 1", 3, {"5-8": "R8,30/B-/Y-/G- B - 3"}),
    ),
    case(
        "norske-19",
        "a piece on the stretch is in play: one throw, no move, the turn passes",
        nothing("norske R30,Hx2/B-/Y-/G- R - 1", 5, "R30,Hx2/B-/Y-/G- B - 3"),
    ),
    case(
        "norske-20",
        "a six without a move still gives a new throw",
        nothing("norske R30,Hx3/B-/Y-/G- R - 1", 6, "R30,Hx3/B-/Y-/G- R - 1"),
    ),
    case(
        "norske-21",
        "a battery comes home as one arrival, and red wins",
        choices(
            "norske R29x2,Hx2/B-/Y-/G- R - 1",
            3,
            {"29-H": ("RHx4/B-/Y-/G- R * 0", arrival(RED, 2))},
        ),
    ),
    case(
        "norske-22",
        "home with a six and nothing left in play: the new turn has three throws",
        choices(
            "norske R26,H/B-/Y-/G- R - 1",
            6,
            {
                "enter": "R0,26,H/B-/Y-/G- R - 1",
                "26-H": ("RHx2/B-/Y-/G- R - 3", arrival(RED, 1)),
            },
        ),
    ),
    case(
        "norske-23",
        "passing over a battery on its start does nothing",
        choices("norske R5/B0x2/Y-/G- R - 1", 4, {"5-9": "R9/B0x2/Y-/G- B - 1"}),
    ),
    case(
        "norske-24",
        "after the lap red turns off to its stretch, not onto its start",
        choices("norske R27/B21/Y-/G- R - 1", 1, {"27-28": "R28/B21/Y-/G- B - 1"}),
    ),
    case(
        "norske-25",
        "forced with a six: the loss is followed by a new turn of three throws",
        choices(
            "norske R1,Hx3/B0/Y-/G- R - 1",
            6,
            {"1-7": ("RHx3/B0/Y-/G- R - 3", loss(RED, 1, "protected"))},
        ),
    ),
    case(
        "norske-26",
        "a battery captures a battery: the loss counts the captured",
        choices(
            "norske R8x2/B-/Y-/G2,18x2 R - 1",
            3,
            {"8-11": ("R11x2/B-/Y-/G2 B - 3", loss(GREEN, 2, "captured"))},
        ),
    ),
    case(
        "norske-27",
        "a third piece joins the battery; the battery may not move onto an own piece",
        choices(
            "norske R0x2,6/B-/Y-/G- R - 1",
            6,
            {"enter": "R0x3,6/B-/Y-/G- R - 1", "6-12": "R0x2,12/B-/Y-/G- R - 1"},
        ),
    ),
]

# --- Kimble -------------------------------------------------------------------------------------

KIMBLE = [
    case(
        "kimble-01",
        "all waiting, no six: only pass; one throw a turn",
        choices("kimble R-/B-/Y-/G- R - 1", 4, {"pass": "R-/B-/Y-/G- B - 1"}),
    ),
    case(
        "kimble-02",
        "a six: enter or pass, and another throw either way",
        choices(
            "kimble R-/B-/Y-/G- R - 1",
            6,
            {"enter": "R0/B-/Y-/G- R - 1", "pass": "R-/B-/Y-/G- R - 1"},
        ),
    ),
    case(
        "kimble-03",
        "an own piece on the start blocks entering",
        choices(
            "kimble R0/B-/Y-/G- R - 1",
            6,
            {"0-6": "R6/B-/Y-/G- R - 1", "pass": "R0/B-/Y-/G- R - 1"},
        ),
    ),
    case(
        "kimble-04",
        "a capture",
        choices(
            "kimble R3/B1/Y-/G- R - 1",
            5,
            {
                "3-8": ("R8/B-/Y-/G- B - 1", loss(BLUE, 1, "captured")),
                "pass": "R3/B1/Y-/G- B - 1",
            },
        ),
    ),
    case(
        "kimble-05",
        "no field is protected",
        choices(
            "kimble R3/B0/Y-/G- R - 1",
            4,
            {
                "3-7": ("R7/B-/Y-/G- B - 1", loss(BLUE, 1, "captured")),
                "pass": "R3/B0/Y-/G- B - 1",
            },
        ),
    ),
    case(
        "kimble-06",
        "entering captures",
        choices(
            "kimble R20/B-/Y-/G7 R - 1",
            6,
            {
                "enter": ("R0,20/B-/Y-/G- R - 1", loss(GREEN, 1, "captured")),
                "20-26": "R26/B-/Y-/G7 R - 1",
                "pass": "R20/B-/Y-/G7 R - 1",
            },
        ),
    ),
    case(
        "kimble-07",
        "into the slots by exact count",
        choices(
            "kimble R27/B-/Y-/G- R - 1",
            1,
            {"27-28": "R28/B-/Y-/G- B - 1", "pass": "R27/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble R27/B-/Y-/G- R - 1",
            4,
            {"27-31": "R31/B-/Y-/G- B - 1", "pass": "R27/B-/Y-/G- B - 1"},
        ),
        choices("kimble R27/B-/Y-/G- R - 1", 5, {"pass": "R27/B-/Y-/G- B - 1"}),
    ),
    case(
        "kimble-08",
        "a slot holds one piece; own pieces may be passed; pieces move on inside",
        choices("kimble R26,29/B-/Y-/G- R - 1", 3, {"pass": "R26,29/B-/Y-/G- B - 1"}),
        choices(
            "kimble R26,29/B-/Y-/G- R - 1",
            4,
            {"26-30": "R29,30/B-/Y-/G- B - 1", "pass": "R26,29/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble R26,29/B-/Y-/G- R - 1",
            2,
            {
                "26-28": "R28,29/B-/Y-/G- B - 1",
                "29-31": "R26,31/B-/Y-/G- B - 1",
                "pass": "R26,29/B-/Y-/G- B - 1",
            },
        ),
    ),
    case(
        "kimble-09",
        "only pass, and a six still gives another throw",
        choices("kimble R27,29,30,31/B-/Y-/G- R - 1", 6, {"pass": "R27,29,30,31/B-/Y-/G- R - 1"}),
    ),
    case(
        "kimble-10",
        "the last piece goes up and red wins; no extra throw, not even after a six",
        choices(
            "kimble R27,29,30,31/B-/Y-/G- R - 1",
            1,
            {"27-28": "R28,29,30,31/B-/Y-/G- R * 0", "pass": "R27,29,30,31/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble R25,28,29,30/B-/Y-/G- R - 1",
            6,
            {"25-31": "R28,29,30,31/B-/Y-/G- R * 0", "pass": "R25,28,29,30/B-/Y-/G- R - 1"},
        ),
    ),
    case(
        "kimble-11",
        "a six is passed: red throws again",
        line(
            "kimble R10/B-/Y-/G- R - 1",
            Throw(6, "enter 10-16 pass"),
            Play("pass", "R10/B-/Y-/G- R - 1"),
        ),
    ),
    case(
        "kimble-12",
        "two colours: red finished and yellow not is no win; red's turns are skipped",
        line(
            "kimble[two_colours=yes] R27,29,30,31/B15/Y27,29,30,31/G- R - 1",
            Throw(1, "27-28 pass"),
            Play("27-28", "R28,29,30,31/B15/Y27,29,30,31/G- B - 1"),
            Throw(1, "15-16 pass"),
            Play("15-16", "R28,29,30,31/B16/Y27,29,30,31/G- Y - 1"),
            Throw(2, "pass"),
            Play("pass", "R28,29,30,31/B16/Y27,29,30,31/G- G - 1"),
            Throw(2, "pass"),
            Play("pass", "R28,29,30,31/B16/Y27,29,30,31/G- B - 1"),
            Throw(1, "16-17 pass"),
            Play("16-17", "R28,29,30,31/B17/Y27,29,30,31/G- Y - 1"),
            Throw(1, "27-28 pass"),
            Play("27-28", "R28,29,30,31/B17/Y28,29,30,31/G- Y * 0"),
        ),
        needs="two_colours=yes",
    ),
]

# --- Kombat -------------------------------------------------------------------------------------

BOTH = (loss(RED, 1, "battle"), loss(BLUE, 1, "battle"))  # a tie: the attacker's loss first

KOMBAT = [
    case(
        "kombat-01",
        "3:4 in blue's sector is 5:5, both home",
        battle("kombat R3/B1/Y-/G- R - 1", 5, "3-8 pass", (3, 4), "R-/B-/Y-/G- B - 1", *BOTH),
    ),
    case(
        "kombat-02",
        "4:4 is 6:5, red holds the field",
        battle("kombat R3/B1/Y-/G- R - 1", 5, "3-8 pass", (4, 4), "R8/B-/Y-/G- B - 1", BOTH[1]),
    ),
    case(
        "kombat-03",
        "1:5 is 3:6, red goes home, blue stays",
        battle("kombat R3/B1/Y-/G- R - 1", 5, "3-8 pass", (1, 5), "R-/B1/Y-/G- B - 1", BOTH[0]),
    ),
    case(
        "kombat-04",
        "in red's sector red has +3",
        battle(
            "kombat R0/B-/Y-/G9 R - 1",
            2,
            "0-2 pass",
            (1, 3),
            "R2/B-/Y-/G- B - 1",
            loss(GREEN, 1, "battle"),
        ),
        battle(
            "kombat R0/B-/Y-/G9 R - 1",
            2,
            "0-2 pass",
            (1, 4),
            "R-/B-/Y-/G- B - 1",
            loss(RED, 1, "battle"),
            loss(GREEN, 1, "battle"),
        ),
    ),
    case(
        "kombat-05",
        "in a third seat's sector neither has the +1",
        battle("kombat R12/B9/Y-/G- R - 1", 4, "12-16 pass", (2, 4), "R-/B-/Y-/G- B - 1", *BOTH),
        battle("kombat R12/B9 R - 1", 4, "12-16 pass", (2, 4), "R-/B- B - 1", *BOTH),
    ),
    case(
        "kombat-06",
        "entering starts a battle at +3; a tie, and the six gives another throw",
        battle(
            "kombat R-/B-/Y-/G7 R - 1",
            6,
            "enter pass",
            (1, 4),
            "R-/B-/Y-/G- R - 1",
            loss(RED, 1, "battle"),
            loss(GREEN, 1, "battle"),
        ),
    ),
    case(
        "kombat-07",
        "a lost battle on entering: green stays, red throws again",
        battle(
            "kombat R-/B-/Y-/G7 R - 1",
            6,
            "enter pass",
            (1, 6),
            "R-/B-/Y-/G7 R - 1",
            loss(RED, 1, "battle"),
        ),
    ),
    case(
        "kombat-08",
        "a piece on its own start may be battled, or the throw passed",
        line(
            "kombat R3/B0/Y-/G- R - 1",
            Throw(4, "3-7 pass"),
            Play("pass", "R3/B0/Y-/G- B - 1"),
        ),
        battle("kombat R3/B0/Y-/G- R - 1", 4, "3-7 pass", (6, 6), "R7/B-/Y-/G- B - 1", BOTH[1]),
        battle("kombat R3/B0/Y-/G- R - 1", 4, "3-7 pass", (3, 4), "R-/B-/Y-/G- B - 1", *BOTH),
    ),
    case(
        "kombat-09",
        "never onto an own piece",
        choices(
            "kombat R4,8/B-/Y-/G- R - 1",
            4,
            {"8-12": "R4,12/B-/Y-/G- B - 1", "pass": "R4,8/B-/Y-/G- B - 1"},
        ),
    ),
    case(
        "kombat-10",
        "a six in the battle gives no extra throw",
        battle("kombat R5/B1/Y-/G- R - 1", 3, "5-8 pass", (6, 2), "R8/B-/Y-/G- B - 1", BOTH[1]),
    ),
    case(
        "kombat-11",
        "the last field before blue's start is still red's sector",
        battle("kombat R1/B27/Y-/G- R - 1", 5, "1-6 pass", (1, 4), "R-/B-/Y-/G- B - 1", *BOTH),
    ),
    case(
        "kombat-12",
        "pieces move on in the slots, one to a slot",
        choices(
            "kombat R28/B-/Y-/G- R - 1",
            3,
            {"28-31": "R31/B-/Y-/G- B - 1", "pass": "R28/B-/Y-/G- B - 1"},
        ),
        choices("kombat R28,31/B-/Y-/G- R - 1", 3, {"pass": "R28,31/B-/Y-/G- B - 1"}),
    ),
    case(
        "kombat-13",
        "an own piece blocks entering; green is passed unharmed",
        choices(
            "kombat R0,9/B-/Y-/G8 R - 1",
            6,
            {
                "0-6": "R6,9/B-/Y-/G8 R - 1",
                "9-15": "R0,15/B-/Y-/G8 R - 1",
                "pass": "R0,9/B-/Y-/G8 R - 1",
            },
        ),
    ),
]

# --- options ------------------------------------------------------------------------------------

OPTIONS = [
    case(
        "option-max-sixes",
        "R3: the second six in a row is moved and ends the turn",
        line(
            "kimble[max_sixes=2] R10/B-/Y-/G- R - 1",
            Throw(6, "enter 10-16 pass"),
            Play("10-16", "R16/B-/Y-/G- R - 1 sixes=1"),
            Throw(6, "enter 16-22 pass"),
            Play("16-22", "R22/B-/Y-/G- B - 1"),
        ),
        line(
            "kimble[max_sixes=2] R10/B-/Y-/G- R - 1",
            Throw(6, "enter 10-16 pass"),
            Play("pass", "R10/B-/Y-/G- R - 1 sixes=1"),
            Throw(3, "10-13 pass"),
            Play("10-13", "R13/B-/Y-/G- B - 1"),
        ),
        needs="max_sixes=2",
    ),
    case(
        "option-max-sixes-one",
        "R3: with max_sixes=1 a six gives no further throw",
        choices(
            "norske[max_sixes=1] R10/B-/Y-/G- R - 1",
            6,
            {"enter": "R0,10/B-/Y-/G- B - 3", "10-16": "R16/B-/Y-/G- B - 3"},
        ),
        nothing("norske[max_sixes=1] R30,Hx3/B-/Y-/G- R - 1", 6, "R30,Hx3/B-/Y-/G- B - 3"),
        needs="max_sixes=1",
    ),
    case(
        "option-max-sixes-in-a-row",
        "R3, R24: among three throws another number breaks the row of sixes",
        line(
            "norske[max_sixes=2] R1,Hx3/B0/Y-/G- R - 1",
            Throw(6, "1-7"),
            Play("1-7", "RHx3/B0/Y-/G- R - 3 sixes=1", (loss(RED, 1, "protected"),)),
            Throw(2, over="RHx3/B0/Y-/G- R - 2"),
            Throw(6, "enter"),
            Play("enter", "R0,Hx3/B0/Y-/G- R - 1 sixes=1"),
            Throw(6, "0-6"),
            Play("0-6", "R6,Hx3/B0/Y-/G- B - 1"),
        ),
        needs="max_sixes=2",
    ),
    case(
        "option-extra-throw-needs-move-pass",
        "R3: a six that is passed gives no throw, one that moves does",
        choices(
            "kimble[extra_throw_needs_move=yes] R10/B-/Y-/G- R - 1",
            6,
            {
                "enter": "R0,10/B-/Y-/G- R - 1",
                "10-16": "R16/B-/Y-/G- R - 1",
                "pass": "R10/B-/Y-/G- B - 1",
            },
        ),
        needs="extra_throw_needs_move=yes",
    ),
    case(
        "option-extra-throw-needs-move-none",
        "R3: a six without a move gives no throw; a forced loss counts as a move",
        nothing(
            "norske[extra_throw_needs_move=yes] R30,Hx3/B-/Y-/G- R - 1",
            6,
            "R30,Hx3/B-/Y-/G- B - 3",
        ),
        choices(
            "norske[extra_throw_needs_move=yes] R1,Hx3/B0/Y-/G- R - 1",
            6,
            {"1-7": ("RHx3/B0/Y-/G- R - 3", loss(RED, 1, "protected"))},
        ),
        needs="extra_throw_needs_move=yes",
    ),
    case(
        "option-extra-throw-needs-move-three",
        "R3, R23: a six without a move ends the three throws, though it gives no new turn",
        line(
            "norske[extra_throw_needs_move=yes,three_throws_when=none_on_track] "
            "R30,Hx3/B-/Y-/G- R - 3",
            Throw(5, over="R30,Hx3/B-/Y-/G- R - 2"),
            Throw(6, over="R30,Hx3/B-/Y-/G- B - 3"),
        ),
        needs="extra_throw_needs_move=yes",
    ),
    case(
        "option-extra-throw-needs-move-battle",
        "R3: a lost battle counts as a move, a pass does not",
        battle(
            "kombat[extra_throw_needs_move=yes] R-/B-/Y-/G7 R - 1",
            6,
            "enter pass",
            (1, 6),
            "R-/B-/Y-/G7 R - 1",
            loss(RED, 1, "battle"),
        ),
        line(
            "kombat[extra_throw_needs_move=yes] R-/B-/Y-/G7 R - 1",
            Throw(6, "enter pass"),
            Play("pass", "R-/B-/Y-/G7 B - 1"),
        ),
        needs="extra_throw_needs_move=yes",
    ),
    case(
        "option-stretch-block",
        "R15: no own piece on the stretch may be passed, from the track either",
        choices(
            "kimble[stretch_block=yes] R26,29/B-/Y-/G- R - 1",
            4,
            {"pass": "R26,29/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble[stretch_block=yes] R28,29/B-/Y-/G- R - 1",
            2,
            {"29-31": "R28,31/B-/Y-/G- B - 1", "pass": "R28,29/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble[stretch_block=yes] R27,28/B-/Y-/G- R - 1",
            3,
            {"28-31": "R27,31/B-/Y-/G- B - 1", "pass": "R27,28/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble[stretch_block=yes] R20,24/B-/Y-/G- R - 1",
            5,
            {
                "20-25": "R24,25/B-/Y-/G- B - 1",
                "24-29": "R20,29/B-/Y-/G- B - 1",
                "pass": "R20,24/B-/Y-/G- B - 1",
            },
        ),
        needs="stretch_block=yes",
    ),
    case(
        "option-stretch-block-norske",
        "R15: on the way home a piece on the stretch blocks too, pieces home do not",
        choices(
            "norske[stretch_block=yes] R26,29/B-/Y-/G- R - 1",
            6,
            {"enter": "R0,26,29/B-/Y-/G- R - 1"},
        ),
        choices(
            "norske[stretch_block=yes] R26,29/B-/Y-/G- R - 1",
            3,
            {"29-H": ("R26,H/B-/Y-/G- B - 3", arrival(RED, 1))},
        ),
        choices(
            "norske[stretch_block=yes] R29,31/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31/B-/Y-/G- B - 3", loss(RED, 1, "own_collision"))},
        ),
        needs="stretch_block=yes",
    ),
    case(
        "option-play-for-places",
        "R6: play goes on; a finished seat gets no throw after its six and no more turns",
        line(
            "kimble[play_for_places=yes] R25,28,29,30/B27,29,30,31/Y4 R - 1",
            Throw(6, "25-31 pass"),
            Play("25-31", "R28,29,30,31/B27,29,30,31/Y4 B - 1 places=R"),
            Throw(2, "pass"),
            Play("pass", "R28,29,30,31/B27,29,30,31/Y4 Y - 1 places=R"),
            Throw(2, "4-6 pass"),
            Play("4-6", "R28,29,30,31/B27,29,30,31/Y6 B - 1 places=R"),
            Throw(1, "27-28 pass"),
            Play("27-28", "R28,29,30,31/B28,29,30,31/Y6 R * 0 places=RB"),
        ),
        needs="play_for_places=yes",
    ),
    case(
        "option-play-for-places-norske",
        "R6: the last arrival of the second seat ends a game of three",
        line(
            "norske[play_for_places=yes] RHx4/B31,Hx3/Y- B - 1 places=R",
            Throw(1, "31-H"),
            Play("31-H", "RHx4/BHx4/Y- R * 0 places=RB", (arrival(BLUE, 1),)),
        ),
        line(
            "norske[play_for_places=yes] RHx4/B31,Hx3/Y31,Hx3 Y - 1 places=R",
            Throw(1, "31-H"),
            Play("31-H", "RHx4/B31,Hx3/YHx4 R * 0 places=RY", (arrival(YELLOW, 1),)),
        ),
        needs="play_for_places=yes",
    ),
    case(
        "option-three-throws-none-on-track",
        "R23: three throws also while all pieces in play stand on the stretch",
        choices(
            "norske[three_throws_when=none_on_track] R26,30,H/B-/Y-/G- R - 1",
            6,
            {
                "enter": "R0,26,30,H/B-/Y-/G- R - 1",
                "26-H": ("R30,Hx2/B-/Y-/G- R - 3", arrival(RED, 1)),
            },
        ),
        line(
            "norske[three_throws_when=none_on_track] R30,Hx2/B-/Y-/G- R - 3",
            Throw(5, over="R30,Hx2/B-/Y-/G- R - 2"),
            Throw(1, "30-31"),
            Play("30-31", "R31,Hx2/B-/Y-/G- B - 3"),
        ),
        line(
            "norske[three_throws_when=none_on_track] R30,Hx2/B-/Y-/G- R - 3",
            Throw(6, "enter"),
            Play("enter", "R0,30,Hx2/B-/Y-/G- R - 1"),
        ),
        line(
            "norske[three_throws_when=none_on_track] R30,Hx3/B-/Y-/G- R - 3",
            Throw(6, over="R30,Hx3/B-/Y-/G- R - 3"),
            Throw(3, over="R30,Hx3/B-/Y-/G- R - 2"),
        ),
        needs="three_throws_when=none_on_track",
    ),
    case(
        "option-own-collision-stander",
        "R31: the standing unit is lost, however large",
        choices(
            "norske[own_collision=stander] R29,31x2/B-/Y-/G- R - 1",
            2,
            {"29-31": ("R31/B-/Y-/G- B - 3", loss(RED, 2, "own_collision"))},
        ),
        needs="own_collision=stander",
    ),
    case(
        "option-own-collision-smaller-kimble",
        "R31 in Kimble: bad moves only when there is no clean one; equal sizes lose one",
        choices(
            "kimble[own_collision=smaller] R10,14/B-/Y-/G- R - 1",
            4,
            {"14-18": "R10,18/B-/Y-/G- B - 1", "pass": "R10,14/B-/Y-/G- B - 1"},
        ),
        choices(
            "kimble[own_collision=smaller] R29,31/B-/Y-/G- R - 1",
            2,
            {
                "29-31": ("R31/B-/Y-/G- B - 1", loss(RED, 1, "own_collision")),
                "pass": "R29,31/B-/Y-/G- B - 1",
            },
        ),
        needs="own_collision=smaller",
    ),
    case(
        "option-batteries-off",
        "R31: without batteries entering onto an own piece is an own collision",
        choices(
            "norske[batteries=no] R0,12/B-/Y-/G- R - 1",
            6,
            {"0-6": "R6,12/B-/Y-/G- R - 1", "12-18": "R0,18/B-/Y-/G- R - 1"},
        ),
        choices("norske[batteries=no] R0,6/B-/Y-/G- R - 1", 6, {"6-12": "R0,12/B-/Y-/G- R - 1"}),
        needs="batteries=no",
    ),
    case(
        "option-protected-start-kimble",
        "R27, R28, R30 in Kimble: the mover is lost; not legal beside a clean move",
        choices(
            "kimble[protected_start=yes] R3/B0/Y-/G- R - 1",
            4,
            {
                "3-7": ("R-/B0/Y-/G- B - 1", loss(RED, 1, "protected")),
                "pass": "R3/B0/Y-/G- B - 1",
            },
        ),
        choices(
            "kimble[protected_start=yes] R3,20/B0/Y-/G- R - 1",
            4,
            {"20-24": "R3,24/B0/Y-/G- B - 1", "pass": "R3,20/B0/Y-/G- B - 1"},
        ),
        needs="protected_start=yes",
    ),
    case(
        "option-protected-start-off",
        "R26 without R27: a battery on its own start is captured",
        choices(
            "norske[protected_start=no] R3/B0x2/Y-/G- R - 1",
            4,
            {"3-7": ("R7/B-/Y-/G- B - 3", loss(BLUE, 2, "captured"))},
        ),
        needs="protected_start=no",
    ),
    case(
        "option-pass-allowed-norske",
        "R22: pass in addition; a pass costs one of three throws, a six ends them",
        choices(
            "norske[pass_allowed=yes] R3/B0/Y-/G- R - 1",
            4,
            {
                "3-7": ("R-/B0/Y-/G- B - 1", loss(RED, 1, "protected")),
                "pass": "R3/B0/Y-/G- B - 1",
            },
        ),
        line(
            "norske[pass_allowed=yes] R-/B-/Y-/G- R - 3",
            Throw(2, "pass"),
            Play("pass", "R-/B-/Y-/G- R - 2"),
            Throw(6, "enter pass"),
            Play("pass", "R-/B-/Y-/G- R - 3"),
            Throw(6, "enter pass"),
            Play("enter", "R0/B-/Y-/G- R - 1"),
        ),
        needs="pass_allowed=yes",
    ),
    case(
        "option-pass-allowed-off",
        "R12: without passing a throw that has no move is over at once",
        nothing("kimble[pass_allowed=no] R-/B-/Y-/G- R - 1", 4, "R-/B-/Y-/G- B - 1"),
        nothing(
            "kimble[pass_allowed=no] R27,29,30,31/B-/Y-/G- R - 1",
            6,
            "R27,29,30,31/B-/Y-/G- R - 1",
        ),
        choices("kimble[pass_allowed=no] R3/B0/Y-/G- R - 1", 5, {"3-8": "R8/B0/Y-/G- B - 1"}),
        needs="pass_allowed=no",
    ),
    case(
        "option-empty-throws-kimble",
        "R23 in Kimble: three throws with nothing in play",
        line(
            "kimble[empty_throws=3] R-/B5/Y-/G- R - 3",
            Throw(2, "pass"),
            Play("pass", "R-/B5/Y-/G- R - 2"),
            Throw(2, "pass"),
            Play("pass", "R-/B5/Y-/G- R - 1"),
            Throw(2, "pass"),
            Play("pass", "R-/B5/Y-/G- B - 1"),
            Throw(2, "5-7 pass"),
            Play("pass", "R-/B5/Y-/G- Y - 3"),
        ),
        needs="empty_throws=3",
    ),
    case(
        "option-empty-throws-norske",
        "R23 off: one throw with nothing in play",
        nothing("norske[empty_throws=1] R-/B-/Y-/G- R - 1", 4, "R-/B-/Y-/G- B - 1"),
        needs="empty_throws=1",
    ),
    case(
        "option-home-kimble",
        "R32 in Kimble: a home behind the slots takes any number of pieces",
        choices(
            "kimble[home=yes] R29,31,H/B-/Y-/G- R - 1",
            3,
            {
                "29-H": ("R31,Hx2/B-/Y-/G- B - 1", arrival(RED, 1)),
                "pass": "R29,31,H/B-/Y-/G- B - 1",
            },
        ),
        choices(
            "kimble[home=yes] R31,Hx3/B-/Y-/G- R - 1",
            1,
            {"31-H": ("RHx4/B-/Y-/G- R * 0", arrival(RED, 1)), "pass": "R31,Hx3/B-/Y-/G- B - 1"},
        ),
        needs="home=yes",
    ),
    case(
        "option-home-norske",
        "R16 in Norske: without a home all pieces must stand on the stretch",
        choices(
            "norske[home=no] R27,29,30,31/B-/Y-/G- R - 1",
            1,
            {"27-28": "R28,29,30,31/B-/Y-/G- R * 0"},
        ),
        choices(
            "norske[home=no] R26x2,29x2/B-/Y-/G- R - 1",
            2,
            {
                "26-28": "R28x2,29x2/B-/Y-/G- R * 0",
                "29-31": "R26x2,31x2/B-/Y-/G- B - 3",
            },
        ),
        nothing("norske[home=no] R28,31/B-/Y-/G- R - 1", 5, "R28,31/B-/Y-/G- B - 3"),
        needs="home=no",
    ),
    case(
        "option-max-turns",
        "R9: broken off when the die has passed twice; sixes and three throws are one turn",
        line(
            "norske[max_turns=2] R-/B5/Y-/G- R - 3",
            *idle("R-/B5/Y-/G- R - 2", "R-/B5/Y-/G- R - 1", "R-/B5/Y-/G- B - 1 turn=1"),
            Throw(6, "enter 5-11"),
            Play("5-11", "R-/B11/Y-/G- B - 1 turn=1"),
            Throw(1, "11-12"),
            Play("11-12", "R-/B12/Y-/G- Y - 3 turn=2"),
        ),
        needs="max_turns=2",
    ),
    case(
        "option-two-colours-own",
        "R17: the partner's piece is own, on the track and on the start",
        choices("kimble[two_colours=yes] R10/B-/Y0/G- R - 1", 4, {"pass": "R10/B-/Y0/G- B - 1"}),
        choices("kimble[two_colours=yes] R-/B-/Y14/G- R - 1", 6, {"pass": "R-/B-/Y14/G- R - 1"}),
        choices("kombat[two_colours=yes] R10/B-/Y0/G- R - 1", 4, {"pass": "R10/B-/Y0/G- B - 1"}),
        choices(
            "kimble[two_colours=yes] R10/B7/Y-/G- R - 1",
            4,
            {
                "10-14": ("R14/B-/Y-/G- B - 1", loss(BLUE, 1, "captured")),
                "pass": "R10/B7/Y-/G- B - 1",
            },
        ),
        needs="two_colours=yes",
    ),
    case(
        "option-two-colours-sector",
        "R17, R18: in the partner's sector the attacker has no +1",
        battle(
            "kombat[two_colours=yes] R-/B22/Y12/G- Y - 1",
            3,
            "12-15 pass",
            (4, 6),
            "R-/B-/Y-/G- G - 1",
            loss(YELLOW, 1, "battle"),
            loss(BLUE, 1, "battle"),
        ),
    ),
    case(
        "option-pieces",
        "R6: with two pieces red wins with two",
        choices(
            "norske[pieces=2] R31,H/B-/Y-/G- R - 1",
            1,
            {"31-H": ("RHx2/B-/Y-/G- R * 0", arrival(RED, 1))},
        ),
        choices("norske[pieces=2] R1,H/B-/Y-/G- R - 1", 6, {"1-7": "R7,H/B-/Y-/G- R - 1"}),
        needs="pieces=2",
    ),
    case(
        "option-board-cross40",
        "the bigger ring: starts every ten fields, stretch from 40, home at 44",
        choices("norske[board=cross40] R39/B30/Y-/G- R - 1", 1, {"39-40": "R40/B30/Y-/G- B - 1"}),
        choices(
            "norske[board=cross40] R6/B0/Y-/G- R - 1",
            4,
            {"6-10": ("R-/B0/Y-/G- B - 1", loss(RED, 1, "protected"))},
        ),
        choices(
            "norske[board=cross40] R38,43/B-/Y-/G- R - 1",
            1,
            {
                "38-39": "R39,43/B-/Y-/G- B - 3",
                "43-H": ("R38,H/B-/Y-/G- B - 3", arrival(RED, 1)),
            },
        ),
        needs="board=cross40",
    ),
    case(
        "option-board-ludo52",
        "red leaves the ring after 50 and never treads on the field before its start",
        choices("norske[board=ludo52] R50/B38/Y-/G- R - 1", 1, {"50-51": "R51/B38/Y-/G- B - 1"}),
        choices(
            "norske[board=ludo52] R48/B37/Y-/G- R - 1",
            2,
            {"48-50": ("R50/B-/Y-/G- B - 3", loss(BLUE, 1, "captured"))},
        ),
        choices(
            "norske[board=ludo52] R50/B-/Y-/G- R - 1",
            6,
            {
                "enter": "R0,50/B-/Y-/G- R - 1",
                "50-H": ("RH/B-/Y-/G- R - 3", arrival(RED, 1)),
            },
        ),
        needs="board=ludo52",
    ),
    case(
        "option-board-ludo52-slots",
        "R16: any four of the five slots; R19: the field before red's start is green's sector",
        choices(
            "kimble[board=ludo52] R50,51,53,55/B-/Y-/G- R - 1",
            2,
            {"50-52": "R51,52,53,55/B-/Y-/G- R * 0", "pass": "R50,51,53,55/B-/Y-/G- B - 1"},
        ),
        battle(
            "kombat[board=ludo52] R-/B-/Y24/G12 Y - 1",
            1,
            "24-25 pass",
            (4, 5),
            "R-/B-/Y-/G- G - 1",
            loss(YELLOW, 1, "battle"),
            loss(GREEN, 1, "battle"),
        ),
        needs="board=ludo52",
    ),
]

# --- a team goes out (R34), fewer seats, a position with its die --------------------------------

OTHERS = [
    case(
        "remove-to-act",
        "R34: die and throws lapse, pieces in play go to home base, pieces home stay",
        line(
            "norske R3,29,H/B0/Y-/G- R - 1",
            Throw(4, "3-7"),
            Remove(RED, "RH/B0/Y-/G- B - 1 out=R"),
        ),
        line("norske R-/B-/Y-/G- R - 2", Remove(RED, "R-/B-/Y-/G- B - 3 out=R")),
    ),
    case(
        "remove-skipped",
        "R34: the turns of a team that is out are skipped",
        line(
            "norske R5/B2/Y-/G- B - 1",
            Remove(YELLOW, "R5/B2/Y-/G- B - 1 out=Y"),
            Throw(1, "2-3"),
            Play("2-3", "R5/B3/Y-/G- G - 3 out=Y"),
            Remove(GREEN, "R5/B3/Y-/G- R - 1 out=YG"),
            Throw(1, "5-6"),
            Play("5-6", "R6/B3/Y-/G- B - 1 out=YG"),
        ),
    ),
    case(
        "remove-die-thrown",
        "R34: a die already thrown by another team is judged on the new position",
        line(
            "norske R3,20/B0/Y-/G- R - 1",
            Throw(4, "20-24"),
            Remove(BLUE, "R3,20/B-/Y-/G- R 4 1 out=B", moves="3-7 20-24"),
            Play("3-7", "R7,20/B-/Y-/G- Y - 3 out=B"),
        ),
    ),
    case(
        "remove-last-wins",
        "R34: the last team left wins",
        line("norske R3/Y5 R - 1", Remove(RED, "R-/Y5 Y * 0 out=R")),
        line(
            "norske R3/B4/Y5 Y - 1",
            Remove(YELLOW, "R3/B4/Y- R - 1 out=Y"),
            Remove(BLUE, "R3/B-/Y- R * 0 out=YB"),
        ),
    ),
    case(
        "remove-places",
        "R34, R6: playing for places a finished team stays first, whoever is left",
        line(
            "norske[play_for_places=yes] RHx4/B5/Y5 B - 1 places=R",
            Remove(BLUE, "RHx4/B-/Y5 R * 0 places=R out=B"),
        ),
        line(
            "norske[play_for_places=yes] R5,Hx3/B5 B - 1",
            Remove(RED, "RHx3/B5 B * 0 out=R"),
        ),
    ),
    case(
        "seats-absent",
        "R5: colours that do not play are passed over; their starts are plain fields",
        line(
            "norske R3/Y2 R - 1",
            Throw(4, "3-7"),
            Play("3-7", "R7/Y2 Y - 1"),
            Throw(5, "2-7"),
            Play("2-7", "R7/Y7 R - 1"),
            Throw(6, "enter 7-13"),
            Play("7-13", "R13/Y7 R - 1"),
            Throw(3, "13-16"),
            Play("13-16", "R16/Y7 Y - 1"),
        ),
        choices(
            "kimble R-/B-/Y- Y - 1",
            5,
            {"pass": "R-/B-/Y- R - 1"},
        ),
    ),
    case(
        "text-with-die",
        "a position text may hold a die that is still to be played",
        line(
            "norske R3/B0/Y-/G- R 4 1",
            Play("3-7", "R-/B0/Y-/G- B - 1", (loss(RED, 1, "protected"),)),
        ),
        line("kimble R10/B-/Y-/G- R 6 1", Play("pass", "R10/B-/Y-/G- R - 1")),
        line("norske R-/B-/Y-/G- R - 1", Throw(2, over="R-/B-/Y-/G- B - 3")),
        line("norske R-/B-/Y-/G- R 6 2", Play("enter", "R0/B-/Y-/G- R - 1")),
    ),
]

CASES: Sequence[Case] = (*NORSKE, *KIMBLE, *KOMBAT, *OPTIONS, *OTHERS)
