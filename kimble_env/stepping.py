"""The compiled step of the batched environments: one kernel call per slice of games.

A *slot* is one place of a batch; games come and go in it. For every slot :func:`advance_slots`
plays the action of the seat that was asked, throws on, lets compiled opponents play, starts the
next game where that is due, and writes observation, mask and rewards straight into the arrays that
the environment returns.

A slot is in one of four phases:

* ``ASKED``: a seat that belongs to the caller has a choice; its legal actions are in ``actions``.
* ``OVER``: the game has ended and its last observation has been handed out.
* ``EXTERNAL``: an opponent that is not compiled must choose; the environment asks it and calls
  again with ``RESUME``.
* ``STUCK``: many games in a row have ended before anybody had a choice.

What the seats are paid is defined in ``rewards.py``. ``owed`` holds, per seat, what it got since
the last time it was paid; the seat that acts is paid at the end of the step.

The logic works on records (of ``STATE``, ``SLOT`` and ``CONFIG``), which compiled code passes as
plain pointers; only the last lines of a step touch the arrays that are handed out. Arrays taken out
of tuples or cut into rows are counted by numba with atomic operations, which would cost more than
the rules do, and make threads wait for each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kimble_env._jit import allocating, inlined, njit, wrapping
from kimble_env.features import decision_key, weighted_action
from kimble_env.kernel import (
    STATE,
    TRUNCATED,
    WON,
    acting,
    advance,
    below,
    count_bits,
    draw,
    game_key,
    log_throw,
    new_game,
    nth_bit,
    play,
)
from kimble_env.observation import encode_observation, write_mask
from kimble_env.rewards import final_rewards, potential
from kimble_env.rules import R_PASS, R_TWO_COLOURS

SLOT = np.dtype(
    [
        ("base", np.uint64),  # seed of this slot: its n-th game has the key game_key(base, n)
        ("actions", np.int64),  # legal actions of the seat that is to choose, as bits
        ("potential", np.float64, (4,)),  # shaping: potential when the seat last decided
        ("total", np.float64),  # sum of what ``reward`` paid in this game
        ("final_total", np.float64),  # SAME_STEP: the same of the game that has just ended
        ("games", np.uint32),  # games started in this slot since it was seeded
        ("tries", np.uint32),  # games in a row that ended before anybody was asked
        ("skipped", np.uint32),  # games that ended before anybody was asked, all in all
        ("cups", np.uint32, (4,)),  # per seat: pieces lost and arrived, as last handed out
        ("owed", np.float32, (4,)),  # per seat: rewards since it was last paid
        ("rewards", np.float32, (4,)),  # per seat: rewards of this step
        ("reward", np.float32),  # what the seat that acted is paid in this step
        ("steps", np.int32),  # actions taken by the caller in this game
        ("final_steps", np.int32),  # SAME_STEP: the same of the game that has just ended
        ("lineup", np.int32),  # number of the line-up of opponents of this game, -1 for none
        ("final_lineup", np.int32),  # SAME_STEP: the same of the game that has just ended
        ("logged", np.int32),  # throws of this step (those without room in the log counted)
        ("drinks", np.int16, (4,)),  # per seat: pieces lost and arrived in this step
        ("seating", np.int16, (4,)),  # per seat: row of the table of opponents, or one of below
        ("decided", np.int8, (4,)),  # shaping: 1 if the seat has decided in this game
        ("phase", np.int8),  # see above
        ("fresh", np.int8),  # 1 until somebody is asked in this game
        ("acted", np.int8),  # the seat whose action this step plays, -1 for none
        ("observer", np.int8),  # the seat that looks
        ("final_seat", np.int8),  # SAME_STEP: the seat that looks at the end of the last game
        ("terminated", np.int8),  # 1 if a game has been won or lost in this step
        ("truncated", np.int8),  # 1 if a game has been cut off in this step
        ("illegal", np.int8),  # 1 if the action of this step is illegal
    ],
    align=True,
)
"""What the environment knows of a slot besides the game itself."""

CONFIG = np.dtype(
    [
        ("scale", np.float64),  # shaping
        ("gamma", np.float64),
        ("cup_cost", np.float64),  # price of a piece lost or come home, 0: none
        ("first", np.int64),  # number of slot 0 in a larger batch
        ("loss", np.float32),  # reward of an illegal action under LOSE
        ("plays", np.int8, (4,)),  # 1 for each seat that takes part
        ("seats", np.int8, (4,)),  # the playing seats clockwise
        ("seat_count", np.int8),  # their number
        ("learner", np.int8),  # 0..3, ROTATE or ALL_SEATS
        ("ask_forced", np.int8),
        ("autoreset", np.int8),
        ("illegal", np.int8),
    ],
    align=True,
)
"""What stays the same from step to step."""

ASKED, OVER, EXTERNAL, STUCK = 0, 1, 2, 3

CALLER, ABSENT = -1, -2
"""Entries of ``seating`` that are no row of the table of opponents."""

STEP, START, RESUME = 0, 1, 2
"""Commands: play the caller's action; start a new game; go on with an external opponent's one."""

NEXT_STEP, SAME_STEP, DISABLED = 0, 1, 2
"""Gymnasium's autoreset modes as numbers."""

