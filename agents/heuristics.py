"""Heuristics: named weight vectors over the move features of ``kimble_env.features``.

``heuristics.json`` holds them, so that tuning writes data and no code::

    {"cautious": {"text": "one sentence", "weights": {"capture": 4, ...}, "for": {...}}}

Features that are not named weigh 0. ``for`` may hold weights of their own for a rule set and number
of players ("kombat-2p") or a rule set ("kombat"), each a whole vector. ``source`` says where a
strategy is from. ``training.evolve`` writes those of ``tuned``, and its logs beside, in ``tuned/``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from kimble_env.errors import AgentError
from kimble_env.opponents import WeightAgent, weight_vector
from kimble_env.rules import Rules


@cache
def _table() -> dict[str, Any]:
    text = resources.files("agents").joinpath("heuristics.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def heuristic_names() -> tuple[str, ...]:
    """Return the names of all heuristics."""
    return tuple(_table())


def describe_heuristic(name: str) -> str:
    """Return the sentence that says how a heuristic plays.

    Raises:
        AgentError: no such heuristic; the message lists them.
    """
    return str(_entry(name)["text"])


def heuristic_source(name: str) -> str:
    """Return where a heuristic was published, "" for those that are this project's own.

    Raises:
        AgentError: no such heuristic; the message lists them.
    """
    return str(_entry(name).get("source", ""))


def own_weights(name: str) -> tuple[str, ...]:
    """Return for what ("kombat-2p", "norske") a heuristic has weights of its own.

    Raises:
        AgentError: no such heuristic; the message lists them.
    """
    return tuple(sorted(_entry(name).get("for", {})))


def make_heuristic(name: str, rules: Rules) -> WeightAgent:
    """Make the agent ``heuristic:name``; its spec is the bare name.

    Raises:
        AgentError: no such heuristic; the message lists them.
    """
    entry = _entry(name)
    own = entry.get("for", {})
    keys = (f"{rules.name}-{rules.players}p", rules.name)
    weights = next((own[key] for key in keys if key in own), entry["weights"])
    return WeightAgent(name, rules, weight_vector(weights))


def _entry(name: str) -> dict[str, Any]:
    if name not in _table():
        raise AgentError(f"unknown heuristic {name!r}; known: {', '.join(heuristic_names())}")
    entry: dict[str, Any] = _table()[name]
    return entry
