"""The page of a tournament: what is on it, and that a browser opens it at any width."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evaluation.report import csv_texts, matrix_rows, print_report, summarise
from evaluation.report_html import page, write_html
from tests.programs import chromium
from tests.test_tournament import synthetic

LOSSES = {
    "reference": "public:kimble-4p <x>",
    "decisions": 2000,
    "exact": False,
    "bins": ["< 0.5", "to 5", "> 5"],
    "agents": [
        {"agent": name, "mean": 4.25, "half_width": 0.3, "shares": [0.7, 0.2, 0.1]}
        for name in ("mixed", "random")
    ],
}


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    truth = {"random": 0.0, "cautious": 0.5, "mixed": 0.8, 'weights:{"capture": 1}': 0.3}
    return summarise(synthetic(truth, 4, 60, 1), running=False)


class Reader(HTMLParser):
    """Collects the text and checks that tags are closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "wbr"):
            self.open.append(tag)
        values = [v or "" for k, v in attrs if k in ("src", "href")]
        self.outside += [v for v in values if not v.startswith("data:")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_says_what_the_summary_says(summary: dict[str, Any], tmp_path: Path) -> None:
    summary = {**summary, "losses": LOSSES}
    write_html(summary, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.outside == []  # self-contained
    assert "<script" not in text
    assert "url(" not in text
    words = "".join(reader.text)
    for agent in summary["agents"]:
        assert agent["agent"] in words
        assert f"{100 * agent['points']:.1f}" in words
    for row in summary["matrix"]:
        for share in row:
            assert share is None or f"{100 * share:.1f}" in words
    assert "mean 4.25 ± 0.30 mWP" in words
    assert "public:kimble-4p <x>" in words  # names are escaped
    assert "are flattered" in words
    exact = {**summary, "losses": {**LOSSES, "exact": True}}
    assert "are flattered" not in page(exact)
    saved = dict(re.findall(r'download="([^"]+)" href="data:[^;]+;base64,([^"]+)"', text))
    assert json.loads(base64.b64decode(saved["summary.json"])) == json.loads(json.dumps(summary))
    assert "mixed,4.25,0.3,0.7,0.2,0.1" in csv_texts(summary)["losses.csv"]
    for name, content in csv_texts(summary).items():
        assert base64.b64decode(saved[name]).decode() == content


def test_the_terminal_tells_losses_too(
    summary: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    print_report({**summary, "losses": LOSSES})
    text = capsys.readouterr().out
    assert "4.25 ±0.30" in text
    assert "public:kimble-4p <x>" in text
    print_report({**summary, "losses_missing": "there is no public set"})
    text = capsys.readouterr().out
    assert "4.25" not in text
    assert "no losses: there is no public set" in text


def test_the_matrix_fits_the_terminal_or_is_left_out(
    summary: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {
        **summary,
        "agents": [{**summary["agents"][0], "agent": f"an-agent-of-a-long-name-{k}"}
                   for k in range(16)],
        "matrix": [[None if j == k else 1.0 if j > k else 0.346 for j in range(16)]
                   for k in range(16)],
    }  # fmt: skip
    for width, cell in ((130, "34.6"), (80, "35")):
        found = matrix_rows(many, width)
        assert found is not None
        head, rows = found
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        assert sum(widths) + len(head) - 1 <= width
        assert rows[1][1] == cell
        assert rows[1][0].startswith("2 an-agent")
    assert matrix_rows(many, 60) is None
    monkeypatch.setenv("COLUMNS", "80")
    print_report(many)
    assert "…" in (text := capsys.readouterr().out)
    assert max(map(len, text.splitlines())) <= 80
    assert "100 100 100" in text
    monkeypatch.setenv("COLUMNS", "60")
    print_report(many)
    assert "The matrix of 16 agents is too wide here" in capsys.readouterr().out


def test_a_failed_self_test_is_seen(summary: dict[str, Any]) -> None:
    bad = {**summary, "self_tests": [{"name": "seats", "passed": False, "text": "no"}]}
    assert "<b>FAILED</b> seats: no" in page(bad)
    assert "Loss per decision" not in page(bad)


SCRIPT = """<script>
addEventListener('load', () => {
  const boxes = [...document.querySelectorAll('.bar, .dot, .hist i, .lane i')];
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth, window: innerWidth,
    sections: document.querySelectorAll('section').length,
    dots: document.querySelectorAll('.dot').length,
    bars: boxes.filter(b => b.getBoundingClientRect().width > 0).length, boxes: boxes.length,
    small: [...document.querySelectorAll('td, p, span')].filter(
      e => e.innerText && parseFloat(getComputedStyle(e).fontSize) < 12).length,
  });
});
</script>"""


@pytest.mark.parametrize("width", [500, 1280])
def test_a_browser_shows_the_page(summary: dict[str, Any], tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        page({**summary, "losses": LOSSES}).replace("<head>", "<head>" + SCRIPT), encoding="utf-8"
    )
    text = chromium(path, width, tmp_path)
    told = json.loads(text.split("<title>")[1].split("</title>")[0])
    assert told["wide"] <= told["window"], "wider than the screen"
    assert (told["sections"], told["dots"]) == (8, 4)
    assert told["bars"] > 0.9 * told["boxes"] > 20
    assert told["small"] == 0