RAISE, LOSE, NOOP = 0, 1, 2
"""Indices of ``rewards.ILLEGAL_CHOICES``."""

ROTATE, ALL_SEATS = 4, -1
"""Values of ``learner`` besides 0..3: its seat turns from game to game; there is no learner."""

LINEUP_STREAM = 24
"""Random stream of a game from which its line-up is drawn (the kernel's streams end below)."""

NEW_GAME, GAME_LOST, NOTHING = -1, -2, -3
"""What a step may play instead of an action."""

MAX_TRIES = 1000
"""Games in a row without any choice after which a slot is STUCK."""


class Pool(NamedTuple):
    """What is read when a game starts."""

    lineups: npt.NDArray[np.int16]  # [L, 3], rows of the table clockwise from the learner
    chances: npt.NDArray[np.float64]  # [L], cumulative chances of the line-ups, the last one 1
    numbers: npt.NDArray[np.int32]  # [L], what ``lineup`` of a slot says
    templates: npt.NDArray[np.void]  # STATE [0], [1] or [N]: positions to start from


class Setup(NamedTuple):
    """Arguments of :func:`advance_slots` that stay the same from step to step."""

    config: npt.NDArray[np.void]  # CONFIG [1]
    r: npt.NDArray[np.int64]  # Rules.array
    weights: npt.NDArray[np.float64]  # [K, F], the table of opponents
    compiled: npt.NDArray[np.int8]  # [K], 0 for rows that the environment must ask itself
    pool: Pool
    log: npt.NDArray[np.int8]  # [rows, LOG_COLUMNS]: throws of a batch of one; no rows: keep none
    final_observations: npt.NDArray[np.int8]  # SAME_STEP: [N, size], else no rows


class Outputs(NamedTuple):
    """The arrays that one step fills, all of length N."""

    observations: npt.NDArray[np.int8]  # [N, size]
    masks: npt.NDArray[np.int8]  # [N, A]
    seats: npt.NDArray[np.int8]  # [N], who looks (and is to act, unless the game is over)
    acted: npt.NDArray[np.int8]  # [N], who acted, -1 in a step that only started a game
    reward: npt.NDArray[np.float32]  # [N]
    rewards: npt.NDArray[np.float32]  # [N, 4]
    terminated: npt.NDArray[np.bool_]  # [N]
    truncated: npt.NDArray[np.bool_]  # [N]
    drinks: npt.NDArray[np.int16]  # [N, 4]
    illegal: npt.NDArray[np.bool_]  # [N]
    lineups: npt.NDArray[np.int32]  # [N]


