"""Policy networks that play anywhere: a small network from a folder, run compiled.

A model is a folder with two files. ``policy.safetensors`` holds the weights: ``layer0.weight``
[out, in], ``layer0.bias`` [out], ... of the network that sees the board, and, if there is one,
those of the network that sees a move: ``move.features`` [W, K], ``move.board`` [W, last hidden],
``move.bias`` [W], ``move.score`` [W], ``move.constant`` [1]. The logit of an action is the sum of
both (see ``agents.policy_kernel``). ``policy.json`` says what it was made for: rules and their
hash, observation and action version, layer sizes, activation, features, how it was trained.
Training writes it (:func:`save_policy`), the agent spec ``net:FOLDER`` reads it; torch is not
needed to play.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.move_inputs import MoveInputs
from agents.policy_kernel import (
    Floats,
    Layer,
    act_batch,
    make_net,
    make_scratch,
    policy_batch,
)
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURES
from kimble_env.files import write_whole
from kimble_env.observation import ACTION_VERSION, OBSERVATION_VERSION, observation_size
from kimble_env.rules import Rules, find_rules

FORMAT = "kimble-policy-2"
ACTIVATIONS = ("tanh", "relu")
MOVE_WEIGHTS = ("features", "board", "bias", "score", "constant")
"""Weights of the network that sees a move, in the order of ``policy_kernel.make_net``."""


class ModelError(KimbleError):
    """A model that is missing, damaged, or made for other rules or another observation."""


class PolicyAgent:
    """Plays by a policy network.

    Args:
        spec: the text it is known by.
        rules: the rules it plays by; they must have the hash of the model's rules.
        config: contents of ``policy.json``.
        layers: (weight float32 [out, in], bias float32 [out]) of each layer.
        sample: draw from the policy (with the keys) instead of taking its most probable action.
        move_weights: the weights of the network that sees a move, by the names of MOVE_WEIGHTS;
            none: the board decides alone.

    Raises:
        ModelError: the model was made for other rules or another observation version.
    """

    def __init__(
        self,
        spec: str,
        rules: Rules,
        config: dict[str, Any],
        layers: list[Layer],
        sample: bool = False,
        move_weights: Mapping[str, Floats] | None = None,
    ) -> None:
        self.spec = spec
        self.rules = rules
        self.config = config
        self.sample = sample
        moves = dict(move_weights or {})
        faults = _faults(rules, config, layers) or _move_faults(config, moves, layers)
        if faults:
            raise ModelError(f"model {spec!r}: " + "; ".join(faults))
        self.moves = MoveInputs(rules, config["moves"] if moves else ())
        parts = [moves[name] for name in MOVE_WEIGHTS] if moves else []
        self._net = make_net(layers, parts, config["activation"] == "relu")

    @property
    def draws_lots(self) -> bool:
        """Whether an exact result cannot be had of it."""
        return self.sample

    def probabilities(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return the policy float32 [B, A] over the legal actions; other actions have 0."""
        out = np.empty((len(positions), self.rules.board.actions), np.float32)
        policy_batch(np.ascontiguousarray(positions), *self._asked(), out)
        return out

    def act(
        self, positions: npt.NDArray[np.void], keys: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int16]:
        """Return one legal action int16 [B] for each position STATE [B] with a die to play."""
        out = np.empty(len(positions), np.int16)
        act_batch(np.ascontiguousarray(positions), *self._asked(), self.sample, keys, out)
        return out

    def _asked(self) -> tuple[Any, ...]:
        """Return what compiled code wants to know; the working memory is new for every call."""
        work = make_scratch(self.moves.columns, self._net, self.moves.shape[0])
        return self.rules.array, self.moves.columns, self._net, work


