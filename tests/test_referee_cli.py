"""``kimble referee``: the desk key by key, the file that survives, the page, and the terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from kimble_app.match_file import MatchFile, read_match
from kimble_app.protocol import protocol_page
from kimble_app.referee_cli import begin_match, read_team
from kimble_app.referee_desk import HELP, MENU, Desk, clip, in_effect, minutes, paint
from kimble_app.terminal import split_keys
from kimble_env.errors import KimbleError
from kimble_env.refereed import RefereedGame

ROOT = Path(__file__).resolve().parent.parent
R, B, Y, G = range(4)
TEAMS = {"R": [("Aino", "vichy"), ("Eero", "beer")], "B": [("Bo", "vichy"), ("Ida", "cider")]}


class Table:
    """A desk with a clock that the test moves."""

    def __init__(self, text: str = "norske R3/B1/Y-/G- R - 1", **words: Any) -> None:
        self.clock, self.saved = 0.0, 0
        self.game = RefereedGame.from_text(text, seed=1, teams=TEAMS, **words)
        self.desk = Desk(self.game, lambda: self.clock, self._save, lambda: "page.html")

    def _save(self) -> None:
        self.saved = len(self.game.log)

    def press(self, *keys: str, wait: float = 0.0) -> None:
        for key in keys:
            self.clock += wait
            self.desk.press(key)
            assert self.saved in (0, len(self.game.log)), "something was done but not saved"

    def type(self, text: str) -> None:
        self.press(*text, "enter")

    @property
    def screen(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(self.desk.lines(80)))

    @property
    def said(self) -> str:
        return "\n".join(text for _, text in self.desk.messages)


# -------------------------------------------------------------------------------------- the desk


def test_a_cup_from_the_throw_to_the_empty_glass_is_one_key_per_call() -> None:
    table = Table()
    table.press("5")
    assert "red has thrown 5: 1 3-8" in table.screen
    table.press("1", wait=1)
    assert "blue owes 1 cup (hit): choose who drinks" in table.screen
    table.press("a", "p", "c", "s", wait=1)
    table.clock += 20
    assert re.search(r"20 of 45 s  \[#{20}\.{25}\]", table.screen)
    table.press("e", wait=18)
    assert "blue, Bo: the cup is empty after 38 s" in table.said
    assert "blue to throw" in table.screen
    assert "stays 5:00" in table.screen
    calls = [entry["call"] for entry in table.game.log[1:]]
    assert calls == ["throw", "move", "drinker", "pour", "table", "start", "end"]


def test_the_space_bar_makes_the_call_that_is_due() -> None:
    table = Table("norske R9/B4x3,20/Y-/G- R 2 1")
    table.press("1", " ")
    assert "press a or b" in table.said
    table.press("b")
    for _ in range(3):
        table.press(" ", " ", " ", " ", wait=1)
    assert not table.game.referee.gated
    assert table.game.referee.state.teams[B].members[1].drunk == 3
    table.press(" ")
    assert "press 1-6 for the die" in table.said


def test_whole_seconds_of_a_cup_count_from_its_start() -> None:
    table = Table("norske R9/B4x3,20/Y-/G- R 2 1")
    table.press("1", "a", "p", "c")
    table.clock = 10.9
    table.press("s")
    table.clock = 56.2  # 45.3 s later, though the clock shows 46 seconds more
    table.press("e")
    assert "empty after 45 s" in table.said
    table.press("p", "c")
    table.clock = 100.9
    table.press("s")
    table.clock = 146.95
    table.desk.tick()
    assert "the cup is late" in table.said
    assert table.desk.bell
    assert "Ida must say whether to go on alone" in table.screen
    table.press("y")
    assert "drinks the unfinished cups, refilled: 2" in table.said
    assert "solo" in table.screen


def test_breaks_are_shown_and_end() -> None:
    table = Table("norske R9/B4x3,20/Y-/G- R 2 1")
    table.press("1", "a", "p", "c", "s")
    table.press("e", wait=10)
    assert "break: 30 s left" in table.screen
    table.press("k", wait=5)
    assert "the break is over" in table.said
    table.press("k")
    assert "the break is over, or was not earned" in table.said
    table.press("p", "c", "s")
    table.press("e", wait=10)
    table.clock += 29
    assert not table.desk.tick()
    table.clock += 1
    assert table.desk.tick()
    assert table.game.log[-1]["call"] == "tick"


def test_members_are_chosen_with_the_arrows() -> None:
    table = Table()
    table.press("down", "l", wait=1)
    assert "red, Eero: leaves the table" in table.said
    assert re.search(r"> red +Eero +beer +away", table.screen)
    table.press("z", "up", "v")
    assert "red, Aino: out of the competition (vomit)" in table.said
    table.press("n")
    assert "red: the team is out of the game" in table.said
    assert table.game.to_text() == "norske R-/B1/Y-/G- B - 1 out=R"
    table.press("up", "o")
    assert "vichy is opened only to pour an owed cup" in table.said


def test_errors_are_said_and_ring() -> None:
    table = Table()
    for key, words in (
        ("s", "nothing is owed"),
        ("y", "nobody has to decide"),
        ("7", "the die must be a whole number 1..6"),
        ("x", "the key 'x' means nothing here"),
        ("U", "there is nothing to take back"),
    ):
        table.press(key)
        assert words in table.said
    table.press("5", "9")
    assert "there are 1 moves" in table.said
    table.press("1", "3")
    assert "no throw yet: blue owes 1 cup" in table.said
    assert table.desk.bell
    assert len(table.game.log) == 3


def test_taking_back_asks_for_a_reason_and_is_a_ruling() -> None:
    table = Table()
    table.press("4")
    table.press("U")
    assert "take back 'throw R 4'; the reason:" in table.screen
    table.press("n", "o", "back", "back", "escape")
    assert len(table.game.log) == 2
    table.press("U", "enter")
    assert "a ruling needs a reason" in table.said
    table.press("U")
    table.type("the die was 5")
    table.press("5", "1", "U")
    table.type("wrong")
    assert table.game.die == 5
    table.press("U")
    table.type("wrong again")
    assert table.game.to_text() == "norske R3/B1/Y-/G- R - 1"
    assert [e.get("back_to") for e in table.game.log[1:] if e["call"] == "ruling"] == [1, 4, 1]
    assert in_effect(table.game.log) == [1]


def test_the_menu_of_rulings() -> None:
    table = Table()
    table.press("5", "1", "a", "p", "c", "s", wait=1)
    table.press("R")
    assert "3  drop" in table.screen
    table.press("2")
    table.type("the glass leaked")
    assert table.game.referee.state.front.started is None  # type: ignore[union-attr]
    table.press("R", "3")
    table.type("let off")
    assert not table.game.referee.gated
    table.press("R", "0")
    table.type("teams/B/members/0/stay_until = 77")
    table.type("he must go")
    assert table.game.referee.state.teams[B].members[0].stay_until == 77
    table.press("R", "9")
    table.type("norske R8/B2/Y-/G- B - 1")
    table.type("a piece had been forgotten")
    assert table.game.to_text() == "norske R8/B2/Y-/G- B - 1"
    table.press("R", "x")
    assert "no ruling" in table.said


def test_a_cup_that_was_called_late_can_count_after_all() -> None:
    table = Table()
    table.press("5", "1", "a", "p", "c", "s")
    table.clock = 50
    table.desk.tick()
    table.press("y", wait=3)
    assert table.game.referee.status(B) == "solo"
    table.press("R", "8")
    table.type("the cup was down in time")
    assert table.game.referee.status(B) == "duo"
    assert not table.game.referee.gated
    assert table.game.referee.state.teams[B].members[0].drunk == 1
    table.press("U")
    assert "take back 'ruling" in table.screen
    table.type("it was late after all")
    assert table.game.referee.status(B) == "solo"
    assert table.game.referee.gated


def test_the_board_gives_way_in_a_low_terminal() -> None:
    table = Table()
    assert len(table.desk.lines(24)) <= 24
    assert "norske R3/B1/Y-/G- R - 1" in "\n".join(table.desk.lines(40))
    assert any("home" in line or "Blue" in line for line in table.desk.lines(80))
    table.press("?", "m")
    assert "? shows the keys" in table.screen


def plain(lines: list[str]) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]


def busy_table() -> Table:
    """Much is owed, much has been said, and the members' names are long."""
    table = Table("norske R9/B4x3,20/Y-/G- R 2 1")
    table.press("1", "a", "p", "c", "s", wait=1)
    table.press("down", "u", wait=1)
    for n in range(8):
        table.press("3")
        table.desk._say(f"message {n} " + "and on " * 14, "0")
    return table


