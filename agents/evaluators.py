"""Evaluators: who will win from here, as chances per seat.

An evaluator is an object with ``name``, ``hash`` and one method::

    value(states) -> float64 [B, 4]

    states   STATE [B], each before a throw (die 0) or finished
    returns  the chance that each absolute seat wins: 0 for absent seats, rows add to 1. A finished
             game gives 1 to the winner, a game cut off 1/n to each seat that plays. With
             ``play_for_places`` it is the chance to be first; with ``two_colours`` a team has the
             sum of its two seats.

:func:`make_evaluator` makes one from a spec, or from a user's own object:

=====================  ============================================================
``linear``             the frozen linear-softmax value of these rules (``linear_value.py``)
``linear:kimble-4p``   … that of another rule set, named
``exact``              the table of a solved game of two seats (``agents/exact``)
``net:kimble-4p``      a value network, shipped or from a folder (``value_net.py``)
``best``               the shipped network of these rules and seats, else ``linear``
``rollouts:n=100``     rollouts of a policy over another evaluator (``rollouts.py``)
``mine.py:name``       a user's own: an object, a class, or a function ``(states) -> [B, 4]``
``package.module:name``  … from a module
=====================  ============================================================

Other rooms register kinds of their own with :func:`register_evaluator`. What a user's evaluator
returns is checked at every call, and it is never shown seeds: nobody sees the dice to come.

The helpers below ask any evaluator about positions with a die thrown (:func:`move_values`), before
a throw (:func:`throw_values`) or either (:func:`position_values`).
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from kimble_env.afterstates import expand_moves, expand_throws, gather_moves
from kimble_env.errors import AgentError, PositionError
from kimble_env.kernel import RUNNING, STATE, WON, legal_batch, take_states
from kimble_env.opponents import hide_random_state
from kimble_env.own_code import absolute, load_own, split_own
from kimble_env.rules import Rules, find_rules

States = npt.NDArray[np.void]
Values = npt.NDArray[np.float64]
Actions = npt.NDArray[np.int16]

CHUNK = 4096
"""Positions expanded at a time: a position has about 15 children one throw later."""

_TOLERANCE = 1e-4  # how far a user's chances may be from adding to 1: they may be float32


@runtime_checkable
class Evaluator(Protocol):
    """What values positions; shapes are on the module's page."""

    name: str
    hash: str

    def value(self, states: States) -> Values:
        """Return the chance that each absolute seat wins: float64 [B, 4]."""
        ...


Maker = Callable[[str, Rules], Evaluator]
"""Makes an evaluator of one kind from what follows the colon ("" if nothing) and the rules."""


# ------------------------------------------------------------------------------------- the boundary


def check_before_throw(states: States) -> None:
    """Check that every position waits for a throw or is finished.

    Raises:
        PositionError: no array of positions, or the first one with a die thrown.
    """
    if not isinstance(states, np.ndarray) or states.dtype != STATE or states.ndim != 1:
        kind = getattr(states, "dtype", type(states).__name__)
        raise PositionError(f"positions must be an array STATE [B], got {kind}")
    wrong = np.flatnonzero((states["status"] == RUNNING) & (states["die"] != 0))
    if len(wrong):
        raise PositionError(
            f"position {wrong[0]} has a die of {states['die'][wrong[0]]} to play: evaluators value "
            "positions before a throw (move_values values the moves)"
        )


def settled_values(states: States) -> tuple[npt.NDArray[np.bool_], Values]:
    """Return which positions are decided (bool [B]) and their values (float64 [B, 4], else 0).

    Decided is a game that is won, cut off, or has its first place taken (``play_for_places``).
    """
    plays = states["plays"] != 0
    values = np.zeros((len(states), 4))
    first = states["places"] == 1
    won = states["status"] == WON
    taken = first.any(axis=1) & ~won
    cut = (states["status"] != RUNNING) & ~won & ~taken
    values[won, states["winner"][won]] = 1.0
    values[taken] = first[taken]
    values[cut] = plays[cut] / plays[cut].sum(axis=1, keepdims=True)
    return won | taken | cut, values


