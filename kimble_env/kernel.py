"""THE rules, compiled with numba: legal moves, moves, dice, battles, events, playouts.

A game is one record of ``STATE``; a batch is an array of records, one game an array of length one.
Every other room calls these functions and knows no rule itself.

* ``s`` is a record of ``STATE``, ``r`` is ``Rules.array`` (int64 [R_SIZE]).
* An *action* says where the unit stands: 0 enter, ``1 + p`` the unit on progress p, ``r[R_PASS]``
  pass. A set of actions is an int64 with bit a set for action a.
* Functions ending in ``_batch`` take arrays and are called from Python; the others take a record
  and are called from compiled code (or from Python under ``NUMBA_DISABLE_JIT=1``).
* The unchecked door is ``throw`` and ``play``; the checked door is ``state_faults`` and
  ``action_is_legal``, and the texts of :func:`describe_faults`.

The pieces of a seat are interchangeable: their order in ``pieces`` carries no meaning. Piece slots
beyond ``R_PIECES`` and the pieces of absent seats always hold -1.

Random numbers are counter-based: a draw is a hash of (game seed, stream, n), so no decision shifts
another seat's dice. Streams are numbered by purpose and seat, see ``THROW_STREAM`` and following.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kimble_env._jit import inlined, njit, wrapping
from kimble_env.rules import (
    NO_HOME,
    R_BATTERIES,
    R_BATTLES,
    R_EMPTY_MEANS_TRACK,
    R_EMPTY_THROWS,
    R_GOAL,
    R_HOLD_WIN,
    R_HOME,
    R_LEAVE,
    R_MAX_SIXES,
    R_MAX_TURNS,
    R_MEMBER_CHANCE,
    R_MEMBERS,
    R_OWN_COLLISION,
    R_PASS,
    R_PASS_ALLOWED,
    R_PIECES,
    R_PLACES,
    R_POPOMATIC,
    R_PROTECTED,
    R_RING,
    R_SECTORS,
    R_SIX_NEEDS_MOVE,
    R_STARTER,
    R_STRETCH_BLOCK,
    R_STRETCH_LAST,
    R_TWO_COLOURS,
    STARTER_HIGHEST_ROLL,
    STARTER_RANDOM,
)

STATE = np.dtype(
    [
        ("pieces", np.int8, (4, 4)),  # progress of each piece of each seat, -1 in home base
        ("plays", np.int8, (4,)),  # 1 if the seat takes part
        ("places", np.int8, (4,)),  # 0, or k for the k-th seat to finish
        ("out", np.int8, (4,)),  # 0, or k for the k-th seat to go out (R34)
        ("seat", np.int8),  # seat to act
        ("die", np.int8),  # 1..6 thrown and to be played, 0 before the throw
        ("throws", np.int8),  # throws left of this throwing turn, including this one (R23)
        ("face", np.int8),  # popomatic only: the face shown last, 0 for none (R10)
        ("sixes", np.int8),  # max_sixes only: sixes in a row resolved so far (R3)
        ("status", np.int8),  # RUNNING, WON or TRUNCATED
        ("winner", np.int8),  # seat, or -1
        ("event_count", np.int8),  # events of the last call
        ("events", np.int8, (2, 4)),  # per event: kind, seat, number of pieces, seat that caused it
        ("last_seat", np.int8),  # the last throw resolved or pending: who threw, -1 for none yet
        ("last_die", np.int8),  # its die
        ("last_action", np.int8),  # the action played for it, -1 if none (yet)
        ("last_battle", np.int8, (2,)),  # the dice of its battle (attacker, defender), or 0
        ("unable", np.int8, (4,)),  # members only: who of a team is out of the competition, as bits
        ("turn", np.int32),  # max_turns only: turns ended (R9)
        ("plies", np.int32),  # throws resolved so far, forced ones included
        ("seed", np.uint64),  # key of all random streams of this game
        ("throw_count", np.uint32, (4,)),  # per seat: throws made (stream counter)
        ("battle_count", np.uint32, (4,)),  # per attacking seat: battles fought (stream counter)
        ("choice_count", np.uint32, (4,)),  # per seat: random choices of built-in agents
        ("lost", np.uint32, (4,)),  # per seat: own pieces lost so far (R33)
        ("arrived", np.uint32, (4,)),  # per seat: pieces that came home so far (R33)
        ("taken", np.uint32, (4,)),  # per seat: pieces of others sent home so far
        ("drunk", np.uint16, (4, 2)),  # members only: cups that each member of a team has drunk
    ],
    align=True,
)
"""One game. Readable by field name: ``states["pieces"]`` is int8 [B, 4, 4]."""

RUNNING, WON, TRUNCATED = 0, 1, 2

# Kinds of events (R33).
LOST_CAPTURED, LOST_PROTECTED, LOST_OWN_COLLISION, LOST_BATTLE, ARRIVED = 1, 2, 3, 4, 5

ENTER = 0
OWN_ILLEGAL, OWN_SMALLER, OWN_MOVER, OWN_STANDER = 0, 1, 2, 3

# Streams of random numbers; those of seats are base + seat.
THROW_STREAM, BATTLE_STREAM, CHOICE_STREAM, STARTER_STREAM = 0, 4, 8, 12
LOT_STREAM, AGENT_STREAM, MEMBER_STREAM = 16, 20, 28  # 24 is of stepping.py

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLY_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLY_2 = np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31, _U33, _U40 = (np.uint64(n) for n in (27, 30, 31, 33, 40))
_U1 = np.uint64(1)
_TWO_31 = 1 << 31

# R10: the dome shows the same face again, the opposite face, or one of the other four.
SAME_FACE, OPPOSITE_FACE = 0.108, 0.239
OTHER_FACE = (1.0 - SAME_FACE - OPPOSITE_FACE) / 4.0


# ---------------------------------------------------------------------------------- random numbers


@wrapping
@inlined
def mix(z):
    """Scramble a uint64 (finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> _U30)) * _MULTIPLY_1
    z = (z ^ (z >> _U27)) * _MULTIPLY_2
    return z ^ (z >> _U31)


@wrapping
@inlined
def draw(seed, stream, n):
    """Return the n-th uint64 of a stream of the game with key ``seed``."""
    counter = (np.uint64(stream) << _U40) + np.uint64(n) + _U1
    return mix(seed + counter * _GAMMA)


@wrapping
@njit
def game_key(seed, index):
    """Return the key of game ``index`` of a batch started with the user's ``seed``."""
    return mix(mix(np.uint64(seed) + _GAMMA) ^ (np.uint64(index) * _MULTIPLY_1 + _GAMMA))


@inlined
def below(u, n):
    """Turn a uint64 into an integer 0..n-1 (n < 2^31; bias below 2^-28)."""
    return (np.int64(u >> _U33) * n) >> 31


@inlined
def next_face(r, last, u):
    """Return the face 1..6 that follows ``last`` (0: none yet) for the random number u (R10)."""
    if r[R_POPOMATIC] == 0 or last == 0:
        return 1 + below(u, 6)
    x = float(np.int64(u >> _U33)) / _TWO_31
    if x < SAME_FACE:
        return last
    if x < SAME_FACE + OPPOSITE_FACE:
        return 7 - last
    k = min(int((x - SAME_FACE - OPPOSITE_FACE) / OTHER_FACE), 3)
    for face in range(1, 7):
        if face != last and face != 7 - last:
            if k == 0:
                return face
            k -= 1
    return last


