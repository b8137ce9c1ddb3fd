"""The tables of ``docs/solution.md``, written from the figures that ``solution.py`` keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kimble_env.files import write_whole

Data = dict[str, Any]
_MARK = "<!-- {} -->"
_END = "<!-- end -->"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _rules(found: Data) -> str:
    """Return the rule set of a figure without its number of pieces."""
    text = re.sub(r",?pieces=\d", "", found["rules"]).replace("[]", "").replace("[,", "[")
    return f"`{text}`"


def ladder(data: Data, pieces: int) -> str:
    """Return the table of exact results of all agents with so many pieces."""
    found = [f for f in data.get("ladder", {}).values() if f["pieces"] == pieces]
    found.sort(key=lambda f: (f["rules"], -f["versus"]["perfect"]["share"]))
    rows = []
    for f in found:
        itself, best = f["itself"], f["exploitability"]
        rows.append((
            _rules(f), f["agent"], f"{100 * f['versus']['random']['share']:.3f}",
            f"{100 * f['versus']['perfect']['share']:.3f}",
            "-" if best is None else f"{100 * best:.3f}", f"{f['loss_per_decision']:.3f}",
            f"{itself['decisions']:.1f}", f"{itself['throws']:.1f}",
        ))  # fmt: skip
    head = ("rules", "agent", "v random, %", "v perfect, %", "best answer over 50, %",
            "loss per decision, mWP", "decisions", "throws")  # fmt: skip
    return _table(head, rows)


def _games(data: Data) -> list[tuple[str, str, str, Data]]:
    """Return rules, pieces, players and account of every kind of game that was looked at."""
    out = []
    for key, f in data.get("perfect", {}).items():
        rules, _, pieces = key.rpartition(" ")
        out.append((f"`{rules}`", pieces, "perfect", f))
    for f in data.get("ladder", {}).values():
        out.append((_rules(f), str(f["pieces"]), f["agent"], f["itself"]))
    return sorted(out, key=lambda row: (*row[:2], row[2] == "random", row[2]))


def luck(data: Data) -> str:
    """Return the table of luck in games of equal players."""
    rows = [
        (
            rules, pieces, who, f"{f['throws']:.1f}", f"{100 * f['luck_per_throw_sd']:.2f}",
            f"{100 * f['throw_luck_sd']:.1f}", f"{100 * f['battle_luck_sd']:.1f}",
            f"{1000 * f['loss']:.0f}",
        )
        for rules, pieces, who, f in _games(data)
    ]  # fmt: skip
    head = (
        "rules", "pieces", "both play", "throws", "luck of a throw, SD %",
        "of all throws of a game, SD %", "of its battles, SD %", "lost in all, mWP",
    )  # fmt: skip
    return _table(head, rows)


def kinds(data: Data) -> str:
    """Return the table of how often each kind of move is right, in games of good players."""
    rows = []
    for rules, pieces, who, f in _games(data):
        if who not in ("perfect", "tuned", "cautious"):
            continue
        for kind, k in f["kinds"].items():
            rows.append((
                rules, pieces, who, kind.replace("_", " "), f"{k['offered']:.2f}",
                f"{100 * k['best_share']:.1f} %", f"{k['cost_where_wrong']:.1f}",
                f"{k['played']:.2f}",
            ))  # fmt: skip
    head = ("rules", "pieces", "both play", "kind of move", "on offer, a game", "it is best",
            "else it costs, mWP", "played, a game")  # fmt: skip
    return _table(head, rows)


def mistakes(data: Data, agent: str, pieces: int) -> str:
    """Return the table of an agent's costliest mistakes."""
    rows = []
    for f in data.get("ladder", {}).values():
        if f["agent"] == agent and f["pieces"] == pieces:
            for m in f["itself"]["mistakes"][:4]:
                rows.append((
                    _rules(f), m["played"].replace("_", " "), m["best"].replace("_", " "),
                    f"{m['per_game']:.2f}", f"{m['loss_each']:.1f}",
                    f"{100 * m['share_of_loss']:.0f} %",
                ))  # fmt: skip
    head = ("rules", "played", "best", "a game", "costs, mWP", "of all loss")
    return _table(head, rows)


def costly(data: Data, agent: str, pieces: int) -> str:
    """Return the table of the positions that cost an agent most."""
    rows = []
    for f in data.get("ladder", {}).values():
        if f["agent"] == agent and f["pieces"] == pieces:
            shown = [p for p in f["itself"]["positions"] if " R " in p["position"]]
            for p in shown[:3]:  # the other seat has the same ones, turned
                moves = sorted(p["win"].items(), key=lambda item: -item[1])
                text = ", ".join(f"{move} {win:.3f}" for move, win in moves)
                rows.append((f"`{p['position']}`", text, f"{p['loss_each']:.1f}"))
    return _table(("position", "win chance after each move", "lost, mWP"), rows)


def losses(data: Data) -> str:
    """Return the table of losses on the four-piece decision sets."""
    found = data.get("losses_4", {})
    names = sorted({key.partition(" ")[2] for key in found},
                   key=lambda name: found.get(f"kimble {name}", {}).get("loss", 99.0))  # fmt: skip
    rows = [
        (name, *(f"{e['loss']:.2f} ± {e['error']:.2f}" if (e := found.get(f"{rules} {name}"))
                 else "-" for rules in ("kimble", "kombat")))
        for name in names
    ]  # fmt: skip
    return _table(("agent", "kimble", "kombat"), rows)


TABLES: dict[str, Callable[[Data], str]] = {
    "ladder 2": lambda data: ladder(data, 2),
    "ladder 3": lambda data: ladder(data, 3),
    "luck": luck,
    "kinds": kinds,
    "mistakes": lambda data: mistakes(data, "cautious", 2),
    "positions": lambda data: costly(data, "cautious", 2),
    "losses": losses,
}
"""What stands between the marks of ``docs/solution.md``."""


def write_tables(page: Path, data: Data) -> None:
    """Renew every table of a page that has marks for it."""
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        mark = _MARK.format(name)
        if mark in text:
            head, _, rest = text.partition(mark)
            tail = rest.partition(_END)[2]
            text = f"{head}{mark}\n{make(data)}\n{_END}{tail}"
    write_whole(page, text.encode())
