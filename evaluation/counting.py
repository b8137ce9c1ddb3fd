"""Play on as ``features.advance_weighted`` does, and count choices and passes: compiled.

The loop stands here a second time on purpose. Counting inside the other one would put two writes to
memory into the fastest loop of the engine for everybody, and a switch that numba prunes (counts or
None) would compile that loop twice in every program, also in those that only play. The games are
the same ones, and a test says so. What the record of a game counts itself (throws, captures,
losses, arrivals) is read from there.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from agents.compiling import compiler
from kimble_env.features import (
    FEATURE_COUNT,
    GENERAL,
    PLAN_BITS,
    PLAN_MASK,
    UNIFORM_BUT_PASS,
    decision_key,
    highest_scored,
    weights_plan,
    without_pass,
)
from kimble_env.kernel import (
    RUNNING,
    acting,
    below,
    count_bits,
    legal_actions,
    lowest_bit,
    nth_bit,
    play,
    throw,
)
from kimble_env.rules import R_PASS

_compiled = compiler("counting", __file__)
_allocating = partial(_compiled, _nrt=True)

CHOICES, PASSES = 0, 1
"""Columns of the counts: decisions with two legal actions or more, and those answered by pass."""


@_compiled
def _legal_now(s, r):
    """Return the legal actions for the die thrown, as bits (out of line: seldom needed)."""
    return legal_actions(s, r, int(s["die"]))


@_compiled
def advance_counted(s, r, weights, asked, last, counts):
    """Play on until a seat with a bit in ``asked`` has a choice; return its legal actions as bits.

    Args:
        s: a record of STATE.
        r: ``Rules.array``.
        weights: float64 [4, F], a row per seat; those of seats in ``asked`` are not read.
        asked: seats that are asked, as bits.
        last: throws resolved after which the game is left alone.
        counts: int32 [4, 2], added to per seat: CHOICES and PASSES of seats that are not asked.

    Returns:
        0 if the game has ended or ``last`` throws have been resolved.
    """
    plans = 0
    for seat in range(4):
        plans |= weights_plan(weights[seat]) << (PLAN_BITS * seat)
    while s["status"] == RUNNING and s["plies"] < last:
        actions = throw(s, r, 0) if s["die"] == 0 else _legal_now(s, r)
        if actions & (actions - 1) == 0:
            if actions != 0:  # else the throw is over already
                play(s, r, lowest_bit(actions), 0, 0)
            continue
        seat = acting(s)
        if (asked >> seat) & 1 != 0:
            return actions
        plan = (plans >> (PLAN_BITS * seat)) & PLAN_MASK
        kind = plan & 3
        ties = actions
        if kind == UNIFORM_BUT_PASS:
            ties = without_pass(r, actions)
        elif kind == GENERAL:
            ties = highest_scored(s, r, actions, weights[seat], plan)
        action = lowest_bit(ties)
        if ties & (ties - 1) != 0:
            action = nth_bit(ties, below(decision_key(s), count_bits(ties)))
        counts[seat, CHOICES] += 1
        counts[seat, PASSES] += action == r[R_PASS]
        play(s, r, action, 0, 0)
    return 0


@_allocating
def advance_counted_batch(states, r, agents_weights, seating, last, actions, counts):
    """Play every game on until a seat without weights has a choice.

    Args:
        states: STATE [B], played on in place.
        r: ``Rules.array``.
        agents_weights: float64 [K, F], one row per agent that is a weight vector.
        seating: int8 [B, 4], the row of each seat, or -1: that seat is asked.
        last: throws after which a game is left alone, forced ones included.
        actions: int64 [B], the legal actions of the seat to act as bits; 0 where the game has ended
            or is left alone.
        counts: int32 [B, 4, 2], added to.
    """
    weights = np.zeros((4, FEATURE_COUNT))
    for i in range(len(states)):
        asked = 0
        for seat in range(4):
            if seating[i, seat] >= 0:
                weights[seat] = agents_weights[seating[i, seat]]
            else:
                asked |= 1 << seat
        actions[i] = advance_counted(states[i], r, weights, asked, last, counts[i])
