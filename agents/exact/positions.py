"""Compiled passes over a layer that look at every position by itself, for all three rule sets.

``kernels.py`` is quicker and knows Kimble and Kombat only. Here are

* ``sweep_positions``: values of perfect play or policies; how Norske is solved and played out;
* ``record``: the perfect moves of a solved layer, written down as a policy;
* ``improve``: a policy changed where another choice is better; ``confine``: where a seat can keep
  the game going for ever;
* ``push``: how often policies visit each position, starting from given masses;
* ``tally``: what the visits cost and how much luck was in them, by the values of perfect play.

What differs in Norske: batteries (several own pieces on one field, R25), so a configuration is a
multiset; own and protected pieces in the way may cost the mover or an own unit (R28-R31), so pieces
fall back even from the stretch and layers go by pieces home only; and a turn that starts with
nothing in play has three throws (R23). Whether the other seat has a piece on its own start (its
*guard*) decides which moves are legal, nothing else about it does; so moves are kept per guard.

Tables P and Q, the arena and policies are those of ``kernels.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.exact.compiling import fast, inner
from agents.exact.kernels import BEST, FIXED, STAY
from kimble_env.features import best_actions, weights_plan
from kimble_env.kernel import legal_actions

STAY_CODE = 1 << STAY
NEVER = 1e-9
"""A smaller chance that a move follows counts as none."""
PASS_KIND, ENTER_KIND, CAPTURE_KIND, STRETCH_KIND, START_KIND, INSIDE_KIND, RUN_KIND = range(7)
KINDS = ("pass", "enter", "capture", "to_stretch", "leave_start", "in_stretch", "run")
SUMS = (
    "turns", "throws", "decisions", "loss", "throw_luck", "battle_luck", "passes", "pass_best",
)  # fmt: skip
S_TURNS, S_THROWS, S_DECISIONS, S_LOSS, S_LUCK, S_BATTLES, S_PASSES, S_PASS_BEST = range(8)

Array = Any


class Where(NamedTuple):
    """Where the tables of a layer lie: see ``kernels.Place`` and ``Layer.column_places``."""

    arena: Array
    p_rows: Array
    q_rows: Array
    p_base: Array
    q_base: Array
    width: Array


class Seat(NamedTuple):
    """The moves of one seat, by configuration.

    moves: int [N, guards, 6, pieces], configuration reached. counts: int8 [N, guards, 6]. hits:
    int8 [N, guards, 6, pieces], progress of the other seat that a move contests, or -1. losers:
    int32, as moves, configuration after a lost battle. may_pass: int8 [N, 6]. tries: int8 [N],
    throws of a turn. fields, minus: int8, int32 [N, pieces], own progress of each unit that can be
    taken, and the configuration then. guard: int8 [N], index into the other seat's guards. masks,
    seen: int64 [N], own ring fields as bits of the own and of the other seat's progress. codes:
    int8 [N, guards, 6, pieces], actions. chances: float64 [ring, 3], by the other's progress.
    """

    moves: Array
    counts: Array
    hits: Array
    losers: Array
    may_pass: Array
    tries: Array
    fields: Array
    minus: Array
    guard: Array
    masks: Array
    seen: Array
    codes: Array
    chances: Array


# ------------------------------------------------------------------------- where one move leads


@inner
def unit_on(fields, i, field):
    """Return the index of the unit of configuration i that stands on ``field``."""
    for n in range(fields.shape[1]):
        if fields[i, n] == field:
            return n
    return -1


@inner
def row_of(own, across, again, k):
    """Return where row k lies in the table of who throws next: the own one if it throws again."""
    return own[k] if again else across[k]


@inner
def reach_a(where, a, b, i, j, g, die, n, at, part):
    """Write where move n of seat a leads (offsets, chances); return how many places that is."""
    p_rows, q_rows = where.p_rows, where.q_rows
    row, q = row_of(p_rows, q_rows, die == 5, a.moves[i, g, die, n]), a.hits[i, g, die, n]
    if q < 0 or (b.masks[j] >> q) & 1 == 0:
        at[0], part[0] = row + j, 1.0
        return 1
    m = b.minus[j, unit_on(b.fields, j, q)]
    lost = row_of(p_rows, q_rows, die == 5, a.losers[i, g, die, n])
    at[0], at[1], at[2] = row + m, lost + m, lost + j
    part[0], part[1], part[2] = a.chances[q, 0], a.chances[q, 1], a.chances[q, 2]
    return 3


@inner
def reach_b(where, a, b, i, j, g, die, n, at, part):
    """Write where move n of seat b leads; the same as ``reach_a`` from the other side."""
    p_rows, q_rows = where.p_rows, where.q_rows
    c, q = b.moves[j, g, die, n], b.hits[j, g, die, n]
    if q < 0 or (a.masks[i] >> q) & 1 == 0:
        base = where.q_base[c] if die == 5 else where.p_base[c]
        at[0], part[0] = base + i * where.width[c], 1.0
        return 1
    row = row_of(q_rows, p_rows, die == 5, a.minus[i, unit_on(a.fields, i, q)])
    u = b.losers[j, g, die, n]
    at[0], at[1], at[2] = row + c, row + u, row_of(q_rows, p_rows, die == 5, i) + u
    part[0], part[1], part[2] = b.chances[q, 0], b.chances[q, 1], b.chances[q, 2]
    return 3


@inner
def reach(where, a, b, side, i, j, g, die, n, at, part):
    """Write where a move of seat a (side 0) or b (side 1) leads; return how many places."""
    if side == 0:
        return reach_a(where, a, b, i, j, g, die, n, at, part)
    return reach_b(where, a, b, i, j, g, die, n, at, part)


@inner
def choices(a, b, side, i, j, die):
    """Return the guard that stands against a seat, its number of moves, and whether it may pass."""
    if side == 0:
        g = b.guard[j]
        return g, a.counts[i, g, die], a.may_pass[i, die] != 0
    g = a.guard[i]
    return g, b.counts[j, g, die], b.may_pass[j, die] != 0


@inner
def cell_of(where, side, i, j):
    """Return where the value of seat a (side 0) or b (side 1) about to throw lies."""
    return (where.p_rows[i] if side == 0 else where.q_rows[i]) + j


@inner
def stay_value(where, side, i, j, die):
    """Return the value of a throw that moves nothing: the same seat throws again after a 6."""
    if die == 5:
        return where.arena[cell_of(where, side, i, j)]
    return 1.0 - where.arena[cell_of(where, 1 - side, i, j)]


@inner
def move_value(where, a, b, side, i, j, g, die, n, at, part):
    """Return the value of a move for the seat that makes it."""
    x = mean_at(where.arena, at, part, reach(where, a, b, side, i, j, g, die, n, at, part))
    return x if die == 5 else 1.0 - x


@inner
def mean_at(arena, at, part, places):
    """Return the mean value over the places a move leads to."""
    x = part[0] * arena[at[0]]
    for k in range(1, places):
        x += part[k] * arena[at[k]]
    return x


@inner
def variance_at(arena, at, part, places):
    """Return the variance over the places a move leads to."""
    mean, square = 0.0, 0.0
    for k in range(places):
        mean += part[k] * arena[at[k]]
        square += part[k] * arena[at[k]] ** 2
    return max(square - mean * mean, 0.0)


@inner
def chance_of_six(tries):
    """Return the chance that a turn of so many throws has a 6 (R23)."""
    miss = 1.0
    for _ in range(tries):
        miss *= 5.0 / 6.0
    return 1.0 - miss


@inner
def throw_value(where, a, b, side, i, j, die, stay, kind, code, shares, at, part):
    """Return the value of a throw of a BEST or FIXED player; no moves: that of staying."""
    g, count, _ = choices(a, b, side, i, j, die)
    if count == 0:
        return stay
    best = -1.0 if kind == BEST else 0.0
    for n in range(count):
        share = shares[n, code]
        if kind == FIXED and share == 0.0:
            continue
        x = move_value(where, a, b, side, i, j, g, die, n, at, part)
        best = max(best, x) if kind == BEST else best + share * x
    return best


@inner
def close_turn(total, six, stay, tries, moves6):
    """Return the value of a new throwing turn.

    Args:
        total: sum over faces 1..5 (``stay`` each where there is no move).
        six: value after a 6 (of no use where ``moves6`` is 0: the same seat throws again).
        stay: value of giving the die away.
    """
    if tries > 1:
        chance = chance_of_six(tries)
        return chance * six + (1.0 - chance) * stay
    if moves6 == 0:
        return total / 5.0
    return (total + six) / 6.0


# ----------------------------------------------------------------------------------- the passes


@fast
def sweep_positions(where, a, b, kind_a, kind_b, codes_a, codes_b, shares, first, last):
    """One sweep over rows ``last - 1`` down to ``first``, for games without passing.

    Args:
        where: Where. a, b: Seat.
        kind_a, kind_b: BEST or FIXED. codes_a: uint8 [ni, 6, nj], codes_b: uint8 [ni, nj, 6].

    Returns:
        The largest change of a value.
    """
    arena = where.arena
    at, part = np.zeros(3, np.int64), np.zeros(3)
    change = 0.0
    for i in range(last - 1, first - 1, -1):
        for j in range(len(b.masks) - 1, -1, -1):
            if b.masks[j] & a.seen[i] != 0:
                continue
            for side in range(2):
                kind = kind_a if side == 0 else kind_b
                stay, total, x = stay_value(where, side, i, j, 0), 0.0, 0.0
                for die in range(6):
                    code = 0
                    if kind == FIXED:
                        code = codes_a[i, die, j] if side == 0 else codes_b[i, j, die]
                    x = throw_value(
                        where, a, b, side, i, j, die, stay, kind, code, shares, at, part
                    )
                    if die < 5:
                        total += x
                _, sixes, _ = choices(a, b, side, i, j, 5)
                tries = a.tries[i] if side == 0 else b.tries[j]
                new = close_turn(total, x, stay, tries, sixes)
                cell = cell_of(where, side, i, j)
                change = max(change, abs(new - arena[cell]))
                arena[cell] = new
    return change


@inner
def first_best(values, count, may_pass, clear):
    """Return the first of the best moves, STAY if there is none or a pass is clearly better."""
    if count == 0:
        return STAY
    first = 0
    for n in range(1, count):
        if values[n] > values[first] + clear:
            first = n
    return STAY if may_pass and values[STAY] > values[first] + clear else first


@fast
def record(where, a, b, codes_a, codes_b, clear, found, first, last):
    """Write the perfect moves of a solved layer to policies.

    Args:
        codes_a: uint8 [ni, 6, nj], codes_b: uint8 [ni, nj, 6], overwritten.
        clear: what a later move, or a pass, must be better by.
        found: int64 [2], the throws looked at and those where passing is best are added.
    """
    at, part = np.zeros(3, np.int64), np.zeros(3)
    values = np.zeros(8)
    for i in range(first, last):
        for j in range(len(b.masks)):
            if b.masks[j] & a.seen[i] != 0:
                codes_a[i, :, j] = STAY_CODE
                codes_b[i, j, :] = STAY_CODE
                continue
            for side in range(2):
                for die in range(6):
                    g, count, may_pass = choices(a, b, side, i, j, die)
                    for n in range(count):
                        values[n] = move_value(where, a, b, side, i, j, g, die, n, at, part)
                    values[STAY] = stay_value(where, side, i, j, die)
                    code = 1 << first_best(values, count, may_pass, clear)
                    if side == 0:
                        codes_a[i, die, j] = code
                    else:
                        codes_b[i, j, die] = code
                    found[0] += 1
                    found[1] += count > 0 and code == STAY_CODE


@inner
def staying(codes, die, six, shares):
    """Return the chance that a throw shows a face and moves nothing; die 5 is the 6 of a turn."""
    return (six if die == 5 else (1.0 - six) / 5.0) * shares[STAY, codes[die]]


@inner
def turns_and_idle(codes, six, shares):
    """Return the turns that follow each other by sixes without a move, and the chance that the
    last one gives the die away without a move.

    Args:
        codes: uint8 [6], the policy of a position.
        six: chance that a turn has a 6 (R23).
    """
    turns, idle = 1.0 / (1.0 - staying(codes, 5, six, shares)), 0.0
    for die in range(5):
        idle += staying(codes, die, six, shares)
    return turns, turns * idle


@inner
def move_on(where, a, b, side, i, j, mass, six, codes, shares, at, part):
    """Let turns in a position play their moves: add the mass where each move leads."""
    arena = where.arena
    for die in range(6):
        each = mass * (six if die == 5 else (1.0 - six) / 5.0)
        g, count, _ = choices(a, b, side, i, j, die)
        for n in range(count):
            share = each * shares[n, codes[die]]
            if share == 0.0:
                continue
            places = reach(where, a, b, side, i, j, g, die, n, at, part)
            for k in range(places):
                arena[at[k]] += share * part[k]


@fast
def push(where, a, b, codes_a, codes_b, shares, visits_p, visits_q, least, first, last):
    """Let the mass in every position of rows first..last-1 play until it has moved.

    Turns that give the die to and fro without a move are summed up at once. Where nobody ever
    moves the mass stays.

    Args:
        where: its arena holds the mass that waits: chance that a game is there, about to throw.
        visits_p, visits_q: float64 [ni, nj], what passed is added: the expected number of turns.
        least: smaller masses are left waiting.

    Returns:
        The mass that moved.
    """
    at, part = np.zeros(3, np.int64), np.zeros(3)
    of_a, of_b = np.zeros(6, np.uint8), np.zeros(6, np.uint8)
    arena, moved = where.arena, 0.0
    for i in range(first, last):
        for j in range(len(b.masks)):
            cell_p, cell_q = cell_of(where, 0, i, j), cell_of(where, 1, i, j)
            mass_p, mass_q = arena[cell_p], arena[cell_q]
            if mass_p <= least and mass_q <= least:
                continue
            for die in range(6):
                of_a[die], of_b[die] = codes_a[i, die, j], codes_b[i, j, die]
            six_a, six_b = chance_of_six(a.tries[i]), chance_of_six(b.tries[j])
            turns_a, idle_a = turns_and_idle(of_a, six_a, shares)
            turns_b, idle_b = turns_and_idle(of_b, six_b, shares)
            ends = 1.0 - idle_a * idle_b
            if ends < NEVER:
                continue
            arena[cell_p], arena[cell_q] = 0.0, 0.0
            moved += mass_p + mass_q
            turns_p = turns_a * (mass_p + idle_b * mass_q) / ends
            turns_q = turns_b * (mass_q + idle_a * mass_p) / ends
            visits_p[i, j] += turns_p
            visits_q[i, j] += turns_q
            move_on(where, a, b, 0, i, j, turns_p, six_a, of_a, shares, at, part)
            move_on(where, a, b, 1, i, j, turns_q, six_b, of_b, shares, at, part)
    return moved


@inner
def kind_of(action, die, hit, ring):
    """Return what sort of move an action is, for ``tally``'s account of mistakes."""
    source = action - 1
    if hit:
        return CAPTURE_KIND
    if action == 0:
        return ENTER_KIND
    if source >= ring:
        return INSIDE_KIND
    if source + die + 1 >= ring:
        return STRETCH_KIND
    return START_KIND if source == 0 else RUN_KIND


