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

from kimble_env._jit import allocating, inlined, njit, wrapping
from kimble_env.kernel import (
    AGENT_STREAM,
    ENTER,
    RUNNING,
    acting,
    battle_margin,
    battle_odds,
    below,
    chance_of_hit,
    count_bits,
    draw,
    freed_by_capture,
    is_enemy_start,
    lead_share,
    leads_enemies,
    legal_actions,
    lowest_bit,
    mix,
    move_target,
    mover_yields,
    nth_bit,
    own_unit_hit,
    owner_at,
    pieces_behind,
    play,
    seen_from,
    stretch_faces,
    targets_ahead,
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
    R_PIECES,
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
    "pass": Feature(
        "yes = 1", 0, 1, "the throw is passed; every other feature but ``pass_six`` is then 0"
    ),
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
    "hit_before": Feature(
        "probability",
        0,
        1,
        "that the unit, left where it stands, is hit before the seat's next turn: exact for one "
        "throw of each other seat, roughly for the throw after a 6 (``kernel.chance_to_hit``)",
    ),
    "hit_after": Feature(
        "probability",
        0,
        1,
        "the same where it lands (a battle counts as won; a throw again after a 6 is not seen); "
        "0 if it is lost",
    ),
    "risk_before": Feature(
        "fields", 0, 4 * _LONGEST + 4, "hit_before times what a hit costs: size x (progress + 1)"
    ),
    "risk_after": Feature(
        "fields", 0, 4 * _LONGEST + 4, "hit_after times what a hit costs where the unit lands"
    ),
    "risk_again": Feature(
        "fields", 0, 4 * _LONGEST + 4, "risk_after if the die shows a 6: the seat throws again"
    ),
    "threats_before": Feature(
        "units", 0, 6, "enemy units that the unit could hit with one throw from where it stands"
    ),
    "threats_after": Feature("units", 0, 6, "the same from where it lands"),
    "prey_before": Feature(
        "fields",
        0,
        2 * _LONGEST + 2,
        "a sixth of the progress + 1 of those units' pieces (in a battle times the chance that "
        "they lose)",
    ),
    "prey_after": Feature("fields", 0, 2 * _LONGEST + 2, "the same from where the unit lands"),
    "behind_before": Feature(
        "pieces", 0, 12, "enemy pieces 1 to 6 fields behind the unit on the ring, whatever route"
    ),
    "behind_after": Feature("pieces", 0, 12, "the same where it lands; 0 off the track, if lost"),
    "trail_before": Feature("pieces", 0, 12, "enemy pieces 7 to 12 fields behind the unit"),
    "trail_after": Feature("pieces", 0, 12, "the same where it lands; 0 off the track, if lost"),
    "gate_before": Feature(
        "probability", 0, 1, "that one throw takes the unit from the track to a free stretch field"
    ),
    "gate_after": Feature("probability", 0, 1, "the same where it lands; 0 if it is lost"),
    "depth": Feature(
        "fields", 0, 6, "how deep in the stretch or home the unit lands: 1 the first field"
    ),
    "freed": Feature(
        "pieces", 0, 3, "other own pieces that the captured unit could have hit in one throw"
    ),
    "relief": Feature("fields", 0, _LONGEST, "a sixth of the progress + 1 of those pieces (freed)"),
    "leader": Feature(
        "probability", 0, 1, "that a piece is captured of the enemy seat that has come furthest"
    ),
    "protected": Feature(
        "yes = 1", 0, 1, "the unit is lost on another seat's protected start (Norske)"
    ),
    "enemy_start": Feature("yes = 1", 0, 1, "the unit lands on the start of an enemy"),
    "unblock": Feature(
        "yes = 1", 0, 1, "the unit leaves its own start, and own pieces wait to enter"
    ),
    "pass_six": Feature("yes = 1", 0, 1, "a 6 is passed"),
    "enter_alone": Feature("yes = 1", 0, 1, "a piece enters, and no own piece is on the track"),
    "ambush_before": Feature(
        "pieces", 0, 12, "enemy pieces in home base whose start lies 1 to 6 fields behind the unit"
    ),
    "ambush_after": Feature("pieces", 0, 12, "the same where it lands; 0 off the track, if lost"),
    "risk_lead": Feature(
        "fields",
        -4 * _LONGEST - 4,
        4 * _LONGEST + 4,
        "risk_after less risk_before, times the lead: fields made by all own pieces less those of "
        "the enemy that has come furthest, as a share of the fields of a whole game",
    ),
    "prey_lead": Feature(
        "fields", -2 * _LONGEST - 2, 2 * _LONGEST + 2, "prey_after less prey_before, times the lead"
    ),
}
"""Every feature of a move, in the order of the vectors. Values are those of the seat to act.

In a battle (Kombat) ``freed``, ``relief`` count times the chance that the defender loses.
"""

