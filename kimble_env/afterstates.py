"""What can come next: every position after a throw, and after every legal move; compiled.

Search, value functions and luck adjustment look at the game through these two functions, so none of
them knows a rule: the children are made by the kernel's own ``throw`` and ``play`` with the dice
forced.

>>> import numpy as np
>>> from kimble_env.afterstates import expand_moves, expand_throws
>>> from kimble_env.notation import parse_position
>>> rules, states = parse_position("kombat R3/B- R - 1")
>>> throws = expand_throws(states, rules)
>>> moves = expand_moves(throws.children, rules)
>>> len(throws.children), float(throws.chance.sum())
(6, 1.0)

A child keeps the seed of its game; its counters have moved on as in play. ``last_battle`` of a
child behind a battle holds one pair of dice of those that lead to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kimble_env._jit import inlined, njit
from kimble_env.errors import KimbleError, PositionError
from kimble_env.kernel import (
    RUNNING,
    STATE,
    acting,
    battle_against,
    battle_margin,
    battle_odds,
    count_bits,
    empty_states,
    face_probability,
    legal_actions,
    lowest_bit,
    move_target,
    play,
    throw,
)
from kimble_env.rules import R_BATTLES, R_POPOMATIC, Rules

States = npt.NDArray[np.void]


class Moves(NamedTuple):
    """Every position after one legal action, in the order of parent, action, outcome.

    Attributes:
        children: STATE [M], before the next throw or finished.
        parent: int32 [M], the row of the position that the child comes from; ascending.
        action: int16 [M], the action code that leads there; ascending within a parent.
        chance: float64 [M], 1, or after a battle the chance of this outcome; those of one action
            add to 1.
    """

    children: States
    parent: npt.NDArray[np.int32]
    action: npt.NDArray[np.int16]
    chance: npt.NDArray[np.float64]


class Throws(NamedTuple):
    """Every position after one throw; die d of position b is row ``6 * b + d - 1``.

    Attributes:
        children: STATE [6 * B]; a throw without a legal move is over at once, and such a child
            stands before the next throw.
        parent: int32 [6 * B], the row of the position thrown from.
        chance: float64 [6 * B], the chance of the face (R10); those of one position add to 1.
    """

    children: States
    parent: npt.NDArray[np.int32]
    chance: npt.NDArray[np.float64]


# ---------------------------------------------------------------------------- outcomes of a battle


@inlined
def _outcome(edge):
    """Return 0 for a battle won, 1 tied, 2 lost by the attacker (R18)."""
    return 0 if edge > 0 else (1 if edge == 0 else 2)


@njit
def outcome_count(s, r, action):
    """Return how many outcomes to try for an action; those of chance 0 do not happen."""
    if r[R_BATTLES] == 0 or battle_against(s, r, action) < 0:
        return 1
    # The popomatic die remembers the defender's face (R10), so that outcomes differ by it.
    return 3 if r[R_POPOMATIC] == 0 else 18


@njit
def nth_outcome(s, r, action, n):
    """Return the battle dice (attacker, defender) of one outcome, and the chance of the outcome.

    Args:
        n: 0 won, 1 tied, 2 lost; with the popomatic die 6 times that plus the defender's die - 1.
            Of an action without a battle 0.
    """
    defender = battle_against(s, r, action)
    if defender < 0:
        return 0, 0, 1.0
    margin = battle_margin(r, acting(s), move_target(s, action), defender)
    if r[R_POPOMATIC] == 0:
        win, tie, loss = battle_odds(s, r, margin)
        if n == 0:
            return 6, 1, win
        return (1, 1 + margin, tie) if n == 1 else (1, 6, loss)
    defence, dice, chance = 1 + n % 6, 0, 0.0
    for attack in range(1, 7):
        if _outcome(attack + margin - defence) == n // 6:
            dice = attack
            first = face_probability(r, int(s["face"]), attack)
            chance += first * face_probability(r, attack, defence)
    return dice, defence, chance


# ----------------------------------------------------------------------------------- the expansions


@njit
def children_of(s, r):
    """Return how many children ``expand_into`` makes of a position (0 without a die thrown)."""
    if s["status"] != RUNNING or s["die"] == 0:
        return 0
    rest = legal_actions(s, r, int(s["die"]))
    if r[R_BATTLES] == 0:
        return int(count_bits(rest))
    count = 0
    while rest != 0:
        action = lowest_bit(rest)
        rest &= rest - 1
        for n in range(outcome_count(s, r, action)):
            count += nth_outcome(s, r, action, n)[2] > 0.0
    return count


@njit
def expand_into(s, r, parent, first, children, parents, actions, chances):
    """Write the children of one position from row ``first`` on; return the row after the last.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``; without the option ``members``.
        parent: what to write to ``parents``.
        children, parents, actions, chances: the arrays of ``Moves``, with room enough.
    """
    rest = legal_actions(s, r, int(s["die"]))
    while rest != 0:
        action = lowest_bit(rest)
        rest &= rest - 1
        for n in range(outcome_count(s, r, action)):
            attack, defence, chance = nth_outcome(s, r, action, n)
            if chance <= 0.0:
                continue
            children[first] = s
            play(children[first], r, action, attack, defence)
            parents[first] = parent
            actions[first] = action
            chances[first] = chance
            first += 1
    return first


@njit
def count_children_batch(states, r, starts):
    """Write to ``starts`` int64 [B + 1] the row at which the children of each position begin."""
    starts[0] = 0
    for i in range(len(states)):
        starts[i + 1] = starts[i] + children_of(states[i], r)


@njit
def expand_moves_batch(states, r, starts, children, parents, actions, chances):
    """Fill the arrays of ``Moves``, positions without a die thrown left out."""
    for i in range(len(states)):
        if starts[i + 1] > starts[i]:
            expand_into(states[i], r, i, starts[i], children, parents, actions, chances)


@njit
def expand_throws_batch(states, r, children, parents, chances):
    """Fill the arrays of ``Throws``; positions must wait for a throw (unchecked)."""
    for i in range(len(states)):
        for die in range(1, 7):
            row = 6 * i + die - 1
            children[row] = states[i]
            parents[row] = i
            chances[row] = face_probability(r, int(states[i]["face"]), die)
            throw(children[row], r, die)


@njit
def gather_moves_batch(values, parents, actions, chances, out):
    """Add chance times value of every child to its parent and action.

    Args:
        values: float64 [M, 4], a row per child.
        parents, actions, chances: those of ``Moves``.
        out: float64 [B, A, 4], zeroed before.
    """
    for j in range(len(values)):
        for seat in range(4):
            out[parents[j], actions[j], seat] += chances[j] * values[j, seat]


# ----------------------------------------------------------------------------- functions for Python


def _check(states: States, rules: Rules) -> None:
    if not isinstance(rules, Rules):
        raise KimbleError(f"rules must be Rules, got {type(rules).__name__}")
    if not isinstance(states, np.ndarray) or states.dtype != STATE or states.ndim != 1:
        kind = getattr(states, "dtype", type(states).__name__)
        raise PositionError(f"positions must be an array STATE [B], got {kind}")
    if rules.members is not None:
        raise KimbleError(
            "with the option members a move has chances of its own (who fails a cup), which cannot "
            f"be listed: use rules without it, got {rules}"
        )


def expand_moves(states: States, rules: Rules) -> Moves:
    """Return every position that one legal action leads to.

    Args:
        states: STATE [B]. Only those with a die thrown have children; others are no fault.
        rules: the rules, without the option ``members``. With two colours a child that ends the
            game names the colour that finished last (R17).

    Raises:
        KimbleError: rules with ``members``.
        PositionError: not an array of positions. The positions themselves are not checked.
    """
    _check(states, rules)
    r = rules.array
    starts = np.empty(len(states) + 1, np.int64)
    count_children_batch(states, r, starts)
    count = int(starts[-1])
    moves = Moves(
        empty_states(count),
        np.empty(count, np.int32),
        np.empty(count, np.int16),
        np.empty(count, np.float64),
    )
    expand_moves_batch(states, r, starts, *moves)
    return moves


def expand_throws(states: States, rules: Rules) -> Throws:
    """Return the six positions after a throw, for each position.

    Args:
        states: STATE [B], each waiting for a throw.
        rules: the rules, without the option ``members``.

    Raises:
        KimbleError: rules with ``members``.
        PositionError: not an array of positions, or one that does not wait for a throw (the first
            is named). The positions are not checked otherwise.
    """
    _check(states, rules)
    wrong = np.flatnonzero((states["status"] != RUNNING) | (states["die"] != 0))
    if len(wrong):
        over = states["status"][wrong[0]] != RUNNING
        what = "the game is over" if over else "a die has been thrown already"
        raise PositionError(f"position {wrong[0]} waits for no throw: {what}")
    count = 6 * len(states)
    throws = Throws(empty_states(count), np.empty(count, np.int32), np.empty(count, np.float64))
    expand_throws_batch(states, rules.array, *throws)
    return throws


def gather_moves(
    moves: Moves, values: npt.NDArray[np.float64], positions: int, actions: int
) -> npt.NDArray[np.float64]:
    """Return values per action, battles averaged: float64 [B, A, 4], 0 for illegal actions.

    Args:
        moves: from :func:`expand_moves`.
        values: float64 [M, 4], a row per child.
        positions: number of positions expanded, B.
        actions: number of action codes, A = ``rules.board.actions``.

    Raises:
        KimbleError: values of another shape.
    """
    if values.shape != (len(moves.children), 4):
        raise KimbleError(
            f"values must be float64 [{len(moves.children)}, 4], got {list(values.shape)}"
        )
    out = np.zeros((positions, actions, 4))
    values = np.ascontiguousarray(values, np.float64)
    gather_moves_batch(values, moves.parent, moves.action, moves.chance, out)
    return out