def other_facts(rules: Rules, config: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return where a model's JSON says something else than these rules expect."""
    return [
        f"made for {config.get('rules')!r}, asked for {str(rules)!r} (rules_hash {value})"
        if key == "rules_hash"
        else f"{key} is {config.get(key)!r}, expected {value!r}"
        for key, value in expected.items()
        if config.get(key) != value
    ]


def _faults(rules: Rules, config: dict[str, Any], layers: list[Layer]) -> list[str]:
    """Return every reason why a model cannot play these rules."""
    expected = {
        "format": FORMAT,
        "rules_hash": rules.hash,
        "observation_version": OBSERVATION_VERSION,
        "action_version": ACTION_VERSION,
    }
    faults = other_facts(rules, config, expected)
    if config.get("activation") not in ACTIVATIONS:
        faults.append(f"activation {config.get('activation')!r} is not one of {list(ACTIVATIONS)}")
    if not faults:
        sizes = (
            [layers[0][0].shape[1], *(weight.shape[0] for weight, _ in layers)] if layers else []
        )
        if sizes != config.get("layers"):
            faults.append(f"layer sizes {sizes} differ from those stated, {config.get('layers')}")
        elif sizes[0] != observation_size(rules.board) or sizes[-1] != rules.board.actions:
            faults.append(f"layer sizes {sizes} do not fit the board {rules.board.name}")
    return faults


def _move_faults(
    config: dict[str, Any], weights: Mapping[str, Floats], layers: list[Layer]
) -> list[str]:
    """Return every reason why the network that sees a move cannot be used."""
    if not weights:
        return []
    names = config.get("moves", [])
    unknown = [name for name in names if name not in FEATURES]
    if unknown:
        return [f"unknown features of moves: {', '.join(map(str, unknown))}"]
    missing = [name for name in MOVE_WEIGHTS if name not in weights]
    if missing:
        return [f"weights missing: {', '.join(f'move.{name}' for name in missing)}"]
    width = len(weights["bias"])
    hidden = layers[-1][0].shape[1]
    shapes = [(width, len(names)), (width, hidden), (width,), (width,), (1,)]
    if [weights[name].shape for name in MOVE_WEIGHTS] != shapes:
        return [f"{len(names)} features of moves do not fit the network that sees a move"]
    return []


def what_is_missing(folder: str | Path) -> str:
    """Return why a folder holds no network to play: what was looked for, and what to do."""
    place = Path(folder)
    if not place.is_dir():
        return f"there is no folder {str(folder)!r}"
    inside = place / "policy"
    if (inside / "policy.json").exists():
        return f"the policy of the run {str(folder)!r} is in {str(inside)!r}: say net:{inside}"
    text = (
        f"no network in {str(folder)!r}: neither value.json of kimble train td or distil nor "
        "policy.json of kimble train ppo is there"
    )
    if (place / "config.json").exists():
        return f"{text}; the run was stopped before it kept one (train td and ppo: --resume)"
    return f"{text}; name the folder of a run, or its folder policy"


def load_policy(
    folder: str | Path, rules: Rules | str | None = None, sample: bool = False
) -> PolicyAgent:
    """Return the agent of a model folder, for its own rules or for ``rules``.

    Raises:
        ModelError: no model there, a damaged file, or one made for other rules or versions.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    place = Path(folder)
    try:
        config = json.loads((place / "policy.json").read_text(encoding="utf-8"))
        tensors = load_file(place / "policy.safetensors")
    except FileNotFoundError:
        if not (place / "policy.json").exists():
            raise ModelError(what_is_missing(folder)) from None
        raise ModelError(f"half a model: {place / 'policy.safetensors'} is missing") from None
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"no readable model in {str(folder)!r}: {error}") from error
    if not isinstance(config, dict):
        found = type(config).__name__
        raise ModelError(f"{place / 'policy.json'} must hold an object, got {found}")
    try:
        count = len(config.get("layers", [])) - 1
        layers = [(tensors[f"layer{k}.weight"], tensors[f"layer{k}.bias"]) for k in range(count)]
    except (KeyError, TypeError) as error:
        raise ModelError(f"model {str(folder)!r}: weights missing: {error}") from None
    moves = {
        name.removeprefix("move."): value
        for name, value in tensors.items()
        if name.startswith("move.")
    }
    own = find_rules(rules if rules is not None else config.get("rules", ""))
    return PolicyAgent(f"net:{folder}", own, config, layers, sample, moves)


def save_policy(
    folder: str | Path,
    rules: Rules,
    layers: list[Layer],
    activation: str,
    *,
    moves: Sequence[str] = (),
    move_weights: Mapping[str, Floats] | None = None,
    **about: Any,
) -> None:
    """Write a model folder; each file appears whole or not at all.

    Args:
        folder: made if absent.
        rules: what the model plays.
        layers: (weight float32 [out, in], bias float32 [out]) of each layer.
        activation: a key of ``ACTIVATIONS``, applied between layers.
        moves: names of the features that the network that sees a move is told.
        move_weights: its weights by the names of ``MOVE_WEIGHTS``, if there is one.
        about: anything else worth keeping in ``policy.json`` (training command, versions).
    """
    from safetensors.numpy import save

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for k, (weight, bias) in enumerate(layers):
        tensors[f"layer{k}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"layer{k}.bias"] = np.ascontiguousarray(bias, np.float32)
    for name, value in (move_weights or {}).items():
        tensors[f"move.{name}"] = np.ascontiguousarray(value, np.float32)
    config = {
        "format": FORMAT,
        "rules": str(rules),
        "rules_hash": rules.hash,
        "observation_version": OBSERVATION_VERSION,
        "action_version": ACTION_VERSION,
        "layers": [layers[0][0].shape[1], *(weight.shape[0] for weight, _ in layers)],
        "activation": activation,
        "moves": list(moves),
        **about,
    }
    write_whole(place / "policy.safetensors", save(tensors))
    write_whole(place / "policy.json", json.dumps(config, indent=1) + "\n")


def make_network(argument: str, rules: Rules) -> PolicyAgent:
    """Maker of the spec ``net:FOLDER``; ``net:FOLDER,sample`` draws from the policy."""
    folder, comma, word = argument.rpartition(",")
    if comma and word == "sample":
        return load_policy(folder, rules, sample=True)
    return load_policy(argument, rules)