FEATURES: tuple[str, ...] = tuple(FEATURE_TABLE)
FEATURE_COUNT = len(FEATURES)

F_PASS = FEATURES.index("pass")
F_ENTER = FEATURES.index("enter")
F_LEAVE_START = FEATURES.index("leave_start")
F_ON_STRETCH = FEATURES.index("on_stretch")
F_PROGRESS = FEATURES.index("progress")
F_PIPS = FEATURES.index("pips")
F_SIZE = FEATURES.index("size")
F_BATTERY = FEATURES.index("battery")
F_REACH_STRETCH = FEATURES.index("reach_stretch")
F_REACH_HOME = FEATURES.index("reach_home")
F_FINISH = FEATURES.index("finish")
F_CAPTURE = FEATURES.index("capture")
F_CAPTURE_PROGRESS = FEATURES.index("capture_progress")
F_BATTLE_WIN = FEATURES.index("battle_win")
F_BATTLE_LOSS = FEATURES.index("battle_loss")
F_BATTLE_SWING = FEATURES.index("battle_swing")
F_FORCED_LOSS = FEATURES.index("forced_loss")
F_FOREIGN_START = FEATURES.index("foreign_start")
F_BEFORE = FEATURES.index("exposure_before")
F_AFTER = FEATURES.index("exposure_after")
F_STAKE_BEFORE = FEATURES.index("stake_before")
F_STAKE_AFTER = FEATURES.index("stake_after")
F_HIT_BEFORE = FEATURES.index("hit_before")
F_HIT_AFTER = FEATURES.index("hit_after")
F_RISK_BEFORE = FEATURES.index("risk_before")
F_RISK_AFTER = FEATURES.index("risk_after")
F_RISK_AGAIN = FEATURES.index("risk_again")
F_THREATS_BEFORE = FEATURES.index("threats_before")
F_THREATS_AFTER = FEATURES.index("threats_after")
F_PREY_BEFORE = FEATURES.index("prey_before")
F_PREY_AFTER = FEATURES.index("prey_after")
F_BEHIND_BEFORE = FEATURES.index("behind_before")
F_BEHIND_AFTER = FEATURES.index("behind_after")
F_TRAIL_BEFORE = FEATURES.index("trail_before")
F_TRAIL_AFTER = FEATURES.index("trail_after")
F_GATE_BEFORE = FEATURES.index("gate_before")
F_GATE_AFTER = FEATURES.index("gate_after")
F_DEPTH = FEATURES.index("depth")
F_FREED = FEATURES.index("freed")
F_RELIEF = FEATURES.index("relief")
F_LEADER = FEATURES.index("leader")
F_PROTECTED = FEATURES.index("protected")
F_ENEMY_START = FEATURES.index("enemy_start")
F_UNBLOCK = FEATURES.index("unblock")
F_PASS_SIX = FEATURES.index("pass_six")
F_ENTER_ALONE = FEATURES.index("enter_alone")
F_AMBUSH_BEFORE = FEATURES.index("ambush_before")
F_AMBUSH_AFTER = FEATURES.index("ambush_after")
F_RISK_LEAD = FEATURES.index("risk_lead")
F_PREY_LEAD = FEATURES.index("prey_lead")

# What a vector needs, as bits above the two of its kind, see ``weights_plan``.
NEEDS_CONTACT, NEEDS_FINISH, NEEDS_START, NEEDS_STRETCH = 1 << 2, 1 << 3, 1 << 4, 1 << 5
NEEDS_UNITS_BEFORE, NEEDS_UNITS_AFTER = 1 << 6, 1 << 7
NEEDS_HIT_BEFORE, NEEDS_HIT_AFTER = 1 << 8, 1 << 9
NEEDS_THREATS_BEFORE, NEEDS_THREATS_AFTER = 1 << 10, 1 << 11
NEEDS_BEHIND_BEFORE, NEEDS_BEHIND_AFTER = 1 << 12, 1 << 13
NEEDS_VICTIM = 1 << 14

