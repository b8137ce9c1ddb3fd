"""The page of an analysed game: one HTML file without outside references.

:func:`analysis_page` draws what ``evaluation.analysis`` found. Without scripts everything is there
to read; the script only filters decisions and shows the chances under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape

from evaluation.analysis import BANDS, Analysis, Decision, PlayerReport
from kimble_env import __version__
from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.notation import parse_move, parse_position
from kimble_env.render.as_svg import svg
from kimble_env.render.layout import BoardLayout, Spot
from kimble_env.render.scene import layout_of
from kimble_env.rules import Rules

FACES = "·⚀⚁⚂⚃⚄⚅"

STYLE = """
:root { --ink: #1d2530; --soft: #5b6675; --line: #d9dee5; --paper: #f5f7f9; --card: #fff;
  --good: #0b7a3f; --bad: #c2192c; --R: #d42a3a; --B: #1d66c4; --Y: #a87900; --G: #17914f }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #9aa6b5; --line: #363f4b;
  --paper: #14181e; --card: #1d232b; --good: #46c685; --bad: #ff6d78; --R: #ff6370; --B: #6aa8ff;
  --Y: #f4bd12; --G: #3fc97f } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif }
main { max-width: 70rem; margin: 0 auto; padding: 1.2rem 1rem 3rem }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .3rem 0 .2rem }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .7rem }
p { margin: .4rem 0 } .soft { color: var(--soft) } .small { font-size: .875rem }
code { font: .85em ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1rem }
.note { border-left: .3rem solid var(--B); margin: .8rem 0; padding: .6rem .9rem }
.players { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)) }
.player { border-top: .3rem solid var(--line) } .player h3 { margin: 0; font-size: 1.05rem;
  overflow-wrap: anywhere; padding-right: 3.4rem }
.player { position: relative } .grade { position: absolute; right: .9rem; top: .6rem;
  font-size: 2.1rem; font-weight: 750; line-height: 1 }
dl { display: grid; grid-template-columns: 1fr auto; gap: .15rem .8rem; margin: .6rem 0 0 }
dt { color: var(--soft) } dd { margin: 0; text-align: right }
.num { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap }
.dot { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin-right: .4em;
  background: var(--c); vertical-align: -.02em }