@njit
def face_probability(r, last, face):
    """Return the probability of ``face`` after ``last`` (0: none yet) (R10)."""
    if r[R_POPOMATIC] == 0 or last == 0:
        return 1.0 / 6.0
    if face == last:
        return SAME_FACE
    return OPPOSITE_FACE if face == 7 - last else OTHER_FACE


@inlined
def show_face(s, r, face):
    """Remember the face that the dome shows; only the popomatic die has a memory."""
    if r[R_POPOMATIC] != 0:
        s["face"] = face


# ------------------------------------------------------------------------------------ sets of bits


@wrapping
@inlined
def count_bits(bits):
    """Return the number of set bits of a non-negative int64."""
    x = bits - ((bits >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0x7F


@inlined
def lowest_bit(bits):
    """Return the index of the lowest set bit of a positive int64."""
    return count_bits((bits & -bits) - 1)


@inlined
def nth_bit(bits, n):
    """Return the index of the n-th lowest set bit (n from 0) of a positive int64."""
    while n > 0:
        bits &= bits - 1
        n -= 1
    return lowest_bit(bits)


# -------------------------------------------------------------------------------- where pieces are


@inlined
def seen_from(r, seat, progress, other):
    """Return the progress that ``other`` would have on the ring field (seat, progress)."""
    q = progress + r[4 * seat + other]
    return q - r[R_RING] if q >= r[R_RING] else q


@inlined
def acting(s):
    """Return the seat to act; the mask spares the compiler the check for a negative index."""
    return int(s["seat"]) & 3


@inlined
def is_playing(s, seat):
    """Tell whether a seat still takes turns: plays, has not finished, is not out (R5, R6, R34)."""
    return s["plays"][seat] != 0 and s["places"][seat] == 0 and s["out"][seat] == 0


@inlined
def unit_size(s, r, seat, progress):
    """Return how many pieces of a seat stand on a progress."""
    n = 0
    for k in range(4):
        n += s["pieces"][seat, k] == progress
    return n


@inlined
def owner_at(s, r, seat, progress):
    """Return the other seat that stands on the ring field (seat, progress), or -1."""
    if progress > r[R_LEAVE]:
        return -1  # R7
    for step in range(1, 4):
        other = (seat + step) & 3
        q = seen_from(r, seat, progress, other)
        here = False
        for k in range(4):
            here |= s["pieces"][other, k] == q
        if here and q <= r[R_LEAVE]:
            return other
    return -1


@inlined
def has_finished(s, r, seat):
    """Tell whether all pieces of a seat are home (R32), without home on the stretch (R16)."""
    needed = r[R_HOME] if r[R_HOME] != NO_HOME else r[R_LEAVE] + 1
    for k in range(r[R_PIECES]):
        if s["pieces"][seat, k] < needed:
            return False
    return True


@inlined
def throws_of_turn(s, r, seat):
    """Return the throws of a new throwing turn (R11, R23, R24)."""
    if r[R_EMPTY_THROWS] == 1:
        return 1
    first_idle = r[R_LEAVE] + 1 if r[R_EMPTY_MEANS_TRACK] != 0 else r[R_HOME]
    for k in range(r[R_PIECES]):
        p = s["pieces"][seat, k]
        if p >= 0 and p < first_idle:
            return 1
    return r[R_EMPTY_THROWS]


# ------------------------------------------------------------------------------------- legal moves


@njit
def protected_fields(s, r, seat):
    """Return the progresses of ``seat`` that hold protected pieces, as bits (R27)."""
    bits = 0
    for step in range(1, 4):
        other = (seat + step) & 3
        for k in range(4):
            if s["pieces"][other, k] == 0:
                bits |= 1 << seen_from(r, other, 0, seat)
    return bits & ((1 << (r[R_LEAVE] + 1)) - 1)


@njit
def partner_fields(s, r, seat):
    """Return the progresses of ``seat`` that hold pieces of its partner, as bits (R17)."""
    bits = 0
    partner = (seat + 2) & 3
    for k in range(r[R_PIECES]):
        q = int(s["pieces"][partner, k])
        if q >= 0 and q <= r[R_LEAVE]:
            t = seen_from(r, partner, q, seat)
            if t <= r[R_LEAVE]:
                bits |= 1 << t
    return bits


@njit
def stretch_blocked(r, own, die):
    """Return the sources whose way leads over an own piece on the stretch, as bits (R15)."""
    on_stretch = (own >> (r[R_LEAVE] + 1)) << (r[R_LEAVE] + 1)
    bits = 0
    for step in range(1, die):
        bits |= on_stretch >> step
    return bits


@inlined
def units_of(s, r, seat):
    """Return the progresses of a seat's units on track and stretch, as bits, and pieces waiting."""
    own, waiting = 0, 0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        if p < 0:
            waiting += 1
        elif p <= r[R_STRETCH_LAST]:
            own |= 1 << p
    return own, waiting


@inlined
def closed_and_bad(s, r, seat, own):
    """Return the targets that are illegal (R13, R17), and those that are not clean (R28), as bits.

    ``own`` is that of :func:`units_of`.
    """
    closed, bad = own, 0
    if r[R_OWN_COLLISION] != OWN_ILLEGAL:
        closed, bad = 0, own
    if r[R_PROTECTED] != 0:
        bad |= protected_fields(s, r, seat)
    if r[R_TWO_COLOURS] != 0:
        closed |= partner_fields(s, r, seat)
    return closed, bad


@inlined
def clean_and_bad_moves(r, own, waiting, closed, bad, die):
    """Return the clean and the bad moves of a seat for a die, as bits, passing left out (R28).

    All units move at once: ``own`` has a bit per progress where one stands, shifted left by the die
    it has a bit per target. R1, R2, R4, R13, R15, R25.
    """
    targets = (own << die) & ((1 << (r[R_GOAL] + 1)) - 1) & ~closed  # R4
    clean = (targets & ~bad) >> die
    unclean = (targets & bad) >> die
    if r[R_STRETCH_BLOCK] != 0:
        blocked = stretch_blocked(r, own, die)
        clean &= ~blocked
        unclean &= ~blocked
    clean, unclean = clean << 1, unclean << 1
    if die == 6 and waiting > 0:  # R2
        if own & 1 != 0 and r[R_BATTERIES] != 0:
            clean |= 1  # R25
        elif closed & 1 == 0:
            if own & 1 != 0:
                unclean |= 1
            else:
                clean |= 1
    return clean, unclean


@inlined
def legal_actions(s, r, die):
    """Return the legal actions of the seat to act for a die, as bits (0: none).

    R1, R2, R4, R13, R22, R28, R29.
    """
    seat = acting(s)
    own, waiting = units_of(s, r, seat)
    closed, bad = closed_and_bad(s, r, seat, own)
    clean, unclean = clean_and_bad_moves(r, own, waiting, closed, bad, die)
    moves = clean if clean != 0 else unclean  # R28, R29
    if r[R_PASS_ALLOWED] != 0:
        moves |= 1 << r[R_PASS]  # R12
    return moves


@njit
def battle_against(s, r, action):
    """Return the seat that an action would battle (R18), or -1."""
    if r[R_BATTLES] == 0 or action == r[R_PASS]:
        return -1
    target = 0 if action == ENTER else action - 1 + int(s["die"])
    return owner_at(s, r, acting(s), target)


@njit
def sector_bonus(r, seat, progress, owner):
    """Return 1 if the ring field (seat, progress) lies in the sector of ``owner`` (R18, R19)."""
    return 1 if seen_from(r, seat, progress, owner) < r[R_SECTORS + owner] else 0


@njit
def battle_margin(r, seat, progress, defender):
    """Return what the attacker gets more than the defender besides the dice (R18)."""
    bonus = sector_bonus(r, seat, progress, seat) - sector_bonus(r, seat, progress, defender)
    return 2 + bonus


@njit
def battle_odds(s, r, margin):
    """Return the chances that the attacker wins, ties or loses a battle (R18, R20).

    ``margin`` is that of ``battle_margin``. With the popomatic die the chances depend on the face
    that the dome shows (R10).
    """
    if r[R_POPOMATIC] == 0:
        ties, losses = 6 - margin, (5 - margin) * (6 - margin) // 2
        return (36 - ties - losses) / 36.0, ties / 36.0, losses / 36.0
    win, tie = 0.0, 0.0
    for attack in range(1, 7):
        attack_chance = face_probability(r, int(s["face"]), attack)
        for defence in range(1, 7):
            chance = attack_chance * face_probability(r, attack, defence)
            win += chance if attack + margin > defence else 0.0
            tie += chance if attack + margin == defence else 0.0
    return win, tie, 1.0 - win - tie


# ---------------------------------------------------------------------------- what a move would do


@inlined
def move_target(s, action):
    """Return the progress that the unit of an action other than pass would reach (R1, R2)."""
    return 0 if action == ENTER else action - 1 + int(s["die"])


@inlined
def own_unit_hit(s, r, action, target):
    """Return the size of the own unit that a move would run into, 0 for none (R28, R31)."""
    if target > r[R_STRETCH_LAST]:
        return 0  # home never collides
    if r[R_OWN_COLLISION] == OWN_ILLEGAL or (action == ENTER and r[R_BATTERIES] != 0):
        return 0
    return unit_size(s, r, acting(s), target)


@inlined
def mover_yields(r, mover, stander):
    """Tell whether, of two own units of these sizes, the moving one goes to home base (R31)."""
    rule = r[R_OWN_COLLISION]
    return rule == OWN_MOVER or (rule == OWN_SMALLER and mover < stander)


@inlined
def unit_lost(s, r, seat, source, target):
    """Return which own unit a bad move sends to home base, and its size (R30, R31).

    The unit is named by its progress: ``source`` (-1: the piece that would enter) or ``target``.
    """
    mover = 1 if source < 0 else unit_size(s, r, seat, source)
    stander = unit_size(s, r, seat, target)
    if stander > 0 and not mover_yields(r, mover, stander):
        return target, stander
    return source, mover


@njit
def would_finish(s, r, seat, source, target):
    """Tell whether moving a unit from source to target brings home the last piece (R16, R32)."""
    needed = r[R_HOME] if r[R_HOME] != NO_HOME else r[R_LEAVE] + 1
    if target < needed:
        return False
    for k in range(r[R_PIECES]):
        p = s["pieces"][seat, k]
        if p < needed and (p != source or source < 0):
            return False
    return True


@njit
def waits_for_start(s, r, seat, progress):
    """Tell whether another seat has pieces that could enter onto the ring field (seat, progress).

    Pieces of that seat standing there count too: a move onto the field sends them to home base.
    """
    if progress > r[R_LEAVE]:
        return False
    for step in range(1, 4):
        other = (seat + step) & 3
        if seen_from(r, seat, progress, other) == 0 and is_playing(s, other):
            for k in range(r[R_PIECES]):
                if s["pieces"][other, k] <= 0:
                    return True
    return False


@njit
def units_that_hit(s, r, seat, progress):
    """Return how many units of other seats could land on (seat, progress) with one throw.

    A battery is one unit, and so are the pieces that wait to enter on this very field (a unit that
    stands on it counts with them: a move onto it sends it there). Nobody hits a protected own
    start (R27), a stretch or home (R7); the partner (R17) and seats out of the game hit nobody.
    """
    if progress < 0 or progress > r[R_LEAVE] or (r[R_PROTECTED] != 0 and progress == 0):
        return 0
    n = 0
    for step in range(1, 4):
        other = (seat + step) & 3
        if not is_playing(s, other) or (step == 2 and r[R_TWO_COLOURS] != 0):
            continue
        t = seen_from(r, seat, progress, other)
        if t > r[R_LEAVE]:
            continue  # not on its route
        ways = 0  # bit d: with a die of d; bit 0: by entering
        for k in range(r[R_PIECES]):
            p = int(s["pieces"][other, k])
            if p >= 0 and t - p >= 1 and t - p <= 6:
                ways |= 1 << (t - p)
            elif t == 0 and p <= 0:
                ways |= 1
        n += count_bits(ways)
    return n


@inlined
def is_enemy(s, r, seat, other):
    """Tell whether ``other`` (not ``seat``) still plays, and against ``seat`` (R17)."""
    return is_playing(s, other) and (r[R_TWO_COLOURS] == 0 or (seat ^ other) != 2)


@inlined
def can_be_hit(r, progress):
    """Tell whether a unit on a progress can be hit: on the track (R7), not protected (R27)."""
    return progress >= (1 if r[R_PROTECTED] != 0 else 0) and progress <= r[R_LEAVE]


@inlined
def ways_to_hit(s, r, other, t):
    """Return how ``other`` could land on its own progress t (0..R_LEAVE), as bits.

    Bit d, 1 to 12: a unit stands d behind; bit 6 + t: a piece that waits enters with a 6 and then
    needs t (R2). A unit that stands there counts with those that wait: a hit sends it there.
    """
    ways = 0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][other, k])
        gap = t - p if p >= 0 and p != t else 6 + t
        if gap > 0 and gap <= 12:
            ways |= 1 << gap
    return ways


