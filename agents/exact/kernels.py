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
"""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast


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
def patch_rows(best, row, lost_row, cells, minus, win, tie, loss, upper, kept):
    """Fold one move into ``best``, where in ``cells`` the move meets a piece (R14, R18-R20)."""
    for k in range(len(cells)):
        j, m = cells[k], minus[k]
        v = win * row[m] + tie * lost_row[m] + loss * lost_row[j]
        if upper:
            kept[k] = best[j] if best[j] > v else v
        else:
            kept[k] = best[j] if best[j] < v else v
    if upper:
        for j in range(len(best)):
            best[j] = best[j] if best[j] > row[j] else row[j]
    else:
        for j in range(len(best)):
            best[j] = best[j] if best[j] < row[j] else row[j]
    for k in range(len(cells)):
        best[cells[k]] = kept[k]


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
def sweep_plain(
    arena, p_rows, q_rows, ni, nj, a_moves, a_flags, a_fields, a_minus, b_moves, b_flags, b_masks,
    cell_starts, cells, cells_minus, exits, columns, a_idle, b_idle, toll, first, last,
):
    """One sweep over rows ``last - 1`` down to ``first``, captures without battles (R14).

    Args:
        arena: float [*], all tables.
        p_rows, q_rows: int64 [*], offsets of the rows of P and Q; beyond the ni own rows come
            those of exits to later layers, then a row of "seat a has won" and one of "no move".
        a_moves: uint [ni, 6, 4], rows reached, padded by repetition.
        a_flags: int8 [ni, 6], bit 0 no move, bit 1 pass legal.
        a_fields, a_minus: int8, int32 [ni, pieces], seat b's view of what j can take of i, and the
            row then.
        b_moves: uint [nj, 6, 4], columns reached (own columns, exits, won, no move).
        b_masks: int64 [nj], ring fields of j as bits (seat b's progress).
        cell_starts: int64 [ring + 1], cells, cells_minus: columns that hold each field, and the
            column without that piece.
        exits: int64 [E, 3], (offset of row 0 of P, of Q, columns) of each block j can leave to.
        columns: length of a row buffer.
        a_idle, b_idle: float [ni], [nj], the chance of a throw below 6 that moves nothing.
        toll: half the chance that a pass by choice ends the game as a draw (0 in the real game).
        first, last: the rows to visit.

    Returns:
        The largest change of a value.
    """
    one = arena.dtype.type
    total = np.empty(nj, arena.dtype)
    new = np.empty(nj, arena.dtype)
    buf_p = np.empty(columns, arena.dtype)
    buf_q = np.empty(columns, arena.dtype)
    sixth, five, toll = one(1.0 / 6.0), one(5.0), one(toll)
    keep = one(1.0) - 2 * toll
    buf_p[columns - 2], buf_q[columns - 2] = one(0.0), one(1.0)
    buf_p[columns - 1], buf_q[columns - 1] = one(1.0), one(-1.0)
    pieces = a_fields.shape[1]
    change = one(0.0)
    for i in range(last - 1, first - 1, -1):
        row_p = arena[p_rows[i] : p_rows[i] + nj]
        row_q = arena[q_rows[i] : q_rows[i] + nj]
        total[:] = five
        for die in range(5):
            o0, o1 = q_rows[a_moves[i, die, 0]], q_rows[a_moves[i, die, 1]]
            o2, o3 = q_rows[a_moves[i, die, 2]], q_rows[a_moves[i, die, 3]]
            chosen = a_flags[i, die] == 2  # a pass by choice
            o4 = q_rows[i] if chosen else o0
            least_of_rows(
                total, arena[o0 : o0 + nj], arena[o1 : o1 + nj], arena[o2 : o2 + nj],
                arena[o3 : o3 + nj], arena[o4 : o4 + nj], keep if chosen else one(1.0),
                toll if chosen else one(0.0),
            )
        o0, o1 = p_rows[a_moves[i, 5, 0]], p_rows[a_moves[i, 5, 1]]
        o2, o3 = p_rows[a_moves[i, 5, 2]], p_rows[a_moves[i, 5, 3]]
        close_row(
            new, total, arena[o0 : o0 + nj], arena[o1 : o1 + nj], arena[o2 : o2 + nj],
            arena[o3 : o3 + nj], a_flags[i, 5] != 0, toll if a_flags[i, 5] == 2 else one(0.0),
        )
        taken = 0
        for n in range(pieces):
            q = a_fields[i, n]
            if q >= 0:
                taken |= 1 << q
                for k in range(cell_starts[q], cell_starts[q + 1]):
                    new[cells[k]] = new[cells_minus[k]]
        d = largest_change(new, row_p)
        change = d if d > change else change
        row_p[:] = new
        buf_p[:nj] = new
        buf_q[:nj] = row_q
        at = nj
        for e in range(len(exits)):
            width = exits[e, 2]
            o = exits[e, 0] + i * width
            buf_p[at : at + width] = arena[o : o + width]
            o = exits[e, 1] + i * width
            buf_q[at : at + width] = arena[o : o + width]
            at += width
        for n in range(pieces):
            q = a_fields[i, n]
            if q >= 0:
                other_p = arena[p_rows[a_minus[i, n]] : p_rows[a_minus[i, n]] + nj]
                other_q = arena[q_rows[a_minus[i, n]] : q_rows[a_minus[i, n]] + nj]
                for k in range(cell_starts[q], cell_starts[q + 1]):
                    buf_p[cells[k]] = other_p[cells[k]]
                    buf_q[cells[k]] = other_q[cells[k]]
        idle = a_idle[i]
        for j in range(nj - 1, -1, -1):
            if b_masks[j] & taken != 0:
                continue
            s = five
            for die in range(5):
                x, y = buf_p[b_moves[j, die, 0]], buf_p[b_moves[j, die, 1]]
                z, w = buf_p[b_moves[j, die, 2]], buf_p[b_moves[j, die, 3]]
                x = x if x < y else y
                z = z if z < w else w
                x = x if x < z else z
                if b_flags[j, die] == 2:
                    y = keep * buf_p[j] + toll
                    x = x if x < y else y
                s -= x
            x, y = buf_q[b_moves[j, 5, 0]], buf_q[b_moves[j, 5, 1]]
            z, w = buf_q[b_moves[j, 5, 2]], buf_q[b_moves[j, 5, 3]]
            x = x if x > y else y
            z = z if z > w else w
            x = x if x > z else z
            v = (s + x) * sixth
            if b_flags[j, 5] != 0:
                w = (s + toll) / (five + 2 * toll) if b_flags[j, 5] == 2 else s / five
                v = v if v > w else w
            both = idle * b_idle[j]
            if both > 0:  # two seats that wait for each other's idle throws: P and Q at once
                w = (v - both * buf_q[j]) / (one(1.0) - both)
                buf_p[j] += idle * (buf_q[j] - w)
                row_p[j] = buf_p[j]
                v = w
            buf_q[j] = v
        new[:] = buf_q[:nj]
        for n in range(pieces):
            q = a_fields[i, n]
            if q >= 0:
                for k in range(cell_starts[q], cell_starts[q + 1]):
                    new[cells[k]] = new[cells_minus[k]]
        d = largest_change(new, row_q)
        change = d if d > change else change
        row_q[:] = new
    return change


@fast
def sweep_battles(
    arena, p_rows, q_rows, ni, nj, a_moves, a_counts, a_flags, a_hits, a_losers, a_fields, a_minus,
    a_places, a_chances, b_moves, b_flags, b_masks, b_hits, b_losers, b_chances, cell_starts, cells,
    cells_minus, exits, columns, a_idle, b_idle, toll, first, last,
):
    """One sweep like ``sweep_plain``, where landing on the other seat is a battle (R18-R20).

    Further Args:
        a_counts: int8 [ni, 6], moves of each face.
        a_hits: int8 [ni, 6, 4], the field of b (its progress) that a move contests, or -1.
        a_losers: int32 [ni, 6, 4], row after a lost battle.
        a_places: int8 [ni, pieces], own progress of each piece that b can meet, or -1.
        a_chances: float [ring, 3], win, tie and loss by the field of b that is contested.
        b_hits: int8 [nj, 6, 4], the place of a (its progress) that a move contests, or 63.
        b_losers: uint [nj, 6, 4], column after a lost battle.
        b_chances: float [ring, 3], by the place of a.
    """
    one = arena.dtype.type
    total = np.empty(nj, arena.dtype)
    best = np.empty(nj, arena.dtype)
    new = np.empty(nj, arena.dtype)
    kept = np.empty(nj, arena.dtype)
    buf_p = np.empty(columns, arena.dtype)
    buf_q = np.empty(columns, arena.dtype)
    sixth, five, half, toll = one(1.0 / 6.0), one(5.0), one(0.5), one(toll)
    keep = one(1.0) - 2 * toll
    buf_p[columns - 2], buf_q[columns - 2] = one(0.0), one(1.0)
    buf_p[columns - 1], buf_q[columns - 1] = one(1.0), one(-1.0)
    met_p = np.zeros(64, np.int64)
    met_q = np.zeros(64, np.int64)
    pieces = a_fields.shape[1]
    change = one(0.0)
    for i in range(last - 1, first - 1, -1):
        row_p = arena[p_rows[i] : p_rows[i] + nj]
        row_q = arena[q_rows[i] : q_rows[i] + nj]
        total[:] = five
        for die in range(6):
            rows = q_rows if die < 5 else p_rows
            if a_flags[i, die] != 0 and die < 5:
                best[:] = row_q
                if a_flags[i, die] == 2:  # a pass by choice
                    for j in range(nj):
                        best[j] = keep * best[j] + toll
            else:
                best[:] = one(2.0) if die < 5 else one(-1.0)
            for n in range(a_counts[i, die]):
                o = rows[a_moves[i, die, n]]
                row = arena[o : o + nj]
                q = a_hits[i, die, n]
                if q >= 0:
                    o = rows[a_losers[i, die, n]]
                    patch_rows(
                        best, row, arena[o : o + nj], cells[cell_starts[q] : cell_starts[q + 1]],
                        cells_minus[cell_starts[q] : cell_starts[q + 1]], a_chances[q, 0],
                        a_chances[q, 1], a_chances[q, 2], die == 5, kept,
                    )
                elif die == 5:
                    for j in range(nj):
                        best[j] = best[j] if best[j] > row[j] else row[j]
                else:
                    for j in range(nj):
                        best[j] = best[j] if best[j] < row[j] else row[j]
            if die < 5:
                for j in range(nj):
                    total[j] -= best[j]
        close_row(
            new, total, best, best, best, best, a_flags[i, 5] != 0,
            toll if a_flags[i, 5] == 2 else one(0.0),
        )
        taken, clash = 0, 0
        for n in range(pieces):
            q = a_fields[i, n]
            if q >= 0:
                clash |= 1 << q
                place = a_places[i, n]
                taken |= 1 << place
                met_p[place] = p_rows[a_minus[i, n]]
                met_q[place] = q_rows[a_minus[i, n]]
                for k in range(cell_starts[q], cell_starts[q + 1]):
                    new[cells[k]] = half
        d = largest_change(new, row_p)
        change = d if d > change else change
        row_p[:] = new
        buf_p[:nj] = new
        buf_q[:nj] = row_q
        at = nj
        for e in range(len(exits)):
            width = exits[e, 2]
            o = exits[e, 0] + i * width
            buf_p[at : at + width] = arena[o : o + width]
            o = exits[e, 1] + i * width
            buf_q[at : at + width] = arena[o : o + width]
            at += width
        idle = a_idle[i]
        for j in range(nj - 1, -1, -1):
            if b_masks[j] & clash != 0:
                continue
            s = five
            for die in range(5):
                x = one(2.0)
                if b_flags[j, die] == 2:
                    x = keep * buf_p[j] + toll
                elif b_flags[j, die] != 0:
                    x = buf_p[j]
                for n in range(4):
                    q = b_hits[j, die, n]
                    t = b_moves[j, die, n]
                    if (taken >> q) & 1 != 0:
                        m, u = met_p[q], b_losers[j, die, n]
                        v = (
                            b_chances[q, 0] * arena[m + t] + b_chances[q, 1] * arena[m + u]
                            + b_chances[q, 2] * buf_p[u]
                        )
                    else:
                        v = buf_p[t]
                    x = x if x < v else v
                s -= x
            x = one(-1.0)
            for n in range(4):
                q = b_hits[j, 5, n]
                t = b_moves[j, 5, n]
                if (taken >> q) & 1 != 0:
                    m, u = met_q[q], b_losers[j, 5, n]
                    v = (
                        b_chances[q, 0] * arena[m + t] + b_chances[q, 1] * arena[m + u]
                        + b_chances[q, 2] * buf_q[u]
                    )
                else:
                    v = buf_q[t]
                x = x if x > v else v
            v = (s + x) * sixth
            if b_flags[j, 5] != 0:
                w = (s + toll) / (five + 2 * toll) if b_flags[j, 5] == 2 else s / five
                v = v if v > w else w
            both = idle * b_idle[j]
            if both > 0:  # two seats that wait for each other's idle throws: P and Q at once
                w = (v - both * buf_q[j]) / (one(1.0) - both)
                buf_p[j] += idle * (buf_q[j] - w)
                row_p[j] = buf_p[j]
                v = w
            buf_q[j] = v
        new[:] = buf_q[:nj]
        d = largest_change(new, row_q)
        change = d if d > change else change
        row_q[:] = new
    return change