@fast
def luck_of_turn(values, tries, stay):
    """Return the variance of the values after a turn's throws (several throws: R23)."""
    if tries == 1:
        mean, square = 0.0, 0.0
        for die in range(6):
            mean += values[die] / 6.0
            square += values[die] ** 2 / 6.0
        return max(square - mean * mean, 0.0)
    total, here, later = 0.0, 1.0, stay
    lower = np.empty(tries)  # the value with k throws left after a miss
    for k in range(tries):
        lower[k] = later
        later = values[5] / 6.0 + 5.0 / 6.0 * later
    for k in range(tries - 1, -1, -1):
        total += here * 5.0 / 36.0 * (values[5] - lower[k]) ** 2
        here *= 5.0 / 6.0
    return total


@fast
def note_worst(worst, row):
    """Put an entry in place of the cheapest, float64 [K, 8]; return the cheapest loss then."""
    worst[worst[:, 0].argmin()] = row
    return worst[:, 0].min()


@inner
def note_decision(sums, side, each, may_pass, passed, first, loss):
    """Account for one decision in ``sums``."""
    sums[side, S_DECISIONS] += each
    sums[side, S_LOSS] += loss
    if may_pass:
        sums[side, S_PASSES] += each * passed
        sums[side, S_PASS_BEST] += each if first == STAY else 0.0


