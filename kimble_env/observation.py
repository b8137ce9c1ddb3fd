"""What a seat sees: the egocentric observation, the action mask, and their version numbers.

An observation is one flat int8 vector. It holds four blocks, one per seat counted clockwise from
the observer (block 0 is the observer), and after them what belongs to the throw:

=================  ======  =========  ==============================================================
part               length  range      meaning
=================  ======  =========  ==============================================================
*per seat*
``track``          ring    0..pieces  pieces on each track field; field 0 is the *observer's* start
``stretch``        S       0..pieces  pieces on each of the seat's own stretch fields
``home_base``      1       0..pieces  pieces that wait to enter
``home``           1       0..pieces  pieces that are home (rule sets with home, R32; else 0)
``plays``          1       0, 1       1 if the seat takes part
``out``            1       0, 1       1 if the seat has gone out (R34)
``partner``        1       0, 1       1 if the seat is the observer's other colour (R17)
*once*
``seat_to_act``    4       one-hot    whose throw it is, clockwise from the observer; the winner in
                                      a finished game
``die``            6       one-hot    the die thrown; all zero before a throw and after the end
``throws``         1       0..3       throws left of this throwing turn, this one included (R23)
``sixes``          1       0..n       sixes in a row so far; 0 without the option ``max_sixes`` (R3)
=================  ======  =========  ==============================================================

An absent seat contributes zeros. All fields are numbered from the observer's start, so turning the
board by one seat turns who sees what and changes nothing else. For the observer itself the track
index is its own progress; on kimble28 and cross40 the stretch follows without a gap, so there
element ``p`` of the observation and action ``1 + p`` speak of the same field.

The action mask is int8 [A] with 1 for every legal action: 0 enter, ``1 + p`` the unit on progress
p, the last one pass. It is about the seat to act, numbered along that seat's own route.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kimble_env._jit import njit
from kimble_env.board import SEATS, Board
from kimble_env.kernel import seen_from
from kimble_env.rules import (
    R_LEAVE,
    R_MAX_SIXES,
    R_PIECES,
    R_RING,
    R_STRETCH_LAST,
    R_TWO_COLOURS,
    Rules,
)

OBSERVATION_VERSION = 1
"""Goes up whenever an element of the observation changes its place or meaning."""

ACTION_VERSION = 1
"""Goes up whenever an action code changes its meaning."""

SEAT_EXTRAS = ("home_base", "home", "plays", "out", "partner")
"""The single numbers that end the block of each seat, in this order."""

EXTRAS = len(SEAT_EXTRAS)
COMMON = 12
"""Elements after the four blocks: seat to act 4, die 6, throws 1, sixes 1."""


# ------------------------------------------------------------------------------------- the layout


@dataclass(frozen=True)
class Part:
    """One named stretch of the observation: elements ``start`` to ``stop - 1``."""

    name: str
    seat: int | None
    """Relative seat 0..3 (0 the observer), None for the parts that come once."""
    start: int
    stop: int
    high: int
    """Largest value; the smallest is 0 everywhere."""

    @property
    def slice(self) -> slice:
        """The elements of this part."""
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class ObservationLayout:
    """Where everything stands in the observation under one set of rules.

    ``low`` and ``high`` are read-only int8 [size]. ``block`` is the length of one seat's block.
    """

    size: int
    block: int
    actions: int
    parts: tuple[Part, ...]
    low: npt.NDArray[np.int8]
    high: npt.NDArray[np.int8]

    def slice(self, name: str, seat: int | None = None) -> slice:
        """Return the elements of a part, e.g. ``slice("track", 1)`` or ``slice("die")``.

        Raises:
            KeyError: no part has that name and relative seat; the message lists the names.
        """
        for part in self.parts:
            if part.name == name and part.seat == seat:
                return part.slice
        names = dict.fromkeys(
            part.name + ("" if part.seat is None else " (seat 0..3)") for part in self.parts
        )
        raise KeyError(f"no part {name!r} with seat {seat!r}; known: {', '.join(names)}")


def observation_size(board: Board) -> int:
    """Return the length of the observation: 160 on kimble28, 208 on cross40, 260 on ludo52."""
    return SEATS * (board.ring + board.stretch + EXTRAS) + COMMON


@lru_cache(maxsize=64)
def observation_layout(rules: Rules) -> ObservationLayout:
    """Return the layout of observations under ``rules`` (equal rules give the same object)."""
    board = rules.board
    lengths: list[tuple[str, int | None, int, int]] = []
    for seat in range(SEATS):
        lengths.append(("track", seat, board.ring, rules.pieces))
        lengths.append(("stretch", seat, board.stretch, rules.pieces))
        for name in SEAT_EXTRAS:
            lengths.append((name, seat, 1, rules.pieces if name.startswith("home") else 1))
    lengths.append(("seat_to_act", None, SEATS, 1))
    lengths.append(("die", None, 6, 1))
    lengths.append(("throws", None, 1, 3))
    lengths.append(("sixes", None, 1, rules.max_sixes or 1))
    parts, start = [], 0
    for name, relative, length, high in lengths:
        parts.append(Part(name, relative, start, start + length, high))
        start += length
    low, highs = np.zeros(start, np.int8), np.zeros(start, np.int8)
    for part in parts:
        highs[part.slice] = part.high
    low.setflags(write=False)
    highs.setflags(write=False)
    block = board.ring + board.stretch + EXTRAS
    return ObservationLayout(start, block, board.actions, tuple(parts), low, highs)


def named_views(observation: npt.NDArray[np.int8], rules: Rules) -> dict[str, npt.NDArray[np.int8]]:
    """Return views into an observation by name, for people and for feature code.

    Args:
        observation: int8 [..., size]; any number of leading axes.
        rules: the rules it was made under.

    Returns:
        Views (writing to them changes the observation): ``track`` [..., 4, ring], ``stretch``
        [..., 4, S], ``home_base``, ``home``, ``plays``, ``out``, ``partner`` [..., 4] (the axis of
        4 is the seat clockwise from the observer), ``seat_to_act`` [..., 4], ``die`` [..., 6],
        ``throws`` and ``sixes`` [...].

    Raises:
        ValueError: the last axis is not as long as an observation under these rules.
    """
    layout, board = observation_layout(rules), rules.board
    if observation.ndim < 1 or observation.shape[-1] != layout.size:
        raise ValueError(
            f"an observation under {rules} has {layout.size} elements in its last axis, "
            f"got an array of shape {observation.shape}"
        )
    seats = observation[..., : SEATS * layout.block]
    seats = seats.reshape(*observation.shape[:-1], SEATS, layout.block)
    views = {
        "track": seats[..., : board.ring],
        "stretch": seats[..., board.ring : board.ring + board.stretch],
    }
    for k, name in enumerate(SEAT_EXTRAS):
        views[name] = seats[..., board.ring + board.stretch + k]
    for name in ("seat_to_act", "die"):
        views[name] = observation[..., layout.slice(name)]
    for name in ("throws", "sixes"):
        views[name] = observation[..., layout.slice(name)].reshape(observation.shape[:-1])
    return views


# --------------------------------------------------------------------------------------- compiled


@njit
def encode_seat(s, r, seat, observer, out, base):
    """Write the block of one playing seat to ``out`` from element ``base`` on (zeroed before)."""
    ring, leave, last = r[R_RING], r[R_LEAVE], r[R_STRETCH_LAST]
    extras = base + ring + last - leave
    for k in range(r[R_PIECES]):
        p = int(s["pieces"][seat, k])
        if p < 0:
            out[extras] += 1
        elif p <= leave:
            out[base + seen_from(r, seat, p, observer)] += 1
        elif p <= last:
            out[base + ring + p - leave - 1] += 1
        else:
            out[extras + 1] += 1
    out[extras + 2] = 1
    out[extras + 3] = s["out"][seat] != 0
    out[extras + 4] = r[R_TWO_COLOURS] != 0 and seat == (observer + 2) & 3


@njit
def encode_observation(s, r, observer, out):
    """Write what seat ``observer`` sees to ``out`` int8 [size]; every element is written."""
    for k in range(len(out)):
        out[k] = 0
    block = r[R_RING] + r[R_STRETCH_LAST] - r[R_LEAVE] + EXTRAS
    for step in range(4):
        seat = (observer + step) & 3
        if s["plays"][seat] != 0:
            encode_seat(s, r, seat, observer, out, step * block)
    common = 4 * block
    out[common + ((int(s["seat"]) - observer) & 3)] = 1
    die = int(s["die"])
    if die > 0:
        out[common + 3 + die] = 1
    out[common + 10] = s["throws"]
    if r[R_MAX_SIXES] != 0:
        out[common + 11] = min(int(s["sixes"]), r[R_MAX_SIXES])


@njit
def write_mask(actions, out):
    """Write a set of actions (bits) to ``out`` int8 [A] as zeros and ones."""
    for a in range(len(out)):
        out[a] = (actions >> a) & 1


@njit
def observe_batch(states, r, observers, out):
    """Write what seat ``observers[i]`` (int8 [B]) sees of every game to ``out`` int8 [B, size]."""
    for i in range(len(states)):
        encode_observation(states[i], r, int(observers[i]), out[i])


@njit
def mask_batch(actions, out):
    """Write the sets of actions int64 [B] to ``out`` int8 [B, A] as zeros and ones."""
    for i in range(len(actions)):
        write_mask(actions[i], out[i])
