"""The evaluator ``linear``: frozen linear-softmax values over position features.

``linear_values.json`` holds one vector of weights per rule set and number of players, fitted by
``python -m evaluation.fit_value``. The file says how, and how well, each was fitted. A value is
never changed under its name: its ``hash`` (over features and weights) stands with every figure.

``linear`` takes the vector of the rules' name and number of players, whatever other options say:
with other pieces or options it is a rougher value, and still a fixed one.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import States, Values, check_before_throw
from agents.position_features import (
    COUNT,
    POSITION_FEATURES,
    SLOTS,
    VERSION,
    linear_value_batch,
)
from kimble_env.errors import AgentError
from kimble_env.rules import Rules

FILE = "linear_values.json"

PASS_COST = 0.04
"""What a search over a linear value takes off the odds of a seat that passes, unless told."""
OWN_PASS_COSTS = {"kombat-2p": 0.4}
"""… of the values with a cost of their own.

A value is fitted to positions of players who mostly move. Of a player who stands still again and
again it knows nothing, and thinks too well: without a cost twice as many decisions as are right
were passes, in Kombat with two players three and a half times as many, and they lost nearly every
game. The costs are about those of the least loss per decision (``docs/agents.md`` has the table).
"""


class LinearValue:
    """A linear-softmax value function.

    Args:
        name: its name, such as ``linear:kimble-4p``.
        rules: the rules of the positions; a board with the route of ``kimble28``.
        weights: float64 [COUNT] in the order of ``POSITION_FEATURES``.

    Attributes:
        vector: float64 [COUNT], for compiled code (``linear_value``).
        hash: 16 hex digits over the version of the features and the weights.
        pass_cost: what a search takes off the odds of a seat that passes.

    Raises:
        AgentError: rules or weights that do not fit.
    """

    def __init__(self, name: str, rules: Rules, weights: npt.ArrayLike) -> None:
        board = rules.board
        if rules.last_progress >= SLOTS or board.leave + 1 != 28 or board.stretch_last != 31:
            raise AgentError(f"{name}: values exist for the board kimble28, not {board.name!r}")
        if rules.two_colours:
            raise AgentError(f"{name}: there is no value for two colours (R17)")
        self.name, self.rules = name, rules
        self.pass_cost = OWN_PASS_COSTS.get(name.removeprefix("linear:"), PASS_COST)
        self.vector = np.array(weights, np.float64)
        if self.vector.shape != (COUNT,) or not np.isfinite(self.vector).all():
            raise AgentError(f"{name}: expected {COUNT} finite weights")
        digest = hashlib.sha256(f"linear {VERSION}".encode() + self.vector.tobytes())
        self.hash = digest.hexdigest()[:16]

    def value(self, states: States) -> Values:
        """Return the chance that each seat wins: float64 [B, 4].

        Raises:
            PositionError: a position with a die thrown.
        """
        check_before_throw(states)
        values = np.empty((len(states), 4))
        if len(states):
            linear_value_batch(states, self.rules.array, self.vector, values)
        return values

    def __repr__(self) -> str:
        return f"LinearValue({self.name!r}, {str(self.rules)!r}, hash {self.hash})"


@cache
def _table() -> dict[str, Any]:
    text = resources.files("agents").joinpath(FILE).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def value_names() -> tuple[str, ...]:
    """Return the names of the values in the file: ``kimble-2p`` and so on."""
    return tuple(_table())


def describe_value(name: str) -> dict[str, Any]:
    """Return what the file says of a value: how it was fitted and how well.

    Raises:
        AgentError: no such value; the message lists them.
    """
    if name not in _table():
        raise AgentError(f"no linear value {name!r}; known: {', '.join(value_names())}")
    return {key: value for key, value in _table()[name].items() if key != "weights"}


def entry_of(value: LinearValue, **notes: Any) -> dict[str, Any]:
    """Return what the file holds of a value: its weights by name and notes on how it was made."""
    weights = dict(zip(POSITION_FEATURES, value.vector.tolist(), strict=True))
    return {"features": VERSION, "hash": value.hash, **notes, "weights": weights}


def make_linear(argument: str, rules: Rules) -> LinearValue:
    """Make the evaluator ``linear`` or ``linear:NAME``; its name is always the long one.

    Raises:
        AgentError: no such value, or one that does not fit the rules or the features.
    """
    name = argument or f"{rules.name}-{rules.players}p"
    describe_value(name)
    entry = _table()[name]
    if entry["features"] != VERSION:
        raise AgentError(
            f"linear:{name} is for features of version {entry['features']}, these are {VERSION}"
        )
    weights = [entry["weights"][feature] for feature in POSITION_FEATURES]
    value = LinearValue(f"linear:{name}", rules, weights)
    if value.hash != entry["hash"]:
        raise AgentError(f"linear:{name}: the file has been changed: hash {value.hash}")
    return value
