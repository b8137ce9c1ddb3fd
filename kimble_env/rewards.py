"""What a game pays: rewards at its end, and potential-based shaping, for all environments.

*At the end* the winner gets +1 and each other player -1/(n - 1), n the number of players (R6).
With ``play_for_places`` the reward falls linearly from +1 for the first to -1 for the last. A game
cut off by ``max_turns`` pays 0 to all (R9). With ``two_colours`` both colours of a player get what
the player gets (R17).

*Shaping* is off by default. The potential of a seat is how far its player's pieces have come, less
the mean of the other players:

    progress = mean over the player's pieces of (p + 1) / (goal + 1)        0 .. 1
    potential = progress of the player - mean progress of the others       -1 .. +1

Whenever a player is to decide again, or the game has ended, the player gets

    scale * (gamma * potential now - potential when the player last decided)

where the potential of a won or lost game is 0 and that of a game cut off is what it is. ``gamma``
must be the discount that the learner uses; then shaping changes no optimal policy (Ng, Harada and
Russell 1999). A player that has not decided yet gets no shaping.

*Cups* can have a price, off by default: a player that is to decide again, or whose game has ended,
gets ``-cup_cost`` for every piece lost and every piece come home since it last decided (R33): what
Norske Kimble makes one drink. Unlike shaping this changes what is best.

*An illegal action* under ``illegal="lose"`` ends the game: the player gets the reward of a loser
(of the last place, with ``play_for_places``), everybody else 0, for nobody has won.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kimble_env._jit import njit
from kimble_env.errors import KimbleError
from kimble_env.kernel import WON
from kimble_env.rules import R_GOAL, R_PIECES, R_PLACES, R_TWO_COLOURS, Rules

# ------------------------------------------------------------------------------------- the options

ILLEGAL_CHOICES = ("raise", "lose", "noop")
"""What an environment does with an illegal action: raise IllegalMoveError and change nothing, end
the game as a loss of the one who acted, or change nothing and ask again."""


@dataclass(frozen=True)
class Shaping:
    """Potential-based shaping: ``scale`` (0: off) and the learner's discount ``gamma``.

    Raises:
        KimbleError: scale is not a finite number, or gamma does not lie in 0..1.
    """

    scale: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "gamma"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.integer | np.floating)
            if not number or isinstance(value, bool) or not math.isfinite(value):
                raise KimbleError(f"shaping {name} must be a finite number, got {value!r}")
        if not 0.0 <= self.gamma <= 1.0:
            raise KimbleError(f"shaping gamma must lie in 0..1, got {self.gamma}")


def read_shaping(shaping: float | Shaping | None) -> Shaping:
    """Return a Shaping from None (off), a scale, or a Shaping.

    Raises:
        KimbleError: anything else.
    """
    if shaping is None:
        return Shaping()
    return shaping if isinstance(shaping, Shaping) else Shaping(scale=shaping)


def read_cup_cost(cost: float) -> float:
    """Return the price of a cup as a float.

    Raises:
        KimbleError: it is not a finite number.
    """
    number = isinstance(cost, int | float | np.integer | np.floating)
    if not number or isinstance(cost, bool) or not math.isfinite(cost):
        raise KimbleError(f"cup_cost must be a finite number, got {cost!r}")
    return float(cost)


def check_illegal(illegal: str) -> str:
    """Return ``illegal`` if it is one of ILLEGAL_CHOICES.

    Raises:
        KimbleError: it is not.
    """
    if illegal not in ILLEGAL_CHOICES:
        raise KimbleError(f"illegal must be one of {', '.join(ILLEGAL_CHOICES)}, got {illegal!r}")
    return illegal


def loss_reward(rules: Rules) -> float:
    """Return the reward of a loser: -1/(n - 1), or -1 for the last place of ``play_for_places``."""
    return -1.0 if rules.play_for_places else -1.0 / (rules.players - 1)


# --------------------------------------------------------------------------------------- compiled


@njit
def seats_that_play(s):
    """Return the number of seats that take part."""
    n = 0
    for seat in range(4):
        n += s["plays"][seat] != 0
    return n


@njit
def rank(s, seat):
    """Return the rank of a seat of a finished game, 0 for the first (R6, R34).

    Finished seats in the order of finishing, then the seat left over, then those that went out, the
    last to go out before the first.
    """
    better = 0
    for other in range(4):
        if other == seat or s["plays"][other] == 0:
            continue
        if s["places"][seat] != 0:
            better += s["places"][other] != 0 and s["places"][other] < s["places"][seat]
        elif s["out"][seat] == 0:
            better += s["places"][other] != 0
        else:
            better += s["out"][other] == 0 or s["out"][other] > s["out"][seat]
    return better


@njit
def final_rewards(s, r, out):
    """Write the reward of every seat to ``out`` float32 [4]; zeros unless the game has been won."""
    for seat in range(4):
        out[seat] = 0.0
    if s["status"] != WON:
        return  # R9: a game cut off has no result
    n = seats_that_play(s)
    for seat in range(4):
        if s["plays"][seat] == 0:
            continue
        if r[R_TWO_COLOURS] != 0:  # R17: two players
            out[seat] = 1.0 if (seat & 1) == (s["winner"] & 1) else -1.0
        elif r[R_PLACES] != 0:
            out[seat] = 1.0 - 2.0 * rank(s, seat) / (n - 1)
        else:
            out[seat] = 1.0 if seat == s["winner"] else -1.0 / (n - 1)


@njit
def seat_progress(s, r, seat):
    """Return how far a seat's pieces have come, 0 (all waiting) to 1 (all at the end)."""
    total = 0
    for k in range(r[R_PIECES]):
        total += int(s["pieces"][seat, k]) + 1
    return total / (r[R_PIECES] * (r[R_GOAL] + 1.0))


@njit
def potential(s, r, seat):
    """Return the shaping potential of a seat, -1 to +1: own progress less the others' mean."""
    if r[R_TWO_COLOURS] != 0:
        own = seat_progress(s, r, seat) + seat_progress(s, r, (seat + 2) & 3)
        others = seat_progress(s, r, (seat + 1) & 3) + seat_progress(s, r, (seat + 3) & 3)
        return (own - others) / 2.0
    others, n = 0.0, 0
    for other in range(4):
        if other != seat and s["plays"][other] != 0:
            others += seat_progress(s, r, other)
            n += 1
    return seat_progress(s, r, seat) - others / n


@njit
def shaped_potential(s, r, seat):
    """Return the potential as shaping counts it: 0 once the game has been won."""
    return 0.0 if s["status"] == WON else potential(s, r, seat)


# ---------------------------------------------------------------- batches: the functions for Python


@njit
def final_rewards_batch(states, r, out):
    """Write the rewards at the end of every game to ``out`` float32 [B, 4], by seat.

    Zeros for games that are running or were cut off, and for seats that do not play.
    """
    for i in range(len(states)):
        final_rewards(states[i], r, out[i])


@njit
def potential_batch(states, r, out):
    """Write the potential of every seat, as shaping counts it, to ``out`` float64 [B, 4]."""
    for i in range(len(states)):
        for seat in range(4):
            playing = states[i]["plays"][seat] != 0
            out[i, seat] = shaped_potential(states[i], r, seat) if playing else 0.0
