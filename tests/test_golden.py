"""Golden playthroughs: committed games come out the same, from their seeds and from their dice.

After a change of the rules or dice on purpose: ``python -m tests.golden --write``, and read the
diff.
"""

from __future__ import annotations

from itertools import zip_longest

import pytest
from golden import HERE, PLAYTHROUGHS, playthrough, replay

from kimble_env import PRESETS


def compare(found: list[str], committed: list[str], shift: int = 0) -> None:
    """Fail at the first line that differs, and show it."""
    for number, (new, old) in enumerate(zip_longest(found, committed), 1 + shift):
        assert new == old, f"line {number}"


def committed_text(name: str) -> str:
    return (HERE / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_seed_gives_the_committed_game(name):
    compare(playthrough(name).splitlines(), committed_text(name).splitlines())


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_committed_dice_give_the_committed_game(name):
    text = committed_text(name)
    lines = [line for line in text.splitlines() if not line.startswith(("#", "seed", "starter"))]
    compare(replay(text), lines)


def test_every_file_is_played_and_every_rule_set_has_one():
    assert {path.stem for path in HERE.glob("*.txt")} == set(PLAYTHROUGHS)
    assert set(PRESETS) <= set(PLAYTHROUGHS)


def test_the_games_show_what_they_should():
    """Not a file of passes: captures, battles, batteries, bad moves and finishes all occur."""
    texts = {name: committed_text(name) for name in PLAYTHROUGHS}
    for preset in PRESETS:
        assert "wins" in texts[preset].splitlines()[-1]
    assert "captured" in texts["kimble"]
    assert "battle" in texts["kombat"]
    norske = "".join(text for name, text in texts.items() if name.startswith("norske"))
    for word in ("captured", "protected", "own_collision", "arrival", "x2"):
        assert word in norske
    assert "places=" in texts["kimble_places"]
    assert "sixes=" in texts["kimble_sixes"]
    assert "face=" in texts["kombat_popomatic"]
    assert texts["kimble_max_turns"].splitlines()[-1] == "result cut off, no winner"
