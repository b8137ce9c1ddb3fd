"""Compiled parts of the search: counting what comes next, merging equal positions, backing up.

Rules are asked of the kernel; nothing here knows any.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from agents.compiling import compiler
from kimble_env._jit import wrapping
from kimble_env.afterstates import children_of, expand_into
from kimble_env.kernel import (
    RUNNING,
    acting,
    face_probability,
    legal_actions,
    lowest_bit,
    mix,
    throw,
)
from kimble_env.rules import R_PASS, R_TWO_COLOURS

fast = compiler("search", __file__)
allocating = partial(fast, _nrt=True)

TIE = 1e-9
"""Win chances closer than this are equal: sums in another order must not change a choice."""


@fast
def count_replies(states, r, counts):
    """Write to ``counts`` int64 [B] how many positions one more throw leads to.

    One for each outcome of each legal move of each face, and one for a face without a move; 0 where
    the game is over. The die of ``states`` STATE [B] is 0 before and after.
    """
    for i in range(len(states)):
        s = states[i]
        counts[i] = 0
        if s["status"] != RUNNING:
            continue
        for die in range(1, 7):
            actions = legal_actions(s, r, die)
            if actions == 0:
                counts[i] += 1
            else:
                s["die"] = die
                counts[i] += children_of(s, r)
                s["die"] = 0


@wrapping
@fast
def position_hash(s, salt):
    """Return a uint64 of all that decides how a game before a throw may go on.

    The order of a seat's pieces does not matter; how the position came about neither.
    """
    code = mix(salt)
    for seat in range(4):
        pieces = np.uint64(0)
        for k in range(4):
            pieces += mix(np.uint64(int(s["pieces"][seat, k]) + 2) * np.uint64(0x9E3779B97F4A7C15))
        code = mix(code ^ pieces)
        marks = int(s["plays"][seat]) | int(s["places"][seat]) << 8 | int(s["out"][seat]) << 16
        marks |= int(s["unable"][seat]) << 24
        marks |= int(s["drunk"][seat, 0]) << 32 | int(s["drunk"][seat, 1]) << 48
        code = mix(code + np.uint64(marks))
    turn = int(s["seat"]) | int(s["throws"]) << 8 | int(s["face"]) << 16 | int(s["sixes"]) << 24
    turn |= int(s["status"]) << 32 | (int(s["winner"]) + 1) << 40
    code = mix(code ^ np.uint64(turn))
    return mix(code + np.uint64(int(s["turn"])))


@wrapping
@allocating
def merge_equal(states, owners, groups, firsts):
    """Number the different positions of every owner in the order in which they appear.

    Args:
        states: STATE [M], before a throw or finished.
        owners: int32 [M], which decision a position belongs to; only its own are merged.
        groups: int32 [M], overwritten with the number of each position's group.
        firsts: int64 [M], the first positions of the groups are written to its beginning.

    Returns:
        The number of groups.
    """
    size = 16
    while size < 2 * len(states):
        size *= 2
    slots = np.full(size, -1, np.int32)
    first_hash = np.empty(len(states), np.uint64)
    second_hash = np.empty(len(states), np.uint64)
    found = 0
    for i in range(len(states)):
        owner = np.uint64(owners[i])
        one = position_hash(states[i], owner * np.uint64(2))
        two = position_hash(states[i], owner * np.uint64(2) + np.uint64(1))
        slot = np.int64(one & np.uint64(size - 1))
        while slots[slot] >= 0:
            group = slots[slot]
            if first_hash[group] == one and second_hash[group] == two:
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = found
            first_hash[found] = one
            second_hash[found] = two
            firsts[found] = i
            found += 1
        groups[i] = slots[slot]
    return found


@fast
def own_chance(r, chances, seat):
    """Return the win chance of a seat in float64 [4], with its partner's (R17)."""
    if r[R_TWO_COLOURS] != 0:
        return chances[seat] + chances[(seat + 2) & 3]
    return chances[seat]