@inner
def note_choice(
    each, count, may_pass, code, first, clear, values, kind, of_kind, shares, kinds, mistakes
):
    """Account for one decision in ``kinds`` and ``mistakes``; return its mean loss."""
    loss, best = 0.0, values[first]
    of_kind[:] = -1.0
    for n in range(STAY + 1):
        if n >= count and not (n == STAY and may_pass):
            continue
        share, gap = shares[n, code], best - values[n]
        of_kind[kind[n]] = max(of_kind[kind[n]], values[n])
        kinds[kind[n], 3] += each * share
        if share > 0.0 and gap > clear:
            loss += share * gap
            mistakes[kind[n], kind[first], 0] += each * share
            mistakes[kind[n], kind[first], 1] += each * share * gap
    for k in range(7):
        if of_kind[k] >= 0.0:
            gap = best - of_kind[k]
            kinds[k, 0] += each
            kinds[k, 1] += each if gap <= clear else 0.0
            kinds[k, 2] += each * gap if gap > clear else 0.0
    return loss


@inner
def weigh_moves(where, a, b, side, i, j, die, ring, values, spread, kind, at, part):
    """Write the value of every move, the variance of its battle and its kind; return how many."""
    g, count, _ = choices(a, b, side, i, j, die)
    for n in range(count):
        action = a.codes[i, g, die, n] if side == 0 else b.codes[j, g, die, n]
        places = reach(where, a, b, side, i, j, g, die, n, at, part)
        x = mean_at(where.arena, at, part, places)
        values[n] = x if die == 5 else 1.0 - x
        spread[n] = variance_at(where.arena, at, part, places) if places > 1 else 0.0
        kind[n] = kind_of(action, die, places > 1, ring)
    return count


