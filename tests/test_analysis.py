"""Analysis of recorded games: identities that must hold, the page, and the page in a browser."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.analysis import BANDS, analyse, find_reference, grade_of
from kimble_app.analysis_page import analysis_page, board_with_moves
from kimble_app.sitting import Sitting, line_up, seat_rules
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import GameRecord, read_record
from kimble_env.rules import find_rules
from tests.programs import chromium

EXACT = "kimble[pass_allowed=no,pieces=2]"


def played(rules: str, agents: list[str], seed: int, most: int | None = None) -> GameRecord:
    """Return the record of a game of agents, cut short after so many throws."""
    seated = seat_rules(rules, None, len(agents) - 1)
    sitting = Sitting(Game(seated, seed=seed), line_up(seated, (), agents), None)
    sitting.let_agents_play(most)
    return sitting.game.record(sitting.names)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rules", ["kimble[pieces=2]", "kombat[pieces=2]", "norske[pieces=2]"])
def test_with_exact_values_a_result_is_luck_and_losses_and_nothing_else(
    rules: str, seed: int
) -> None:
    """Two players: result = 1/2 + luck - own losses + the other's, to the precision of a table.

    (With the lot for the start counted as luck, both are worth 1/2 before it.)
    """
    found = analyse(played(rules, ["random", "cautious"], seed))
    assert found.reference.kind == "exact"
    one, two = found.players
    for mine, other in ((one, two), (two, one)):
        assert mine.adjusted == pytest.approx(0.5 - mine.loss + other.loss, abs=4e-3)
        assert mine.result in (0.0, 1.0)
    assert one.luck == pytest.approx(-two.luck, abs=1e-9)


def test_perfect_play_gives_nothing_away() -> None:
    found = analyse(played("kimble[pieces=2]", ["exact", "random"], 5))
    exact, random = found.players
    assert exact.loss == pytest.approx(0.0, abs=1e-9)
    assert (exact.grade, exact.name) == ("A", "exact")
    assert random.loss > 0.05
    assert all(d.seat == 2 for d in found.costliest())


def test_chances_luck_and_losses_fit_together_in_every_rule_set() -> None:
    for rules in ("kimble", "kombat", "norske"):
        found = analyse(played(rules, ["mixed", "random", "runner"], 4))
        assert found.reference.kind in ("net", "linear")
        assert found.chances.shape == (len(found.throw_luck) + 1, 3)
        assert found.chances.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
        assert np.abs(found.throw_luck.sum(axis=1)).max() < 1e-6
        assert sum(p.adjusted for p in found.players) == pytest.approx(1.0, abs=1e-5)
        for d in found.decisions:
            assert d.loss >= 0
            assert d.ranked[0].loss == 0
            assert [m.chance for m in d.ranked] == sorted(
                (m.chance for m in d.ranked), reverse=True
            )
            assert next(m.loss for m in d.ranked if m.move == d.played) == pytest.approx(d.loss)
            texts = {m.text for m in Game.from_text(d.position).legal_moves}
            assert texts == {m.move for m in d.ranked}
        kept = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert len(kept["decisions"]) == len(found.decisions)
        assert kept["rules_hash"] == find_rules(rules).hash


def test_an_unfinished_game_and_one_that_begins_in_the_middle() -> None:
    whole = played("kimble[pieces=2]", ["random", "cautious"], 3)
    found = analyse(played("kimble[pieces=2]", ["random", "cautious"], 3, most=20))
    assert not found.finished
    assert found.result == "unfinished"
    assert all(p.result is None for p in found.players)
    assert len(found.throw_luck) == 20
    game = Game.from_text("kimble[pieces=2] R3,20/Y8 R 4 1", seed=1)
    game.play("3-7")
    game.throw()
    middle = analyse(game.record())
    assert len(middle.throw_luck) in (0, 1)
    assert len(middle.decisions) == 1
    assert (middle.lot_luck == 0).all()
    assert analyse(whole).throw_luck[:20] == pytest.approx(found.throw_luck, abs=1e-9)


def test_a_seat_that_goes_out_is_neither_luck_nor_choice() -> None:
    game = Game("norske", seed=2, players=3)
    while game.plies < 30:
        game.throw()
        if game.legal_moves:
            game.play(game.legal_moves[0])
    game.remove_seat("B")
    for _ in range(20):
        game.throw()
        if game.legal_moves:
            game.play(game.legal_moves[0])
    found = analyse(game.record())
    assert len(found.throw_luck) == 50
    assert len(found.chances) == 51
    assert found.chances[-1, 1] == pytest.approx(0.0, abs=1e-9)


def test_two_colours_and_boards_without_a_value_of_their_own() -> None:
    record = played("kimble[pieces=1,two_colours=yes]", ["random", "cautious"], 1)
    found = analyse(record)
    assert found.reference.kind == "rollouts"
    assert [p.seats for p in found.players] == [(0, 2), (1, 3)]
    assert found.chances.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
    assert "RY" in analysis_page(found)


def test_what_cannot_be_analysed_says_so(tmp_path: Path) -> None:
    record = played("kimble[pieces=2]", ["random", "random"], 1)
    with pytest.raises(KimbleError, match="unknown evaluator 'nothing'"):
        analyse(record, reference="nothing")
    with pytest.raises(KimbleError, match="0 or 1 throws ahead"):
        analyse(record, ahead=2)
    with pytest.raises(KimbleError, match="option members"):
        find_reference(find_rules("norske[members=20]"))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_records_are_refused_or_analysed(data: st.DataObject) -> None:
    lines = _LINES.copy()
    n = data.draw(st.integers(0, len(lines) - 1))
    kind = data.draw(st.sampled_from(["drop", "twice", "swap", "byte"]))
    if kind == "drop":
        del lines[n]
    elif kind == "twice":
        lines.insert(n, lines[n])
    elif kind == "swap":
        lines[n], lines[n - 1] = lines[n - 1], lines[n]
    else:
        at = data.draw(st.integers(0, len(lines[n]) - 1))
        lines[n] = lines[n][:at] + data.draw(st.characters()) + lines[n][at + 1 :]
    try:
        analyse(read_record(lines))
    except KimbleError:
        pass


_LINES = played("kimble[pieces=1]", ["random", "cautious"], 6).to_lines()


def test_grades() -> None:
    assert [grade_of(limit - 0.01) for limit, _, _ in BANDS[:-1]] == list("ABCDE")
    assert grade_of(1e9) == "F"
    assert grade_of(0.6, 4) == "B"
    assert grade_of(0.4, 4) == "A"


# ---------------------------------------------------------------------------------------- the page


class _Reader(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    EMPTY = ("meta", "link", "br", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.links += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1


def test_the_page_holds_everything_and_names_are_only_text() -> None:
    record = played("kimble[pieces=2]", ["random", "cautious"], 3)
    nasty = GameRecord(**{**vars(record), "players": ("</script><b>&", "'\" onclick=x")})
    found = analyse(nasty)
    page = analysis_page(found)
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.counts["details"] == len(found.decisions)
    assert reader.counts["script"] == 2
    assert "&lt;/script&gt;&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert reader.links == ["data:,"]
    assert "Exact: the values come from the table" in page
    assert page.count('class="arrow"') >= 3


def test_moves_are_drawn_as_arrows_and_a_pass_as_none() -> None:
    found = analyse(played("kimble[pieces=2]", ["random", "cautious"], 3))
    decision = next(d for d in found.decisions if "pass" not in (d.played, d.ranked[0].move))
    assert board_with_moves(decision).count('class="arrow"') == 2
    passing = replace(decision, played="pass")
    assert board_with_moves(passing).count('class="arrow"') == 1


SCRIPT = """
<script>
const seen = [];
window.addEventListener('error', e => seen.push(e.message));
console.error = (...words) => seen.push(words.join(' '));
window.addEventListener('load', () => {
  const select = document.getElementById('who');
  select.value = '0'; select.dispatchEvent(new Event('change'));
  const chart = [...document.querySelectorAll('.graph svg')].find(c => c.clientWidth > 0);
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2}));
  document.title = JSON.stringify({
    seen, shown: document.getElementById('shown').textContent,
    under: document.getElementById('under').textContent,
    wide: document.documentElement.scrollWidth, window: innerWidth,
    charts: [...document.querySelectorAll('.graph svg')].map(c => c.clientWidth > 0),
  });
});
</script>
"""


@pytest.mark.parametrize("width", [500, 1280])
def test_a_browser_opens_the_page_without_errors(tmp_path: Path, width: int) -> None:
    found = analyse(played("kimble[pieces=2]", ["random", "cautious"], 3))
    page = tmp_path / "page.html"
    page.write_text(analysis_page(found).replace("<head>", "<head>" + SCRIPT), encoding="utf-8")
    text = chromium(page, width, tmp_path)
    told = json.loads(text.split("<title>")[1].split("</title>")[0])
    assert told["seen"] == []
    own = sum(d.seat == 0 for d in found.decisions)
    assert told["shown"] == f"{own} of {len(found.decisions)}"
    assert told["under"].startswith("after throw ")
    assert told["wide"] <= told["window"], "wider than the screen"
    assert told["charts"] == ([False, True] if width < 600 else [True, False])


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from kimble_app.cli import app
    from kimble_env.notation import write_record

    path = tmp_path / "game.jsonl"
    write_record(played("kimble[pieces=2]", ["random", "cautious"], 3), path)
    done = CliRunner().invoke(app, ["analyze", str(path)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "Exact" in done.stdout
    assert (tmp_path / "game.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    done = CliRunner().invoke(app, ["analyze", str(path), "--json", "--reference", "linear"])
    assert json.loads(done.stdout)["reference"]["kind"] == "linear"
    (tmp_path / "game.html").unlink()
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_written_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from evaluation import analysis
    from kimble_app.cli import app
    from kimble_env.notation import write_record

    def work(*arguments: Any, **words: Any) -> Any:
        raise AssertionError("the work has begun")

    path = tmp_path / "game.jsonl"
    write_record(played("kimble[pieces=2]", ["random", "cautious"], 3, 5), path)
    monkeypatch.setattr(analysis, "analyse", work)
    page = tmp_path / "no" / "page.html"
    done = CliRunner().invoke(app, ["analyze", str(path), "--out", str(page)])
    assert isinstance(done.exception, FileNotFoundError)
    assert done.exception.filename == str(page.parent)
    done = CliRunner().invoke(app, ["analyze", str(path), "--out", str(tmp_path)])
    assert isinstance(done.exception, IsADirectoryError)


def test_nobody_waits_for_a_table_to_be_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best reference is what lies ready: solving takes minutes, and is asked for by name."""
    from agents.exact import table
    from kimble_app.ranking import best_judge

    def solve(*arguments: Any, **words: Any) -> Any:
        raise AssertionError("a table is being solved")

    monkeypatch.setattr(table, "Solver", solve)
    monkeypatch.setattr(table, "table_path", lambda game: Path("nowhere"))
    rules = find_rules("kimble[pieces=3]", players=2)
    assert find_reference(rules).kind in ("net", "linear")
    assert best_judge(rules) != "exact"
    assert table.table_is_ready(find_rules("kimble[pieces=2]", players=2))
    assert not table.table_is_ready(find_rules("kimble[pieces=2]", players=3))
