"""The report of a tournament as one page of HTML that needs nothing else: no script, no network.

Plots are boxes placed by percentages, so that text keeps its size on a phone and on a wide screen.
The data are in the page too, as JSON and CSV to save.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from evaluation.report import (
    caption_of,
    csv_texts,
    ladder_rows,
    losses_note,
    percent,
    title_of,
)
from kimble_env.files import write_whole

_SEAT_COLOURS = {"R": "#d64545", "B": "#3b6fd4", "Y": "#d9a400", "G": "#2f9e5b"}
_LONGEST_BAR = 0.995  # share of the games that the length plot shows; the tail is named below it


def write_html(summary: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a summary (of ``report.summarise``) to a file.

    ``summary["losses"]``, if there, adds the histogram of losses per decision.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, page(summary))


def page(summary: dict[str, Any]) -> str:
    """Return the page as text."""
    sections = [
        _section("Ratings", _ratings(summary), _rating_note(summary)),
        _section("Ladder", _ladder(summary), _points_note(summary)),
        _section(
            "Each against each",
            _matrix(summary),
            "Points of the row against the column, par 50. Hover or tap for the interval.",
        ),
        _section(
            "Win share by seat",
            _seats(summary),
            "Share of the games that an agent won from each seat, par "
            f"{percent(1 / summary['players'])} %. Seats are in the order of play.",
        ),
        _losses(summary),
        _section("Length of the games", _lengths(summary), _length_note(summary)),
        _section("What they did", _habits(summary), "Means per game and seat of the agent."),
        _section("How it was made", _made(summary), ""),
    ]
    facts = [
        ("games", f"{summary['games']:,}"),
        ("agents", str(len(summary["agents"]))),
        ("mean length", f"{summary['mean_length']:.0f} throws"),
        ("cut off", f"{100 * summary['truncated_share']:.3f} %"),
    ]
    if summary["adjust"]:
        facts.append(("variance", f"÷ {summary['variance_ratio']:.1f} by {summary['adjust']}"))
    chips = "".join(f"<li><b>{escape(v)}</b><span>{escape(k)}</span></li>" for k, v in facts)
    title = f"{summary['rules']}, {summary['players']} players"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Kimble ladder: {escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><p class=over>Kimble tournament</p><h1>{escape(title)}</h1>"
        f"<ul class=facts>{chips}</ul></header>{''.join(sections)}</main></body></html>\n"
    )


def _section(title: str, body: str, note: str) -> str:
    below = f"<p class=note>{note}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{body}{below}</section>"


# -------------------------------------------------------------------------------------- the ratings


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that cover low..high."""
    span = max(high - low, 1e-9)
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    return [k * step for k in range(first, last + 1)]


def _ratings(summary: dict[str, Any]) -> str:
    agents = summary["agents"]
    ticks = _ticks(min(a["elo95"][0] for a in agents), max(a["elo95"][1] for a in agents))
    span = ticks[-1] - ticks[0]

    def at(x: float) -> float:
        return 100.0 * (x - ticks[0]) / span

    lines = "".join(f'<i class=grid style="left:{at(t):.2f}%"></i>' for t in ticks)
    rows = []
    for agent in agents:
        low, high = agent["elo95"]
        text = f"{agent['elo']:.0f} Elo, 95 % {low:.0f} to {high:.0f}"
        bar = f'<i class=bar style="left:{at(low):.2f}%;width:{at(high) - at(low):.2f}%"></i>'
        dot = f'<i class=dot style="left:{at(agent["elo"]):.2f}%"></i>'
        rows.append(
            f"<div class=name>{_broken(agent['agent'])}</div>"
            f'<div class=track title="{text}">{lines}{bar}{dot}</div>'
            f"<div class=value>{agent['elo']:.0f}</div>"
        )
    labels = "".join(f'<span style="left:{at(t):.2f}%">{t:.0f}</span>' for t in ticks)
    return (
        f"<div class=dots>{''.join(rows)}<div></div><div class=axis>{labels}</div><div></div></div>"
    )


def _rating_note(summary: dict[str, Any]) -> str:
    zero = "<code>random</code> stands at 0" if summary["anchor"] else "their mean is 0"
    return (
        f"Elo points of a Plackett-Luce model ({zero}): 400 points are ten times the strength. "
        "Bars are 95 % intervals from drawing whole seat blocks again."
    )


