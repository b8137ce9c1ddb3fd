"""Who decides: the protocol of agents, the registry of their makers, and weight vectors.

An agent is any object with ``act(positions, keys)``::

    positions: STATE [B], each with a die thrown and its random state zeroed
    keys:      uint64 [B], a random number per decision (a hash of game seed, seat and ply)
    returns    int16 [B], a legal action code per position

It may have ``evaluate(positions) -> float32 [B, A, 4]``: the chance that each absolute seat wins
after each action, 0 for absent seats and illegal actions. Because every decision has its own key,
results do not depend on how a batch was split. Nobody sees the dice to come.

:func:`make_agent` makes one from a spec, or from a user's own object:

=========================  ==========================================================
``random``                 uniform over the legal moves other than pass: par in every figure
``random:mask``            uniform over all legal moves, pass included: no yardstick
``weights:{"capture": 5}``  the weighted features of ``features.FEATURE_TABLE``
``weights:mine.json``      the same from a file
``mine.py:name``           a user's own agent from a file
``package.module:name``    … or from a module
``cautious``               an alias of ``heuristic:cautious``; other rooms register such kinds
``cautious@level=3``       any of them with an option, which other rooms register too
=========================  ==========================================================

A user's own object may be an agent, a class of agents (made with ``rules`` if it takes an
argument), a function ``(rules) -> agent``, or a function ``(game) -> move``, see
:class:`FunctionAgent`. A function whose first parameter is called ``rules`` is taken for the
former, any other for the latter. Whatever it is, what it returns is checked.

Kinds that are not built in come from packages with an entry point in the group ``kimble.agents``:
a function without arguments that calls :func:`register_maker`. They are loaded when the first
unknown spec is met, so spawned workers find them too.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import (
    AgentError,
    IllegalMoveError,
    KimbleError,
    NotationError,
    PositionError,
    nearest,
)
from kimble_env.features import (
    FEATURE_COUNT,
    FEATURES,
    decision_keys_batch,
    random_weights,
    score_batch,
    weighted_action_batch,
)
from kimble_env.kernel import RUNNING, STATE, faults_batch, legal_batch, take_states
from kimble_env.notation import format_position, position_faults, shown_action, shown_actions
from kimble_env.own_code import absolute, load_own, split_own, told
from kimble_env.rules import Rules, find_rules

if TYPE_CHECKING:
    from kimble_env.game import Game, Move

States = npt.NDArray[np.void]
Keys = npt.NDArray[np.uint64]
Actions = npt.NDArray[np.int16]

ENTRY_POINTS = "kimble.agents"
_FALLBACK = metadata.EntryPoint("agents", "agents.registry:register", ENTRY_POINTS)
_MOST_FAULTS = 20  # faults that one message lists


@runtime_checkable
class Agent(Protocol):
    """What decides; shapes are on the module's page, where ``evaluate``, optional, is too."""

    spec: str

    def act(self, positions: States, keys: Keys) -> Actions:
        """Return a legal action code for each position."""
        ...


Maker = Callable[[str, Rules], Agent]
"""Makes an agent of one kind from what follows the colon ("" if nothing) and the rules."""


# ------------------------------------------------------------------------------------- the boundary


def decision_keys(states: States) -> Keys:
    """Return the key of the decision that stands in every game: uint64 [B].

    A hash of the game's seed, the seat to act and the throws resolved so far; equal to what the
    compiled playouts use, so that the same games come out.
    """
    keys = np.empty(len(states), np.uint64)
    decision_keys_batch(states, keys)
    return keys


def hide_random_state(states: States) -> States:
    """Return a copy of the positions with seed and stream counters zeroed: no dice to come."""
    hidden = take_states(states)
    for name in ("seed", "throw_count", "battle_count", "choice_count"):
        hidden[name] = 0
    return hidden