def check_values(states: States, answer: Any, name: str) -> Values:
    """Return what an evaluator answered as float64 [B, 4], checked.

    Raises:
        AgentError: naming the evaluator and what is wrong: shape, numbers out of 0..1 or not
            finite, chances of absent seats, rows that do not add to 1 (within 1e-4).
    """
    shape = (len(states), 4)
    try:
        values = np.asarray(answer, np.float64)
    except (TypeError, ValueError):
        raise AgentError(f"evaluator {name!r} must return an array {list(shape)}") from None
    if values.shape != shape:
        raise AgentError(
            f"evaluator {name!r} must return chances {list(shape)}, got {list(values.shape)}"
        )
    faults = (
        (~np.isfinite(values).all(axis=1), "that are not finite"),
        (((values < 0.0) | (values > 1.0)).any(axis=1), "that are not in 0..1"),
        ((values * (states["plays"] == 0)).any(axis=1), "of a seat that does not play"),
        (abs(values.sum(axis=1) - 1.0) > _TOLERANCE, "that do not add to 1"),
    )
    for bad, text in faults:
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise AgentError(
                f"evaluator {name!r} returns chances {text}: {values[i].tolist()} for position {i}"
            )
    return values


class CheckedValue:
    """The boundary around a user's evaluator: decided games are not asked about, seeds not shown.

    Pickles by its spec where it was made from one, else as the object it holds.
    """

    def __init__(
        self, inner: Any, rules: Rules, name: str, fingerprint: str, recipe: str | None = None
    ) -> None:
        self.inner, self.rules = inner, rules
        self.name, self.hash = name, fingerprint
        self._recipe = recipe

    def value(self, states: States) -> Values:
        """Return the chance that each seat wins: float64 [B, 4].

        Raises:
            PositionError: a position with a die thrown.
            AgentError: what the evaluator returns is no chances.
        """
        check_before_throw(states)
        decided, values = settled_values(states)
        rows = np.flatnonzero(~decided)
        if len(rows):
            asked = hide_random_state(take_states(states, rows))
            ask = getattr(self.inner, "value", self.inner)
            values[rows] = check_values(asked, ask(asked), self.name)
        return values

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {str(self.rules)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is not None:
            return make_evaluator, (self._recipe, self.rules)
        return type(self), (self.inner, self.rules, self.name, self.hash)


# ----------------------------------------------------------------------------------- exact tables


class ExactValue:
    """The win chances of an exact table: two seats.

    Args:
        spec: ``exact`` or ``exact:FILE``.
        rules: of two seats; the table is looked for now.

    Raises:
        AgentError: not two seats.
        TableError: no table.
    """

    def __init__(self, spec: str, rules: Rules) -> None:
        from agents.exact.oracle import make_exact

        self.name, self.rules = spec, rules
        self.oracle: Any = make_exact(spec.partition(":")[2], rules)
        tables = list(self.oracle._tables.values())
        text = "|".join([rules.hash, *(str(t.header.get("sha256", "")) for t in tables)])
        self.hash = hashlib.sha256(text.encode()).hexdigest()[:16]

    def value(self, states: States) -> Values:
        """Return the chance that each seat wins: float64 [B, 4], exact but for 16 bits.

        Raises:
            PositionError: a position with a die thrown.
            TableError: positions of other seats.
        """
        check_before_throw(states)
        decided, values = settled_values(states)
        rows = np.flatnonzero(~decided)
        if len(rows) == 0:
            return values
        asked = take_states(states, rows)
        own = self.oracle.values(asked).astype(np.float64)
        seat = asked["seat"].astype(np.int64)
        others = asked["plays"].copy()
        others[np.arange(len(rows)), seat] = 0
        values[rows, seat] = own
        values[rows, others.argmax(axis=1)] = 1.0 - own
        return values

    def __repr__(self) -> str:
        return f"ExactValue({self.name!r}, {str(self.rules)!r})"


def _make_exact(argument: str, rules: Rules) -> Evaluator:
    return ExactValue(f"exact:{argument}" if argument else "exact", rules)


# ----------------------------------------------------------------------------------- the default


def best_spec(rules: Rules) -> str:
    """Return the spec of the best evaluator that answers at once: what ``best`` stands for.

    ``net:NAME`` where a network ships for these rules and seats, else ``linear``.
    """
    from agents.value_net import shipped_for

    name = shipped_for(rules)
    return "linear" if name is None else f"net:{name}"


def _make_best(argument: str, rules: Rules) -> Evaluator:
    if argument:
        raise AgentError(f"best stands alone, got 'best:{argument}'")
    return make_evaluator(best_spec(rules), rules)


# ------------------------------------------------------------------------------------- the registry

_makers: dict[str, Maker] = {"exact": _make_exact, "best": _make_best}
_homes: dict[str, tuple[str, str]] = {
    "linear": ("agents.linear_value", "make_linear"),
    "net": ("agents.value_net", "make_net_value"),
    "rollouts": ("agents.rollouts", "make_rollouts"),
}
"""Kinds whose module is loaded when first asked for: kind to (module, maker)."""


def register_evaluator(kind: str, maker: Maker) -> None:
    """Make specs ``kind`` and ``kind:argument`` known.

    Raises:
        AgentError: the kind is not a plain word, or another maker has it.
    """
    if not kind.isidentifier():
        raise AgentError(f"a kind of evaluators must be a plain word, got {kind!r}")
    if kind in _homes or _makers.get(kind, maker) is not maker:
        raise AgentError(f"another maker is registered for evaluators {kind!r} already")
    _makers[kind] = maker


def known_evaluators() -> tuple[str, ...]:
    """Return the kinds that :func:`make_evaluator` knows."""
    return tuple(sorted({*_makers, *_homes}))


def make_evaluator(spec: str | Evaluator | Callable[..., Any], rules: str | Rules) -> Evaluator:
    """Return an evaluator for these rules.

    Args:
        spec: a spec (see the module's page), an evaluator, a class of evaluators (made with
            ``rules`` if it takes an argument), or a function ``(states) -> [B, 4]``.
        rules: Rules or their text.

    Raises:
        AgentError: what is not known, or does not fit; the message lists the known kinds.
        RulesError: rules that cannot be.
    """
    rules = find_rules(rules)
    if not isinstance(spec, str):
        return _from_object(spec, rules, None)
    kind, _, argument = spec.partition(":")
    if kind in _homes:
        module, name = _homes[kind]
        made: Evaluator = getattr(import_module(module), name)(argument, rules)
        return made
    if kind in _makers:
        return _makers[kind](argument, rules)
    if split_own(spec) is not None:
        return _from_object(load_own(spec), rules, spec)
    raise AgentError(
        f"unknown evaluator {spec!r}; known: {', '.join(known_evaluators())}, a file.py:name or a "
        "module:name"
    )


def _from_object(thing: Any, rules: Rules, spec: str | None) -> Evaluator:
    """Make an evaluator from a user's object, class or function."""
    if isinstance(thing, CheckedValue) or type(thing).__module__.startswith("agents."):
        own = getattr(thing, "rules", None)
        if isinstance(own, Rules) and own.hash != rules.hash:
            raise AgentError(f"evaluator {thing.name!r} is for {own}, not {rules}")
        return thing  # type: ignore[no-any-return]
    source = thing
    name = getattr(thing, "__qualname__", type(thing).__name__)
    if inspect.isclass(thing):
        thing = thing(rules) if inspect.signature(thing).parameters else thing()
    if not callable(getattr(thing, "value", thing)):
        raise AgentError(
            f"{name} is no evaluator: expected an object with value(states), a class, or a "
            f"function, got {type(thing).__name__}"
        )
    name = spec if spec is not None else str(getattr(thing, "name", name))
    fingerprint = str(getattr(thing, "hash", "")) or _fingerprint(source)
    return CheckedValue(thing, rules, name, fingerprint, absolute(spec) if spec else None)


def _fingerprint(thing: Any) -> str:
    """Return 16 hex digits over the file that a thing is written in (its name where none is)."""
    try:
        kind = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
        text = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):
        text = repr(getattr(thing, "__qualname__", type(thing)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# -------------------------------------------------------------------------- asking about positions


def move_values(
    evaluator: Evaluator, positions: States, rules: Rules
) -> npt.NDArray[np.float32]:
    """Return each seat's chance to win after each action: float32 [B, A, 4], battles averaged.

    This is what ``Agent.evaluate`` returns. 0 for illegal actions, and for all actions of a
    position without a die thrown.
    """
    return exact_move_values(evaluator, positions, rules).astype(np.float32)


def exact_move_values(evaluator: Evaluator, positions: States, rules: Rules) -> Values:
    """Return what :func:`move_values` returns, as float64."""
    out = np.zeros((len(positions), rules.board.actions, 4))
    for first in range(0, len(positions), CHUNK):
        part = positions[first : first + CHUNK]
        moves = expand_moves(part, rules)
        values = evaluator.value(moves.children)
        out[first : first + CHUNK] = gather_moves(moves, values, len(part), rules.board.actions)
    return out


def seat_chances(
    values: npt.NDArray[np.floating[Any]], positions: States, rules: Rules
) -> Values:
    """Return the chance of the seat to act (its team's, R17) after each action: float64 [B, A]."""
    rows = np.arange(len(positions))
    seat = positions["seat"].astype(np.int64)
    own: Values = values[rows, :, seat].astype(np.float64)
    if rules.two_colours:
        own = own + values[rows, :, (seat + 2) % 4]
    return own


def best_actions(
    values: npt.NDArray[np.floating[Any]], positions: States, rules: Rules
) -> Actions:
    """Return the legal action with the highest chance for the seat to act: int16 [B].

    Of equal ones the first by code.

    Args:
        values: [B, A, 4] from :func:`move_values`.
        positions: STATE [B], each with a die thrown.

    Raises:
        PositionError: a position without a legal action.
    """
    legal = np.empty(len(positions), np.int64)
    legal_batch(positions, rules.array, legal)
    if not legal.all():
        i = int(np.flatnonzero(legal == 0)[0])
        raise PositionError(f"position {i} has no die to play, so there is no best move")
    mask = legal[:, None] >> np.arange(values.shape[1]) & 1 != 0
    own = np.where(mask, seat_chances(values, positions, rules), -1.0)
    return own.argmax(axis=1).astype(np.int16)


def mean_over_moves(
    after: Values, actions: npt.NDArray[np.int64], rules: Rules
) -> Values:
    """Return the mean chances over some moves of each position: float64 [B, 4].

    Args:
        after: float64 [B, A, 4], chances after each action.
        actions: int64 [B], the moves as bits, at least one each.
        rules: theirs.
    """
    shares = (actions[:, None] >> np.arange(rules.board.actions) & 1).astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    means: Values = np.einsum("ba,bas->bs", shares, after)
    return means


def position_values(
    evaluator: Evaluator,
    states: States,
    rules: Rules,
    drawn: npt.NDArray[np.int64] | None = None,
) -> Values:
    """Return each seat's chance: float64 [B, 4]; with a die thrown that after the best move.

    "Best" is the highest chance of the seat to act by this evaluator.

    Args:
        evaluator: what values.
        states: STATE [B], with or without a die thrown.
        rules: theirs.
        drawn: int64 [B], actions as bits: with a die thrown the mean over these moves is returned
            instead of the best, where there are any (unchecked: they must be legal).
    """
    values = np.empty((len(states), 4))
    playing = (states["die"] != 0) & (states["status"] == RUNNING)
    rows = np.flatnonzero(~playing)
    values[rows] = evaluator.value(take_states(states, rows))
    for part in np.array_split(np.flatnonzero(playing), max(1, -(-len(states) // CHUNK))):
        if len(part) == 0:
            continue
        thrown = take_states(states, part)
        after = exact_move_values(evaluator, thrown, rules)
        chosen = 1 << best_actions(after, thrown, rules).astype(np.int64)
        if drawn is not None:
            chosen = np.where(drawn[part] != 0, drawn[part], chosen)
        values[part] = mean_over_moves(after, chosen, rules)
    return values


def throw_values(evaluator: Evaluator, states: States, rules: Rules) -> Values:
    """Return each seat's chance one throw on: float64 [B, 4].

    The mean over the six faces of the chances after the best move of the seat to act. Decided
    positions keep their value.

    Raises:
        PositionError: a position with a die thrown.
        KimbleError: rules whose throws cannot be listed.
    """
    check_before_throw(states)
    decided, values = settled_values(states)
    rows = np.flatnonzero(~decided & (states["status"] == RUNNING))
    for first in range(0, len(rows), CHUNK):
        part = rows[first : first + CHUNK]
        throws = expand_throws(take_states(states, part), rules)
        after = position_values(evaluator, throws.children, rules)
        values[part] = (after * throws.chance[:, None]).reshape(len(part), 6, 4).sum(axis=1)
    return values
