"""What a move does, as numbers, and agents that weigh them: all compiled.

A heuristic is a vector of weights over ``FEATURES``; the score of a move is the sum of weight times
feature, and the move with the highest score is played, ties broken uniformly. The features are
asked of the kernel, so this file knows no rule. ``FEATURE_TABLE`` documents each one.

Two vectors have names of their own (see :func:`random_weights`): ``random`` has -1 for ``pass``
and 0 for the rest, so it is uniform over the legal moves other than pass; ``random:mask``, all
zero, is uniform over all legal moves.

Random numbers for ties come from ``decision_key``, a hash of (game seed, seat, plies): a decision
depends on its game alone, not on the batch it is in, and shifts nobody's dice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kimble_env._jit import inlined, njit, wrapping
from kimble_env.kernel import (
    AGENT_STREAM,
    ENTER,
    RUNNING,
    acting,
    battle_margin,
    battle_odds,
    below,
    count_bits,
    draw,
    legal_actions,
    lowest_bit,
    mix,
    move_target,
    mover_yields,
    nth_bit,
    own_unit_hit,
    owner_at,
    play,
    seen_from,
    throw,
    unit_size,
    units_that_hit,
    waits_for_start,
    would_finish,
)
from kimble_env.rules import (
    NO_HOME,
    R_BATTLES,
    R_HOME,
    R_LEAVE,
    R_PASS,
    R_PROTECTED,
    R_STRETCH_LAST,
)


class Feature(NamedTuple):
    """Documentation of one feature: its unit, its lowest and highest value, and what it says."""

    unit: str
    low: float
    high: float
    text: str


_LONGEST = 55.0  # board.LAST_PROGRESS_LIMIT: no stretch lies further

FEATURE_TABLE: dict[str, Feature] = {
    "pass": Feature("yes = 1", 0, 1, "the throw is passed; every other feature is then 0"),
    "enter": Feature("yes = 1", 0, 1, "a piece enters from home base"),
    "leave_start": Feature("yes = 1", 0, 1, "the unit leaves its own start"),
    "on_stretch": Feature("yes = 1", 0, 1, "the unit stood on its stretch already"),
    "progress": Feature(
        "fields", -1, _LONGEST, "progress of the unit before the move, -1 if it enters"
    ),
    "pips": Feature(
        "fields", 1, 24, "fields moved times pieces in the unit (entering: 1), losses not counted"
    ),
    "size": Feature("pieces", 0, 4, "pieces in the unit that moves"),
    "battery": Feature(
        "pieces", 0, 4, "size of the battery made by entering onto own pieces, else 0 (Norske)"
    ),
    "reach_stretch": Feature("pieces", 0, 4, "pieces that leave the track for the stretch or home"),
    "reach_home": Feature("pieces", 0, 4, "pieces that arrive in home (Norske)"),
    "finish": Feature("yes = 1", 0, 1, "the last piece of the seat finishes"),
    "capture": Feature("pieces", 0, 4, "pieces of another seat captured for certain (no battle)"),
    "capture_progress": Feature(
        "fields", 0, 4 * _LONGEST, "progress + 1 of the pieces captured for certain, added up"
    ),
    "battle_win": Feature("probability", 0, 1, "Kombat: only the defender goes to home base"),
    "battle_loss": Feature("probability", 0, 1, "Kombat: only the attacker goes to home base"),
    "battle_swing": Feature(
        "fields",
        -_LONGEST,
        _LONGEST,
        "Kombat: expected progress that the defender loses less what the attacker loses",
    ),
    "forced_loss": Feature("pieces", 0, 4, "own pieces that a bad move sends home (Norske)"),
    "foreign_start": Feature(
        "yes = 1", 0, 1, "the unit lands where another seat has pieces waiting to enter"
    ),
    "exposure_before": Feature(
        "units", 0, 12, "units of other seats that could hit the unit where it stands, in one throw"
    ),
    "exposure_after": Feature(
        "units", 0, 12, "the same where it lands (a battle counts as won); 0 if it is lost"
    ),
    "stake_before": Feature(
        "fields", 0, 48 * _LONGEST, "exposure_before times what a hit costs: size x (progress + 1)"
    ),
    "stake_after": Feature(
        "fields", 0, 48 * _LONGEST, "exposure_after times what a hit costs where the unit lands"
    ),
}
"""Every feature of a move, in the order of the vectors. Values are those of the seat to act."""

FEATURES: tuple[str, ...] = tuple(FEATURE_TABLE)
FEATURE_COUNT = len(FEATURES)

F_PASS = FEATURES.index("pass")
F_FINISH = FEATURES.index("finish")
F_CAPTURE = FEATURES.index("capture")
F_FOREIGN_START = FEATURES.index("foreign_start")
F_BEFORE = FEATURES.index("exposure_before")
F_AFTER = FEATURES.index("exposure_after")
F_STAKE_BEFORE = FEATURES.index("stake_before")
F_STAKE_AFTER = FEATURES.index("stake_after")


def random_weights(*, passing: bool = False) -> npt.NDArray[np.float64]:
    """Return the weights of ``random``, or with ``passing`` of ``random:mask`` (float64 [F])."""
    weights = np.zeros(FEATURE_COUNT)
    weights[F_PASS] = 0.0 if passing else -1.0
    return weights


# -------------------------------------------------------------------------------- the features


@inlined
def _one_if(condition):
    """Return 1.0 for true and 0.0 for false."""
    return 1.0 if condition else 0.0


@inlined
def _contact(s, r, action, source, target, size):
    """Return what a move does to others and to itself where it lands.

    capture, capture_progress, battle_win, battle_loss, battle_swing, forced_loss, and whether the
    mover is lost for certain.
    """
    seat = acting(s)
    stander = own_unit_hit(s, r, action, target)
    if stander > 0:
        lost = mover_yields(r, size, stander)
        return 0.0, 0.0, 0.0, 0.0, 0.0, float(size if lost else stander), lost
    other = owner_at(s, r, seat, target)
    if other < 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False
    q = seen_from(r, seat, target, other)
    if r[R_BATTLES] != 0:
        win, tie, loss = battle_odds(s, r, battle_margin(r, seat, target, other))
        swing = (win + tie) * (q + 1) - (loss + tie) * (source + 1)
        return 0.0, 0.0, win, loss, swing, 0.0, False
    if r[R_PROTECTED] != 0 and q == 0:  # R30
        return 0.0, 0.0, 0.0, 0.0, 0.0, float(size), True
    n = unit_size(s, r, other, q)
    return float(n), float(n * (q + 1)), 0.0, 0.0, 0.0, 0.0, False


@inlined
def _needs_contact(w):
    """Tell whether any weight needs ``_contact``: those of F_CAPTURE and what stands next to it."""
    needed = w[F_AFTER] != 0.0 or w[F_STAKE_AFTER] != 0.0
    for k in range(F_CAPTURE, F_FOREIGN_START + 1):
        needed |= w[k] != 0.0
    return needed


@njit
def move_values(s, r, action, w):
    """Return all features of a move other than pass: float64, a tuple in the order of FEATURES.

    Features that cost something stay 0 where their weight in ``w`` is 0.
    """
    seat = acting(s)
    source, target = action - 1, move_target(s, action)
    entering = action == ENTER
    size = 1 if entering else unit_size(s, r, seat, source)
    crosses = source <= r[R_LEAVE] and target > r[R_LEAVE]
    battery = unit_size(s, r, seat, 0) if entering else 0
    captured, taken, win, loss, swing, forced, lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False
    if _needs_contact(w):
        captured, taken, win, loss, swing, forced, lost = _contact(
            s, r, action, source, target, size
        )
    foreign, finish, before, after = 0.0, 0.0, 0.0, 0.0
    if w[F_FINISH] != 0.0 and target > r[R_LEAVE] and not lost:
        finish = _one_if(would_finish(s, r, seat, source, target))
    if w[F_FOREIGN_START] != 0.0 and not lost:
        foreign = _one_if(waits_for_start(s, r, seat, target))
    if w[F_BEFORE] != 0.0 or w[F_STAKE_BEFORE] != 0.0:
        before = float(units_that_hit(s, r, seat, source))
    if (w[F_AFTER] != 0.0 or w[F_STAKE_AFTER] != 0.0) and not lost:
        after = float(units_that_hit(s, r, seat, target))
    return (
        0.0,
        _one_if(entering),
        _one_if(source == 0),
        _one_if(source > r[R_LEAVE]),
        float(source),
        float(size * (target - source)),
        float(size),
        float(battery + 1 if battery > 0 else 0),
        float(size if crosses else 0),
        float(size if r[R_HOME] != NO_HOME and target > r[R_STRETCH_LAST] else 0),
        finish,
        captured,
        taken,
        win,
        loss,
        swing,
        forced,
        foreign,
        before,
        after,
        before * size * (source + 1),
        after * (battery + size) * (target + 1),
    )


@njit
def move_features(s, r, action, weights, out):
    """Write the features of an action to ``out`` float64 [F]; those of weight 0 are left 0.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        action: a legal action of the seat to act.
        weights: float64 [F]; pass ones to have every feature.
        out: float64 [F], overwritten, in the order and units of FEATURE_TABLE.
    """
    if action == r[R_PASS]:
        out[:] = 0.0
        out[F_PASS] = 1.0
        return
    values = move_values(s, r, action, weights)
    for k in range(FEATURE_COUNT):
        out[k] = values[k] if weights[k] != 0.0 else 0.0


@inlined
def move_score(s, r, action, w):
    """Return weights times features of an action."""
    if action == r[R_PASS]:
        return w[F_PASS]
    values = move_values(s, r, action, w)
    total = 0.0
    for k in range(FEATURE_COUNT):
        total += w[k] * values[k]
    return total


# ---------------------------------------------------------------------------------- choosing a move

GENERAL, UNIFORM, UNIFORM_BUT_PASS = 0, 1, 2
"""Kinds of weight vectors: those that need no features are played without computing any."""


@njit
def weights_kind(w):
    """Return UNIFORM for zero weights, UNIFORM_BUT_PASS if only pass is below 0, else GENERAL."""
    for k in range(FEATURE_COUNT):
        if k != F_PASS and w[k] != 0.0:
            return GENERAL
    if w[F_PASS] == 0.0:
        return UNIFORM
    return UNIFORM_BUT_PASS if w[F_PASS] < 0.0 else GENERAL


@inlined
def without_pass(r, actions):
    """Return the legal actions other than pass, or pass alone if nothing else is legal."""
    moves = actions & ~(1 << r[R_PASS])
    return moves if moves != 0 else actions


@njit
def highest_scored(s, r, actions, w):
    """Return the actions with the highest score, as bits."""
    best, ties = -np.inf, actions
    rest = actions
    while rest != 0:
        bit = rest & -rest
        rest ^= bit
        score = move_score(s, r, lowest_bit(bit), w)
        if score > best:
            best, ties = score, bit
        elif score == best:
            ties |= bit
    return ties


@inlined
def best_actions(s, r, actions, w, kind):
    """Return the actions among which a vector of this kind chooses uniformly, as bits."""
    if kind == UNIFORM_BUT_PASS:
        return without_pass(r, actions)
    if kind == UNIFORM or actions & (actions - 1) == 0:
        return actions
    return highest_scored(s, r, actions, w)


@wrapping
@inlined
def decision_key(s):
    """Return the uint64 with which the seat to act breaks ties: a hash of (seed, seat, plies).

    ``draw`` alone can be inverted, and an agent that finds the seed knows the dice to come. Adding
    the seed once more before the last mixing leaves nothing to invert step by step.
    """
    return mix(draw(s["seed"], AGENT_STREAM + acting(s), s["plies"]) + s["seed"])


@njit
def weighted_action(s, r, actions, weights, u):
    """Return the action with the highest score, ties broken uniformly by the uint64 ``u``.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        actions: the legal actions as bits, at least one.
        weights: float64 [F].
        u: random number, for example ``decision_key(s)``.
    """
    ties = best_actions(s, r, actions, weights, weights_kind(weights))
    if ties & (ties - 1) == 0:
        return lowest_bit(ties)
    return nth_bit(ties, below(u, count_bits(ties)))


# ----------------------------------------------------------------------------------------- playouts


@njit
def _legal_now(s, r):
    """Return the legal actions for the die thrown, as bits (out of line: seldom needed)."""
    return legal_actions(s, r, int(s["die"]))


@njit
def advance_weighted(s, r, weights, asked, last):
    """Play on until a seat with a bit in ``asked`` has a choice; return its legal actions as bits.

    Forced throws are played through; seats not in ``asked`` play by their row of ``weights``
    float64 [4, F]. 0 means that the game has ended or that ``last`` throws have been resolved.
    """
    kinds = 0  # two bits per seat
    for seat in range(4):
        kinds |= weights_kind(weights[seat]) << (2 * seat)
    while s["status"] == RUNNING and s["plies"] < last:
        actions = throw(s, r, 0) if s["die"] == 0 else _legal_now(s, r)
        if actions & (actions - 1) != 0:
            seat = acting(s)
            if (asked >> seat) & 1 != 0:
                return actions
            kind = (kinds >> (2 * seat)) & 3
            if kind == UNIFORM_BUT_PASS:
                actions = without_pass(r, actions)
            elif kind == GENERAL:
                actions = highest_scored(s, r, actions, weights[seat])
        if actions != 0:
            action = lowest_bit(actions)
            if actions & (actions - 1) != 0:
                action = nth_bit(actions, below(decision_key(s), count_bits(actions)))
            play(s, r, action, 0, 0)
    return 0


@njit
def play_weighted(s, r, weights, max_plies):
    """Play on to the end, or for ``max_plies`` throws; seat i plays by row i of ``weights``.

    Args:
        s: a record of STATE.
        r: ``Rules.array``.
        weights: float64 [4, F], rows of seats that do not play are not read.
        max_plies: throws at most, forced ones included. A game cut off stays RUNNING.
    """
    advance_weighted(s, r, weights, 0, s["plies"] + max_plies)


@njit
def play_weighted_batch(states, r, agents_weights, seating, max_plies):
    """Play every game on to its end, or for ``max_plies`` throws.

    Args:
        states: STATE [B], played on in place. A game cut off stays RUNNING.
        r: ``Rules.array``.
        agents_weights: float64 [K, F], one row per agent.
        seating: int8 [B, 4], the agent of each seat; for seats that do not play any row, or -1.
        max_plies: throws at most per game, forced ones included.
    """
    weights = np.zeros((4, FEATURE_COUNT))
    for i in range(len(states)):
        for seat in range(4):
            if seating[i, seat] >= 0:
                weights[seat] = agents_weights[seating[i, seat]]
        play_weighted(states[i], r, weights, max_plies)


@njit
def advance_weighted_batch(states, r, agents_weights, seating, last, actions):
    """Play every game on until a seat without weights has a choice.

    Args:
        states: STATE [B], played on in place.
        r: ``Rules.array``.
        agents_weights: float64 [K, F], one row per agent that is a weight vector.
        seating: int8 [B, 4], the row of each seat, or -1: that seat is asked.
        last: throws after which a game is left alone, forced ones included.
        actions: int64 [B], the legal actions of the seat to act as bits; 0 where the game has ended
            or is left alone.
    """
    weights = np.zeros((4, FEATURE_COUNT))
    for i in range(len(states)):
        asked = 0
        for seat in range(4):
            if seating[i, seat] >= 0:
                weights[seat] = agents_weights[seating[i, seat]]
            else:
                asked |= 1 << seat
        actions[i] = advance_weighted(states[i], r, weights, asked, last)


# --------------------------------------------------------------- batches: functions for Python


@njit
def weighted_action_batch(states, r, weights, keys, out):
    """Write the action that ``weights`` chooses in every position to ``out``.

    Args:
        states: STATE [B], each with a die thrown (unchecked); -1 is written where none is.
        r: ``Rules.array``.
        weights: float64 [F].
        keys: uint64 [B], random numbers that break ties.
        out: int16 [B], overwritten with action codes.
    """
    kind = weights_kind(weights)
    for i in range(len(states)):
        s = states[i]
        die = int(s["die"])
        actions = legal_actions(s, r, die) if die != 0 else 0
        if actions == 0:
            out[i] = -1
            continue
        ties = best_actions(s, r, actions, weights, kind)
        out[i] = nth_bit(ties, below(keys[i], count_bits(ties)))


@njit
def score_batch(states, r, weights, scores):
    """Write the score of every action to ``scores`` float32 [B, A]; -inf where it is not legal.

    Args:
        states: STATE [B]; without a die thrown no action is legal.
        r: ``Rules.array``.
        weights: float64 [F].
        scores: float32 [B, A], overwritten; A = ``rules.board.actions``.
    """
    for i in range(len(states)):
        s = states[i]
        die = int(s["die"])
        rest = legal_actions(s, r, die) if die != 0 else 0
        scores[i, :] = -np.inf
        while rest != 0:
            action = lowest_bit(rest)
            rest &= rest - 1
            scores[i, action] = move_score(s, r, action, weights)


@njit
def features_batch(states, r, actions, features):
    """Write all features of one action per position.

    Args:
        states: STATE [B], each with a die thrown (unchecked).
        r: ``Rules.array``.
        actions: int16 [B], a legal action of each position.
        features: float64 [B, F], overwritten, in the order and units of FEATURE_TABLE.
    """
    every = np.ones(FEATURE_COUNT)
    for i in range(len(states)):
        move_features(states[i], r, int(actions[i]), every, features[i])


@njit
def decision_keys_batch(states, keys):
    """Write the ``decision_key`` of every game to ``keys`` uint64 [B]."""
    for i in range(len(states)):
        keys[i] = decision_key(states[i])