@inlined
def chance_of_six(s, r, seat):
    """Return the chance that a seat throws a 6 in its next throwing turn (R11, R23)."""
    miss = 1.0
    for _ in range(throws_of_turn(s, r, seat)):
        miss *= 5.0 / 6.0
    return 1.0 - miss


@inlined
def chance_of_ways(r, ways, six):
    """Return the chance of one of the ways of ``ways_to_hit``; ``six``: that the seat throws a 6.

    Faces count as equally likely. A 6 that does not hit gives one more throw (R3), with which any
    unit may be moved by that face, or by 6 and that face; further sixes are left out.
    """
    chance = count_bits(ways & 0b111110) / 6.0
    if ways >> 6 & 1 != 0:
        return chance + six
    if r[R_MAX_SIXES] != 1:
        chance += six * count_bits((ways | ways >> 6) & 0b1111110) / 6.0
    return chance


@njit
def chance_to_hit(s, r, other, t, seat):
    """Return the chance that ``other`` hits ``seat``'s unit on other's own progress t.

    In its next turn, if it always wants to. Exact for its throws before an extra one, roughly after
    (``chance_of_ways``); faces count as equally likely whatever the die (R10). In a battle the
    defender must lose (R20).
    """
    ways = ways_to_hit(s, r, other, t)
    if ways == 0:
        return 0.0
    chance = chance_of_ways(r, ways, chance_of_six(s, r, other))
    if r[R_BATTLES] != 0:
        _, _, repelled = battle_odds(s, r, battle_margin(r, other, t, seat))
        chance *= 1.0 - repelled
    return chance


