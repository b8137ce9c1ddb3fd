"""Compiled look-ups in a table: the value of positions, and of every move."""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast
from agents.exact.probes import rank_of
from kimble_env.kernel import (
    acting,
    battle_against,
    battle_margin,
    battle_odds,
    legal_actions,
    move_target,
    play,
    throw,
    throws_of_turn,
)
from kimble_env.rules import R_PASS

WON = 1
CHUNK = 512


@fast
def other_seat(s, seat):
    """Return the only other seat that plays."""
    for step in range(1, 4):
        if s["plays"][(seat + step) & 3] != 0:
            return (seat + step) & 3
    return -1


@fast
def no_six(throws):
    """Return the chance that none of so many throws is a 6."""
    chance = 1.0
    for _ in range(throws):
        chance *= 5.0 / 6.0
    return chance


@fast
def value_before_throw(s, r, first, second, distance, scale, starts, sizes, slots, ranks, ring):
    """Return the win chance of the seat about to throw.

    Args:
        first, second: tables [cells] of the seat that sees the other at ``distance``, and of the
            other seat (the same table for seats opposite each other).
        scale: what one unit of a table is worth.
    """
    seat = acting(s)
    other = other_seat(s, seat)
    mask_own, rank_own = rank_of(s["pieces"][seat], ring, ranks)
    mask_other, rank_other = rank_of(s["pieces"][other], ring, ranks)
    x, y = slots[mask_own], slots[mask_other]
    first_moves = r[4 * seat + other] == distance
    at = starts[x, y] + rank_own * sizes[y] + rank_other
    value = (first[at] if first_moves else second[at]) * scale
    full = throws_of_turn(s, r, seat)
    if s["throws"] >= full:
        return value
    # R23: the table holds the first of ``full`` throws; solve for what a 6 is worth, and throw on
    at = starts[y, x] + rank_other * sizes[x] + rank_own
    stay = 1.0 - (second[at] if first_moves else first[at]) * scale
    miss = no_six(full)
    six = (value - miss * stay) / (1.0 - miss)
    miss = no_six(s["throws"])
    return (1.0 - miss) * six + miss * stay


@fast
def chance_of(s, r, seat, first, second, distance, scale, starts, sizes, slots, ranks, ring):
    """Return the win chance of ``seat`` before a throw of whoever is next, or after the end."""
    if s["status"] == WON:
        return 1.0 if s["winner"] == seat else 0.0
    v = value_before_throw(s, r, first, second, distance, scale, starts, sizes, slots, ranks, ring)
    return v if acting(s) == seat else 1.0 - v


@fast
def chance_after(
    s, r, action, work, first, second, distance, scale, starts, sizes, slots, ranks, ring
):
    """Return the win chance of the seat to act after an action, battles averaged (R18-R20).

    Args:
        work: STATE [1], overwritten.
    """
    seat = acting(s)
    defender = battle_against(s, r, action)
    if defender < 0:
        work[0] = s
        play(work[0], r, action, 1, 1)
        return chance_of(
            work[0], r, seat, first, second, distance, scale, starts, sizes, slots, ranks, ring
        )
    margin = battle_margin(r, seat, move_target(s, action), defender)
    odds = battle_odds(s, r, margin)
    total = 0.0
    for outcome in range(3):
        work[0] = s
        attack = 6 if outcome == 0 else 1
        defence = 1 if outcome == 0 else (1 + margin if outcome == 1 else 6)
        play(work[0], r, action, attack, defence)
        total += odds[outcome] * chance_of(
            work[0], r, seat, first, second, distance, scale, starts, sizes, slots, ranks, ring
        )
    return total


@fast
def cell_of(s, r, distance, starts, sizes, slots, ranks, ring):
    """Return where the value of a position before a throw is, as ``2 * cell + other table``.

    -1 where it is no single cell: a die is thrown, the game is over, part of a turn is gone.
    """
    seat = acting(s)
    if s["status"] != 0 or s["die"] != 0 or s["throws"] < throws_of_turn(s, r, seat):
        return -1
    other = other_seat(s, seat)
    mask_own, rank_own = rank_of(s["pieces"][seat], ring, ranks)
    mask_other, rank_other = rank_of(s["pieces"][other], ring, ranks)
    x, y = slots[mask_own], slots[mask_other]
    cell = starts[x, y] + rank_own * sizes[y] + rank_other
    return 2 * cell + (r[4 * seat + other] != distance)


