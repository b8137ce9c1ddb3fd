"""From a trained network to a model that is shipped: ONNX, safetensors, JSON, card, golden vectors.

    python -m training.export runs/first kimble-2p

reads ``runs/first/value.*`` and writes into ``agents/models``::

    kimble-2p.onnx          features float32 [B, F] -> win float32 [B, 4], relative seats
    kimble-2p.safetensors   the weights
    kimble-2p.json          what it is for, how it was trained, what was measured
    kimble-2p.md            the same for people
    golden/kimble-2p.json   positions, their features and values, for ports to other languages
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.exact.decisions import read_decisions, set_path
from agents.net_features import feature_count, feature_version, net_features
from agents.network import ModelError, what_is_missing
from agents.value_net import MODELS, Layer, ValueNet, read_net, write_net
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.kernel import (
    RUNNING,
    empty_states,
    game_keys,
    new_game_batch,
    play_random_batch,
    take_states,
)
from kimble_env.notation import format_position
from kimble_env.rules import Rules

OPSET = 17
GOLDEN = 60
AGAINST = ("random", "mixed", "tuned")
MOST_BYTES = 300_000


# --------------------------------------------------------------------------------------------- ONNX


def onnx_model(layers: Sequence[Layer], present: Sequence[int], about: str) -> bytes:
    """Return a network as ONNX: ``features`` float32 [B, F] to ``win`` float32 [B, 4].

    ``win`` counts seats clockwise from the one about to throw; seats whose column of ``present``
    is 0 get 0.

    Args:
        layers: (weight float32 [out, in], bias float32 [out]) of three layers.
        present: the four columns of the features that say which relative seats take turns.
        about: text kept in the file.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def constant(name: str, value: Any) -> Any:
        return numpy_helper.from_array(np.asarray(value), name)

    weights, nodes, last = [], [], "features"
    for k, (weight, bias) in enumerate(layers):
        weights += [constant(f"layer{k}.weight", weight), constant(f"layer{k}.bias", bias)]
        inputs = [last, f"layer{k}.weight", f"layer{k}.bias"]
        nodes.append(helper.make_node("Gemm", inputs, [f"sum{k}"], transB=1))
        last = f"sum{k}"
        if k < len(layers) - 1:
            nodes.append(helper.make_node("Relu", [last], [f"relu{k}"]))
            last = f"relu{k}"
    weights += [
        constant("present", np.asarray(present, np.int64)),
        constant("one", np.float32(1.0)),
        constant("far", np.float32(1e9)),
    ]
    nodes += [
        helper.make_node("Gather", ["features", "present"], ["plays"], axis=1),
        helper.make_node("Sub", ["plays", "one"], ["absent"]),
        helper.make_node("Mul", ["absent", "far"], ["away"]),
        helper.make_node("Add", [last, "away"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["win"], axis=1),
    ]
    width = layers[0][0].shape[1]
    graph = helper.make_graph(
        nodes,
        "kimble-value",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("win", TensorProto.FLOAT, ["batch", 4])],
        weights,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="kimble-rl"
    )
    model.ir_version = 8
    model.doc_string = about
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


# -------------------------------------------------------------------------------------- golden file


