"""Perft: how many ways lead on from a position, throw by throw, counted and written down.

As in chess programs, a number per depth pins the rules down: a wrong legal move anywhere in the
tree changes it. One ply is a throw of each face together with every legal move for it (and, for a
move that starts a battle, each of the 36 pairs of battle dice). A finished game has no way on.

The tables are text files beside this one. They are renewed, on purpose and after reading the diff,
with

    python -m tests.perft --write

and ``python -m tests.perft "kombat R3/B1/Y-/G- R - 1" 2`` counts any position, with a divide: the
count below each throw and move of the first ply.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kimble_env import Game, Rules
from kimble_env import kernel as k
from kimble_env.notation import format_move, parse_position

HERE = Path(__file__).parent
COLUMNS = ("depth", "ways", "idle", "lost", "home", "ended", "distinct")
HEAD = """\
# Perft of {name}, see tests/perft/__init__.py. Renewed by: python -m tests.perft --write
# ways: throws with their moves up to this depth; of those of the last ply
#   idle: without a legal move; lost, home: pieces lost, pieces come home; ended: games ended
# distinct: different positions that still go on
"""

States = npt.NDArray[np.void]

POSITIONS: dict[str, list[tuple[str, int]]] = {
    "kimble": [
        ("kimble R-/B-/Y-/G- R - 1", 5),
        ("kimble R0,9,20/B3,15/Y4,26/G2,13 R - 1", 3),
        ("kimble R26,28,30/B20,25,27,29/Y27,28,31/G3,22 B - 1", 3),
        ("kimble R27,28,29,30/Y26,29,30,31 Y - 1", 4),
        ("kimble[pass_allowed=no] R0,9,20/B3,15/Y4,26/G2,13 R - 1", 4),
        ("kimble[stretch_block=yes] R24,25,29,30/B22,27,29/G5 R - 1", 3),
        ("kimble[two_colours=yes] R3,20,26/B1,8/Y5,13/G9,25 R - 1", 3),
        ("kimble[extra_throw_needs_move=yes,max_sixes=2] R5/B-/Y28,30,31/G0 B - 1", 4),
        ("kimble[pass_allowed=no,play_for_places=yes] R27,29,30,31/B27,28,30,31/Y4 R - 1", 4),
        ("kimble[board=ludo52,pieces=3] R45,50,51/B30,49/Y0,18/G7,31 R - 1", 3),
    ],
    "kombat": [
        ("kombat R-/B-/Y-/G- R - 1", 5),
        ("kombat R0,9,20/B3,15/Y4,26/G2,13 R - 1", 2),
        ("kombat R3/B1/Y-/G- R - 1", 3),
        ("kombat[pass_allowed=no] R4,12/B0,9/Y1 R - 1", 3),
        ("kombat[two_colours=yes] R3,20/B1,8/Y5,13/G9,25 R - 1", 2),
        ("kombat[board=cross40,max_sixes=1] R7,12/B0,29/Y10,20/G5 G - 1", 2),
    ],
    "norske": [
        ("norske R-/B-/Y-/G- R - 3", 6),
        ("norske R3,9,20/B0x2,15/Y0,26/G2,13x2 R - 1", 4),
        ("norske R1,6/B0x2,3/Y-/G12,20 R - 1", 5),
        ("norske R0x2,26,29/B20,27x2,H/Y7,22,30,H/G8x2,14 G - 1", 4),
        ("norske R29,31,H/B8,11x2/Y0,28x2/G14 R - 1", 4),
        ("norske R26,Hx3/B30,Hx2/Y31x3,H R - 1", 5),
        ("norske[own_collision=mover] R26,29x2,31/B0,8,11/G9 R - 1", 4),
        ("norske[own_collision=stander] R26,29,31x2/B0,8,11/G9 R - 1", 4),
        ("norske[three_throws_when=none_on_track] R29,31/B28,H/Y-/G3 B - 3", 5),
        ("norske[batteries=no,protected_start=no] R0,6,13/B0,7/Y12/G8,9 R - 1", 4),
        ("norske[play_for_places=yes] R31,Hx3/B30,Hx3/Y29x2,Hx2/G0 R - 1", 5),
    ],
}


@dataclass(frozen=True)
class Row:
    """The counts of one depth."""

    depth: int
    ways: int
    idle: int
    lost: int
    home: int
    ended: int
    distinct: int

    def __str__(self) -> str:
        return "".join(f"{getattr(self, name):>12}" for name in COLUMNS)


def repeat(states: States, times: int = 1, mask: npt.NDArray[np.bool_] | None = None) -> States:
    """A copy of records, each so often (by bytes: numpy copies records field by field)."""
    chosen = states if mask is None else states[mask]
    return np.repeat(chosen.view(f"V{k.STATE.itemsize}"), times).view(k.STATE)


def thrown(states: States, rules: Rules, die: int) -> tuple[States, npt.NDArray[np.int64]]:
    """All records after this throw, and their legal actions (0: the throw is over)."""
    after = repeat(states)
    actions = np.zeros(len(after), np.int64)
    k.throw_batch(after, rules.array, np.full(len(after), die, np.int8), actions)
    return after, actions


def played(states: States, rules: Rules, action: int) -> States:
    """All that can follow from one action: 36 outcomes where it starts a battle, else one."""
    defenders = np.full(len(states), -1, np.int8)
    k.battle_batch(states, rules.array, np.full(len(states), action, np.int16), defenders)
    parts = []
    for mask, dice in ((defenders < 0, 1), (defenders >= 0, 36)):
        part = repeat(states, dice, mask)
        pairs = np.zeros((len(part), 2), np.int8)
        if dice == 36:
            number = np.arange(len(part)) % 36
            pairs[:, 0], pairs[:, 1] = number // 6 + 1, number % 6 + 1
        k.play_batch(part, rules.array, np.full(len(part), action, np.int16), pairs)
        parts.append(part)
    return np.concatenate(parts)


def next_ply(states: States, rules: Rules) -> tuple[States, int]:
    """All records one throw and move later, and how many of these throws had no legal move."""
    parts, idle = [], 0
    for die in range(1, 7):
        after, actions = thrown(states, rules, die)
        stuck = actions == 0
        idle += int(stuck.sum())
        parts.append(repeat(after, 1, stuck))
        for action in range(rules.board.actions):
            able = (actions >> action & 1).astype(bool)
            if able.any():
                parts.append(played(repeat(after, 1, able), rules, action))
    return np.concatenate(parts), idle


def distinct_positions(states: States) -> int:
    """The number of different positions, whatever order the pieces are kept in."""
    names = ("plays", "places", "out", "seat", "throws", "face", "sixes", "status", "turn")
    columns = [np.sort(states["pieces"], axis=2).reshape(len(states), 16)]
    columns += [states[name].reshape(len(states), -1).astype(np.int64) for name in names]
    return len(np.unique(np.concatenate(columns, axis=1), axis=0))


def perft(text: str, depth: int) -> list[Row]:
    """Count all ways from a position, for every depth up to ``depth``."""
    rules, states = parse_position(text)
    rows = []
    for ply in range(1, depth + 1):
        states, idle = next_ply(states, rules)
        events = states["events"] * (np.arange(2)[:, None] < states["event_count"][:, None, None])
        kinds, counts = events[:, :, 0], events[:, :, 2].astype(np.int64)
        arrived = kinds == k.ARRIVED
        going = states["status"] == k.RUNNING
        rows.append(
            Row(
                depth=ply,
                ways=len(states),
                idle=idle,
                lost=int(counts[~arrived].sum()),
                home=int(counts[arrived].sum()),
                ended=int((~going).sum()),
                distinct=distinct_positions(states[going]),
            )
        )
        states = repeat(states, 1, going)
    return rows


def divide(text: str, depth: int) -> str:
    """The ways at ``depth`` below each throw and move of the first ply, as a table."""
    game = Game.from_text(text)
    lines = [f"divide of {text} at depth {depth}:"]
    for die in range(1, 7):
        after = game.copy()
        after.throw(die)
        if after.die is None:
            lines.append(f"  {die} none   {_ways(after, depth - 1):>10}  {after.to_text()}")
        for move in after.legal_moves:
            for dice in [pair for pair, _ in after.battle_outcomes(move)] or [None]:
                end = after.copy()
                end.play(move, dice)
                name = format_move(game.rules, move.action, die)
                fight = f"{dice[0]}:{dice[1]}" if dice else ""
                ways = _ways(end, depth - 1)
                lines.append(f"  {die} {name:<6} {fight:<4}{ways:>6}  {end.to_text()}")
    return "\n".join(lines)


def _ways(game: Game, depth: int) -> int:
    if depth == 0:
        return 1
    return 0 if game.over else perft(game.to_text(), depth)[-1].ways


def table(name: str) -> str:
    """The whole text of one file."""
    lines = [HEAD.format(name=name)]
    for text, depth in POSITIONS[name]:
        lines.append(f"position {text}")
        lines.append("".join(f"{column:>12}" for column in COLUMNS))
        lines += [str(row) for row in perft(text, depth)] + [""]
    return "\n".join(lines)


def read_table(path: Path) -> dict[str, list[Row]]:
    """The committed rows of a file, per position."""
    tables: dict[str, list[Row]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("position "):
            rows = tables.setdefault(line.removeprefix("position "), [])
        elif line.strip() and not line.startswith("#") and "depth" not in line:
            rows.append(Row(*map(int, line.split())))
    return tables