@pytest.mark.parametrize(("height", "width"), [(24, 80), (30, 60), (14, 80), (24, 40)])
def test_prompts_and_the_whole_menu_show_in_a_small_terminal(height: int, width: int) -> None:
    table = busy_table()
    looks = [table.desk.lines(height, width)]
    table.press("R")
    menu = table.desk.lines(height, width)
    shown = [line[:12].split() for line in plain(menu)]
    for number, verb in enumerate(("put", *MENU)):
        assert [str(number), verb[:9]] in [[*s[:1], *(w[:9] for w in s[1:])] for s in shown]
    table.press("x", "U")
    prompt = table.desk.lines(height, width)
    assert plain(prompt)[-1] == "enter: yes   esc: no"
    assert "take back 'unable B" in "".join(plain(prompt)[-5:])
    table.press(*"the reason is a long one, much longer than any line of this terminal is wide")
    typed = table.desk.lines(height, width)
    assert "terminal is wide_" in "".join(plain(typed)[-5:-1])
    for lines in (*looks, menu, prompt, typed):
        assert len(lines) <= height
        assert max(map(len, plain(lines))) <= width


def test_a_low_terminal_keeps_the_last_message_what_is_due_and_the_cursor() -> None:
    table = busy_table()
    table.press("down", "down", "down", "down", "U", "escape")
    text = "\n".join(plain(table.desk.lines(20, 80)))
    assert "never mind" in text
    assert "Bo must say whether to go on alone" in text
    assert "drinking" in text
    assert "> green" in text