@njit
def chance_of_hit(s, r, seat, progress):
    """Return the chance that a unit of ``seat`` on a progress is hit before its next turn.

    That of each other seat (see ``chance_to_hit``), as if they were independent.
    """
    if not can_be_hit(r, progress):
        return 0.0
    safe = 1.0
    for step in range(1, 4):
        other = (seat + step) & 3
        if is_enemy(s, r, seat, other):
            t = seen_from(r, seat, progress, other)
            if t <= r[R_LEAVE]:
                safe *= 1.0 - chance_to_hit(s, r, other, t, seat)
    return 1.0 - safe


@njit
def pieces_behind(s, r, seat, progress):
    """Return how many enemy pieces stand 1 to 6, and how many 7 to 12, fields behind on the ring.

    Plain distances: whether such a piece can reach the field (R7) does not matter. The third number
    is that of pieces in home base whose start lies 1 to 6 fields behind.
    """
    near, far, waiting = 0, 0, 0
    if progress < 0 or progress > r[R_LEAVE]:
        return near, far, waiting
    for step in range(1, 4):
        other = (seat + step) & 3
        if not is_enemy(s, r, seat, other):
            continue
        t = seen_from(r, seat, progress, other)
        for k in range(r[R_PIECES]):
            p = int(s["pieces"][other, k])
            if p >= 0 and p <= r[R_LEAVE] and p != t:
                gap = t - p if p < t else t - p + r[R_RING]
                near += gap <= 6
                far += gap > 6 and gap <= 12
            elif p < 0:
                waiting += t >= 1 and t <= 6
    return near, far, waiting


@njit
def targets_ahead(s, r, seat, progress):
    """Return what a unit on a progress could hit with one throw.

    Returns:
        The enemy units 1 to 6 ahead on its route that are not protected (R7, R27), and a sixth of
        the progress + 1 of their pieces, in a battle times the chance that they lose (R20).
    """
    units, fields = 0, 0.0
    if progress < 0 or progress > r[R_LEAVE]:
        return units, fields
    for step in range(1, 4):
        other = (seat + step) & 3
        if not is_enemy(s, r, seat, other):
            continue
        ahead = 0
        for k in range(r[R_PIECES]):
            q = int(s["pieces"][other, k])
            if not can_be_hit(r, q):
                continue
            target = seen_from(r, other, q, seat)
            if target > progress and target <= progress + 6 and target <= r[R_LEAVE]:
                ahead |= 1 << (target - progress)
                chance = 1.0
                if r[R_BATTLES] != 0:
                    chance -= battle_odds(s, r, battle_margin(r, seat, target, other))[2]
                fields += chance * (q + 1) / 6.0
        units += count_bits(ahead)
    return units, fields


@njit
def freed_by_capture(s, r, seat, source, other, q):
    """Return what the unit of ``other`` on its progress q could hit in one throw.

    Returns:
        The pieces of ``seat`` 1 to 6 ahead of it, without the unit on ``source``, and a sixth of
        their progress + 1.
    """
    pieces, fields = 0, 0.0
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        if p == source or not can_be_hit(r, p):
            continue
        t = seen_from(r, seat, p, other)
        if t > q and t <= q + 6 and t <= r[R_LEAVE]:
            pieces += 1
            fields += (p + 1) / 6.0
    return pieces, fields


@njit
def stretch_faces(s, r, seat, progress):
    """Return how many faces bring a unit from the track to a free field of the stretch, or home."""
    n = 0
    if progress >= 0 and progress <= r[R_LEAVE]:
        for target in range(max(progress, r[R_LEAVE]) + 1, min(progress + 6, r[R_GOAL]) + 1):
            n += target > r[R_STRETCH_LAST] or unit_size(s, r, seat, target) == 0
    return n


@inlined
def fields_made(s, r, seat):
    """Return the progress + 1 of all pieces of a seat, added up."""
    total = 0
    for k in range(r[R_PIECES]):
        total += int(s["pieces"][seat, k]) + 1
    return total


@njit
def leads_enemies(s, r, seat, other):
    """Tell whether no enemy of ``seat`` has come further than ``other`` (in ``fields_made``)."""
    for step in range(1, 4):
        third = (seat + step) & 3
        if is_enemy(s, r, seat, third) and fields_made(s, r, third) > fields_made(s, r, other):
            return False
    return True


@njit
def lead_share(s, r, seat):
    """Return how far a seat is ahead of the enemy that has come furthest, -1..1.

    In ``fields_made``, as a share of those that a seat makes in a whole game.
    """
    best = 0
    for step in range(1, 4):
        other = (seat + step) & 3
        if is_enemy(s, r, seat, other):
            best = max(best, fields_made(s, r, other))
    return (fields_made(s, r, seat) - best) / (r[R_PIECES] * (r[R_GOAL] + 1.0))


@inlined
def is_enemy_start(s, r, seat, progress):
    """Tell whether (seat, progress) is the start of an enemy."""
    found = False
    if progress <= r[R_LEAVE]:
        for step in range(1, 4):
            other = (seat + step) & 3
            found |= seen_from(r, seat, progress, other) == 0 and is_enemy(s, r, seat, other)
    return found


# ----------------------------------------------------------------------------------- making a move


@njit
def add_event(s, kind, seat, count, by):
    """Append one event of this call and count it (R33)."""
    n = int(s["event_count"])
    s["events"][n, 0] = kind
    s["events"][n, 1] = seat
    s["events"][n, 2] = count
    s["events"][n, 3] = by
    s["event_count"] = n + 1
    if kind == ARRIVED:
        s["arrived"][seat] += np.uint32(count)
    else:
        s["lost"][seat] += np.uint32(count)
        if by != seat:
            s["taken"][by] += np.uint32(count)


@inlined
def move_pieces(s, r, seat, source, target):
    """Move all pieces of a unit (from home base: one piece); return how many moved (R1, R25)."""
    if source < 0:
        for k in range(r[R_PIECES]):
            if s["pieces"][seat, k] < 0:
                s["pieces"][seat, k] = target
                break
        return 1
    n = 0
    for k in range(4):
        here = s["pieces"][seat, k] == source
        s["pieces"][seat, k] = target if here else s["pieces"][seat, k]
        n += here
    return n


@njit
def lose_unit(s, r, seat, progress, kind, by):
    """Send a unit to home base and report the loss (R26, R30, R31, R33)."""
    n = move_pieces(s, r, seat, progress, -1)
    add_event(s, kind, seat, n, by)


