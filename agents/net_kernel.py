"""Value networks, compiled: from a position before a throw to each seat's chance to win.

A network is an MLP over the inputs of ``net_features`` with two hidden layers (ReLU) and one logit
per seat, counted clockwise from the seat about to throw; a softmax over the seats that still take
turns makes chances of them. A finished game is 1 for the winner, exactly.

Most inputs are zero, so the first layer adds up only the rows of those that are not. Arrays have a
leading axis of K networks, so that a pool of them is one argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.net_compiling import fast, inlined
from agents.net_features import MOST_INPUTS, position_inputs
from agents.row_sums import LANES, add_rows
from kimble_env.features import decision_key, weighted_action
from kimble_env.kernel import (
    RUNNING,
    STATE,
    WON,
    acting,
    battle_against,
    battle_margin,
    battle_odds,
    is_playing,
    legal_actions,
    lowest_bit,
    move_target,
    play,
    throw,
)

Floats = npt.NDArray[np.float32]

LOGITS = LANES  # one for each of four seats, padded to a whole vector
LOWEST = np.float32(-1e30)


class Net(NamedTuple):
    """K networks of one shape.

    A row of ``params`` holds w1 [F, H1], b1 [H1], w2 [H1, H2], b2 [H2], w3 [H2, 8], b3 [8], one
    after the other: one flat array costs a compiled call far less than six. H1 and H2 are multiples
    of 8; of the last layer's eight columns four are zero.
    """

    params: Floats  # float32 [K, P]
    shape: tuple[int, int, int]  # F, H1, H2


class Scratch(NamedTuple):
    """Working memory of one thread for networks of one shape."""

    states: npt.NDArray[np.void]  # STATE [2]
    index: npt.NDArray[np.int32]  # [MOST_INPUTS + 3]: which inputs are not zero; then F, H1, H2
    work: Floats  # [MOST_INPUTS + H1 + H2 + 20]: their values, two layers, chances of seats


def make_net(networks: Sequence[Sequence[tuple[Floats, Floats]]]) -> Net:
    """Return a Net of networks of one shape, each as three layers (weights [out, in], biases)."""
    rows = []
    for first, second, (weights, biases) in networks:
        last = np.zeros((LOGITS, len(weights[0])), np.float32), np.zeros(LOGITS, np.float32)
        last[0][:4], last[1][:4] = weights, biases
        parts = [part for w, b in (first, second, last) for part in (w.T.ravel(), b)]
        rows.append(np.concatenate(parts).astype(np.float32))
    (first, _), (second, _), _ = networks[0]
    return Net(np.stack(rows), (first.shape[1], len(first), len(second)))


def make_scratch(net: Net) -> Scratch:
    """Return working memory for networks of this shape."""
    index = np.zeros(MOST_INPUTS + 3, np.int32)
    index[MOST_INPUTS:] = net.shape
    size = MOST_INPUTS + net.shape[1] + net.shape[2] + 20
    return Scratch(np.zeros(2, STATE), index, np.zeros(size, np.float32))


# -------------------------------------------------------------------------------------- the network


@fast
def forward(p, index, work, n):
    """Put the four logits of the network ``p`` for n inputs at the end of ``work``.

    Args:
        p: float32 [P], one row of ``Net.params``.
        index: see Scratch.
        work: see Scratch; begins with the values of the inputs.
        n: number of inputs that are not zero.
    """
    inputs, first, second = index[MOST_INPUTS], index[MOST_INPUTS + 1], index[MOST_INPUTS + 2]
    h1, h2 = MOST_INPUTS, MOST_INPUTS + first
    b1, zero = inputs * first, np.float32(0.0)
    b2 = b1 + first + first * second
    b3 = b2 + second + second * LOGITS
    add_rows(p, 0, b1, first, index, work, 0, n, work, h1, zero)
    add_rows(p, b1 + first, b2, second, None, work, h1, first, work, h2, zero)
    add_rows(p, b2 + second, b3, LOGITS, None, work, h2, second, work, h2 + second, LOWEST)


@inlined
def _share_out(s, logits, out):
    """Turn logits into the chances of the absolute seats that still take turns (softmax)."""
    ego, highest, total = acting(s), np.float32(-1e30), np.float32(0.0)
    for step in range(4):
        if is_playing(s, (ego + step) & 3):
            highest = max(highest, logits[step])
    for step in range(4):
        seat = (ego + step) & 3
        out[seat] = np.float32(0.0)
        if is_playing(s, seat):
            out[seat] = np.exp(logits[step] - highest)
            total += out[seat]
    scale = np.float32(1.0) / total
    for seat in range(4):
        out[seat] *= scale


@fast
def win_chances(s, r, p, index, work, out):
    """Write each absolute seat's chance to win to ``out`` float32 [4].

    ``s`` stands before a throw, or is finished: then the winner has 1. A game that was cut off
    counts the same to each seat that plays.
    """
    if s["status"] == RUNNING:
        n = position_inputs(s, r, index, work)
        forward(p, index, work, n)
        _share_out(s, work[len(work) - 20 :], out)
        return
    if s["status"] == WON:
        for seat in range(4):
            out[seat] = seat == s["winner"]
        return
    players = 0
    for seat in range(4):
        players += s["plays"][seat]
    for seat in range(4):
        out[seat] = s["plays"][seat] / np.float32(players)


# ------------------------------------------------------------------------------------------- moves


@fast
def throw_die(s, r, die):
    """Call the kernel's ``throw`` out of line: copied into every caller it compiles for minutes."""
    return throw(s, r, die)


