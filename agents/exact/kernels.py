"""The compiled sweeps over a layer of Kimble or Kombat: the inner loop of the solver.

Two seats, ``a`` and ``b``. In a layer, seat a's configurations i and seat b's configurations j have
fixed stretch masks. Two tables hold the win chance of the seat about to throw::

    P[i, j]   seat a is about to throw        Q[i, j]   seat b is about to throw

both with i as the row. A sweep visits the rows i from the highest rank down and, in each row, first
all of P, then all of Q:

* P[i, :] needs Q[i', :] (P[i', :] after a 6) for the moves i -> i', whole rows, which the compiler
  turns into vector instructions.
* Q[i, j] needs P[i, j'] (Q[i, j'] after a 6) for the moves j -> j': look-ups inside row i, which
  stays in the cache.

Moving raises a rank, so in this order everything but captures, idle throws and passes meets
values of the same sweep. A cell where both seats claim a field is no position; without battles it
holds the value of the position after i has captured there, so that P needs no special case; in the
buffer of row i it holds the value after j has captured, so that Q needs none either.

All tables of a layer, and the blocks of the layers it leads to, lie in one array (the *arena*);
rows are found by offset.

Who plays: ``best_*`` functions take the best move; ``shared_*`` functions follow a policy, a
uint8 per throw whose bits say which moves are played alike often (bit 4: pass, or no move at all).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.exact.compiling import fast, inner

BEST, FIXED = 0, 1
"""Kinds of players: the best move against the other seat, or a policy."""

STAY = 4
"""The bit of a policy that passes, or of a throw without a move."""

SHARES = np.zeros((5, 32))
"""The share of each move (and of STAY) in each code: float64 [5, 32]."""
for _code in range(1, 32):
    for _bit in range(5):
        SHARES[_bit, _code] = (_code >> _bit & 1) / _code.bit_count()

LOWEST = np.array([0] + [(c & -c).bit_length() - 1 for c in range(1, 32)], np.int8)
"""The lowest bit of each code."""

Array = Any


class Place(NamedTuple):
    """Where the tables of a layer lie.

    arena: float [*], all tables. p_rows, q_rows: int64 [*], offsets of the rows of P and Q; beyond
    the own rows come those of exits to later layers, then a row of "seat a has won" and one of "no
    move". exits: int64 [E, 3], (offset of row 0 of P, of Q, columns) of each block that j can leave
    to. columns: length of a row buffer. nj: columns of this layer. zero: offset of a row of zeros.
    """

    arena: Array
    p_rows: Array
    q_rows: Array
    exits: Array
    columns: int
    nj: int
    zero: int


class Rows(NamedTuple):
    """The moves of seat a, by row.

    moves: uint [ni, 6, 4], rows reached, padded by repetition. counts: int8 [ni, 6], moves of each
    face. flags: int8 [ni, 6], bit 0 no move, bit 1 pass legal. hits: int8 [ni, 6, pieces], the
    field of b (its progress) that a move contests, or -1. losers: int32 [ni, 6, pieces], row after
    a lost battle. fields, minus: int8, int32 [ni, pieces], seat b's view of what j can take of i,
    and the row then. places: int8 [ni, pieces], own progress of the same. chances: float [ring, 3],
    win, tie and loss of a battle by the field of b. idle: float [ni], the chance of a throw below 6
    that moves nothing.
    """

    moves: Array
    counts: Array
    flags: Array
    hits: Array
    losers: Array
    fields: Array
    minus: Array
    places: Array
    chances: Array
    idle: Array


class Columns(NamedTuple):
    """The moves of seat b, by column.

    moves: uint [nj, 6, 4], columns reached (own columns, exits, won, no move). flags, idle: as in
    Rows. masks: int64 [nj], ring fields of j as bits (seat b's progress). hits: int8 [nj, 6, 4],
    the place of a (its progress) that a move contests, or 63. losers: uint [nj, 6, 4], column after
    a lost battle. chances: float [ring, 3], by the place of a. cell_starts: int64 [ring + 1],
    cells, cells_minus: columns that hold each field, and the column without that piece.
    """

    moves: Array
    flags: Array
    masks: Array
    hits: Array
    losers: Array
    chances: Array
    idle: Array
    cell_starts: Array
    cells: Array
    cells_minus: Array


class Work(NamedTuple):
    """Buffers of one thread: rows [nj], and row i with its exits [columns] of P and of Q.

    met_p, met_q: int64 [64], offset of the row that is left when b meets a on a place.
    """

    total: Array
    best: Array
    new: Array
    kept: Array
    buf_p: Array
    buf_q: Array
    met_p: Array
    met_q: Array


@fast
def make_work(place):
    """Return the buffers for a layer."""
    one = place.arena.dtype.type
    buf_p = np.empty(place.columns, place.arena.dtype)
    buf_q = np.empty(place.columns, place.arena.dtype)
    buf_p[place.columns - 2], buf_q[place.columns - 2] = one(0.0), one(1.0)
    buf_p[place.columns - 1], buf_q[place.columns - 1] = one(1.0), one(-1.0)
    return Work(
        np.empty(place.nj, place.arena.dtype), np.empty(place.nj, place.arena.dtype),
        np.empty(place.nj, place.arena.dtype), np.empty(place.nj, place.arena.dtype),
        buf_p, buf_q, np.zeros(64, np.int64), np.zeros(64, np.int64),
    )  # fmt: skip


@fast
def row_at(place, at):
    """Return the row of P or Q that lies at an offset."""
    return place.arena[at : at + place.nj]


# ---------------------------------------------------------------------------- seat a, whole rows


@fast
def least_of_rows(total, r0, r1, r2, r3, r4, keep, toll):
    """Subtract from ``total`` the least of five rows, the last being ``keep * r4 + toll``."""
    for j in range(len(total)):
        x = r0[j] if r0[j] < r1[j] else r1[j]
        y = r2[j] if r2[j] < r3[j] else r3[j]
        x = x if x < y else y
        z = keep * r4[j] + toll
        total[j] -= x if x < z else z


@fast
def close_row(new, total, r0, r1, r2, r3, idle, toll):
    """Finish a row: the sixth face, after which the same seat throws again.

    Where a 6 may pass without a move the value v obeys
    v = (total + max(best, (1 - 2 toll) v + toll)) / 6.
    """
    sixth, fifth = new.dtype.type(1.0 / 6.0), new.dtype.type(1.0) / (5 + 2 * toll)
    for j in range(len(new)):
        x = r0[j] if r0[j] > r1[j] else r1[j]
        y = r2[j] if r2[j] > r3[j] else r3[j]
        v = (total[j] + (x if x > y else y)) * sixth
        if idle:
            w = (total[j] + toll) * fifth
            v = v if v > w else w
        new[j] = v


@fast
def largest_change(new, old):
    """Return the largest absolute difference of two rows."""
    d = new.dtype.type(0.0)
    for j in range(len(new)):
        x = new[j] - old[j]
        x = x if x > 0 else -x
        d = x if x > d else d
    return d


@fast
def least_into(best, row):
    """Lower ``best`` to ``row`` where that is less."""
    for j in range(len(best)):
        best[j] = best[j] if best[j] < row[j] else row[j]


@fast
def most_into(best, row):
    """Raise ``best`` to ``row`` where that is more."""
    for j in range(len(best)):
        best[j] = best[j] if best[j] > row[j] else row[j]


@fast
def subtract(total, row):
    """Subtract a row."""
    for j in range(len(total)):
        total[j] -= row[j]


@fast
def tolled_row(best, row, toll):
    """Set ``best`` to a row of which twice ``toll`` is turned into draws."""
    keep = best.dtype.type(1.0) - 2 * toll
    for j in range(len(best)):
        best[j] = keep * row[j] + toll


@fast
def best_row(place, a, i, toll, w):
    """Write P[i, :] to ``w.new``: the best moves of seat a, captures without battles (R14)."""
    one = place.arena.dtype.type
    w.total[:] = one(5.0)
    for die in range(5):
        m, rows = a.moves[i, die], place.q_rows
        chosen = a.flags[i, die] == 2  # a pass by choice
        last = row_at(place, rows[i]) if chosen else row_at(place, rows[m[0]])
        least_of_rows(
            w.total, row_at(place, rows[m[0]]), row_at(place, rows[m[1]]),
            row_at(place, rows[m[2]]), row_at(place, rows[m[3]]), last,
            one(1.0) - 2 * toll if chosen else one(1.0), toll if chosen else one(0.0),
        )  # fmt: skip
    m, rows = a.moves[i, 5], place.p_rows
    close_row(
        w.new, w.total, row_at(place, rows[m[0]]), row_at(place, rows[m[1]]),
        row_at(place, rows[m[2]]), row_at(place, rows[m[3]]), a.flags[i, 5] != 0,
        toll if a.flags[i, 5] == 2 else one(0.0),
    )  # fmt: skip


@fast
def met_row(place, a, b, i, die, n, w):
    """Return the row of a move of seat a; where it meets a piece, the mean outcome (R18-R20)."""
    rows = place.q_rows if die < 5 else place.p_rows
    row = row_at(place, rows[a.moves[i, die, n]])
    q = a.hits[i, die, n]
    if q < 0:
        return row
    lost = row_at(place, rows[a.losers[i, die, n]])
    win, tie, loss = a.chances[q, 0], a.chances[q, 1], a.chances[q, 2]
    w.kept[:] = row
    for k in range(b.cell_starts[q], b.cell_starts[q + 1]):
        j, m = b.cells[k], b.cells_minus[k]
        w.kept[j] = win * row[m] + tie * lost[m] + loss * lost[j]
    return w.kept


@fast
def best_row_battles(place, a, b, i, toll, w):
    """Write P[i, :] to ``w.new``: the best moves of seat a, battles averaged."""
    one = place.arena.dtype.type
    w.total[:] = one(5.0)
    for die in range(5):
        if a.flags[i, die] != 0:
            own = row_at(place, place.q_rows[i])
            tolled_row(w.best, own, toll if a.flags[i, die] == 2 else one(0.0))
        else:
            w.best[:] = one(2.0)
        for n in range(a.counts[i, die]):
            least_into(w.best, met_row(place, a, b, i, die, n, w))
        subtract(w.total, w.best)
    w.best[:] = one(-1.0)
    for n in range(a.counts[i, 5]):
        most_into(w.best, met_row(place, a, b, i, 5, n, w))
    close_row(
        w.new, w.total, w.best, w.best, w.best, w.best, a.flags[i, 5] != 0,
        toll if a.flags[i, 5] == 2 else one(0.0),
    )  # fmt: skip


@fast
def add_chosen(total, sign, arena, offsets, codes, lowest, shares):
    """Add the values a policy reaches to ``total``: offsets int64 [5] of rows, codes uint8 [nj]."""
    for j in range(len(total)):
        c = codes[j]
        if c & (c - 1) == 0:  # one move
            total[j] += sign * arena[offsets[lowest[c]] + j]
        else:
            x = shares[0, c] * arena[offsets[0] + j] + shares[1, c] * arena[offsets[1] + j]
            x += shares[2, c] * arena[offsets[2] + j] + shares[3, c] * arena[offsets[3] + j]
            total[j] += sign * (x + shares[STAY, c] * arena[offsets[STAY] + j])


@fast
def correct_battles(total, sign, place, a, b, i, die, codes, shares):
    """Put the mean outcome in where a policy's moves meet a piece (R18-R20)."""
    rows = place.q_rows if die < 5 else place.p_rows
    for n in range(a.counts[i, die]):
        q = a.hits[i, die, n]
        if q < 0:
            continue
        row = row_at(place, rows[a.moves[i, die, n]])
        lost = row_at(place, rows[a.losers[i, die, n]])
        win, tie, loss = a.chances[q, 0], a.chances[q, 1], a.chances[q, 2]
        for k in range(b.cell_starts[q], b.cell_starts[q + 1]):
            j, m = b.cells[k], b.cells_minus[k]
            x = win * row[m] + tie * lost[m] + loss * lost[j]
            total[j] += sign * shares[n, codes[j]] * (x - row[j])


@fast
def shared_row(place, a, b, i, codes, shares, lowest, battles, w):
    """Write P[i, :] to ``w.new`` for a policy of seat a.

    Args:
        codes: uint8 [6, nj]. shares: float [5, 32], share of each move in each code. lowest: int8
            [32], the lowest bit of each code.
    """
    one = place.arena.dtype.type
    offsets = np.empty(5, np.int64)
    w.total[:] = one(5.0)
    for die in range(6):
        rows = place.q_rows if die < 5 else place.p_rows
        for n in range(4):
            offsets[n] = rows[a.moves[i, die, n]]
        offsets[STAY] = place.q_rows[i]
        sign = one(-1.0) if die < 5 else one(1.0)
        if die == 5:
            offsets[STAY] = place.zero
        add_chosen(w.total, sign, place.arena, offsets, codes[die], lowest, shares)
        if battles:
            correct_battles(w.total, sign, place, a, b, i, die, codes[die], shares)
    for j in range(place.nj):
        w.new[j] = w.total[j] / (one(6.0) - shares[STAY, codes[5, j]])


# ---------------------------------------------------------------------- between the two halves


@fast
def patch_captures(a, b, i, w):
    """Give cells of row i where both claim a field the value after i has captured there."""
    for n in range(a.fields.shape[1]):
        q = a.fields[i, n]
        if q >= 0:
            for k in range(b.cell_starts[q], b.cell_starts[q + 1]):
                w.new[b.cells[k]] = w.new[b.cells_minus[k]]


@fast
def level_clashes(place, a, b, i, w):
    """Give cells of row i where both claim a field 1/2: nobody asks for them."""
    half = place.arena.dtype.type(0.5)
    for n in range(a.fields.shape[1]):
        q = a.fields[i, n]
        if q >= 0:
            for k in range(b.cell_starts[q], b.cell_starts[q + 1]):
                w.new[b.cells[k]] = half


@fast
def note_meetings(place, a, i, w):
    """Note which row is left where b meets a; return a's places as bits."""
    taken = 0
    for n in range(a.fields.shape[1]):
        if a.fields[i, n] >= 0:
            at = a.places[i, n]
            taken |= 1 << at
            w.met_p[at] = place.p_rows[a.minus[i, n]]
            w.met_q[at] = place.q_rows[a.minus[i, n]]
    return taken


@fast
def claimed(a, i):
    """Return the ring fields of row i as bits of seat b's progress."""
    bits = 0
    for n in range(a.fields.shape[1]):
        if a.fields[i, n] >= 0:
            bits |= 1 << a.fields[i, n]
    return bits


@fast
def open_row(place, i, w):
    """Bring row i of P (in ``w.new``) and of Q with their exits into the buffers."""
    nj = place.nj
    w.buf_p[:nj] = w.new
    w.buf_q[:nj] = row_at(place, place.q_rows[i])
    at = nj
    for e in range(len(place.exits)):
        width = place.exits[e, 2]
        o = place.exits[e, 0] + i * width
        w.buf_p[at : at + width] = place.arena[o : o + width]
        o = place.exits[e, 1] + i * width
        w.buf_q[at : at + width] = place.arena[o : o + width]
        at += width


@fast
def open_captures(place, a, b, i, w):
    """Give cells of the buffers where both claim a field the value after j has captured there."""
    for n in range(a.fields.shape[1]):
        q = a.fields[i, n]
        if q >= 0:
            other_p = row_at(place, place.p_rows[a.minus[i, n]])
            other_q = row_at(place, place.q_rows[a.minus[i, n]])
            for k in range(b.cell_starts[q], b.cell_starts[q + 1]):
                w.buf_p[b.cells[k]] = other_p[b.cells[k]]
                w.buf_q[b.cells[k]] = other_q[b.cells[k]]


# -------------------------------------------------------------------- seat b, column by column
#
# These loops are given plain arrays: taking an array out of a tuple counts a reference, which is
# nothing for a row and much for a cell.


@inner
def settle_column(j, v, idle_a, idle_b, row_p, buf_p, buf_q):
    """Store Q[i, j]; where both seats may wait for each other's idle throws, P and Q at once."""
    both = idle_a * idle_b
    if both > 0:
        u = (v - both * buf_q[j]) / (buf_q.dtype.type(1.0) - both)
        buf_p[j] += idle_a * (buf_q[j] - u)
        row_p[j] = buf_p[j]
        v = u
    buf_q[j] = v


@inner
def after_six(s, x, flags, toll, buf):
    """Return the value of a throw: s from the faces below 6, x the best after a 6."""
    one = buf.dtype.type
    v = (s + x) * one(1.0 / 6.0)
    if flags != 0:
        u = (s + toll) / (one(5.0) + 2 * toll) if flags == 2 else s / one(5.0)
        v = v if v > u else u
    return v


@fast
def best_columns(moves, flags, masks, idle_b, idle_a, taken, toll, row_p, buf_p, buf_q):
    """Write Q[i, :] to ``buf_q``: the best moves of seat b, captures without battles (R14)."""
    one = buf_p.dtype.type
    keep = one(1.0) - 2 * toll
    for j in range(len(row_p) - 1, -1, -1):
        if masks[j] & taken != 0:
            continue
        s = one(5.0)
        for die in range(5):
            x, y = buf_p[moves[j, die, 0]], buf_p[moves[j, die, 1]]
            z, u = buf_p[moves[j, die, 2]], buf_p[moves[j, die, 3]]
            x = x if x < y else y
            z = z if z < u else u
            x = x if x < z else z
            if flags[j, die] == 2:
                y = keep * buf_p[j] + toll
                x = x if x < y else y
            s -= x
        x, y = buf_q[moves[j, 5, 0]], buf_q[moves[j, 5, 1]]
        z, u = buf_q[moves[j, 5, 2]], buf_q[moves[j, 5, 3]]
        x = x if x > y else y
        z = z if z > u else u
        x = x if x > z else z
        v = after_six(s, x, flags[j, 5], toll, buf_q)
        settle_column(j, v, idle_a, idle_b[j], row_p, buf_p, buf_q)


@inner
def met_cell(arena, met, buf, moves, losers, hits, chances, j, die, n, taken):
    """Return the value of a move of seat b; where it meets a piece, the mean outcome (R18-R20)."""
    q, t = hits[j, die, n], moves[j, die, n]
    if (taken >> q) & 1 == 0:
        return buf[t]
    m, u = met[q], losers[j, die, n]
    return (
        chances[q, 0] * arena[m + t] + chances[q, 1] * arena[m + u] + chances[q, 2] * buf[u]
    )  # fmt: skip


@fast
def best_columns_battles(
    arena, met_p, met_q, moves, losers, hits, chances, flags, masks, idle_b, idle_a, taken, clash,
    toll, row_p, buf_p, buf_q,
):
    """Write Q[i, :] to ``buf_q``: the best moves of seat b, battles averaged."""
    one = buf_p.dtype.type
    keep = one(1.0) - 2 * toll
    for j in range(len(row_p) - 1, -1, -1):
        if masks[j] & clash != 0:
            continue
        s = one(5.0)
        for die in range(5):
            x = one(2.0)
            if flags[j, die] == 2:
                x = keep * buf_p[j] + toll
            elif flags[j, die] != 0:
                x = buf_p[j]
            for n in range(4):
                v = met_cell(
                    arena, met_p, buf_p, moves, losers, hits, chances, j, die, n, taken
                )
                x = x if x < v else v
            s -= x
        x = one(-1.0)
        for n in range(4):
            v = met_cell(arena, met_q, buf_q, moves, losers, hits, chances, j, 5, n, taken)
            x = x if x > v else v
        v = after_six(s, x, flags[j, 5], toll, buf_q)
        settle_column(j, v, idle_a, idle_b[j], row_p, buf_p, buf_q)


@inner
def chosen_cell(buf, moves, j, die, c, lowest, shares, stay):
    """Return the value of seat b's throw under a policy; ``stay`` is that of not moving."""
    if c & (c - 1) == 0:
        return stay if c == 1 << STAY else buf[moves[j, die, lowest[c]]]
    return (
        shares[0, c] * buf[moves[j, die, 0]] + shares[1, c] * buf[moves[j, die, 1]]
        + shares[2, c] * buf[moves[j, die, 2]] + shares[3, c] * buf[moves[j, die, 3]]
        + shares[STAY, c] * stay
    )  # fmt: skip


@fast
def shared_columns(codes, shares, lowest, moves, masks, idle_b, idle_a, taken, row_p, buf_p, buf_q):
    """Write Q[i, :] to ``buf_q`` for a policy of seat b: codes uint8 [nj, 6]."""
    one = buf_p.dtype.type
    for j in range(len(row_p) - 1, -1, -1):
        if masks[j] & taken != 0:
            continue
        s, here = one(5.0), buf_p[j]
        for die in range(5):
            s -= chosen_cell(buf_p, moves, j, die, codes[j, die], lowest, shares, here)
        s += chosen_cell(buf_q, moves, j, 5, codes[j, 5], lowest, shares, one(0.0))
        v = s / (one(6.0) - shares[STAY, codes[j, 5]])
        settle_column(j, v, idle_a, idle_b[j], row_p, buf_p, buf_q)


@inner
def chosen_battle(
    arena, met, buf, moves, losers, hits, chances, j, die, c, taken, lowest, shares, stay
):
    """Return the value of seat b's throw under a policy, battles averaged."""
    if c & (c - 1) == 0:
        if c == 1 << STAY:
            return stay
        return met_cell(arena, met, buf, moves, losers, hits, chances, j, die, lowest[c], taken)
    x = shares[STAY, c] * stay
    for n in range(4):
        if (c >> n) & 1 != 0:
            v = met_cell(arena, met, buf, moves, losers, hits, chances, j, die, n, taken)
            x += shares[n, c] * v
    return x


@fast
def shared_columns_battles(
    codes, shares, lowest, arena, met_p, met_q, moves, losers, hits, chances, masks, idle_b, idle_a,
    taken, clash, row_p, buf_p, buf_q,
):
    """Write Q[i, :] to ``buf_q`` for a policy of seat b, battles averaged."""
    one = buf_p.dtype.type
    for j in range(len(row_p) - 1, -1, -1):
        if masks[j] & clash != 0:
            continue
        s, here = one(5.0), buf_p[j]
        for die in range(5):
            s -= chosen_battle(
                arena, met_p, buf_p, moves, losers, hits, chances, j, die, codes[j, die], taken,
                lowest, shares, here,
            )  # fmt: skip
        s += chosen_battle(
            arena, met_q, buf_q, moves, losers, hits, chances, j, 5, codes[j, 5], taken, lowest,
            shares, one(0.0),
        )  # fmt: skip
        v = s / (one(6.0) - shares[STAY, codes[j, 5]])
        settle_column(j, v, idle_a, idle_b[j], row_p, buf_p, buf_q)


# --------------------------------------------------------------------------------- whole sweeps


@fast
def sweep_plain(place, a, b, toll, first, last):
    """One sweep over rows ``last - 1`` down to ``first``, captures without battles (R14).

    Args:
        place: Place. a: Rows. b: Columns.
        toll: half the chance that a pass by choice ends the game as a draw (0 in the real game).

    Returns:
        The largest change of a value.
    """
    toll = place.arena.dtype.type(toll)
    w = make_work(place)
    change = place.arena.dtype.type(0.0)
    for i in range(last - 1, first - 1, -1):
        best_row(place, a, i, toll, w)
        patch_captures(a, b, i, w)
        row = row_at(place, place.p_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
        open_row(place, i, w)
        open_captures(place, a, b, i, w)
        best_columns(
            b.moves, b.flags, b.masks, b.idle, a.idle[i], claimed(a, i), toll, row, w.buf_p, w.buf_q
        )
        w.new[:] = w.buf_q[: place.nj]
        patch_captures(a, b, i, w)
        row = row_at(place, place.q_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
    return change


@fast
def sweep_battles(place, a, b, toll, first, last):
    """One sweep like ``sweep_plain``, where landing on the other seat is a battle (R18-R20)."""
    toll = place.arena.dtype.type(toll)
    w = make_work(place)
    change = place.arena.dtype.type(0.0)
    for i in range(last - 1, first - 1, -1):
        best_row_battles(place, a, b, i, toll, w)
        level_clashes(place, a, b, i, w)
        row = row_at(place, place.p_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
        open_row(place, i, w)
        taken = note_meetings(place, a, i, w)
        best_columns_battles(
            place.arena, w.met_p, w.met_q, b.moves, b.losers, b.hits, b.chances, b.flags, b.masks,
            b.idle, a.idle[i], taken, claimed(a, i), toll, row, w.buf_p, w.buf_q,
        )  # fmt: skip
        w.new[:] = w.buf_q[: place.nj]
        row = row_at(place, place.q_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
    return change


@fast
def sweep_players(
    place, a, b, kind_a, kind_b, codes_a, codes_b, shares, lowest, battles, toll, first, last
):
    """One sweep where each seat may follow a policy instead of the best moves.

    Args:
        kind_a, kind_b: BEST or FIXED.
        codes_a: uint8 [ni, 6, nj], codes_b: uint8 [ni, nj, 6], policies (not read for BEST).
        shares: float [5, 32], the share of each move (and STAY) in each code; lowest: int8 [32].
        battles: landing on the other seat is a battle.
    """
    toll = place.arena.dtype.type(toll)
    w = make_work(place)
    change = place.arena.dtype.type(0.0)
    for i in range(last - 1, first - 1, -1):
        if kind_a == FIXED:
            shared_row(place, a, b, i, codes_a[i], shares, lowest, battles, w)
        elif battles:
            best_row_battles(place, a, b, i, toll, w)
        else:
            best_row(place, a, i, toll, w)
        taken = clash = claimed(a, i)
        if battles:
            level_clashes(place, a, b, i, w)
            taken = note_meetings(place, a, i, w)
        else:
            patch_captures(a, b, i, w)
        row = row_at(place, place.p_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
        open_row(place, i, w)
        if not battles:
            open_captures(place, a, b, i, w)
        if kind_b == FIXED and battles:
            shared_columns_battles(
                codes_b[i], shares, lowest, place.arena, w.met_p, w.met_q, b.moves, b.losers,
                b.hits, b.chances, b.masks, b.idle, a.idle[i], taken, clash, row, w.buf_p, w.buf_q,
            )  # fmt: skip
        elif kind_b == FIXED:
            shared_columns(
                codes_b[i], shares, lowest, b.moves, b.masks, b.idle, a.idle[i], clash, row,
                w.buf_p, w.buf_q,
            )  # fmt: skip
        elif battles:
            best_columns_battles(
                place.arena, w.met_p, w.met_q, b.moves, b.losers, b.hits, b.chances, b.flags,
                b.masks, b.idle, a.idle[i], taken, clash, toll, row, w.buf_p, w.buf_q,
            )  # fmt: skip
        else:
            best_columns(
                b.moves, b.flags, b.masks, b.idle, a.idle[i], clash, toll, row, w.buf_p, w.buf_q
            )
        w.new[:] = w.buf_q[: place.nj]
        if not battles:
            patch_captures(a, b, i, w)
        row = row_at(place, place.q_rows[i])
        change = max(change, largest_change(w.new, row))
        row[:] = w.new
    return change