def test_help_and_menu_fit_eighty_columns() -> None:
    table = Table()
    table.press("R")
    assert max(map(len, HELP)) <= 80
    assert max(map(len, plain(table.desk._foot_lines(80)))) <= 80


def test_lines_are_cut_by_columns_and_keep_their_styles() -> None:
    assert clip(paint("abcdef", "1") + "gh", 4) == "\x1b[1mabcd\x1b[0m"
    assert clip("日本語", 5) == "日本"
    assert clip("e\u0301e\u0301x", 2) == "e\u0301e\u0301"


def test_a_ruling_sets_the_board_and_the_pieces_home_together() -> None:
    table = Table("norske R30/B1/Y-/G- R 2 1")
    table.press("R", "9")
    table.type("norske R30,H/B1/Y-/G- R 2 1")
    assert "home then, without cups: red 1; the reason:" in table.screen
    table.type("it was home already")
    assert table.game.to_text() == "norske R30,H/B1/Y-/G- R 2 1"
    assert table.game.referee.state.teams[R].home == 1
    assert table.game.log[-1]["put"] == {"teams/R/home": 1}
    assert RefereedGame.from_log(table.game.log).to_text() == table.game.to_text()
    table.press("R", "9")
    table.type("nonsense")
    assert table.desk.prompt is None
    assert table.desk.bell


def test_the_end_writes_the_protocol() -> None:
    table = Table("norske R30,Hx3/B1/Y-/G- R 2 1")
    table.press("1", "a", " ", " ", " ", " ")
    assert "red: wins" in table.said
    assert "protocol: page.html" in table.said
    assert "red has won" in table.screen


def play_whole_match(desk: Desk, game: RefereedGame, advance: Callable[[float], None]) -> None:
    """Referee a match with keys alone."""
    for n in range(20_000):
        if game.over:
            return
        state = game.referee.state
        front = state.front
        advance(0.4)
        if state.undecided():
            desk.press("n" if n % 3 == 0 else "y")
        elif front is None:
            desk.press("r" if game.die is None else str(1 + n % len(game.legal_moves)))
        elif front.drinker is None:
            desk.press("a" if state.teams[front.seat].members[0].playing else "b")
        elif front.started is not None and n % 23 == 0:
            advance(46.5)
            desk.tick()
        else:
            desk.press(" ")
    raise AssertionError("the match did not end")


