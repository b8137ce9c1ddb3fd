"""Policy networks that play anywhere: a small MLP from a folder, run with numpy.

A model is a folder with two files: ``policy.safetensors`` (weights ``layer0.weight`` [out, in],
``layer0.bias`` [out], ..., and ``move0.weight`` ... of the network that sees one move, if it has
one: the logit of an action is then the sum of both, see ``agents.move_inputs``) and ``policy.json``
(what it was made for: rules and their hash, observation and action version, layer sizes,
activation, how it was trained). Training writes it (:func:`save_policy`), the agent spec
``net:FOLDER`` reads it; torch is not needed to play.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.move_inputs import MoveInputs
from kimble_env.errors import KimbleError
from kimble_env.features import FEATURES
from kimble_env.files import write_whole
from kimble_env.kernel import legal_batch
from kimble_env.observation import (
    ACTION_VERSION,
    OBSERVATION_VERSION,
    mask_batch,
    observation_size,
    observe_batch,
)
from kimble_env.rules import Rules, find_rules

FORMAT = "kimble-policy-1"
ACTIVATIONS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0)}
CHUNK = 8192
"""Decisions per matrix product: keeps the working memory small for any batch."""

Layer = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


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
        move_layers: the same of the network that sees one move; none: the board decides alone.

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
        move_layers: Sequence[Layer] = (),
    ) -> None:
        self.spec = spec
        self.rules = rules
        self.config = config
        self.sample = sample
        self._layers = layers
        self._move_layers = list(move_layers)
        faults = _faults(rules, config, layers) or _move_faults(config, self._move_layers)
        if faults:
            raise ModelError(f"model {spec!r}: " + "; ".join(faults))
        self._activation = ACTIVATIONS[config["activation"]]
        self.moves = MoveInputs(rules, config["moves"]) if move_layers else None

    def _run(self, layers: list[Layer], x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        for weight, bias in layers[:-1]:
            x = self._activation(x @ weight.T + bias)
        weight, bias = layers[-1]
        out: npt.NDArray[np.float32] = x @ weight.T + bias
        return out

    def logits(
        self,
        observations: npt.NDArray[np.int8],
        moves: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the unmasked logits float32 [B, A].

        Args:
            observations: int8 [B, size].
            moves: float32 [B, A, K], what ``self.moves`` says of the legal moves; needed where it
                is not None.

        Raises:
            ModelError: the network needs ``moves``.
        """
        out = self._run(self._layers, observations.astype(np.float32))
        if self.moves is None:
            return out
        if moves is None:
            raise ModelError(f"model {self.spec!r} decides by its moves too: use probabilities()")
        return out + self._run(self._move_layers, moves)[..., 0]

    def probabilities(self, positions: npt.NDArray[np.void]) -> npt.NDArray[np.float32]:
        """Return the policy float32 [B, A] over the legal actions; other actions have 0."""
        count, board = len(positions), self.rules.board
        observations = np.empty((count, observation_size(board)), np.int8)
        observers = np.ascontiguousarray(positions["seat"])
        observe_batch(positions, self.rules.array, observers, observations)
        actions = np.empty(count, np.int64)
        legal_batch(positions, self.rules.array, actions)
        masks = np.empty((count, board.actions), np.int8)
        mask_batch(actions, masks)
        moves = self.moves(positions, masks) if self.moves is not None else None
        logits = np.where(masks > 0, self.logits(observations, moves), -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        out: npt.NDArray[np.float32] = weights / weights.sum(axis=1, keepdims=True)
        return out

    def act(
        self, positions: npt.NDArray[np.void], keys: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int16]:
        """Return one legal action int16 [B] for each position STATE [B] with a die to play."""
        out = np.empty(len(positions), np.int16)
        with _thread_pools().limit(limits=1, user_api="blas"):
            for start in range(0, len(positions), CHUNK):
                part = slice(start, start + CHUNK)
                share = self.probabilities(np.ascontiguousarray(positions[part]))
                out[part] = _draw(share, keys[part]) if self.sample else share.argmax(axis=1)
        return out


@cache
def _thread_pools() -> Any:
    """Return the hold on numpy's BLAS threads.

    For matrices this small one thread is as fast as two, and where other work keeps the cores busy
    it is fifty times faster: the threads of BLAS wait for each other spinning.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _draw(share: npt.NDArray[np.float32], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int16]:
    """Draw an action from each row of probabilities with one uint64 key a row."""
    uniform = (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53
    edges = np.cumsum(share, axis=1, dtype=np.float64)
    picked = (edges <= (uniform * edges[:, -1])[:, None]).sum(axis=1)
    # Rounding may point past the last legal action; the last one with a share is meant then.
    last = share.shape[1] - 1 - (share[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(picked, last).astype(np.int16)


def _faults(rules: Rules, config: dict[str, Any], layers: list[Layer]) -> list[str]:
    """Return every reason why a model cannot play these rules."""
    expected = {
        "format": FORMAT,
        "rules_hash": rules.hash,
        "observation_version": OBSERVATION_VERSION,
        "action_version": ACTION_VERSION,
    }
    faults = [
        f"{key} is {config.get(key)!r}, expected {value!r}"
        + (f" (made for {config.get('rules')!r}, asked for {str(rules)!r})" * (key == "rules_hash"))
        for key, value in expected.items()
        if config.get(key) != value
    ]
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


def _move_faults(config: dict[str, Any], layers: list[Layer]) -> list[str]:
    """Return every reason why the network that sees one move cannot be used."""
    names = config.get("moves", []) if layers else []
    unknown = [name for name in names if name not in FEATURES]
    if unknown:
        return [f"unknown features of moves: {', '.join(map(str, unknown))}"]
    if layers and (layers[0][0].shape[1] != len(names) or layers[-1][0].shape[0] != 1):
        return [f"{len(names)} features of moves do not fit the network that sees one move"]
    return []


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
    count = len([name for name in tensors if re.fullmatch(r"move\d+\.weight", name)])
    try:
        moves = [(tensors[f"move{k}.weight"], tensors[f"move{k}.bias"]) for k in range(count)]
    except KeyError as error:
        raise ModelError(f"model {str(folder)!r}: weights missing: {error}") from None
    own = find_rules(rules if rules is not None else config.get("rules", ""))
    return PolicyAgent(f"net:{folder}", own, config, layers, sample, moves)


def save_policy(
    folder: str | Path,
    rules: Rules,
    layers: list[Layer],
    activation: str,
    *,
    moves: Sequence[str] = (),
    move_layers: Sequence[Layer] = (),
    **about: Any,
) -> None:
    """Write a model folder; each file appears whole or not at all.

    Args:
        folder: made if absent.
        rules: what the model plays.
        layers: (weight float32 [out, in], bias float32 [out]) of each layer.
        activation: a key of ``ACTIVATIONS``, applied between layers.
        moves: names of the features that the network that sees one move is told.
        move_layers: (weight, bias) of its layers, if there is one.
        about: anything else worth keeping in ``policy.json`` (training command, versions).
    """
    from safetensors.numpy import save

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, part in (("layer", layers), ("move", move_layers)):
        for k, (weight, bias) in enumerate(part):
            tensors[f"{name}{k}.weight"] = np.ascontiguousarray(weight, np.float32)
            tensors[f"{name}{k}.bias"] = np.ascontiguousarray(bias, np.float32)
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