@fast
def values_batch(
    states, r, first, second, distance, scale, starts, sizes, slots, ranks, ring, out
):
    """Write the win chance of the seat to act to ``out`` float [B].

    Before a throw that of the position; with a die thrown that of the best move. A table is larger
    than any cache, so that a look-up waits for memory: first the cells of many positions are found,
    then they are read one after the other, so that the waits overlap.
    """
    work = states[:1].copy()
    cells = np.empty(CHUNK, np.int64)
    for low in range(0, len(states), CHUNK):
        count = min(CHUNK, len(states) - low)
        for k in range(count):
            cells[k] = cell_of(
                states[low + k], r, distance, starts, sizes, slots, ranks, ring
            )
        for k in range(count):
            c = cells[k]
            if c >= 0:
                out[low + k] = (first[c >> 1] if c & 1 == 0 else second[c >> 1]) * scale
        for k in range(count):
            if cells[k] < 0:
                out[low + k] = value_of_one(
                    states[low + k], r, work, first, second, distance, scale, starts, sizes, slots,
                    ranks, ring,
                )


@fast
def value_of_one(
    s, r, work, first, second, distance, scale, starts, sizes, slots, ranks, ring
):
    """Return the win chance of the seat to act, whatever the position."""
    seat = acting(s)
    if s["status"] != 0 or s["die"] == 0:
        return chance_of(
            s, r, seat, first, second, distance, scale, starts, sizes, slots, ranks, ring
        )
    actions = legal_actions(s, r, int(s["die"]))
    best = -1.0
    for action in range(r[R_PASS] + 1):
        if actions >> action & 1 != 0:
            v = chance_after(
                s, r, action, work, first, second, distance, scale, starts, sizes, slots, ranks,
                ring,
            )
            best = max(best, v)
    return best


@fast
def moves_batch(states, r, first, second, distance, scale, starts, sizes, slots, ranks, ring, out):
    """Write the win chance of the seat to act after each action to ``out`` float [B, A].

    Illegal actions get -1.
    """
    work = states[:1].copy()
    for i in range(len(states)):
        actions = legal_actions(states[i], r, int(states[i]["die"]))
        for action in range(r[R_PASS] + 1):
            out[i, action] = -1.0
            if actions >> action & 1 != 0:
                out[i, action] = chance_after(
                    states[i], r, action, work, first, second, distance, scale, starts, sizes,
                    slots, ranks, ring,
                )


@fast
def backups_batch(
    states, r, first, second, distance, scale, starts, sizes, slots, ranks, ring, out
):
    """Write to ``out`` float64 [B] what the table says one throw later.

    The mean over the six faces of the best move's chance: equal to ``values_batch`` where the table
    is right. Everything is thrown and played by the engine itself.
    """
    thrown = states[:1].copy()
    work = states[:1].copy()
    for i in range(len(states)):
        seat = acting(states[i])
        total = 0.0
        for die in range(1, 7):
            thrown[0] = states[i]
            actions = throw(thrown[0], r, die)
            if actions == 0:
                total += chance_of(
                    thrown[0], r, seat, first, second, distance, scale, starts, sizes, slots, ranks,
                    ring,
                )
                continue
            best = -1.0
            for action in range(r[R_PASS] + 1):
                if actions >> action & 1 != 0:
                    v = chance_after(
                        thrown[0], r, action, work, first, second, distance, scale, starts, sizes,
                        slots, ranks, ring,
                    )
                    best = max(best, v)
            total += best
        out[i] = total / 6.0


@fast
def set_throws(states, r):
    """Set the throws left to those of a new throwing turn (R23)."""
    for i in range(len(states)):
        states[i]["throws"] = throws_of_turn(states[i], r, acting(states[i]))


@fast
def unscale(values, out):
    """Turn win chances into 16-bit numbers: ``out`` uint16 = 65535 times the value, rounded."""
    for i in range(len(values)):
        v = values[i] * 65535.0 + 0.5
        out[i] = np.uint16(min(max(v, 0.0), 65535.0))