@njit
def fight(s, r, seat, source, target, defender, attack_die, defence_die):
    """Resolve a battle (R18, R20)."""
    edge = attack_die + battle_margin(r, seat, target, defender) - defence_die
    if edge <= 0:
        move_pieces(s, r, seat, source, -1)
        add_event(s, LOST_BATTLE, seat, 1, defender)
    else:
        move_pieces(s, r, seat, source, target)
    if edge >= 0:
        q = seen_from(r, seat, target, defender)
        lose_unit(s, r, defender, q, LOST_BATTLE, seat)


@njit
def collide(s, r, seat, source, target):
    """Move onto an own unit where that is not forbidden (R31)."""
    lost, _ = unit_lost(s, r, seat, source, target)
    if lost < 0:
        add_event(s, LOST_OWN_COLLISION, seat, 1, seat)
        return
    lose_unit(s, r, seat, lost, LOST_OWN_COLLISION, seat)
    if lost == target:
        move_pieces(s, r, seat, source, target)


@njit
def draw_battle_dice(s, r):
    """Throw the two dice of a battle from the attacker's own stream (R18, R21)."""
    seat = acting(s)
    n = int(s["battle_count"][seat])
    attack = next_face(r, int(s["face"]), draw(s["seed"], BATTLE_STREAM + seat, 2 * n))
    show_face(s, r, attack)
    defence = next_face(r, int(s["face"]), draw(s["seed"], BATTLE_STREAM + seat, 2 * n + 1))
    return attack, defence


@inlined
def make_move(s, r, action, attack_die, defence_die):
    """Move the unit of an action and do all that follows on the board.

    A battle takes the two dice given, or draws them where they are 0.
    """
    seat = acting(s)
    source = action - 1
    target = 0 if action == ENTER else source + int(s["die"])
    if target > r[R_STRETCH_LAST]:  # home: never collides (R28, R32)
        n = move_pieces(s, r, seat, source, target)
        add_event(s, ARRIVED, seat, n, seat)
        return
    if own_unit_hit(s, r, action, target) > 0:
        collide(s, r, seat, source, target)
        return
    other = owner_at(s, r, seat, target)
    if other < 0:
        move_pieces(s, r, seat, source, target)
        return
    q = seen_from(r, seat, target, other)
    if r[R_BATTLES] != 0:
        if attack_die == 0:
            attack_die, defence_die = draw_battle_dice(s, r)
        s["battle_count"][seat] += np.uint32(1)
        s["last_battle"][0] = attack_die
        s["last_battle"][1] = defence_die
        show_face(s, r, defence_die)
        fight(s, r, seat, source, target, other, attack_die, defence_die)
    elif r[R_PROTECTED] != 0 and q == 0:
        lose_unit(s, r, seat, source, LOST_PROTECTED, other)  # R30
    else:
        move_pieces(s, r, seat, source, target)
        lose_unit(s, r, other, q, LOST_CAPTURED, seat)  # R14, R26


# ------------------------------------------------------------------------------- turns and the end


@njit
def end_game(s, status, winner):
    """Stop the game; a finished game has no die and no throws left."""
    s["status"] = status
    s["winner"] = winner
    s["die"] = 0
    if status == WON:
        s["seat"] = winner
        s["throws"] = 0
        s["sixes"] = 0


@njit
def highest(marks):
    """Return how many seats have been numbered in ``places`` or ``out``."""
    n = 0
    for seat in range(4):
        n = max(n, int(marks[seat]))
    return n


@njit
def playing_seats(s):
    """Return the number of seats that still take turns and the last of them."""
    n, last = 0, -1
    for seat in range(4):
        if is_playing(s, seat):
            n += 1
            last = seat
    return n, last


@njit
def first_place(s):
    """Return the seat that finished first, or -1."""
    for seat in range(4):
        if s["places"][seat] == 1:
            return seat
    return -1


@njit
def close_if_won(s, r, seat):
    """After ``seat`` finished or went out: end the game if decided; tell whether (R6, R34)."""
    if s["places"][seat] != 0:
        if r[R_TWO_COLOURS] != 0:
            if s["places"][(seat + 2) & 3] != 0:  # R17
                end_game(s, WON, seat)
                return True
            return False
        if r[R_PLACES] == 0:
            end_game(s, WON, seat)
            return True
    n, last = playing_seats(s)
    if n > 1:
        return False
    first = first_place(s)
    end_game(s, WON, first if first >= 0 else last)
    return True


@inlined
def pass_turn(s, r):
    """Give the die to the next seat that is still playing (R5, R9)."""
    seat = acting(s)
    for step in range(1, 5):
        other = (seat + step) & 3
        if is_playing(s, other):
            break
    s["seat"] = other
    s["die"] = 0
    s["sixes"] = 0
    s["throws"] = throws_of_turn(s, r, other)
    if r[R_MAX_TURNS] != 0:
        s["turn"] += 1
        if s["turn"] >= r[R_MAX_TURNS]:
            end_game(s, TRUNCATED, -1)


@njit
def settle_finish(s, r, seat):
    """Give a seat with all its pieces home its place and end the game or its turn (R6, L6)."""
    s["places"][seat] = highest(s["places"]) + 1
    if not close_if_won(s, r, seat):
        pass_turn(s, r)  # R6: a seat that has just finished throws no more


@inlined
def end_throw(s, r, moved):
    """Decide who throws next, after a throw that moved something or not (R3, R23, R24)."""
    seat, die = acting(s), int(s["die"])
    s["plies"] += 1
    s["die"] = 0
    if die == 6:
        extra = moved or r[R_SIX_NEEDS_MOVE] == 0
        if r[R_MAX_SIXES] != 0:
            s["sixes"] += 1
            extra = extra and s["sixes"] < r[R_MAX_SIXES]
        if extra:
            s["throws"] = throws_of_turn(s, r, seat)
            return
    elif not moved and s["throws"] > 1:
        s["throws"] -= 1
        s["sixes"] = 0
        return
    pass_turn(s, r)


@inlined
def throw(s, r, die):
    """Throw the die (0: draw it) and return the legal actions as bits.

    If there is none the throw is over, the position has moved on, and 0 is returned.
    """
    seat = acting(s)
    s["event_count"] = 0
    if die == 0:
        u = draw(s["seed"], THROW_STREAM + seat, s["throw_count"][seat])
        die = next_face(r, int(s["face"]), u)
    s["throw_count"][seat] += np.uint32(1)
    show_face(s, r, die)
    s["die"] = die
    s["last_seat"] = seat
    s["last_die"] = die
    s["last_action"] = -1
    s["last_battle"][0] = 0
    s["last_battle"][1] = 0
    actions = legal_actions(s, r, die)
    if actions == 0:
        end_throw(s, r, False)
    return actions


@inlined
def play(s, r, action, attack_die, defence_die):
    """Play an action for the die thrown. Unchecked: the action must be legal.

    A battle takes the two dice given, or draws them where they are 0. With the option ``members``
    the teams then drink what they owe, and a team whose members both fail is out (R34).
    """
    play_on_board(s, r, action, attack_die, defence_die)
    if r[R_MEMBERS] != 0 and s["event_count"] != 0:
        drink_events(s, r)