@fast
def tally(where, a, b, codes_a, codes_b, shares, visits_p, visits_q, clear, ring, sums, kinds,
          mistakes, worst, layer):  # fmt: skip
    """Add up what visits cost and how lucky they were, by the values of a solved layer.

    Args:
        where: its arena holds the values of perfect play.
        visits_p, visits_q: float64 [ni, nj], expected turns of seat a and b (0: not looked at).
        clear: losses up to this count as none.
        sums: float64 [2, len(SUMS)], by seat, added to: see SUMS. kinds: float64 [7, 4], by kind of
            move where there is a choice: offered, best, cost of the best one of that kind, played.
        mistakes: float64 [7, 7, 2], by kind played and kind that is best: how often, loss.
        worst: float64 [K, 8], the positions that cost most: loss, visits, layer, i, j, seat, die,
            code played.
    """
    at, part = np.zeros(3, np.int64), np.zeros(3)
    values, spread, top, row = np.zeros(8), np.zeros(8), np.zeros(6), np.zeros(8)
    kind, of_kind = np.zeros(8, np.int64), np.zeros(7)
    kind[STAY] = PASS_KIND
    least = worst[:, 0].min()
    for i in range(len(a.masks)):
        for j in range(len(b.masks)):
            for side in range(2):
                weight = visits_p[i, j] if side == 0 else visits_q[i, j]
                if weight == 0.0:
                    continue
                tries = a.tries[i] if side == 0 else b.tries[j]
                six = chance_of_six(tries)
                for die in range(6):
                    each = weight * (six if die == 5 else (1.0 - six) / 5.0)
                    code = codes_a[i, die, j] if side == 0 else codes_b[i, j, die]
                    count = weigh_moves(
                        where, a, b, side, i, j, die, ring, values, spread, kind, at, part
                    )
                    values[STAY] = stay_value(where, side, i, j, die)
                    _, _, may_pass = choices(a, b, side, i, j, die)
                    first = first_best(values, count, may_pass, clear)
                    top[die] = values[first]
                    for n in range(count):
                        sums[side, S_BATTLES] += each * shares[n, code] * spread[n]
                    if count + may_pass < 2:
                        continue
                    loss = each * note_choice(
                        each, count, may_pass, code, first, clear, values, kind, of_kind, shares,
                        kinds, mistakes,
                    )  # fmt: skip
                    note_decision(sums, side, each, may_pass, shares[STAY, code], first, loss)
                    if loss > least:
                        row[0], row[1], row[2], row[3] = loss, each, layer, i
                        row[4], row[5], row[6], row[7] = j, side, die, code
                        least = note_worst(worst, row)
                sums[side, S_TURNS] += weight
                sums[side, S_THROWS] += weight * 6.0 * six
                luck = luck_of_turn(top, tries, stay_value(where, side, i, j, 0))
                sums[side, S_LUCK] += weight * luck


