"""Checks that you can run on your own agents and on your own wrappers of the environment.

>>> from kimble_env.testing import check_aec, check_agent
>>> check_agent("random", "norske", decisions=50)
>>> from kimble_env import kimble_v0
>>> check_aec(lambda: kimble_v0.env("norske", max_turns=60))

Each returns None, or raises :class:`CheckError`, an AssertionError that says what is wrong, where,
and what was expected. They complement PettingZoo's ``api_test`` and ``seed_test``, which let pass
environments that ignore the seed, lose their game when copied, or never show a loss.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_env import kernel
from kimble_env.board import SEATS
from kimble_env.errors import AgentError, IllegalMoveError, KimbleError
from kimble_env.notation import format_position
from kimble_env.opponents import Agent, decision_keys, hide_random_state, make_agent
from kimble_env.rules import Rules, find_rules

States = npt.NDArray[np.void]


class CheckError(AssertionError):
    """A check has failed; the message says which, where, and what was expected."""


def _expect(condition: object, message: str) -> None:
    if not condition:
        raise CheckError(message)


# ---------------------------------------------------------------------------------------- positions


def random_positions(rules: str | Rules, count: int, seed: int = 0) -> States:
    """Return positions from random games in which the seat to act has two legal actions or more.

    Args:
        rules: Rules or their text.
        count: how many.
        seed: 0..2**64-1; equal seeds give equal positions.

    Returns:
        STATE [count], each with a die thrown.

    Raises:
        KimbleError: hardly any game of these rules comes to a choice.
    """
    rules = find_rules(rules)
    lengths = np.random.default_rng(seed)
    states, found = kernel.empty_states(count), 0
    for first in range(0, 100 * count + 1000, 64):
        games = _new_games(rules, 64, seed, first)
        for k in range(64):
            kernel.play_random_batch(
                games[k : k + 1], rules.array, int(lengths.integers(0, 60 * len(rules.seats)))
            )
        chosen = games[_to_a_choice(rules, games)][: count - found]
        states[found : found + len(chosen)] = chosen
        found += len(chosen)
        if found == count:
            return states
    raise KimbleError(f"hardly any game of {rules} comes to a choice: found {found} of {count}")


def _new_games(rules: Rules, count: int, seed: int, first: int) -> States:
    games, keys = kernel.empty_states(count), np.zeros(count, np.uint64)
    plays = np.zeros((count, SEATS), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.game_keys(np.uint64(seed), first, keys)
    kernel.new_game_batch(games, rules.array, plays, keys, np.zeros((0, 2), np.int8))
    return games


def _to_a_choice(rules: Rules, games: States) -> npt.NDArray[np.bool_]:
    """Throw on in every game until a seat has a choice; return where that came to be."""
    found = np.zeros(len(games), np.bool_)
    for _ in range(200):
        open_games = np.flatnonzero((games["status"] == kernel.RUNNING) & ~found)
        if len(open_games) == 0:
            break
        some, bits = games[open_games], np.zeros(len(open_games), np.int64)
        kernel.throw_batch(some, rules.array, np.zeros(len(some), np.int8), bits)
        found[open_games[bits & (bits - 1) != 0]] = True
        forced = np.flatnonzero((bits != 0) & (bits & (bits - 1) == 0))
        played = some[forced]
        codes = np.array([int(b).bit_length() - 1 for b in bits[forced]], np.int16)
        kernel.play_batch(played, rules.array, codes, np.zeros((len(forced), 2), np.int8))
        some[forced] = played
        games[open_games] = some
    return found


# ------------------------------------------------------------------------------------------- agents


def check_agent(
    agent: str | Agent | Callable[..., Any],
    rules: str | Rules = "kimble",
    *,
    decisions: int = 500,
    seed: int = 0,
    pickles: bool = True,
    turns: bool = False,
) -> None:
    """Check that an agent plays by the protocol of :mod:`kimble_env.opponents`.

    Its actions are legal; equal questions get equal answers, however the batch is split or ordered
    and in whatever order the pieces of a seat are listed; an empty batch gets an empty answer;
    ``evaluate``, if it has one, gives chances that add up.

    Args:
        agent: whatever :func:`~kimble_env.make_agent` takes.
        rules: Rules or their text.
        decisions: number of positions to ask about.
        seed: of the positions.
        pickles: also check that it can be pickled (spawned workers need that).
        turns: also check that it plays the same when the board is turned by one seat; for agents
            that are to treat all colours alike. Needs four seats.

    Raises:
        CheckError: the first check that fails.
        AgentError, RulesError: there is no such agent, or no such rules.
    """
    rules = find_rules(rules)
    made = make_agent(agent, rules)
    states = random_positions(rules, decisions, seed)
    keys = decision_keys(states)
    positions = hide_random_state(states)
    answers = _answers(made, positions, keys)
    where = _Where(made, rules, positions)
    where.same(answers, _answers(made, positions, keys), "asked the same again")
    _check_batches(made, where, answers, keys)
    where.same(answers, _answers(made, _reordered(positions, rules), keys), "pieces reordered")
    if turns:
        _expect(len(rules.seats) == SEATS, f"turning the board needs four seats, {rules} has fewer")
        where.same(
            answers, _answers(made, _turned(positions), keys), "the board turned by one seat"
        )
    if hasattr(made, "evaluate"):
        _check_chances(made, where)
    if pickles:
        where.same(answers, _answers(_pickled(made), positions, keys), "pickled")


class _Where:
    """Says in which position something went wrong."""

    def __init__(self, agent: Agent, rules: Rules, positions: States) -> None:
        self.spec, self.rules, self.positions = agent.spec, rules, positions

    def text(self, i: int) -> str:
        return f"agent {self.spec!r} in {format_position(self.rules, self.positions[i])!r}"

    def same(self, expected: Any, got: Any, how: str) -> None:
        different = np.flatnonzero(expected != got)
        if len(different):
            i = int(different[0])
            raise CheckError(
                f"{self.text(i)}: plays action {expected[i]}, but {how} action {got[i]} "
                f"({len(different)} of {len(expected)} decisions differ)"
            )


def _answers(agent: Agent, positions: States, keys: npt.NDArray[np.uint64]) -> Any:
    """Ask; the boundary around every agent has checked the answer."""
    try:
        return agent.act(positions, keys)
    except (AgentError, IllegalMoveError) as error:
        raise CheckError(str(error)) from error


def _check_batches(agent: Agent, where: _Where, answers: Any, keys: Any) -> None:
    positions, half = where.positions, len(answers) // 2
    parts = [(slice(None, half), "in a batch of half"), (slice(half, None), "in a batch of half")]
    parts += [(slice(i, i + 1), "asked alone") for i in range(min(20, len(answers)))]
    parts.append((slice(None, None, -1), "in reverse order"))
    for part, how in parts:
        got = answers.copy()
        got[part] = _answers(agent, positions[part].copy(), keys[part].copy())
        where.same(answers, got, how)
    nothing = _answers(agent, positions[:0], keys[:0])
    _expect(len(nothing) == 0, f"agent {agent.spec!r} answers an empty batch with {nothing!r}")


def _reordered(positions: States, rules: Rules) -> States:
    """The same positions with the pieces of every seat listed the other way round."""
    out = positions.copy()
    out["pieces"][:, :, : rules.pieces] = positions["pieces"][:, :, : rules.pieces][:, :, ::-1]
    return out


def _turned(positions: States) -> States:
    """The positions with everything a seat has given to the next seat clockwise."""
    out = positions.copy()
    for name in ("pieces", "plays", "places", "out", "lost", "arrived", "taken"):
        out[name] = np.roll(positions[name], 1, axis=1)
    for name in ("seat", "last_seat"):
        out[name] = np.where(positions[name] >= 0, (positions[name] + 1) % SEATS, -1)
    return out


def _check_chances(agent: Any, where: _Where) -> None:
    """Check the shape of what ``evaluate`` says, and that the seats' chances add up to 1."""
    positions, rules = where.positions, where.rules
    try:
        chances = agent.evaluate(positions)
    except AgentError as error:
        raise CheckError(str(error)) from error
    legal = np.zeros(len(positions), np.int64)
    kernel.legal_batch(positions, rules.array, legal)
    allowed = legal[:, None] >> np.arange(rules.board.actions) & 1 != 0
    sums = chances.sum(axis=2)
    faults = {
        "a chance for a seat that does not play": (
            chances.any(axis=1) & (positions["plays"] == 0)
        ).any(axis=1),
        "a chance after an illegal action": (chances.any(axis=2) & ~allowed).any(axis=1),
        "chances after a legal action that do not add up to 1": (
            (abs(sums - 1) > 1e-3) & allowed
        ).any(axis=1),
    }
    for fault, wrong in faults.items():
        if wrong.any():
            raise CheckError(f"{where.text(int(wrong.argmax()))}: evaluate gives {fault}")


