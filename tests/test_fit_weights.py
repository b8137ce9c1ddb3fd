"""Weights fitted to known values: planted ones are found again, playouts see a win in one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kimble_env import find_rules
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURES, random_weights
from kimble_env.kernel import legal_batch
from kimble_env.notation import parse_position
from kimble_env.opponents import make_agent, weight_vector
from training import fit_weights as fw

RULES = find_rules("kimble", players=2)
PLANTED = weight_vector({"pass": -0.3, "enter": 3, "capture": 2, "progress": 0.1, "risk_after": -1})


@pytest.fixture(scope="module")
def positions() -> np.ndarray:
    return fw.met_decisions(RULES, "mixed", 900, seed=3)


def planted_values(positions: np.ndarray) -> np.ndarray:
    from kimble_env.opponents import WeightAgent

    scores = WeightAgent("planted", RULES, PLANTED).score(positions).astype(float)
    return np.where(np.isfinite(scores), 0.5 + 0.01 * scores, np.nan)


def test_positions_are_decisions_and_repeatable(positions: np.ndarray) -> None:
    legal = np.empty(len(positions), np.int64)
    legal_batch(positions, RULES.array, legal)
    assert len(positions) == 900
    assert (legal & (legal - 1) != 0).all()
    assert positions["seed"].max() == 0  # nobody sees the dice to come
    again = fw.met_decisions(RULES, "mixed", 900, seed=3)
    assert all((positions[name] == again[name]).all() for name in positions.dtype.names)


def test_losses_and_slope_are_those_of_the_definition(positions: np.ndarray) -> None:
    win = planted_values(positions[:60])
    choices = fw.Choices(positions[:60], win, RULES)
    w = np.random.default_rng(1).normal(size=len(choices.columns))
    greedy, soft, row = 0.0, 0.0, 0
    for i in range(60):
        values = win[i][~np.isnan(win[i])]
        score = choices.x[row : row + len(values)].astype(float) @ w
        row += len(values)
        lost = values.max() - values
        chance = np.exp(score - score.max())
        soft += (chance / chance.sum() * lost).sum() / 60
        greedy += lost[np.isclose(score, score.max())].mean() / 60
    loss, slope = choices.soft_loss(w)
    assert loss == pytest.approx(soft, rel=1e-4)
    assert choices.greedy_loss(w) == pytest.approx(greedy, rel=1e-4)
    for k in (0, 7, 20):
        step = np.zeros_like(w)
        step[k] = 1e-2
        rise = (choices.soft_loss(w + step)[0] - choices.soft_loss(w - step)[0]) / 2e-2
        assert slope[k] == pytest.approx(rise, rel=0.02, abs=1e-6)


def test_planted_weights_are_found_again(positions: np.ndarray) -> None:
    win = planted_values(positions)
    seen = fw.Choices(positions[:700], win[:700], RULES)
    held = fw.Choices(positions[700:], win[700:], RULES)
    start = weight_vector({"pass": -1, "progress": 0.1})
    before = held.greedy_loss(start[held.columns] * held.spread)
    found = fw.fit(seen, held, start, steps=200)
    assert held.greedy_loss(found * held.spread) < before / 5


def test_playouts_see_a_win_in_one_move() -> None:
    rules, states = parse_position("kimble R27,29,30,31/Y3,4,5,6 R 1 1")
    weights = make_agent("mixed", rules).weights.copy()
    win = fw.played_values(states, weights, [random_weights(), weights], 40, 1, rules)
    assert win[0, 28] == 1.0  # 27-28
    assert 0.5 < win[0, rules.board.pass_action] < 1.0
    assert np.isnan(win[0]).sum() == rules.board.actions - 2  # pass and the move


def test_unit_scales_the_features_searched(positions: np.ndarray) -> None:
    choices = fw.Choices(positions[:200], planted_values(positions[:200]), RULES)
    once, twice = fw.unit(PLANTED, choices), fw.unit(2 * PLANTED, choices)
    assert once == pytest.approx(twice)
    assert np.sqrt(((once[choices.columns] * choices.spread) ** 2).mean()) == pytest.approx(1)


def test_the_program_writes_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fw, "STEPS", 20)
    out = tmp_path / "weights.json"
    words = ["fit", "kimble", "2", "exact", str(out), "--count", "1500", "--keep", "0.5"]
    monkeypatch.setattr("sys.argv", words)
    fw.main()
    assert "loss per decision on 300 held out" in capsys.readouterr().out
    about = json.loads(out.read_text())
    assert about["loss_mwp_fitted"] <= about["loss_mwp_before"]
    assert set(about["weights"]) <= set(FEATURES)
    assert make_agent(f"weights:{out}", RULES).weights.any()


def test_an_agent_without_win_chances_is_refused() -> None:
    with pytest.raises(KimbleError, match="has no win chances to fit to"):
        fw.known_values(RULES, "random", "mixed", "mixed", 10, 1)