@inlined
def play_on_board(s, r, action, attack_die, defence_die):
    """Play an action for the die thrown, without members and cups."""
    s["event_count"] = 0
    s["last_action"] = action
    if action == r[R_PASS]:
        end_throw(s, r, False)
        return
    seat = acting(s)
    target = 0 if action == ENTER else action - 1 + int(s["die"])
    make_move(s, r, action, attack_die, defence_die)
    if target > r[R_LEAVE] and has_finished(s, r, seat):
        s["plies"] += 1
        if r[R_HOLD_WIN] != 0:  # L6: no throw is left until the referee speaks
            s["die"] = 0
            s["throws"] = 0
        else:
            settle_finish(s, r, seat)
        return
    end_throw(s, r, True)


@njit
def remove_seat(s, r, seat):
    """Take a seat out of the game (R34). Unchecked: it must still be playing."""
    s["event_count"] = 0
    send_out(s, r, seat)


@njit
def send_out(s, r, seat):
    """Take a seat out of the game; the events of this call stay (R34)."""
    s["out"][seat] = highest(s["out"]) + 1
    for k in range(r[R_PIECES]):
        p = s["pieces"][seat, k]
        if p >= 0 and p < r[R_HOME]:
            s["pieces"][seat, k] = -1
    if close_if_won(s, r, seat):
        return
    if s["seat"] == seat:
        pass_turn(s, r)
    elif s["die"] != 0 and legal_actions(s, r, int(s["die"])) == 0:
        end_throw(s, r, False)


# -------------------------------------------------------------------------------- members and cups
#
# The option ``members``: what the referee's ledger (section 7) does to the board, without time. A
# member fails a cup with a chance that may grow with the cups he has drunk; he is then out of the
# competition and his partner, if there is one, goes on alone with what is left (L3). Nobody vomits.


@njit
def failure_chance(s, r, seat, member):
    """Return the chance, per mille, that a member fails his next cup."""
    first, more = r[R_MEMBER_CHANCE + 2 * member], r[R_MEMBER_CHANCE + 2 * member + 1]
    return min(first + more * int(s["drunk"][seat, member]), 1000)


@njit
def choose_drinker(s, r, seat):
    """Return the member still in who is less likely to fail (equal: the first), -1 if none is."""
    best = -1
    for member in range(2):
        if s["unable"][seat] >> member & 1 != 0:
            continue
        if best < 0 or failure_chance(s, r, seat, member) < failure_chance(s, r, seat, best):
            best = member
    return best


@njit
def cups_tried(s, seat):
    """Return how often a team has tried to empty a cup: the counter of its random stream."""
    failed = (s["unable"][seat] & 1) + (s["unable"][seat] >> 1 & 1)
    return int(s["drunk"][seat, 0]) + int(s["drunk"][seat, 1]) + failed


@njit
def empty_cup(s, r, seat, member):
    """Let a member try one cup; tell whether he has emptied it, else he is out (L3)."""
    u = draw(s["seed"], MEMBER_STREAM + seat, cups_tried(s, seat))
    if below(u, 1000) < failure_chance(s, r, seat, member):
        s["unable"][seat] |= 1 << member
        return False
    s["drunk"][seat, member] += np.uint16(1)
    return True


@njit
def drink(s, r, seat, cups):
    """Let a team drink a battery of cups; tell whether somebody could (L1-L3)."""
    member = choose_drinker(s, r, seat)
    while cups > 0:
        if member < 0:
            return False
        if empty_cup(s, r, seat, member):
            cups -= 1
        else:
            member = choose_drinker(s, r, seat)
    return True


@njit
def drink_events(s, r):
    """Let the teams drink what the last move has made them owe (R33); settle a held win (L6)."""
    for k in range(int(s["event_count"])):
        seat = int(s["events"][k, 1])
        running = s["status"] == RUNNING and is_playing(s, seat)
        if running and not drink(s, r, seat, int(s["events"][k, 2])):
            send_out(s, r, seat)
    if s["status"] == RUNNING and s["throws"] == 0:
        settle_finish(s, r, acting(s))


# --------------------------------------------------------------------------- on to the next choice

LOG_COLUMNS = 14
"""Columns of a log of throws (int8): seat, die, action (-1 none), battle dice (2, 0 none), number
of events, then kind, seat, count, by of two events."""


@njit
def log_throw(s, log, n):
    """Write the last throw to row n of a log int8 [rows, LOG_COLUMNS], if there is room."""
    if n >= len(log):
        return
    log[n, 0] = s["last_seat"]
    log[n, 1] = s["last_die"]
    log[n, 2] = s["last_action"]
    log[n, 3] = s["last_battle"][0]
    log[n, 4] = s["last_battle"][1]
    log[n, 5] = s["event_count"]
    for k in range(2):
        for c in range(4):
            log[n, 6 + 4 * k + c] = s["events"][k, c] if k < s["event_count"] else 0


@njit
def advance(s, r, ask_forced, log, n):
    """Throw on until a seat has a choice or the game ends.

    Forced throws (no legal move, or one legal action) are played through and logged, from row n of
    ``log`` on; a log of no rows keeps nothing. ``ask_forced`` makes one legal action a choice too.

    Returns:
        The legal actions as bits (0: the game has ended), and the number of rows of the log.
    """
    while s["status"] == RUNNING:
        die = int(s["die"])
        actions = legal_actions(s, r, die) if die != 0 else throw(s, r, 0)
        if actions != 0:
            if ask_forced or actions & (actions - 1) != 0:
                return actions, n
            play(s, r, lowest_bit(actions), 0, 0)
        log_throw(s, log, n)
        n += 1
    return 0, n


# --------------------------------------------------------------------------------- starting a game


@njit
def throw_for_start(s, r, in_lot, n, log, length):
    """One round of starter throws of the seats in ``in_lot`` (bits) (R8).

    Returns:
        The seats that threw highest, as bits, and the new length of the log.
    """
    best, winners = 0, 0
    for seat in range(4):
        if in_lot >> seat & 1 == 0:
            continue
        face = next_face(r, int(s["face"]), draw(s["seed"], STARTER_STREAM + seat, n))
        show_face(s, r, face)
        if face > best:
            best, winners = face, 0
        if face == best:
            winners |= 1 << seat
        if length < len(log):
            log[length, 0] = seat
            log[length, 1] = face
        length += 1
    return winners, length


@njit
def choose_starter(s, r, log):
    """Set the seat that starts (R8); write the dice to ``log`` int8 [n, 2]; return their number."""
    length, in_lot = 0, 0
    for seat in range(4):
        if s["plays"][seat] != 0:
            in_lot |= 1 << seat
    starter = int(r[R_STARTER])
    if starter == STARTER_HIGHEST_ROLL:
        if r[R_TWO_COLOURS] != 0:  # R17: the two players throw
            in_lot &= 3
        n = 0
        while in_lot & (in_lot - 1) != 0:
            in_lot, length = throw_for_start(s, r, in_lot, n, log, length)
            n += 1
        starter = lowest_bit(in_lot)
    elif starter == STARTER_RANDOM:
        starter = nth_bit(in_lot, below(draw(s["seed"], LOT_STREAM, 0), count_bits(in_lot)))
    s["seat"] = starter
    return length


