"""``kimble play``, ``watch`` and the commands that ask: in pipes, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from kimble_app.cli import app
from kimble_app.playing import Settings, begin
from kimble_app.sitting import HUMAN, Sitting, line_up, seat_rules
from kimble_app.watching import _Viewer, pick_game, steps_of
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.notation import read_record
from kimble_env.rules import find_rules


def run(*arguments: str, lines: str = "") -> Any:
    """Run the command in this process with lines on its standard input."""
    return CliRunner().invoke(app, list(arguments), input=lines)


def good(*arguments: str, lines: str = "") -> str:
    done = run(*arguments, lines=lines)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "\x1b" not in done.output, "no colours in a pipe"
    return str(done.stdout)


def wrong(*arguments: str) -> str:
    done = run(*arguments)
    assert isinstance(done.exception, KimbleError), done.output
    return str(done.exception)


# ------------------------------------------------------------------------------------------- play


def test_agents_alone_play_a_whole_game_that_replays(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    words = ("--seat", "none", "--seed", "3", "--record", str(path), "--json")
    end = json.loads(good("play", "cautious", "random", *words))
    record = read_record(path)
    game = Game.from_record(record)
    assert game.over
    assert record.players == ("cautious", "random")
    assert end == {
        "position": game.to_text(), "over": True, "winner": "RBYG"[game.winner or 0],
        "players": ["cautious", "random"], "throws": game.plies, "seed": 3, "record": str(path),
    }  # fmt: skip


def test_a_game_in_a_pipe_stops_at_the_end_of_its_lines_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    words = ("play", "cautious", "--record", str(path), "--seed", "4", "--auto")
    text = good(*words, lines="nonsense\n9\nh\n?\nenter\n")
    assert "cannot play 'nonsense': one of 1 enter, 2 pass" in text
    assert "cannot play '9'" in text
    assert "u takes back your last choice" in text
    assert "chance to win by search:depth=2" in text or "chance to win by net:" in text
    assert f"kimble play --resume {path} goes on" in text
    before = Game.from_record(path)
    assert read_record(path).players == (HUMAN, "cautious")
    text = good("play", "--resume", str(path), lines="u\nq\n")
    after = Game.from_record(path)
    assert after.plies < before.plies
    assert [m.text for m in after.legal_moves] == ["enter", "pass"]
    assert "taken back" in text


def test_what_happened_is_told_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    words = ("play", "random", "random", "random", "--record", str(path), "--seed", "4", "--auto")
    text = good(*words, lines="q\n")
    told = [line.strip() for line in text.splitlines() if " threw " in line]
    happened = [line[4:].strip() for line in good("watch", str(path)).splitlines()]
    happened = [line for line in happened if " threw " in line]
    assert len(told) > 1
    assert told == happened


def test_dice_are_the_same_after_taking_back(tmp_path: Path) -> None:
    sitting = Sitting(Game("kimble", seed=4, players=2), (HUMAN, HUMAN), tmp_path / "g.jsonl")
    while len(sitting.game.legal_moves) < 2:
        sitting.throw() if sitting.game.die is None else sitting.play("pass")
    text = sitting.game.to_text()
    sitting.play("enter")
    sitting.throw()
    then = sitting.game.to_text()
    sitting.undo()
    assert sitting.game.to_text() == text
    sitting.play("enter")
    sitting.throw()
    assert sitting.game.to_text() == then
    assert Game.from_record(tmp_path / "g.jsonl").to_text() == then


def test_nothing_to_take_back_changes_nothing() -> None:
    sitting = Sitting(Game("norske", seed=1, players=2), (HUMAN, "random"), None)
    sitting.let_agents_play()
    before = sitting.game.to_text()
    with pytest.raises(KimbleError, match="no choice of yours"):
        sitting.undo()
    assert sitting.game.to_text() == before


@pytest.mark.parametrize(
    ("rules", "players", "people", "agents", "names"),
    [
        ("kimble", None, (0,), ["a"], (HUMAN, "a")),
        ("kimble", 4, (1,), ["a", "b"], ("b", HUMAN, "a", "b")),
        ("kimble", 4, (0, 2), ["a"], (HUMAN, "a", HUMAN, "a")),
        ("kimble", 3, (), ["a", "b", "c"], ("a", "b", "c")),
        ("kimble[two_colours=yes]", None, (2,), ["a"], (HUMAN, "a")),
    ],
)
def test_who_sits_where(
    rules: str, players: int | None, people: tuple[int, ...], agents: list[str], names: tuple[str]
) -> None:
    seated = seat_rules(rules, players, len(agents))
    assert line_up(seated, people, agents) == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("play", "nobody"), "unknown agent 'nobody'"),
        (("play", "a", "b", "c", "d"), "players must be 2, 3 or 4"),
        (("play", "random", "--seat", "B"), "blue does not play in a game of 2"),
        (("play", "random", "--seat", "Q"), "seats must be letters"),
        (("play", "random", "--rules", "chess"), "unknown rule set 'chess'"),
        (("play", "random", "--resume", "x"), "--resume takes agents"),
        (("play", "a", "b", "--seat", "RY", "--players", "3"), "only 1 of 3 places"),
        (("moves", "nonsense"), "expected"),
        (("moves", "kimble R3/Y- R - 1"), "no die has been thrown"),
        (("moves", "kimble R3/Y- R - 1", "--die", "9"), "die:"),
        (("moves", "kimble R3/Y- R 4 1", "--agent", "cautios"), "did you mean cautious?"),
        (("rules", "norsk"), "did you mean norske?"),
        (("rules", "norske[peices=2]"), "did you mean pieces?"),
        (("agents", "--players", "7"), "players must be 2, 3 or 4"),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in wrong(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_record_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    path.write_text("precious")
    with pytest.raises(KimbleError, match=r"exists already: --resume"):
        begin(Settings(["random"], "kimble", None, None, "R", 1, path, None, None, False, False))
    assert path.read_text() == "precious"


# ------------------------------------------------------------------------------------------ watch


@pytest.fixture(scope="module")
def kombat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("watch") / "game.jsonl"
    words = ("--rules", "kombat[pieces=2]", "--seat", "none", "--seed", "5", "--record", str(path))
    good("play", "capture", "runner", "cautious", *words)
    return path


def test_watch_has_a_line_for_every_throw(kombat: Path) -> None:
    record = read_record(kombat)
    lines = good("watch", str(kombat)).splitlines()
    assert lines[0] == "kombat[pieces=2]: capture, runner, cautious"
    assert len(lines) == len(record.entries) + 3
    assert lines[-1].endswith("wins")
    rows = [json.loads(line) for line in good("watch", str(kombat), "--json").splitlines()]
    assert [row["throw"] for row in rows] == list(range(len(record.entries) + 1))
    assert rows[-1]["position"] == Game.from_record(record).to_text()
    assert [row["die"] for row in rows[1:]] == [entry.die for entry in record.entries]
    assert good("watch", str(kombat), "--boards").count("kombat[pieces=2]\n") > 10


def test_watch_moves_through_the_steps_by_keys(kombat: Path) -> None:
    record, _ = pick_game(kombat, None)
    rules, steps = steps_of(record)
    viewer = _Viewer(record, rules, steps, None)
    for key, at in ((" ", 1), ("right", 2), ("b", 1), ("left", 0), ("b", 0), ("G", len(steps) - 1)):
        viewer.press(key)
        assert viewer.at == at
    viewer.press("right")
    assert viewer.at == len(steps) - 1
    viewer.press("q")
    assert viewer.done


def test_watch_picks_a_game_of_several(kombat: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(kombat.read_text() + kombat.read_text().replace("runner", "other"))
    assert "other" in good("watch", str(path))
    assert "runner" in good("watch", str(path), "--game", "1")
    assert "holds games 1 to 2" in wrong("watch", str(path), "--game", "3")
    path.write_text("")
    assert "holds no game" in wrong("watch", str(path))


# -------------------------------------------------------------------------------------------- ask


def test_rules_in_words_and_data() -> None:
    text = good("rules", "norske[own_collision=mover]", "--players", "2")
    assert "* own_collision" in text
    assert "red, yellow" in text
    data = json.loads(good("rules", "norske[own_collision=mover]", "--json"))
    assert data["rules_hash"] == find_rules("norske[own_collision=mover]").hash
    assert len(json.loads(good("rules", "--json"))["rules"]) == 3
    assert "pass_allowed" in good("rules")


def test_agents_and_models() -> None:
    assert "cautious" in good("agents", "--rules", "kombat")
    data = json.loads(good("agents", "--rules", "kimble[pieces=1]", "--players", "2", "--json"))
    assert {"random", "cautious"} <= {row["agent"] for row in data["agents"]}
    assert "models" in json.loads(good("models", "--json"))
    good("models")


def test_moves_ranks_by_chance_or_score() -> None:
    exact = ("moves", "kimble[pieces=2] R3,20/Y0,8 R - 1", "--die", "4", "--agent", "exact")
    text = good(*exact)
    assert "chance to win by exact" in text
    rows = json.loads(good(*exact, "--json"))["ranked"]
    assert rows[0]["loss"] == 0
    assert rows[0]["win"][0] >= rows[1]["win"][0]
    assert "loses" in text
    assert "chance to win by exact" in good("moves", "kimble[pieces=2] R3,20/Y0,8 R 4 1")
    assert "score by cautious" in good("moves", "kimble R3,20/Y0,8 R 4 1", "--agent", "cautious")
    assert "no values by mine" not in text
    assert "no legal move" in good("moves", "norske R-/B0/Y-/G- R - 1", "--die", "3")


def test_bench_measures_something() -> None:
    data = json.loads(good("bench", "--rules", "kimble[pieces=1]", "--rounds", "1", "--json"))
    assert set(data["rows"]) == {"playouts", "vector", "game", "answers"}
    assert all(row["per_cpu_second"] > 0 for row in data["rows"].values())


def test_completion_knows_the_commands() -> None:
    env = {"_KIMBLE_COMPLETE": "complete_bash", "COMP_WORDS": "kimble wa", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=env, prog_name="kimble")
    assert "watch" in done.output
