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

That is version 1, the whole of it for Kimble and Kombat. Rules with batteries, protected starts or
own collisions (Norske; ``is_told_more``) have version 2, which goes on with

* four blocks, one per relative seat::

      track      R  pieces beyond the first of the unit on each ring field (R25)
      stretch    S  the same on each stretch field
      enter      1  chance of a 6 in the seat's next throwing turn, if pieces wait (R2, R23)
      joins      1  the same if own pieces stand on the own start: it would make a battery (R25)
      alone      1  1 if one unit is all that the seat has on track and stretch
      single     1  faces of 6 with one clean move: no choice (R22, R28)
      bad        1  faces of 6 with bad moves only: something is lost (R29)
      stuck      1  faces of 6 with no move at all
      lost       1  pieces that the least of these bad moves lose, a sixth of the sum over faces
      fall       1  the same in fields by which the seat falls back, of a lap (R30, R31)

* twelve blocks, one per ordered pair (attacker, victim)::

      risk       1  sum over the victim's pieces of the chance that the attacker, if it wants to,
                    lands on them in its next throwing turn, a second throw after a 6 included
      stake      1  the same times (progress + 1) / lap
      wall       1  units of the attacker 1 to 6 fields before the victim's protected start (R27),
                    of 6

The seat about to throw counts with the throws it has left, every seat as if it threw now. The least
loss of a face is the one of the fewest fields.

A piece waiting to enter hits what stands on its start with a six. Where fields lie, what a seat may
move, what a bad move loses and how battles go the kernel answers; what of that is legal at this
moment is asked for ``single`` to ``fall`` only. ``faces`` needs no such question: a move that
captures is clean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agents.net_compiling import fast, inlined
from kimble_env.kernel import (
    OWN_ILLEGAL,
    acting,
    battle_margin,
    battle_odds,
    chance_of_six,
    chance_of_ways,
    clean_and_bad_moves,
    closed_and_bad,
    count_bits,
    is_playing,
    lowest_bit,
    seen_from,
    unit_lost,
    unit_size,
    units_of,
)
from kimble_env.rules import (
    NO_HOME,
    R_BATTERIES,
    R_BATTLES,
    R_GOAL,
    R_HOME,
    R_LEAVE,
    R_OWN_COLLISION,
    R_PIECES,
    R_PROTECTED,
    R_RING,
    R_STRETCH_LAST,
    R_TWO_COLOURS,
    Rules,
)

SEAT_EXTRA = 14  # entries of a seat's block besides track and stretch
PAIR_SIZE = 4
UNIT_EXTRA = 8  # the same of version 2
UNIT_PAIR = 3
MOST_INPUTS = 192
"""No position has more entries that are not zero."""

SEAT_WORDS = ("progress", "plays", "batteries", "moves", "arrivals", "last")
UNIT_WORDS = ("enter", "joins", "alone", "single", "bad", "stuck", "lost", "fall")


def _is_told_more(r):
    """Tell from ``Rules.array`` whether units can grow, are protected, or lost by own moves."""
    grow = r[R_BATTERIES] != 0
    return grow or r[R_PROTECTED] != 0 or r[R_OWN_COLLISION] != OWN_ILLEGAL


is_told_more = inlined(_is_told_more)


def feature_version(rules: Rules) -> int:
    """Return the version of the inputs for these rules: 1, or 2 where units matter (Norske).

    It changes whenever the vector of a position changes; models state the one they were made for.
    """
    return 2 if _is_told_more(rules.array) else 1


def feature_count(rules: Rules) -> int:
    """Return the length F of the vector (on kimble28 234, in Norske 430)."""
    fields = rules.board.ring + rules.board.stretch
    count = 4 * (fields + SEAT_EXTRA) + 12 * PAIR_SIZE + 2
    if feature_version(rules) > 1:
        count += 4 * (fields + UNIT_EXTRA) + 12 * UNIT_PAIR
    return count