@fast
def charge(r, chances, seat, keep):
    """Multiply the odds of a seat (its team's, R17) by ``keep`` in chances float64 [4]."""
    total = 1.0 - own_chance(r, chances, seat) * (1.0 - keep)
    for other in range(4):
        team = other == seat or (r[R_TWO_COLOURS] != 0 and other == (seat + 2) & 3)
        chances[other] *= (keep if team else 1.0) / total


@fast
def charge_passes(positions, r, keep, chances):
    """Multiply the odds of who decides by ``keep`` after a pass, in chances float64 [B, A, 4]."""
    for i in range(len(positions)):
        charge(r, chances[i, r[R_PASS]], acting(positions[i]), keep)


@fast
def _grow(nodes, r, answers, work, children, rows, actions, chances):
    """Do what ``grow`` says; ``work`` STATE [1] is overwritten."""
    made = 0
    for i in range(len(nodes)):
        for die in range(1, 7):
            row = 6 * i + die - 1
            work[0] = nodes[i]
            if throw(work[0], r, die) == 0:
                children[made] = work[0]
                rows[made], actions[made], chances[made] = row, -1, 1.0
                made += 1
                continue
            end = expand_into(work[0], r, row, made, children, rows, actions, chances)
            if answers[row] < 0:
                made = end
                continue
            for k in range(made, end):
                if actions[k] == answers[row]:
                    if k != made:
                        children[made] = children[k]
                        actions[made], chances[made] = actions[k], chances[k]
                    made += 1
    return made


@allocating
def grow(nodes, r, answers, children, rows, actions, chances):
    """Throw every face in every position and play every legal move.

    Args:
        nodes: STATE [N], running, before a throw.
        answers: int16 [6 * N], the only action to play after each face, -1 for all legal ones.
        children: STATE [M], with room enough (see ``count_replies``), overwritten.
        rows: int32 [M], 6 * node + face - 1 of each child, ascending.
        actions: int16 [M], its action, ascending within a row; -1 for a face without a move.
        chances: float64 [M], the chance of this outcome of its action.

    Returns:
        The number of children.
    """
    work = nodes[:1].copy()
    return _grow(nodes, r, answers, work, children, rows, actions, chances)


@allocating
def back_up(nodes, r, rows, actions, chances, child, values, keep, out):
    """Add to ``out`` float64 [N, 4] the mean over the faces of the chances after the best move.

    Best is best for the seat that throws; of equal ones the first.

    Args:
        nodes, rows, actions, chances: what ``grow`` was given and wrote.
        child: int32 [M], the row of each child in ``values``.
        values: float64 [K, 4], win chances of every seat.
        keep: what the odds of a seat are multiplied by when it passes.
    """
    total, best = np.empty(4), np.empty(4)
    k, count = 0, len(rows)
    while k < count:
        row = rows[k]
        node = row // 6
        seat = acting(nodes[node])
        highest = -1.0
        while k < count and rows[k] == row:
            action = actions[k]
            total[:] = 0.0
            while k < count and rows[k] == row and actions[k] == action:
                for other in range(4):
                    total[other] += chances[k] * values[child[k], other]
                k += 1
            if keep != 1.0 and action == r[R_PASS]:
                charge(r, total, seat, keep)
            own = own_chance(r, total, seat)
            if own > highest + TIE:
                highest = own
                best[:] = total
        face = face_probability(r, int(nodes[node]["face"]), row % 6 + 1)
        for other in range(4):
            out[node, other] += face * best[other]


@fast
def best_actions(positions, r, legal, chances, out):
    """Write the best action for who decides to ``out`` int16 [B]; of equal ones the first.

    Args:
        legal: int64 [B], the legal actions as bits.
        chances: float64 [B, A, 4].
    """
    for i in range(len(positions)):
        best = -1.0
        rest = legal[i]
        out[i] = -1
        while rest != 0:
            action = lowest_bit(rest)
            rest &= rest - 1
            own = own_chance(r, chances[i, action], acting(positions[i]))
            if own > best + TIE:
                best = own
                out[i] = action
