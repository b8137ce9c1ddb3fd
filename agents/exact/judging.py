"""Compiled passes over a layer for agents that play what an evaluator judges best.

Such an agent's opinion of a position before a throw does not depend on how it came about. So each
position is judged once, and its decisions are read off the table of these values, as perfect play
is read off a solved game: the arena of ``positions.Where`` holds the opinions in place of the
values of perfect play.
"""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast, inner
from agents.exact.kernels import STAY
from agents.exact.positions import STAY_CODE, choices, first_best, move_value, stay_value


@fast
def list_positions(
    states, seat, other, own_configs, other_configs, own, other_masks, first, last, cells
):
    """Write every position in which ``seat`` is about to throw; return their number.

    Args:
        states: STATE [*], templates in which nothing but the position is missing.
        own: Seat that throws, its configurations first..last-1. other_masks: ring fields of the
            other seat's configurations.
        cells: int64 [*], overwritten with the number of each cell, own * others + other.
    """
    n, across = 0, len(other_masks)
    for i in range(first, last):
        for j in range(across):
            if other_masks[j] & own.seen[i] != 0:
                continue
            s = states[n]
            for k in range(own_configs.shape[1]):
                s["pieces"][seat, k] = own_configs[i, k]
                s["pieces"][other, k] = other_configs[j, k]
            s["seat"] = seat
            s["throws"] = own.tries[i]  # R23
            cells[n] = i * across + j
            n += 1
    return n


@inner
def after_a_pass(value, keep):
    """Return a win chance whose odds are multiplied by ``keep``."""
    return keep * value / (1.0 - (1.0 - keep) * value)


@inner
def weigh_choices(where, a, b, side, i, j, die, keep, values, at, part):
    """Write what the seat thinks of each choice, STAY included; return their number, may it pass.

    A throw without a move that no pass follows leaves the odds as they are.
    """
    g, count, may_pass = choices(a, b, side, i, j, die)
    for n in range(count):
        values[n] = move_value(where, a, b, side, i, j, g, die, n, at, part)
    stay = stay_value(where, side, i, j, die)
    values[STAY] = after_a_pass(stay, keep) if may_pass else stay
    return count, may_pass


@fast
def look_ahead(where, a, b, side, keep, tie, out, first, last):
    """Write what one throw and the best answer to it make of a layer; return the positions.

    Args:
        where: its arena holds the opinions.
        side: the seat about to throw, 0 or 1.
        keep: what the odds of a seat are multiplied by when it passes.
        tie: opinions so close are equal, of which the first is taken.
        out: float [own configurations, the other's], overwritten for seat a's first..last-1.
    """
    at, part, values = np.zeros(3, np.int64), np.zeros(3), np.zeros(8)
    looked = 0
    for i in range(first, last):
        for j in range(len(b.masks)):
            if b.masks[j] & a.seen[i] != 0:
                continue
            looked += 1
            total = 0.0
            for die in range(6):
                count, may_pass = weigh_choices(
                    where, a, b, side, i, j, die, keep, values, at, part
                )
                total += values[first_best(values, count, may_pass, tie)]
            if side == 0:
                out[i, j] = total / 6.0
            else:
                out[j, i] = total / 6.0
    return looked


@fast
def choose(where, a, b, side, keep, tie, codes, first, last):
    """Write the choices of a seat to a policy; return the number of decisions among them.

    Args:
        where, side, keep, tie: as in ``look_ahead``.
        codes: uint8 [own configurations, 6, the other's], overwritten for seat a's first..last-1.
    """
    at, part, values = np.zeros(3, np.int64), np.zeros(3), np.zeros(8)
    decisions = 0
    for i in range(first, last):
        for j in range(len(b.masks)):
            free = b.masks[j] & a.seen[i] == 0
            for die in range(6):
                code = STAY_CODE
                if free:
                    count, may_pass = weigh_choices(
                        where, a, b, side, i, j, die, keep, values, at, part
                    )
                    code = 1 << first_best(values, count, may_pass, tie)
                    decisions += count + may_pass > 1
                if side == 0:
                    codes[i, die, j] = code
                else:
                    codes[j, die, i] = code
    return decisions