def feature_names(rules: Rules) -> list[str]:
    """Return a name for each entry, such as ``seat 1 track 6`` or ``seat 2 hits 0: fire``."""
    board, names = rules.board, []
    for seat in range(4):
        names += [f"seat {seat} track {k}" for k in range(board.ring)]
        names += [f"seat {seat} stretch {k}" for k in range(board.stretch)]
        names += [f"seat {seat} waiting {k}" for k in range(1, 5)]
        names += [f"seat {seat} home {k}" for k in range(1, 5)]
        names += [f"seat {seat} {word}" for word in SEAT_WORDS]
    names += _pair_names(("faces", "fire", "battles", "far"))
    names += ["throws 2", "throws 3"]
    if feature_version(rules) > 1:
        for seat in range(4):
            names += [f"seat {seat} battery on track {k}" for k in range(board.ring)]
            names += [f"seat {seat} battery on stretch {k}" for k in range(board.stretch)]
            names += [f"seat {seat} {word}" for word in UNIT_WORDS]
        names += _pair_names(("risk", "stake", "wall"))
    return names


def _pair_names(words: tuple[str, ...]) -> list[str]:
    return [
        f"seat {attacker} hits {(attacker + step) & 3}: {word}"
        for attacker in range(4)
        for step in range(1, 4)
        for word in words
    ]


@inlined
def _put(index, value, n, at, x):
    """Append entry ``at`` with value x (x = 0: nothing); return the new number of entries."""
    index[n] = at
    value[n] = x
    return n + (x != 0.0)


@inlined
def _seat_block(s, r, seat, ego, first, second, own, waiting, index, value, n):
    """Append the block of one seat, which begins at entry ``first``.

    ``second`` is where its block of version 2 begins: batteries are told there too; -1: none.
    """
    tail = first + r[R_RING] + r[R_STRETCH_LAST] - r[R_LEAVE]
    home, total, paired = 0, 0, 0
    for k in range(4):  # -1 where there is no piece
        p = int(s["pieces"][seat, k])
        total += p + 1
        home += p > r[R_STRETCH_LAST]
        size, counted = 1, (p >= 0) & (p <= r[R_STRETCH_LAST])
        if r[R_BATTERIES] != 0:
            size, lower = _pieces_with(s, r, seat, k)
            paired += counted & (size > 1)
            counted &= lower == 0  # a battery is one entry
        field = seen_from(r, seat, p, ego)
        if p > r[R_LEAVE]:
            field = r[R_RING] + p - r[R_LEAVE] - 1
        n = _put(index, value, n, first + field, float(size) if counted else 0.0)
        if second >= 0:
            n = _put(index, value, n, second + field, size - 1.0 if counted else 0.0)
    for k in range(4):
        n = _put(index, value, n, tail + k, 1.0 if waiting > k else 0.0)
    if r[R_HOME] != NO_HOME:
        for k in range(4):
            n = _put(index, value, n, tail + 4 + k, 1.0 if home > k else 0.0)
    whole = float(r[R_PIECES] * (r[R_GOAL] + 1))
    n = _put(index, value, n, tail + 8, total / whole)
    n = _put(index, value, n, tail + 9, 1.0)
    n = _put(index, value, n, tail + 10, 0.25 * paired)
    return _ways(s, r, own, waiting, home, tail + 11, index, value, n)


@inlined
def _pieces_with(s, r, seat, k):
    """Return how many pieces of a seat stand where its piece k does, and how many before it."""
    p, size, lower = int(s["pieces"][seat, k]), 0, 0
    for j in range(4):
        same = s["pieces"][seat, j] == p
        size += same
        lower += same & (j < k)
    return size, lower