def _pickled(agent: Agent) -> Agent:
    try:
        again: Agent = pickle.loads(pickle.dumps(agent))
    except Exception as error:
        raise CheckError(
            f"agent {agent.spec!r} cannot be pickled ({error}), so no spawned worker can use it; "
            "pass pickles=False if none shall"
        ) from error
    return again


# --------------------------------------------------------------------------------- the environment


def check_aec(
    env: Any,
    *,
    games: int = 2,
    seed: int = 0,
    max_steps: int = 20_000,
    zero_sum: bool = True,
    copies: bool = True,
) -> None:
    """Check a Kimble AEC environment, as it is or inside wrappers, by playing random games.

    Masks are int8, never empty for the agent to act, and the same object in observation and info;
    observations lie in their space and are not overwritten later; spaces are the same objects every
    time; flags are plain bools and never both; a finished game shows somebody a loss; equal seeds
    give equal games, other seeds and the next unseeded game others; a copy plays on like the
    original.

    Args:
        env: the environment, or a function that makes it.
        games: games to play.
        seed: of the first game; also of the actions drawn.
        max_steps: a game longer than this is left unfinished.
        zero_sum: also check that the rewards of a finished game add up to 0 (off for wrappers that
            shape rewards, and for ``illegal="lose"``).
        copies: also check ``deepcopy`` and ``pickle`` in mid-game.

    Raises:
        CheckError: the first check that fails.
    """
    env = env() if isinstance(env, type) or not hasattr(env, "reset") else env
    for game in range(games):
        env.reset(seed=seed + game)
        _check_spaces(env)
        _check_game(env, np.random.default_rng(seed + game), max_steps, zero_sum)
    _check_seeds(env, seed)
    if copies:
        env.reset(seed=seed)
        _follow(env, seed, 25)
        _check_copies(env, seed)
    env.reset(seed=seed)