def check_decisions(positions: States, rules: Rules) -> None:
    """Check that somebody has to decide in every position.

    Raises:
        PositionError: listing every fault with the index of its position.
    """
    if not isinstance(positions, np.ndarray) or positions.dtype != STATE or positions.ndim != 1:
        kind = getattr(positions, "dtype", type(positions).__name__)
        raise PositionError(f"positions must be an array STATE [B], got {kind}")
    bits = np.empty(len(positions), np.int64)
    faults_batch(positions, rules.array, bits)
    waiting = (positions["status"] == RUNNING) & (positions["die"] == 0)
    over = positions["status"] != RUNNING
    if not (bits.any() or waiting.any() or over.any()):
        return
    faults: list[str] = []
    for i in np.flatnonzero((bits != 0) | waiting | over):
        texts = position_faults(rules, positions[i]) if bits[i] else []
        texts += ["the game is over"] if over[i] else []
        texts += ["no die has been thrown, so there is nothing to decide"] if waiting[i] else []
        faults += [f"position {i}: {text}" for text in texts]
    if len(faults) > _MOST_FAULTS:
        faults = [*faults[:_MOST_FAULTS], f"and {len(faults) - _MOST_FAULTS} more"]
    raise PositionError(faults)


def _check_keys(keys: Keys, count: int) -> None:
    good = isinstance(keys, np.ndarray) and keys.dtype == np.uint64 and keys.shape == (count,)
    if not good:
        raise AgentError(f"keys must be an array uint64 [{count}]")


def whole_numbers(thing: Any) -> npt.NDArray[Any]:
    """Return what was given as an array; what makes none becomes an object, which has no shape."""
    try:
        return np.asarray(thing)
    except (TypeError, ValueError):
        return np.empty((), object)


def shown_position(rules: Rules, state: Any) -> str:
    """Return a position for a message: its text in quotes, or its board where texts lack that."""
    try:
        return repr(format_position(rules, state))
    except NotationError:  # an own board that has not been registered
        return f"a position on board {rules.board.name!r} after a {int(state['die'])}"


def check_actions(positions: States, rules: Rules, actions: Any, spec: str) -> Actions:
    """Return what an agent answered as int16 [B], each action legal.

    Raises:
        AgentError: not one whole number per position.
        IllegalMoveError: naming the agent, the first position in which its action is not legal,
            and the legal ones.
    """
    count = len(positions)
    answer = whole_numbers(actions)
    if answer.shape != (count,) or (count and answer.dtype.kind not in "iu"):
        raise AgentError(
            f"agent {spec!r} must return whole numbers [{count}], got {answer.dtype} "
            f"{list(answer.shape)}"
        )
    legal = np.empty(count, np.int64)
    legal_batch(positions, rules.array, legal)
    inside = (answer >= 0) & (answer < rules.board.actions)
    chosen = np.where(inside, answer, 0).astype(np.int64)
    good = inside & (legal >> chosen & 1 != 0)
    if not good.all():
        i = int(np.flatnonzero(~good)[0])
        die = int(positions[i]["die"])
        raise IllegalMoveError(
            f"agent {spec!r} answers {shown_action(rules, int(answer[i]), die)} in "
            f"{shown_position(rules, positions[i])}; legal: "
            f"{shown_actions(rules, int(legal[i]), die)}"
        )
    return chosen.astype(np.int16)


# ----------------------------------------------------------------------------------- weight vectors


class WeightAgent:
    """Plays the move with the highest sum of weight times feature, ties broken uniformly.

    Args:
        spec: its name.
        rules: the rules it plays by.
        weights: float64 [F] in the order of ``features.FEATURES``.

    Attributes:
        weights: float64 [F], read-only; compiled playouts use it without calling ``act``.

    Raises:
        AgentError: wrong length, or a weight that is not finite.
    """

    def __init__(self, spec: str, rules: Rules, weights: npt.ArrayLike) -> None:
        self.spec = spec
        self.rules = rules
        self._set_weights(_check_weights(spec, weights))

    def _set_weights(self, vector: npt.NDArray[np.float64]) -> None:
        # numba compiles once more for read-only arrays, so the kernel is given a writable one.
        self._vector = vector
        self.weights: npt.NDArray[np.float64] = vector.view()
        self.weights.setflags(write=False)

    def act(self, positions: States, keys: Keys) -> Actions:
        """Return the action code chosen in each position: int16 [B].

        Raises:
            PositionError: naming every fault of every position.
            AgentError: keys that do not fit.
        """
        check_decisions(positions, self.rules)
        _check_keys(keys, len(positions))
        actions = np.empty(len(positions), np.int16)
        weighted_action_batch(positions, self.rules.array, self._vector, keys, actions)
        return actions

    def score(self, positions: States) -> npt.NDArray[np.float32]:
        """Return the score of each action: float32 [B, A], -inf where it is not legal.

        Raises:
            PositionError: naming every fault of every position.
        """
        check_decisions(positions, self.rules)
        scores = np.empty((len(positions), self.rules.board.actions), np.float32)
        score_batch(positions, self.rules.array, self._vector, scores)
        return scores

    def __repr__(self) -> str:
        return f"WeightAgent({self.spec!r}, {str(self.rules)!r})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_weights(self._vector)


