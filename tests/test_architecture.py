"""The floors of docs/architecture.md, read off the imports of every file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("kimble_env", "agents", "evaluation", "training", "kimble_app")
LEARNING = {"torch", "stable_baselines3", "sb3_contrib", "tensorboard"}
OUTSIDE_OF_ENV = {"numpy", "numba", "gymnasium", "pettingzoo"}


def room_files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def all_files() -> list[Path]:
    return [path for room in FLOORS for path in room_files(room)]


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Yield (top-level package, line, whether importing the file imports it) for every import."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    lazy: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            lazy.update(child for child in ast.walk(node) if child is not node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("importlib.import_module", "import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            names = [str(node.args[0].value)]
        else:
            continue
        for name in names:
            yield name.partition(".")[0], node.lineno, node not in lazy


@pytest.mark.parametrize("room", FLOORS)
def test_every_room_exists_and_imports_only_from_floors_below(room: str) -> None:
    assert room_files(room), f"the room {room} is empty"
    allowed = FLOORS[: FLOORS.index(room) + 1]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in room_files(room)
        for name, line, _ in imports(path)
        if name in (*FLOORS, "tests", "benchmarks") and name not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_and_its_friends_are_imported_only_in_training() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in all_files()
        if path.relative_to(ROOT).parts[0] != "training"
        for name, line, _ in imports(path)
        if name in LEARNING
    ]
    assert not wrong, "\n".join(wrong)


def test_kimble_env_needs_nothing_heavier_than_its_four_packages() -> None:
    known = {*sys.stdlib_module_names, *OUTSIDE_OF_ENV, "kimble_env", "__future__"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in room_files("kimble_env")
        for name, line, at_import in imports(path)
        if at_import and name not in known
    ]
    assert not wrong, "\n".join(wrong)


def test_pygame_is_imported_only_when_a_window_opens() -> None:
    found = [
        (path.relative_to(ROOT), line, at_import)
        for path in all_files()
        for name, line, at_import in imports(path)
        if name == "pygame"
    ]
    wrong = [
        f"{path}:{line}"
        for path, line, at_import in found
        if at_import or path.parts[:2] != ("kimble_env", "render")
    ]
    assert not wrong, f"pygame imported at import time or outside render: {wrong}"


def loaded_by(statements: str) -> set[str]:
    """Return the top-level packages in sys.modules after ``statements`` in a new process."""
    code = f"import sys\n{statements}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_game_loads_no_environment_library() -> None:
    loaded = loaded_by("from kimble_env import Game")
    heavy = {"gymnasium", "pettingzoo", "pygame", "matplotlib", "rich", *LEARNING}
    assert not loaded & heavy


def test_environments_agents_and_evaluation_load_neither_torch_nor_pygame() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in ("kimble_env", "agents", "evaluation")
        for path in room_files(room)
        if path.name not in ("__main__.py",)
    ]
    loaded = loaded_by("\n".join(f"import {name.removesuffix('.__init__')}" for name in modules))
    assert not loaded & {"pygame", "matplotlib", *LEARNING}


def test_the_command_starts_without_heavy_imports() -> None:
    loaded = loaded_by("import kimble_app.cli")
    assert not loaded & {"pygame", "matplotlib", "numba", *LEARNING}


def test_the_code_cache_is_keyed_by_every_compiled_source() -> None:
    from kimble_env._jit import JITTED_SOURCES

    compiled = {
        path.relative_to(ROOT / "kimble_env").as_posix()
        for path in room_files("kimble_env")
        if re.search(r"^\s*@njit\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert compiled <= set(JITTED_SOURCES), "a change there would leave stale machine code in use"


def project_files() -> list[Path]:
    """Every text file that is, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:  # no git, or an unpacked archive
        hidden = {".git", ".venv", "runs", "build", "dist"}
        paths = [p for p in ROOT.rglob("*") if not hidden & set(p.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file()]


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    places = {str(ROOT), str(ROOT.parent), str(Path.home())} - {"/", "/tmp", "/home", "/Users"}
    folder = re.compile(
        r"(?<![\w.~/-])(?:/(?:home|Users)/\w+/|"
        + "|".join(re.escape(place) + "/" for place in sorted(places))
        + ")"
    )
    wrong = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if folder.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)
