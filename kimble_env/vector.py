"""Thousands of games per call: a native Gymnasium vector environment.

>>> import gymnasium as gym
>>> from kimble_env.vector import sample_actions
>>> envs = gym.make_vec("kimble_env:Kimble-v0", 64, vectorization_mode="vector_entry_point")
>>> observations, info = envs.reset(seed=1)
>>> for k in range(100):
...     actions = sample_actions(info["action_mask"], k)
...     observations, reward, terminated, truncated, info = envs.step(actions)

**Two modes.** With ``opponents=None`` all seats are the caller's: every step plays one choice in
every game, whoever's it is, and ``info["seat"]`` says whose choice comes next. With opponents one
seat per game learns and the others play inside ``step``; weight vectors (every heuristic, and
``random``) play compiled, other agents are asked in batches.

**What a step returns**, for N games, A actions (34 on kimble28) and an observation of ``size``
elements (160 on kimble28; see ``kimble_env.observation``):

===================  ==============  ===========================================================
name                 type            meaning
===================  ==============  ===========================================================
observations         int8 [N, size]  what ``info["seat"]`` sees
reward               float32 [N]     what the seat that just acted got, see below
terminated           bool [N]        the game has been won (or lost by an illegal action)
truncated            bool [N]        the game has been cut off by ``max_turns``
info["action_mask"]  int8 [N, A]     1 for every legal action; never empty: a game that is over
                                     has only pass, which stands for "nothing"
info["seat"]         int8 [N]        who looks, and is to act unless the game is over
info["rewards"]      float32 [N, 4]  what every seat got in this step
info["acted"]        int8 [N]        the seat that acted, -1 in a step that only started a game
info["drinks"]       int16 [N, 4]    pieces that every seat lost or brought home (R33): a cost
info["lineup"]       int32 [N]       with opponents: the number of the line-up, see ``lineups``
info["illegal"]      bool [N]        unless ``illegal="raise"``: the action was illegal
===================  ==============  ===========================================================

``reset`` returns the same ``info``. For each key ``info["_key"]`` says which games have it, as
Gymnasium has it.

**Rewards** are defined in ``kimble_env.rewards``. ``reward`` belongs to the seat that just acted
and is the sum of all that this seat got since the step of its last action before this one. With
opponents that is what happened in this step. With all seats exposed, the reward that *follows* an
action is the sum of ``info["rewards"][:, seat]`` from that step to the one after which the seat is
asked again or the game ends; the losers' rewards, for example, are there and in no ``reward``,
unless the game ended without a further choice of theirs. Per-seat trajectories are therefore built
from ``info["acted"]`` and ``info["rewards"]``.

**Autoreset** is one of Gymnasium's three modes, named in ``metadata["autoreset_mode"]``. NEXT_STEP
(default): the step after the last of a game ignores the action and starts the next game. SAME_STEP:
the next game starts at once; ``info["final_obs"]`` and ``info["final_info"]`` hold the end of the
old one. DISABLED: ``reset(options={"reset_mask": mask})`` starts games.

**Seeds.** Slot i of ``reset(seed=s)`` plays the games of seed ``slot_seed(s, first_game + i)``, one
after the other, whatever the number of games, threads and steps: slot 0 plays what the AEC and
single-seat environments play with seed ``s``. A later reset without a seed goes on to the next.

A game that ends before anybody had a choice is not shown; the slot goes on to its next game. (With
usual rules that happens in fewer than one of a million games; ``games_skipped`` counts them.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from kimble_env import render as pictures
from kimble_env import stepping
from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.errors import (
    GameOverError,
    IllegalMoveError,
    KimbleError,
    PositionError,
)
from kimble_env.game import read_options, read_seed
from kimble_env.kernel import LOG_COLUMNS, STATE, empty_states, game_key
from kimble_env.lineups import Opponents, PoolLike
from kimble_env.notation import format_position, read_start, shown_action, shown_actions
from kimble_env.observation import mask_batch, observation_layout
from kimble_env.opponents import (
    CheckedAgent,
    check_actions,
    decision_keys,
    hide_random_state,
    shown_position,
    whole_numbers,
)
from kimble_env.rewards import (
    ILLEGAL_CHOICES,
    Shaping,
    check_illegal,
    loss_reward,
    read_cup_cost,
    read_shaping,
)
from kimble_env.rules import Rules, find_rules
from kimble_env.stepping import CONFIG, SLOT, Outputs, Pool, Setup
from kimble_env.threads import check_threads, run_slices

Array = npt.NDArray[Any]
Info = dict[str, Any]
_MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
_SEED_LIMIT = 1 << 64


def slot_seed(seed: int, slot: int) -> int:
    """Return the seed of the games of a slot: ``seed`` itself for slot 0."""
    return seed if slot == 0 else int(game_key(np.uint64(seed), slot))


def read_learner(seat: int | str | None, rules: Rules) -> int:
    """Return the learner's seat 0..3 or ``stepping.ROTATE``; None means the first playing seat.

    Raises:
        KimbleError: no such seat, or one that does not play.
    """
    if seat is None:
        return rules.seats[0]
    if isinstance(seat, str) and seat == "rotate":
        return stepping.ROTATE
    number: Any = seat
    if isinstance(seat, str):
        names = {name: k for k, name in enumerate(SEAT_NAMES)}
        letters = {letter: k for k, letter in enumerate(SEAT_LETTERS)}
        number = letters.get(seat.upper(), names.get(seat.lower()))
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise KimbleError(
            f"seat must be 0..3, a letter of {SEAT_LETTERS}, a colour or 'rotate', got {seat!r}"
        )
    if int(number) not in rules.seats:
        raise KimbleError(f"seat {seat!r} does not play; playing: {rules.seats}")
    return int(number)


def read_autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    """Return an autoreset mode from itself, its name (``"NEXT_STEP"``) or value (``"NextStep"``).

    Raises:
        KimbleError: it is none.
    """
    for known in _MODES:
        if mode in (known, known.name, known.value):
            return known
    raise KimbleError(
        f"autoreset_mode must be one of {', '.join(m.name for m in _MODES)}, got {mode!r}"
    )


def sample_actions(
    masks: npt.NDArray[np.int8] | npt.NDArray[np.bool_],
    keys: int | np.random.Generator | npt.NDArray[np.uint64],
    *,
    passing: bool = True,
    out: npt.NDArray[np.int64] | None = None,
    threads: int = 1,
) -> npt.NDArray[np.int64]:
    """Draw one legal action per game, uniformly, compiled.

    Args:
        masks: int8 or bool [N, A], nonzero for legal actions.
        keys: a whole number 0..2^64 - 1 or a generator, from which one number per game is made
            (equal numbers give equal draws: take another one every step); or uint64 [N].
        passing: draw from the whole mask (the spec ``random:mask``). False: pass only where nothing
            else is legal, which is what the spec ``random`` does and par in every figure.
        out: int64 [N] to write to; None allocates.
        threads: slices that may run at once.

    Returns:
        int64 [N], legal actions; pass where a mask is empty.

    Raises:
        KimbleError: an argument of another type or shape.
    """
    types = (np.int8, np.bool_)
    if not isinstance(masks, np.ndarray) or masks.ndim != 2 or masks.dtype not in types:
        raise KimbleError(f"masks must be an array int8 or bool [N, A], got {_kind(masks)}")
    if masks.shape[1] > 62:
        raise KimbleError(f"masks have at most 62 actions, got {masks.shape[1]}")
    count, masks = len(masks), masks.view(np.int8)
    if isinstance(keys, np.random.Generator):
        numbers = keys.integers(_SEED_LIMIT, dtype=np.uint64, size=1)
    elif isinstance(keys, np.ndarray):
        if keys.dtype != np.uint64 or keys.shape != (count,):
            raise KimbleError(f"keys must be an array uint64 [{count}], got {_kind(keys)}")
        numbers = np.ascontiguousarray(keys)
    else:
        if keys is None:  # a seed may be None, a key may not: equal draws would go unnoticed
            raise KimbleError("keys must be given: a number that differs from step to step")
        numbers = np.array([read_seed(keys)], np.uint64)
    if out is None:
        out = np.empty(count, np.int64)
    elif not isinstance(out, np.ndarray) or out.dtype != np.int64 or out.shape != (count,):
        raise KimbleError(f"out must be an array int64 [{count}], got {_kind(out)}")
    draw = partial(stepping.sample_slice, masks, numbers, bool(passing), out)
    run_slices(draw, count, check_threads(threads))
    return out


def raw(records: Array) -> Array:
    """Return records as plain bytes [N]: numpy copies those at once, not field by field."""
    return records.view(np.dtype((np.void, records.dtype.itemsize)))


def _kind(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype} {list(thing.shape)}"
    return type(thing).__name__


class KimbleVectorEnv(VectorEnv[Any, Any, Any]):
    """Many games at once. See the page of this module for what ``step`` and ``reset`` return.

    Args:
        num_envs: number of games N.
        rules: name or text of a rule set, or Rules.
        opponents: None exposes all seats; else the agents that play inside ``step``: one for all
            seats, one per seat clockwise from the learner, or a pool of such line-ups from which
            every game draws (see ``kimble_env.lineups.read_pool``).
        chances: how often each line-up of the pool is drawn, relative; None: equally often.
        seat: the learner's seat: 0..3, its letter or colour, ``"rotate"`` (slot i plays the k-th
            game as playing seat number (i + k) mod n), or None for the first playing seat.
        ask_forced: ask also where only one action is legal.
        illegal: what an illegal action does: ``"raise"`` (IllegalMoveError, nothing has changed),
            ``"lose"`` (the game ends, lost for the one who acted) or ``"noop"`` (asked again).
        shaping: None (off), a scale, or a ``Shaping``.
        cup_cost: what a piece lost or come home costs its player (see ``kimble_env.rewards``).
        autoreset_mode: one of Gymnasium's modes, or its name.
        threads: slices of games that may be stepped at once.
        copy: True: every step returns new arrays. False: two sets of arrays take turns, so what a
            step returned is overwritten by the step after the next.
        mask_in_observation: observations are dicts ``observation`` and ``action_mask`` (the same
            array as in ``info``).
        episode_statistics: put ``info["episode"]`` (r, l, t: return, length, seconds) into steps in
            which games end. Do not combine with Gymnasium's RecordEpisodeStatistics.
        first_game: number of slot 0 in a larger batch, so that a batch may be split over workers.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``; ``render`` returns one frame per game.
        options: options of the rules, ``players`` or ``seats``.

    Raises:
        RulesError: rules or options that cannot be.
        AgentError: an opponent that is not known or does not fit.
        KimbleError: any other argument that cannot be.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's attribute)
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    _log_rows = 0
    """Rows of the log of throws at first, for a subclass with one game; 0 keeps no log."""

    def __init__(
        self,
        num_envs: int = 1,
        rules: str | Rules = "kimble",
        *,
        opponents: PoolLike | None = None,
        chances: Sequence[float] | None = None,
        seat: int | str | None = None,
        ask_forced: bool = False,
        illegal: str = "raise",
        shaping: float | Shaping | None = None,
        cup_cost: float = 0.0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        copy: bool = True,
        mask_in_observation: bool = False,
        episode_statistics: bool = False,
        first_game: int = 0,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.num_envs = _count("num_envs", num_envs, 1)
        self.rules = find_rules(rules, **options)
        self.first_game = _count("first_game", first_game, 0)
        self.threads = check_threads(threads)
        self.illegal = check_illegal(illegal)
        self.shaping = read_shaping(shaping)
        self.cup_cost = read_cup_cost(cup_cost)
        self.ask_forced = bool(ask_forced)
        self.autoreset_mode = read_autoreset(autoreset_mode)
        self.copy = bool(copy)
        self.mask_in_observation = bool(mask_in_observation)
        self.episode_statistics = bool(episode_statistics)
        self.render_mode = read_render_mode(render_mode, self.metadata["render_modes"])
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self._make_spaces()
        self._states = empty_states(self.num_envs)
        self._slots = np.zeros(self.num_envs, SLOT)
        self._slots["seating"] = stepping.ABSENT
        self._started = np.zeros(self.num_envs)  # perf_counter at the start of the game
        self._seeded = False
        self._running = False
        self._opponents: Opponents | None = None
        self._learner = stepping.ALL_SEATS
        if opponents is not None:
            self._learner = read_learner(seat, self.rules)
            self._opponents = Opponents(self.rules)
            self._opponents.replace(opponents, chances, self._slots["seating"])
        elif seat is not None or chances is not None:
            raise KimbleError("seat and chances need opponents; without them all seats are exposed")
        self._allocate()

    def _make_spaces(self) -> None:
        layout = observation_layout(self.rules)
        self._size, self._actions = layout.size, layout.actions
        flat = spaces.Box(layout.low, layout.high, dtype=np.int8)
        self.single_action_space = spaces.Discrete(layout.actions)
        self.single_observation_space = flat
        if self.mask_in_observation:
            mask = spaces.Box(0, 1, (layout.actions,), np.int8)
            self.single_observation_space = spaces.Dict({"observation": flat, "action_mask": mask})
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _allocate(self) -> None:
        """Make the arrays that are neither state nor arguments, and the setup of the kernel."""
        games = self.num_envs
        finals = games if self.autoreset_mode is AutoresetMode.SAME_STEP else 0
        self._final_observations = np.zeros((finals, self._size), np.int8)
        self._log = np.zeros((self._log_rows, LOG_COLUMNS), np.int8)
        self._choices = np.zeros(games, np.int64)
        self._rows = np.arange(games, dtype=np.int64)
        self._buffers: list[Outputs] = []
        self._unseen_illegal = np.empty(games, np.bool_)
        self._unseen_lineups = np.empty(games, np.int32)
        self._all = np.ones(games, np.bool_)
        self._all.setflags(write=False)
        self._end_masks = np.zeros((games if finals else 0, self._actions), np.int8)
        self._end_masks[:, -1] = 1
        self._end_masks.setflags(write=False)
        self._make_setup()

    def _make_setup(self) -> None:
        opponents = self._opponents or Opponents(self.rules)
        self._setup = Setup(
            config=self._make_config(),
            r=self.rules.array,
            weights=opponents.weights,
            compiled=opponents.compiled,
            pool=Pool(
                opponents.lineups, opponents.chances, opponents.numbers, stepping.no_templates()
            ),
            log=self._log,
            final_observations=self._final_observations,
        )

    def _make_config(self) -> npt.NDArray[np.void]:
        config, rules = np.zeros(1, CONFIG), self.rules
        config["scale"], config["gamma"] = self.shaping.scale, self.shaping.gamma
        config["cup_cost"] = self.cup_cost
        config["first"] = self.first_game
        config["loss"] = loss_reward(rules)
        config["plays"][0, list(rules.seats)] = 1
        config["seats"][0, : len(rules.seats)] = rules.seats
        config["seat_count"] = len(rules.seats)
        config["learner"] = self._learner
        config["ask_forced"] = self.ask_forced
        config["autoreset"] = _MODES.index(self.autoreset_mode)
        config["illegal"] = ILLEGAL_CHOICES.index(self.illegal)
        return config

    # -------------------------------------------------------------------------- Gymnasium's methods

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Start a game in every slot, or in those of a mask.

        Args:
            seed: a whole number 0..2^64 - 1 for the whole batch (see Seeds on the module's page); a
                sequence of N of them or None, one per slot; None goes on to the next games.
            options: ``reset_mask``: bool [N], the slots to reset, at least one. ``position``: a
                position text, or a sequence of N of them, to start from this time. The rest is
                ignored.

        Returns:
            Observations and info of all slots.

        Raises:
            KimbleError: a seed, mask or options that cannot be, or rules under which nobody is ever
                asked.
            NotationError, PositionError: a position that cannot be read, cannot be, is over, or is
                not of these rules and seats.
            gymnasium.error.ResetNeeded: a mask before the first reset of all.
            gymnasium.error.ClosedEnvironmentError: after ``close``.
        """
        self._check_open()
        given = read_options(options)
        rows = self._read_mask(given.get("reset_mask"))
        templates = self._read_positions(given.get("position"))
        bases = self._read_seeds(seed)
        out = self._next_outputs()
        slots = raw(self._slots).copy()
        try:
            self._seed_slots(bases, rows)
            pool = self._setup.pool._replace(templates=templates)
            self._advance_or_not(out, rows, stepping.START, self._setup._replace(pool=pool))
        except BaseException:
            raw(self._slots)[:] = slots
            raise
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
        self._seeded = self._running = True
        self._started[rows] = time.perf_counter()
        if len(rows) < self.num_envs:
            others = np.setdiff1d(self._rows, rows)
            stepping.show_slots(self._states, self._slots, self.rules.array, *out, others)
        return self._observations(out), self._info(out)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, Info]:
        """Play one action in every game; see the page of this module.

        Args:
            actions: whole numbers [N]; those of games that start anew (NEXT_STEP) are ignored.

        Raises:
            IllegalMoveError: not N whole numbers; or, under ``illegal="raise"``, an action that is
                not legal, or an opponent's. Nothing has changed.
            GameOverError: DISABLED, and a game is over. Nothing has changed.
            gymnasium.error.ResetNeeded: before the first ``reset``, or after a step that was
                interrupted (Ctrl-C) and left games half-moved.
            gymnasium.error.ClosedEnvironmentError: after ``close``.
        """
        self._check_open()
        if not self._running:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        self._read_actions(actions)
        out = self._next_outputs()
        if self._log_rows == 0 and (self._opponents is None or self._opponents.all_compiled):
            self._running = False  # for good, if this is interrupted: games stand half-moved
            self._advance(out, self._rows, stepping.STEP, self._setup)
            self._running = True
        else:
            self._advance_or_not(out, self._rows, stepping.STEP, self._setup)
        info = self._info(out)
        if self.autoreset_mode is AutoresetMode.SAME_STEP or self.episode_statistics:
            self._add_ends(out, info)
        return self._observations(out), out.reward, out.terminated, out.truncated, info

    def render(self) -> tuple[Any, ...] | None:
        """Return one frame per game: a text, or uint8 [height, width, 3]; None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode draws nothing")
            return None
        return tuple(self._frame(i) for i in range(self.num_envs))

    # ------------------------------------------------------------------------------------ opponents

    def set_opponents(
        self, opponents: PoolLike, chances: Sequence[float] | None = None
    ) -> tuple[int, ...]:
        """Exchange the pool of opponents; every game follows at its next start.

        Args:
            opponents: as for the class; not None.
            chances: as for the class.

        Returns:
            The numbers of the new line-ups, as they will appear in ``info["lineup"]``.

        Raises:
            KimbleError: all seats are exposed, or a pool that cannot be. Nothing has changed.
            AgentError: an opponent that is not known or does not fit. Nothing has changed.
        """
        if self._opponents is None:
            raise KimbleError("all seats are exposed: there are no opponents to exchange")
        numbers = self._opponents.replace(opponents, chances, self._slots["seating"])
        self._make_setup()
        return numbers

    @property
    def lineups(self) -> dict[int, tuple[str, ...]]:
        """The specs of every line-up there has been, clockwise from the learner, by number."""
        return dict(self._opponents.specs) if self._opponents is not None else {}

    # ----------------------------------------------------------------------------------- the games

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return what is legal now: bool [N, A]; only pass where a game is over."""
        masks = np.empty((self.num_envs, self._actions), np.int8)
        mask_batch(self._slots["actions"].copy(), masks)
        return masks.astype(np.bool_)

    def states(self) -> npt.NDArray[np.void]:
        """Return a copy of all games, STATE [N], without what would tell the dice to come."""
        return hide_random_state(self._states)

    def position(self, i: int) -> str:
        """Return the position text of game i."""
        return format_position(self.rules, self._states[i])

    @property
    def games_skipped(self) -> int:
        """Number of games that ended before anybody had a choice and were not shown."""
        return int(self._slots["skipped"].sum())

    # ---------------------------------------------------------------------------- reading arguments

    def _check_open(self) -> None:
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("the environment has been closed")

    def _read_actions(self, actions: Any) -> None:
        """Take the caller's actions over into ``_choices`` if they may be played."""
        array = whole_numbers(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise IllegalMoveError(
                f"actions must be whole numbers [{self.num_envs}], got {_kind(array)}"
            )
        self._choices[:] = array
        raises = self.illegal == "raise"
        disabled = self.autoreset_mode is AutoresetMode.DISABLED
        if raises or disabled:
            i = stepping.first_fault(self._slots, self._choices, raises, disabled)
            if i >= 0:
                raise self._fault(int(i))

    def _fault(self, i: int) -> KimbleError:
        slot, state = self._slots[i], self._states[i]
        if slot["phase"] != stepping.ASKED:
            return GameOverError(f"game {i} is over: reset it with options={{'reset_mask': mask}}")
        die, seat = int(state["die"]), SEAT_NAMES[int(state["seat"])]
        return IllegalMoveError(
            f"game {i}: {shown_action(self.rules, int(self._choices[i]), die)} of {seat} is not "
            f"legal in {shown_position(self.rules, state)}; legal: "
            f"{shown_actions(self.rules, int(slot['actions']), die)}"
        )

    def _read_mask(self, mask: Any) -> npt.NDArray[np.int64]:
        if mask is None:
            return self._rows
        fits = isinstance(mask, np.ndarray) and mask.shape == (self.num_envs,)
        if not fits or mask.dtype != np.bool_ or not mask.any():
            raise KimbleError(
                f"reset_mask must be an array bool [{self.num_envs}] with at least one True, "
                f"got {_kind(mask)}"
            )
        if not self._running and not mask.all():
            raise gymnasium.error.ResetNeeded(
                "the first reset, or that after an interrupted step, must be of all games"
            )
        return np.flatnonzero(mask).astype(np.int64)

    def _read_positions(self, position: Any) -> npt.NDArray[np.void]:
        """Return the games to start from: STATE [0], [1] or [N]."""
        if position is None:
            return stepping.no_templates()
        if isinstance(position, str):
            return read_start(position, self.rules)
        if not isinstance(position, Sequence) or len(position) != self.num_envs:
            raise PositionError(
                f"position must be a text or a sequence of {self.num_envs} texts, got "
                f"{_kind(position)}"
            )
        templates = np.zeros(self.num_envs, STATE)
        for i, text in enumerate(position):
            templates[i] = read_start(text, self.rules)[0]
        return templates

    def _read_seeds(self, seed: Any) -> list[int | None]:
        """Return the new seed of every slot, None where it keeps its own."""
        if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            if len(seed) != self.num_envs:
                raise KimbleError(f"expected one seed per game ({self.num_envs}), got {len(seed)}")
            seeds = [None if one is None else read_seed(one) for one in seed]
        else:
            if seed is not None:
                whole = read_seed(seed)
                return [slot_seed(whole, self.first_game + i) for i in range(self.num_envs)]
            seeds = [None] * self.num_envs
        if self._seeded:
            return seeds
        entropy = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        return [int(e) if s is None else s for s, e in zip(seeds, entropy, strict=True)]

    def _seed_slots(self, bases: list[int | None], rows: npt.NDArray[np.int64]) -> None:
        chosen = np.zeros(self.num_envs, np.bool_)
        chosen[rows] = True
        for i in np.flatnonzero(chosen & np.array([base is not None for base in bases])):
            self._slots["base"][i] = bases[i]
            self._slots["games"][i] = 0

    # ------------------------------------------------------------------------------------ stepping

    def _next_outputs(self) -> Outputs:
        """Return the arrays that this step fills: new ones, or those of the last step but one."""
        if self.copy:
            return self._new_outputs()
        if len(self._buffers) < 2:
            self._buffers.append(self._new_outputs())
        else:
            self._buffers.reverse()
        return self._buffers[-1]

    def _new_outputs(self) -> Outputs:
        """Allocate what a step hands out; what it does not hand out is always the same array."""
        illegal = self._unseen_illegal if self.illegal == "raise" else None
        lineups = self._unseen_lineups if self._opponents is None else None
        return stepping.make_outputs(self.num_envs, self._size, self._actions, illegal, lineups)

    def _advance(self, out: Outputs, rows: Array, command: int, setup: Setup) -> None:
        """Move the slots ``rows`` on until each waits for the caller or is over."""
        self._call_kernel(out, rows, command, setup)
        while (highest := self._slots["phase"].max()) >= stepping.EXTERNAL:
            if highest == stepping.STUCK:
                raise self._stuck()
            waiting = np.flatnonzero(self._slots["phase"] == stepping.EXTERNAL)
            self._ask_opponents(waiting)
            self._call_kernel(out, waiting, stepping.RESUME, setup)

    def _advance_or_not(self, out: Outputs, rows: Array, command: int, setup: Setup) -> None:
        """As ``_advance``, but if an opponent fails or Ctrl-C comes, nothing has changed.

        If the log is too short for the throws, it is made longer and all is done again, with the
        same dice.
        """
        before, running = self._snapshot(), self._running
        self._running = False  # until it is sure how the games stand
        try:
            self._advance(out, rows, command, setup)
            while self._log_rows and self._slots["logged"][0] > len(self._log):
                self._log = np.zeros((2 * int(self._slots["logged"][0]), LOG_COLUMNS), np.int8)
                self._setup = self._setup._replace(log=self._log)
                setup = setup._replace(log=self._log)
                self._restore(before)
                self._advance(out, rows, command, setup)
        except BaseException:
            self._restore(before)
            self._running = running
            raise
        self._running = running

    def _snapshot(self) -> tuple[Array, Array, Array]:
        return raw(self._states).copy(), raw(self._slots).copy(), self._choices.copy()

    def _restore(self, before: tuple[Array, Array, Array]) -> None:
        raw(self._states)[:], raw(self._slots)[:], self._choices[:] = before

    def _call_kernel(self, out: Outputs, rows: Array, command: int, setup: Setup) -> None:
        step = partial(
            stepping.advance_slots,
            self._states,
            self._slots,
            *setup,
            *out,
            self._choices,
            rows,
            command,
        )
        run_slices(step, len(rows), self.threads)

    def _ask_opponents(self, waiting: npt.NDArray[np.int64]) -> None:
        """Ask each agent that is not compiled for all its decisions at once."""
        assert self._opponents is not None
        seats = self._states["seat"][waiting]
        table_rows = self._slots["seating"][waiting, seats]
        for row in np.unique(table_rows):
            agent = self._opponents.agents[row]
            mine = waiting[table_rows == row]
            positions = raw(self._states)[mine].view(STATE)
            keys = decision_keys(positions)
            if isinstance(agent, CheckedAgent):  # hides and checks by itself
                answer = agent.act(positions, keys)
            else:
                answer = agent.act(hide_random_state(positions), keys)
                answer = check_actions(positions, self.rules, answer, agent.spec)
            self._choices[mine] = answer

    def _stuck(self) -> KimbleError:
        i = int(np.flatnonzero(self._slots["phase"] == stepping.STUCK)[0])
        return KimbleError(
            f"game {i}: {stepping.MAX_TRIES} games in a row ended before anybody had a choice; "
            "ask_forced=True asks also where only one action is legal"
        )

    # ---------------------------------------------------------------------------- what is returned

    def _observations(self, out: Outputs) -> Any:
        if self.mask_in_observation:
            return {"observation": out.observations, "action_mask": out.masks}
        return out.observations

    def _info(self, out: Outputs) -> Info:
        info = {
            "action_mask": out.masks,
            "seat": out.seats,
            "rewards": out.rewards,
            "acted": out.acted,
            "drinks": out.drinks,
        }
        if self._opponents is not None:
            info["lineup"] = out.lineups
        if self.illegal != "raise":
            info["illegal"] = out.illegal
        info.update({f"_{key}": self._all for key in tuple(info)})
        return info

    def _add_ends(self, out: Outputs, info: Info) -> None:
        """Add what is told of the games that ended in this step."""
        done = out.terminated | out.truncated
        if self.episode_statistics:
            self._add_statistics(out, info, done)
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not done.any():
            return
        ends = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(done):
            ends[i] = self._final_observation(int(i))
        final = {
            "action_mask": self._end_masks,
            "seat": np.where(done, self._slots["final_seat"], np.int8(0)),
            "rewards": out.rewards * done[:, None],
            "acted": out.acted * done,
            "drinks": out.drinks * done[:, None],
        }
        if self._opponents is not None:
            final["lineup"] = np.where(done, self._slots["final_lineup"], np.int32(0))
        if self.illegal != "raise":
            final["illegal"] = out.illegal & done
        final.update({f"_{key}": done for key in tuple(final)})
        info.update(final_obs=ends, _final_obs=done, final_info=final, _final_info=done)

    def _final_observation(self, i: int) -> Any:
        observation = self._final_observations[i].copy()
        if self.mask_in_observation:
            return {"observation": observation, "action_mask": self._end_masks[i].copy()}
        return observation

    def _add_statistics(self, out: Outputs, info: Info, done: npt.NDArray[np.bool_]) -> None:
        now = time.perf_counter()
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        started = done if same_step else out.acted < 0
        if done.any():
            source = self._slots["final_total" if same_step else "total"]
            steps = self._slots["final_steps" if same_step else "steps"]
            info["episode"] = {
                "r": np.where(done, source, 0.0),
                "l": np.where(done, steps, 0),
                "t": np.where(done, np.round(now - self._started, 6), 0.0),
            }
            info["_episode"] = done
        self._started[started] = now

    def _frame(self, i: int) -> Any:
        draw = pictures.text if self.render_mode == "ansi" else pictures.rgb_array
        return draw(self.rules, self._states[i : i + 1])

    # -------------------------------------------------------------------------------------- copying

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the arrays that are made anew; a log of the last step is not kept."""
        made = {"_final_observations", "_log", "_choices", "_rows", "_buffers", "_all", "_setup"}
        made |= {"_end_masks", "_unseen_illegal", "_unseen_lineups"}
        return {key: value for key, value in self.__dict__.items() if key not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._allocate()

    def __copy__(self) -> KimbleVectorEnv:
        """A copy shares nothing: two environments on one board would be no copy."""
        return deepcopy(self)


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise KimbleError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def read_render_mode(mode: str | None, known: Sequence[str]) -> str | None:
    """Return a render mode that is None or one of those known.

    Raises:
        KimbleError: it is not.
    """
    if mode is not None and mode not in known:
        raise KimbleError(f"render_mode must be None or one of {', '.join(known)}, got {mode!r}")
    return mode
