"""One seat learns, the opponents play inside ``step``: a plain Gymnasium environment.

>>> import gymnasium as gym
>>> env = gym.make("kimble_env:Kimble-v0", opponents=("cautious", "random", "random"))
>>> observation, info = env.reset(seed=7)
>>> done = False
>>> while not done:
...     action = env.action_space.sample(info["action_mask"])
...     observation, reward, terminated, truncated, info = env.step(action)
...     done = terminated or truncated

==============  =================================================================================
actions         ``Discrete(A)``: 0 enter, ``1 + p`` the unit on progress p, the last one pass (A =
                34 on kimble28)
observations    int8 (size,), see ``kimble_env.observation`` (160 on kimble28); with
                ``mask_in_observation`` a dict of ``observation`` and ``action_mask``
rewards         at the end +1 for a win, -1/(n - 1) for a loss; see ``kimble_env.rewards``
==============  =================================================================================

``info``:

``action_mask``
    int8 (A,), 1 for every legal action; once the game is over only pass. ``action_masks()`` returns
    the same as bool, as sb3-contrib asks for it.
``seat``
    The learner's seat, 0 red to 3 green; with two colours the one that acts.
``events``
    The throws since the learner's last choice, its own included, in order: dicts with ``seat``,
    ``die``, ``move`` (its text, None without a legal move), ``battle`` (the dice of attacker and
    defender, or None) and ``events``, tuples ``("loss", seat, pieces, cause)`` and
    ``("arrival", seat, pieces)``.
``drinks``
    Pieces that the learner lost or brought home since its last choice (R33): a cost to train with.
``rewards``
    float32 (4,): what every seat got in this step.
``opponents``
    The specs of this game's opponents, clockwise from the learner.
``illegal``
    True after an illegal action under ``illegal="noop"`` or ``"lose"``; else absent.

A game that ends before the learner had any choice is not shown; the next one begins at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from operator import index
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from kimble_env import render as pictures
from kimble_env.board import SEAT_NAMES
from kimble_env.errors import GameOverError, IllegalMoveError, KimbleError, PositionError
from kimble_env.game import read_options, read_seed
from kimble_env.kernel import ARRIVED, ENTER
from kimble_env.lineups import PoolLike
from kimble_env.notation import CAUSES, format_move
from kimble_env.render.view import LastMove
from kimble_env.rewards import Shaping
from kimble_env.rules import Rules
from kimble_env.stepping import OVER
from kimble_env.vector import KimbleVectorEnv, read_render_mode

FIRST_LOG_ROWS = 256


MoveTexts = tuple[tuple[str | None, ...], ...]


def move_texts(rules: Rules) -> MoveTexts:
    """Return the text of every move as ``[die - 1][action]``; None where none is, and for -1."""

    def text(action: int, die: int) -> str | None:
        beyond = action - 1 + die > rules.last_progress  # R4
        always = action in (ENTER, rules.board.pass_action)
        return None if beyond and not always else format_move(rules, action, die)

    codes = range(rules.board.actions)
    return tuple((*(text(code, die) for code in codes), None) for die in range(1, 7))


def throw_events(log: npt.NDArray[np.int8], moves: MoveTexts) -> list[dict[str, Any]]:
    """Return the rows of a log of throws int8 [n, LOG_COLUMNS] as ``info["events"]`` shows them."""
    thrown = []
    for seat, die, action, attack, defence, count, *numbers in log.tolist():
        events: list[tuple[Any, ...]] = []
        for k in range(0, 4 * count, 4):
            kind, who, pieces = numbers[k : k + 3]
            if kind == ARRIVED:
                events.append(("arrival", who, pieces))
            else:
                events.append(("loss", who, pieces, CAUSES[kind - 1]))
        thrown.append(
            {
                "seat": seat,
                "die": die,
                "move": moves[die - 1][action],
                "battle": (attack, defence) if attack else None,
                "events": tuple(events),
            }
        )
    return thrown


class _OneGame(KimbleVectorEnv):
    """A batch of one that keeps a log of the throws of every step."""

    _log_rows = FIRST_LOG_ROWS

    def last_throws(self) -> npt.NDArray[np.int8]:
        """Return the throws of the last step or reset: int8 [n, LOG_COLUMNS]."""
        return self._log[: int(self._slots["logged"][0])]

    def specs_of(self, lineup: int) -> tuple[str, ...]:
        """Return the specs of a line-up by its number."""
        assert self._opponents is not None
        return self._opponents.specs[lineup]

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return bool(self._slots["phase"][0] == OVER)


class KimbleSingleSeat(gymnasium.Env[Any, Any]):
    """See the page of this module.

    Args:
        rules: name or text of a rule set, or Rules.
        opponents: one agent for all other seats; one per seat, clockwise from the learner; or a
            pool of such line-ups, from which every game draws (``kimble_env.lineups.read_pool``).
        chances: how often each line-up of a pool is drawn, relative; None: equally often.
        seat: the learner's: 0..3, its letter or colour, ``"rotate"`` (another from game to game),
            or None for the first that plays.
        ask_forced: ask also where only one action is legal.
        illegal: what an illegal action does: ``"raise"`` (IllegalMoveError, nothing has changed),
            ``"lose"`` (the game ends as a loss) or ``"noop"`` (asked again).
        shaping: None (off), a scale, or a ``Shaping``.
        cup_cost: what a piece lost or come home costs its player (see ``kimble_env.rewards``).
        mask_in_observation: observations are dicts ``observation`` and ``action_mask``.
        render_mode: None, ``"ansi"``, ``"rgb_array"`` or ``"human"``.
        options: options of the rules (``max_turns=500`` truncates), ``players`` or ``seats``.

    Raises:
        RulesError: rules or options that cannot be.
        AgentError: an opponent that is not known or does not fit.
        KimbleError: any other argument that cannot be.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's attribute)
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }

    def __init__(
        self,
        rules: str | Rules = "kimble",
        *,
        opponents: PoolLike = "random",
        chances: Sequence[float] | None = None,
        seat: int | str | None = None,
        ask_forced: bool = False,
        illegal: str = "raise",
        shaping: float | Shaping | None = None,
        cup_cost: float = 0.0,
        mask_in_observation: bool = False,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if opponents is None:
            raise KimbleError("opponents must be given; KimbleVectorEnv can expose all seats")
        self.render_mode = read_render_mode(render_mode, self.metadata["render_modes"])
        self._envs = _OneGame(
            1,
            rules,
            opponents=opponents,
            chances=chances,
            seat=seat,
            ask_forced=ask_forced,
            illegal=illegal,
            shaping=shaping,
            cup_cost=cup_cost,
            autoreset_mode=AutoresetMode.DISABLED,
            mask_in_observation=mask_in_observation,
            **options,
        )
        self.rules = self._envs.rules
        self.mask_in_observation = self._envs.mask_in_observation
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self._moves = move_texts(self.rules)
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game and play on to the learner's first choice.

        Args:
            seed: a whole number 0..2^64 - 1; None goes on to the next game of the seed before.
            options: ``{"position": text}`` starts from a position; the rest is ignored.

        Raises:
            KimbleError: a seed that cannot be, or rules under which the learner is never asked.
            NotationError, PositionError: a position that cannot be read, cannot be, is over, or is
                not of these rules and seats.
        """
        position = read_options(options).get("position")
        if position is not None and not isinstance(position, str):
            raise PositionError(f"a position must be a text, got {position!r}")
        if seed is not None:
            read_seed(seed)
        observations, info = self._envs.reset(seed=seed, options={"position": position})
        if seed is not None:
            super().reset(seed=int(seed))
        if self.render_mode == "human":
            self._draw()
        return self._only(observations, info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action of the learner and go on to its next choice or the end of the game.

        Raises:
            IllegalMoveError: not a whole number, or, under ``illegal="raise"``, not legal. Nothing
                has changed.
            GameOverError: the game is over. Nothing has changed.
            gymnasium.error.ResetNeeded: before the first ``reset``.
        """
        if self._envs.is_over:
            raise GameOverError("the game is over; call reset()")
        try:
            if isinstance(action, bool):  # a whole number to Python, but no choice of a move
                raise TypeError
            code = index(action)
        except TypeError:
            raise IllegalMoveError(
                f"the action must be a whole number 0..{self.rules.board.pass_action}, "
                f"got {action!r}"
            ) from None
        code = code if 0 <= code < self.rules.board.actions else -1
        observations, reward, terminated, truncated, info = self._envs.step(np.array([code]))
        if self.render_mode == "human":
            self._draw()
        observation, told = self._only(observations, info)
        return observation, float(reward[0]), bool(terminated[0]), bool(truncated[0]), told

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return what is legal now: bool (A,); only pass once the game is over."""
        masks: npt.NDArray[np.bool_] = self._envs.action_masks()[0]
        return masks

    def set_opponents(
        self, opponents: PoolLike, chances: Sequence[float] | None = None
    ) -> tuple[int, ...]:
        """Exchange the opponents from the next game on; see ``KimbleVectorEnv.set_opponents``."""
        return self._envs.set_opponents(opponents, chances)

    def render(self) -> Any:
        """Draw the board as ``render_mode`` says.

        Returns:
            A text for ``"ansi"``, uint8 [height, width, 3] for ``"rgb_array"``, None for
            ``"human"``; without a render mode None and a warning.

        Raises:
            ImportError: ``"human"`` without pygame-ce; the message names the extra to install.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode draws nothing")
            return None
        return self._draw()

    def close(self) -> None:
        """Close the window, if one is open."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def position(self) -> str:
        """Return the position text of the game."""
        return self._envs.position(0)

    def state(self) -> npt.NDArray[np.void]:
        """Return a copy of the game, STATE [1], without what would tell the dice to come."""
        return self._envs.states()

    def __str__(self) -> str:
        """The class and the rules."""
        return f"KimbleSingleSeat({self.rules})"

    # -------------------------------------------------------------------------------- odds and ends

    def _only(self, observations: Any, batched: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return observation and info of the one game; the mask is one object in both."""
        info = self._info(batched)
        if not self.mask_in_observation:
            return observations[0], info
        flat = observations["observation"][0]
        return {"observation": flat, "action_mask": info["action_mask"]}, info

    def _info(self, batched: dict[str, Any]) -> dict[str, Any]:
        """Return the info of the one game, with the events of its log."""
        seat = int(batched["seat"][0])
        drinks = batched["drinks"][0]
        partner = (seat + 2) % len(SEAT_NAMES)
        own = drinks[seat] + (drinks[partner] if self.rules.two_colours else 0)
        info = {
            "action_mask": batched["action_mask"][0],
            "seat": seat,
            "events": throw_events(self._envs.last_throws(), self._moves),
            "drinks": int(own),
            "rewards": batched["rewards"][0],
            "opponents": self._envs.specs_of(int(batched["lineup"][0])),
        }
        if "illegal" in batched and batched["illegal"][0]:
            info["illegal"] = True
        return info

    def _draw(self) -> Any:
        states, log = self._envs.states(), self._envs.last_throws()
        last = LastMove.from_log(self.rules, log[-1]) if len(log) else None
        if self.render_mode == "ansi":
            return pictures.text(self.rules, states, last=last)
        if self.render_mode == "rgb_array":
            return pictures.rgb_array(self.rules, states, last=last)
        if self._window is None:
            title, fps = f"Kimble: {self.rules}", self.metadata["render_fps"]
            self._window = pictures.Window(title=title, fps=fps)
        self._window.show(self.rules, states, last=last)
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the window: a copy plays on with the same dice."""
        return {**self.__dict__, "_window": None}

    def __copy__(self) -> KimbleSingleSeat:
        """A copy shares nothing: two environments on one board would be no copy."""
        return deepcopy(self)
