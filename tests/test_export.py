"""Models that ship, and networks fitted to exact values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agents.network import ModelError
from agents.value_net import load_net, read_net, write_net
from kimble_env import find_rules
from kimble_env.errors import KimbleError
from kimble_env.opponents import make_agent
from tests.test_value_net import random_layers
from training.distil import DistilConfig, Learner, distil
from training.export import export, golden_positions


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rules = find_rules("kombat", players=3)
    about = {"method": "none", "command": "by hand", "throws": 7, "versions": {"torch": "0"}}
    write_net(tmp_path / "run" / "value", rules, random_layers(rules), training=about)
    return tmp_path / "run"


def test_an_exported_model_is_whole(run: Path, tmp_path: Path) -> None:
    import onnxruntime

    out = tmp_path / "out"
    config = export(run, "mine-3p", games=12, out=out)
    net, source = read_net(out / "mine-3p", "net:mine-3p"), load_net(str(run))
    assert net.hash == source.hash == config["model_hash"]
    for name in (out / "mine-3p", out / "mine-3p.onnx", out / "mine-3p.safetensors"):
        assert load_net(str(name)).hash == net.hash
        assert make_agent(f"net:{name}", find_rules("kombat", players=3)).spec == f"net:{name}"
    with pytest.raises(ModelError, match="path of an exported one"):
        load_net(str(out / "mine-2p"))
    assert config["training"]["throws"] == 7
    assert config["opset"] == 17
    matches = config["measured"]["matches"]
    assert {name: row["games"] for name, row in matches.items()} == dict.fromkeys(matches, 12)
    assert list(config["measured"]["reversed"]) == ["tuned"]
    card = (out / "mine-3p.md").read_text()
    for text in ("kombat", "by hand", "one network v 2 random", "one tuned v 2 networks"):
        assert text in card
    told = json.loads((out / "golden" / "mine-3p.json").read_text())
    row = np.zeros((1, told["features"]), np.float32)
    for k, value in told["vectors"][5]["features"].items():
        row[0, int(k)] = value
    session = onnxruntime.InferenceSession(out / "mine-3p.onnx")
    win = session.run(None, {"features": row})[0][0]
    seat = "RBYG".index(told["vectors"][5]["position"].split()[-3])
    assert np.roll(win, seat) == pytest.approx(told["vectors"][5]["win"], abs=1e-6)


def test_golden_positions_are_of_all_stages() -> None:
    states = golden_positions(find_rules("norske", players=4))
    assert (states["status"] == 0).all()
    assert (states["die"] == 0).all()
    done = (states["pieces"] + 1).clip(0).sum(axis=(1, 2))
    assert done.min() < 20
    assert done.max() > 150


def test_what_cannot_be_exported_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="letters, digits"):
        export(run, "../mine", out=tmp_path)
    with pytest.raises(KimbleError, match="games must be at least 1"):
        export(run, "mine", games=0, out=tmp_path)
    with pytest.raises(ModelError, match=r"neither value\.json of kimble train td"):
        export(tmp_path, "mine", out=tmp_path)
    with pytest.raises(ModelError, match="there is no folder"):
        export(tmp_path / "nowhere", "mine", out=tmp_path)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "policy.json").write_text("{}")
    with pytest.raises(ModelError, match="run of kimble train ppo: its policy plays as net:"):
        export(tmp_path, "mine", out=tmp_path)


@pytest.mark.parametrize(("rules", "source"), [("kimble", "set"), ("kimble[pieces=1]", "table")])
def test_a_network_comes_nearer_to_exact_values(tmp_path: Path, rules: str, source: str) -> None:
    steps = 240 if source == "set" else 80
    config = DistilConfig(
        rules=rules, source=source, steps=steps, batch=128, hidden=16, hidden2=8, evaluate_games=20
    )
    net = distil(config, tmp_path / "run", progress=False)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[-1]["steps"] == steps
    assert rows[-1]["loss"] < rows[0]["loss"]
    if source == "set":
        assert rows[-1]["exact_loss_mwp"] < rows[0]["exact_loss_mwp"]
    assert net.config["training"]["command"].startswith("kimble train distil FOLDER")
    with pytest.raises(KimbleError, match="holds a run already"):
        distil(config, tmp_path / "run", progress=False)


def test_an_interrupted_fit_leaves_the_network_last_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = DistilConfig(steps=100, batch=64, hidden=16, hidden2=8, evaluate_games=20)
    learn, done = Learner.learn, []

    def interrupt(self: Learner, *what: object) -> object:
        done.append(1)
        if len(done) == 25:
            raise KeyboardInterrupt
        return learn(self, *what)

    monkeypatch.setattr(Learner, "learn", interrupt)
    with pytest.raises(KeyboardInterrupt):
        distil(config, tmp_path / "run", progress=False)
    assert load_net(str(tmp_path / "run")).config["training"]["positions"] == 20 * 64


def test_distillation_refuses_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(KimbleError, match="source must be"):
        DistilConfig(source="air")
    with pytest.raises(KimbleError, match="steps must be"):
        DistilConfig(steps=0)
    with pytest.raises(KimbleError, match="no committed positions of norske"):
        distil(DistilConfig(rules="norske"), tmp_path / "x", progress=False)
