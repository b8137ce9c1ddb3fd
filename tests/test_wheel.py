"""The wheel: built, installed into an environment of its own, and played from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kimble_env", "agents", "evaluation", "training", "kimble_app")

PLAY = """
import importlib.metadata, pathlib, sys
import kimble_env
from kimble_env import Game

assert pathlib.Path(kimble_env.__file__).is_relative_to(sys.prefix), kimble_env.__file__
assert importlib.metadata.version("kimble-rl") == sys.argv[1]
assert any(e.name == "agents" for e in importlib.metadata.entry_points(group="kimble.agents"))
game = Game("norske", seed=7)
throws = 0
while not game.result:
    game.throw()
    throws += 1
    if game.legal_moves:
        game.play(game.legal_moves[0])
print(game.to_text(), throws)
"""


def run(command: list[str | Path], **kwargs: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def test_the_wheel_installs_and_plays_elsewhere(tmp_path: Path) -> None:
    # A copy is built: setuptools leaves build/ in the source tree, and takes stale files from it.
    source = tmp_path / "source"
    skip = shutil.ignore_patterns(
        ".*", "runs", "build", "dist", "bench-results", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=skip)
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source],
        cwd=tmp_path,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("kimble_rl-")
    assert wheel.name.endswith("-py3-none-any.whl"), "the wheel must be pure Python"

    inside = set(zipfile.ZipFile(wheel).namelist())
    version = wheel.name.split("-")[1]
    tops = {name.partition("/")[0] for name in inside}
    assert tops == {*ROOMS, f"kimble_rl-{version}.dist-info"}, "only the five rooms are packaged"
    assert not [name for name in inside if "test_" in name]
    assert "kimble_env/py.typed" in inside
    left_out = [
        str(path.relative_to(source))
        for room in ROOMS
        for path in (source / room).rglob("*")
        if path.is_file()
        and path.suffix != ".md"
        and path.relative_to(source).as_posix() not in inside
    ]
    assert not left_out, f"files of the rooms that the wheel lacks: {left_out}"

    # A new environment that sees the dependencies installed here, but not this project.
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
         "--no-index", wheel])  # fmt: skip
    site = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    clean["KIMBLE_CACHE"] = str(tmp_path / "cache")
    played = run([python, "-c", PLAY, version], cwd=elsewhere, env=clean)
    assert played.startswith("norske ")
    assert "evaluate" in run([scripts / "kimble", "--help"], cwd=elsewhere, env=clean)
    assert not list(elsewhere.iterdir()), "an import or a game left files behind"
