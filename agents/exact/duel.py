"""The compiled sweep for play that is not perfect on both sides: duels, best responses, counts.

It works on the same layers and tables as ``kernels.py`` but looks at every position by itself, so
each seat may follow a policy of its own:

* ``FIXED``: the moves in ``choices`` uint8 [ni, nj, 6]: index of the move, or ``PASS``.
* ``BEST``: the best move against what the other seat does (perfect play, or a best response).
* ``UNIFORM``: every legal move other than pass alike.

What is summed is ``flip + sign * value of the other seat``: (1, -1) for win chances, (0, 1) with
``reward`` 1 for the number of throws to come.
"""

from __future__ import annotations

import numpy as np

from agents.exact.compiling import fast

FIXED, BEST, UNIFORM = 0, 1, 2
PASS = 255


@fast
def piece_on(fields, field):
    """Return the index of the piece that stands on ``field``."""
    for n in range(len(fields)):
        if fields[n] == field:
            return n
    return -1


@fast
def asked(kind, count, chosen):
    """Return which moves a policy needs the values of, as a range."""
    if kind != FIXED or count == 0:
        return 0, count
    return (0, 0) if chosen == PASS else (chosen, chosen + 1)


@fast
def settle(kind, values, count, may_pass, stay, chosen):
    """Return the value of a throw under a policy, and the move (PASS for none).

    Args:
        values: of the ``count`` moves.
        stay: value of passing, or of a throw without a move.
        chosen: the move of a FIXED policy.
    """
    if count == 0:
        return stay, PASS
    if kind == FIXED:
        return (stay, PASS) if chosen == PASS else (values[chosen], chosen)
    if kind == UNIFORM:
        total = 0.0
        for n in range(count):
            total += values[n]
        return total / count, 0
    best, move = values[0], 0
    for n in range(1, count):
        if values[n] > best:
            best, move = values[n], n
    if may_pass and stay > best:
        return stay, PASS
    return best, move


@fast
def throw_of_a(
    arena, rows, i, j, die, flip, sign, own, a_moves, a_hits, a_losers, a_chances, b_masks,
    b_fields, b_minus, low, high, values,
):
    """Write the value for seat a of its moves low..high-1 of a face to ``values``."""
    for n in range(low, high):
        row = rows[a_moves[i, die, n]]
        q = a_hits[i, die, n]
        if q >= 0 and (b_masks[j] >> q) & 1 != 0:
            m = b_minus[j, piece_on(b_fields[j], q)]
            lost = rows[a_losers[i, die, n]]
            x = (
                a_chances[q, 0] * arena[row + m] + a_chances[q, 1] * arena[lost + m]
                + a_chances[q, 2] * arena[lost + j]
            )
        else:
            x = arena[row + j]
        values[n] = x if own else flip + sign * x


@fast
def throw_of_b(
    arena, base, width, rows, i, j, die, flip, sign, own, taken, b_moves, b_hits, b_losers,
    b_chances, a_fields, a_minus, low, high, values,
):
    """Write the value for seat b of its moves low..high-1 of a face to ``values``.

    Args:
        base, width: int64 [columns], where column c of row i lies: base[c] + i * width[c].
    """
    for n in range(low, high):
        c = b_moves[j, die, n]
        q = b_hits[j, die, n]
        if q >= 0 and (taken >> q) & 1 != 0:
            row = rows[a_minus[i, piece_on(a_fields[i], q)]]
            u = b_losers[j, die, n]
            x = (
                b_chances[q, 0] * arena[row + c] + b_chances[q, 1] * arena[row + u]
                + b_chances[q, 2] * arena[rows[i] + u]
            )
        else:
            x = arena[base[c] + i * width[c]]
        values[n] = x if own else flip + sign * x