# --------------------------------------------------------------------- the best answer to a policy


@inner
def all_inside(alive, at, part, places):
    """Tell whether every place a move can lead to is marked."""
    for k in range(places):
        if part[k] > 0.0 and alive[at[k]] == 0:
            return False
    return True


@inner
def option_inside(where, alive, a, b, side, i, j, die, at, part):
    """Return a choice (STAY first) that can only lead to marked positions, -1 if there is none."""
    g, count, may_pass = choices(a, b, side, i, j, die)
    if count == 0 or may_pass:
        if alive[cell_of(where, side if die == 5 else 1 - side, i, j)] != 0:
            return STAY
    for n in range(count):
        if all_inside(alive, at, part, reach(where, a, b, side, i, j, g, die, n, at, part)):
            return n
    return -1


@inner
def policy_inside(where, alive, a, b, side, i, j, die, code, shares, at, part):
    """Tell whether a policy's choices can only lead to marked positions."""
    g, count, _ = choices(a, b, side, i, j, die)
    if shares[STAY, code] > 0.0:
        if alive[cell_of(where, side if die == 5 else 1 - side, i, j)] == 0:
            return False
    for n in range(count):
        if shares[n, code] > 0.0:
            places = reach(where, a, b, side, i, j, g, die, n, at, part)
            if not all_inside(alive, at, part, places):
                return False
    return True