@fast
def play_action(s, r, action, attack_die, defence_die):
    """Call the kernel's ``play`` out of line."""
    play(s, r, action, attack_die, defence_die)


@fast
def weighted_now(s, r, actions, weights):
    """Return what a weight vector plays, ties broken by the game's own key of the decision."""
    return weighted_action(s, r, actions, weights, decision_key(s))


@fast
def legal_now(s, r):
    """Return the legal actions for the die thrown, as bits; 0 before a throw."""
    return legal_actions(s, r, int(s["die"])) if s["die"] != 0 else 0


@fast
def action_chances(s, r, action, p, states, index, work, out):
    """Write the chances after an action to ``out`` float32 [4]; a battle's outcomes are weighted.

    The action must be legal for the die thrown in ``s``, which is left as it is; ``states[0]`` is
    overwritten, and the last four but four numbers of ``work``.
    """
    defender = battle_against(s, r, action)
    if defender < 0:
        states[0] = s
        play_action(states[0], r, action, 0, 0)
        win_chances(states[0], r, p, index, work, out)
        return
    margin = battle_margin(r, acting(s), move_target(s, action), defender)
    win, tie, loss = battle_odds(s, r, margin)
    for j in range(4):
        out[j] = 0.0
    part = work[len(work) - 8 : len(work) - 4]
    # R18: dice that win, tie and lose for every margin 1 to 3
    for outcome in range(3):
        attack = 6 if outcome == 0 else 1
        defence = 1 if outcome == 0 else (1 + margin if outcome == 1 else 6)
        chance = win if outcome == 0 else (tie if outcome == 1 else loss)
        states[0] = s
        play_action(states[0], r, action, attack, defence)
        win_chances(states[0], r, p, index, work, part)
        for j in range(4):
            out[j] += np.float32(chance) * part[j]


@fast
def best_action(s, r, actions, p, states, index, work, best):
    """Return the action that gives the seat to act most, the first of equal ones.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        actions: its legal actions as bits, at least one.
        p: float32 [P], the network.
        states: STATE [1] or more, working memory.
        index: see Scratch.
        work: see Scratch.
        best: float32 [4], overwritten with the chances after that action.
    """
    seat, chosen, found, rest = acting(s), -1, np.float32(-1.0), actions
    out = work[len(work) - 4 :]
    while rest != 0:
        action = lowest_bit(rest)
        rest &= rest - 1
        action_chances(s, r, action, p, states, index, work, out)
        if out[seat] > found:
            found, chosen = out[seat], action
            for j in range(4):
                best[j] = out[j]
    return chosen


