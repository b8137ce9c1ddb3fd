"""Calibration of levels: the ladder, the temperatures that hit it, and the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agents import levels
from agents.levels import find_calibration, softmax
from evaluation import calibrate as calibration
from evaluation.calibrate import (
    Reference,
    calibrate,
    calibrate_all,
    calibrate_stale,
    expected_loss,
    find_reference,
    ladder,
    read_levels,
    reference_of,
    stale_levels,
)
from kimble_app.cli import app
from kimble_env.errors import KimbleError
from kimble_env.opponents import decision_keys, make_agent


@pytest.fixture(scope="module")
def reference() -> Reference:
    return find_reference("kimble", 2, 3000)


def test_the_ladder_falls_by_one_factor() -> None:
    steps = ladder(0.002, 0.02)
    assert len(steps) == 10
    assert steps[0] == pytest.approx(0.018)
    assert steps[-1] == 0.002
    assert np.ptp(np.diff(np.log(steps))) < 1e-9
    perfect = ladder(0.0, 0.02)
    assert perfect[-1] == 0.0
    assert perfect[8] > 0.0005
    with pytest.raises(KimbleError, match=r"loses 19\.0 mWP per decision, chance 20\.0"):
        ladder(0.019, 0.02)


def test_expected_loss_by_hand(reference: Reference) -> None:
    positions = reference.positions[:1]
    legal = np.isfinite(reference.losses[0])
    legal[-1] = False  # pass is drawn only where it is best
    scores = np.where(np.isfinite(reference.losses[:1]), 0.0, -np.inf)
    scores[0, -1] = -1.0
    one = reference_of("one", reference.rules, positions, -reference.losses[:1])
    assert expected_loss(scores, np.inf, one)[0] == pytest.approx(reference.losses[0, legal].mean())


def test_levels_hit_their_ladder_when_they_play(reference: Reference) -> None:
    """The losses of what is really drawn are those that were promised."""
    entry = calibrate("cautious", reference)
    steps = ladder(entry["losses_mwp"][-1] / 1000, entry["hottest_mwp"] / 1000)
    assert entry["losses_mwp"] == pytest.approx([1000 * step for step in steps], abs=0.02)
    assert entry["temperatures"] == sorted(entry["temperatures"], reverse=True)
    base = make_agent("cautious", reference.rules)
    rows = np.arange(len(reference.positions))
    for level in (1, 5, 10):
        agent = levels.LevelAgent(base, reference.rules, level)
        agent.calibration = entry
        lost = reference.losses[rows, agent.act(reference.positions, decision_keys(
            reference.positions))]  # fmt: skip
        error = 1000 * lost.std() / np.sqrt(len(lost))
        assert abs(1000 * lost.mean() - entry["losses_mwp"][level - 1]) < 4 * error


def test_the_file_keeps_others_and_is_read_by_agents(reference: Reference, tmp_path: Path) -> None:
    small = find_reference("kimble", 2, 300)
    place = tmp_path / "levels.json"
    lines: list[str] = []
    calibrate_all(["cautious"], small, place, lines.append)
    first = json.loads(place.read_text(encoding="utf-8"))
    calibrate_all(["heuristic:mixed", "search:eval=linear,depth=1"], small, place, lines.append)
    table = read_levels(place)
    assert set(table["agents"]) == {"cautious", "mixed", "search:depth=1,eval=linear"}
    assert table["agents"]["cautious"] == first["agents"]["cautious"]
    assert len(lines) == 3
    for spec in ("cautious", "search:budget=20000,depth=1,eval=linear"):
        entry = find_calibration(make_agent(spec, small.rules), small.rules, table)
        assert entry is not None
        assert entry["decisions"] == 300
    place.write_text("[]", encoding="utf-8")
    with pytest.raises(KimbleError, match="is no file of levels"):
        calibrate_all(["cautious"], small, place)


def test_the_shipped_levels_are_those_of_the_shipped_agents() -> None:
    """A weight, a value function or a feature that changes wants `kimble calibrate` again."""
    table = read_levels(calibration.levels_path())
    unmade: list[str] = []
    assert stale_levels(table, unmade.append) == []
    assert unmade == []
    for games in table["agents"].values():
        for entry in games.values():
            assert entry["losses_mwp"] == sorted(entry["losses_mwp"], reverse=True)


def test_what_has_changed_is_calibrated_again(tmp_path: Path) -> None:
    place = tmp_path / "levels.json"
    small = find_reference("kombat", 2, 200)
    fresh = calibrate_all(["cautious", "mixed"], small, place)
    table = read_levels(place)
    table["agents"]["mixed"]["kombat-2p"]["fingerprint"] = "0" * 16
    table["agents"]["nobody"] = {"kombat-2p": {"fingerprint": ""}, "chess": {"fingerprint": ""}}
    place.write_text(json.dumps(table), encoding="utf-8")
    lines: list[str] = []
    done = calibrate_stale(place, 200, lines.append)
    assert done == {"mixed in kombat-2p": fresh["mixed"]}
    assert [line.partition(" cannot")[0] for line in lines[:2]] == [
        "nobody in kombat-2p", "nobody in chess",
    ]  # fmt: skip


def test_the_command_writes_and_says_where(tmp_path: Path) -> None:
    place = tmp_path / "levels.json"
    arguments = ["calibrate", "cautious", "--decisions", "200", "--out", str(place), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["file"] == str(place)
    assert said["agents"]["cautious"]["decisions"] == 200
    for wrong, words in (
        (["calibrate", "random"], "no ladder"),
        (["calibrate", "first.py:first"], "first.py"),
        (["calibrate"], "name agents"),
        (["calibrate", "cautious", "--stale"], "name agents"),
    ):
        done = CliRunner().invoke(app, [*wrong, "--decisions", "200", "--out", str(place)])
        assert words in str(done.exception)


def test_softmax_is_what_calibration_assumes(reference: Reference) -> None:
    scores = levels.move_scores(
        make_agent("cautious", reference.rules), reference.positions, reference.rules
    )
    chances = softmax(scores, 1.0, reference.rules.board.pass_action)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert (chances[~np.isfinite(reference.losses)] == 0.0).all()
