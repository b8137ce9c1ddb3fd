"""Luck, counted while games are played: compiled, for the linear values.

The luck of a throw is ``f(face thrown)`` less the mean of ``f`` over the six faces, where ``f`` is
the value after the move that the seat would make for that face: known of weight vectors (the mean
over the moves among which they draw), the best one for all others. The luck of a draw is the value
after the move drawn less that mean; the luck of a battle the value after it less the mean over its
outcomes. See ``luck.py`` for why the result less the luck has the same mean.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from agents import position_features
from agents.compiling import compiler
from agents.position_features import COUNT, linear_value
from evaluation.counting import CHOICES, PASSES
from kimble_env.afterstates import nth_outcome, outcome_count
from kimble_env.features import best_actions, decision_key, weights_plan
from kimble_env.kernel import (
    RUNNING,
    acting,
    battle_against,
    below,
    count_bits,
    face_probability,
    legal_actions,
    legal_one,
    lowest_bit,
    nth_bit,
    play_one,
    throw_one,
)
from kimble_env.rules import R_PASS

_compiled = compiler("luck", __file__, Path(position_features.__file__))
_allocating = partial(_compiled, _nrt=True)
_DIE_BIT = 60  # throw_one: the legal actions, and from this bit on the die

# Games are passed as arrays of length one here: the engine's functions for such arrays are compiled
# already, its inlined ones would be compiled anew into every caller.


@_compiled
def action_value(game, r, action, value, child, work, one, out):
    """Write the chances after an action, the mean over a battle's outcomes, to ``out`` float64 [4].

    Args:
        game: STATE [1] with a die thrown.
        value: float64 [COUNT], the weights of the value.
        child, work, one: STATE [1], float64 [4, COUNT], float64 [4]: overwritten.
    """
    for seat in range(4):
        out[seat] = 0.0
    for n in range(outcome_count(game[0], r, action)):
        attack, defence, chance = nth_outcome(game[0], r, action, n)
        if chance > 0.0:
            child[0] = game[0]
            play_one(child, r, action, attack, defence)
            linear_value(child[0], r, value, work, one)
            for seat in range(4):
                out[seat] += chance * one[seat]


@_compiled
def best_value(game, r, actions, value, child, work, scratch, out):
    """Write the chances after the best of some actions for the seat to act to ``out`` float64 [4].

    Args:
        scratch: float64 [2, 4], overwritten.

    Returns:
        The best action, of equal ones the first by code.
    """
    seat, highest, rest, best = acting(game[0]), -1.0, actions, 0
    while rest != 0:
        action = lowest_bit(rest)
        rest &= rest - 1
        action_value(game, r, action, value, child, work, scratch[0], scratch[1])
        if scratch[1, seat] > highest:
            highest, best = scratch[1, seat], action
            for k in range(4):
                out[k] = scratch[1, k]
    return best


@_compiled
def drawn_among(s, r, legal, weights):
    """Return the actions among which a weight vector float64 [F] draws, as bits (out of line)."""
    return best_actions(s, r, legal, weights, weights_plan(weights))


@_compiled
def drawn_among_batch(states, r, agents_weights, rows, out):
    """Write the actions among which each seat to act draws to ``out`` int64 [B], as bits.

    Args:
        states: STATE [B].
        agents_weights: float64 [K, F].
        rows: int8 [B], the row of the seat to act; below 0: its choice is not known.

    0 is written where nothing is known or no die is thrown.
    """
    for i in range(len(states)):
        s, out[i] = states[i], 0
        if rows[i] >= 0 and s["status"] == RUNNING and s["die"] != 0:
            legal = legal_actions(s, r, int(s["die"]))
            if legal != 0:
                out[i] = drawn_among(s, r, legal, agents_weights[rows[i]])


@_compiled
def mean_value(game, r, actions, value, child, work, scratch, out):
    """Write the mean of the chances after some actions to ``out`` float64 [4].

    Args:
        scratch: float64 [2, 4], overwritten.
    """
    for k in range(4):
        out[k] = 0.0
    rest, count = actions, count_bits(actions)
    while rest != 0:
        action = lowest_bit(rest)
        rest &= rest - 1
        action_value(game, r, action, value, child, work, scratch[0], scratch[1])
        for k in range(4):
            out[k] += scratch[1, k] / count


@_compiled
def face_values(game, r, value, weights, known, copies, work, scratch, faces, best):
    """Write f for each face to ``faces`` float64 [6, 4]; the game STATE [1] waits for a throw.

    Args:
        weights: float64 [F], what the seat that throws plays by, if that is ``known``.
        copies: STATE [2], overwritten.
        best: int64 [6], the best action for each face, -1 where there is none; not written of a
            seat whose play is known.
    """
    thrown, child = copies[:1], copies[1:]
    for die in range(1, 7):
        thrown[0] = game[0]
        actions = throw_one(thrown, r, die) & ((1 << _DIE_BIT) - 1)
        if actions == 0:
            best[die - 1] = -1
            linear_value(thrown[0], r, value, work, faces[die - 1])
        elif known:
            drawn = drawn_among(thrown[0], r, actions, weights)
            mean_value(thrown, r, drawn, value, child, work, scratch, faces[die - 1])
        else:
            best[die - 1] = best_value(
                thrown, r, actions, value, child, work, scratch, faces[die - 1]
            )


@_compiled
def throw_counted(game, r, value, weights, known, copies, work, scratch, faces, best, luck):
    """Throw, add the luck of the throw to ``luck`` float64 [4]; return the legal actions."""
    face_values(game, r, value, weights, known, copies, work, scratch, faces, best)
    face = int(game[0]["face"])
    answer = throw_one(game, r, 0)
    thrown = (answer >> _DIE_BIT) - 1
    for seat in range(4):
        mean = 0.0
        for die in range(6):
            mean += face_probability(r, face, die + 1) * faces[die, seat]
        luck[seat] += faces[thrown, seat] - mean
    return answer & ((1 << _DIE_BIT) - 1)


@_compiled
def draw_counted(game, r, actions, value, child, work, scratch, mean, luck):
    """Draw one of some actions by the key of the decision; add the luck of it to ``luck``.

    Args:
        mean: float64 [4], overwritten.
    """
    if actions & (actions - 1) == 0:
        return lowest_bit(actions)
    action = nth_bit(actions, below(decision_key(game[0]), count_bits(actions)))
    mean_value(game, r, actions, value, child, work, scratch, mean)
    action_value(game, r, action, value, child, work, scratch[0], scratch[1])
    for seat in range(4):
        luck[seat] += scratch[1, seat] - mean[seat]
    return action


@_compiled
def play_counted(game, r, action, value, copies, work, scratch, luck):
    """Play; a battle draws its dice, and its luck is added to ``luck`` float64 [4]."""
    if battle_against(game[0], r, action) < 0:
        play_one(game, r, action, 0, 0)
        return
    action_value(game, r, action, value, copies[:1], work, scratch[0], scratch[1])
    play_one(game, r, action, 0, 0)
    linear_value(game[0], r, value, work, scratch[0])
    for seat in range(4):
        luck[seat] += scratch[0, seat] - scratch[1, seat]


@_compiled
def _advance_lucky(
    states, r, agents_weights, seating, last, value, copies, answers, luck, actions, counts, work,
    scratch, faces, best,
):  # fmt: skip
    """Do what ``advance_lucky_batch`` says with the working memory that it makes."""
    for i in range(len(states)):
        game, s = states[i : i + 1], states[i]
        if answers[i] >= 0:
            play_counted(game, r, answers[i], value, copies, work, scratch, luck[i])
        actions[i] = 0
        while s["status"] == RUNNING and s["plies"] < last:
            row = seating[i, acting(s)]
            weights, known = agents_weights[max(row, 0)], row >= 0
            if s["die"] == 0:
                legal = throw_counted(
                    game, r, value, weights, known, copies, work, scratch, faces, best, luck[i]
                )
            else:
                legal = legal_one(game, r)
            if legal == 0:
                continue
            action = lowest_bit(legal)
            if legal & (legal - 1) != 0:
                if not known:
                    actions[i] = legal
                    break
                drawn = drawn_among(s, r, legal, weights)
                action = draw_counted(
                    game, r, drawn, value, copies[:1], work, scratch, faces[0], luck[i]
                )
                counts[i, acting(s), CHOICES] += 1
                counts[i, acting(s), PASSES] += action == r[R_PASS]
            play_counted(game, r, action, value, copies, work, scratch, luck[i])


@_allocating
def advance_lucky_batch(
    states, r, agents_weights, seating, last, value, copies, answers, luck, actions, counts
):
    """Play every game on until a seat without weights has a choice, counting luck.

    The same games as ``counting.advance_counted_batch``.

    Args:
        states: STATE [B], played on in place.
        r: ``Rules.array``.
        agents_weights: float64 [K, F], one row per agent that is a weight vector.
        seating: int8 [B, 4], the row of each seat, or -1: that seat is asked.
        last: throws after which a game is left alone, forced ones included.
        value: float64 [COUNT], the weights of the value.
        copies: STATE [2], overwritten.
        answers: int64 [B], what to play first in each game that waits, -1 for none.
        luck: float64 [B, 4], added to.
        actions: int64 [B], the legal actions of the seat to act as bits; 0 where the game has ended
            or is left alone.
        counts: int32 [B, 4, 2], added to: choices and passes of each seat with weights.
    """
    work = np.empty((4, COUNT))
    scratch, faces, best = np.empty((2, 4)), np.empty((6, 4)), np.empty(6, np.int64)
    _advance_lucky(
        states, r, agents_weights, seating, last, value, copies, answers, luck, actions, counts,
        work, scratch, faces, best,
    )  # fmt: skip


@_compiled
def _advance_best(states, r, value, copies, lasts, luck, work, scratch, faces, best):
    """Do what ``advance_best_batch`` says with the working memory that it makes."""
    for i in range(len(states)):
        game, s = states[i : i + 1], states[i]
        while s["status"] == RUNNING and s["plies"] < lasts[i]:
            throw_counted(
                game, r, value, value, False, copies, work, scratch, faces, best, luck[i]
            )
            action = best[int(s["last_die"]) - 1]
            if action >= 0:
                play_counted(game, r, action, value, copies, work, scratch, luck[i])


@_allocating
def advance_best_batch(states, r, value, copies, lasts, luck):
    """Play every game on by the best move of the value itself, in all seats, counting luck.

    Args:
        states: STATE [B], each before a throw; played on in place.
        r: ``Rules.array``.
        value: float64 [COUNT], the weights of the value.
        copies: STATE [2], overwritten.
        lasts: int64 [B], throws resolved after which each game is left alone.
        luck: float64 [B, 4], added to.
    """
    work = np.empty((4, COUNT))
    scratch, faces, best = np.empty((2, 4)), np.empty((6, 4)), np.empty(6, np.int64)
    _advance_best(states, r, value, copies, lasts, luck, work, scratch, faces, best)
