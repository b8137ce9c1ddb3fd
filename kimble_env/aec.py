"""Kimble, Kombat Kimble and Norske Kimble as a PettingZoo AEC environment.

Every player of the board is an agent; they act one after the other. Dice belong to the environment.

>>> from kimble_env import kimble_v0
>>> env = kimble_v0.env(rules="norske", max_turns=40)
>>> env.reset(seed=7)
>>> for agent in env.agent_iter():
...     observation, reward, termination, truncation, info = env.last()
...     if termination or truncation:
...         action = None
...     else:
...         action = env.action_space(agent).sample(observation["action_mask"])
...     env.step(action)

With PettingZoo 1.27 or later, ``pettingzoo.make("aec", "kimble/kimble-v0", rules="norske")`` after
``import kimble_env``. All figures on this page are those of ``env()``: rule set ``kimble``, four
players, board ``kimble28``; the boards ``cross40`` and ``ludo52`` give others.

====================  ============================================================
import                ``from kimble_env import kimble_v0``
actions               ``Discrete(34)``, masked
agents                2 to 4: ``player_0`` … ``player_3``, clockwise
observation           ``Dict``: ``observation`` int8 (160,), ``action_mask`` int8 (34,)
values                0 to 4 in ``observation``, 0 and 1 in ``action_mask``
state                 int8 (160,)
parallel API          no: the game is strictly one after the other
====================  ============================================================

Arguments
---------
``env(rules="kimble", *, render_mode=None, ask_forced=False, illegal="raise", shaping=None,
cup_cost=0.0, **options)``; ``raw_env`` takes the same.

``rules``
    ``"kimble"``, ``"kombat"``, ``"norske"``, a text with options such as
    ``"norske[own_collision=mover,pieces=2]"``, or a ``Rules``.
``render_mode``
    None, ``"ansi"`` (text), ``"rgb_array"`` (uint8 [height, width, 3]) or ``"human"`` (a window,
    drawn after every step).
``ask_forced``
    False: a seat is asked only when it has a choice, two legal actions or more; forced throws are
    played through and reported in ``info["events"]``. True: it is asked whenever any action is
    legal. A game in which nobody ever has a choice is over right after ``reset``.
``illegal``
    What an illegal action does. ``"raise"``: IllegalMoveError, and nothing has changed.
    ``"lose"``: the game ends and the agent gets the reward of a loser, the others 0. ``"noop"``:
    nothing happens, the same agent is asked again and finds ``info["illegal"]``.
``shaping``
    None, a scale, or a ``Shaping(scale, gamma)``: potential-based shaping, see Rewards.
``cup_cost``
    What a piece lost or come home costs its player, see Rewards.
``options``
    Any option of the rules (``pieces=2``, ``board="cross40"``, ``max_turns=500``,
    ``play_for_places=True``, …), ``players=2`` to 4, or ``seats="RBY"``.

``reset(seed=None, options=None)``: equal seeds give equal games; a later reset without a seed goes
on to the next game of that seed, and without any seed the games differ from run to run.
``options={"position": text}`` starts from a position, for example ``"kimble R10/B-/Y3/G- R 6 1"``;
it must be of the rules and seats of the environment. Other options are ignored.

Observation
-----------
A seat sees the board from its own start, the others clockwise from itself, so turning the board by
one seat changes nothing. With *two_colours* the agent sees the board from the colour that acts, or
that will act next. The four blocks of 37 elements:

=======  =======  =======  =======  ======  ==================================================
self     1st      2nd      3rd      values  meaning
=======  =======  =======  =======  ======  ==================================================
0-27     37-64    74-101   111-138  0-4     pieces on each track field, from the observer's start
28-31    65-68    102-105  139-142  0-4     pieces on each field of the seat's own stretch
32       69       106      143      0-4     pieces in home base
33       70       107      144      0-4     pieces home (Norske)
34       71       108      145      0-1     the seat plays
35       72       109      146      0-1     the seat is out (Norske)
36       73       110      147      0-1     the seat is the observer's other colour
=======  =======  =======  =======  ======  ==================================================

and what belongs to the throw:

=========  ======  ==============================================================================
elements   values  meaning
=========  ======  ==============================================================================
148-151    0-1     seat to act, clockwise from the observer; the winner in a finished game
152-157    0-1     the die thrown, 1 to 6; all zero when none is
158        0-3     throws left of this throwing turn, this one included
159        0-1     sixes so far, up to the option ``max_sixes``; 0 without it
=========  ======  ==============================================================================

``kimble_env.observation.named_views`` gives the same by name. ``state()`` is the board as seat red
sees it, whoever plays: absolute, in the order red, blue, yellow, green.

Actions
-------
An action says where the unit stands that is to move, along the route of the seat to act:

=========  ======================================================================================
action     meaning
=========  ======================================================================================
0          enter: a piece from home base to the start
1-28       the unit on track field 0-27, counted from the own start
29-32      the unit on stretch field 28-31
33         pass
=========  ======================================================================================

``action_mask`` is 1 for every legal action of the agent to act, and never empty for it. For an
agent that is not asked it is all zero; once the game is over it allows only pass, and ``step``
takes None. ``info["action_mask"]`` is the same object as ``observation["action_mask"]``.

Rewards
-------
The winner gets 1 at the end and each other agent -1/(n - 1): with four players -1/3. With
``play_for_places`` the reward falls linearly from 1 for the first place to -1 for the last. A game
cut off by ``max_turns`` truncates and gives 0 to all. Nothing else is rewarded, unless ``shaping``
is on: then an agent that is asked again gets ``scale * (gamma * Φ(now) - Φ(when last asked))``,
Φ being how far its pieces have come less the mean of the others, and Φ = 0 after a won or lost
game (see ``kimble_env.rewards``). ``gamma`` must be the learner's discount; then the optimal
policy does not change. With ``cup_cost`` an agent that is asked again, or whose game has ended,
gets ``-cup_cost`` for each of its ``drinks`` (see Info).

``last()`` gives, as PettingZoo has it, all that an agent got since its previous action.

Info
----
``info`` of the agent to act, and of every agent once the game is over:

``action_mask``
    int8 (34,), see Actions.
``seat``
    The seat that the agent acts for, 0 red to 3 green.
``events``
    A list of the throws resolved since the agent's last action, its own included, in order: dicts
    with ``seat``, ``die``, ``move`` (its text, None without a legal move), ``battle`` (the dice of
    attacker and defender, or None) and ``events``, tuples ``("loss", seat, pieces, cause)`` and
    ``("arrival", seat, pieces)``.
``drinks``
    Pieces lost and pieces come home since the agent's last action: what Norske Kimble makes one
    drink for (R33). A cost to train with, if you like; it is no part of the reward.
``illegal``
    True after an illegal action under ``illegal="noop"`` or ``"lose"``; else absent.

The info of an agent that is not asked holds only its empty ``action_mask``.

Version history
---------------
* v0: first version (observation version 1, action version 1).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import lru_cache
from operator import index
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable
from pettingzoo.utils.env_logger import EnvLogger

from kimble_env import render as pictures
from kimble_env.aec_kernel import (
    DRINKS_SHIFT,
    STATUS_SHIFT,
    THROWS_LIMIT,
    THROWS_SHIFT,
    aec_observe,
    aec_start,
    aec_step,
    unpack_throw,
)
from kimble_env.board import SEATS
from kimble_env.errors import (
    GameOverError,
    IllegalMoveError,
    KimbleError,
    NotationError,
)
from kimble_env.game import read_options, read_seed
from kimble_env.kernel import (
    ARRIVED,
    LOG_COLUMNS,
    TRUNCATED,
    empty_states,
    game_keys,
    legal_batch,
    new_game_batch,
)
from kimble_env.notation import (
    CAUSES,
    EventTuple,
    format_move,
    read_start,
    shown_action,
    shown_actions,
)
from kimble_env.observation import observation_layout
from kimble_env.rewards import (
    Shaping,
    check_illegal,
    final_rewards_batch,
    loss_reward,
    potential_batch,
    read_cup_cost,
    read_shaping,
)
from kimble_env.rules import Rules, find_rules

Observation = dict[str, npt.NDArray[np.int8]]
INT8 = np.dtype(np.int8)
RENDER_MODES = ("human", "rgb_array", "ansi")
FIRST_LOG_ROWS = 256
KEPT_EVENTS = 20_000
"""Throws kept before those that every agent has been told are dropped."""


@lru_cache(maxsize=64)
def move_texts(rules: Rules) -> tuple[tuple[str | None, ...], ...]:
    """Return the text of every move as ``[die][action]``, None where there is no such move.

    Die 0 has none, and the entry behind the last action, which is that of action -1, is None.
    """
    codes = range(rules.board.actions)
    none = (None,) * (rules.board.actions + 1)
    return (
        none,
        *((*(_move_text(rules, code, die) for code in codes), None) for die in range(1, 7)),
    )


def _move_text(rules: Rules, action: int, die: int) -> str | None:
    try:
        return format_move(rules, action, die)
    except NotationError:
        return None  # beyond the end of the route (R4)


def throw_event(packed: int, moves: tuple[tuple[str | None, ...], ...]) -> dict[str, Any]:
    """Return a throw as the dict that ``info["events"]`` shows; see the page of this module."""
    throw = unpack_throw(packed)
    events: list[EventTuple] = [
        ("arrival", seat, count) if kind == ARRIVED else ("loss", seat, count, CAUSES[kind - 1])
        for kind, seat, count, _ in throw.events
    ]
    return {
        "seat": throw.seat,
        "die": throw.die,
        "move": moves[throw.die][throw.action],
        "battle": throw.battle,
        "events": tuple(events),
    }


class raw_env(AECEnv[str, Observation, int]):
    """The environment without checks of the order of calls. See the page of this module.

    Args:
        rules: name or text of a rule set, or Rules.
        render_mode: None, ``"human"``, ``"rgb_array"`` or ``"ansi"``.
        ask_forced: ask also where only one action is legal.
        illegal: ``"raise"``, ``"lose"`` or ``"noop"``.
        shaping: None (off), a scale or a Shaping.
        cup_cost: what a piece lost or come home costs its player.
        options: options of the rules, ``players`` or ``seats``.

    Raises:
        RulesError: rules or options that cannot be.
        KimbleError: another argument that cannot be.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's attribute)
        "name": "kimble_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "is_parallelizable": False,
    }

    # Before the first reset there is no game, so nothing to see and nobody to act.
    _over = True
    _seen: npt.NDArray[np.int8] | None = None

    infos: dict[str, dict[str, Any]]
    _rewarded: bool  # whether any of rewards may be other than 0
    _events: list[dict[str, Any]]
    _told: dict[str, int]  # per agent, the number of events before its last action
    _potentials: dict[str, float]  # shaping: per agent, when it last decided

    def __init__(
        self,
        rules: str | Rules = "kimble",
        *,
        render_mode: str | None = None,
        ask_forced: bool = False,
        illegal: str = "raise",
        shaping: float | Shaping | None = None,
        cup_cost: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise KimbleError(
                f"render_mode must be None or one of {', '.join(RENDER_MODES)}, got {render_mode!r}"
            )
        self.rules = find_rules(rules, **options)
        self.render_mode = render_mode
        self.ask_forced = bool(ask_forced)
        self.illegal = check_illegal(illegal)
        self.shaping = read_shaping(shaping)
        self.cup_cost = read_cup_cost(cup_cost)
        self._make_agents()
        self._make_spaces()
        self._seed: int | None = None
        self._game = 0  # how many games have been played since the seed was set
        self._window: pictures.Window | None = None
        self._rules_array = self.rules.array
        self._moves = move_texts(self.rules)
        self._known_throws: dict[int, dict[str, Any]] = {}
        self._states = empty_states(2)  # the game, and the game before the last step
        self._drunk = np.zeros(SEATS, np.int64)
        self._make_log(FIRST_LOG_ROWS)

    def _make_agents(self) -> None:
        """Name the agents: the i-th playing seat, or with two colours the i-th player (R17)."""
        players = self.rules.players
        self.possible_agents = [f"player_{i}" for i in range(players)]
        playing = self.rules.seats
        self._seats_of = {
            agent: playing[i::2] if self.rules.two_colours else playing[i : i + 1]
            for i, agent in enumerate(self.possible_agents)
        }
        self._agent_of = {seat: agent for agent, own in self._seats_of.items() for seat in own}

    def _make_log(self, rows: int) -> None:
        self._log = np.zeros((rows, LOG_COLUMNS), np.int8)
        self._throws = np.zeros(rows, np.int64)

    def _make_spaces(self) -> None:
        layout = observation_layout(self.rules)
        self._size, self._actions = layout.size, layout.actions
        self.state_space = spaces.Box(layout.low, layout.high, dtype=np.int8)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(layout.low, layout.high, dtype=np.int8),
                    "action_mask": spaces.Box(0, 1, (layout.actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces: dict[str, spaces.Space[Any]] = {
            agent: spaces.Discrete(layout.actions) for agent in self.possible_agents
        }

    # -------------------------------------------------------------------------- PettingZoo's API

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space of an agent, the same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space of an agent, the same object every time."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: a whole number 0..2**64-1; None goes on to the next game of the seed before, or
                draws a seed if there is none.
            options: ``{"position": text}`` starts from a position; the rest is ignored.

        Raises:
            KimbleError: the seed is no such number, or options that are no dict.
            NotationError, PositionError: a position that cannot be read, cannot be, is not of
                these rules and seats, or is over.
        """
        position = self._position(options)
        if seed is not None or self._seed is None:
            self._seed, self._game = read_seed(seed), 0
        key = np.zeros(1, np.uint64)
        game_keys(np.uint64(self._seed), self._game, key)
        self._game += 1
        if position is None:
            self._new_game(key)
        else:
            self._states[:1] = position
            self._states["seed"][0] = key[0]
        self._begin()

    def step(self, action: Any) -> None:
        """Play an action of the agent to act, or retire an agent of a finished game with None.

        Raises:
            IllegalMoveError: not a whole number, or not legal under ``illegal="raise"``; nothing
                has changed.
            GameOverError: every agent has been retired.
            ValueError: an action other than None for an agent of a finished game.
        """
        if self._over:
            self._retire(action)
            return
        try:
            code = index(action)
        except TypeError:
            raise self._not_a_number(action) from None
        if action is True or action is False:  # whole numbers to Python, but no choice of a move
            raise self._not_a_number(action)
        observation, mask = np.empty(self._size, INT8), np.empty(self._actions, INT8)
        answer = self._play(code, observation, mask) if 0 <= code < self._actions else -1
        if answer < 0:
            self._illegal(code)
            return
        agent = self.agent_selection
        if self._rewarded:
            self._clear_rewards()
            self._rewarded = False
        self._cumulative_rewards[agent] = 0.0
        self._told[agent] = len(self._events)
        waiting = self._masks[agent] = np.zeros(self._actions, INT8)
        self.infos[agent] = {"action_mask": waiting}
        self._receive(answer, observation, mask, code)

    def observe(self, agent: str) -> Observation:
        """Return what an agent sees: fresh arrays, at any time, also for retired agents.

        Raises:
            KeyError: no agent has that name.
        """
        seen = self._seen
        if seen is None or agent != self.agent_selection:
            return self._observe_anew(agent)
        self._seen = None  # handed out once: the next call makes an array of its own
        return {"observation": seen, "action_mask": self._masks[agent]}

    def last(
        self, observe: bool = True
    ) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        """Return observation, reward since its last action, termination, truncation and info."""
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Yield the agent to act until all have been retired; call ``step`` once per agent."""
        return _AgentIterable(self, max_iter)

    def state(self) -> npt.NDArray[np.int8]:
        """Return the board as seat red sees it, whoever plays: int8 [size], a fresh array."""
        return self._encode(0)

    def render(self) -> Any:
        """Draw the board as ``render_mode`` says.

        Returns:
            A text for ``"ansi"``, uint8 [height, width, 3] for ``"rgb_array"``, None for
            ``"human"``; without a render mode None and a warning.

        Raises:
            ImportError: ``"human"`` without pygame-ce; the message names the extra to install.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                "You are calling render method without specifying any render mode."
            )
            return None
        return self._draw()

    def _draw(self) -> Any:
        board, last = self._states[:1], self._last_move()
        if self.render_mode == "ansi":
            return pictures.text(self.rules, board, last=last)
        if self.render_mode == "rgb_array":
            return pictures.rgb_array(self.rules, board, last=last)
        if self._window is None:
            self._window = pictures.Window(
                title=f"Kimble: {self.rules}", fps=self.metadata["render_fps"]
            )
        self._window.show(self.rules, board, last=last)
        return None

    def close(self) -> None:
        """Close the window, if one is open. The game can go on, and a window opens again."""
        if self._window is not None:
            self._window.close()
            self._window = None

    # ------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the window and what can be made anew: a copy plays on with equal dice."""
        left_out = ("_window", "_rules_array", "_known_throws")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rules_array = self.rules.array
        self._known_throws = {}
        self._window = None

    def __copy__(self) -> raw_env:
        """A copy shares nothing: two games on one board would be no copy."""
        return copy.deepcopy(self)

    # ---------------------------------------------------------------------------- starting a game

    def _position(self, options: dict[str, Any] | None) -> npt.NDArray[np.void] | None:
        """Return the game that the options ask for, or None."""
        text = read_options(options).get("position")
        return None if text is None else read_start(text, self.rules)

    def _new_game(self, key: npt.NDArray[np.uint64]) -> None:
        plays = np.zeros((1, SEATS), np.int8)
        plays[0, list(self.rules.seats)] = 1
        new_game_batch(self._states[:1], self._rules_array, plays, key, np.zeros((0, 2), np.int8))

    def _begin(self) -> None:
        """Set what PettingZoo asks for to the start of a game and throw to the first choice."""
        agents = self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self._masks = {agent: np.zeros(self._actions, INT8) for agent in agents}
        self.infos = {agent: {"action_mask": self._masks[agent]} for agent in agents}
        self._skip_agent_selection = None
        self._over = False
        self._rewarded = False
        self._events = []
        self._told = dict.fromkeys(agents, 0)
        self._potentials = {}
        observation, mask = np.empty(self._size, INT8), np.empty(self._actions, INT8)
        self._receive(self._start(observation, mask), observation, mask, None)

    def _start(self, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]) -> int:
        return int(
            aec_start(
                self._states,
                self._rules_array,
                self.ask_forced,
                self._drunk,
                observation,
                mask,
                self._log,
                self._throws,
            )
        )

    # ------------------------------------------------------------------------------ after a step

    def _receive(
        self,
        answer: int,
        observation: npt.NDArray[np.int8],
        mask: npt.NDArray[np.int8],
        code: int | None,
    ) -> None:
        """Take in what the compiled call answered: the events, and who is to act or the end."""
        thrown = self._thrown = answer >> THROWS_SHIFT & THROWS_LIMIT
        if thrown > len(self._throws):
            self._throw_again(thrown, observation, mask, code)
        for k in range(thrown):
            self._record(self._throws.item(k))
        if answer >> STATUS_SHIFT & 3:
            self._finish()
        else:
            seat = answer & 3
            agent = self._agent_of[seat]
            self.agent_selection = agent
            self._masks[agent] = mask
            self._seen = observation
            self.infos[agent] = {
                "action_mask": mask,
                "seat": seat,
                "events": self._events[self._told[agent] :],
                "drinks": answer >> DRINKS_SHIFT,
            }
            if self.shaping.scale or self.cup_cost:
                self._pay_turn(agent, answer >> DRINKS_SHIFT)
        if self.render_mode == "human":
            self._draw()

    def _throw_again(
        self,
        thrown: int,
        observation: npt.NDArray[np.int8],
        mask: npt.NDArray[np.int8],
        code: int | None,
    ) -> None:
        """Repeat the call with a log that holds all throws; the dice fall as before."""
        self._make_log(2 * thrown)
        self._states[0] = self._states[1]
        if code is None:
            self._start(observation, mask)
        else:
            self._play(code, observation, mask)

    def _record(self, packed: int) -> None:
        """Add a throw to the events."""
        known = self._known_throws.get(packed)
        if known is None:
            known = self._known_throws[packed] = throw_event(packed, self._moves)
        self._events.append(known.copy())
        if len(self._events) > KEPT_EVENTS:
            self._forget_events()

    def _forget_events(self) -> None:
        """Drop the events that every agent has been told."""
        told = min(self._told.values())
        del self._events[:told]
        self._told = {agent: count - told for agent, count in self._told.items()}

    def _finish(self, loser: str | None = None) -> None:
        """End the game for every agent: won, cut off, or lost by an illegal action of ``loser``."""
        agents, states, rules = self.agents, self._states, self._rules_array
        truncated = loser is None and int(states["status"][0]) == TRUNCATED
        by_seat = np.zeros((1, SEATS))
        final_rewards_batch(states[:1], rules, by_seat)
        potentials = np.zeros((1, SEATS))
        if self.shaping.scale and loser is None:
            potential_batch(states[:1], rules, potentials)
        self._over = True
        self._rewarded = True
        self._seen = None
        self.terminations = dict.fromkeys(agents, not truncated)
        self.truncations = dict.fromkeys(agents, truncated)
        for agent in agents:
            seat = self._seats_of[agent][0]
            reward = float(by_seat[0, seat])
            if agent == loser:
                reward = loss_reward(self.rules)
            self._tell_end(agent)
            if agent != loser:  # who is to act has paid its cups when it was asked
                reward -= self.cup_cost * self.infos[agent]["drinks"]
            self._give(agent, reward + self._shaped(agent, float(potentials[0, seat])))
        self.agent_selection = agents[0]
        if loser is not None:
            self.infos[loser]["illegal"] = True

    def _tell_end(self, agent: str) -> None:
        """Give an agent the info of a finished game."""
        mask = np.zeros(self._actions, INT8)
        mask[-1] = 1  # so that no mask that `last` returns is empty; the only step left is None
        self._masks[agent] = mask
        seats = list(self._seats_of[agent])
        drinks = int((self._states["lost"] + self._states["arrived"])[0, seats].sum())
        self.infos[agent] = {
            "action_mask": mask,
            "seat": self._observer(agent),
            "events": self._events[self._told[agent] :],
            "drinks": drinks - int(self._drunk[seats[0]]),
        }

    def _give(self, agent: str, reward: float) -> None:
        self.rewards[agent] = reward
        self._cumulative_rewards[agent] += reward

    # ----------------------------------------------------------------------------------- shaping

    def _potential(self, agent: str) -> float:
        """Return how far the agent's pieces have come, less the mean of the others."""
        by_seat = np.zeros((1, SEATS))
        potential_batch(self._states[:1], self._rules_array, by_seat)
        return float(by_seat[0, self._seats_of[agent][0]])

    def _shaped(self, agent: str, now: float) -> float:
        """Return what shaping gives to an agent for coming from its last decision to now."""
        if agent not in self._potentials:
            return 0.0  # it has not decided yet, or shaping is off
        return self.shaping.scale * (self.shaping.gamma * now - self._potentials[agent])

    def _pay_turn(self, agent: str, drinks: int) -> None:
        """Give the agent to act its shaping reward and the bill of its cups.

        Where it decides from is remembered for the next time.
        """
        reward = -self.cup_cost * drinks
        if self.shaping.scale:
            now = self._potential(agent)
            reward += self._shaped(agent, now)
            self._potentials[agent] = now
        self._give(agent, reward)
        self._rewarded = True

    # ------------------------------------------------------------------------------ odds and ends

    def _play(
        self, code: int, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]
    ) -> int:
        answer: int = aec_step(
            self._states,
            self._rules_array,
            code,
            self.ask_forced,
            self._drunk,
            observation,
            mask,
            self._log,
            self._throws,
        )
        return answer

    def _last_move(self) -> pictures.LastMove | None:
        """Return the last throw that is over; the record itself remembers only the pending one."""
        if self._thrown == 0:
            return None
        return pictures.LastMove.from_log(self.rules, self._log[self._thrown - 1])

    def _observer(self, agent: str) -> int:
        """Return the seat from which an agent sees the board: where it acts now or next."""
        own = self._seats_of[agent]
        if len(own) == 1:
            return own[0]
        state = self._states[0]
        seat = int(state["seat"])
        if seat in own:
            return seat
        following = (seat + 1) % SEATS
        return following if state["places"][following] == 0 else (seat + 3) % SEATS

    def _observe_anew(self, agent: str) -> Observation:
        return {
            "observation": self._encode(self._observer(agent)),
            "action_mask": self._masks[agent],
        }

    def _encode(self, seat: int) -> npt.NDArray[np.int8]:
        observation = np.empty(self._size, INT8)
        aec_observe(self._states, self._rules_array, seat, observation)
        return observation

    def _not_a_number(self, action: Any) -> IllegalMoveError:
        return IllegalMoveError(
            f"the action of {self.agent_selection} must be a whole number from 0 to "
            f"{self._actions - 1}, got {action!r}"
        )

    def _illegal(self, code: int) -> None:
        """Do what the option ``illegal`` says; the game is as it was before the step."""
        agent = self.agent_selection
        if self.illegal == "raise":
            raise self._illegal_move(code)
        if self._rewarded:
            self._clear_rewards()
        self._cumulative_rewards[agent] = 0.0
        self._told[agent] = len(self._events)
        if self.illegal == "lose":
            self._finish(loser=agent)
            return
        mask = self._masks[agent] = self._masks[agent].copy()
        self.infos[agent] = {
            "action_mask": mask,
            "seat": int(self._states["seat"][0]),
            "events": [],
            "drinks": 0,
            "illegal": True,
        }

    def _illegal_move(self, code: int) -> IllegalMoveError:
        die = int(self._states["die"][0])
        bits = np.zeros(1, np.int64)
        legal_batch(self._states[:1], self._rules_array, bits)
        return IllegalMoveError(
            f"{shown_action(self.rules, code, die)} of {self.agent_selection} is not legal after a "
            f"{die}; legal: {shown_actions(self.rules, int(bits[0]), die)}"
        )

    def _retire(self, action: Any) -> None:
        """Step a finished agent: take it off the lists (PettingZoo's dead step)."""
        if not self.agents:
            raise GameOverError("the game is over and every agent has been retired; call reset()")
        self._was_dead_step(action)


class _AfterReset:
    """An attribute that exists only after the first ``reset``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{self.name} cannot be accessed before reset")


class ordered_env(raw_env):
    """``raw_env`` with PettingZoo's checks of the order of calls, which cost next to nothing here.

    Before ``reset``: AssertionError from methods, AttributeError from attributes. ``step`` after
    all agents have been retired warns; ``agent_iter`` without ``step`` raises AssertionError.
    """

    # Checks stand where a game that has been reset never comes by, so that they cost nothing: an
    # attribute of the object hides the one of the class.
    _has_reset = False
    agents: Any = _AfterReset()
    agent_selection: Any = _AfterReset()
    rewards: Any = _AfterReset()
    terminations: Any = _AfterReset()
    truncations: Any = _AfterReset()
    infos: Any = _AfterReset()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """As ``raw_env.reset``."""
        super().reset(seed, options)
        self._has_reset = True

    def _observe_anew(self, agent: str) -> Observation:
        if not self._has_reset:
            EnvLogger.error_observe_before_reset()
        return super()._observe_anew(agent)

    def _retire(self, action: Any) -> None:
        if not self._has_reset:
            EnvLogger.error_step_before_reset()
        if self.agents:
            super()._retire(action)
        else:
            EnvLogger.warn_step_after_terminated_truncated()

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """As ``raw_env.agent_iter``, and checks that each agent is stepped."""
        if not self._has_reset:
            EnvLogger.error_agent_iter_before_reset()
        return _OrderedIterable(self, max_iter)

    def state(self) -> npt.NDArray[np.int8]:
        """As ``raw_env.state``."""
        if not self._has_reset:
            EnvLogger.error_state_before_reset()
        return super().state()

    def render(self) -> Any:
        """As ``raw_env.render``."""
        if not self._has_reset:
            EnvLogger.error_render_before_reset()
        return super().render()


def env(rules: str | Rules = "kimble", **arguments: Any) -> ordered_env:
    """Return the environment with checks of the order of calls; arguments as for ``raw_env``.

    No PettingZoo wrapper is put around it: what they check, the compiled rules know already.
    """
    return ordered_env(rules, **arguments)


class _AgentIterable(AECIterable[str, Observation, int]):
    """PettingZoo's ``agent_iter`` as a generator, which is faster."""

    env: raw_env

    def __iter__(self) -> Iterator[str]:
        env, left = self.env, self.max_iter
        while left > 0 and env.agents:
            left -= 1
            yield env.agent_selection


class _OrderedIterable(_AgentIterable):
    """The same; an agent that is not stepped before the next is asked for is an error.

    Every step gives the agent to act a new mask, so the mask tells whether there was one.
    """

    def __iter__(self) -> Iterator[str]:
        env, left, mask = self.env, self.max_iter, None
        while left > 0 and env.agents:
            agent = env.agent_selection
            if env._masks[agent] is mask:
                raise AssertionError("need to call step() or reset() in a loop over `agent_iter`")
            mask = env._masks[agent]
            left -= 1
            yield agent