def make_outputs(
    games: int,
    size: int,
    actions: int,
    illegal: npt.NDArray[np.bool_] | None = None,
    lineups: npt.NDArray[np.int32] | None = None,
) -> Outputs:
    """Allocate the arrays of one step; the kernel writes every element.

    ``illegal`` and ``lineups`` may be given where the caller does not hand them out.
    """
    return Outputs(
        np.empty((games, size), np.int8),
        np.empty((games, actions), np.int8),
        np.empty(games, np.int8),
        np.empty(games, np.int8),
        np.empty(games, np.float32),
        np.empty((games, 4), np.float32),
        np.empty(games, np.bool_),
        np.empty(games, np.bool_),
        np.empty((games, 4), np.int16),
        np.empty(games, np.bool_) if illegal is None else illegal,
        np.empty(games, np.int32) if lineups is None else lineups,
    )


def no_templates() -> npt.NDArray[np.void]:
    """Return the templates of games that start at the beginning: STATE [0]."""
    return np.zeros(0, STATE)


# --------------------------------------------------------------------------------- starting a game


@njit
def draw_lineup(key, chances):
    """Return the index of the line-up of the game with this key."""
    x = float(np.int64(draw(key, LINEUP_STREAM, 0) >> np.uint64(11))) / (1 << 53)
    for k in range(len(chances) - 1):
        if x < chances[k]:
            return k
    return len(chances) - 1


@njit
def seat_players(slot, config, r, learner, lineups, lineup):
    """Seat the learner, the line-up clockwise from it, and whoever plays with two colours (R17)."""
    two_colours = r[R_TWO_COLOURS] != 0
    k = 0
    for step in range(4):
        seat = (learner + step) & 3
        if config["plays"][seat] == 0:
            slot["seating"][seat] = ABSENT
        elif step == 0 or (two_colours and step == 2):
            slot["seating"][seat] = CALLER
        else:
            slot["seating"][seat] = lineups[lineup, k]
            k += 0 if two_colours else 1


@allocating
def start_game(states, slot, config, r, pool, i):
    """Start the next game of slot i: its key, its players, its first position."""
    s = states[i]
    n = int(slot["games"])
    key = game_key(slot["base"], n)
    slot["games"] = n + 1
    if len(pool.templates) > 0:
        states[i] = pool.templates[i if len(pool.templates) > 1 else 0]
        s["seed"] = key
    else:
        new_game(s, r, config["plays"], key, np.zeros((0, 2), np.int8))
    learner = int(config["learner"])
    slot["lineup"] = -1
    if learner == ALL_SEATS:
        for seat in range(4):
            slot["seating"][seat] = CALLER if config["plays"][seat] != 0 else ABSENT
    else:
        if learner == ROTATE:
            learner = int(config["seats"][(config["first"] + i + n) % config["seat_count"]])
        lineup = draw_lineup(key, pool.chances)
        slot["lineup"] = pool.numbers[lineup]
        seat_players(slot, config, r, learner, pool.lineups, lineup)
    for seat in range(4):
        slot["owed"][seat] = 0.0
        slot["cups"][seat] = s["lost"][seat] + s["arrived"][seat]
        slot["decided"][seat] = 0
    slot["fresh"] = 1
    slot["total"] = 0.0
    slot["steps"] = 0
    slot["logged"] = 0


# --------------------------------------------------------------------------------- what a step pays


@inlined
def gain(slot, r, seat, amount):
    """Give a seat, and with two colours its partner, a reward (R17)."""
    slot["rewards"][seat] += amount
    slot["owed"][seat] += amount
    if r[R_TWO_COLOURS] != 0:
        partner = (seat + 2) & 3
        slot["rewards"][partner] += amount
        slot["owed"][partner] += amount


