"""The example scripts: short, and they learn."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from training.examples import ppo_one_file, q_learning

try:
    from training.examples import torchrl_ppo
except ModuleNotFoundError:  # it is an extra of its own
    torchrl_ppo = None

FOLDER = Path(ppo_one_file.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_an_example_is_under_80_lines_and_says_how_it_is_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80
    assert f"python -m training.examples.{path.stem}" in text


def test_ppo_in_one_file_learns() -> None:
    shares = ppo_one_file.train(updates=24, games=128, steps=32)
    assert sum(shares[-6:]) / 6 > sum(shares[1:7]) / 6 + 0.05


@pytest.mark.skipif(
    torchrl_ppo is None and not os.environ.get("KIMBLE_REQUIRE_ALL"), reason="needs torchrl"
)
def test_ppo_of_torchrl_learns() -> None:
    shares = torchrl_ppo.train(updates=16, games=128, steps=32)
    assert sum(shares[-4:]) / 4 > sum(shares[1:5]) / 4 + 0.02


@pytest.mark.long
def test_q_learning_reaches_the_exact_values() -> None:
    error, loss, judged = q_learning.train(2048)
    assert judged > 300
    assert error < 15.0
    assert loss < 1.0


def test_q_learning_comes_near_the_exact_values_in_seconds() -> None:
    error, loss, judged = q_learning.train(256)
    assert judged > 20
    assert error < 100.0
    assert loss < 5.0
