"""Value networks that play anywhere: read from files, run in compiled code, no torch.

A model is two files: ``NAME.safetensors`` (``layer0.weight`` [out, in], ``layer0.bias``, ... of
three layers) and ``NAME.json`` (what it was made for: rules and their hash, seats, the version of
its inputs, layer sizes, how it was trained). Shipped ones lie in ``agents/models`` together with
the same network as ``NAME.onnx``, a card ``NAME.md`` and golden vectors; training writes others
into a folder as ``value.safetensors`` and ``value.json``.

The evaluator and the agent are one object. The agent ``net:NAME`` (or ``net:FOLDER``; ``net`` alone
is the shipped one of these rules) plays the move after which its seat's chance to win is highest, a
battle's outcomes weighted by their odds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import check_before_throw
from agents.net_features import feature_count, feature_version
from agents.net_kernel import (
    best_action_batch,
    evaluate_batch,
    make_net,
    make_scratch,
    win_chances_batch,
)
from agents.network import ModelError, other_facts, what_is_missing
from kimble_env.files import write_whole
from kimble_env.rules import Rules, find_rules

FORMAT = "kimble-value-1"
MODELS = Path(__file__).parent / "models"
SUFFIXES = (".json", ".safetensors", ".onnx")
"""Files of an exported network; the first two are read here."""

Layer = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
States = npt.NDArray[np.void]


class ValueNet:
    """A network with what it was made for; an evaluator and an agent at once.

    Args:
        spec: the text it is known by.
        rules: the rules it plays by; they must have the hash and the seats of the model's.
        config: contents of the model's JSON file.
        layers: (weight float32 [out, in], bias float32 [out]) of three layers.
        digest: 16 hex digits of the weights, the evaluator's hash.

    Raises:
        ModelError: the model was made for other rules, seats or inputs.
    """

    def __init__(
        self, spec: str, rules: Rules, config: dict[str, Any], layers: list[Layer], digest: str
    ) -> None:
        self.spec = self.name = spec
        self.rules = rules
        self.config = config
        self.layers = layers
        self.hash = digest
        faults = _faults(rules, config, layers)
        if faults:
            raise ModelError(f"model {spec!r}: " + "; ".join(faults))
        self.net = make_net([layers])

    def value(self, states: States) -> npt.NDArray[np.float64]:
        """Return each absolute seat's chance to win: float64 [B, 4]; rows sum to 1.

        Args:
            states: STATE [B] before a throw, or finished.

        Raises:
            PositionError: a position with a die thrown.
        """
        check_before_throw(states)
        out = np.empty((len(states), 4), np.float32)
        self._call(win_chances_batch, states, out)
        exact = out.astype(np.float64)
        return exact / exact.sum(axis=1, keepdims=True)

    def act(self, positions: States, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int16]:
        """Return the best action of each position STATE [B] with a die thrown: int16 [B]."""
        out = np.empty(len(positions), np.int16)
        self._call(best_action_batch, positions, out)
        return out

    def evaluate(self, positions: States) -> npt.NDArray[np.float32]:
        """Return each seat's chance to win after each action: float32 [B, A, 4]; 0 if illegal."""
        win = np.empty((len(positions), self.rules.board.actions, 4), np.float32)
        self._call(evaluate_batch, positions, win)
        return win

    def _call(self, function: Any, states: States, out: npt.NDArray[Any]) -> None:
        function(states, self.rules.array, self.net.params, make_scratch(self.net), out)

    def __repr__(self) -> str:
        return f"ValueNet({self.spec!r}, {str(self.rules)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueNet, (self.spec, self.rules, self.config, self.layers, self.hash)


# ----------------------------------------------------------------------------------- what it is for


def model_facts(rules: Rules, layers: list[Layer]) -> dict[str, Any]:
    """Return what a model's JSON file says of the game and the shape of the network."""
    return {
        "format": FORMAT,
        "rules": str(rules),
        "rules_hash": rules.hash,
        "players": rules.players,
        "seats": seat_pattern(rules),
        "feature_version": feature_version(rules),
        "layers": [layers[0][0].shape[1], *(weight.shape[0] for weight, _ in layers)],
        "activation": "relu",
        "output": "softmax over the seats that take turns, clockwise from the seat about to throw",
    }


def seat_pattern(rules: Rules) -> list[int]:
    """Return who plays, counted clockwise from the first player's seat: [0, 2] for R and Y."""
    return [(seat - rules.seats[0]) % 4 for seat in rules.seats]


def _same_table(rules: Rules, seats: Any) -> bool:
    """Tell whether the seats are those of the model, or the same turned round the board."""
    own = set(rules.seats)
    known = isinstance(seats, list) and all(isinstance(seat, int) for seat in seats)
    return known and any({(seat + turn) % 4 for seat in seats} == own for turn in range(4))


