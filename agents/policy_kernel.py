"""What a policy network is told of a position, and the network itself: all compiled.

A policy is told what the seat to act sees (``kimble_env.observation``) and, in one row per legal
move, the features of that move (``kimble_env.features``). The logit of an action is the sum of two
parts: what the board's network says of that action, and the score of a small network, the same for
every move, that sees the move's row and the last hidden units of the board's network.

Observations are mostly zero, so the first layer adds up only the weights of what is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.compiling import compiler
from agents.net_compiling import HERE, REORDER
from kimble_env.features import move_score
from kimble_env.kernel import acting, legal_actions, lowest_bit
from kimble_env.observation import encode_observation
from kimble_env.stepping import mask_bits

Floats = npt.NDArray[np.float32]
Layer = tuple[Floats, Floats]
NOBODY = -1.0
"""The action code of a row without a move."""

fast = compiler("policy", HERE / "net_compiling.py", __file__, fastmath=REORDER)


class Columns(NamedTuple):
    """How the features of a move are read (see ``agents.move_inputs``).

    weights: float64 [R, F], the sums that are asked for. plans: int64 [R], ``weights_plan`` of
    each. starts: int64 [R + 1], the entries of each sum in what follows, lowest digit first.
    order: int64 [K], the column of each entry. bases: int64 [K], values that a digit can have, 0
    for a sum that is one feature. lows: int64 [K], the lowest of them. scales: float32 [K].
    """

    weights: npt.NDArray[np.float64]
    plans: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]
    lows: npt.NDArray[np.int64]
    scales: Floats


class Net(NamedTuple):
    """A policy network: ``params`` float32 [P] holds all weights one after the other.

    For each layer of the board's network the weights, of the first one [in, out], else [out, in],
    and the bias [out]; then of the moves' network [K, W], [W, last hidden], [W] (bias), [W] (output
    weights), [1] (its bias). ``sizes`` int64 [L + 1]: inputs, hidden units ..., actions. ``width``
    is W, 0 without a network of the moves.
    """

    params: Floats
    sizes: npt.NDArray[np.int64]
    width: int
    relu: bool


def make_net(layers: Sequence[Layer], moves: Sequence[Floats], relu: bool) -> Net:
    """Return a Net.

    Args:
        layers: (weight [out, in], bias [out]) of the board's network.
        moves: weights [W, K], [W, last hidden], [W], [W], [1] of the moves' network; or none.
        relu: hidden units are max(x, 0); False: tanh.
    """
    parts = []
    for k, (weight, bias) in enumerate(layers):
        parts += [weight.T if k == 0 else weight, bias]
    if moves:
        parts += [moves[0].T, *moves[1:]]
    sizes = [layers[0][0].shape[1], *(len(bias) for _, bias in layers)]
    params = np.concatenate([np.ascontiguousarray(x, np.float32).ravel() for x in parts])
    return Net(params, np.array(sizes, np.int64), len(moves[2]) if moves else 0, relu)


@fast
def _read(total, columns, reading, offset, row):
    """Write the features that are the digits of a sum to ``row`` float32 [K]."""
    first, last = columns.starts[reading], columns.starts[reading + 1]
    if columns.bases[first] == 0:
        row[columns.order[first]] = total * columns.scales[first]
        return
    rest = np.int64(math.floor(total + offset + 0.5))
    for k in range(first, last):
        base = columns.bases[k]
        row[columns.order[k]] = (rest % base + columns.lows[k]) * columns.scales[k]
        rest //= base


@fast
def _offset(columns, reading):
    """Return what makes every digit of a sum at least 0."""
    place, total = 1.0, 0.0
    for k in range(columns.starts[reading], columns.starts[reading + 1]):
        total -= place * columns.lows[k]
        place *= columns.bases[k]
    return total


@fast
def write_rows(s, r, actions, columns, codes, rows):
    """Write the row of every legal move, in the order of the action codes; return their number.

    Args:
        s: a record of STATE with a die thrown.
        r: ``Rules.array``.
        actions: the legal actions as bits.
        columns: Columns.
        codes: float32 [M], overwritten with action codes, NOBODY behind the last.
        rows: float32 [M * K], overwritten; 0 behind the last move.
    """
    width = len(columns.order)
    rest, count = actions, 0
    while rest != 0 and count < len(codes):
        codes[count] = lowest_bit(rest)
        rest &= rest - 1
        count += 1
    for reading in range(len(columns.plans)):
        offset, weights = _offset(columns, reading), columns.weights[reading]
        for k in range(count):
            total = move_score(s, r, int(codes[k]), weights, columns.plans[reading])
            _read(total, columns, reading, offset, rows[k * width : (k + 1) * width])
    for k in range(count, len(codes)):
        codes[k] = NOBODY
    rows[count * width :] = 0.0
    return count


@fast
def told_slice(states, r, masks, columns, at, most, out, start, stop):
    """Write what is told of the legal moves into a part of each row of ``out``.

    Args:
        states: STATE [B], with a die thrown wherever the mask is not empty.
        r: ``Rules.array``.
        masks: int8 [B, A], the legal actions.
        columns: Columns.
        at: first place in a row of ``out``.
        most: moves M that there is room for: M codes, then M * K features are written.
        out: float32 [B, at + M * (1 + K) or more].
        start: first position.
        stop: position after the last.
    """
    middle, end = at + most, at + most * (1 + len(columns.order))
    for i in range(start, stop):
        bits = mask_bits(masks[i])
        write_rows(states[i], r, bits, columns, out[i, at:middle], out[i, middle:end])


@fast
def _activate(h, relu):
    for j in range(len(h)):
        h[j] = max(h[j], np.float32(0.0)) if relu else np.float32(math.tanh(h[j]))


@fast
def _hidden(net, seen, a, b):
    """Run the board's network up to its last hidden layer, which is left in ``a``.

    Layers are written to ``a`` and ``b`` in turn. Return where the next layer begins.
    """
    p, width, layers = net.params, net.sizes[1], len(net.sizes) - 2
    at = net.sizes[0] * width
    h = a[:width] if layers & 1 == 1 else b[:width]
    for j in range(width):
        h[j] = p[at + j]
    for i in range(net.sizes[0]):
        if seen[i] != 0:
            x, row = np.float32(seen[i]), p[i * width : (i + 1) * width]
            for j in range(width):
                h[j] += x * row[j]
    at += width
    for layer in range(1, layers):
        _activate(h, net.relu)
        size, width = width, net.sizes[layer + 1]
        out = a[:width] if (layers - layer) & 1 == 1 else b[:width]
        bias = p[at + size * width : at + size * width + width]
        for j in range(width):
            out[j] = bias[j] + _dot(p[at + j * size : at + (j + 1) * size], h)
        at += size * width + width
        h = out
    _activate(h, net.relu)
    return at


@fast
def _dot(x, y):
    total = np.float32(0.0)
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@fast
def _logits(net, work, count):
    """Write the logits of the ``count`` moves whose codes and rows stand in ``work``."""
    codes, rows, m, logits = work.codes, work.rows, work.moves, work.shares
    p, features = net.params, len(rows) // len(codes)
    at = _hidden(net, work.seen, work.first, work.second)
    size, actions = net.sizes[-2], net.sizes[-1]
    h = work.first[:size]
    bias = at + size * actions
    for k in range(count):
        c = int(codes[k])
        logits[k] = p[bias + c] + _dot(p[at + c * size : at + (c + 1) * size], h)
    if net.width == 0:
        return
    width = net.width
    first = bias + actions
    context = first + features * width
    shift = context + size * width
    last = shift + width
    for j in range(width):
        m[width + j] = p[shift + j] + _dot(p[context + j * size : context + (j + 1) * size], h)
    hidden = m[:width]
    for k in range(count):
        for j in range(width):
            hidden[j] = m[width + j]
        for f in range(features):
            x = rows[k * features + f]
            if x != 0.0:
                row = p[first + f * width : first + (f + 1) * width]
                for j in range(width):
                    hidden[j] += x * row[j]
        _activate(hidden, net.relu)
        logits[k] += p[last + width] + _dot(p[last : last + width], hidden)


class Scratch(NamedTuple):
    """Working memory of a network: two hidden layers in turn, the moves' layer, codes, rows..."""

    first: Floats
    second: Floats
    moves: Floats
    seen: npt.NDArray[np.int8]
    codes: Floats
    rows: Floats
    shares: Floats


