"""Which agents and evaluators a client may name, and those that have been made so far.

A door for strangers (:data:`PUBLIC`) knows agents by registered kinds only: no spec of a client
ever becomes the name of a file or a module. The doors of one's own machine (:data:`LOCAL`) take
any.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from threading import Lock
from typing import Any

from kimble_app.api.errors import ApiError
from kimble_env.errors import KimbleError
from kimble_env.opponents import Agent, known_specs, make_agent
from kimble_env.rules import Rules

SLOW_KINDS = ("search", "rollout", "rollouts")
"""Kinds of agents that think for long: fewer positions at once, and a thread of their own."""
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MODEL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LEVEL = re.compile(r"(.*)@level=([0-9]{1,2})", re.DOTALL)
MOST_BUDGET = 20_000  # positions that one decision of a search may lead to


@dataclass
class Access:
    """What those on the other side of a door may ask for.

    Args:
        trusted: any spec is taken, files and modules too.
        depth: deepest search, in throws ahead.
        search_batch: most positions of a batch decided by search.
        batch: most positions of a batch.
        extra: specs that an operator allows besides.
        kept: agents kept ready at most.
    """

    trusted: bool = False
    depth: int = 3
    search_batch: int = 1000
    batch: int = 10_000
    extra: tuple[str, ...] = ()
    kept: int = 64
    _made: OrderedDict[Any, Any] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def agent(self, spec: str | None, level: int | None, rules: Rules) -> Agent:
        """Return an agent, ready made if it was asked for before.

        Raises:
            ApiError: a spec that is unknown, is not allowed here, or does not fit the rules.
        """
        name = default_agent(rules) if spec is None else spec
        if level is not None:
            if _LEVEL.fullmatch(name):
                raise ApiError("bad_agent", f"{name!r} has a level already", "level")
            name = f"{name}@level={level}"
        try:
            return self._keep(
                ("agent", name, str(rules), rules.seats), lambda: self._make(name, rules)
            )
        except ApiError:
            raise
        except (KimbleError, ModuleNotFoundError) as error:
            text = str(error) if self.trusted else without_paths(str(error))
            raise ApiError("bad_agent", text, "agent") from error

    def evaluator(self, spec: str | None, rules: Rules) -> Any:
        """Return an evaluator (see ``agents.evaluators``).

        Raises:
            ApiError: as for agents.
        """
        from agents.evaluators import best_spec, make_evaluator

        name = best_spec(rules) if spec is None else spec
        if not self.trusted:
            check_public_evaluator(name, rules)
        try:
            return self._keep(
                ("evaluator", name, str(rules), rules.seats), lambda: make_evaluator(name, rules)
            )
        except (KimbleError, ModuleNotFoundError) as error:
            text = str(error) if self.trusted else without_paths(str(error))
            raise ApiError("bad_agent", text, "evaluator") from error

    def _make(self, name: str, rules: Rules) -> Agent:
        if not self.trusted and name not in self.extra:
            check_public_agent(name, rules, self.depth)
        return make_agent(name, rules)

    def _keep(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                self._made.move_to_end(key)
                return found
        made = make()  # outside the lock: a table or a net takes its time
        with self._lock:
            self._made[key] = made
            while len(self._made) > self.kept:
                self._made.popitem(last=False)
        return made

    def limit_batch(self, count: int, spec: str | None = None, field: str = "positions") -> None:
        """Refuse a batch that is too much work.

        Raises:
            ApiError: more positions than this agent may be asked about at once.
        """
        most = self.batch
        if spec is not None and kind_of(spec) in SLOW_KINDS:
            most = min(most, self.search_batch)
        if not self.trusted and count > most:
            raise ApiError("too_large", f"at most {most} of these at once", field)


LOCAL = Access(trusted=True)
"""For commands and the engine: whoever asks could run any program here anyway."""
PUBLIC = Access()
"""For strangers, with the limits that the service begins with."""


def kind_of(spec: str) -> str:
    """Return the kind of a spec, aliases resolved: ``heuristic`` for ``cautious``."""
    bare = spec.partition("@")[0]
    return known_specs().get(bare, bare).partition(":")[0]


def check_public_agent(spec: str, rules: Rules, depth: int) -> None:
    """Check that strangers may name this agent.

    Raises:
        ApiError: they may not; it says what they may.
    """
    found = _LEVEL.fullmatch(spec)
    bare = found[1] if found else spec
    kind, _, argument = known_specs().get(bare, bare).partition(":")
    check = _PUBLIC.get(kind)
    if check is None or not check(argument, rules, depth):
        raise ApiError(
            "bad_agent",
            f"agent {spec[:80]!r} cannot be asked for here; GET /v1/agents lists those that can, "
            'and weights:{"capture": 5, ...} is one of your own',
            "agent",
        )


def _public_weights(argument: str, rules: Rules, depth: int) -> bool:
    try:
        return isinstance(json.loads(argument), dict | list) and argument[0] in "{["
    except (ValueError, RecursionError):
        return False


def _public_heuristic(argument: str, rules: Rules, depth: int) -> bool:
    return _WORD.fullmatch(argument) is not None


def _public_net(argument: str, rules: Rules, depth: int) -> bool:
    return argument in model_names()


def _public_exact(argument: str, rules: Rules, depth: int) -> bool:
    """Only shipped tables: any other would be solved here and now, for minutes."""
    if argument or len(rules.seats) != 2 or (rules.seats[1] - rules.seats[0]) % 4 != 2:
        return False
    return any(rules.hash in name for name in _shipped_tables())


@cache
def _shipped_tables() -> tuple[str, ...]:
    folder = resources.files("agents.exact").joinpath("tables")
    return tuple(entry.name for entry in folder.iterdir()) if folder.is_dir() else ()


def _public_search(argument: str, rules: Rules, depth: int) -> bool:
    """``search`` with a depth and a budget within limits, and evaluators and replies of ours."""
    options = {"depth": "2"}  # what it is if it is not said
    for option in argument.split(",") if argument else ():
        name, _, value = option.partition("=")
        options[name] = value
    checks: dict[str, Callable[[str], bool]] = {
        "depth": lambda value: _number_within(value, depth),
        "budget": lambda value: _number_within(value, MOST_BUDGET),
        "eval": lambda value: _evaluator_is_public(value, rules),
        "replies": lambda value: _WORD.fullmatch(value) is not None,
        "pass_cost": lambda value: re.fullmatch(r"[0-9]{1,2}", value) is not None,
    }
    return all(name in checks and checks[name](value) for name, value in options.items())


def _number_within(value: str, most: int) -> bool:
    return re.fullmatch(r"[1-9][0-9]{0,8}", value) is not None and int(value) <= most


_PUBLIC: dict[str, Callable[[str, Rules, int], bool]] = {
    "random": lambda argument, rules, depth: argument in ("", "mask"),
    "weights": _public_weights,
    "heuristic": _public_heuristic,
    "net": _public_net,
    "exact": _public_exact,
    "search": _public_search,
}


def check_public_evaluator(spec: str, rules: Rules) -> None:
    """Check that strangers may name this evaluator.

    Raises:
        ApiError: they may not.
    """
    if not _evaluator_is_public(spec, rules):
        text = f"evaluator {spec[:80]!r} cannot be asked for here: linear, exact or net:NAME"
        raise ApiError("bad_agent", text, "evaluator")


def _evaluator_is_public(spec: str, rules: Rules) -> bool:
    kind, _, argument = spec.partition(":")
    if kind == "net":
        return argument in model_names()
    if kind == "exact":
        return _public_exact(argument, rules, 0)
    return kind in ("linear", "best") and not argument


def without_paths(text: str) -> str:
    """Return a message for strangers: where files lie on this machine is not their business."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "…/", text)


# -------------------------------------------------------------------------------- what is shipped


@cache
def model_cards() -> dict[str, dict[str, Any]]:
    """Return the card of every shipped network by name; {} if none comes with this version."""
    folder = resources.files("agents").joinpath("models")
    cards: dict[str, dict[str, Any]] = {}
    if not folder.is_dir():
        return cards
    for entry in folder.iterdir():
        name = entry.name.removesuffix(".json")
        if name != entry.name and _MODEL.fullmatch(name):
            card = json.loads(entry.read_text(encoding="utf-8"))
            if isinstance(card, dict):
                cards[name] = card
    return dict(sorted(cards.items()))


def model_names() -> tuple[str, ...]:
    """Return the names of the shipped networks."""
    return tuple(model_cards())


def default_agent(rules: Rules) -> str:
    """Return the spec of the best agent that answers at once under these rules."""
    from agents.heuristics import heuristic_names
    from agents.value_net import shipped_for

    name = shipped_for(rules)
    if name is not None:
        return f"net:{name}"
    return "tuned" if "tuned" in heuristic_names() else "cautious"
