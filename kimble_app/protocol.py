"""The protocol of a refereed match: one self-contained HTML page with moves, cups, times, rulings.

:func:`protocol_page` makes it from the match alone; what a ruling has taken back is shown struck
out, for the log forgets nothing.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from kimble_app.referee_desk import describe, in_effect, minutes
from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.ledger import State
from kimble_env.ledger_rules import Happening
from kimble_env.refereed import RefereedGame

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h1 { margin-bottom: .2rem } h2 { margin-top: 2.2rem; border-bottom: 1px solid #ccc }
.wide { overflow-x: auto } .move { white-space: nowrap }
code { overflow-wrap: anywhere }
table { border-collapse: collapse } th { text-align: left }
th, td { padding: .15rem 1.6rem .15rem 0; border-bottom: 1px solid #eee; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
tr.void { color: #999; text-decoration: line-through } .R { color: #c22 } .B { color: #25c }
.Y { color: #a70 } .G { color: #283 } .seat { font-weight: 600 }
svg { max-width: min(30rem, 100%); height: auto }
@media print { body { margin: 0 } .wide { overflow: visible } }
"""
CAUSES = {"hit": "hit", "home": "came home", "refill": "refilled", "redrink": "drunk again"}


def protocol_page(game: RefereedGame, begun: float) -> str:
    """Return the protocol of a match, finished or not, as an HTML page.

    Args:
        game: the match.
        begun: the time of day of its second 0, in seconds since 1970.
    """
    parts = [
        ("Result", _result(game, begun)),
        ("Teams", _teams(game)),
        ("Cups", _cups(game)),
        ("Rulings", _rulings(game)),
        ("Moves", _moves(game)),
        ("Board", _board(game)),
        ("Whole log", _log(game)),
    ]
    title = "Protocol of a match of Norske Kimble"
    sections = "\n".join(f"<h2>{html.escape(name)}</h2>\n{part}" for name, part in parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{title}</h1>\n{sections}\n</body></html>\n"
    )


def _seat(letter: str) -> str:
    name = SEAT_NAMES[SEAT_LETTERS.index(letter)]
    return f'<span class="seat {letter}">{name}</span>'


def _table(head: Sequence[str], rows: Iterable[tuple[bool, Sequence[Any]]]) -> str:
    """Return a table; a row is (in effect, cells), numbers to the right, other cells HTML."""
    lines = ["<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"]
    for valid, cells in rows:
        tds = "".join(
            f'<td class="n">{cell}</td>' if isinstance(cell, int) else f"<td>{cell}</td>"
            for cell in cells
        )
        lines.append(f"<tr>{tds}</tr>" if valid else f'<tr class="void">{tds}</tr>')
    if len(lines) == 1:
        return "<p>None.</p>"
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _kept(text: str) -> str:
    """Return a text as HTML in which no move such as 11-14 is broken at its hyphen."""
    return re.sub(r"\w+-\w+", r'<span class="move">\g<0></span>', html.escape(text))


def _result(game: RefereedGame, begun: float) -> str:
    state = game.referee.state
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(begun))
    if game.winner is not None:
        text = f"{_seat(SEAT_LETTERS[game.winner])} has won."
    else:
        text = "Cut off without a winner." if game.over else "The match is not finished."
    places = ", ".join(_seat(SEAT_LETTERS[seat]) for seat in state.places)
    out = ", ".join(_seat(SEAT_LETTERS[s]) for s, team in state.teams.items() if team.out)
    cups = sum(team.drunk for team in state.teams.values())
    lines = [
        f"<p><b>{text}</b></p>",
        f"<p>Begun {day}, {minutes(state.now)} long, {game.plies} throws, cups of 33 cl: {cups}.",
        f"Rules: <code>{html.escape(str(game.rules))}</code>. Cups {_cup_check(state)}.",
        f"{_starter(game)}</p>",
    ]
    if places:
        lines.append(f"<p>Places: {places}.</p>")
    if out:
        lines.append(f"<p>Out of the game: {out}.</p>")
    return "\n".join(lines)


def _cup_check(state: State) -> str:
    return "marked at 33 cl" if state.settings.cups == "marked" else "equal in size"


def _starter(game: RefereedGame) -> str:
    header = game.log[0]
    first = _seat(SEAT_LETTERS[header["start"]["seat"]])
    how = {"random": "drawn by lot", "highest_roll": "thrown for"}
    return f"{first} began ({how.get(game.rules.starter, 'agreed')})."