def test_a_match_of_four_teams_by_keys_alone_from_the_throw_to_the_page(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    with begin_match(path, "norske[pieces=2]", None, {}, "blue", "equal", 5) as file:
        clock = [0.0]

        def advance(seconds: float) -> None:
            clock[0] += seconds

        desk = Desk(file.game, lambda: clock[0], file.save, lambda: "page.html")
        play_whole_match(desk, file.game, advance)
        assert file.game.winner is not None
        game, begun = read_match(path)
        assert game.referee == file.game.referee
        assert game.to_text() == file.game.to_text()
    page = protocol_page(game, begun)
    check_html(page)
    winner = ("red", "blue", "yellow", "green")[game.winner or 0]
    assert f"{winner}</span> has won" in page
    assert "equal in size" in page
    assert "(agreed)" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


# ----------------------------------------------------------------------------------- the page


class Checker(HTMLParser):
    """Checks that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_html(page: str) -> str:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return " ".join(" ".join(checker.text).split())


def test_the_page_shows_cups_rulings_and_what_was_taken_back() -> None:
    table = Table("norske R9/B4x3,20/Y-/G- R - 1")
    table.press("3", "U")
    table.type("the die was <2>")
    table.press("2", "1", "a", "p", "c", "s", wait=1)
    table.press("e", wait=30)
    table.press("v", "y", wait=1)
    page = protocol_page(table.game, 0.0)
    text = check_html(page)
    assert "the die was <2>" in text
    assert "<2>" not in page
    assert '<tr class="void"><td class="n">2</td>' in page
    assert "hit, 1 of 3" in text
    assert re.search(r"Bo hit, 1 of 3 0:06 30 empty", text)
    assert "out of the competition: vomit" in text
    assert "blue, Ida: drinks again: 3" in text
    assert "The match is not finished." in text


def drinking(rules: str = "norske") -> tuple[RefereedGame, int]:
    """A match in which blue's cup runs from second 10, and the length of its log."""
    game = RefereedGame.from_text(f"{rules} R3/B1/Y-/G- R 5 1", teams=TEAMS)
    game.play("3-8", at=2)
    referee = game.referee
    referee.drinker(4, "B", 0)
    referee.pour(5, "B", 0)
    referee.table(6, "B")
    referee.start(10, "B")
    return game, len(game.log)


@pytest.mark.parametrize("meanwhile", ["tick", "go_on", "decline", "end"])
def test_the_page_of_a_cup_that_a_ruling_gives_back(meanwhile: str) -> None:
    game, back = drinking()
    if meanwhile == "end":
        game.referee.end(40, "B")
    else:
        game.referee.tick(56)
    if meanwhile in ("go_on", "decline"):
        game.referee.call(meanwhile, 57, seat="B")
    game.referee.ruling(60, "it was in time", back_to=back, do="cup_drunk", seat="B")
    for match in (game, RefereedGame.from_log(game.log)):
        assert "Bo hit 0:10 50 empty" in check_html(protocol_page(match, 0.0))


def test_the_page_of_a_cup_that_is_late_again_after_going_back() -> None:
    game, back = drinking()
    game.referee.end(40, "B")
    game.referee.ruling(70, "the cup was not empty", back_to=back)
    text = check_html(protocol_page(game, 0.0))
    assert "Bo hit 1:10 out of the competition: late" in text


def test_the_page_is_fit_for_a_narrow_screen() -> None:
    game, _ = drinking()
    page = protocol_page(game, 0.0)
    assert page.count("<table>") == page.count('<div class="wide"><table>') > 2
    assert re.search(r"\.wide {[^}]*overflow-x: auto", page)
    assert re.search(r"\.move {[^}]*white-space: nowrap", page)
    assert page.count('<span class="move">3-8</span>') == 2


# ---------------------------------------------------------------------------------- the file


def begun_match(path: Path) -> RefereedGame:
    with begin_match(path, "norske", 2, {R: "Aino, Eero:beer"}, "red", "marked", 7) as file:
        file.game.throw(6, at=3)
        file.game.play("enter", at=4)
        file.save()
        return file.game


def test_a_match_is_resumed_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    game = begun_match(path)
    with MatchFile.open(path) as file:
        assert file.game.referee == game.referee
        assert file.game.referee.state.teams[R].members[0].name == "Aino"
        assert sorted(file.game.referee.state.teams) == [R, Y]
        file.game.throw(1, at=9)
        file.save()
    assert len(path.read_text().splitlines()) == 4
    assert read_match(path)[0].die == 1


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    begun_match(path)
    whole = path.read_bytes()
    for rest in (b'{"t": 9, "call": "thr', b'{"t": 9, "call": "throw", "seat": "R", "die": 1}'):
        path.write_bytes(whole + rest)
        assert read_match(path)[0].die is None
        with MatchFile.open(path) as file:
            assert file.dropped == len(rest)
            file.game.throw(2, at=9)
            file.save()
        assert path.read_bytes().startswith(whole)
        assert read_match(path)[0].die == 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: [], "empty"),
        (lambda lines: [lines[0].replace('"begun"', '"began"'), *lines[1:]], "begun must be"),
        (lambda lines: [lines[0], "{broken", *lines[2:]], "line 2: not JSON"),
        (lambda lines: [lines[0], *lines[2:]], "line 2"),
        (lambda lines: [lines[0], lines[1].replace("6", "5"), *lines[2:]], "line 3"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, damage: Callable[[list[str]], list[str]], message: str
) -> None:
    path = tmp_path / "match.jsonl"
    begun_match(path)
    lines = damage(path.read_text().splitlines())
    path.write_text("".join(line + "\n" for line in lines))
    content = path.read_bytes()
    for read in (read_match, MatchFile.open):
        with pytest.raises(KimbleError, match=message):
            read(path)
    assert path.read_bytes() == content