@njit
def shape(slot, config, r, seat, now):
    """Pay a seat the change of its potential since it last decided; remember the potential now."""
    if slot["decided"][seat] != 0:
        change = config["gamma"] * now - slot["potential"][seat]
        gain(slot, r, seat, np.float32(config["scale"] * change))
    slot["potential"][seat] = now
    slot["decided"][seat] = 1
    if r[R_TWO_COLOURS] != 0:
        partner = (seat + 2) & 3
        slot["potential"][partner] = now
        slot["decided"][partner] = 1


@njit
def shape_end(s, slot, config, r):
    """Pay every seat that has decided the last change of its potential."""
    for seat in range(4):
        if slot["decided"][seat] == 0 or (r[R_TWO_COLOURS] != 0 and seat > 1):
            continue  # the partner is paid together with seat 0 or 1
        now = potential(s, r, seat) if s["status"] == TRUNCATED else 0.0
        shape(slot, config, r, seat, now)


@allocating
def pay_end(s, slot, r):
    """Pay every seat the result of the game."""
    result = np.zeros(4, np.float32)
    final_rewards(s, r, result)
    for seat in range(4):
        slot["rewards"][seat] += result[seat]
        slot["owed"][seat] += result[seat]


@inlined
def pay_actor(slot, r):
    """Hand what the seat that acted is owed to ``reward``."""
    acted = int(slot["acted"])
    if acted < 0:
        return
    seat = acted & 3
    amount = slot["owed"][seat]
    slot["reward"] = amount
    slot["total"] += amount
    slot["owed"][seat] = 0.0
    if r[R_TWO_COLOURS] != 0:
        slot["owed"][(seat + 2) & 3] = 0.0


@njit
def price_cups(s, slot, config, r):
    """Let every seat pay for the pieces lost and arrived that are not handed out yet (R33)."""
    for seat in range(4):
        cups = s["lost"][seat] + s["arrived"][seat] - slot["cups"][seat]
        if cups != 0:
            gain(slot, r, seat, np.float32(-config["cup_cost"] * cups))


@inlined
def count_drinks(s, slot):
    """Note the pieces lost and arrived since they were last handed out (R33)."""
    for seat in range(4):
        cups = s["lost"][seat] + s["arrived"][seat]
        slot["drinks"][seat] = np.int16(cups - slot["cups"][seat])
        slot["cups"][seat] = cups


# ----------------------------------------------------------------------------------------- the step


@inlined
def end_observer(s, r, seat):
    """Return the seat from which the end is shown to ``seat``: itself.

    With two colours it is the colour of the player that acts, or that would act next (R17).
    """
    if r[R_TWO_COLOURS] == 0:
        return seat
    now = acting(s)
    if (now & 1) == (seat & 1):
        return now
    following = (now + 1) & 3
    return following if s["places"][following] == 0 else (now + 3) & 3


@inlined
def open_step(slot):
    """Clear what a step adds up."""
    slot["acted"] = -1
    slot["logged"] = 0
    slot["reward"] = 0.0
    slot["terminated"] = 0
    slot["truncated"] = 0
    slot["illegal"] = 0
    for seat in range(4):
        slot["rewards"][seat] = 0.0
        slot["drinks"][seat] = 0


@inlined
def ask(s, slot, config, r, actions):
    """Leave the choice of the seat to act to the caller."""
    seat = acting(s)
    new = slot["fresh"] != 0
    slot["phase"] = ASKED
    slot["actions"] = actions
    slot["observer"] = seat
    slot["fresh"] = 0
    slot["tries"] = 0
    if config["scale"] != 0.0:
        shape(slot, config, r, seat, potential(s, r, seat))
    # A new game under SAME_STEP must not touch what the old one paid in this step.
    if not (new and slot["acted"] >= 0):
        if config["cup_cost"] != 0.0:
            price_cups(s, slot, config, r)
        pay_actor(slot, r)
        count_drinks(s, slot)