_NEEDS = {
    "finish": NEEDS_CONTACT | NEEDS_FINISH,
    "capture": NEEDS_CONTACT,
    "capture_progress": NEEDS_CONTACT,
    "battle_win": NEEDS_CONTACT,
    "battle_loss": NEEDS_CONTACT,
    "battle_swing": NEEDS_CONTACT,
    "forced_loss": NEEDS_CONTACT,
    "foreign_start": NEEDS_CONTACT | NEEDS_START,
    "exposure_before": NEEDS_UNITS_BEFORE,
    "exposure_after": NEEDS_CONTACT | NEEDS_UNITS_AFTER,
    "stake_before": NEEDS_UNITS_BEFORE,
    "stake_after": NEEDS_CONTACT | NEEDS_UNITS_AFTER,
    "hit_before": NEEDS_HIT_BEFORE,
    "hit_after": NEEDS_CONTACT | NEEDS_HIT_AFTER,
    "risk_before": NEEDS_HIT_BEFORE,
    "risk_after": NEEDS_CONTACT | NEEDS_HIT_AFTER,
    "risk_again": NEEDS_CONTACT | NEEDS_HIT_AFTER,
    "threats_before": NEEDS_THREATS_BEFORE,
    "threats_after": NEEDS_CONTACT | NEEDS_THREATS_AFTER,
    "prey_before": NEEDS_THREATS_BEFORE,
    "prey_after": NEEDS_CONTACT | NEEDS_THREATS_AFTER,
    "behind_before": NEEDS_BEHIND_BEFORE,
    "behind_after": NEEDS_CONTACT | NEEDS_BEHIND_AFTER,
    "trail_before": NEEDS_BEHIND_BEFORE,
    "trail_after": NEEDS_CONTACT | NEEDS_BEHIND_AFTER,
    "gate_before": NEEDS_STRETCH,
    "gate_after": NEEDS_CONTACT | NEEDS_STRETCH,
    "freed": NEEDS_CONTACT | NEEDS_VICTIM,
    "relief": NEEDS_CONTACT | NEEDS_VICTIM,
    "leader": NEEDS_CONTACT | NEEDS_VICTIM,
    "protected": NEEDS_CONTACT,
    "enemy_start": NEEDS_CONTACT | NEEDS_START,
    "unblock": NEEDS_START,
    "ambush_before": NEEDS_BEHIND_BEFORE,
    "ambush_after": NEEDS_CONTACT | NEEDS_BEHIND_AFTER,
    "risk_lead": NEEDS_CONTACT | NEEDS_HIT_BEFORE | NEEDS_HIT_AFTER,
    "prey_lead": NEEDS_CONTACT | NEEDS_THREATS_BEFORE | NEEDS_THREATS_AFTER,
}
NEEDS: tuple[int, ...] = tuple(_NEEDS.get(name, 0) for name in FEATURES)
"""Per feature the bits of what must be found out for it; 0: it costs next to nothing."""


def random_weights(*, passing: bool = False) -> npt.NDArray[np.float64]:
    """Return the weights of ``random``, or with ``passing`` of ``random:mask`` (float64 [F])."""
    weights = np.zeros(FEATURE_COUNT)
    weights[F_PASS] = 0.0 if passing else -1.0
    return weights


# -------------------------------------------------------------------------------- the features
#
# The score of a move is added up where its features are found out, so that nothing is stored and
# what no weight needs is skipped. A feature alone is the score under a vector that is 1 there.


