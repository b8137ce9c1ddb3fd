"""Norske: move tables of one seat, learnt from the kernel, and the sweep for perfect play.

``positions.py`` says what differs from Kimble. Its passes could solve Norske too, ten times slower.
"""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast
from agents.exact.probes import rank_of, set_up
from kimble_env.kernel import play, throw, throws_of_turn
from kimble_env.rules import R_PASS


@fast
def probe_turns(s, r, seat, other, configs, tries):
    """Write the throws of a turn that starts from each configuration to int8 [N] (R23)."""
    for i in range(len(configs)):
        set_up(s, seat, seat, configs[i])
        tries[i] = throws_of_turn(s, r, seat)


@fast
def probe_unit_hits(s, r, seat, other, ring, hits):
    """Learn which progress of ``other`` lies on each of ``seat``'s fields: int8 [ring], -1 none.

    Found by playing: a lone piece moves there, and a battery of two stands in its way. Either the
    battery is sent home (a capture, R26) or the mover is (R30).
    """
    piece = np.full(1, -1, np.int8)
    for t in range(ring):
        hits[t] = -1
        for q in range(ring):
            piece[0] = t - 1
            set_up(s, seat, seat, piece)
            s["pieces"][other, 0] = q
            throw(s, r, 6 if t == 0 else 1)
            play(s, r, t, 0, 0)
            if s["pieces"][other, 0] != q or s["pieces"][seat, 0] != t:
                hits[t] = q


@fast
def probe_unit_moves(
    s, r, seat, other, ring, code_ring, slots, ranks, hits, configs, tries, targets, fields, codes
):
    """Learn all moves from configurations of one layer by throwing and playing them.

    Args:
        ring: ring fields of a route.
        code_ring: as ``rank_of`` wants it.
        targets: int32 [N, 2, 6, pieces, 2] (guard, face, move), set to (slot, rank); unused -9.
        fields: int8 [N, 2, 6, pieces], progress of ``other`` captured where it stands, or -1.
        codes: int8 [N, 2, 6, pieces], action codes.

    Returns:
        The number of throws that did not behave as the solver assumes.
    """
    odd = 0
    for i in range(len(configs)):
        for guard in range(2):
            for die in range(1, 7):
                set_up(s, seat, seat, configs[i])
                s["throws"] = 1
                if guard == 1:
                    s["pieces"][other, 0] = 0
                actions = throw(s, r, die)
                next_seat = seat if die == 6 else other
                if actions == 0:
                    odd += s["seat"] != next_seat
                    continue
                odd += tries[i] > 1 and die != 6
                n = 0
                for action in range(r[R_PASS]):
                    if actions >> action & 1 == 0:
                        continue
                    set_up(s, seat, seat, configs[i])
                    if guard == 1:
                        s["pieces"][other, 0] = 0
                    throw(s, r, die)
                    play(s, r, action, 0, 0)
                    layer, rank = rank_of(s["pieces"][seat], code_ring, ranks)
                    targets[i, guard, die - 1, n, 0] = slots[layer]
                    targets[i, guard, die - 1, n, 1] = rank
                    codes[i, guard, die - 1, n] = action
                    odd += (slots[layer] < 0) != (s["status"] != 0)
                    odd += s["status"] == 0 and s["seat"] != next_seat
                    target = 0 if action == 0 else action - 1 + die
                    if target < ring and hits[target] > 0:
                        fields[i, guard, die - 1, n] = hits[target]
                    n += 1
                odd += actions >> r[R_PASS] & 1
    return odd


@fast
def probe_unit_losses(s, r, seat, other, ring, code_ring, ranks, hits, configs, fields, minus):
    """Learn what ``other`` is left with when ``seat`` captures each of its units (R26).

    Args:
        configs: int8 [N, pieces] of ``other``.
        fields: int8 [N, pieces], ring progress of each unit once, or -1.
        minus: int32 [N, pieces], the rank after that unit is gone.
    """
    piece = np.full(1, -1, np.int8)
    for i in range(len(configs)):
        for t in range(ring):
            q = hits[t]
            for k in range(configs.shape[1]):
                if q <= 0 or configs[i, k] != q or (k > 0 and configs[i, k - 1] == q):
                    continue  # the own start is protected; a battery counts once
                piece[0] = t - 1
                set_up(s, seat, other, configs[i])
                s["pieces"][seat, 0] = piece[0]
                throw(s, r, 6 if t == 0 else 1)
                play(s, r, t, 0, 0)
                _, rank = rank_of(s["pieces"][other], code_ring, ranks)
                fields[i, k] = q
                minus[i, k] = rank


