"""A position as numbers, per seat, and the linear-softmax value over them: compiled.

Each seat of a position has a vector of ``POSITION_FEATURES``; a value function is one vector of
weights; the score of a seat is their product and the chances are the softmax of the scores of the
seats still playing. ``linear_value.py`` has the fitted weights.

Nothing here knows a rule: where pieces may be hit is asked of the kernel.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from agents.compiling import compiler
from kimble_env.kernel import (
    WON,
    acting,
    chance_of_hit,
    chance_to_hit,
    first_place,
    is_playing,
    pieces_behind,
    seen_from,
    targets_ahead,
    unit_size,
    waits_for_start,
)
from kimble_env.rules import R_LEAVE, R_PIECES

_compiled = compiler("position", __file__)
_allocating = partial(_compiled, _nrt=True)

SLOTS = 33
"""Progresses that have a feature of their own: 0..32, the route of the board ``kimble28``."""

STRETCH = 4  # fields of its stretch

_BLOCKS: tuple[tuple[str, int, str], ...] = (
    ("on", SLOTS, "pieces on progress 0..32"),
    ("waiting", 4, "1 if at least 1, 2, 3, 4 pieces wait in home base"),
    ("safe", 3, "1 if at least 2, 3, 4 pieces are on the stretch or home"),
    ("stretch", 16, "1 for the set of stretch fields that are held"),
    ("last", 29, "if one piece only is not on the stretch or home: 1 for its progress -1..27"),
    ("turn", 3, "1 if the seat throws now, next, after that"),
    ("throws", 1, "throws left after this one, for the seat to throw"),
    ("place", 3, "1 for the second, third, fourth seat that plays"),
    ("stake", 4, "each piece on the track: chance that it is hit before its next turn, times "
                 "(progress + 1) / 28: not to throw; to throw; in the next turn by the seat to "
                 "throw; and enemy pieces 7 to 12 behind / 6 times the same"),
    ("hit", 4, "the same without the progress"),
    ("prey", 4, "enemy units ahead of units on the track within a throw: not to throw; to throw; "
                "and a sixth of what they would lose / 28: not to throw; to throw"),
    ("gain", 2, "for the seat to throw: stake and hits of the others by it"),
    ("start", 3, "1 if one piece stands on the own start and others wait; 1 if more stand there; "
                 "pieces on starts where others wait"),
    ("battery", 2, "pieces beyond the first of each unit on the track, and times progress / 28"),
    ("pips", 4, "own pips / 100; squared; times those of the others; times the most of them"),
)
POSITION_FEATURES: tuple[str, ...] = tuple(
    f"{name}_{k}" if size > 1 else name for name, size, _ in _BLOCKS for k in range(size)
)
"""Names of the features of a seat, in the order of the vectors."""

COUNT = len(POSITION_FEATURES)
VERSION = 2
"""Raised when the meaning of a feature changes: old weights are then refused."""

FEATURE_TEXTS: dict[str, str] = {name: text for name, _, text in _BLOCKS}
"""What each group of features says."""

_AT = {name: sum(size for _, size, _ in _BLOCKS[:k]) for k, (name, _, _) in enumerate(_BLOCKS)}
A_WAITING, A_SAFE, A_STRETCH, A_LAST = (_AT[n] for n in ("waiting", "safe", "stretch", "last"))
A_TURN, A_THROWS, A_PLACE = _AT["turn"], _AT["throws"], _AT["place"]
A_STAKE, A_HIT, A_PREY, A_GAIN = _AT["stake"], _AT["hit"], _AT["prey"], _AT["gain"]
A_START, A_BATTERY, A_PIPS = _AT["start"], _AT["battery"], _AT["pips"]


@_compiled
def _count_pieces(s, r, seat, out):
    """Write what the seat's own pieces say to ``out`` float64 [COUNT]; return the pips."""
    pieces, leave = r[R_PIECES], r[R_LEAVE]
    waiting, safe, mask, pips, behind = 0, 0, 0, 0, -1
    for k in range(pieces):
        p = int(s["pieces"][seat, k])
        pips += p + 1
        if p < 0:
            waiting += 1
            continue
        out[min(p, SLOTS - 1)] += 1.0
        if p > leave:
            safe += 1
            if p - leave <= STRETCH:
                mask |= 1 << (p - leave - 1)
        else:
            behind = p
    for k in range(min(waiting, 4)):
        out[A_WAITING + k] = 1.0
    for k in range(2, min(safe, 4) + 1):
        out[A_SAFE + k - 2] = 1.0
    out[A_STRETCH + mask] = 1.0
    if safe == pieces - 1:
        out[A_LAST + 1 + behind] = 1.0
    at_start = unit_size(s, r, seat, 0)
    out[A_START] = 1.0 if at_start == 1 and waiting > 0 else 0.0
    out[A_START + 1] = 1.0 if at_start > 1 else 0.0
    return pips