# --------------------------------------------------------------------------------------- the tables


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 0) -> str:
    """Return a table; column ``left`` holds names, the others numbers."""
    top = "".join(
        f"<th{' class=left' if k == left else ''}>{escape(name)}</th>"
        for k, name in enumerate(head)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td class=left>{_broken(cell)}</td>" if k == left else f"<td>{escape(cell)}</td>"
            for k, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f"<div class=wide><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _broken(text: str) -> str:
    """Return a text for the page that may be broken where the options of a spec begin."""
    return re.sub(r"([:,=/])", r"\1<wbr>", escape(text))


def _ladder(summary: dict[str, Any]) -> str:
    head, rows = ladder_rows(summary)
    return _table(head, rows, left=1)


def _points_note(summary: dict[str, Any]) -> str:
    text = escape(caption_of(summary))
    if summary["adjust"]:
        text += " Raw points: " + escape(
            ", ".join(f"{a['agent']} {percent(a['raw_points'])}" for a in summary["agents"]) + "."
        )
    return text


def _habits(summary: dict[str, Any]) -> str:
    head = [
        "agent",
        "throws",
        "choices",
        "passed %",
        "captures",
        "lost",
        "game length",
        "cut off %",
    ]
    rows = [
        [
            agent["agent"],
            f"{agent['throws_per_game']:.1f}",
            f"{agent['choices_per_game']:.1f}",
            percent(agent["pass_share"]),
            f"{agent['captures_per_game']:.2f}",
            f"{agent['lost_per_game']:.2f}",
            f"{agent['mean_length']:.0f}",
            percent(agent["truncated_share"], 3),
        ]
        for agent in summary["agents"]
    ]
    return _table(head, rows)


def _matrix(summary: dict[str, Any]) -> str:
    names = [agent["agent"] for agent in summary["agents"]]
    largest = max(
        (abs(x - 0.5) for row in summary["matrix"] for x in row if x is not None), default=0.5
    )
    top = "".join(f'<th title="{escape(n)}">{k}</th>' for k, n in enumerate(names, 1))
    rows = []
    for k, name in enumerate(names):
        cells = []
        for j, x in enumerate(summary["matrix"][k]):
            if x is None:
                cells.append(f"<td class={'self' if j == k else 'none'}></td>")
                continue
            width = summary["matrix_half_width"][k][j]
            text = f"{name} against {names[j]}: {percent(x, 2)} ± {percent(width, 2)} points"
            strength = (abs(x - 0.5) / max(largest, 1e-9)) ** 0.7
            kind = "up" if x >= 0.5 else "down"
            cells.append(
                f'<td class={kind} style="--s:{strength:.2f}" title="{escape(text)}">'
                f"{percent(x)}</td>"
            )
        rows.append(f"<tr><th class=left>{k + 1}&ensp;{escape(name)}</th>{''.join(cells)}</tr>")
    kind = "heat many" if len(names) > 12 else "heat"
    return (
        f"<div class=wide><table class='{kind}'><thead><tr><th class=left></th>{top}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


# ----------------------------------------------------------------------------------------- the bars


def _seats(summary: dict[str, Any]) -> str:
    agents = summary["agents"]
    most = max(max(a["win_share_by_seat"].values()) for a in agents)
    top = _ticks(0.0, 100.0 * most, 4)[-1]
    par = 100.0 / summary["players"] / top * 100.0
    groups = []
    for agent in agents:
        bars = "".join(
            f'<div class=seat><b style="color:{_seat_colour(seat)}">{escape(seat)}</b>'
            f'<div class=lane><i style="width:{100 * share * 100 / top:.2f}%;'
            f'background:{_seat_colour(seat)}"></i><u style="left:{par:.2f}%"></u></div>'
            f"<span>{percent(share)}</span></div>"
            for seat, share in agent["win_share_by_seat"].items()
        )
        groups.append(f"<div class=card><h3>{_broken(agent['agent'])}</h3>{bars}</div>")
    return f"<div class=cards>{''.join(groups)}</div>"


def _seat_colour(seat: str) -> str:
    return _SEAT_COLOURS.get(seat[:1], "#888")


def _histogram(heights: Sequence[float], labels: Sequence[tuple[float, str]], what: str) -> str:
    """Return a histogram: heights of equal bins, labels at 0..1 of its width."""
    most = max(heights, default=1.0) or 1.0
    bars = "".join(f'<i style="height:{100 * h / most:.2f}%"></i>' for h in heights)
    axis = "".join(f'<span style="left:{100 * x:.2f}%">{escape(t)}</span>' for x, t in labels)
    return (
        f'<div class=hist role=img aria-label="{escape(what)}"><div class=bars>{bars}</div>'
        f"<div class=axis>{axis}</div></div>"
    )


def _lengths(summary: dict[str, Any]) -> str:
    lengths = summary["lengths"]
    size = lengths["bin"]
    games = {int(k): v for k, v in lengths["games"].items()}
    total, below, last = sum(games.values()), 0, 0
    for start in sorted(games):
        below += games[start]
        last = start
        if below >= _LONGEST_BAR * total:
            break
    bins = list(range(0, last + size, size))
    end = last + size
    labels = [(t / end, f"{t:.0f}") for t in _ticks(0, end) if t <= end]
    return _histogram([games.get(b, 0) for b in bins], labels, "games by number of throws")


def _length_note(summary: dict[str, Any]) -> str:
    q = summary["lengths"]["quantiles"]
    return (
        f"Throws per game, forced ones included, in bins of {summary['lengths']['bin']}; the "
        f"longest {100 * (1 - _LONGEST_BAR):.1f} % are not drawn. 5 % of the games end within "
        f"{q['5']} throws, half within {q['50']}, 95 % within {q['95']}."
    )


def _losses(summary: dict[str, Any]) -> str:
    """Return the section of losses per decision, empty if they were not measured."""
    losses = summary.get("losses")
    if not losses:
        return ""
    cards = []
    names = losses["bins"]
    for agent in losses["agents"]:
        bars = "".join(
            f"<div class=seat><b>{escape(name)}</b><div class=lane>"
            f'<i style="width:{100 * share:.2f}%"></i></div><span>{percent(share)}</span></div>'
            for name, share in zip(names, agent["shares"], strict=True)
        )
        cards.append(
            f"<div class='card loss'><h3>{_broken(agent['agent'])}</h3>"
            f"<p>mean {agent['mean']:.2f} ± {agent['half_width']:.2f} mWP</p>{bars}</div>"
        )
    note = (
        "Win probability thrown away per decision, in thousandths (mWP): share of decisions (%) "
        f"by size of their loss. {escape(losses_note(losses))}"
    )
    return _section("Loss per decision", f"<div class=cards>{''.join(cards)}</div>", note)


# ------------------------------------------------------------------------------------- the colophon


def _made(summary: dict[str, Any]) -> str:
    tests = "".join(
        f"<li class={kind}><b>{state}</b> {escape(test['name'])}: {escape(test['text'])}</li>"
        for test in summary["self_tests"]
        for kind, state in [("ok", "ok") if test["passed"] else ("bad", "FAILED")]
    )
    versions = ", ".join(f"{k} {v}" for k, v in summary["versions"].items())
    facts = (
        f"{escape(title_of(summary))}. Rules hash <code>{escape(summary['rules_hash'])}</code>, "
        f"seed {summary['seed']}, {summary['cpu_seconds']:,.0f} CPU seconds; {escape(versions)}. "
        "Every pairing met the same dice in each arrangement of its seats."
    )
    files = [("summary.json", "application/json", json.dumps(summary, indent=1))]
    files += [(name, "text/csv", text) for name, text in csv_texts(summary).items()]
    links = " ".join(
        f'<a download="{name}" href="data:{kind};base64,'
        f'{base64.b64encode(text.encode()).decode()}">{name}</a>'
        for name, kind, text in files
    )
    return f"<p>{facts}</p><ul class=tests>{tests}</ul><p class=files>{links}</p>"


_STYLE = """
:root{--ink:#1c2430;--soft:#5d6b7c;--line:#dfe5ec;--paper:#fff;--page:#f3f5f8;--main:#1f6fb2;
--up:31,111,178;--down:200,92,40;--shade:rgba(28,36,48,.22);color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf3;--soft:#9aa8b8;--line:#313c49;--paper:#1b222b;
--page:#11161c;--main:#62a9e6;--shade:rgba(0,0,0,.6);--up:70,150,220;--down:226,120,64}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 16px 48px}
header{padding:8px 4px 4px}
.over{margin:0;color:var(--main);font-weight:600;font-size:14px}
h1{margin:0 0 12px;font-size:clamp(24px,5vw,36px);line-height:1.2;overflow-wrap:anywhere}
h2{margin:0 0 14px;font-size:20px}
h3{margin:0 0 6px;font-size:15px;overflow-wrap:anywhere}
section{background:var(--paper);border:1px solid var(--line);border-radius:12px;padding:18px;
margin-top:16px}
.note{margin:14px 0 0;color:var(--soft);font-size:14px}
.facts{display:flex;flex-wrap:wrap;gap:8px;list-style:none;margin:0;padding:0}
.facts li{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:6px 12px}
.facts b{display:block;font-size:17px;font-variant-numeric:tabular-nums}
.facts span{color:var(--soft);font-size:13px}
.dots{display:grid;grid-template-columns:minmax(72px,max-content) 1fr max-content;
column-gap:12px;align-items:center}
.dots .name{max-width:34vw;overflow-wrap:anywhere;font-size:15px;line-height:1.25;padding:4px 0}
.dots .value{font-variant-numeric:tabular-nums;text-align:right;font-weight:600}
.track{position:relative;align-self:stretch;min-height:30px}
.track i,.lane u{position:absolute;display:block}
.grid{top:0;bottom:0;width:1px;background:var(--line)}
.bar{top:50%;height:8px;margin-top:-4px;min-width:2px;border-radius:4px;background:var(--main);
opacity:.35}
.dot{top:50%;width:12px;height:12px;margin:-6px 0 0 -6px;border-radius:50%;background:var(--main)}
.axis{position:relative;height:22px;color:var(--soft);font-size:13px}
.axis span{position:absolute;top:4px;transform:translateX(-50%);white-space:nowrap}
.wide{overflow-x:auto;background:
linear-gradient(90deg,var(--paper) 50%,transparent) 0 0/36px 100% no-repeat local,
linear-gradient(270deg,var(--paper) 50%,transparent) 100% 0/36px 100% no-repeat local,
linear-gradient(90deg,var(--shade),transparent) 0 0/14px 100% no-repeat scroll,
linear-gradient(270deg,var(--shade),transparent) 100% 0/14px 100% no-repeat scroll}
table{border-collapse:collapse;width:100%;font-size:15px;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600;font-size:14px}
.left{text-align:left}
tbody th.left{color:var(--ink)}
tbody tr:last-child>*{border-bottom:0}
.heat{border-collapse:separate;border-spacing:2px;width:auto}
.heat th,.heat td{border:0;padding:6px 8px}
.heat thead th{text-align:center}
.heat td{border-radius:5px;text-align:center;min-width:48px}
.heat.many th,.heat.many td{padding:5px 4px;font-size:13px}
.heat.many td{min-width:40px}
.heat .up{background:rgba(var(--up),calc(var(--s)*.55))}
.heat .down{background:rgba(var(--down),calc(var(--s)*.55))}
.heat .self{background:var(--line);opacity:.5}
.heat tbody th.left{position:sticky;left:0;background:var(--paper);max-width:38vw;
overflow:hidden;text-overflow:ellipsis}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:18px 28px}
.seat{display:grid;grid-template-columns:26px 1fr 42px;gap:8px;align-items:center;font-size:14px}
.loss .seat{grid-template-columns:62px 1fr 42px}
.loss p{margin:0 0 4px;color:var(--soft);font-size:14px}
.loss .seat b{font-weight:400;color:var(--soft)}
.seat span{text-align:right;font-variant-numeric:tabular-nums}
.lane{position:relative;height:12px;background:var(--page);border-radius:3px}
.lane i{display:block;height:100%;border-radius:3px;background:var(--main)}
.lane u{top:-2px;bottom:-2px;width:2px;background:var(--ink);opacity:.55}
.hist{margin-right:14px}
.hist .bars{display:flex;align-items:flex-end;height:190px;gap:1px;
border-bottom:1px solid var(--soft)}
.hist .bars i{flex:1;background:var(--main);border-radius:2px 2px 0 0;min-width:0}
.tests{list-style:none;margin:0 0 12px;padding:0;font-size:15px}
.tests .ok b{color:#2f9e5b}.tests .bad b{color:#d64545}
.files a{display:inline-block;margin:0 10px 6px 0;color:var(--main)}
code{font-size:.92em}
@media(max-width:560px){section{padding:14px 12px}th,td{padding:6px 5px}table{font-size:14px}
td.left{white-space:normal;overflow-wrap:anywhere;min-width:96px;max-width:30vw}
.heat td{min-width:40px;padding:6px 3px}
.dots .name{max-width:30vw;font-size:14px}.hist{margin-right:14px}
.hist .bars{height:140px}}
@media print{body{background:#fff}section{break-inside:avoid}}
"""