@inlined
def _contact(s, r, action, source, target, size):
    """Return what a move does to others and to itself where it lands.

    capture, capture_progress, battle_win, battle_loss, battle_swing, forced_loss, whether the mover
    is lost for certain, and the seat that it meets there (-1: none, or its own).
    """
    seat = acting(s)
    stander = own_unit_hit(s, r, action, target)
    if stander > 0:
        lost = mover_yields(r, size, stander)
        return 0.0, 0.0, 0.0, 0.0, 0.0, float(size if lost else stander), lost, -1
    other = owner_at(s, r, seat, target)
    if other < 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, -1
    q = seen_from(r, seat, target, other)
    if r[R_BATTLES] != 0:
        win, tie, loss = battle_odds(s, r, battle_margin(r, seat, target, other))
        swing = (win + tie) * (q + 1) - (loss + tie) * (source + 1)
        return 0.0, 0.0, win, loss, swing, 0.0, False, other
    if r[R_PROTECTED] != 0 and q == 0:  # R30
        return 0.0, 0.0, 0.0, 0.0, 0.0, float(size), True, other
    n = unit_size(s, r, other, q)
    return float(n), float(n * (q + 1)), 0.0, 0.0, 0.0, 0.0, False, other


@inlined
def _contact_score(s, r, action, w, plan, source, target, size):
    """Return the score of what happens on the field where a move lands, and if the mover is lost.

    Out of the inner loop for most moves: they land on an empty field.
    """
    captured, taken, win, loss, swing, forced, lost, other = _contact(
        s, r, action, source, target, size
    )
    total = w[F_FORCED_LOSS] * forced
    if other < 0:
        return total, lost
    if lost:
        return total + w[F_PROTECTED], lost
    total += w[F_CAPTURE] * captured + w[F_CAPTURE_PROGRESS] * taken
    total += w[F_BATTLE_WIN] * win + w[F_BATTLE_LOSS] * loss + w[F_BATTLE_SWING] * swing
    if plan & NEEDS_VICTIM != 0:
        seat = acting(s)
        q = seen_from(r, seat, target, other)
        pieces, fields = freed_by_capture(s, r, seat, source, other, q)
        chance = 1.0 - loss
        total += chance * (w[F_FREED] * pieces + w[F_RELIEF] * fields)
        if w[F_LEADER] != 0.0 and leads_enemies(s, r, seat, other):
            total += w[F_LEADER] * chance
    return total, lost


@njit
def _score_before(s, r, w, plan, source, size):
    """Return the score of how the unit stands before it moves."""
    seat, total = acting(s), 0.0
    if plan & NEEDS_UNITS_BEFORE != 0:
        units = float(units_that_hit(s, r, seat, source))
        total += units * (w[F_BEFORE] + w[F_STAKE_BEFORE] * size * (source + 1))
    if plan & NEEDS_HIT_BEFORE != 0:
        hit = chance_of_hit(s, r, seat, source)
        cost = w[F_RISK_BEFORE]
        if w[F_RISK_LEAD] != 0.0:
            cost -= w[F_RISK_LEAD] * lead_share(s, r, seat)
        total += hit * (w[F_HIT_BEFORE] + cost * size * (source + 1))
    if plan & NEEDS_THREATS_BEFORE != 0:
        targets, fields = targets_ahead(s, r, seat, source)
        total += w[F_THREATS_BEFORE] * targets + w[F_PREY_BEFORE] * fields
        if w[F_PREY_LEAD] != 0.0:
            total -= w[F_PREY_LEAD] * fields * lead_share(s, r, seat)
    if plan & NEEDS_BEHIND_BEFORE != 0:
        near, far, waiting = pieces_behind(s, r, seat, source)
        total += w[F_BEHIND_BEFORE] * near + w[F_TRAIL_BEFORE] * far
        total += w[F_AMBUSH_BEFORE] * waiting
    if w[F_GATE_BEFORE] != 0.0:
        total += w[F_GATE_BEFORE] * stretch_faces(s, r, seat, source) / 6.0
    return total


