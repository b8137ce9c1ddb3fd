"""docs/front-ends.md and the examples beside it, line by line, against a running service.

The page's blocks run in their order in a copy of ``docs/front-ends``, with this checkout's own
``kimble`` and ``python`` in front of the path. ``pip`` and ``npm ci`` are stood in for:
test_wheel.py installs for real, and ``.ci/run`` calls ``npm ci`` before the tests.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

pytest.importorskip("fastapi")

from tests.programs import need
from tests.serving import free_port

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "front-ends.md"
EXAMPLES = ROOT / "docs" / "front-ends"
MODULES = EXAMPLES / "node_modules"


class Block(NamedTuple):
    """A fenced block of the page: its language, its text, the heading that it stands under."""

    kind: str
    text: str
    section: str
    line: int


def blocks() -> list[Block]:
    """Return every fenced block of the page."""
    found, section, inside, begin = [], "", None, 0
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if inside is None and line.startswith("## "):
            section = line[3:]
        if line.startswith("```"):
            if inside is None:
                inside, kind, begin = [], line[3:], number
            else:
                found.append(Block(kind, "\n".join(inside) + "\n", section, begin))
                inside = None
        elif inside is not None:
            inside.append(line)
    return found


class Desk:
    """A folder in which the page is followed, with the service that it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.server: subprocess.Popen[str] | None = None
        shutil.copytree(
            EXAMPLES, folder / "docs" / "front-ends",
            ignore=shutil.ignore_patterns("node_modules", "build"),
        )  # fmt: skip
        for path in (folder / "docs" / "front-ends").glob("*.*"):
            path.write_text(self.moved(path.read_text(encoding="utf-8")), encoding="utf-8")
        if MODULES.is_dir():
            (folder / "docs" / "front-ends" / "node_modules").symlink_to(MODULES)
        programs = folder / "programs"
        programs.mkdir()
        self._program(programs / "kimble", f'exec "{sys.executable}" -m kimble_app "$@"')
        self._program(programs / "python", f'exec "{sys.executable}" "$@"')
        self._program(
            programs / "pip",
            f'test "$*" = "install .[app]" && grep -q "^app = " "{ROOT}/pyproject.toml"',
        )
        self._program(programs / "npm", 'test "$1" = ci && test -d node_modules')
        self.environment = {
            **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT), "KIMBLE_DATABASE": f"sqlite:///{folder / 'games.sqlite'}",
        }  # fmt: skip

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def moved(self, text: str) -> str:
        """Return a text with the port of this service in place of the page's."""
        return text.replace("8000", str(self.port))

    def run(self, text: str) -> str:
        """Run lines of shell; return what they print."""
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", self.moved(text)], cwd=self.folder,
            env=self.environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def serve(self, text: str) -> None:
        """Run the line that starts the service, and wait until it listens."""
        self.server = subprocess.Popen(
            ["bash", "-c", "exec " + self.moved(text)], cwd=self.folder, env=self.environment,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.server.stderr is not None
        said = []
        for line in self.server.stderr:
            said.append(line)
            if line.startswith("kimble serve: http"):
                return
        raise AssertionError("the service did not start: " + "".join(said))

    def close(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.communicate(timeout=60)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    for program in ("bash", "curl", "node"):
        need(program)
    desk = Desk(tmp_path_factory.mktemp("front-ends"))
    try:
        desk.serve(next(b.text for b in blocks() if b.text.startswith("kimble serve")))
        yield desk
    finally:
        desk.close()


def needs_npm() -> None:
    """Skip, or in CI fail, where the modules of the examples are not there."""
    if MODULES.is_dir():
        return
    text = "needs `npm ci` in docs/front-ends"
    if os.environ.get("KIMBLE_REQUIRE_ALL"):
        pytest.fail(f"{text} (KIMBLE_REQUIRE_ALL is set)")
    pytest.skip(text)


SECTIONS = sorted({block.section for block in blocks()})


@pytest.mark.parametrize("section", SECTIONS)
def test_every_block_of_the_page_runs_and_answers_what_it_shows(desk: Desk, section: str) -> None:
    told = ""
    mine = [block for block in blocks() if block.section == section]
    if any("npm ci" in block.text for block in mine):
        needs_npm()
    for block in mine:
        if block.kind == "sh" and block.text.startswith("kimble serve"):
            continue  # it runs all the time
        if block.kind == "sh":
            told = desk.run(block.text)
        elif block.kind == "json":
            assert json.loads(told) == json.loads(block.text), f"line {block.line}: {told}"
        elif block.kind == "text":
            assert told == block.text, f"line {block.line}"
        else:
            name = re.match(r"(?:#|//) ([\w.]+)\n", block.text)
            assert name is not None, f"line {block.line} does not say the name of its file"
            (desk.folder / name[1]).write_text(desk.moved(block.text), encoding="utf-8")


def test_the_page_shows_three_languages_and_no_block_of_an_unknown_kind() -> None:
    kinds = {block.kind for block in blocks()}
    assert kinds == {"sh", "python", "js", "json", "text"}
    assert not PAGE.read_text(encoding="utf-8").count("```") % 2


def test_clients_are_short() -> None:
    for name in ("client.py", "client.mjs"):
        assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 30


def test_the_clients_say_what_the_service_says_is_wrong(desk: Desk) -> None:
    code = "from client import Kimble; Kimble().ask('/v1/move', position='x')"
    text = f'cd docs/front-ends; python -c "{code}" 2>&1 | tail -n 1 || true'
    assert desk.run(text).startswith("ValueError: cannot read position 'x'")
    code = "import {Kimble} from './client.mjs';"
    code += "await new Kimble().ask('/v1/move', {position: 'x'})"
    code += ".catch(e => console.log(e.message));"
    text = f'cd docs/front-ends; node --input-type=module -e "{code}"'
    assert desk.run(text).startswith("cannot read position 'x'")


# -------------------------------------------------------------------------------------- TypeScript


def load(name: str, path: Path) -> ModuleType:
    """Return the module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generator() -> ModuleType:
    return load("docs_typescript", ROOT / "docs" / "typescript.py")


def test_the_typescript_client_is_that_of_the_description() -> None:
    made = generator()
    document = json.loads(made.SOURCE.read_text(encoding="utf-8"))
    fresh = made.TARGET.read_text(encoding="utf-8") == made.client(document)
    assert fresh, "run `python docs/typescript.py`"


def test_every_path_has_a_method_and_every_schema_a_type() -> None:
    made = generator()
    document = json.loads(made.SOURCE.read_text(encoding="utf-8"))
    text = made.TARGET.read_text(encoding="utf-8")
    count = sum(len(verbs) for verbs in document["paths"].values())
    assert text.count("\n  async ") == count
    names = re.findall(r"\n  async (\w+)\(", text)
    assert len(set(names)) == count
    for name in document["components"]["schemas"]:
        assert re.search(rf"export (interface|type) {name}\b", text), name


def test_types_of_schemas() -> None:
    type_of = generator().type_of
    assert type_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == "number | null"
    assert type_of({"type": "array", "items": {"enum": ["R", "B"]}}) == '("R" | "B")[]'
    assert type_of({"type": "object", "additionalProperties": {"type": "number"}}) == (
        "Record<string, number>"
    )
    assert type_of({"$ref": "#/components/schemas/MoveAnswer"}) == "MoveAnswer"
    assert type_of({}) == "unknown"


def test_a_botzone_program_stays_when_asked_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {"requests": [{"position": "norske R3,20/B0/Y-/G- R 4 1"}], "responses": []}
    second = {"position": "kimble[pieces=2] R27,31/Y0,8 R 3 1", "agent": "exact"}
    monkeypatch.setattr(sys, "argv", ["botzone.py", "--keep"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{json.dumps(first)}\n{json.dumps(second)}\n"))
    load("botzone", EXAMPLES / "botzone.py").main()
    told = capsys.readouterr().out.splitlines()
    assert json.loads(told[0])["response"] == {"move": "20-24"}
    assert told[1] == told[3] == ">>>BOTZONE_REQUEST_KEEP_RUNNING<<<"
    assert json.loads(told[2])["response"] == {"move": "27-30"}
