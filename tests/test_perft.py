"""Perft tables: the number of ways on from a position, for each rule set, stays what it is.

After a change of the rules on purpose: ``python -m tests.perft --write``, and read the diff.
"""

from __future__ import annotations

import pytest
from perft import HERE, POSITIONS, divide, perft, read_table

from kimble_env._jit import COMPILED

CASES = [(name, text, depth) for name, rows in POSITIONS.items() for text, depth in rows]
MOST_UNCOMPILED = 3_000  # ways that plain Python counts in a second or so


@pytest.mark.parametrize(("name", "text", "depth"), CASES, ids=[text for _, text, _ in CASES])
def test_ways_on_from_a_position(name, text, depth):
    committed = read_table(HERE / f"{name}.txt")[text]
    assert [row.depth for row in committed] == list(range(1, depth + 1))
    if not COMPILED:
        committed = [row for row in committed if row.ways <= MOST_UNCOMPILED]
    for counted, row in zip(perft(text, len(committed)), committed, strict=True):
        if counted != row:
            pytest.fail(f"counted\n{counted}\ncommitted\n{row}\n{divide(text, counted.depth)}")


def test_every_committed_table_is_counted():
    names = {path.stem for path in HERE.glob("*.txt")}
    assert names == set(POSITIONS)
    for name, rows in POSITIONS.items():
        assert list(read_table(HERE / f"{name}.txt")) == [text for text, _ in rows]


def test_first_ply_by_hand():
    """Kimble: 1 to 5 pass, a 6 enters or passes. Norske: 1 to 5 nothing, a 6 enters."""
    assert perft("kimble R-/B-/Y-/G- R - 1", 1)[0].ways == 7
    row = perft("norske R-/B-/Y-/G- R - 3", 1)[0]
    assert (row.ways, row.idle, row.distinct) == (6, 5, 2)
    battle = perft("kombat[pass_allowed=no] R3/B1 R - 1", 1)[0]
    assert battle.ways == 4 + 36 + 2  # 1 to 4, the battle with a 5, enter or 3-9 with a 6


def test_divide_adds_up():
    text = "kombat[pass_allowed=no] R3/B1 R - 1"
    rows = [line.split("  ")[1:] for line in divide(text, 2).splitlines()[1:]]
    ways = [int(line.split("kombat")[0].split()[-1]) for line in divide(text, 2).splitlines()[1:]]
    assert len(rows) == 42
    assert sum(ways) == perft(text, 2)[-1].ways