def test_two_referees_cannot_keep_one_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "match.jsonl"
    begun_match(path)
    with MatchFile.open(path), pytest.raises(KimbleError, match="another process"):
        MatchFile.open(path)
    MatchFile.open(path).close()


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    for words, message in (
        (("norske", 5, {}, None, "marked", 1), "players must be 2, 3 or 4"),
        (("norske", None, {R: "Aino"}, None, "marked", 1), "expected two members"),
        (("norske", None, {R: "Aino:wine, Eero"}, None, "marked", 1), "beer, cider"),
        (("norske", None, {}, "X", "marked", 1), "starter must be one of red .R., .* got 'X'"),
        (("norske", None, {}, "bogus", "marked", 1), "starter .* got 'bogus'"),
        (("norske", None, {}, "yelow", "marked", 1), "starter .* got 'yelow'"),
        (("norske", None, {}, "", "marked", 1), "starter .* got ''"),
        (("norske", None, {}, "highest_roll", "marked", 1), "or random for a lot"),
        (("norske", 2, {}, "blue", "marked", 1), r"red \(R\), yellow \(Y\), or random"),
        (("norske", None, {}, None, "huge", 1), "cups must be"),
        (("kimble", None, {}, None, "marked", 1), "home"),
        (("norske", 2, {B: "Bo, Ida"}, None, "marked", 1), "blue does not play"),
    ):
        with pytest.raises(KimbleError, match=message):
            begin_match(path, *words)
        assert not path.exists()
    begun_match(path)
    with pytest.raises(KimbleError, match="cannot begin"):
        begun_match(path)
    with pytest.raises(KimbleError, match="cannot read"):
        read_match(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("starter", "rule"),
    [("red", "R"), ("Y", "Y"), ("green", "G"), ("b", "B"), ("random", "random"), (None, "random")],
)
def test_who_begins(tmp_path: Path, starter: str | None, rule: str) -> None:
    with begin_match(tmp_path / "m.jsonl", "norske", None, {}, starter, "marked", 1) as file:
        assert file.game.rules.starter == rule
        assert rule == "random" or file.game.seat == "RBYG".index(rule)