@njit
def starter_by_dice(s, r, dice):
    """Return the seat that starter dice int8 [n, 2] (seat, face) let start, -1 if they cannot (R8).

    The dice must be those of whole rounds, clockwise, until one seat is left.
    """
    in_lot, i = 0, 0
    for seat in range(4):
        if s["plays"][seat] != 0:
            in_lot |= 1 << seat
    if r[R_TWO_COLOURS] != 0:
        in_lot &= 3
    while in_lot & (in_lot - 1) != 0:
        best, winners = 0, 0
        for seat in range(4):
            if in_lot >> seat & 1 == 0:
                continue
            if i >= len(dice) or dice[i, 0] != seat or dice[i, 1] < 1 or dice[i, 1] > 6:
                return -1
            face = int(dice[i, 1])
            if face > best:
                best, winners = face, 0
            if face == best:
                winners |= 1 << seat
            i += 1
        in_lot = winners
    return lowest_bit(in_lot) if i == len(dice) else -1


@njit
def new_game(s, r, plays, seed, log):
    """Set a record to the start of a new game; return the number of starter dice in ``log``."""
    for seat in range(4):
        s["plays"][seat] = plays[seat]
        s["places"][seat] = 0
        s["out"][seat] = 0
        s["throw_count"][seat] = 0
        s["battle_count"][seat] = 0
        s["choice_count"][seat] = 0
        s["lost"][seat] = 0
        s["arrived"][seat] = 0
        s["taken"][seat] = 0
        s["unable"][seat] = 0
        s["drunk"][seat, 0] = 0
        s["drunk"][seat, 1] = 0
        for k in range(4):
            s["pieces"][seat, k] = -1
    s["die"] = 0
    s["face"] = 0
    s["sixes"] = 0
    s["status"] = RUNNING
    s["winner"] = -1
    s["event_count"] = 0
    s["last_seat"] = -1
    s["last_die"] = 0
    s["last_action"] = -1
    s["last_battle"][0] = 0
    s["last_battle"][1] = 0
    s["turn"] = 0
    s["plies"] = 0
    s["seed"] = seed
    length = choose_starter(s, r, log)
    s["throws"] = throws_of_turn(s, r, acting(s))
    return length


# ------------------------------------------------------------------------------------ checked door

FAULTS = (
    "fewer than two seats play",
    "a piece stands outside the route",
    "a seat that does not play has pieces on the board",
    "two seats share a track field",
    "own pieces share a field, but these rules have no batteries",
    "a seat that is out has pieces in play",
    "the seat to act does not play, has finished or is out",
    "the die must be 1..6, or none before the throw",
    "the die has no legal move: that throw would be over at once",
    "throws left must be at least 1 and at most those of a new throwing turn",
    "a seat has finished, so the game is over",
    "at most one seat is still playing, so the game is over",
    "a finished game needs a winner, no die and no throws",
    "sixes, turn or face is out of range",
    "places do not match the seats that have finished",
    "the game has reached its last turn, so no die can be out",
    "two seats have finished, but the first of them ended the game",
    "the winner has not won",
    "with two colours no seat goes out alone",
)
"""What bit k of :func:`state_faults` means."""


@njit
def piece_faults(s, r, seat):
    """Return the faults of one seat's pieces, as bits of FAULTS."""
    faults = 0
    for k in range(4):
        p = int(s["pieces"][seat, k])
        if p < -1 or p > r[R_GOAL] or (k >= r[R_PIECES] and p != -1):
            return 1 << 1
        if p < 0:
            continue
        if s["plays"][seat] == 0:
            faults |= 1 << 2
        if p >= r[R_HOME]:
            continue
        if s["out"][seat] != 0:
            faults |= 1 << 5
        if owner_at(s, r, seat, p) >= 0:
            faults |= 1 << 3
        if r[R_BATTERIES] == 0 and unit_size(s, r, seat, p) > 1:
            faults |= 1 << 4
    return faults


@njit
def place_faults(s, r):
    """Return the faults of places and of seats that finished or went out, as bits of FAULTS."""
    faults, placed, gone = 0, 0, 0
    for seat in range(4):
        place, out = int(s["places"][seat]), int(s["out"][seat])
        if s["plays"][seat] == 0:
            if place != 0 or out != 0:
                faults |= 1 << 14
            continue
        done = out == 0 and has_finished(s, r, seat)  # R34: out is out, also with all pieces home
        placed += place != 0
        gone += out != 0
        if place < 0 or done != (place != 0):
            faults |= 1 << 14
        for other in range(seat):
            if place != 0 and place == s["places"][other]:
                faults |= 1 << 14
            if out != 0 and out == s["out"][other]:
                faults |= 1 << 14
    if highest(s["places"]) != placed or highest(s["out"]) != gone:
        faults |= 1 << 14
    if placed > 1 and r[R_PLACES] == 0 and r[R_TWO_COLOURS] == 0:
        faults |= 1 << 16
    if gone > 0 and r[R_TWO_COLOURS] != 0:
        faults |= 1 << 18
    return faults


@njit
def has_won(s, r, seat):
    """Tell whether the game is decided and ``seat`` is its winner (R6, R17, R34)."""
    if r[R_TWO_COLOURS] != 0:  # the colour that finished last is named
        return s["places"][seat] > s["places"][(seat + 2) & 3] and s["places"][(seat + 2) & 3] != 0
    first = first_place(s)
    if r[R_PLACES] == 0 and first >= 0:
        return seat == first
    n, last = playing_seats(s)
    return n < 2 and seat == (first if first >= 0 else last)


@njit
def end_faults(s, r):
    """Return the faults of who is to act, or has won, and of the die, as bits of FAULTS."""
    seat, die, throws, faults = int(s["seat"]), int(s["die"]), int(s["throws"]), 0
    if s["status"] == WON:
        winner = int(s["winner"])
        if winner < 0 or winner > 3 or seat != winner or die != 0 or throws != 0:
            return 1 << 12
        return 0 if s["plays"][winner] != 0 and has_won(s, r, winner) else 1 << 17
    for other in range(4):
        if s["places"][other] != 0 and has_won(s, r, other):
            faults |= 1 << 10
    if playing_seats(s)[0] < 2:
        faults |= 1 << 11
    if seat < 0 or seat > 3 or not is_playing(s, seat):
        return faults | 1 << 6
    if throws < 1 or throws > throws_of_turn(s, r, seat):
        faults |= 1 << 9
    if die < 0 or die > 6:
        faults |= 1 << 7
    elif die != 0 and s["status"] == TRUNCATED:
        faults |= 1 << 15
    return faults