def golden_positions(rules: Rules, count: int = GOLDEN) -> Any:
    """Return positions STATE [count] before a throw, from random games of every length."""
    games = 40 * count
    states = empty_states(games)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    keys = np.empty(games, np.uint64)
    game_keys(np.uint64(2026), 0, keys)
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    for k in range(8):
        play_random_batch(states[games * k // 8 :], rules.array, 12)
    running = np.flatnonzero(states["status"] == RUNNING)
    chosen = running[np.linspace(0, len(running) - 1, count).astype(np.int64)]
    return take_states(states, chosen)


def golden(net: ValueNet, count: int = GOLDEN) -> dict[str, Any]:
    """Return golden vectors: position text, the features that are not zero, the values."""
    rules = net.rules
    states = golden_positions(rules, count)
    features = net_features(states, rules.array, feature_count(rules))
    rows = []
    for i, value in enumerate(net.value(states)):
        at = np.flatnonzero(features[i])
        rows.append(
            {
                "position": format_position(rules, states[i]),
                "features": {str(k): float(features[i, k]) for k in at},
                "win": [round(float(x), 7) for x in value],
            }
        )
    return {
        "format": "kimble-golden-1",
        "rules": str(rules),
        "rules_hash": rules.hash,
        "feature_version": feature_version(rules),
        "model_hash": net.hash,
        "features": feature_count(rules),
        "seats": "win: chances of red, blue, yellow, green; features: agents/net_features.py",
        "vectors": rows,
    }


# ---------------------------------------------------------------------------------------- measuring


def measure(
    net: ValueNet, games: int, against: Sequence[str] = AGAINST, threads: int = 1
) -> dict[str, Any]:
    """Play a network against weight vectors, and one of those against networks; measure its loss.

    Returns:
        ``matches``: one v the others of each baseline; ``reversed``: one of the last baseline
        v networks (three players and more); ``loss``: in mWP on the committed exact decisions,
        where there are any.
    """
    from training.td import judge

    matches, turned = {}, {}
    for name in against:
        matches[name] = judge(net.layers, net.rules, name, games, 11, 5000, threads)
        if net.rules.players > 2 and name == against[-1]:
            turned[name] = judge(
                net.layers, net.rules, name, games, 12, 5000, threads, reverse=True
            )
    return {"matches": matches, "reversed": turned, "loss": exact_loss(net)}


def exact_loss(net: ValueNet) -> dict[str, Any] | None:
    """Return the mean loss per decision on the committed exact decisions, None without a set."""
    if len(net.rules.seats) != 2 or not set_path(net.rules).exists():
        return None
    decisions = read_decisions(net.rules)
    keys = np.zeros(len(decisions.positions), np.uint64)
    losses = 1000 * decisions.losses(net.act(decisions.positions, keys))
    error = float(losses.std() / np.sqrt(len(losses)))
    mean = float(losses.mean())
    values = net.value(decisions.sample)
    own = values[np.arange(len(values)), decisions.sample["seat"]]
    return {
        "decisions": len(losses),
        "mean_mwp": mean,
        "interval95": [mean - 1.96 * error, mean + 1.96 * error],
        "best_move_share": float((losses <= 0.05).mean()),
        "value_error_rms": float(np.sqrt(np.mean((own - decisions.value) ** 2))),
    }


def _budget(about: dict[str, Any]) -> str:
    """Return what a network has learned from, in words."""
    if "positions" in about:
        return f"{about['positions']:,} positions shown"
    return f"{about.get('throws', 0):,} throws"


def card(name: str, config: dict[str, Any]) -> str:
    """Return the model card as Markdown."""
    about, found = config.get("training", {}), config.get("measured", {})
    shape = " → ".join(map(str, config["layers"]))
    lines = [
        f"# Model {name}",
        "",
        f"Value network for `{config['rules']}` with {config['players']} players: each seat's "
        f"chance to win, of a position before a throw. As an agent (`net:{name}`) it plays the "
        "move after which its own chance is highest.",
        "",
        f"- Rules hash {config['rules_hash']}, seats {config['seats']} (and the same turned), "
        f"feature version {config['feature_version']}, ONNX opset {config['opset']}.",
        f"- {shape}, ReLU, softmax over the seats that still take turns.",
        f"- Learned by {about.get('method')}: `{about.get('command')}`, "
        f"{_budget(about)}, commit {about.get('commit')}.",
        f"- Versions: {', '.join(f'{k} {v}' for k, v in about.get('versions', {}).items())}.",
        "",
        "| against | games | wins % | 95 % interval | cut off |",
        "|---|---|---|---|---|",
    ]
    others = config["players"] - 1
    for label, part in (("one network v {n} {x}", "matches"), ("one {x} v {n} networks",
                                                              "reversed")):
        for x, row in found.get(part, {}).items():
            low, high = (100 * end for end in row["interval95"])
            lines.append(
                f"| {label.format(n=others, x=x)} | {row['games']:,} | "
                f"{100 * row['win_share']:.1f} | {low:.1f} to {high:.1f} | {row['cut_off']} |"
            )
    lines += ["", f"Wilson intervals; all rotations of the seats on equal dice; par is "
              f"{100 / config['players']:.0f} %; a game cut off after 5,000 throws counts as par."]
    loss = found.get("loss")
    if loss:
        low, high = loss["interval95"]
        lines += [
            "",
            f"Loss per decision on {loss['decisions']:,} committed decisions with exact values: "
            f"{loss['mean_mwp']:.2f} mWP ({low:.2f} to {high:.2f}); the best move in "
            f"{100 * loss['best_move_share']:.1f} % of them; root mean square error of the win "
            f"chance on 200,000 positions {loss['value_error_rms']:.4f}.",
        ]
    lines += ["", f"Made by `{config['export_command']}`."]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------- the whole


def _net_of(folder: Path, name: str) -> ValueNet:
    """Return the value network of a run folder.

    Raises:
        ModelError: none there, or a damaged one.
    """
    for place in (folder, folder / "policy"):
        if not (folder / "value.json").exists() and (place / "policy.json").exists():
            raise ModelError(
                f"{str(folder)!r} is a run of kimble train ppo: its policy plays as net:{place}; "
                "value networks are what ships (kimble train td, kimble train distil)"
            )
    if not (folder / "value.json").exists():
        raise ModelError(what_is_missing(folder))
    return read_net(folder / "value", f"net:{name}")


def export(
    folder: str | Path,
    name: str,
    *,
    games: int = 20_000,
    out: Path = MODELS,
    threads: int = 1,
    against: Sequence[str] = AGAINST,
) -> dict[str, Any]:
    """Write the model of a run folder under a name; return its JSON.

    Raises:
        KimbleError: a name that is no plain word, a damaged run, or files that grow too large.
    """
    if not name.replace("-", "").isalnum():
        raise KimbleError(f"a model's name is made of letters, digits and -, got {name!r}")
    if games < 1:
        raise KimbleError(f"games must be at least 1, got {games}")
    net = _net_of(Path(folder), name)

    from training.td import present_columns  # imports torch: after the checks

    about = {key: value for key, value in net.config.items() if key == "training"}
    data = onnx_model(net.layers, present_columns(net.rules), f"{name}: {net.rules}")
    about |= {
        "name": name,
        "opset": OPSET,
        "model_hash": net.hash,
        "measured": measure(net, games, against, threads),
        "export_command": f"kimble export FOLDER {name} --games {games}",
    }
    write_net(out / name, net.rules, net.layers, **about)
    write_whole(out / f"{name}.onnx", data)
    (out / "golden").mkdir(exist_ok=True)
    vectors = json.dumps(golden(net)).replace('{"position"', '\n{"position"')
    write_whole(out / "golden" / f"{name}.json", vectors + "\n")
    config: dict[str, Any] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    write_whole(out / f"{name}.md", card(name, config))
    for kind in ("onnx", "safetensors", "json"):
        size = (out / f"{name}.{kind}").stat().st_size
        if size > MOST_BYTES:
            raise KimbleError(f"{name}.{kind} has {size:,} bytes, at most {MOST_BYTES:,} may ship")
    return config


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m training.export``."""
    parser = argparse.ArgumentParser("python -m training.export", description="Ship a network.")
    parser.add_argument("folder", help="of a run with value.safetensors and value.json")
    parser.add_argument("name", help="such as kimble-2p")
    parser.add_argument("--games", type=int, default=20_000, help="per figure of the card (20000)")
    parser.add_argument("--out", type=Path, default=MODELS, help="where to (agents/models)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    try:
        config = export(
            given.folder, given.name, games=given.games, out=given.out, threads=given.threads
        )
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(card(given.name, config))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
