"""Answers of the API as tables: what ``kimble rules``, ``agents``, ``models``, ``moves`` print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from kimble_env.board import SEAT_LETTERS, SEAT_NAMES, find_board
from kimble_env.rules import OPTIONS, PRESETS


def print_json(data: Any) -> None:
    """Print one JSON object on one line."""
    print(json.dumps(data, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; what does not fit the terminal is folded, in a pipe it is 100 columns."""
    import sys

    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for k, title in enumerate(head):
        table.add_column(title, no_wrap=k == 0)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 100
    Console(width=width, highlight=False).print(table)


def option_words(option: dict[str, Any]) -> str:
    """Return what an option means with the value that it has, in words."""
    if option["kind"] == "yesno":
        return option["text"] if option["value"] == "yes" else f"not: {option['text']}"
    return f"{option['text']}: {option['value'].replace('_', ' ')}"


def print_rules(answer: dict[str, Any]) -> None:
    """Print a rule set in words; options that differ from the preset are marked."""
    board = find_board(next(o["value"] for o in answer["options"] if o["option"] == "board"))
    names = [SEAT_NAMES[SEAT_LETTERS.index(letter)] for letter in answer["seats"]]
    print(f"{answer['rules']}   (hash {answer['rules_hash']})")
    print(f"  {answer['players']} players: {', '.join(names)}")
    print(
        f"  {board.ring} track fields; a route of progress 0 to {board.leave}, then the stretch "
        f"{board.stretch_first} to {board.stretch_last}"
    )
    print(f"  begins: {answer['start']}")
    rows = [
        (
            ("* " if o["differs"] else "  ") + o["option"],
            o["value"],
            option_words(o),
            o["rule"],
            "" if o["kind"] == "yesno" else ", ".join(o["choices"]),
        )
        for o in answer["options"]
    ]
    print_table(("  option", "value", "what that means", "rule", "choices"), rows)
    if any(o["differs"] for o in answer["options"]):
        print(f"* differs from {answer['name']}")
    print("The rules by number: docs/rules.md")


def print_presets(answers: Sequence[dict[str, Any]]) -> None:
    """Print every option with its value in each rule set."""
    rows = [
        (name, option.text, option.rule, *(a["options"][k]["value"] for a in answers))
        for k, (name, option) in enumerate(OPTIONS.items())
    ]
    print_table(("option", "meaning", "rule", *PRESETS), rows)
    print('kimble rules "norske[own_collision=mover]" explains a rule set of your own')


def print_agents(answer: dict[str, Any]) -> None:
    """Print the agents that fit a rule set."""
    print(f"agents for {answer['rules']}")
    rows = [(a["agent"], "yes" if a["win"] else "no", a["text"]) for a in answer["agents"]]
    print_table(("agent", "win chances", "how it plays"), rows)
    print(f"asked for nothing in particular: {answer['default']}")
    if answer["levels"]:
        print("weaker: any of them with @level=1 (weakest) to @level=10 behind it")
    print('your own: weights:{"capture": 5}, my_agent.py:play, a_module:play')


def measured_words(card: dict[str, Any]) -> str:
    """Return what the card of a network says that it is worth: one against each, and its loss."""
    measured = card.get("measured")
    if not isinstance(measured, dict):
        return ""
    words = []
    for name, match in (measured.get("matches") or {}).items():
        words.append(f"{100 * match['win_share']:.1f} % against {name}")
    loss = measured.get("loss")
    if isinstance(loss, dict) and "mean_mwp" in loss:
        words.append(f"loses {loss['mean_mwp']:.2f} ‰ a decision")
    return ", ".join(words)


def print_models(answer: dict[str, Any]) -> None:
    """Print the shipped networks."""
    if not answer["models"]:
        print("no networks come with this version; a folder of your own: net:FOLDER")
        return
    rows = [
        (m["agent"], m["rules"] or "", str(m["players"] or ""), m["rules_hash"] or "",
         measured_words(m["card"]))
        for m in answer["models"]
    ]  # fmt: skip
    print_table(("agent", "rules", "players", "rules hash", "measured"), rows)
    print("kimble models --json has the whole cards")


def print_moves(answer: dict[str, Any]) -> None:
    """Print the ranked moves of a position."""
    from kimble_app.ranking import ranked_lines

    seat = SEAT_NAMES[SEAT_LETTERS.index(answer["seat"])].capitalize()
    print(f"{seat} with a {answer['die']}, {answer['rules']}")
    lines = ranked_lines(answer)
    print("\n".join(lines) if lines else "  no legal move: the throw is over")


def print_analysis(found: Any, page: Any) -> None:
    """Print what an ``evaluation.analysis.Analysis`` says of each player, and where its page is."""
    print(f"{found.rules}: {found.result}")
    print(f"{found.reference.text} ({found.reference.value.name})")
    rows = [
        (p.name, p.grade or "-", str(p.decisions), f"{100 * p.loss:.1f}",
         "-" if p.per_decision is None else f"{p.per_decision:.1f}", f"{100 * p.luck:+.1f}",
         "-" if p.result is None else f"{p.result:g}", f"{p.adjusted:.3f}")
        for p in found.players
    ]  # fmt: skip
    head = ("player", "grade", "decisions", "given away (points)", "per decision (1/1000)",
            "luck (points)", "result", "adjusted")  # fmt: skip
    print_table(head, rows)
    for rank, d in enumerate(found.costliest(), 1):
        print(
            f"{rank}. throw {d.throw}, {SEAT_NAMES[d.seat]}: {d.played} for {d.ranked[0].move} "
            f"gave away {100 * d.loss:.1f} points   {d.position}"
        )
    print(f"page: {page}")
