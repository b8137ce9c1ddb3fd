"""One step of the AEC environment as one compiled call: play, throw on, observe, mask.

What a call has to say besides observation and mask fits into integers, for boxing several values or
looking into arrays from Python costs more than all the rest. The *answer* of a call:

======  ==========================================================================================
bits    meaning
======  ==========================================================================================
0-1     the seat to act, the winner in a finished game
2-3     status: RUNNING, WON or TRUNCATED
4-31    throws resolved; if more than ``throws`` has room for, it is not complete
32-62   drinks of the seat's player since its last action: pieces lost and pieces come home
======  ==========================================================================================

A negative answer says that the action is illegal and that nothing has changed. A *throw*:

======  ==========================================================================================
bits    meaning
======  ==========================================================================================
0-1     seat
2-4     die
5-10    action + 1, 0 without a legal move
11-13   battle die of the attacker, 0 without a battle
14-16   battle die of the defender
17-26   first event: kind (3 bits, 0 for none), seat (2), pieces (3), seat that caused it (2)
27-36   second event
======  ==========================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kimble_env._jit import njit
from kimble_env.kernel import advance, legal_actions, log_throw, play
from kimble_env.observation import encode_observation, write_mask
from kimble_env.rules import R_PASS, R_TWO_COLOURS

ILLEGAL_ACTION = -1
STATUS_SHIFT, THROWS_SHIFT, DRINKS_SHIFT = 2, 4, 32
THROWS_LIMIT = (1 << (DRINKS_SHIFT - THROWS_SHIFT)) - 1


class Throw(NamedTuple):
    """One throw of the answer, unpacked."""

    seat: int
    die: int
    action: int
    battle: tuple[int, int] | None
    events: tuple[tuple[int, int, int, int], ...]
    """Kind, seat, pieces, seat that caused it."""


def unpack_throw(packed: int) -> Throw:
    """Return a packed throw as numbers."""
    attack, defence = packed >> 11 & 7, packed >> 14 & 7
    found = (packed >> shift & 1023 for shift in (17, 27))
    return Throw(
        packed & 3,
        packed >> 2 & 7,
        (packed >> 5 & 63) - 1,
        (attack, defence) if attack else None,
        tuple((e & 7, e >> 3 & 3, e >> 5 & 7, e >> 8 & 3) for e in found if e & 7),
    )


@njit
def player_drinks(s, r, seat):
    """Return the pieces that a seat's player has lost or brought home so far (R33, R17)."""
    drinks = int(s["lost"][seat]) + int(s["arrived"][seat])
    if r[R_TWO_COLOURS] != 0:
        partner = (seat + 2) & 3
        drinks += int(s["lost"][partner]) + int(s["arrived"][partner])
    return drinks


@njit
def player_of(r, seat):
    """Return the index of a seat's player in ``drunk``: the seat, or 0 and 1 with two colours."""
    return seat & 1 if r[R_TWO_COLOURS] != 0 else seat


@njit
def pack_event(log, n, first):
    """Return the event that begins in column ``first`` of row n of a log as 10 bits."""
    kind, seat = int(log[n, first]), int(log[n, first + 1])
    return kind | seat << 3 | int(log[n, first + 2]) << 5 | int(log[n, first + 3]) << 8


@njit
def pack_throw(log, n):
    """Return row n of a log as one integer, see the table of this module."""
    packed = int(log[n, 0]) | int(log[n, 1]) << 2 | (int(log[n, 2]) + 1) << 5
    packed |= int(log[n, 3]) << 11 | int(log[n, 4]) << 14
    if log[n, 5] > 0:
        packed |= pack_event(log, n, 6) << 17
    if log[n, 5] > 1:
        packed |= pack_event(log, n, 10) << 27
    return packed


@njit
def play_on(s, r, ask_forced, drunk, observation, mask, log, throws, n):
    """Throw on to the next choice, write what the seat to act sees, and return the answer."""
    actions, n = advance(s, r, ask_forced, log, n)
    for k in range(min(n, len(throws))):
        throws[k] = pack_throw(log, k)
    seat = int(s["seat"])
    encode_observation(s, r, seat, observation)
    write_mask(actions if actions != 0 else 1 << r[R_PASS], mask)
    drinks = player_drinks(s, r, seat) - drunk[player_of(r, seat)]
    answer = seat | int(s["status"]) << STATUS_SHIFT | drinks << DRINKS_SHIFT
    return answer | min(n, THROWS_LIMIT) << THROWS_SHIFT


@njit
def aec_start(states, r, ask_forced, drunk, observation, mask, log, throws):
    """Throw on from the start of a game, or from a position, to the first choice.

    Arguments and answer as of :func:`aec_step`; ``drunk`` is set to what has been drunk before.
    """
    states[1] = states[0]
    s = states[0]
    for seat in range(4):
        drunk[player_of(r, seat)] = player_drinks(s, r, seat)
    return play_on(s, r, ask_forced, drunk, observation, mask, log, throws, np.int64(0))


@njit
def aec_step(states, r, action, ask_forced, drunk, observation, mask, log, throws):
    """Play an action of the seat to act and throw on to the next choice.

    Args:
        states: STATE [2], the game, and space for the game as it was before the step.
        r: ``Rules.array``.
        action: int64, checked.
        ask_forced: ask also where one action is legal.
        drunk: int64 [4], per player its drinks up to its last action; updated.
        observation: int8 [size], written: what the seat to act then sees.
        mask: int8 [A], written: its legal actions; only pass in a finished game.
        log: int8 [rows, LOG_COLUMNS], work space.
        throws: int64 [rows], written: the throws resolved, packed.

    Returns:
        The answer, see the table of this module.
    """
    s = states[0]
    if action < 0 or action > r[R_PASS] or legal_actions(s, r, int(s["die"])) >> action & 1 == 0:
        return ILLEGAL_ACTION
    states[1] = states[0]
    seat = int(s["seat"])
    drunk[player_of(r, seat)] = player_drinks(s, r, seat)
    play(s, r, action, 0, 0)
    log_throw(s, log, np.int64(0))
    return play_on(s, r, ask_forced, drunk, observation, mask, log, throws, np.int64(1))


@njit
def aec_observe(states, r, observer, observation):
    """Write what seat ``observer`` sees of the game to ``observation`` int8 [size]."""
    encode_observation(states[0], r, observer, observation)