@njit
def close_game(s, slot, config, r):
    """Pay the end of a game: won, cut off, or lost by an illegal action of the seat that acted."""
    illegal = slot["illegal"] != 0
    if illegal:
        gain(slot, r, int(slot["acted"]) & 3, config["loss"])
    else:
        pay_end(s, slot, r)
    if config["scale"] != 0.0:
        shape_end(s, slot, config, r)
    if config["cup_cost"] != 0.0:
        price_cups(s, slot, config, r)
    pay_actor(slot, r)
    count_drinks(s, slot)
    slot["truncated"] = not illegal and s["status"] == TRUNCATED
    slot["terminated"] = illegal or s["status"] == WON
    slot["phase"] = OVER
    slot["actions"] = 1 << r[R_PASS]  # a mask is never empty: pass stands for "nothing"
    slot["observer"] = end_observer(s, r, int(slot["acted"]) & 3)


@njit
def keep_final(s, slot, r, final_observations, i):
    """Keep the last observation and the sums of a game before the next one starts in its slot."""
    slot["final_seat"] = slot["observer"]
    slot["final_lineup"] = slot["lineup"]
    slot["final_total"] = slot["total"]
    slot["final_steps"] = slot["steps"]
    encode_observation(s, r, int(slot["observer"]), final_observations[i])


@njit
def end_of_game(s, slot, config, r, final_observations, i):
    """Close a game; return NEW_GAME if the next one is to start at once, else NOTHING."""
    if slot["fresh"] != 0:  # nobody was asked: no step could report this game
        slot["skipped"] += np.uint32(1)
        slot["tries"] += np.uint32(1)
        slot["phase"] = STUCK if slot["tries"] >= MAX_TRIES else OVER
        return NEW_GAME if slot["tries"] < MAX_TRIES else NOTHING
    close_game(s, slot, config, r)
    if config["autoreset"] != SAME_STEP:
        return NOTHING
    keep_final(s, slot, r, final_observations, i)
    return NEW_GAME


@inlined
def begin(s, slot, config, r, action, command):
    """Begin a step; return what it plays: the caller's action, or one of the codes below 0."""
    open_step(slot)
    if command == START or slot["phase"] == OVER:
        slot["tries"] = 0
        return NEW_GAME
    seat = acting(s)
    slot["acted"] = seat
    slot["steps"] += 1
    if action < 0 or action > r[R_PASS] or (slot["actions"] >> action) & 1 == 0:
        slot["illegal"] = 1
        return NOTHING if config["illegal"] == NOOP else GAME_LOST
    return action


@inlined
def hand_out(
    s, slot, r, observations, masks, seats, acted, reward, rewards, terminated, truncated, drinks,
    illegal, lineups, i,
):  # fmt: skip
    """Write what slot i shows and pays to the arrays of :class:`Outputs`."""
    seats[i] = slot["observer"]
    acted[i] = slot["acted"]
    reward[i] = slot["reward"]
    terminated[i] = slot["terminated"] != 0
    truncated[i] = slot["truncated"] != 0
    illegal[i] = slot["illegal"] != 0
    lineups[i] = slot["lineup"]
    for seat in range(4):
        rewards[i, seat] = slot["rewards"][seat]
        drinks[i, seat] = slot["drinks"][seat]
    encode_observation(s, r, int(slot["observer"]), observations[i])
    write_mask(slot["actions"], masks[i])