@_compiled
def _count_units(s, r, seat, thrower, out):
    """Write what the seat's pieces on the track risk and threaten to ``out`` float64 [COUNT].

    Each piece of a unit counts for itself.

    Returns:
        The stake and the hits of the seat by the seat to throw (0 for that seat itself).
    """
    turn = 1 if seat == thrower else 0
    stake_now, hits_now = 0.0, 0.0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        if p < 0 or p > r[R_LEAVE]:
            continue
        size, worth = unit_size(s, r, seat, p), (p + 1) / 28.0
        out[A_BATTERY] += (size - 1) / size
        out[A_BATTERY + 1] += (size - 1) / size * worth
        if waits_for_start(s, r, seat, p):
            out[A_START + 2] += 1.0
        units, fields = targets_ahead(s, r, seat, p)
        out[A_PREY + turn] += units / size
        out[A_PREY + 2 + turn] += fields / size / 28.0
        hit = chance_of_hit(s, r, seat, p)
        out[A_STAKE + turn] += hit * worth
        out[A_HIT + turn] += hit
        far = pieces_behind(s, r, seat, p)[1] / 6.0
        out[A_STAKE + 3] += far * worth
        out[A_HIT + 3] += far
        if turn == 0 and hit > 0.0:
            t = seen_from(r, seat, p, thrower)
            if t <= r[R_LEAVE]:
                now = chance_to_hit(s, r, thrower, t, seat)
                stake_now += now * worth
                hits_now += now
    out[A_STAKE + 2], out[A_HIT + 2] = stake_now, hits_now
    return stake_now, hits_now


@_compiled
def position_features(s, r, out):
    """Write the features of every seat that still plays to ``out`` float64 [4, COUNT], else 0.

    Args:
        s: a record of STATE before a throw.
        r: ``Rules.array``; a board with the route of ``kimble28``.
    """
    for seat in range(4):
        for k in range(COUNT):
            out[seat, k] = 0.0
    thrower = acting(s)
    place, total, stake, hits = 0, 0.0, 0.0, 0.0
    for seat in range(4):
        if s["plays"][seat] == 0:
            continue
        if place > 0:
            out[seat, A_PLACE + place - 1] = 1.0
        place += 1
        if not is_playing(s, seat):
            continue
        pips = _count_pieces(s, r, seat, out[seat]) / 100.0
        out[seat, A_PIPS] = pips
        total += pips
        more, more_hits = _count_units(s, r, seat, thrower, out[seat])
        stake += more
        hits += more_hits
    out[thrower, A_GAIN], out[thrower, A_GAIN + 1] = stake, hits
    out[thrower, A_THROWS] = s["throws"] - 1.0
    distance = 0
    for step in range(4):
        seat = (thrower + step) & 3
        if not is_playing(s, seat):
            continue
        if distance < 3:
            out[seat, A_TURN + distance] = 1.0
        distance += 1
        pips, most = out[seat, A_PIPS], 0.0
        for other in range(4):
            if other != seat:
                most = max(most, out[other, A_PIPS])
        out[seat, A_PIPS + 1] = pips * pips
        out[seat, A_PIPS + 2] = pips * (total - pips)
        out[seat, A_PIPS + 3] = pips * most


@_compiled
def settle(s, values):
    """Write the values of a decided position to ``values`` float64 [4]; tell whether it is one."""
    for seat in range(4):
        values[seat] = 0.0
    if s["status"] == WON:
        values[s["winner"]] = 1.0
        return True
    first = first_place(s)
    if first >= 0:
        values[first] = 1.0
        return True
    if s["status"] == 0:
        return False
    n = 0
    for seat in range(4):
        n += s["plays"][seat] != 0
    for seat in range(4):
        values[seat] = 1.0 / n if s["plays"][seat] != 0 else 0.0
    return True


@_compiled
def linear_value(s, r, weights, work, values):
    """Write the chance of each seat to ``values`` float64 [4].

    Args:
        s: a record of STATE before a throw or finished.
        r: ``Rules.array``.
        weights: float64 [COUNT].
        work: float64 [4, COUNT], overwritten.
        values: float64 [4], overwritten.
    """
    if settle(s, values):
        return
    position_features(s, r, work)
    highest = -np.inf
    for seat in range(4):
        if is_playing(s, seat):
            score = 0.0
            for k in range(COUNT):
                score += weights[k] * work[seat, k]
            values[seat] = score
            highest = max(highest, score)
    total = 0.0
    for seat in range(4):
        values[seat] = np.exp(values[seat] - highest) if is_playing(s, seat) else 0.0
        total += values[seat]
    for seat in range(4):
        values[seat] /= total


@_allocating
def linear_value_batch(states, r, weights, values):
    """Write the chances of every position to ``values`` float64 [B, 4]."""
    work = np.empty((4, COUNT))
    for i in range(len(states)):
        linear_value(states[i], r, weights, work, values[i])


@_allocating
def position_features_batch(states, r, out):
    """Write the features of every position to ``out`` float32 [B, 4, COUNT]."""
    work = np.empty((4, COUNT))
    for i in range(len(states)):
        position_features(states[i], r, work)
        for seat in range(4):
            for k in range(COUNT):
                out[i, seat, k] = work[seat, k]