def _teams(game: RefereedGame) -> str:
    rows: list[tuple[bool, Sequence[Any]]] = []
    for seat, team in game.referee.state.teams.items():
        for i, member in enumerate(team.members):
            status = "" if member.playing else "out of the competition"
            team_cells = [_seat(SEAT_LETTERS[seat]), team.status] if i == 0 else ["", ""]
            name, drink = html.escape(member.name), html.escape(member.drink)
            rows.append((True, [*team_cells, name, drink, member.drunk, status]))
    return _table(["team", "status", "member", "drink", "cups", ""], rows)


def _steps(game: RefereedGame) -> list[tuple[int, bool, dict[str, Any], State, State]]:
    """Return number, whether in effect, entry, and ledger before and after, of every call.

    Before a ruling that goes back stands the ledger that it goes back to (L7).
    """
    log, states = game.log, game.referee.history
    valid = set(in_effect(log))
    return [
        (
            n + 1,
            n + 1 in valid or "back_to" in log[n],
            log[n],
            states[log[n].get("back_to", n) - 1],
            states[n],
        )
        for n in range(1, len(log))
    ]


def _name(state: State, seat: int, member: int) -> str:
    return html.escape(state.teams[seat].members[member].name)


def _cups(game: RefereedGame) -> str:
    """One row for every cup: who, why, start, seconds."""
    rows: list[tuple[bool, Sequence[Any]]] = []
    for _, valid, entry, before, after in _steps(game):
        front = before.front
        for kind, letter, member, value in entry.get("then", ()):
            if kind not in ("empty", "member_out"):
                continue
            seat = SEAT_LETTERS.index(letter)
            who, cause = _name(after, seat, member), ""
            if front is not None and front.seat == seat and front.drinker == member:
                battery = f", {front.cups - front.left + 1} of {front.cups}" * (front.cups > 1)
                cause = CAUSES[front.cause] + battery
            if kind == "empty":
                assert front is not None
                assert front.started is not None
                rows.append(
                    (valid, [_seat(letter), who, cause, minutes(front.started), value, "empty"])
                )
            else:
                text = f"out of the competition: {html.escape(str(value))}"
                rows.append((valid, [_seat(letter), who, cause, minutes(entry["t"]), "", text]))
    return _table(["team", "member", "cup", "at", "seconds", ""], rows)


def _rulings(game: RefereedGame) -> str:
    rows = []
    for number, valid, entry, _, _ in _steps(game):
        if entry["call"] != "ruling":
            continue
        words = []
        if "back_to" in entry:
            words.append(f"back to entry {entry['back_to']}")
        if "do" in entry:
            words.append(entry["do"].replace("_", " "))
        words += [f"{path} = {value}" for path, value in entry.get("put", {}).items()]
        if "position" in entry:
            words.append(f"position {entry['position']}")
        about = _seat(entry["seat"]) if "seat" in entry else ""
        what = html.escape("; ".join(words))
        rows.append(
            (valid, [number, minutes(entry["t"]), about, what, html.escape(entry["reason"])])
        )
    return _table(["entry", "at", "team", "ruling", "reason"], rows)


def _moves(game: RefereedGame) -> str:
    """One row for every throw: its move, or that it had none."""
    rows = []
    steps = _steps(game)
    for (number, valid, entry, _, after), following in zip(steps, [*steps[1:], None], strict=True):
        if entry["call"] not in ("throw", "move"):
            continue
        if entry["call"] == "throw" and following is not None and following[2]["call"] == "move":
            continue  # the row of the move says it all
        what = _kept(entry.get("text", "–"))
        events = "; ".join(
            str(_happening(then, after)) for then in entry.get("then", ()) if then[0] == "owed"
        )
        cells = [number, minutes(entry["t"]), _seat(entry["seat"]), entry.get("die", ""), what]
        rows.append((valid, [*cells, html.escape(events)]))
    return _table(["entry", "at", "team", "die", "", ""], rows)


def _happening(then: list[Any], state: State) -> Happening:
    kind, letter, member, value = then
    seat = SEAT_LETTERS.index(letter)
    name = "" if member is None else state.teams[seat].members[member].name
    return Happening(kind, seat, member, value, name)


def _board(game: RefereedGame) -> str:
    from kimble_env import render

    return f"{render.svg(game)}\n<p><code>{html.escape(game.to_text())}</code></p>"


def _log(game: RefereedGame) -> str:
    rows = []
    for number, valid, entry, _, after in _steps(game):
        then = "; ".join(str(_happening(h, after)) for h in entry.get("then", ()))
        rows.append(
            (valid, [number, minutes(entry["t"]), _kept(describe(entry)), html.escape(then)])
        )
    body = _table(["entry", "at", "call", "what followed"], rows)
    return f"<details><summary>{len(rows)} entries</summary>\n{body}\n</details>"
