"""Programs of the system that tests need: found, or the test skips (fails in CI) and names them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def need(name: str, *others: str) -> str:
    """Return the path of a program; skip the test, or in CI fail it, where there is none."""
    for candidate in (name, *others):
        found = shutil.which(candidate)
        if found is not None:
            return found
    if os.environ.get("KIMBLE_REQUIRE_ALL"):
        pytest.fail(f"{name} is not installed (KIMBLE_REQUIRE_ALL is set)")
    pytest.skip(f"needs {name}")


def chromium(page: Path, width: int, folder: Path) -> str:
    """Open a page in a browser without a screen; return its document once its scripts have run."""
    flags = (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--hide-scrollbars",
    )  # fmt: skip
    program = need("chromium", "chromium-browser", "google-chrome")
    done = subprocess.run(
        [program, *flags, f"--user-data-dir={folder / 'browser'}", f"--window-size={width},900",
         "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
