"""The page of a training run: learning curve, results with intervals, a finished board.

One self-contained HTML file: styles, plot and board are inside it.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation import MatchResult
from kimble_env.files import write_whole
from kimble_env.rules import Rules

HEADER = ("agent", "against", "wins %", "95 % interval", "games", "cut off %")

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dee6; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf3; --soft: #9aa7b6; --line: #333d49; --paper: #12171d; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p, figcaption, caption { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
@media (max-width: 40rem) { table { font-size: .8rem; } th, td { padding: .25rem .3rem; } }
caption { text-align: left; padding-bottom: .4rem; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
.plot { background: #fff; border-radius: 8px; }
.board svg { max-width: min(100%, 34rem); display: block; margin: 0 auto; }
"""


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """Return the evaluations of a run, in order."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def curve_svg(rows: Sequence[dict[str, Any]], par: float) -> str:
    """Return the learning curve as SVG: win share by decisions, with 95 % bands."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.5, 4.2), layout="constrained")
    decisions = [row["decisions"] / 1e6 for row in rows]
    for k, name in enumerate(rows[0]["against"]):
        figures = [row["against"][name] for row in rows]
        low, high = zip(*(f["interval95"] for f in figures), strict=True)
        colour = f"C{k}"
        axes.fill_between(
            decisions,
            [100 * x for x in low],
            [100 * x for x in high],
            color=colour,
            alpha=0.18,
            lw=0,
        )
        shares = [100 * f["win_share"] for f in figures]
        axes.plot(decisions, shares, "o-", color=colour, label=f"against {name}", ms=4)
    axes.axhline(100 * par, color="0.45", ls="--", lw=1)
    axes.annotate("par", (0, 100 * par), (4, 3), textcoords="offset points", color="0.35")
    axes.set(xlabel="decisions of the learner, millions", ylabel="games won, %")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "kimble"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def result_rows(results: Sequence[MatchResult]) -> list[tuple[str, ...]]:
    """Return a row per match for its first agent: the columns of HEADER."""
    rows = []
    for result in results:
        low, high = result.wilson(0)
        others = sorted({re.sub(r" \(\d+\)$", "", name) for name in result.agents[1:]})
        rows.append(
            (
                result.agents[0],
                f"{len(result.agents) - 1} × {', '.join(others)}",
                f"{100 * result.share(0):.1f}",
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{result.games:,}",
                f"{100 * result.truncated / result.games:.2f}",
            )
        )
    return rows


def table_html(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="wide"><table><caption>{html.escape(caption)}</caption>'
        f"<thead>{line('th', header)}</thead>\n<tbody>{body}</tbody></table></div>"
    )


def write_run_page(folder: Path, rules: Rules) -> Path:
    """Write ``report.html`` of a run from its metrics: the curves and the last evaluation.

    Returns:
        Where the page is.
    """
    rows = read_curve(folder)
    last = rows[-1]
    lines = [
        (
            name,
            f"{100 * found['win_share']:.1f}",
            "{:.1f} to {:.1f}".format(*(100 * x for x in found["interval95"])),
            f"{found['games']:,}",
            f"{100 * found['truncated_share']:.2f}",
        )
        for name, found in last["against"].items()
    ]
    caption = f"The last evaluation: one policy against {rules.players - 1} of each"
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    parts = [
        (
            "Learning curve",
            f'<figure class="plot">{curve_svg(rows, 1.0 / rules.players)}</figure>',
        ),
        ("Strength", table_html(caption, HEADER[1:], lines)),
        (
            "Settings",
            table_html("", ("name", "value"), [(k, str(v)) for k, v in settings["config"].items()]),
        ),
        (
            "Versions",
            table_html("", ("library", "version"), list(settings["versions"].items())),
        ),
    ]
    intro = (
        f"Masked PPO learned {rules} with {rules.players} players from {last['decisions']:,} "
        f"decisions in {last['seconds'] / 60:.1f} minutes. Bands and intervals are 95 % Wilson; "
        f"every seat rotation is played on equal dice; par is {100 / rules.players:.0f} %."
    )
    path = folder / "report.html"
    write_page(path, "Kimble RL: a run of masked PPO", intro, parts)
    return path


def write_page(path: Path, title: str, intro: str, parts: Sequence[tuple[str, str]]) -> None:
    """Write a self-contained page: ``parts`` are (heading, HTML)."""
    sections = "\n".join(f"<h2>{html.escape(name)}</h2>\n{part}" for name, part in parts)
    write_whole(
        path,
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n<p>{html.escape(intro)}</p>\n{sections}\n"
        "</body></html>\n",
    )
