"""The command ``kimble`` as a process: output, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")

WITHOUT_JSON = {"referee", "serve"}
"""A screen in the terminal; a service."""


def kimble(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "kimble_app.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_help_names_the_commands_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, kimble_app.cli as cli; sys.argv = ['kimble', '--help']\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'gymnasium', 'pettingzoo', 'numba', 'matplotlib', 'pygame'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "evaluate" in done.stdout
    assert "train" in done.stdout
    assert "referee" in done.stdout
    assert "HEAVY []" in done.stdout


def test_every_command_of_the_table_can_be_asked_for_help() -> None:
    """Loaded here and not in processes: it is the table that is tested."""
    from typer.testing import CliRunner

    from kimble_app.cli import app
    from kimble_app.commands import TABLE

    for row in TABLE:
        done = CliRunner().invoke(app, [*row.words.split(), "--help"], catch_exceptions=False)
        assert done.exit_code == 0, row
        assert f"{row.words.split()[-1]} [OPTIONS]" in done.output
        assert "default: (" not in done.output
        has = "--json" in done.output or row.words.split()[0] in WITHOUT_JSON
        assert has, f"{row.words} has no --json"


def test_an_unknown_command_is_told_the_nearest() -> None:
    done = kimble("evalute", "random")
    assert done.returncode == 2
    assert "Did you mean 'evaluate'" in done.stderr


def test_version() -> None:
    from kimble_env import __version__

    assert kimble("--version").stdout.strip() == __version__


def test_evaluate_prints_one_json_object() -> None:
    done = kimble("evaluate", "capture", "random", "--games", "40", "--players", "4", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert result["games"] == 40
    assert len(result["agents"]) == 4
    assert result["agents"][0]["agent"] == "capture"


def test_evaluate_takes_an_agent_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def play(game):\n    return game.legal_moves[0]\n")
    done = kimble("evaluate", "mine.py:play", "random", "--games", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine.py:play" in done.stdout
    assert "par 50.0 %" in done.stdout


def test_the_title_keeps_the_options_of_the_rules() -> None:
    done = kimble("evaluate", "random", "random", "--games", "4", "--rules", "norske[pieces=2]")
    assert "norske[pieces=2]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "nobody"), "unknown agent 'nobody'; known:"),
        (("evaluate", "random", "--rules", "chess"), "unknown rule set 'chess'"),
        (("evaluate", "random", "--rules", "norske[foo=1]"), "unknown option 'foo'"),
        (("solve", "--pieces", "1", "--no-value", "--no-bracket"), "leave nothing to solve"),
        (("evaluate", "random", "--players", "7"), "players must be 2, 3 or 4"),
        (("evaluate", "random", "--games", "-1"), "games must be a whole number of at least 1"),
        (("evaluate", "net:nowhere"), "no model 'nowhere'"),
        (("evaluate", "random", "--pieces", "3", "--rules", "kimble[pieces=2]"), "given twice"),
        (("train", "ppo", "run", "--players", "9"), "players must lie in 2..4, got 9"),
        (("train", "ppo", "run", "--resume"), "nothing to resume"),
        (("export", "nowhere", "mine"), "there is no folder 'nowhere'"),
        (("evaluate", "net:."), "neither value.json of kimble train td or distil nor policy.json"),
    ],
)
def test_mistakes_end_with_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = kimble(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no record\n")
    for name, code, message in (
        ("nothere.jsonl", 1, "error: nothere.jsonl: No such file or directory\n"),
        ("notes.txt", 2, "error: notes.txt: record line 1: not JSON"),
    ):
        done = kimble("watch", name, cwd=tmp_path)
        assert done.returncode == code
        assert done.stderr.startswith(message)


REFUSED = (
    ("td", "--players 9", "players must lie in 2..4, got 9"),
    ("td", "--throws many", "must be like 40M"),
    ("td", "--rules norske[members=20]", "value learning cannot take norske"),
    ("td", "--heuristics net", "is no weight vector"),
    ("td", "--start nowhere", "no model 'nowhere'"),
    ("td", "--profile --games 0", "games must lie in"),
    ("td", "--resume", "no run to resume in run"),
    ("ppo", "--heuristics nobody", "unknown agent 'nobody'"),
    ("ppo", "--decisions 0", "decisions must lie in"),
    ("ppo", "--resume", "nothing to resume in run"),
    ("distil", "--rules norske", "no committed positions of norske"),
    ("distil", "--source air", "source must be set or table"),
)


def test_training_refuses_before_it_imports_torch(tmp_path: Path) -> None:
    """… which takes seconds; all in one process, so that torch would be seen."""
    code = (
        "import sys, kimble_app.cli as cli\n"
        f"for words in {[[name, 'run', *options.split()] for name, options, _ in REFUSED]}:\n"
        "    sys.argv = ['kimble', 'train', *words]\n"
        "    try: cli.main()\n"
        "    except SystemExit as end: assert end.code == 2, (words, end.code)\n"
        "    else: raise AssertionError(words)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\n"
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == len(REFUSED)
    for line, (_, _, message) in zip(said, REFUSED, strict=True):
        assert message in line
    assert list(tmp_path.iterdir()) == []


def test_a_missing_module_of_ones_own_is_not_blamed_on_the_project(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import not_there_at_all\n")
    done = kimble("evaluate", "mine.py:play", "random", "--games", "4", cwd=tmp_path)
    assert done.returncode == 2
    assert "not_there_at_all" in done.stderr
    assert "pip install" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full")
def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kimble_app.cli", "evaluate", "random", "--games", "4"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_solve_prints_one_json_object(tmp_path: Path) -> None:
    done = kimble("solve", "--rules", "kimble[pass_allowed=no]", "--pieces", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["start_value"] == pytest.approx(0.52626, abs=5e-6)
    assert found["bracket"] < 1e-9
    assert found["start_lower"] <= found["start_value"] <= found["start_upper"]


def test_exact_says_that_it_plays_two_seats() -> None:
    done = kimble("evaluate", "exact", "random", "--players", "4", "--games", "4")
    assert done.returncode == 2
    assert "exact plays games of two seats, got 4" in done.stderr


def test_train_ppo_leaves_a_policy_that_plays(tmp_path: Path) -> None:
    settings = ("--envs", "16", "--steps", "16", "--batch", "64", "--evaluate-games", "8")
    done = kimble("train", "ppo", "run", "--decisions", "256", *settings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    agent, report = done.stdout.splitlines()
    assert agent == f"agent   net:{Path('run') / 'policy'}"
    assert report == f"report  {Path('run') / 'report.html'}"
    match = ("net:run/policy", "random", "--players", "4", "--games", "8", "--json")
    done = kimble("evaluate", *match, cwd=tmp_path)
    assert json.loads(done.stdout)["games"] == 8
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    done = kimble("train", "ppo", "run", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert kept["decisions"] == 256
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


def test_a_run_is_resumed_without_naming_its_settings_again(tmp_path: Path) -> None:
    settings = ("--rules", "kimble[pieces=1]", "--throws", "2k", "--games", "64", "--window", "8",
                "--batch", "64", "--hidden", "16", "--warmup", "50",
                "--evaluate-games", "8")  # fmt: skip
    done = kimble("train", "td", "run", *settings, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "run" / "value.safetensors").read_bytes()
    done = kimble("train", "td", "run", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "value.safetensors").read_bytes() == first
    done = kimble("train", "td", "run", "--resume", "--seed", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert "seed was 1, now 2" in done.stderr


def test_without_its_extra_the_command_says_which() -> None:
    code = "import sys; sys.modules['typer'] = None\nfrom kimble_app.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "pip install 'kimble-rl[app]'" in done.stderr
    assert "Traceback" not in done.stderr
