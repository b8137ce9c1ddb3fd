"""The AEC environment in which the teams also decide beside the board: who drinks, who goes on.

``kimble_v0.off_board_env(rules="norske[members=20+5]")`` is the environment of ``kimble_env.aec``
with four more actions and one more part of the observation. Whenever a team owes cups (R33), its
agent is asked before anything else happens:

===========  ==================================================================================
action       meaning
===========  ==================================================================================
0 to 33      the board, as in ``kimble_env.aec`` (on ``kimble28``)
34, 35       the first, the second member drinks the whole battery (L2)
36           the partner goes on alone and drinks what is left (L3)
37           the partner does not go on: the team is out (L3, R34)
===========  ==================================================================================

Who drinks is asked while both members are in; whether to go on, when a member has failed and the
partner is still in. Every other agent waits: L1. The chances that a member fails a cup are those of
the option ``members`` of the rules, drawn from the same streams as in the compiled environments: a
team that lets the member drink who is less likely to fail, and always goes on, plays the very
games that they play.

``observation["cups"]`` is uint8 (18,):

===========  ==================================================================================
index        meaning
===========  ==================================================================================
0            what is asked: 0 a move (or nothing), 1 who drinks, 2 whether to go on alone
1            cups that the asked team still owes
2 + 4k       1 if the first member of the k-th seat clockwise from the observer is in, else 0
3 + 4k       the same of the second member
4 + 4k       cups the first member has drunk, at most 255
5 + 4k       the same of the second member
===========  ==================================================================================

Seats that do not play hold zeros. Drinks are the cause of two rewards only: those that ``cup_cost``
prices, and the loss of a team that goes out. It is slower than the compiled environments, about as
``Game`` is: agents are asked between throws.

Version history: v0, the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kimble_env import kernel
from kimble_env.aec import ordered_env
from kimble_env.aec_kernel import (
    DRINKS_SHIFT,
    ILLEGAL_ACTION,
    STATUS_SHIFT,
    THROWS_SHIFT,
    pack_throw,
)
from kimble_env.board import SEATS
from kimble_env.errors import IllegalMoveError, RulesError
from kimble_env.rules import R_HOLD_WIN, R_MEMBER_CHANCE, Rules, read_members

BOARD, DRINKER, GO_ON = 0, 1, 2
"""Stages: what is asked."""
FIRST_DRINKS, SECOND_DRINKS, GOES_ON, DECLINES = 0, 1, 2, 3
"""Actions beside the board, counted from the number of actions of the board."""
ACTIONS = 4
TEXTS = ("the first member drinks", "the second member drinks", "goes on alone", "declines")
CUPS_SIZE = 2 + 4 * SEATS


class off_board_env(ordered_env):
    """The environment with decisions beside the board; see the page of this module.

    Args:
        rules: rules with the option ``members``.
        arguments: as of ``kimble_v0.env``.

    Raises:
        RulesError: rules or options that cannot be, or that have no members.
        KimbleError: another argument that cannot be.
    """

    metadata: dict[str, Any] = {**ordered_env.metadata, "name": "kimble_off_board_v0"}  # noqa: RUF012

    # Before the first reset nothing is asked.
    _stage = BOARD
    _asked = 0  # the seat that is asked beside the board
    _left = 0  # cups it still owes
    _drinker = -1

    def __init__(self, rules: str | Rules = "norske[members=20+5]", **arguments: Any) -> None:
        super().__init__(rules, **arguments)
        if self.rules.members is None:
            raise RulesError(f"the option members must say how members fail; got {self.rules}")
        if self.rules.battles:
            raise RulesError(f"decisions beside the board belong to norske, not to {self.rules}")
        self._board_actions = self._actions
        self._actions += ACTIONS
        for agent in self.possible_agents:
            own = self.observation_spaces[agent]
            assert isinstance(own, spaces.Dict)
            mask = spaces.Box(0, 1, (self._actions,), np.int8)
            cups = spaces.Box(0, 255, (CUPS_SIZE,), np.uint8)
            parts = {"observation": own["observation"], "action_mask": mask, "cups": cups}
            self.observation_spaces[agent] = spaces.Dict(parts)
            self.action_spaces[agent] = spaces.Discrete(self._actions)
        self._set_array()

    def _set_array(self) -> None:
        """Play the board alone, stop before a win that is not drunk (L6), know the chances."""
        assert self.rules.members is not None
        array = self.rules.board_array.copy()
        array[R_HOLD_WIN] = self.rules.win_at == "drunk"
        array[R_MEMBER_CHANCE : R_MEMBER_CHANCE + 4] = read_members(self.rules.members)
        array.setflags(write=False)
        self._rules_array = array

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_array()

    # -------------------------------------------------------------------------------- observations

    def observe(self, agent: str) -> Any:
        """As ``raw_env.observe``, with the part ``cups``."""
        return {**super().observe(agent), "cups": self._cups(agent)}

    def _cups(self, agent: str) -> npt.NDArray[np.uint8]:
        cups, s = np.zeros(CUPS_SIZE, np.uint8), self._states[0]
        if self._stage != BOARD:
            cups[:2] = self._stage, self._left
        observer = self._observer(agent)
        for k in range(SEATS):
            seat = (observer + k) % SEATS
            if s["plays"][seat]:
                members = [not s["unable"][seat] >> i & 1 for i in (0, 1)]
                drunk = np.minimum(s["drunk"][seat], 255)
                cups[2 + 4 * k : 6 + 4 * k] = *members, *drunk
        return cups

    # --------------------------------------------------------------------------------------- steps

    def _start(self, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]) -> int:
        self._states[1] = self._states[0]
        self._stage, self._left = BOARD, 0
        self._rows = 0
        counts = self._states["lost"][0] + self._states["arrived"][0]
        self._drunk[:] = counts
        return self._play_on(observation, mask)

    def _play(
        self, code: int, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]
    ) -> int:
        """Carry out an action and go on to the next question; see ``aec_kernel`` for the answer."""
        agent = self.agent_selection
        if not self._masks[agent][code]:
            return ILLEGAL_ACTION
        self._states[1] = self._states[0]
        self._rows = 0
        seat = self._seat_asked()
        s = self._states[0]
        self._drunk[seat] = s["lost"][seat] + s["arrived"][seat]
        choice = code - self._board_actions
        if choice < 0:
            kernel.play_one(self._states, self._rules_array, code, 0, 0)
            self._log_throw()
            self._owe()
        elif choice == DECLINES:
            self._go_out()
        else:
            if choice != GOES_ON:
                self._drinker = choice
            self._drink()
        return self._play_on(observation, mask)

    def _seat_asked(self) -> int:
        return self._asked if self._stage != BOARD else int(self._states["seat"][0])

    def _play_on(self, observation: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]) -> int:
        """Throw on to the next question, show it, and return the answer."""
        bits = self._next_question()
        seat, s = self._seat_asked(), self._states[0]
        observation[:] = self._encode(seat)
        for code in range(self._actions):
            mask[code] = bits >> code & 1
        drinks = int(s["lost"][seat]) + int(s["arrived"][seat]) - int(self._drunk[seat])
        answer = seat | int(s["status"]) << STATUS_SHIFT | drinks << DRINKS_SHIFT
        return answer | self._rows << THROWS_SHIFT

    def _next_question(self) -> int:
        """Go on until somebody has to choose; return the choices as bits."""
        states, r = self._states, self._rules_array
        while states["status"][0] == kernel.RUNNING:
            if self._stage == DRINKER:
                return 3 << self._board_actions
            if self._stage == GO_ON:
                return 3 << self._board_actions + GOES_ON
            if states["throws"][0] == 0:  # all home, and drunk (L6)
                seat = np.array([states["seat"][0]], np.int8)
                kernel.settle_finish_batch(states[:1], r, seat)
                continue
            actions = kernel.legal_one(states, r)
            if not actions:
                actions = kernel.throw_one(states, r, 0) & ((1 << 60) - 1)
            if actions and (self.ask_forced or actions & (actions - 1)):
                return int(actions)
            if actions:
                kernel.play_one(states, r, actions.bit_length() - 1, 0, 0)
            self._log_throw()
            if actions:
                self._owe()
        self._stage = BOARD
        return 1 << self.rules.board.pass_action  # a mask is never empty

    def _log_throw(self) -> None:
        """Add the last throw to those that this step reports."""
        row = self._rows
        if row >= len(self._throws):
            log, throws = self._log, self._throws
            self._make_log(2 * row)
            self._log[:row], self._throws[:row] = log, throws
        kernel.log_one(self._states, self._log, row)
        self._throws[row] = pack_throw(self._log, row)
        self._rows = row + 1

    # ---------------------------------------------------------------------------------------- cups

    def _owe(self) -> None:
        """See what the last move has made a team owe, and who is to drink it (R33, L2)."""
        s = self._states[0]
        if not s["event_count"] or s["status"] != kernel.RUNNING:
            return
        seat = int(s["events"][0, 1])  # one event at most: only battles have two
        if s["places"][seat]:
            return  # win_at="home": it has its place already
        self._asked, self._left = seat, int(s["events"][0, 2])
        out = int(s["unable"][self._asked])
        if out == 0:
            self._stage = DRINKER
        else:
            self._drinker = 0 if out == 2 else 1
            self._drink()

    def _drink(self) -> None:
        """Let the drinker empty cups until all are drunk or he fails (L2, L3)."""
        self._stage = BOARD
        seat = self._asked
        while self._left:
            if kernel.try_cup(self._states, self._rules_array, seat, self._drinker):
                self._left -= 1
                continue
            if int(self._states["unable"][0, seat]) == 3:
                self._go_out()
            else:
                self._stage, self._drinker = GO_ON, 1 - self._drinker
            return

    def _go_out(self) -> None:
        """The team is out of the game (R34)."""
        self._stage, self._left = BOARD, 0
        seat = np.array([self._asked], np.int8)
        kernel.remove_seat_batch(self._states[:1], self._rules_array, seat)

    # ------------------------------------------------------------------------- illegal and the end

    def _illegal(self, code: int) -> None:
        seat, agent = self._seat_asked(), self.agent_selection
        super()._illegal(code)
        if not self._over:
            self.infos[agent]["seat"] = seat

    def _illegal_move(self, code: int) -> IllegalMoveError:
        if self._stage == BOARD and code < self._board_actions:
            return super()._illegal_move(code)
        mask = self._masks[self.agent_selection]
        first = self._board_actions
        legal = [f"{first + i} ({text})" for i, text in enumerate(TEXTS) if mask[first + i]]
        legal = legal or [str(a) for a in np.flatnonzero(mask)]
        return IllegalMoveError(
            f"action {code} of {self.agent_selection} is not legal now; legal: {', '.join(legal)}"
        )

    def _finish(self, loser: str | None = None) -> None:
        self._stage = BOARD
        super()._finish(loser)

    def _tell_end(self, agent: str) -> None:
        super()._tell_end(agent)
        mask = self._masks[agent]
        mask[:] = 0
        mask[self.rules.board.pass_action] = 1
