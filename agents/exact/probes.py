"""Move tables of one seat, learnt from the kernel by throwing and playing every move."""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast
from kimble_env.kernel import play, throw
from kimble_env.rules import R_PASS


@fast
def rank_of(pieces, ring, ranks):
    """Return (stretch mask, rank) of one seat's pieces, in any order.

    With a negative ``ring`` pieces come home at ``-ring`` (Norske): (pieces home, rank).
    """
    n, mask, rank = len(ranks) - 1, 0, 0
    end = ring if ring > 0 else -ring
    for a in range(n):
        p = int(pieces[a])
        if p >= end:
            mask += 1 << (p - end) if ring > 0 else 1
        elif p >= 0:
            k = 1  # which piece this is, counted from the hindmost
            for b in range(n):
                k += pieces[b] < p or (b < a and pieces[b] == p)
            rank += ranks[k, p + 1]
    return mask, rank


@fast
def set_up(s, own, seat, pieces):
    """Put ``pieces`` of ``seat`` on the board, everything else waiting, ``own`` about to throw."""
    for other in range(4):
        for k in range(4):
            s["pieces"][other, k] = -1
    for k in range(len(pieces)):
        s["pieces"][seat, k] = pieces[k]
    for k in range(4):
        s["places"][k] = 0
    s["status"] = 0
    s["winner"] = -1
    s["seat"] = own
    s["die"] = 0
    s["throws"] = 1


@fast
def same_pieces(s, seat, pieces):
    """Tell whether ``seat`` still has exactly ``pieces``."""
    for k in range(len(pieces)):
        if s["pieces"][seat, k] != pieces[k]:
            return False
    return True


@fast
def probe_landings(s, r, seat, other, ring, hits, outcomes):
    """Learn where ``seat`` hits ``other``, and with which chances, by playing every such move.

    Args:
        s: a record in which both seats play.
        hits: int8 [ring], set to the progress of ``other`` that a landing on t hits, or -1.
        outcomes: int64 [ring, 4], of the 36 battle dice: hit goes home alone, both, mover alone,
            none of these.
    """
    pieces = np.full(1, -1, np.int8)
    for t in range(ring):
        hits[t] = -1
        for q in range(ring):
            for dice in range(36):
                pieces[0] = t - 1
                set_up(s, seat, seat, pieces)
                s["pieces"][other, 0] = q
                throw(s, r, 6 if t == 0 else 1)
                play(s, r, t, 1 + dice // 6, 1 + dice % 6)
                hit, lost = s["pieces"][other, 0] == -1, s["pieces"][seat, 0] == -1
                if hit or lost:
                    hits[t] = q
                    outcomes[t, 0 if not lost else (1 if hit else 2)] += 1
                elif hits[t] == q:
                    outcomes[t, 3] += 1


@fast
def probe_moves(
    s, r, seat, other, ring, slots, ranks, hits, configs, targets, fields, losers, flags, codes
):
    """Learn all moves of one seat from configurations of one mask by throwing and playing them.

    Args:
        configs: int8 [N, pieces].
        targets: int32 [N, 6, pieces, 2], set to (slot of the mask, rank) after the move; slot -1:
            finished. Unused entries are -9.
        fields: int8 [N, 6, pieces], the progress of ``other`` that is hit where it stands, or -1.
        losers: int32 [N, 6, pieces], own rank after a lost battle on that field, or -1.
        codes: int8 [N, 6, pieces], the action code of each move, or -1.
        flags: int8 [N, 6], bit 0: no move at all, bit 1: pass is legal.

    Returns:
        The number of throws that did not behave as the solver assumes (extra throw after a 6 and
        only then, own move never depends on the other seat's waiting pieces): 0 or a refusal.
    """
    odd = 0
    for i in range(len(configs)):
        for die in range(1, 7):
            set_up(s, seat, seat, configs[i])
            actions = throw(s, r, die)
            next_seat = seat if die == 6 else other
            flags[i, die - 1] = 0
            n = 0
            if actions == 0:
                odd += s["seat"] != next_seat or s["throws"] != 1
                flags[i, die - 1] = 1
                continue
            for action in range(r[R_PASS] + 1):
                if actions >> action & 1 == 0:
                    continue
                set_up(s, seat, seat, configs[i])
                throw(s, r, die)
                play(s, r, action, 6, 1)
                if action == r[R_PASS]:
                    flags[i, die - 1] |= 2
                    odd += s["seat"] != next_seat or not same_pieces(s, seat, configs[i])
                    continue
                mask, rank = rank_of(s["pieces"][seat], ring, ranks)
                codes[i, die - 1, n] = action
                targets[i, die - 1, n, 0] = slots[mask]
                targets[i, die - 1, n, 1] = rank
                odd += (slots[mask] < 0) != (s["status"] != 0)
                odd += s["status"] == 0 and s["seat"] != next_seat
                target = 0 if action == 0 else action - 1 + die
                if target < ring and hits[target] >= 0:
                    fields[i, die - 1, n] = hits[target]
                    set_up(s, seat, seat, configs[i])
                    s["pieces"][other, 0] = hits[target]
                    throw(s, r, die)
                    play(s, r, action, 1, 6)
                    mask, rank = rank_of(s["pieces"][seat], ring, ranks)
                    losers[i, die - 1, n] = rank
                    odd += s["seat"] != next_seat
                n += 1
            if n == 0:
                flags[i, die - 1] |= 1
    return odd


@fast
def probe_losses(s, r, seat, other, ring, ranks, hits, configs, fields, minus):
    """Learn what ``other`` is left with when ``seat`` takes each of its ring pieces.

    Args:
        configs: int8 [N, pieces] of ``other``.
        fields: int8 [N, pieces], set to the ring progress of each piece that can be taken, or -1.
        minus: int32 [N, pieces], the rank after that piece is taken.
    """
    attacker = np.full(1, -1, np.int8)
    for i in range(len(configs)):
        for k in range(configs.shape[1]):
            fields[i, k] = -1
            minus[i, k] = -1
        for t in range(ring):
            q = hits[t]
            if q < 0:
                continue
            for k in range(configs.shape[1]):
                if configs[i, k] != q:
                    continue
                attacker[0] = t - 1
                set_up(s, seat, other, configs[i])
                s["pieces"][seat, 0] = attacker[0]
                throw(s, r, 6 if t == 0 else 1)
                play(s, r, t, 6, 1)
                _, rank = rank_of(s["pieces"][other], ring, ranks)
                fields[i, k] = q
                minus[i, k] = rank