@njit
def _score_after(s, r, w, plan, source, target, size):
    """Return the score of how the unit, ``size`` pieces then, stands where it lands."""
    seat, total = acting(s), 0.0
    if w[F_FINISH] != 0.0 and target > r[R_LEAVE] and would_finish(s, r, seat, source, target):
        total += w[F_FINISH]
    if w[F_FOREIGN_START] != 0.0 and waits_for_start(s, r, seat, target):
        total += w[F_FOREIGN_START]
    if w[F_ENEMY_START] != 0.0 and is_enemy_start(s, r, seat, target):
        total += w[F_ENEMY_START]
    if plan & NEEDS_UNITS_AFTER != 0:
        units = float(units_that_hit(s, r, seat, target))
        total += units * (w[F_AFTER] + w[F_STAKE_AFTER] * size * (target + 1))
    if plan & NEEDS_HIT_AFTER != 0:
        hit = chance_of_hit(s, r, seat, target)
        cost = w[F_RISK_AFTER] + (w[F_RISK_AGAIN] if s["die"] == 6 else 0.0)
        if w[F_RISK_LEAD] != 0.0:
            cost += w[F_RISK_LEAD] * lead_share(s, r, seat)
        total += hit * (w[F_HIT_AFTER] + cost * size * (target + 1))
    if plan & NEEDS_THREATS_AFTER != 0:
        targets, fields = targets_ahead(s, r, seat, target)
        total += w[F_THREATS_AFTER] * targets + w[F_PREY_AFTER] * fields
        if w[F_PREY_LEAD] != 0.0:
            total += w[F_PREY_LEAD] * fields * lead_share(s, r, seat)
    if plan & NEEDS_BEHIND_AFTER != 0:
        near, far, waiting = pieces_behind(s, r, seat, target)
        total += w[F_BEHIND_AFTER] * near + w[F_TRAIL_AFTER] * far
        total += w[F_AMBUSH_AFTER] * waiting
    if w[F_GATE_AFTER] != 0.0:
        total += w[F_GATE_AFTER] * stretch_faces(s, r, seat, target) / 6.0
    return total


_BEFORE = (
    NEEDS_UNITS_BEFORE
    | NEEDS_HIT_BEFORE
    | NEEDS_THREATS_BEFORE
    | NEEDS_BEHIND_BEFORE
    | NEEDS_STRETCH
)
_AFTER = (
    NEEDS_FINISH
    | NEEDS_START
    | NEEDS_UNITS_AFTER
    | NEEDS_HIT_AFTER
    | NEEDS_THREATS_AFTER
    | NEEDS_BEHIND_AFTER
    | NEEDS_STRETCH
)


@inlined
def on_track(s, r, seat):
    """Tell whether a piece of a seat is on the track."""
    found = False
    for k in range(4):
        found |= s["pieces"][seat, k] >= 0 and s["pieces"][seat, k] <= r[R_LEAVE]
    return found


@njit
def move_score(s, r, action, w, plan):
    """Return weights times features of an action.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        action: a legal action of the seat to act.
        w: float64 [F].
        plan: ``weights_plan(w)``.
    """
    if action == r[R_PASS]:
        return w[F_PASS] + (w[F_PASS_SIX] if s["die"] == 6 else 0.0)
    seat = acting(s)
    source, target = action - 1, move_target(s, action)
    entering = action == ENTER
    size = 1 if entering else unit_size(s, r, seat, source)
    battery = unit_size(s, r, seat, 0) if entering else 0
    total = w[F_PROGRESS] * source + w[F_PIPS] * (size * (target - source)) + w[F_SIZE] * size
    if entering:
        total += w[F_ENTER]
        if w[F_ENTER_ALONE] != 0.0 and not on_track(s, r, seat):
            total += w[F_ENTER_ALONE]
    elif source == 0:
        total += w[F_LEAVE_START]
        if w[F_UNBLOCK] != 0.0 and unit_size(s, r, seat, -1) > 4 - r[R_PIECES]:
            total += w[F_UNBLOCK]
    if battery > 0:
        total += w[F_BATTERY] * (battery + 1)
    if target > r[R_LEAVE]:
        total += w[F_DEPTH] * (target - r[R_LEAVE])
        total += w[F_ON_STRETCH] if source > r[R_LEAVE] else w[F_REACH_STRETCH] * size
        if r[R_HOME] != NO_HOME and target > r[R_STRETCH_LAST]:
            total += w[F_REACH_HOME] * size
    lost = False
    if plan & NEEDS_CONTACT != 0:
        contact, lost = _contact_score(s, r, action, w, plan, source, target, size)
        total += contact
    if plan & _BEFORE != 0 and not entering:
        total += _score_before(s, r, w, plan, source, size)
    if plan & _AFTER != 0 and not lost:
        total += _score_after(s, r, w, plan, source, target, size + battery)
    return total