@fast
def confine(where, alive, a, b, best, codes_a, codes_b, shares, first, last):
    """Unmark positions from which play can get out whatever seat ``best`` does.

    Swept until nothing changes, the marks left are the positions from which that seat can keep the
    game inside them, so going on for ever, against the other seat's policy.

    Args:
        alive: uint8, as long as the arena: 1 for marked positions of the layer, 0 elsewhere.
        best: 0 or 1, the seat that chooses; of the codes only the other seat's are read.

    Returns:
        1.0 if a mark was taken away, else 0.0.
    """
    at, part = np.zeros(3, np.int64), np.zeros(3)
    removed = 0.0
    for i in range(last - 1, first - 1, -1):
        for j in range(len(b.masks) - 1, -1, -1):
            for side in range(2):
                cell = cell_of(where, side, i, j)
                if alive[cell] == 0:
                    continue
                inside = True
                for die in range(6):
                    if side == best:
                        n = option_inside(where, alive, a, b, side, i, j, die, at, part)
                        inside = n >= 0
                    else:
                        code = codes_a[i, die, j] if side == 0 else codes_b[i, j, die]
                        inside = policy_inside(
                            where, alive, a, b, side, i, j, die, code, shares, at, part
                        )
                    if not inside:
                        break
                if not inside:
                    alive[cell] = 0
                    removed = 1.0
    return removed


@inner
def mean_of_code(values, count, code, shares):
    """Return the mean of the values that a code plays: moves 0..count-1 and STAY."""
    x = shares[STAY, code] * values[STAY]
    for n in range(count):
        x += shares[n, code] * values[n]
    return x


