"""Write the generated parts of the documents from the code: ``python docs/generate.py``.

A generated part stands between ``<!-- generated:NAME -->`` and ``<!-- end -->`` in a Markdown file.
``--check`` changes nothing and fails if a part is stale; tests/test_docs.py does the same.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from agents.heuristics import (
    describe_heuristic,
    heuristic_names,
    heuristic_source,
    own_weights,
)
from kimble_env.board import BOARDS, SEAT_LETTERS
from kimble_env.features import FEATURE_TABLE
from kimble_env.rules import OPTIONS, PRESETS, Option

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated:(\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    rule = "|" + "---|" * (lines[0].count("|") - 1)
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def boards() -> str:
    """The figures of every board that comes with the package."""
    all_boards = [BOARDS[name] for name in ("kimble28", "cross40", "ludo52")]
    rows: list[list[object]] = [["", *(f"`{board.name}`" for board in all_boards)]]

    def row(title: str, figure: Callable[..., object]) -> None:
        rows.append([title, *(figure(board) for board in all_boards)])

    row("track fields (ring)", lambda b: b.ring)
    row("starts of R, B, Y, G (field)", lambda b: ", ".join(map(str, b.starts)))
    row("last track field of a route (progress)", lambda b: b.leave)
    row("stretch (progress)", lambda b: f"{b.stretch_first}..{b.stretch_last}")
    row("home, Norske only (progress)", lambda b: b.home)
    row("sector: the start and the fields after it", lambda b: (b.starts[1] - b.starts[0]) % b.ring)
    row("fields of the ring not on the route", lambda b: b.ring - b.leave - 1)
    row("actions (enter, one per progress, pass)", lambda b: b.actions)
    return table(rows)


def _values(option: Option) -> str:
    if option.kind == "board":
        return "a board's name"
    if option.kind == "yesno":
        return "yes, no"
    if option.kind == "members":
        return "20, 20+5, 20+5/100, none"
    if option.kind == "word":
        return ", ".join(option.choices)
    high = "" if option.high > 1000 else option.high
    return f"{option.low}..{high}" + (", none" if option.optional else "")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(getattr(value, "name", value))


def options() -> str:
    """Every option with its values, its rule and its default in each preset."""
    rows: list[list[object]] = [
        ["option", "meaning", "rule", "values", *(f"`{name}`" for name in PRESETS)]
    ]
    for name, option in OPTIONS.items():
        defaults = [_text(getattr(preset, name)) for preset in PRESETS.values()]
        rule = option.rule.replace("section 2", "[boards](#boards)")
        mark = "" if option.hashed else " (not in the hash)"
        rows.append([f"`{name}`", option.text + mark, rule, _values(option), *defaults])
    return table(rows)


def fields() -> str:
    """Field numbers of each seat's route, a look-up for reading positions on kimble28."""
    board = BOARDS["kimble28"]
    rows: list[list[object]] = [["progress", *SEAT_LETTERS]]
    for progress in range(board.leave + 1):
        rows.append([progress, *(board.field(seat, progress) for seat in range(len(SEAT_LETTERS)))])
    return table(rows)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def features() -> str:
    """Every move feature with its unit, its range and what it says."""
    rows: list[list[object]] = [["feature", "unit", "range", "meaning"]]
    for name, feature in FEATURE_TABLE.items():
        low, high = _number(feature.low), _number(feature.high)
        rows.append([f"`{name}`", feature.unit, f"{low} to {high}", feature.text])
    return table(rows).replace("``", "`")


def heuristics() -> str:
    """Every named heuristic with its sentence and where it is from."""
    rows: list[list[object]] = [["heuristic", "how it plays", "own weights for"]]
    for name in heuristic_names():
        own = ", ".join(own_weights(name)) or "-"
        source = heuristic_source(name)
        rows.append(
            [f"`{name}`", describe_heuristic(name) + (f" ({source})" if source else ""), own]
        )
    return table(rows)


def levels() -> str:
    """Loss per decision of some levels of every calibrated agent, and the reference."""
    shown = (1, 3, 5, 7, 9, 10)
    rows: list[list[object]] = [
        ["agent", "game", *(f"level {n}" for n in shown), "reference", "decisions"]
    ]
    for spec, games in json.loads((ROOT / "agents" / "levels.json").read_text())["agents"].items():
        for game, entry in sorted(games.items()):
            losses = entry["losses_mwp"]
            cells = [f"{losses[n - 1]:.1f}" for n in shown]
            cells[-1] += f" ± {1.96 * entry['own_error_mwp']:.1f}"
            rows.append([f"`{spec}`", game, *cells, entry["reference"], f"{entry['decisions']:,}"])
    return table(rows)


PARTS: dict[str, Callable[[], str]] = {
    "boards": boards,
    "options": options,
    "fields": fields,
    "features": features,
    "heuristics": heuristics,
    "levels": levels,
}


def renew(text: str) -> str:
    """Return ``text`` with every generated part written anew."""

    def part(match: re.Match[str]) -> str:
        return match[1] + PARTS[match[2]]() + match[4]

    return PART.sub(part, text)


def documents() -> list[Path]:
    """The files that may hold generated parts."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    stale = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if renew(text) != text:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(renew(text), encoding="utf-8")
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'stale' if '--check' in sys.argv else 'renewed'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