def make_scratch(columns: Columns, net: Net, most: int) -> Scratch:
    """Return working memory for a network of this size and ``most`` moves at one time."""
    widest = int(net.sizes.max())
    return Scratch(
        np.zeros(widest, np.float32),
        np.zeros(widest, np.float32),
        np.zeros(2 * net.width, np.float32),
        np.zeros(net.sizes[0], np.int8),
        np.zeros(most, np.float32),
        np.zeros(most * len(columns.order), np.float32),
        np.zeros(most, np.float32),
    )


@fast
def _decide(s, r, columns, net, work):
    """Put codes and probabilities of the legal moves into ``work``; return their number."""
    encode_observation(s, r, acting(s), work.seen)
    legal = legal_actions(s, r, int(s["die"]))
    count = write_rows(s, r, legal, columns, work.codes, work.rows)
    _logits(net, work, count)
    shares = work.shares[:count]
    highest, total = shares[0], np.float32(0.0)
    for k in range(1, count):
        highest = max(highest, shares[k])
    for k in range(count):
        shares[k] = math.exp(shares[k] - highest)
        total += shares[k]
    for k in range(count):
        shares[k] /= total
    return count


@fast
def policy_batch(states, r, columns, net, work, out):
    """Write the probability of every action in every position.

    Args:
        states: STATE [B], each with a die thrown (unchecked).
        r: ``Rules.array``.
        columns: Columns.
        net: Net.
        work: Scratch.
        out: float32 [B, A], overwritten; 0 for what is not legal.
    """
    for i in range(len(states)):
        count = _decide(states[i], r, columns, net, work)
        out[i, :] = 0.0
        for k in range(count):
            out[i, int(work.codes[k])] = work.shares[k]


@fast
def act_batch(states, r, columns, net, work, sample, keys, out):
    """Write one action per position: drawn from the policy, or its most probable one.

    Args:
        states, r, columns, net, work: see :func:`policy_batch`.
        sample: whether to draw.
        keys: uint64 [B], the random numbers to draw with.
        out: int16 [B], overwritten.
    """
    for i in range(len(states)):
        count = _decide(states[i], r, columns, net, work)
        chosen = 0
        if sample:
            left = np.float64(keys[i] >> np.uint64(11)) * 2.0**-53
            left -= work.shares[0]
            while left >= 0.0 and chosen + 1 < count:
                chosen += 1
                left -= work.shares[chosen]
        else:
            for k in range(1, count):
                if work.shares[k] > work.shares[chosen]:
                    chosen = k
        out[i] = np.int16(work.codes[chosen])