@fast
def improve(where, alive, a, b, best, codes_a, codes_b, shares, clear, first, last):
    """Change the policy of seat ``best`` where another choice gains more than ``clear``.

    Where the game could be kept going for ever, worth 1/2, and the value is less, that is what the
    new policy does, and the value becomes 1/2.

    Args:
        where: its arena holds the values of the two policies.
        alive: see ``confine``.
        codes_a, codes_b: those of seat ``best`` are changed.

    Returns:
        The largest gain of a choice, in win probability.
    """
    at, part = np.zeros(3, np.int64), np.zeros(3)
    values = np.zeros(8)
    most, side = 0.0, best
    for i in range(first, last):
        for j in range(len(b.masks)):
            if b.masks[j] & a.seen[i] != 0:
                continue
            cell = cell_of(where, side, i, j)
            stall = alive[cell] != 0 and where.arena[cell] < 0.5 - clear
            for die in range(6):
                code = codes_a[i, die, j] if side == 0 else codes_b[i, j, die]
                new = int(code)
                if stall:
                    new = 1 << option_inside(where, alive, a, b, side, i, j, die, at, part)
                else:
                    g, count, may_pass = choices(a, b, side, i, j, die)
                    for n in range(count):
                        values[n] = move_value(where, a, b, side, i, j, g, die, n, at, part)
                    values[STAY] = stay_value(where, side, i, j, die)
                    n = first_best(values, count, may_pass, 0.0)
                    gain = values[n] - mean_of_code(values, count, code, shares)
                    if gain > clear:
                        new, most = 1 << n, max(most, gain)
                if side == 0:
                    codes_a[i, die, j] = new
                else:
                    codes_b[i, j, die] = new
            if stall:
                most = max(most, 0.5 - where.arena[cell])
                where.arena[cell] = 0.5
    return most


# ------------------------------------------------------------------------------ asking an agent


@inner
def forced_code(count, may_pass):
    """Return the code of a throw with one legal action, 0 where there is a choice."""
    if count == 0:
        return STAY_CODE
    return 1 if count == 1 and not may_pass else 0


@inner
def set_up_decision(s, seat, other, own_pieces, other_pieces, die):
    """Make a record the position in which ``seat`` has thrown ``die`` (0..5: faces 1..6)."""
    for k in range(len(own_pieces)):
        s["pieces"][seat, k] = own_pieces[k]
        s["pieces"][other, k] = other_pieces[k]
    s["seat"] = seat
    s["die"] = die + 1
    s["last_seat"] = seat
    s["last_die"] = die + 1


@fast
def list_decisions(
    states, seat, other, own_configs, other_configs, own, other_guard, other_masks, first, last,
    out, which,
):
    """Write every decision of configurations first..last-1; return their number.

    Args:
        states: STATE [*], templates in which nothing but the decision is missing.
        own: Seat that decides. other_guard, other_masks: of the other seat's configurations.
        out: uint8 [N, 6, other's N], set where the throw is forced.
        which: int32 [*, 3], the place in ``out`` of each decision.
    """
    n = 0
    for i in range(first, last):
        for die in range(6):
            for j in range(len(other_masks)):
                out[i, die, j] = STAY_CODE
                if other_masks[j] & own.seen[i] != 0:
                    continue
                count = own.counts[i, other_guard[j], die]
                code = forced_code(count, own.may_pass[i, die] != 0)
                out[i, die, j] = code
                if code == 0:
                    set_up_decision(states[n], seat, other, own_configs[i], other_configs[j], die)
                    which[n, 0], which[n, 1], which[n, 2] = i, die, j
                    n += 1
    return n


@fast
def best_bits(states, r, weights, out):
    """Write the actions that a weight vector plays alike often to ``out`` int64 [B], as bits."""
    plan = weights_plan(weights)
    for n in range(len(states)):
        s = states[n]
        out[n] = best_actions(s, r, legal_actions(s, r, int(s["die"])), weights, plan)


@inner
def code_of(actions, codes, i, g, die, count, r_pass):
    """Return the code of a set of actions (bits), 0 if one of them is not known."""
    code, known = 0, 0
    for n in range(count):
        if (actions >> codes[i, g, die, n]) & 1 != 0:
            code |= 1 << n
            known |= 1 << codes[i, g, die, n]
    if (actions >> r_pass) & 1 != 0:
        code |= STAY_CODE
        known |= 1 << r_pass
    return code if known == actions else 0


@fast
def note_answers(actions, which, own, other_guard, r_pass, out):
    """Write the codes of the actions an agent plays (int64 bits [n]); return the unknown ones."""
    odd = 0
    for n in range(len(actions)):
        i, die, j = which[n, 0], which[n, 1], which[n, 2]
        g = other_guard[j]
        code = code_of(actions[n], own.codes, i, g, die, own.counts[i, g, die], r_pass)
        out[i, die, j] = code
        odd += code == 0
    return odd