.graph svg { width: 100%; height: auto; display: block } .graph .narrow { display: none }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin-bottom: .4rem }
.graph text { fill: var(--soft); font-size: 13px } .graph .grid { stroke: var(--line) }
.graph .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round }
.graph .mark { fill: var(--card); stroke: var(--ink); stroke-width: 1.5 }
.graph .marked { fill: var(--ink); font-size: 12px; font-weight: 700 }
.graph .hair { stroke: var(--soft); stroke-dasharray: 3 3; visibility: hidden }
.mistakes { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)) }
.mistakes h3 { margin: 0 0 .5rem; font-size: 1.05rem } .mistakes svg { width: 100%; height: auto;
  background: #fff; border-radius: .5rem }
table { border-collapse: collapse; width: 100% } td, th { padding: .2rem .4rem; text-align: left }
th { font-weight: 600; color: var(--soft) } tr + tr td { border-top: 1px solid var(--line) }
tr.best td:first-child { color: var(--good); font-weight: 650 }
tr.played td:first-child { color: var(--bad); font-weight: 650 }
tr.best.played td:first-child { color: var(--good) }
.tag { color: var(--soft); font-size: .85rem; font-weight: 400 }
.filter { display: flex; flex-wrap: wrap; gap: .5rem 1.2rem; align-items: center;
  margin: 0 0 .7rem } select { font: inherit; max-width: 14rem }
details.move { border-top: 1px solid var(--line) } details.move summary { cursor: pointer;
  display: grid; align-items: center; gap: .6rem; padding: .35rem .2rem; list-style: none;
  grid-template-columns: 3rem minmax(6rem, 1.2fr) 1.6rem minmax(4rem, 1fr) minmax(3rem, 2fr) 4rem }
details.move summary::-webkit-details-marker { display: none }
details.move[open] summary { font-weight: 600 }
details.move .inside { padding: .2rem 0 .9rem 3.4rem }
.who { overflow: hidden; text-overflow: ellipsis; white-space: nowrap } .die { font-size: 1.3rem }
.bar { display: block; height: .6rem; border-radius: .3rem; background: var(--bad); min-width: 1px }
.zero .bar { min-width: 0 } .zero .num:last-child { color: var(--good) }
.decisions { padding: .6rem .9rem }
@media (max-width: 40rem) { .graph .wide { display: none } .graph .narrow { display: block }
  details.move summary { grid-template-columns: 2.2rem 1fr 1.4rem 3.6rem 3.6rem; gap: .4rem }
  details.move .track { display: none } details.move .inside { padding-left: .2rem } }
@media print { body { background: #fff } .card { break-inside: avoid } .filter { display: none } }
"""

SCRIPT = """
const data = JSON.parse(document.getElementById('data').textContent);
const rows = [...document.querySelectorAll('details.move')];
const who = document.getElementById('who'), least = document.getElementById('least');
function sift() {
  let shown = 0;
  for (const row of rows) {
    const fits = (who.value === '' || row.dataset.player === who.value)
      && Number(row.dataset.loss) >= Number(least.value);
    row.hidden = !fits; shown += fits;
  }
  document.getElementById('shown').textContent = shown + ' of ' + rows.length;
}
who.addEventListener('change', sift); least.addEventListener('change', sift); sift();
for (const chart of document.querySelectorAll('.graph svg')) {
  const box = chart.dataset, hair = chart.querySelector('.hair');
  const words = document.getElementById('under');
  const before = words.textContent;
  chart.addEventListener('pointermove', event => {
    const frame = chart.getBoundingClientRect();
    const x = (event.clientX - frame.left) / frame.width * Number(box.width);
    const last = data.chances.length - 1, span = Number(box.right) - Number(box.left);
    const n = Math.min(last, Math.max(0, Math.round((x - Number(box.left)) / span * last)));
    const at = Number(box.left) + (last ? n / last : 0) * span;
    hair.setAttribute('x1', at); hair.setAttribute('x2', at); hair.style.visibility = 'visible';
    words.textContent = (n ? 'after throw ' + n : 'at the start') + ': '
      + data.players.map((name, k) => name + ' ' + data.chances[n][k].toFixed(1) + ' %').join(', ');
  });
  chart.addEventListener('pointerleave', () => {
    hair.style.visibility = 'hidden'; words.textContent = before;
  });
}
"""


def analysis_page(found: Analysis) -> str:
    """Return the page of an analysis."""
    names = ", ".join(player.name for player in found.players)
    title = f"{found.rules.name.capitalize()}: {names}"
    body = [
        _heading(found, title),
        f'<section class="players">{"".join(_player(found, p) for p in found.players)}</section>',
        _graph(found),
        _mistakes(found),
        _decisions(found),
        _method(found),
    ]
    data = {
        "players": [player.name for player in found.players],
        "chances": [[round(100 * float(c), 2) for c in row] for row in found.chances],
    }
    held = json.dumps(data).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(body)
        + f'\n</main><script type="application/json" id="data">{held}</script>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


# ------------------------------------------------------------------------------------ small pieces


def _points(chance: float, signed: bool = False) -> str:
    """Return a chance in percentage points, with a real minus sign."""
    shown = f"{100 * chance:+.1f}" if signed else f"{100 * chance:.1f}"
    if float(shown) == 0.0:
        return "0.0"
    return shown.replace("-", "−")


def _player_of(found: Analysis, seat: int) -> int:
    return next(k for k, player in enumerate(found.players) if seat in player.seats)


def _colour(seat: int) -> str:
    return f"var(--{SEAT_LETTERS[seat]})"


def _letters(seats: Sequence[int]) -> str:
    return "".join(SEAT_LETTERS[seat] for seat in seats)


def _dots(seats: Sequence[int]) -> str:
    return "".join(
        f'<span class="dot" style="--c:{_colour(seat)}" title="{SEAT_NAMES[seat]}"></span>'
        for seat in seats
    )


def _heading(found: Analysis, title: str) -> str:
    rules = escape(str(found.rules))
    count = len(found.chances) - 1
    return (
        f"<header><p class='soft small'>Kimble RL {escape(__version__)} · analysis of a game</p>"
        f"<h1>{escape(title)}</h1>"
        f"<p>{escape(found.result.capitalize())} · {count} throws · {len(found.decisions)} "
        f"decisions · rules <code>{rules}</code></p>"
        f'<div class="card note"><b>{escape(found.reference.text)}</b> '
        f'<span class="soft">({escape(found.reference.value.name)})</span></div></header>'
    )


def _player(found: Analysis, player: PlayerReport) -> str:
    band = next((text for _, letter, text in BANDS if letter == player.grade), "nothing to decide")
    each = "–" if player.per_decision is None else f"{player.per_decision:.1f}"
    if player.result is None:
        result = "unfinished"
    else:
        result = {1.0: "won", 0.0: "lost"}.get(player.result, f"{player.result:.2f} (cut off)")
    rows = [
        ("decisions", f"{player.decisions}"),
        ("given away, points", _points(player.loss)),
        ("per decision, ‰", each),
        ("luck, points", _points(player.luck, True)),
        ("… of own dice", _points(player.own_luck, True)),
        ("result", result),
        ("luck-adjusted result", f"{player.adjusted:.3f}".replace("-", "−")),
    ]
    listed = "".join(f'<dt>{name}</dt><dd class="num">{text}</dd>' for name, text in rows)
    grade = player.grade or "–"
    return (
        f'<article class="card player" style="border-top-color:{_colour(player.seats[0])}">'
        f"<h3>{_dots(player.seats)}{escape(player.name)}</h3>"
        f'<div class="grade" title="{escape(band)}">{grade}</div>'
        f'<p class="soft small">{escape(band)}</p><dl>{listed}</dl></article>'
    )


# -------------------------------------------------------------------------------------- the graph


def _graph(found: Analysis) -> str:
    legend = "".join(
        f"<span>{_dots(player.seats)}{escape(player.name)}</span>" for player in found.players
    )
    return (
        '<h2>Chance to win</h2><section class="card graph">'
        f'<div class="legend">{legend}</div>'
        f"{_chart(found, 1000, 330, 'wide')}{_chart(found, 360, 260, 'narrow')}"
        '<p class="soft small" id="under">Throw by throw, before the next throw. '
        "Numbers mark the costliest mistakes below.</p></section>"
    )


def _chart(found: Analysis, width: int, height: int, kind: str) -> str:
    """Return the graph for one width of screen."""
    left, right, top, bottom = 44, width - 8, 12, height - 26
    last = max(1, len(found.chances) - 1)

    def spot(n: float, chance: float) -> tuple[float, float]:
        x = left + (right - left) * n / last
        return round(x, 1), round(bottom - (bottom - top) * min(max(chance, 0.0), 1.0), 1)

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = spot(0, share)[1]
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{share:.0%}</text>')
    for n in _ticks(last, 5 if kind == "narrow" else 10):
        x = spot(n, 0)[0]
        parts.append(f'<text x="{x}" y="{height - 6}" text-anchor="middle">{n}</text>')
    for k, player in enumerate(found.players):
        points = " ".join(
            f"{x},{y}" for x, y in (spot(n, c) for n, c in enumerate(found.chances[:, k].tolist()))
        )
        parts.append(
            f'<polyline class="curve" stroke="{_colour(player.seats[0])}" points="{points}"/>'
        )
    for rank, decision in enumerate(found.costliest(), 1):
        k = _player_of(found, decision.seat)
        x, y = spot(decision.throw, float(found.chances[decision.throw, k]))
        parts.append(f'<circle class="mark" cx="{x}" cy="{y}" r="9"/>')
        parts.append(
            f'<text class="marked" x="{x}" y="{y + 4.3}" text-anchor="middle">{rank}</text>'
        )
    parts.append(f'<line class="hair" x1="{left}" x2="{left}" y1="{top}" y2="{bottom}"/>')
    ends = ", ".join(
        f"{player.name} {chance:.0%}"
        for player, chance in zip(found.players, found.chances[-1].tolist(), strict=True)
    )
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" data-width="{width}" '
        f'data-left="{left}" data-right="{right}" role="img" '
        f'aria-label="Chances to win throw by throw; at the end {escape(ends)}">'
        f"{''.join(parts)}</svg>"
    )


def _ticks(last: int, most: int) -> range:
    """Return round numbers from 0 to ``last``, at most about ``most`` of them."""
    steps = (base * 10**power for power in range(7) for base in (1, 2, 5))
    step = next(step for step in steps if last / step <= most)
    return range(0, last + 1, step)


# ----------------------------------------------------------------------------------- the decisions


def _ranked(decision: Decision) -> str:
    """Return the moves of a decision as a table."""
    best = decision.ranked[0].move
    rows = []
    for row in decision.ranked:
        kinds = ["best"] * (row.move == best) + ["played"] * (row.move == decision.played)
        tag = f' <span class="tag">{" and ".join(kinds)}</span>' if kinds else ""
        loss = "" if row.loss <= 0.0 else f"−{100 * row.loss:.1f}"
        rows.append(
            f'<tr class="{" ".join(kinds)}"><td>{escape(row.move)}{tag}</td>'
            f'<td class="num">{100 * row.chance:.1f} %</td><td class="num">{loss}</td></tr>'
        )
    head = '<tr><th>move</th><th class="num">chance</th><th class="num">points</th></tr>'
    return f"<table>{head}{''.join(rows)}</table>"


def _mistakes(found: Analysis) -> str:
    worst = found.costliest()
    if not worst:
        return "<h2>Costliest mistakes</h2><p>None: every decision was the best there was.</p>"
    cards = []
    for rank, decision in enumerate(worst, 1):
        player = found.players[_player_of(found, decision.seat)]
        name = f"{rank}. {escape(player.name)}, throw {decision.throw}"
        cards.append(
            f'<article class="card"><h3>{_dots([decision.seat])}{name}</h3>'
            f"{board_with_moves(decision)}"
            f"<p>Thrown a {decision.die}, played <b>{escape(decision.played)}</b>: "
            f"{_points(decision.loss)} points given away.</p>{_ranked(decision)}</article>"
        )
    return (
        '<h2>Costliest mistakes</h2><p class="soft small">Green, solid: the best move. Red, '
        f'dashed: the move played.</p><section class="mistakes">{"".join(cards)}</section>'
    )


def board_with_moves(decision: Decision) -> str:
    """Return the board of a decision as SVG, the best move and the one played drawn as arrows."""
    rules, states = parse_position(decision.position)
    picture = svg(rules, states, width=420, viewer=0)
    layout = layout_of(rules, 0)
    waiting = int((states["pieces"][0, decision.seat, : rules.pieces] == -1).sum())
    arrows = [
        _arrow(rules, layout, decision, move, waiting, colour, dashed)
        for move, colour, dashed in (
            (decision.ranked[0].move, "#0b7a3f", False),
            (decision.played, "#c2192c", True),
        )
    ]
    return picture.strip().removesuffix("</svg>") + "".join(arrows) + "</svg>"


def _arrow(
    rules: Rules, layout: BoardLayout, decision: Decision, move: str, waiting: int, colour: str,
    dashed: bool,
) -> str:  # fmt: skip
    """Return an arrow from where a unit stands to where a move takes it; nothing for a pass."""
    action = parse_move(rules, move)
    if action == rules.board.pass_action:
        return ""
    source = action - 1
    target = 0 if source < 0 else source + decision.die
    begin = layout.spot(decision.seat, source, max(0, waiting - 1))
    return _line(begin, layout.spot(decision.seat, target), colour, dashed)


def _line(begin: Spot, end: Spot, colour: str, dashed: bool) -> str:
    dx, dy = end.x - begin.x, end.y - begin.y
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    x1, y1 = begin.x + 0.5 * begin.radius * ux, begin.y + 0.5 * begin.radius * uy
    tip = min(0.2 * end.radius, length / 3)
    x2, y2 = end.x - tip * ux, end.y - tip * uy
    bx, by = x2 - 26 * ux, y2 - 26 * uy  # where the head begins
    sides = (x2, y2), (bx - 15 * uy, by + 15 * ux), (bx + 15 * uy, by - 15 * ux)
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in sides)
    dash = ' stroke-dasharray="20 12"' if dashed else ""
    line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{bx:.1f}" y2="{by:.1f}"'
    return (
        f'<g class="arrow" stroke-linecap="round"><line {line} stroke="#fff" stroke-width="15"/>'
        f'<line {line} stroke="{colour}" stroke-width="9"{dash}/>'
        f'<polygon points="{head}" fill="{colour}" stroke="#fff" stroke-width="4"/></g>'
    )


def _decisions(found: Analysis) -> str:
    if not found.decisions:
        return "<h2>Every decision</h2><p>Nobody ever had a choice.</p>"
    largest = max(d.loss for d in found.decisions) or 1.0
    rows = []
    for d in found.decisions:
        k = _player_of(found, d.seat)
        width = round(100 * d.loss / largest, 1)
        zero = " zero" if d.loss <= 0.0 else ""
        loss = "best" if d.loss <= 0.0 else f"−{_points(d.loss)}"
        rows.append(
            f'<details class="move{zero}" data-player="{k}" data-loss="{d.loss:.6f}"><summary>'
            f'<span class="num soft">{d.throw}</span>'
            f'<span class="who">{_dots([d.seat])}{escape(found.players[k].name)}</span>'
            f'<span class="die" title="{d.die}">{FACES[d.die]}</span>'
            f"<span>{escape(d.played)}</span>"
            f'<span class="track"><span class="bar" style="width:{width}%"></span></span>'
            f'<span class="num">{loss}</span></summary><div class="inside">{_ranked(d)}'
            f'<p class="small soft"><code>{escape(d.position)}</code></p></div></details>'
        )
    options = "".join(
        f'<option value="{k}">{escape(player.name)} ({_letters(player.seats)})</option>'
        for k, player in enumerate(found.players)
    )
    sizes = "".join(
        f'<option value="{size / 100}">{text}</option>'
        for size, text in ((0, "all"), (0.1, "0.1 points or more"), (1, "1 point or more"),
                           (3, "3 points or more"))
    )  # fmt: skip
    return (
        '<h2>Every decision</h2><section class="card decisions"><div class="filter">'
        '<label>player <select id="who"><option value="">everybody</option>'
        f"{options}</select></label>"
        f'<label>given away <select id="least">{sizes}</select></label>'
        f'<span class="soft" id="shown">{len(rows)} of {len(rows)}</span></div>'
        f"{''.join(rows)}</section>"
    )


def _method(found: Analysis) -> str:
    bands, low = [], 0.0
    for two_players, letter, text in BANDS:
        limit = two_players * 2 / found.rules.players
        span = f"{low:g} and more" if math.isinf(limit) else f"{low:g} to {limit:g}"
        bands.append(f"{letter} {span} ({text})")
        low = limit
    value = found.reference.value
    return (
        '<h2>What the words mean</h2><section class="card small">'
        "<p><b>Loss</b>: chance to win after the best legal move less that after the move played, "
        "over decisions with two legal moves or more. A point is a hundredth of a win.</p>"
        "<p><b>Luck</b>: of a throw, the chance after it less the mean over the six faces; of a "
        "battle and of the lot for the start likewise. <b>Luck-adjusted result</b>: the result "
        "(1 for a win) less all luck of the game; on average over many games it equals the result, "
        "but varies less. One game says little about strength.</p>"
        "<p><b>Grade</b>: by thousandths of a win given away per decision: "
        f"{'; '.join(bands)}.</p>"
        f"<p><b>Values</b>: {escape(value.name)}, hash <code>{escape(value.hash)}</code>; "
        f"rules hash <code>{found.rules.hash}</code>.</p></section>"
    )