@fast
def unit_on(fields, field):
    """Return the index of the unit that stands on ``field``."""
    for n in range(len(fields)):
        if fields[n] == field:
            return n
    return -1


@fast
def close_turn(total, best6, stay, tries, moves6):
    """Return the value of a new throwing turn.

    Args:
        total: sum over faces 1..5 (``stay`` each where there is no move).
        best6: value after a 6 (of no use where ``moves6`` is 0: the same seat throws again).
        stay: value of giving the die away.
    """
    if tries > 1:
        value, miss = 0.0, 1.0
        for _ in range(tries):
            value += miss * best6 / 6.0
            miss *= 5.0 / 6.0
        return value + miss * stay
    if moves6 == 0:
        return total / 5.0
    return (total + best6) / 6.0


@fast
def sweep_units(
    arena, p_rows, q_rows, p_base, q_base, width, ni, nj,
    a_moves, a_counts, a_hits, a_tries, a_fields, a_minus, a_clash, a_guard,
    b_moves, b_counts, b_hits, b_tries, b_fields, b_minus, b_masks, b_guard, first, last,
):
    """One sweep over rows ``last - 1`` down to ``first``; returns the largest change of a value.

    Tables and rows as in ``kernels.py``; a_moves [ni, 2, 6, pieces] by the guard of b, and so on.
    """
    change = 0.0
    for i in range(last - 1, first - 1, -1):
        taken = 0
        for n in range(a_fields.shape[1]):
            if a_fields[i, n] >= 0:
                taken |= 1 << a_fields[i, n]
        row_p, row_q = p_rows[i], q_rows[i]
        for j in range(nj - 1, -1, -1):
            if b_masks[j] & a_clash[i] != 0:
                continue
            g = b_guard[j]
            stay = 1.0 - arena[row_q + j]
            total, best = 0.0, stay
            for die in range(6):
                count = a_counts[i, g, die]
                best = stay if count == 0 else -1.0
                for n in range(count):
                    m = a_moves[i, g, die, n]
                    q = a_hits[i, g, die, n]
                    column = j
                    if q >= 0 and (b_masks[j] >> q) & 1 != 0:
                        column = b_minus[j, unit_on(b_fields[j], q)]
                    if die == 5:
                        x = arena[p_rows[m] + column]
                    else:
                        x = 1.0 - arena[q_rows[m] + column]
                    best = max(best, x)
                if die < 5:
                    total += best
            new = close_turn(total, best, stay, a_tries[i], a_counts[i, g, 5])
            change = max(change, abs(new - arena[row_p + j]))
            arena[row_p + j] = new
            g = a_guard[i]
            stay = 1.0 - arena[row_p + j]
            total = 0.0
            for die in range(6):
                count = b_counts[j, g, die]
                best = stay if count == 0 else -1.0
                for n in range(count):
                    m = b_moves[j, g, die, n]
                    q = b_hits[j, g, die, n]
                    if q >= 0 and (taken >> q) & 1 != 0:
                        k = a_minus[i, unit_on(a_fields[i], q)]
                        x = arena[q_rows[k] + m] if die == 5 else 1.0 - arena[p_rows[k] + m]
                    elif die == 5:
                        x = arena[q_base[m] + i * width[m]]
                    else:
                        x = 1.0 - arena[p_base[m] + i * width[m]]
                    best = max(best, x)
                if die < 5:
                    total += best
            new = close_turn(total, best, stay, b_tries[j], b_counts[j, g, 5])
            change = max(change, abs(new - arena[row_q + j]))
            arena[row_q + j] = new
    return change
