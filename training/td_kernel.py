"""Temporal differences, compiled: games played on by networks, and what they should have said.

A *window* is T throws of every game. Every so many throws (``stride``) a position x is *looked at*:
the six faces are tried, for each the best action's chances are found (battles weighted by their
odds), and their mean E(x) is what the network should have said where it said V(x). Nothing of that
depends on the die that then falls. What is wrong with x is its own error and what later positions
of the same game turn out to be wrong by:

    wrong(x) = E(x) - V(x) + c wrong(x')        where x is looked at
    wrong(x) =               c wrong(x')        elsewhere
    target(x) = V(x) + wrong(x)                 c = lambda, or 0 where the trace is cut

so no die that fell is in any target, and throws between two positions looked at cost little more
than their moves. The trace is cut where the action played was not the best one (exploration, or an
opponent's choice, unless it was forced) and where a game ends or is cut off. At the end of the
window wrong(x') is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.compiling import compiler
from agents.net_compiling import REORDER, SOURCES
from agents.net_features import position_inputs
from agents.net_kernel import (
    Net,
    action_chances,
    best_action,
    make_scratch,
    play_action,
    throw_die,
    weighted_now,
    win_chances,
)
from kimble_env.features import decision_key
from kimble_env.kernel import (
    RUNNING,
    acting,
    battle_against,
    below,
    count_bits,
    draw,
    face_probability,
    game_key,
    lowest_bit,
    new_game,
    nth_bit,
)
from kimble_env.rules import R_PASS

_compile = compiler("td", *SOURCES, __file__, fastmath=REORDER)

GAMES, CAPPED, ROWS, EXPLORED, CUT = 0, 1, 2, 3, 4
STATS = 8
"""Columns of the counts of a game: ended, cut off, network rows, moves explored, traces cut."""

_CONTROL, _EXPLORE = 40, 41  # streams of random numbers that nobody else uses


def fast(function):
    """Compile a function of this module."""
    return _compile(function)


class Settings(NamedTuple):
    """Numbers of a window."""

    seed: np.uint64
    lam: np.float32
    explore: np.int64  # chance in 2^16 that the learner's move is drawn uniformly
    others: np.int64  # chance in 2^16 that a new game has opponents other than the learner
    cap: np.int64  # throws after which a game is cut off
    stride: np.int64  # every so many positions one is looked at and learned from
    phase: np.int64  # which one


class Tape(NamedTuple):
    """Working memory of one thread for a window of T throws."""

    states: npt.NDArray[np.void]  # STATE [2]
    index: npt.NDArray[np.int32]  # see agents.net_kernel.Scratch
    work: npt.NDArray[np.float32]
    tape: npt.NDArray[np.float32]  # [T, 10]: E(x) - V(x), V(x), c, who was about to throw
    faces: npt.NDArray[np.float32]  # [9, 5]: chances after the best action of each face, the action
    log: npt.NDArray[np.int8]  # [0, 2]


ERROR, VALUE, KEEP, SEAT = 0, 4, 8, 9  # columns of a tape
HERE, TURN = 0, 7  # rows of ``faces``: the position itself; the same with another turn
BEST = 4  # column of ``faces``: the best action, -1 where none is legal


def make_tape(net: Net, throws: int) -> Tape:
    """Return working memory for windows of so many throws."""
    scratch = make_scratch(net)
    return Tape(
        *scratch,
        np.zeros((throws, 10), np.float32),
        np.zeros((9, 5), np.float32),
        np.zeros((0, 2), np.int8),
    )


@fast
def _start(s, r, plays, key, others, snapshots, vectors, control, log):
    """Start a game and draw who decides for each seat.

    0 is the learner, 1.. a snapshot, -1 - k weight vector k. One game in some is one seat of the
    learner against an opponent in all others.
    """
    new_game(s, r, plays, key, log)
    for seat in range(4):
        control[seat] = 0
    if below(draw(key, _CONTROL, 0), 65536) >= others or snapshots + vectors == 0:
        return
    u, v = draw(key, _CONTROL, 1), draw(key, _CONTROL, 2)
    if snapshots > 0 and (vectors == 0 or below(u, 2) == 0):
        other = 1 + below(v, snapshots)
    else:
        other = -1 - below(v, vectors)
    seats = 0
    for seat in range(4):
        seats |= int(plays[seat] != 0) << seat
    own = nth_bit(seats, below(draw(key, _CONTROL, 3), count_bits(seats)))
    for seat in range(4):
        control[seat] = 0 if seat == own else other


@fast
def _copy(source, out):
    """Copy the chances of four seats."""
    for j in range(4):
        out[j] = source[j]


@fast
def _unmoved(child, r, turn, p, index, work, faces, cached, stats):
    """Find the chances where nothing but the turn has changed; return (row of faces, cached).

    ``turn`` is who throws in the position itself and how often, ``cached`` the same of what row
    TURN holds.
    """
    own = 4 * int(child["throws"]) + acting(child)
    if child["status"] == RUNNING and own == turn:
        return HERE, cached
    if own != cached:
        win_chances(child, r, p, index, work, faces[TURN])
        stats[ROWS] += 1
    return TURN, own


@fast
def _face(s, r, die, p, states, index, work, faces, cached, stats):
    """Find the best action for one face: its chances and the action go to ``faces[die]``."""
    states[1] = s
    before = states[1]
    seat, turn = acting(s), 4 * int(s["throws"]) + acting(s)
    best, part = faces[die], work[len(work) - 4 :]
    rest = throw_die(before, r, die)
    if rest == 0:
        row, cached = _unmoved(before, r, turn, p, index, work, faces, cached, stats)
        _copy(faces[row], best)
        best[BEST] = -1.0
        return cached
    found, moves = np.float32(-1.0), rest & ~(1 << r[R_PASS])
    if moves != rest:
        states[0] = before
        play_action(states[0], r, r[R_PASS], 0, 0)
        row, cached = _unmoved(states[0], r, turn, p, index, work, faces, cached, stats)
        _copy(faces[row], best)
        found, best[BEST] = best[seat], np.float32(r[R_PASS])
    while moves != 0:
        action = lowest_bit(moves)
        moves &= moves - 1
        action_chances(before, r, action, p, states, index, work, part)
        stats[ROWS] += 1
        if part[seat] > found:
            found = part[seat]
            _copy(part, best)
            best[BEST] = np.float32(action)
    return cached


@fast
def _explores(s, actions, explore, stats):
    """Return an action drawn uniformly where the learner explores, else -1."""
    key = decision_key(s)
    if below(draw(key, _EXPLORE, 0), 65536) >= explore:
        return -1
    stats[EXPLORED] += 1
    return nth_bit(actions, below(draw(key, _EXPLORE, 1), count_bits(actions)))


@fast
def _decide(s, r, actions, who, params, weights, states, index, work, explore, stats):
    """Return the action of whoever decides, -1 for the learner's best.

    ``who`` is 0 for the learner, k > 0 for snapshot k, -1 - k for weight vector k.
    """
    if who > 0:
        other = work[len(work) - 12 : len(work) - 8]
        return best_action(s, r, actions, params[who], states, index, work, other)
    if who < 0:
        return weighted_now(s, r, actions, weights[-1 - who])
    return _explores(s, actions, explore, stats)


@fast
def _look(s, r, row, p, states, index, work, faces, stats):
    """Try all faces: write E(x) - V(x) and V(x) to a row of the tape, see ``_face`` for the rest.

    ``faces[HERE]`` is V(x) of the position x.
    """
    shown, cached = int(s["face"]), -1
    for j in range(4):
        row[VALUE + j] = faces[HERE, j]
        row[ERROR + j] = -faces[HERE, j]
    row[SEAT] = acting(s)
    for die in range(1, 7):
        cached = _face(s, r, die, p, states, index, work, faces, cached, stats)
        chance = np.float32(face_probability(r, shown, die))
        for j in range(4):
            row[ERROR + j] += chance * faces[die, j]


@fast
def _looked_throw(
    s, r, row, control, params, weights, states, index, work, faces, lam, explore, stats
):
    """Throw and play on from a position that has been looked at.

    Return whether ``faces[HERE]`` is V of the position reached.
    """
    row[KEEP] = lam
    actions = throw_die(s, r, 0)
    die = int(s["last_die"])
    known = True
    if actions != 0:
        best, action = int(faces[die, BEST]), -1
        if actions & (actions - 1) != 0:
            who = control[acting(s)]
            action = _decide(
                s, r, actions, who, params, weights, states, index, work, explore, stats
            )
        known = action < 0 or action == best
        action = best if known else action
        if not known:
            row[KEEP] = 0.0
            stats[CUT] += 1
        known = known and battle_against(s, r, action) < 0
        play_action(s, r, action, 0, 0)
    if known:
        _copy(faces[die], faces[HERE])
    return known


@fast
def _plain_throw(
    s, r, row, control, params, weights, states, index, work, faces, lam, explore, stats
):
    """Throw and play on from a position that is not looked at: only a choice needs the network.

    Return whether ``faces[HERE]`` is V of the position reached.
    """
    row[KEEP] = lam
    actions = throw_die(s, r, 0)
    if actions == 0:
        return False
    if actions & (actions - 1) == 0:
        play_action(s, r, lowest_bit(actions), 0, 0)
        return False
    who = control[acting(s)]
    action = _decide(s, r, actions, who, params, weights, states, index, work, explore, stats)
    if action >= 0:
        row[KEEP] = 0.0
        stats[CUT] += 1
        play_action(s, r, action, 0, 0)
        return False
    action = best_action(s, r, actions, params[0], states, index, work, faces[HERE])
    stats[ROWS] += count_bits(actions)
    known = battle_against(s, r, action) < 0
    play_action(s, r, action, 0, 0)
    return known


@fast
def _learn_back(tape, wrong, stride, offset, first, y):
    """Go back through a window and write the targets of the rows that are learned from."""
    for j in range(4):
        wrong[j] = 0.0
    for t in range(len(tape) - 1, -1, -1):
        for j in range(4):
            wrong[j] *= tape[t, KEEP]
        if (t + offset) % stride != 0:
            continue
        row, seat = first + t // stride, int(tape[t, SEAT])
        for j in range(4):
            wrong[j] += tape[t, ERROR + j]
        for k in range(4):
            at = (seat + k) & 3
            y[row, k] = tape[t, VALUE + at] + wrong[at]


@fast
def _keep_inputs(s, r, index, work, x):
    """Write the vector of a position to ``x`` float32 [F]."""
    n = position_inputs(s, r, index, work)
    x[:] = 0.0
    for k in range(n):
        x[index[k]] = work[k]


@fast
def begin(states, i, r, plays, control, episodes, first, seed, others, snapshots, vectors, log):
    """Start the next game of place i."""
    number = (episodes[i] << 24) + first + i
    episodes[i] += 1
    key = game_key(seed, number)
    _start(states[i], r, plays, key, others, snapshots, vectors, control[i], log)


@fast
def begin_all(states, r, plays, control, episodes, snapshots, vectors, settings, tape):
    """Start a game in every place."""
    for i in range(len(states)):
        begin(
            states, i, r, plays, control, episodes, 0, settings.seed, settings.others, snapshots,
            vectors, tape.log,
        )  # fmt: skip


@fast
def play_window(
    states, r, plays, control, episodes, first, params, weights, settings, tape, x, y, stats
):
    """Play ``len(tape.tape)`` throws of every game; write positions and targets.

    Args:
        states: STATE [N], before a throw, played on in place.
        r: ``Rules.array``.
        plays: int8 [4], 1 for each seat that takes part.
        control: int16 [N, 4], who decides for each seat.
        episodes: int64 [N], games that each place has begun.
        first: number of the first of these places in the whole batch.
        params: float32 [K, P]: the learner (network 0) and its snapshots.
        weights: float64 [W, features], heuristics among the opponents.
        settings: see Settings.
        tape: working memory.
        x: float32 [N * T / stride, F], overwritten: inputs of the positions to learn from.
        y: float32 [N * T / stride, 4], overwritten: targets by relative seat.
        stats: int64 [N, STATS], counts are added.
    """
    throws, stride = len(tape.tape), settings.stride
    kept = throws // stride
    index, work, faces, p = tape.index, tape.work, tape.faces, params[0]
    for i in range(len(states)):
        s = states[i]
        offset = (settings.phase + first + i) % stride
        known = False  # whether faces[HERE] is V(s)
        for t in range(throws):
            row = tape.tape[t]
            if (t + offset) % stride == 0:
                _keep_inputs(s, r, index, work, x[i * kept + t // stride])
                if not known:
                    win_chances(s, r, p, index, work, faces[HERE])
                    stats[i, ROWS] += 1
                _look(s, r, row, p, tape.states, index, work, faces, stats[i])
                known = _looked_throw(
                    s, r, row, control[i], params, weights, tape.states, index, work, faces,
                    settings.lam, settings.explore, stats[i],
                )  # fmt: skip
            else:
                known = _plain_throw(
                    s, r, row, control[i], params, weights, tape.states, index, work, faces,
                    settings.lam, settings.explore, stats[i],
                )  # fmt: skip
            over = s["status"] != RUNNING
            if over or s["plies"] >= settings.cap:
                row[KEEP] = 0.0
                stats[i, GAMES] += 1
                stats[i, CAPPED] += not over
                begin(
                    states, i, r, plays, control, episodes, first, settings.seed, settings.others,
                    len(params) - 1, len(weights), tape.log,
                )  # fmt: skip
                known = False
        _learn_back(tape.tape, faces[8], stride, offset, i * kept, y)