@fast
def sweep_duel(
    arena, p_rows, q_rows, p_base, q_base, width, ni, nj,
    a_moves, a_counts, a_flags, a_hits, a_losers, a_chances, a_fields, a_minus, a_clash,
    b_moves, b_counts, b_flags, b_hits, b_losers, b_chances, b_fields, b_minus, b_masks,
    kind_a, kind_b, choices_a, choices_b, record, flip, sign, reward, clear, passes, first, last,
):
    """One sweep over rows ``last - 1`` down to ``first``; returns the largest change of a value.

    Args:
        a_fields, b_fields: int8 [*, pieces], own progress of pieces that the other can meet, or -1.
        a_clash: int64 [ni], ring fields of i as bits of seat b's progress.
        record: write the moves of BEST policies to the choices, do not change the tables.
        passes: int64 [2], counts the throws looked at and, with ``record``, those where passing is
            better than any move by more than ``clear``.
    """
    values = np.empty(8, np.float64)
    change = 0.0
    for i in range(last - 1, first - 1, -1):
        taken = 0
        for n in range(a_fields.shape[1]):
            if a_fields[i, n] >= 0:
                taken |= 1 << a_fields[i, n]
        for j in range(nj - 1, -1, -1):
            if b_masks[j] & a_clash[i] != 0:
                continue
            for side in range(2):
                old = arena[p_rows[i] + j] if side == 0 else arena[q_rows[i] + j]
                total, loop = 6.0 * reward, 0.0
                for die in range(6):
                    own = die == 5
                    if side == 0:
                        rows = p_rows if own else q_rows
                        count, flags, kind = a_counts[i, die], a_flags[i, die], kind_a
                        chosen = choices_a[i, j, die] if kind == FIXED else 0
                        low, high = asked(kind, count, chosen)
                        throw_of_a(
                            arena, rows, i, j, die, flip, sign, own, a_moves, a_hits, a_losers,
                            a_chances, b_masks, b_fields, b_minus, low, high, values,
                        )
                        across = arena[q_rows[i] + j]
                    else:
                        rows = q_rows if own else p_rows
                        base = q_base if own else p_base
                        count, flags, kind = b_counts[j, die], b_flags[j, die], kind_b
                        chosen = choices_b[i, j, die] if kind == FIXED else 0
                        low, high = asked(kind, count, chosen)
                        throw_of_b(
                            arena, base, width, rows, i, j, die, flip, sign, own, taken, b_moves,
                            b_hits, b_losers, b_chances, a_fields, a_minus, low, high, values,
                        )
                        across = arena[p_rows[i] + j]
                    stay = old if own else flip + sign * across
                    v, move = settle(kind, values, count, flags & 2 != 0, stay, chosen)
                    passes[0] += 1
                    if record and kind == BEST:
                        if side == 0:
                            choices_a[i, j, die] = move
                        else:
                            choices_b[i, j, die] = move
                        if count > 0 and move == PASS:
                            top = values[0]
                            for n in range(1, count):
                                top = max(top, values[n])
                            passes[1] += stay - top > clear
                    if own and move == PASS:
                        loop = 1.0  # v = (total + v) / 6
                    else:
                        total += v
                new = total / (6.0 - loop)
                if record:
                    continue
                d = abs(new - old)
                change = max(change, d)
                if side == 0:
                    arena[p_rows[i] + j] = new
                else:
                    arena[q_rows[i] + j] = new
    return change


@fast
def list_decisions(i, first, last, die, side, counts, flags, b_masks, a_clash, out_j):
    """Write the columns of row i in which a side has a choice for a face; return their number."""
    n = 0
    for j in range(first, last):
        if b_masks[j] & a_clash[i] != 0:
            continue
        k = i if side == 0 else j
        if counts[k, die] + (flags[k, die] >> 1) > 1:
            out_j[n] = j
            n += 1
    return n


@fast
def set_up_decisions(states, seat_a, seat_b, seat, die, config_a, configs_b, columns):
    """Write positions with a die thrown: row configuration against the given columns."""
    pieces = configs_b.shape[1]
    for n in range(len(columns)):
        for k in range(pieces):
            states[n]["pieces"][seat_a, k] = config_a[k]
            states[n]["pieces"][seat_b, k] = configs_b[columns[n], k]
        states[n]["seat"] = seat
        states[n]["die"] = die + 1
        states[n]["last_seat"] = seat
        states[n]["last_die"] = die + 1


@fast
def note_choices(choices, i, die, side, columns, actions, codes, pass_action):
    """Turn the actions an agent chose into indices of moves."""
    for n in range(len(columns)):
        k = i if side == 0 else columns[n]
        choice = PASS
        if actions[n] != pass_action:
            for m in range(codes.shape[2]):
                if codes[k, die, m] == actions[n]:
                    choice = m
        choices[i, columns[n], die] = choice