@allocating
def move_features(s, r, action, weights, out):
    """Write the features of an action to ``out`` float64 [F]; those of weight 0 are left 0.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        action: a legal action of the seat to act.
        weights: float64 [F]; pass ones to have every feature.
        out: float64 [F], overwritten, in the order and units of FEATURE_TABLE.
    """
    alone = np.zeros(FEATURE_COUNT)
    for k in range(FEATURE_COUNT):
        out[k] = 0.0
        if weights[k] != 0.0:
            alone[k] = 1.0
            out[k] = move_score(s, r, action, alone, weights_plan(alone))
            alone[k] = 0.0


# ---------------------------------------------------------------------------------- choosing a move

GENERAL, UNIFORM, UNIFORM_BUT_PASS = 0, 1, 2
"""Kinds of weight vectors: those that need no features are played without computing any."""
PLAN_BITS = 15
PLAN_MASK = (1 << PLAN_BITS) - 1
"""A plan, see ``weights_plan``, has so many bits: those of four seats fit into one int64."""


@njit
def weights_plan(w):
    """Return the kind of a vector in the two lowest bits, and what its weights need above them.

    UNIFORM for zero weights, UNIFORM_BUT_PASS if only pass is below 0, else GENERAL.
    """
    plan, general = 0, False
    for k in range(FEATURE_COUNT):
        if w[k] != 0.0:
            plan |= NEEDS[k]
            general |= k != F_PASS
    if not general and w[F_PASS] <= 0.0:
        return UNIFORM if w[F_PASS] == 0.0 else UNIFORM_BUT_PASS
    return plan | GENERAL


@inlined
def without_pass(r, actions):
    """Return the legal actions other than pass, or pass alone if nothing else is legal."""
    moves = actions & ~(1 << r[R_PASS])
    return moves if moves != 0 else actions


@njit
def highest_scored(s, r, actions, w, plan):
    """Return the actions with the highest score, as bits; ``plan`` is ``weights_plan(w)``."""
    best, ties = -np.inf, actions
    rest = actions
    while rest != 0:
        bit = rest & -rest
        rest ^= bit
        score = move_score(s, r, lowest_bit(bit), w, plan)
        if score > best:
            best, ties = score, bit
        elif score == best:
            ties |= bit
    return ties


@inlined
def best_actions(s, r, actions, w, plan):
    """Return the actions among which a vector chooses uniformly, as bits."""
    kind = plan & 3
    if kind == UNIFORM_BUT_PASS:
        return without_pass(r, actions)
    if kind == UNIFORM or actions & (actions - 1) == 0:
        return actions
    return highest_scored(s, r, actions, w, plan)


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
    ties = best_actions(s, r, actions, weights, weights_plan(weights))
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
    plans = 0  # 15 bits per seat
    for seat in range(4):
        if (asked >> seat) & 1 == 0:
            plans |= weights_plan(weights[seat]) << (PLAN_BITS * seat)
    while s["status"] == RUNNING and s["plies"] < last:
        actions = throw(s, r, 0) if s["die"] == 0 else _legal_now(s, r)
        if actions & (actions - 1) != 0:
            seat = acting(s)
            if (asked >> seat) & 1 != 0:
                return actions
            plan = (plans >> (PLAN_BITS * seat)) & PLAN_MASK
            kind = plan & 3
            if kind == UNIFORM_BUT_PASS:
                actions = without_pass(r, actions)
            elif kind == GENERAL:
                actions = highest_scored(s, r, actions, weights[seat], plan)
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


@allocating
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


@allocating
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
    plan = weights_plan(weights)
    for i in range(len(states)):
        s = states[i]
        die = int(s["die"])
        actions = legal_actions(s, r, die) if die != 0 else 0
        if actions == 0:
            out[i] = -1
            continue
        ties = best_actions(s, r, actions, weights, plan)
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
    plan = weights_plan(weights)
    for i in range(len(states)):
        s = states[i]
        die = int(s["die"])
        rest = legal_actions(s, r, die) if die != 0 else 0
        scores[i, :] = -np.inf
        while rest != 0:
            action = lowest_bit(rest)
            rest &= rest - 1
            scores[i, action] = move_score(s, r, action, weights, plan)


@allocating
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
