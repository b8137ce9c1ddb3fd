"""What a value network sees: a position before a throw, from the seat about to throw.

Everything is counted clockwise from that seat (relative seat 0), and track fields from its start,
so that turning the board by one seat changes nothing. Absent seats are all zero. Layout of the
vector, for a board with R ring fields and S stretch fields:

* four blocks, one per relative seat::

      track      R  pieces on each ring field, as the seat about to throw numbers them
      stretch    S  pieces on each stretch field
      waiting    4  1 for "at least k pieces in home base", k = 1..4
      home       4  1 for "at least k pieces home", k = 1..4 (Norske)
      progress   1  sum of progress + 1 over all pieces, as a share of the whole way
      plays      1  1 if the seat still takes turns
      batteries  1  pieces that stand in batteries, of 4
      moves      1  faces of 6 with which some piece finds a free own field to go to
      arrivals   1  faces of 6 that bring a piece from the track to a free stretch field, or home
      last       1  the same where it would be the seat's last piece to arrive

* twelve blocks, one per ordered pair (attacker, victim)::

      faces      1  faces of 6 with which a piece of the attacker lands on one of the victim
      fire       1  sum over the victim's pieces of faces / 6 x (progress + 1) / lap
      battles    1  the same, weighted by the chance that the victim loses the battle (Kombat)
      far        1  as ``fire``, for pieces that stand 7 to 12 fields ahead of an attacker

* throws left to the seat: 1 if at least two, 1 if three (Norske).

A piece waiting to enter hits what stands on its start with a six. Where fields lie and how battles
go the kernel answers (``seen_from``, ``battle_margin``, ``battle_odds``); what is legal is not
asked, so ``faces`` counts moves that Norske's rule of clean moves (R28) may forbid at that moment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agents.net_compiling import fast, inlined
from kimble_env.board import Board
from kimble_env.kernel import (
    acting,
    battle_margin,
    battle_odds,
    count_bits,
    is_playing,
    seen_from,
)
from kimble_env.rules import (
    NO_HOME,
    R_BATTLES,
    R_GOAL,
    R_HOME,
    R_LEAVE,
    R_PIECES,
    R_PROTECTED,
    R_RING,
    R_STRETCH_LAST,
    R_TWO_COLOURS,
)

FEATURE_VERSION = 1
"""Changes whenever the vector of a position changes; models state the one they were made for."""

SEAT_EXTRA = 14  # entries of a seat's block besides track and stretch
PAIR_SIZE = 4
MOST_INPUTS = 192
"""No position has more entries that are not zero."""


def feature_count(board: Board) -> int:
    """Return the length F of the vector on this board (234 on kimble28)."""
    return 4 * (board.ring + board.stretch + SEAT_EXTRA) + 12 * PAIR_SIZE + 2


def feature_names(board: Board) -> list[str]:
    """Return a name for each entry, such as ``seat 1 track 6`` or ``seat 2 hits 0: fire``."""
    names: list[str] = []
    for seat in range(4):
        names += [f"seat {seat} track {k}" for k in range(board.ring)]
        names += [f"seat {seat} stretch {k}" for k in range(board.stretch)]
        names += [f"seat {seat} waiting {k}" for k in range(1, 5)]
        names += [f"seat {seat} home {k}" for k in range(1, 5)]
        words = ("progress", "plays", "batteries", "moves", "arrivals", "last")
        names += [f"seat {seat} {word}" for word in words]
    for attacker in range(4):
        for step in range(1, 4):
            pair = f"seat {attacker} hits {(attacker + step) & 3}"
            names += [f"{pair}: {word}" for word in ("faces", "fire", "battles", "far")]
    return [*names, "throws 2", "throws 3"]


@inlined
def _put(index, value, n, at, x):
    """Append entry ``at`` with value x (x = 0: nothing); return the new number of entries."""
    index[n] = at
    value[n] = x
    return n + (x != 0.0)


@inlined
def _own_fields(s, r, seat):
    """Return where a seat stands: bits of the progresses on track and stretch, pieces waiting."""
    own, waiting = 0, 0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        if p < 0:
            waiting += 1
        elif p <= r[R_STRETCH_LAST]:
            own |= 1 << p
    return own, waiting


@inlined
def _seat_block(s, r, seat, ego, first, own, waiting, index, value, n):
    """Append the block of one seat, which begins at entry ``first``."""
    stretch = first + r[R_RING]
    tail = stretch + r[R_STRETCH_LAST] - r[R_LEAVE]
    home, total, paired = 0, 0, 0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        total += p + 1
        if p < 0:
            continue
        if p > r[R_STRETCH_LAST]:
            home += 1
            continue
        size, lower = 0, 0
        for j in range(r[R_PIECES]):
            same = s["pieces"][seat, j] == p
            size += same
            lower += same and j < k
        paired += size > 1
        if lower > 0:
            continue  # a battery is one entry
        if p <= r[R_LEAVE]:
            n = _put(index, value, n, first + seen_from(r, seat, p, ego), float(size))
        else:
            n = _put(index, value, n, stretch + p - r[R_LEAVE] - 1, float(size))
    for k in range(waiting):
        n = _put(index, value, n, tail + k, 1.0)
    for k in range(home):
        n = _put(index, value, n, tail + 4 + k, 1.0)
    whole = float(r[R_PIECES] * (r[R_GOAL] + 1))
    n = _put(index, value, n, tail + 8, total / whole)
    n = _put(index, value, n, tail + 9, 1.0)
    n = _put(index, value, n, tail + 10, 0.25 * paired)
    return _ways(s, r, own, waiting, home, tail + 11, index, value, n)


@inlined
def _ways(s, r, own, waiting, home, at, index, value, n):
    """Append with how many faces a seat moves, brings a piece in, and brings the last one in."""
    track = own & ((1 << (r[R_LEAVE] + 1)) - 1)
    limit = (1 << (r[R_GOAL] + 1)) - 1
    free = limit & ~own
    has_home = r[R_HOME] != NO_HOME
    inside = limit & ~((1 << r[R_HOME]) - 1) if has_home else free & ~((1 << (r[R_LEAVE] + 1)) - 1)
    out = own if has_home else track  # fields of pieces that have not arrived
    moves, arrivals = 0, 0
    for die in range(1, 7):
        moves += ((own << die) & free) != 0 or (die == 6 and waiting > 0 and own & 1 == 0)
        arrivals += ((out << die) & inside) != 0
    n = _put(index, value, n, at, moves / 6.0)
    n = _put(index, value, n, at + 1, arrivals / 6.0)
    last = waiting == 0 and out & (out - 1) == 0
    return _put(index, value, n, at + 2, arrivals / 6.0 if last else 0.0)


@inlined
def _pair_block(s, r, attacker, victim, own, waiting, first, index, value, n):
    """Append how the pieces of one seat threaten those of another."""
    lap = float(r[R_LEAVE] + 1)
    track = own & ((1 << (r[R_LEAVE] + 1)) - 1)
    faces, fire, battles, far = 0, 0.0, 0.0, 0.0
    for k in range(r[R_PIECES]):
        q = int(s["pieces"][victim, k])
        if q < 0 or q > r[R_LEAVE] or (q == 0 and r[R_PROTECTED] != 0):
            continue
        t = seen_from(r, victim, q, attacker)
        if t > r[R_LEAVE]:
            continue  # not on the attacker's route
        # bit j: a piece stands 6 - j fields behind, bit j of ``behind``: 12 - j fields
        near = ((track << 6) >> t) & 63
        behind = ((track << 12) >> t) & 63
        if t == 0 and waiting > 0:
            near |= 1
        weight = (q + 1) / lap
        far += weight * count_bits(behind)
        if near == 0:
            continue
        faces |= near
        struck = count_bits(near) * weight
        fire += struck
        if r[R_BATTLES] != 0:
            margin = battle_margin(r, attacker, t, victim)
            battles += struck * (1.0 - battle_odds(s, r, margin)[2])
    n = _put(index, value, n, first, count_bits(faces) / 6.0)
    n = _put(index, value, n, first + 1, fire / 6.0)
    n = _put(index, value, n, first + 2, battles / 6.0)
    return _put(index, value, n, first + 3, far / 6.0)


@fast
def position_inputs(s, r, index, value):
    """Write the entries that are not zero of one position; return their number.

    Args:
        s: a record of STATE before a throw (unchecked).
        r: ``Rules.array``.
        index: int32 [MOST_INPUTS], overwritten with places in the vector.
        value: float32 [MOST_INPUTS], overwritten with what stands there.
    """
    ego, n = acting(s), 0
    block = r[R_RING] + r[R_STRETCH_LAST] - r[R_LEAVE] + SEAT_EXTRA
    for attacker in range(4):
        seat = (ego + attacker) & 3
        if not is_playing(s, seat):
            continue
        own, waiting = _own_fields(s, r, seat)
        n = _seat_block(s, r, seat, ego, attacker * block, own, waiting, index, value, n)
        for step in range(1, 4):
            victim = (seat + step) & 3
            if not is_playing(s, victim) or (step == 2 and r[R_TWO_COLOURS] != 0):
                continue
            first = 4 * block + (3 * attacker + step - 1) * PAIR_SIZE
            n = _pair_block(s, r, seat, victim, own, waiting, first, index, value, n)
    if s["throws"] > 1:
        n = _put(index, value, n, 4 * block + 12 * PAIR_SIZE, 1.0)
    if s["throws"] > 2:
        n = _put(index, value, n, 4 * block + 12 * PAIR_SIZE + 1, 1.0)
    return n


@fast
def net_features_batch(states, r, index, value, features):
    """Write the vectors of many positions.

    Args:
        states: STATE [B], before a throw (unchecked; what a die shows is not looked at).
        r: ``Rules.array``.
        index: int32 [MOST_INPUTS], scratch.
        value: float32 [MOST_INPUTS], scratch.
        features: float32 [B, F], overwritten.
    """
    for i in range(len(states)):
        n = position_inputs(states[i], r, index, value)
        features[i, :] = 0.0
        for k in range(n):
            features[i, index[k]] = value[k]


def scratch_inputs() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the two arrays that :func:`position_inputs` writes into."""
    return np.zeros(MOST_INPUTS, np.int32), np.zeros(MOST_INPUTS, np.float32)


def net_features(
    states: npt.NDArray[np.void], rules_array: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.float32]:
    """Return the vectors float32 [B, count] of positions STATE [B] before a throw (unchecked)."""
    features = np.empty((len(states), count), np.float32)
    net_features_batch(states, rules_array, *scratch_inputs(), features)
    return features
