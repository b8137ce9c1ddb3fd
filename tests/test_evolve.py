"""Weights by evolution: it finds what is planted, goes on where it was killed, writes its data."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from agents.heuristics import heuristic_names
from evaluation import play_match
from kimble_env import find_rules
from kimble_env.errors import AgentError, KimbleError
from kimble_env.features import FEATURES, random_weights
from kimble_env.opponents import WeightAgent, make_agent, weight_vector
from training import evolve as e
from training.evolve import Settings, evolve

TINY = Settings(generations=3, population=4, games=40, check_every=2, check_games=40, start="mixed")
HEURISTICS = Path(e.__file__).parent.parent / "agents" / "heuristics.json"


def test_a_tiny_run_writes_its_folder_and_is_repeatable(tmp_path: Path) -> None:
    first = evolve(TINY, tmp_path / "a", progress=False, threads=1)
    again = evolve(TINY, tmp_path / "b", progress=False, threads=2)
    assert first.tobytes() == again.tobytes()
    log = [json.loads(line) for line in (tmp_path / "a" / "log.jsonl").read_text().splitlines()]
    assert [entry["generation"] for entry in log if "generation" in entry] == [1, 2, 3]
    assert [entry["check"] for entry in log if "check" in entry] == [0, 2, 3]
    assert json.loads((tmp_path / "a" / "settings.json").read_text())["population"] == 4
    agent = make_agent(
        f"weights:{tmp_path / 'a' / 'weights.json'}", find_rules("kimble", players=2)
    )
    assert isinstance(agent, WeightAgent)
    assert agent.weights == pytest.approx(first, rel=1e-3)
    with pytest.raises(KimbleError, match="holds a run already"):
        evolve(TINY, tmp_path / "a", progress=False)


def test_a_run_that_was_killed_goes_on_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evolve(TINY, tmp_path / "whole", progress=False, threads=1)

    class Killed(Exception):
        pass

    def dies(self: e.Arena, candidates: list, opponents: list, seed: int) -> np.ndarray:
        calls.append(seed)
        if len(calls) == 4:  # in the second generation, after the check of the first
            raise Killed
        return shares(self, candidates, opponents, seed)

    calls: list[int] = []
    shares = e.Arena.shares
    monkeypatch.setattr(e.Arena, "shares", dies)
    with pytest.raises(Killed):
        evolve(TINY, tmp_path / "part", progress=False, threads=1)
    monkeypatch.setattr(e.Arena, "shares", shares)
    assert 1 <= pickle.loads((tmp_path / "part" / "state.pickle").read_bytes()).generation < 3
    with pytest.raises(KimbleError, match="started with other settings: generations was 3, now 60"):
        evolve(Settings(), tmp_path / "part", resume=True, insist=["generations"])
    rest = evolve(Settings(), tmp_path / "part", progress=False, threads=1, resume=True)
    assert rest.tobytes() == whole.tobytes()
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("whole", "part")]
    assert logs[0] == logs[1]


def test_the_arena_counts_what_a_match_counts() -> None:
    rules = find_rules("kombat", players=3)
    weights = make_agent("runner", rules).weights
    shares = e.Arena(rules, 300, 5000, 1).shares([weights], [random_weights()], seed=9)
    result = play_match(["runner", "random", "random"], rules, games=300, seed=9)
    assert shares[0, 0] == pytest.approx(result.share(0))


def test_common_dice_give_equal_candidates_equal_shares() -> None:
    rules = find_rules("norske", players=4)
    arena = e.Arena(rules, 10, 5000, 1)
    assert arena.games == 12  # whole rotations
    weights = make_agent("mixed", rules).weights
    shares = arena.shares([weights, 2 * weights], [random_weights(), weights], seed=3)
    assert shares[0].tolist() == shares[1].tolist()


def test_evolution_finds_strength_from_nothing_much(tmp_path: Path) -> None:
    settings = Settings(
        generations=6, population=8, games=120, check_every=3, check_games=200, step=0.6,
        start='weights:{"enter": 0.1}', opponents=("random",),
    )  # fmt: skip
    best = evolve(settings, tmp_path / "run", progress=False, threads=1)
    rules = find_rules("kimble", players=2)
    result = play_match([WeightAgent("found", rules, best), "random"], rules, games=1500, seed=2)
    assert result.share(0) > 0.5


def test_publishing_writes_the_data_and_the_log(tmp_path: Path) -> None:
    data = tmp_path / "heuristics.json"
    shutil.copy(HEURISTICS, data)
    evolve(TINY, tmp_path / "run", progress=False, threads=1)
    assert e.publish(tmp_path / "run", data) == "kimble-2p"
    table = json.loads(data.read_text())
    assert tuple(table) == heuristic_names()
    weights = table["tuned"]["for"]["kimble-2p"]
    assert weight_vector(weights).any()
    head = json.loads((tmp_path / "tuned" / "kimble-2p.jsonl").read_text().splitlines()[0])
    assert head["weights"] == weights
    assert head["command"].startswith("kimble train evolve RUN --generations 3")
    assert head["games_played"] > 0
    old = json.loads(HEURISTICS.read_text())
    for name, entry in table.items():  # nothing else has changed
        assert name == "tuned" or entry == old[name]


def test_the_committed_file_is_written_as_publish_writes_it() -> None:
    text = HEURISTICS.read_text(encoding="utf-8")
    assert e.format_heuristics(json.loads(text)) == text


def test_the_committed_logs_are_those_of_the_weights() -> None:
    table = json.loads(HEURISTICS.read_text(encoding="utf-8"))
    for key, weights in table["tuned"].get("for", {}).items():
        path = HEURISTICS.parent / "tuned" / f"{key}.jsonl"
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert lines[0]["weights"] == weights
        assert lines[0]["rules_hash"] == find_rules(lines[0]["rules"]).hash
        assert sum("generation" in line for line in lines[1:]) == lines[0]["generations"]


def test_searched_features_fit_the_rules() -> None:
    kimble, norske = find_rules("kimble", players=2), find_rules("norske")
    assert "pass" in e.tuned_features(kimble)
    assert "battery" not in e.tuned_features(kimble)
    assert "pass" not in e.tuned_features(norske)
    assert {"battery", "forced_loss", "leader"} <= set(e.tuned_features(norske))
    assert "battle_swing" in e.tuned_features(find_rules("kombat"))
    assert set(e.tuned_features(norske)) <= set(FEATURES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": 3}, "population must be a whole number of at least 4, got 3"),
        ({"generations": 0}, "generations must be"),
        ({"players": 1}, "players must be"),
        ({"players": 5}, "players"),
        ({"step": float("nan")}, "step must be"),
        ({"opponents": ()}, "opponents must name"),
        ({"opponents": ("self",)}, "opponents must name"),
        ({"opponents": ("nobody",)}, "unknown agent 'nobody'"),
        ({"opponents": ("search",)}, "is no weight vector"),
        ({"start": "nobody"}, "unknown agent 'nobody'"),
        ({"rules": "ludo"}, "ludo"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict, message: str) -> None:
    from dataclasses import replace

    with pytest.raises(KimbleError, match=message):
        evolve(replace(TINY, **changes), tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "state.pickle").exists()


def test_faults_of_resuming_and_publishing(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="no run to resume"):
        evolve(TINY, tmp_path, resume=True, progress=False)
    (tmp_path / "state.pickle").write_bytes(b"nonsense")
    with pytest.raises(KimbleError, match="cannot be read"):
        evolve(TINY, tmp_path, resume=True, progress=False)
    (tmp_path / "state.pickle").write_bytes(pickle.dumps([1]))
    with pytest.raises(KimbleError, match="is no search"):
        e.publish(tmp_path, HEURISTICS)
    assert issubclass(AgentError, KimbleError)