@njit
def advance_slots(
    states, slots, config, r, weights, compiled, pool, log, final_observations,
    observations, masks, seats, acted, reward, rewards, terminated, truncated, drinks, illegal,
    lineups, actions, rows, command, start, stop,
):  # fmt: skip
    """Move the slots ``rows[start:stop]`` on and write what they show and pay.

    One loop with one call of each function that does the work: compiled code copies functions to
    where they are called, and takes the longer to compile the more there is of it.

    Args:
        states: STATE [N], the games.
        slots: SLOT [N].
        config, r, weights, compiled, pool, log, final_observations: see :class:`Setup`.
        observations, masks, …, lineups: see :class:`Outputs`. Rows of slots left EXTERNAL are not
            complete yet.
        actions: int64 [N]; read for STEP (the caller's, judged here) and for RESUME (an external
            opponent's, unchecked: it must be legal).
        rows: int64 [n], the slots meant.
        command: STEP, START or RESUME. STEP starts the next game in slots that are OVER.
        start: first index into ``rows``.
        stop: index after the last.
    """
    c = config[0]
    ask_forced = c["ask_forced"] != 0
    for k in range(start, stop):
        i = rows[k]
        s, slot = states[i], slots[i]
        action = actions[i] if command == RESUME else begin(s, slot, c, r, actions[i], command)
        while action != NOTHING:
            if action == NEW_GAME:
                start_game(states, slot, c, r, pool, i)
            elif action >= 0:
                play(s, r, action, 0, 0)
                log_throw(s, log, np.int64(slot["logged"]))
                slot["logged"] += 1
            legal = 0
            if action != GAME_LOST:
                legal, slot["logged"] = advance(s, r, ask_forced, log, np.int64(slot["logged"]))
            row = int(slot["seating"][acting(s)])
            if legal == 0:
                action = end_of_game(s, slot, c, r, final_observations, i)
            elif row == CALLER:
                ask(s, slot, c, r, legal)
                break
            elif compiled[row] == 0:
                slot["phase"] = EXTERNAL
                slot["actions"] = legal
                break
            else:
                action = weighted_action(s, r, legal, weights[row], decision_key(s))
        hand_out(
            s, slot, r, observations, masks, seats, acted, reward, rewards, terminated, truncated,
            drinks, illegal, lineups, i,
        )  # fmt: skip


@njit
def show_slots(
    states, slots, r, observations, masks, seats, acted, reward, rewards, terminated, truncated,
    drinks, illegal, lineups, rows,
):  # fmt: skip
    """Write what the slots ``rows`` int64 [n] show at rest, as a step that pays nothing."""
    for i in rows:
        open_step(slots[i])
        hand_out(
            states[i], slots[i], r, observations, masks, seats, acted, reward, rewards, terminated,
            truncated, drinks, illegal, lineups, i,
        )  # fmt: skip


@njit
def first_fault(slots, actions, check_actions, check_over):
    """Return the first slot whose action is illegal, or whose game is over; -1 if there is none."""
    for i in range(len(slots)):
        if slots[i]["phase"] != ASKED:
            if check_over:
                return i
            continue
        a = actions[i]
        if check_actions and (a < 0 or a > 62 or (slots[i]["actions"] >> a) & 1 == 0):
            return i
    return -1


# -------------------------------------------------------------------------------- drawing actions


@njit
def mask_bits(mask):
    """Return a mask int8 [A] as a set of actions (bits)."""
    bits = 0
    for a in range(len(mask)):
        bits |= np.int64(mask[a] != 0) << a
    return bits


@wrapping
@njit
def sample_slice(masks, keys, passing, out, start, stop):
    """Draw one legal action for each of the rows ``start`` to ``stop - 1``.

    Args:
        masks: int8 [N, A].
        keys: uint64 [N], one random number per row; or [1], a key from which they are made.
        passing: whether pass (the last action) is drawn while anything else is legal.
        out: int64 [N], overwritten.
    """
    last = masks.shape[1] - 1
    one_key = len(keys) < len(masks)
    for i in range(start, stop):
        bits = mask_bits(masks[i])
        if not passing and bits & ~(1 << last) != 0:
            bits &= ~(1 << last)
        if bits == 0:
            out[i] = last
        else:
            u = game_key(keys[0], i) if one_key else keys[i]
            out[i] = nth_bit(bits, below(u, count_bits(bits)))