@inlined
def _ways(s, r, own, waiting, home, at, index, value, n):
    """Append with how many faces a seat moves, brings a piece in, and brings the last one in."""
    track = own & ((1 << (r[R_LEAVE] + 1)) - 1)
    limit = (1 << (r[R_GOAL] + 1)) - 1
    free = limit & ~own
    has_home = r[R_HOME] != NO_HOME
    inside = limit & ~((1 << r[R_HOME]) - 1) if has_home else free & ~((1 << (r[R_LEAVE] + 1)) - 1)
    out = own if has_home else track  # fields of pieces that have not arrived
    moves, arrivals, enters = 0, 0, (waiting > 0) & (own & 1 == 0)
    for die in range(1, 7):
        moves += (((own << die) & free) != 0) | ((die == 6) & enters)
        arrivals += ((out << die) & inside) != 0
    n = _put(index, value, n, at, moves / 6.0)
    n = _put(index, value, n, at + 1, arrivals / 6.0)
    last = (waiting == 0) & (out & (out - 1) == 0)
    return _put(index, value, n, at + 2, arrivals / 6.0 if last else 0.0)


@inlined
def _from_leave(s, r, seat):
    """Return the pieces on the track as bits: bit k stands k fields before the last one (R_LEAVE).

    Shifted right by R_LEAVE - t it has bit d where a piece stands d fields before progress t.
    """
    bits = 0
    for k in range(4):
        p = int(s["pieces"][seat, k])
        on_track = (p >= 0) & (p <= r[R_LEAVE])
        bits |= int(on_track) << ((r[R_LEAVE] - p) & 63)
    return bits


@inlined
def _pair_block(s, r, attacker, victim, track, waiting, six, first, second, index, value, n):
    """Append how the pieces of one seat threaten those of another.

    ``track`` is the attacker's ``_from_leave``, ``second`` where the block of version 2 begins, or
    -1.
    """
    lap = float(r[R_LEAVE] + 1)
    faces, fire, battles, far, risk, stake, wall = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for k in range(4):
        q = int(s["pieces"][victim, k])
        t = seen_from(r, victim, q, attacker)
        # on the track, and on the attacker's route
        met = (q >= 0) & (q <= r[R_LEAVE]) & (t <= r[R_LEAVE])
        behind = track >> ((r[R_LEAVE] - t) & 63)  # bit d: a piece stands d fields behind
        ways = behind & 0b1111111111110 if met else 0
        if q == 0 and r[R_PROTECTED] != 0:
            wall = count_bits(ways & 0b1111110)
            continue
        weight = (q + 1) / lap
        far += weight * count_bits(ways >> 7)
        # with the 6 that enters first; not for ``far``
        ways |= int(met & (waiting > 0) & (t <= 6)) << ((6 + t) & 63)
        near = ways & 0b1111110
        faces |= near
        struck = count_bits(near) * weight
        fire += struck
        if r[R_BATTLES] != 0 and near != 0:
            margin = battle_margin(r, attacker, t, victim)
            battles += struck * (1.0 - battle_odds(s, r, margin)[2])
        if second >= 0 and ways != 0:
            chance = chance_of_ways(r, ways, six)
            risk += chance
            stake += chance * weight
    n = _put(index, value, n, first, count_bits(faces) / 6.0)
    n = _put(index, value, n, first + 1, fire / 6.0)
    n = _put(index, value, n, first + 2, battles / 6.0)
    n = _put(index, value, n, first + 3, far / 6.0)
    if second < 0:
        return n
    n = _put(index, value, n, second, risk)
    n = _put(index, value, n, second + 1, stake)
    return _put(index, value, n, second + 2, wall / 6.0)


@inlined
def _unit_block(s, r, seat, own, waiting, six, at, index, value, n):
    """Append what version 2 says of one seat besides batteries, from entry ``at`` on."""
    enters = six if waiting > 0 else 0.0
    n = _put(index, value, n, at, enters)
    n = _put(index, value, n, at + 1, enters if own & 1 != 0 else 0.0)
    n = _put(index, value, n, at + 2, 1.0 if own != 0 and own & (own - 1) == 0 else 0.0)
    return _choices(s, r, seat, own, waiting, at + 3, index, value, n)