@pytest.mark.parametrize(
    ("players", "named", "seats"),
    [
        (None, (), (R, B, Y, G)),
        (None, (B,), (R, B, Y, G)),
        (None, (R, B), (R, B)),
        (None, (R, B, Y), (R, B, Y)),
        (None, (B, Y, G), (B, Y, G)),
        (4, (R, B, Y), (R, B, Y, G)),
        (2, (B, G), (B, G)),
        (3, (), (R, B, Y)),
    ],
)
def test_who_plays(
    tmp_path: Path, players: int | None, named: tuple[int, ...], seats: tuple[int, ...]
) -> None:
    teams = dict.fromkeys(named, "Aino, Eero")
    with begin_match(tmp_path / "m.jsonl", "norske", players, teams, None, "marked", 1) as file:
        assert file.game.rules.seats == seats


def test_small_readers() -> None:
    assert read_team("Aino, Eero : long drink", R) == [("Aino", "vichy"), ("Eero", "long drink")]
    assert split_keys("a\x1b[A\x1bOB\r\x7f\x1b") == ["a", "up", "down", "enter", "back", "escape"]
    assert split_keys("\x1b[5~x\x03") == ["unknown", "x", "stop"]
    assert (minutes(59), minutes(61), minutes(3700)) == ("0:59", "1:01", "1:01:40")


# ------------------------------------------------------------------------------- in a terminal


class Terminal:
    """The command in a pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        pty = pytest.importorskip("pty")
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.environ.update(PYTHONPATH=str(ROOT), COLUMNS="100", LINES="60", TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-m", "kimble_app.cli", "referee", *words])
        self.text = ""

    def until(self, words: str, seconds: float = 120.0) -> None:
        """Read until the words are on the screen, since the last key."""
        import select

        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, f"no {words!r} in {self.text[-3000:]!r}"
            if select.select([self.end], [], [], 0.5)[0]:
                try:
                    data = os.read(self.end, 65536)
                except OSError:  # so Linux says that the other end is closed
                    data = b""
                assert data or words in self.text, f"ended without {words!r}: {self.text[-3000:]}"
                self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace"))

    def press(self, keys: str, words: str) -> None:
        self.text = ""
        os.write(self.end, keys.encode())
        self.until(words)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)

    def wait(self) -> int:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.end)
        return code


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_in_a_terminal_killed_and_resumed_to_the_page(tmp_path: Path) -> None:
    path = tmp_path / "final.jsonl"
    first = Terminal(
        str(path), "--red", "Aino, Eero", "--starter", "red", "--rules", "norske[pieces=1]"
    )
    first.until("red to throw (3 throws left)")
    first.press("6", "red has thrown 6: 1 enter")
    first.press("1", "red to throw (1 throw left)")
    first.press("\x1b[B", "> red    Eero")
    first.press("v", "Aino must say whether to go on alone")
    first.kill()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["call"] for line in lines[1:]] == ["throw", "move", "vomit"]

    second = Terminal(str(path))
    second.until("Aino must say whether to go on alone")
    second.press("y", "red to throw")
    second.press("R9", "the new position:")
    second.press("norske[pieces=1,starter=R] R30/B-/Y-/G- R - 1\r", "the reason:")
    second.press("to see the end\r", "RULING: to see the end")
    second.press("2", "red has thrown 2: 1 30-H")
    second.press("1", "red owes 1 cup (home) by Aino: pour")
    second.press("  ", "the referee gives the start")
    second.press(" ", "of 45 s")
    second.press(" ", "red has won")
    second.press("q", "protocol: ")
    assert second.wait() == 0
    page = (tmp_path / "final.html").read_text(encoding="utf-8")
    assert "red</span> has won." in page
    assert "to see the end" in check_html(page)


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kimble_app.cli", "referee", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_command_without_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    done = run_command(str(path))
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    begun_match(path)
    done = run_command(str(path), "--protocol", "--out", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    assert "not finished" in check_html((tmp_path / "page.html").read_text(encoding="utf-8"))
    done = run_command(str(tmp_path / "none.jsonl"), "--protocol")
    assert done.returncode == 2
    assert "cannot read" in done.stderr