# ----------------------------------------------------------------------------------------- games


@fast
def play_game(s, r, params, weights, seating, cap, states, index, work):
    """Play on to the end, or until ``cap`` throws have been resolved.

    Args:
        s: a record of STATE.
        r: ``Rules.array``.
        params: float32 [K, P], networks.
        weights: float64 [W, features], weight vectors.
        seating: int [4], who decides for each seat: k >= 0 network k, -1 - k weight vector k.
        cap: throws at most, forced ones included.
        states: working memory, like the following.
        index: see Scratch.
        work: see Scratch.
    """
    best = work[len(work) - 12 : len(work) - 8]
    while s["status"] == RUNNING and s["plies"] < cap:
        actions = throw_die(s, r, 0)
        if actions == 0:
            continue
        if actions & (actions - 1) == 0:
            action = lowest_bit(actions)
        else:
            who = seating[acting(s)]
            if who >= 0:
                action = best_action(s, r, actions, params[who], states, index, work, best)
            else:
                action = weighted_now(s, r, actions, weights[-1 - who])
        play_action(s, r, action, 0, 0)


# ------------------------------------------------------------------- batches: functions for Python


@fast
def play_game_batch(states, r, params, weights, seating, cap, scratch):
    """Play every game on to its end, or to ``cap`` throws; ``seating`` int16 [B, 4]."""
    for i in range(len(states)):
        play_game(
            states[i], r, params, weights, seating[i], cap,
            scratch.states, scratch.index, scratch.work,
        )  # fmt: skip


@fast
def win_chances_batch(states, r, params, scratch, out):
    """Write the chances of every position before a throw or finished to ``out`` float32 [B, 4]."""
    for i in range(len(states)):
        win_chances(states[i], r, params[0], scratch.index, scratch.work, out[i])


@fast
def best_action_batch(states, r, params, scratch, out):
    """Write the best action of every position with a die thrown to ``out`` int16 [B]."""
    index, work = scratch.index, scratch.work
    best = work[len(work) - 12 : len(work) - 8]
    for i in range(len(states)):
        actions = legal_now(states[i], r)
        if actions & (actions - 1) == 0:
            out[i] = lowest_bit(actions)
        else:
            out[i] = best_action(
                states[i], r, actions, params[0], scratch.states, index, work, best
            )


@fast
def evaluate_batch(states, r, params, scratch, win):
    """Write the chances after every legal action to ``win`` float32 [B, A, 4]; 0 elsewhere."""
    index, work = scratch.index, scratch.work
    for i in range(len(states)):
        win[i, :, :] = 0.0
        rest = legal_now(states[i], r)
        while rest != 0:
            action = lowest_bit(rest)
            rest &= rest - 1
            action_chances(
                states[i], r, action, params[0], scratch.states, index, work, win[i, action]
            )


@fast
def forward_batch(features, present, params, scratch, out):
    """Write the chances of relative seats for whole vectors: the network without the game.

    Args:
        features: float32 [B, F].
        present: bool [B, 4], the relative seats that take turns.
        params: float32 [1, P].
        scratch: working memory.
        out: float32 [B, 4], overwritten.
    """
    index, work = scratch.index, scratch.work
    logits = work[len(work) - 20 :]
    for i in range(len(features)):
        n = 0
        for at in range(features.shape[1]):
            index[n] = at
            work[n] = features[i, at]
            n += features[i, at] != 0.0
        forward(params[0], index, work, n)
        highest, total = np.float32(-1e30), np.float32(0.0)
        for k in range(4):
            if present[i, k]:
                highest = max(highest, logits[k])
        for k in range(4):
            out[i, k] = np.exp(logits[k] - highest) if present[i, k] else np.float32(0.0)
            total += out[i, k]
        for k in range(4):
            out[i, k] /= total