@inlined
def _choices(s, r, seat, own, waiting, at, index, value, n):
    """Append what the six faces leave a seat to choose from, and what they cost it."""
    closed, bad = closed_and_bad(s, r, seat, own)
    single, forced, stuck, lost, fall = 0, 0, 0, 0, 0
    for die in range(1, 7):
        clean, unclean = clean_and_bad_moves(r, own, waiting, closed, bad, die)
        if clean != 0:
            single += clean & (clean - 1) == 0
        elif unclean != 0:
            forced += 1
            pieces, fields = _least_loss(s, r, seat, unclean, die)
            lost += pieces
            fall += fields
        else:
            stuck += 1
    n = _put(index, value, n, at, single / 6.0)
    n = _put(index, value, n, at + 1, forced / 6.0)
    n = _put(index, value, n, at + 2, stuck / 6.0)
    n = _put(index, value, n, at + 3, lost / 6.0)
    return _put(index, value, n, at + 4, fall / (6.0 * (r[R_LEAVE] + 1)))


@inlined
def _least_loss(s, r, seat, moves, die):
    """Return what the cheapest of some bad moves loses: pieces, and fields that the seat falls."""
    pieces, fields = 0, 1 << 20
    while moves != 0:
        source = lowest_bit(moves) - 1
        moves &= moves - 1
        target = 0 if source < 0 else source + die
        progress, size = unit_lost(s, r, seat, source, target)
        fall = size * (progress + 1)
        if progress == target:  # the mover gets there
            fall -= (target - source) * (1 if source < 0 else unit_size(s, r, seat, source))
        if fall < fields:
            pieces, fields = size, fall
    return pieces, fields


@inlined
def _six(s, r, seat):
    """Return the chance of a 6 in a seat's next throwing turn, in the rest of the one going on."""
    if seat != acting(s):
        return chance_of_six(s, r, seat)
    miss = 1.0
    for _ in range(s["throws"]):
        miss *= 5.0 / 6.0
    return 1.0 - miss


@fast
def position_inputs(s, r, index, value):
    """Write the entries that are not zero of one position; return their number.

    Args:
        s: a record of STATE before a throw (unchecked).
        r: ``Rules.array``.
        index: int32 [MOST_INPUTS], overwritten with places in the vector.
        value: float32 [MOST_INPUTS], overwritten with what stands there.
    """
    ego, n, more = acting(s), 0, is_told_more(r)
    fields = r[R_RING] + r[R_STRETCH_LAST] - r[R_LEAVE]
    block, unit_block = fields + SEAT_EXTRA, fields + UNIT_EXTRA
    end = 4 * block + 12 * PAIR_SIZE
    for attacker in range(4):
        seat = (ego + attacker) & 3
        if not is_playing(s, seat):
            continue
        own, waiting = units_of(s, r, seat)
        track = _from_leave(s, r, seat)
        six, second = 0.0, -1
        if more:
            six, second = _six(s, r, seat), end + 2 + attacker * unit_block
        n = _seat_block(
            s, r, seat, ego, attacker * block, second, own, waiting, index, value, n
        )  # fmt: skip
        if more:
            n = _unit_block(s, r, seat, own, waiting, six, second + fields, index, value, n)
        for step in range(1, 4):
            victim = (seat + step) & 3
            if not is_playing(s, victim) or (step == 2 and r[R_TWO_COLOURS] != 0):
                continue
            pair = 3 * attacker + step - 1
            if more:
                second = end + 2 + 4 * unit_block + pair * UNIT_PAIR
            n = _pair_block(
                s, r, seat, victim, track, waiting, six, 4 * block + pair * PAIR_SIZE, second,
                index, value, n,
            )  # fmt: skip
    if s["throws"] > 1:
        n = _put(index, value, n, end, 1.0)
    if s["throws"] > 2:
        n = _put(index, value, n, end + 1, 1.0)
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