def _check_spaces(env: Any) -> None:
    for agent in env.possible_agents:
        for name in ("observation_space", "action_space"):
            space = getattr(env, name)
            _expect(space(agent) is space(agent), f"{name}({agent!r}) is a new object every time")


def _mask_of(env: Any, agent: str, observation: Any, info: Any) -> Any:
    """Return the mask of the agent to act, checked."""
    _expect("action_mask" in info, f"info of {agent} has no action_mask, got {sorted(info)}")
    mask = info["action_mask"]
    if isinstance(observation, dict) and "action_mask" in observation:
        _expect(
            mask is observation["action_mask"],
            f"{agent}: the masks in observation and info must be one object",
        )
    size = env.action_space(agent).n
    kind = getattr(mask, "dtype", None), getattr(mask, "shape", None)
    _expect(kind == (np.int8, (size,)), f"{agent}: the mask must be int8 ({size},), got {kind}")
    _expect(mask.any(), f"{agent}: the mask that last() returns is empty")
    return mask


def _frozen(value: Any) -> Any:
    """Return an observation as something that compares by content and cannot change."""
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in sorted(value.items()))
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def _check_game(env: Any, random: np.random.Generator, max_steps: int, zero_sum: bool) -> None:
    total = dict.fromkeys(env.agents, 0.0)
    kept: list[tuple[Any, Any]] = []
    cut = False
    for agent in env.agent_iter(max_steps):
        observation, reward, termination, truncation, info = env.last()
        flags = (type(termination), type(truncation)) == (bool, bool)
        _expect(flags, f"{agent}: termination and truncation must be plain bools")
        _expect(not (termination and truncation), f"{agent}: termination and truncation at once")
        _expect(
            env.observation_space(agent).contains(observation),
            f"the observation of {agent} does not lie in its observation space",
        )
        mask = _mask_of(env, agent, observation, info)
        if len(kept) < 50:
            kept.append((observation, _frozen(observation)))
        total[agent] += float(reward)
        cut |= truncation
        over = termination or truncation
        env.step(None if over else int(random.choice(np.flatnonzero(mask))))
    for observation, then in kept:
        _expect(_frozen(observation) == then, "a later step has written into an observation")
    if env.agents or cut:
        return  # unfinished, or without a result
    _expect(min(total.values()) < 0, f"nobody was shown a loss: rewards {total}")
    if zero_sum:
        _expect(abs(sum(total.values())) < 1e-6, f"rewards do not add up to 0: {total}")


def _follow(env: Any, seed: int, steps: int = 60) -> list[Any]:
    """Play some steps with actions drawn from ``seed``; return what the agents met."""
    random, met = np.random.default_rng(seed), []
    for agent in env.agent_iter(steps):
        observation, reward, termination, truncation, info = env.last()
        met.append((agent, _frozen(observation), reward, termination, truncation))
        legal = np.flatnonzero(info["action_mask"])
        env.step(None if termination or truncation else int(random.choice(legal)))
    return met


def _check_seeds(env: Any, seed: int) -> None:
    games = []
    for number in (seed, None, seed, None, seed + 1):
        env.reset(seed=number)
        games.append(_follow(env, seed))
    first, second, first_again, second_again, other = games
    _expect(first == first_again, f"two games with seed {seed} are not the same")
    _expect(second == second_again, f"the games after one with seed {seed} are not the same")
    _expect(first != second, "the second game, without a seed, is a copy of the first")
    _expect(first != other, f"seeds {seed} and {seed + 1} give the same game: the seed is ignored")


def _check_copies(env: Any, seed: int) -> None:
    ways: dict[str, Callable[[Any], Any]] = {
        "deepcopy": copy.deepcopy,
        "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    }
    copied = {}
    for name, way in ways.items():
        try:
            copied[name] = way(env)
        except Exception as error:
            raise CheckError(f"the environment does not survive {name}: {error}") from error
    _follow(copy.deepcopy(env), seed + 1)  # another game from here on must touch no other copy
    expected = _follow(env, seed)
    for name, other in copied.items():
        _expect(
            _follow(other, seed) == expected,
            f"after {name} the game does not go on as in the original",
        )