@njit
def state_faults(s, r):
    """Return every fault of a position as bits of FAULTS; 0 for a position that can be."""
    faults, seats = 0, 0
    for seat in range(4):
        seats += s["plays"][seat] != 0
        faults |= piece_faults(s, r, seat)
    if seats < 2:
        faults |= 1 << 0
    if s["sixes"] < 0 or s["turn"] < 0 or s["face"] < 0 or s["face"] > 6:
        faults |= 1 << 13
    if r[R_MAX_SIXES] != 0 and s["sixes"] >= r[R_MAX_SIXES]:
        faults |= 1 << 13
    faults |= place_faults(s, r) | end_faults(s, r)
    if faults == 0 and s["die"] != 0 and legal_actions(s, r, int(s["die"])) == 0:
        faults |= 1 << 8
    return faults


def describe_faults(faults: int) -> list[str]:
    """Return the texts of the bits that :func:`state_faults` has set."""
    return [text for k, text in enumerate(FAULTS) if faults >> k & 1]


# ---------------------------------------------------------------------------------------- playouts


@njit
def random_action(s, r, actions, u):
    """Choose uniformly among the legal moves other than pass; pass if nothing else is legal."""
    moves = actions & ~(1 << r[R_PASS])
    if moves == 0:
        return r[R_PASS]
    if moves & (moves - 1) == 0:
        return lowest_bit(moves)
    return nth_bit(moves, below(u, count_bits(moves)))


@inlined
def next_choice(s):
    """Return the next uint64 of the choice stream of the seat to act."""
    seat = acting(s)
    n = s["choice_count"][seat]
    s["choice_count"][seat] += np.uint32(1)
    return draw(s["seed"], CHOICE_STREAM + seat, n)


@njit
def play_random(s, r, max_plies):
    """Play on with random moves until the end, or for ``max_plies`` throws."""
    last = s["plies"] + max_plies
    while s["status"] == RUNNING and s["plies"] < last:
        actions = throw(s, r, 0)
        if actions != 0:
            moves = actions & ~(1 << r[R_PASS])
            if moves == 0:
                action = r[R_PASS]
            elif moves & (moves - 1) == 0:
                action = lowest_bit(moves)
            else:
                action = nth_bit(moves, below(next_choice(s), count_bits(moves)))
            play(s, r, action, 0, 0)


# --------------------------------------------------------------- batches: the functions for Python


@njit
def new_game_batch(states, r, plays, seeds, log):
    """Start a new game in every record.

    Args:
        states: STATE [B], overwritten.
        plays: int8 [B, 4], 1 for each seat that takes part.
        seeds: uint64 [B], game keys (see ``game_key``).
        log: int8 [n, 2], the starter dice (seat, face) of the last game; returns their number.
    """
    length = 0
    for i in range(len(states)):
        length = new_game(states[i], r, plays[i], seeds[i], log)
    return length


@njit
def throw_batch(states, r, dice, actions):
    """Throw in every game: ``dice`` int8 [B] (0: draw), legal actions to ``actions`` int64 [B].

    0 in ``actions`` means that the throw had no legal move and is over.
    """
    for i in range(len(states)):
        actions[i] = throw(states[i], r, int(dice[i]))


@njit
def play_batch(states, r, actions, battle_dice):
    """Play ``actions`` int16 [B]; ``battle_dice`` int8 [B, 2] (0: draw)."""
    for i in range(len(states)):
        play(states[i], r, int(actions[i]), int(battle_dice[i, 0]), int(battle_dice[i, 1]))


@njit
def legal_batch(states, r, actions):
    """Write the legal actions for the dice thrown to ``actions`` int64 [B] (0 before a throw)."""
    for i in range(len(states)):
        die = int(states[i]["die"])
        actions[i] = legal_actions(states[i], r, die) if die != 0 else 0


@njit
def battle_batch(states, r, actions, defenders):
    """Write to ``defenders`` int8 [B] the seat that each action would battle, or -1."""
    for i in range(len(states)):
        defenders[i] = battle_against(states[i], r, int(actions[i]))


@njit
def remove_seat_batch(states, r, seats):
    """Take ``seats`` int8 [B] out of their games (R34); -1 leaves a game alone."""
    for i in range(len(states)):
        if seats[i] >= 0:
            remove_seat(states[i], r, int(seats[i]))


@njit
def settle_finish_batch(states, r, seats):
    """Give ``seats`` int8 [B], held back by R_HOLD_WIN, their places (L6); -1 leaves a game be.

    The events are still those of the move that brought the last piece home.
    """
    for i in range(len(states)):
        if seats[i] >= 0:
            settle_finish(states[i], r, int(seats[i]))


@njit
def faults_batch(states, r, faults):
    """Write the faults of every position to ``faults`` int64 [B] as bits of FAULTS."""
    for i in range(len(states)):
        faults[i] = state_faults(states[i], r)


@njit
def play_random_batch(states, r, max_plies):
    """Play every game on with random moves to its end, or for ``max_plies`` throws."""
    for i in range(len(states)):
        play_random(states[i], r, max_plies)


@njit
def throw_one(states, r, die):
    """Throw in the game states[0]: ``throw`` for callers in Python, where arrays are cheapest.

    Returns:
        The legal actions as bits, and in bits 60 to 62 the die.
    """
    actions = throw(states[0], r, die)
    return int(actions) | int(states[0]["last_die"]) << 60


@njit
def play_one(states, r, action, attack_die, defence_die):
    """Play in the game states[0]: ``play`` for callers in Python; return the status."""
    play(states[0], r, action, attack_die, defence_die)
    return int(states[0]["status"])


@njit
def legal_one(states, r):
    """Return the legal actions of states[0] for the die thrown, as bits (0 before a throw)."""
    die = int(states[0]["die"])
    return legal_actions(states[0], r, die) if die != 0 else 0


@njit
def try_cup(states, r, seat, member):
    """Let a member try one cup in the game states[0]; tell whether he has emptied it."""
    return empty_cup(states[0], r, seat, member)


@njit
def log_one(states, log, row):
    """Write the last throw of the game states[0] to a row of a log int8 [rows, LOG_COLUMNS]."""
    log_throw(states[0], log, row)


@wrapping
@njit
def game_keys(seed, first, keys):
    """Write the keys of games ``first``, ``first + 1``, ... of a batch to ``keys`` uint64 [B]."""
    for i in range(len(keys)):
        keys[i] = game_key(seed, first + i)


def empty_states(count: int) -> npt.NDArray[np.void]:
    """Return ``count`` zeroed records (STATE [count]); start games in them before use."""
    return np.zeros(count, STATE)


def _rows(states: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
    """Return the bytes of records as a view uint8 [B, size]; numpy copies records far slower."""
    return states.view(np.uint8).reshape(len(states), STATE.itemsize)


def take_states(
    states: npt.NDArray[np.void], indices: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.void]:
    """Return a copy of the records at ``indices`` (None: of all): what ``states[indices]`` is.

    Some seventy times as fast as that.
    """
    rows = _rows(np.ascontiguousarray(states))
    taken = rows.copy() if indices is None else rows[indices]
    return taken.reshape(-1).view(STATE)


def put_states(
    states: npt.NDArray[np.void],
    indices: npt.NDArray[np.int64],
    values: npt.NDArray[np.void],
) -> None:
    """Set the records at ``indices`` of a contiguous array: ``states[indices] = values``."""
    _rows(states)[indices] = _rows(np.ascontiguousarray(values))
