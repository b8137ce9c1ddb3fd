"""The moves of an answer as lines of plain text: what each is worth, best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.rules import Rules


def best_judge(rules: Rules) -> str:
    """Return the spec of the agent that ranks moves best here: one with chances to win.

    Exact where a table lies ready, else a shipped net, else a search two throws deep; where none
    of them fits, the best quick agent.
    """
    from agents.exact.table import table_is_ready
    from agents.value_net import shipped_for
    from kimble_app.api.specs import LOCAL, default_agent

    name = shipped_for(rules)
    wanted = ["exact"] if table_is_ready(rules) else []
    wanted += [f"net:{name}"] if name is not None else []
    for spec in (*wanted, "search:depth=2"):
        try:
            LOCAL.agent(spec, None, rules)
        except KimbleError:
            continue  # no table, or no value for these rules
        return spec
    return default_agent(rules)


def percent(chance: float) -> str:
    """Return a chance as "62.7 %"."""
    return f"{100 * chance:.1f} %"


def own_chance(win: list[float], seat: str, two_colours: bool = False) -> float:
    """Return the chance of the player of a seat's letter (R17)."""
    number = SEAT_LETTERS.index(seat)
    return win[number] + (win[number ^ 2] if two_colours else 0.0)


def ranked_lines(answer: Mapping[str, Any], numbers: Mapping[str, int] | None = None) -> list[str]:
    """Return a line per legal move of a ``MoveAnswer``: win chance and loss, or score.

    Args:
        answer: as ``kimble_app.api.answers.answer_move`` returns it.
        numbers: what to write before the moves; their rank if None.
    """
    two_colours = "two_colours=yes" in answer["rules"]
    lines = []
    for rank, row in enumerate(answer["ranked"], 1):
        number = rank if numbers is None else numbers[row["move"]]
        line = f"{number:3}  {row['move']:8}"
        if row["win"] is not None:
            line += f"{percent(own_chance(row['win'], answer['seat'], two_colours)):>8}"
            if row["loss"] > 0:
                line += f"   loses {100 * row['loss']:.1f} points"
        elif row["score"] is not None:
            line += f"{row['score']:>10.3f}"
        lines.append(line + ("   <- its move" if row["move"] == answer["move"] else ""))
    if answer["ranked"]:
        kind = "chance to win" if answer["ranked"][0]["win"] is not None else "score"
        has = answer["ranked"][0]["win"] is not None or answer["ranked"][0]["score"] is not None
        lines.append(f"     {kind if has else 'no values'} by {answer['agent']}")
    return lines