def _check_weights(spec: str, weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    if isinstance(weights, list) and any(isinstance(w, list) for w in weights):
        raise AgentError(f"{spec}: weights must be numbers")  # nested deeper than numpy can go
    given = np.array(weights) if not isinstance(weights, list) else np.array(weights, object)
    if any(isinstance(w, bool | str) or not np.isreal(w) for w in given.ravel().tolist()):
        raise AgentError(f"{spec}: weights must be numbers")
    try:
        vector = given.astype(np.float64)
    except (TypeError, ValueError):
        raise AgentError(f"{spec}: weights must be numbers") from None
    if vector.shape != (FEATURE_COUNT,):
        raise AgentError(f"{spec}: expected {FEATURE_COUNT} weights, got {list(vector.shape)}")
    bad = [name for name, w in zip(FEATURES, vector, strict=True) if not math.isfinite(w)]
    if bad:
        raise AgentError(f"{spec}: weights must be finite: {', '.join(bad)}")
    return vector


def weight_vector(weights: Mapping[str, Any] | Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return float64 [F] from weights by feature name (those not named are 0) or in order.

    Raises:
        AgentError: unknown features, values that are not finite numbers; every one named.
    """
    if not isinstance(weights, Mapping):
        return _check_weights("weights", weights)
    unknown = [str(name) for name in weights if name not in FEATURES]
    faults = [f"unknown feature {name!r}{nearest(name, FEATURES)}" for name in unknown]
    for name, value in weights.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            faults.append(f"weight of {name!r} must be a finite number, got {value!r}")
    if unknown:
        faults.append(f"known features: {', '.join(FEATURES)}")
    if faults:
        raise AgentError("; ".join(faults))
    return np.array([float(weights.get(name, 0.0)) for name in FEATURES])


def _make_random(argument: str, rules: Rules) -> Agent:
    if argument not in ("", "mask"):
        raise AgentError(f"random takes nothing or 'mask' after the colon, got {argument!r}")
    spec = f"random:{argument}" if argument else "random"
    return WeightAgent(spec, rules, random_weights(passing=argument == "mask"))


def _make_weights(argument: str, rules: Rules) -> Agent:
    """Make an agent of JSON: an object (feature to weight), a list of all weights, or a file."""
    text = argument
    if argument.lstrip()[:1] not in ("{", "["):
        try:
            text = Path(argument).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError) as error:  # a NUL, no UTF-8, ~nobody
            raise AgentError(f"weights:{argument}: cannot read that file: {error}") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AgentError(f"weights:{argument}: not JSON: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("weights"), dict | list):
        data = data["weights"]  # a file may say more about its weights
    if not isinstance(data, dict | list):
        raise AgentError(f"weights:{argument}: expected an object or a list of weights")
    return WeightAgent(f"weights:{argument}", rules, weight_vector(data))


# -------------------------------------------------------------------------------- users' own agents


class FunctionAgent:
    """An agent from a plain function ``(game) -> move``.

    The function gets a ``Game`` of its own (play on it as you like) and returns one of
    ``game.legal_moves``, the text of a move, or an action code. The dice of that ``Game`` are not
    those of the real one: its seed is the key of the decision. A function with a second parameter
    called ``key`` is given the key, a whole number to draw random choices from.
    """

    def __init__(self, spec: str, rules: Rules, function: Callable[..., Any]) -> None:
        self.spec = spec
        self.rules = rules
        self.function = function
        self._wants_key = "key" in _parameters(function)[1:]
        self._rules_of: dict[tuple[tuple[int, ...], bool], Rules] = {}

    def act(self, positions: States, keys: Keys) -> Actions:
        """Ask the function about each position in turn."""
        from kimble_env.game import Game

        actions = np.empty(len(positions), np.int16)
        for i in range(len(positions)):
            state = take_states(positions[i : i + 1])
            state["seed"] = keys[i]
            game = Game.from_state(self._rules_for(state[0]), state)
            texts = {str(move): move.action for move in game.legal_moves}
            options = {"key": int(keys[i])} if self._wants_key else {}
            actions[i] = self._action(self.function(game, **options), texts)
        return actions

    def _rules_for(self, state: Any) -> Rules:
        """Return the rules with the seats that play here, and no limit that is passed already.

        Positions of equal rules may have other seats, starter and ``max_turns`` than the agent was
        made for: those change no legal move.
        """
        seats = tuple(np.flatnonzero(state["plays"]).tolist())
        limit = self.rules.max_turns
        passed = limit is not None and int(state["turn"]) >= limit
        if seats == self.rules.seats and not passed:
            return self.rules
        known = self._rules_of.get((seats, passed))
        if known is None:
            starter = self.rules.starter
            if starter in SEAT_LETTERS and SEAT_LETTERS.index(starter) not in seats:
                starter = "random"  # the game has begun: nobody asks any more
            known = self.rules.replace(
                seats=seats, starter=starter, max_turns=None if passed else limit
            )
            self._rules_of[seats, passed] = known
        return known

    def _action(self, move: Any, texts: dict[str, int]) -> int:
        """Return the action code of what the function answered."""
        if isinstance(move, str):
            if move not in texts:
                raise IllegalMoveError(
                    f"agent {self.spec!r} answers {move!r}; legal moves: {', '.join(texts)}"
                )
            return texts[move]
        action = getattr(move, "action", move)
        if isinstance(action, bool) or not isinstance(action, int | np.integer):
            raise AgentError(
                f"agent {self.spec!r} must return a move, its text or an action code, got {move!r}"
            )
        if not -(1 << 15) <= int(action) < 1 << 15:
            raise IllegalMoveError(f"agent {self.spec!r} answers action {action}")
        return int(action)


class CheckedAgent:
    """The boundary around an agent that is not this package's: nothing illegal gets in or out.

    Positions are checked and copied with their random state zeroed; answers are checked. It pickles
    and copies: by its spec where it was made from one, else as the object it holds.
    """

    def __init__(self, inner: Any, rules: Rules, spec: str, recipe: str | None = None) -> None:
        self.inner = inner
        self.rules = rules
        self.spec = spec
        self._recipe = recipe

    def act(self, positions: States, keys: Keys) -> Actions:
        """Return a legal action code for each position: int16 [B].

        Raises:
            PositionError: naming every fault of every position.
            AgentError: the answer has another shape or is not of whole numbers, or the agent fails
                with an error of its own (which is the cause).
            IllegalMoveError: an action that is not legal.
        """
        check_decisions(positions, self.rules)
        _check_keys(keys, len(positions))
        asked = hide_random_state(positions)
        with _own_failures(self.spec):
            answer = self.inner.act(asked, keys.copy())
        return check_actions(positions, self.rules, answer, self.spec)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, {str(self.rules)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is not None:
            return _remake, (self._recipe, self.rules, self.spec)
        return type(self), (self.inner, self.rules, self.spec)


class CheckedEvaluator(CheckedAgent):
    """A :class:`CheckedAgent` whose agent has win chances too."""

    def evaluate(self, positions: States) -> npt.NDArray[np.float32]:
        """Return float32 [B, A, 4]: each seat's chance to win after each action.

        Raises:
            PositionError: naming every fault of every position.
            AgentError: the answer has another shape, or chances that are not in 0..1, or the agent
                fails with an error of its own.
        """
        check_decisions(positions, self.rules)
        asked = hide_random_state(positions)
        with _own_failures(self.spec):
            answer = self.inner.evaluate(asked)
        try:
            win = np.asarray(answer, np.float32)
        except (TypeError, ValueError):
            kind = type(answer).__name__
            raise AgentError(
                f"agent {self.spec!r} must return chances as numbers, got a {kind} that is no array"
            ) from None
        shape = (len(positions), self.rules.board.actions, 4)
        if win.shape != shape:
            raise AgentError(f"agent {self.spec!r} must return chances {shape}, got {win.shape}")
        if not ((win >= 0.0) & (win <= 1.0)).all():
            raise AgentError(f"agent {self.spec!r} returns win chances that are not in 0..1")
        return win


@contextmanager
def _own_failures(spec: str) -> Iterator[None]:
    """Turn an error of a user's code into an AgentError that says what happened, and where."""
    try:
        yield
    except KimbleError:
        raise
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}, in {place.name}"
        raise AgentError(f"agent {spec!r} fails: {told(error)} ({where})") from error


def _remake(recipe: str, rules: Rules, spec: str) -> Agent:
    """Make an agent anew after pickling, under the name that it had."""
    agent = make_agent(recipe, rules)
    agent.spec = spec
    return agent


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a callable's parameters; [] where it does not tell."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _from_object(thing: Any, rules: Rules, spec: str | None, recipe: str | None) -> Agent:
    """Make an agent from a user's agent, class, factory or move function."""
    name = spec if spec is not None else getattr(thing, "__qualname__", type(thing).__name__)
    if inspect.isclass(thing):
        thing = _instance(thing, rules)
    elif not hasattr(thing, "act"):
        if not callable(thing):
            raise AgentError(
                f"{name} is no agent: expected an object with act(), a class, or a function, got "
                f"{type(thing).__name__}"
            )
        if _parameters(thing)[:1] == ["rules"]:
            thing = thing(rules)
        else:
            _check_signature(thing, name)
            thing = FunctionAgent(name, rules, thing)
    if not callable(getattr(thing, "act", None)):
        raise AgentError(f"{name} is no agent: it has no act(positions, keys)")
    if spec is None:
        name = str(getattr(thing, "spec", name))
    _check_same_rules(thing, rules, name)
    if type(thing) is WeightAgent:  # a subclass may decide in its own way
        return thing
    kind = CheckedEvaluator if callable(getattr(thing, "evaluate", None)) else CheckedAgent
    return kind(thing, rules, name, recipe)


def _check_signature(function: Callable[..., Any], name: str) -> None:
    """Check that a move function can be called with a game, and the key if it asks for one."""
    options = {"key": 0} if "key" in _parameters(function)[1:] else {}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that does not tell
        return
    try:
        signature.bind(None, **options)
    except TypeError:
        raise AgentError(
            f"{name} is no agent: a move function takes (game) or (game, key), not {signature}"
        ) from None


def _instance(kind: Any, rules: Rules) -> Any:
    """Make an object of a user's class, with the rules if it has a place for them."""
    if "rules" in _parameters(kind):
        return kind(rules=rules)
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return kind(rules)
    except ValueError:  # a class that does not tell
        pass
    return kind()


def _check_same_rules(thing: Any, rules: Rules, name: str) -> None:
    own = getattr(thing, "rules", None)
    if isinstance(own, Rules) and own.hash != rules.hash:
        raise AgentError(f"agent {name!r} plays {own} ({own.hash}), not {rules} ({rules.hash})")


# ------------------------------------------------------------------------------------- the registry

OptionMaker = Callable[[Agent, str, Rules], Agent]
"""Makes an agent of another one: for ``cautious@level=3`` of cautious, "3" and the rules."""

_makers: dict[str, Maker] = {"random": _make_random, "weights": _make_weights}
_aliases: dict[str, str] = {}
_options: dict[str, OptionMaker] = {}
_loaded = False
_load_failures: list[str] = []


def register_maker(kind: str, maker: Maker) -> None:
    """Make specs ``kind`` and ``kind:argument`` known.

    Raises:
        AgentError: the kind is not a plain word, or another maker has it.
    """
    if not kind.isidentifier():
        raise AgentError(f"a kind of agents must be a plain word, got {kind!r}")
    known = _makers.get(kind)
    if known is not None and known is not maker:
        raise AgentError(f"another maker is registered for {kind!r} already")
    _makers[kind] = maker


def register_alias(name: str, spec: str) -> None:
    """Make ``name`` short for ``spec``.

    Raises:
        AgentError: the name is not plain words, joined by hyphens, or means something else already.
    """
    if not name.replace("-", "_").isidentifier():
        raise AgentError(f"an alias must be a plain word (hyphens may join words), got {name!r}")
    if name in _makers or _aliases.get(name, spec) != spec:
        raise AgentError(f"{name!r} means {_aliases.get(name, name)!r} already")
    _aliases[name] = spec


def register_option(name: str, maker: OptionMaker) -> None:
    """Make ``@name=value`` behind any spec known.

    Raises:
        AgentError: the name is not lower-case letters, or another maker has it.
    """
    if not re.fullmatch("[a-z_]+", name):
        raise AgentError(f"an option must be lower-case letters, got {name!r}")
    if _options.get(name, maker) is not maker:
        raise AgentError(f"another maker is registered for the option {name!r} already")
    _options[name] = maker


def known_specs() -> dict[str, str]:
    """Return the names that :func:`make_agent` knows: kinds (to themselves) and aliases."""
    _load_entry_points()
    return {**{kind: kind for kind in _makers}, **_aliases}


def _load_entry_points() -> None:
    """Call every function of the entry-point group once; a broken one spoils no other."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    found = list(metadata.entry_points(group=ENTRY_POINTS))
    if all(point.value != _FALLBACK.value for point in found):
        found.append(_FALLBACK)  # the distribution is not installed, only on the path
    for point in found:
        try:
            point.load()()
        except Exception as error:
            _load_failures.append(f"{point.value}: {error!r}")


_OPTION = re.compile(r"(?P<agent>.+)@(?P<name>[a-z_]+)=(?P<value>[^@/\\:]*)", re.DOTALL)
"""An option ends a spec; a folder called ``me@level=3`` is none."""


def _with_option(spec: str, rules: Rules) -> Agent | None:
    """Return the agent of a spec that ends with a known option; None for any other spec."""
    match = _OPTION.fullmatch(spec)
    if match is None:
        return None
    _load_entry_points()
    maker = _options.get(match["name"])
    if maker is None:
        return None
    made = maker(make_agent(match["agent"], rules), match["value"], rules)
    recipe = f"{absolute(match['agent'])}@{match['name']}={match['value']}"
    return _from_object(made, rules, spec, recipe)


def _find_maker(spec: str) -> tuple[Maker, str] | None:
    """Return the maker of a spec and what follows its kind."""
    kind, _, argument = _aliases.get(spec, spec).partition(":")
    if kind not in _makers and spec not in _aliases:
        return None
    return _makers[kind], argument


def make_agent(spec: str | Agent | Callable[..., Any], rules: str | Rules = "kimble") -> Agent:
    """Return an agent for these rules.

    Args:
        spec: a spec (see the module's page), an agent, a class of agents, or a function.
        rules: Rules or their text.

    Raises:
        AgentError: what is not known, or does not fit; the message lists the known names.
        RulesError: rules that cannot be.
    """
    rules = find_rules(rules)
    if not isinstance(spec, str):
        if type(spec) is WeightAgent or isinstance(spec, CheckedAgent):
            _check_same_rules(spec, rules, spec.spec)
            return spec
        return _from_object(spec, rules, None, None)
    with_option = _with_option(spec, rules)
    if with_option is not None:
        return with_option
    found = _find_maker(spec)
    if found is None:
        _load_entry_points()
        found = _find_maker(spec)
    if found is not None:
        made = found[0](found[1], rules)
        return _from_object(made, rules, getattr(made, "canonical", spec), spec)
    if split_own(spec) is not None:
        return _from_object(load_own(spec), rules, spec, absolute(spec))
    raise AgentError(_unknown(spec))


def choose(agent: str | Agent | Callable[..., Any], game: Game) -> Move:
    """Return the move that an agent makes in a game, ready for ``game.play``.

    >>> from kimble_env import Game, choose
    >>> str(choose("random", Game.from_text("norske R3,20/B0/Y-/G- R 4 1")))
    '20-24'

    Args:
        agent: a spec or whatever else :func:`make_agent` takes. Made anew each time: keep the made
            agent where speed matters.
        game: with a die thrown.

    Raises:
        AgentError: an agent that is not known or does not fit the game's rules.
        PositionError: no die has been thrown, the game is over, or its referee holds it (L1).
    """
    made = make_agent(agent, game.rules)
    positions = game.state
    check_decisions(positions, game.rules)
    if not game.legal_moves:
        raise PositionError("no move may be made now: the referee holds the game")  # L1
    answer = made.act(hide_random_state(positions), decision_keys(positions))
    action = int(check_actions(positions, game.rules, answer, made.spec)[0])
    return next(move for move in game.legal_moves if move.action == action)


def _unknown(spec: str) -> str:
    if spec.endswith(".py"):
        return f"{spec!r} names a file only; name the agent in it too: {spec}:NAME"
    known = sorted(known_specs())
    text = f"unknown agent {spec!r}{nearest(spec, known)}; known: {', '.join(known)}"
    text += ", a file.py:name or a module:name"
    option = _OPTION.fullmatch(spec)
    if option is not None:
        text += f"; no agent takes the option '@{option['name']}={option['value']}'"
    if _load_failures:
        text += f"; agents that failed to load: {'; '.join(_load_failures)}"
    return text