def _faults(rules: Rules, config: dict[str, Any], layers: list[Layer]) -> list[str]:
    """Return every reason why a model cannot play these rules."""
    expected = {
        "format": FORMAT,
        "rules_hash": rules.hash,
        "feature_version": feature_version(rules),
        "players": rules.players,
    }
    faults = other_facts(rules, config, expected)
    if not faults and not _same_table(rules, config.get("seats")):
        faults.append(f"seats are {config.get('seats')!r}, asked for {list(rules.seats)}")
    if not faults:
        sizes = [layers[0][0].shape[1], *(weight.shape[0] for weight, _ in layers)]
        if sizes != config.get("layers") or len(layers) != 3:
            faults.append(f"layer sizes {sizes} differ from those stated, {config.get('layers')}")
        elif sizes[0] != feature_count(rules) or sizes[-1] != 4:
            faults.append(f"layer sizes {sizes} do not fit the board {rules.board.name}")
        elif not all(np.isfinite(part).all() for layer in layers for part in layer):
            faults.append("a weight is not a finite number")
    return faults


# --------------------------------------------------------------------------------- reading, writing


def model_names() -> tuple[str, ...]:
    """Return the names of the shipped models."""
    return tuple(sorted(path.stem for path in MODELS.glob("*.safetensors")))


def find_model(name: str) -> Path | None:
    """Return the path, without suffix, of a model; None: no such model.

    Args:
        name: of a shipped one; a run's folder; or the path of an exported one, with or without the
            suffix of one of its files.
    """
    if re.fullmatch(r"[\w-]+", name) and (MODELS / f"{name}.safetensors").exists():
        return MODELS / name
    place = Path(name).expanduser()
    if (place / "value.json").exists():
        return place / "value"
    if not place.name:  # "." or "/"
        return None
    base = place.with_suffix("") if place.suffix in SUFFIXES else place
    whole = all(base.with_name(f"{base.name}{suffix}").exists() for suffix in SUFFIXES[:2])
    return base if whole else None


def load_net(name: str, rules: Rules | str | None = None) -> ValueNet:
    """Return the network of a shipped model or of a folder, for its own rules or for ``rules``.

    Raises:
        ModelError: no model there, a damaged file, or one made for other rules or inputs.
    """
    base = find_model(name)
    if base is None and Path(name).expanduser().is_dir():
        raise ModelError(what_is_missing(name))
    if base is None:
        known = ", ".join(model_names()) or "none"
        raise ModelError(
            f"no model {name!r}: neither a folder with value.json (kimble train td) or policy.json "
            f"(kimble train ppo), nor the path of an exported one (kimble export), nor one of the "
            f"shipped ones ({known})"
        )
    return read_net(base, f"net:{name}", rules)


def read_net(base: Path, spec: str, rules: Rules | str | None = None) -> ValueNet:
    """Read ``base.json`` and ``base.safetensors``; see :func:`load_net`."""
    import hashlib

    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        config = json.loads(base.with_name(f"{base.name}.json").read_text(encoding="utf-8"))
        data = base.with_name(f"{base.name}.safetensors").read_bytes()
        tensors = load(data)
        layers = [
            (
                np.ascontiguousarray(tensors[f"layer{k}.weight"], np.float32),
                np.ascontiguousarray(tensors[f"layer{k}.bias"], np.float32),
            )
            for k in range(3)
        ]
    except FileNotFoundError as error:
        raise ModelError(f"no model {str(base)!r}: {error.filename} is missing") from None
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ModelError(f"no readable model {str(base)!r}: {error!r}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{base}.json must hold an object, got {type(config).__name__}")
    if rules is None:
        rules = find_rules(str(config.get("rules", "")), players=config.get("players"))
    return ValueNet(spec, find_rules(rules), config, layers, hashlib.sha256(data).hexdigest()[:16])


def write_net(base: Path, rules: Rules, layers: list[Layer], **about: Any) -> None:
    """Write ``base.safetensors`` and ``base.json``; each appears whole or not at all.

    Args:
        base: path without suffix; its folder is made if absent.
        rules: what the model plays.
        layers: (weight float32 [out, in], bias float32 [out]) of each layer.
        about: anything else worth keeping (training command, seeds, versions).
    """
    from safetensors.numpy import save

    base.parent.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for k, (weight, bias) in enumerate(layers):
        tensors[f"layer{k}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"layer{k}.bias"] = np.ascontiguousarray(bias, np.float32)
    config = {**model_facts(rules, layers), **about}
    write_whole(base.with_name(f"{base.name}.safetensors"), save(tensors))
    write_whole(base.with_name(f"{base.name}.json"), json.dumps(config, indent=1) + "\n")


def make_net_value(argument: str, rules: Rules) -> ValueNet:
    """Maker of the evaluator ``net:NAME`` or ``net:FOLDER``; without a name the shipped network.

    Raises:
        ModelError: no such model, or one for other rules.
    """
    return load_net(argument or shipped_name(rules), rules)


def shipped_name(rules: Rules) -> str:
    """Return the name that a shipped network of these rules would have, such as ``kombat-4p``."""
    return f"{rules.name}-{rules.players}p"


def shipped_for(rules: Rules) -> str | None:
    """Return the name of the shipped network for these very rules and seats; None: there is none.

    It is for the same seats turned round the board too. Options that change the game (pieces,
    whether one may pass) make other rules.
    """
    name = shipped_name(rules)
    if find_model(name) != MODELS / name:
        return None
    card = json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))
    fits = card.get("rules_hash") == rules.hash and card.get("players") == rules.players
    return name if fits and _same_table(rules, card.get("seats")) else None
