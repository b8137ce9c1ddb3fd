"""Agents as players of the exact evaluation: what each would play in every decision of the game.

Most are asked about every decision (:class:`Asked`). Of those that play what an evaluator thinks
best, value networks and searches over one, each position before a throw is judged once instead,
and the decisions are read off these opinions (:class:`Judged`): there are fewer positions than
decisions, and each of a decision's moves would have to be judged anew.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.evaluators import Evaluator
from agents.exact import judging, positions
from agents.exact.errors import TableError
from agents.exact.kernels import FIXED
from agents.exact.layers import Layer, Pair
from agents.exact.policies import Codes, Player, Uniform
from agents.exact.solver import Solver
from agents.exact.telling import Say, Telling
from agents.linear_value import LinearValue
from agents.search import SearchAgent
from agents.search_kernels import TIE
from agents.value_net import ValueNet
from kimble_env.kernel import STATE
from kimble_env.opponents import Agent, CheckedAgent, WeightAgent
from kimble_env.rules import Rules

BATCH = 16_384
"""Decisions, or positions, that are asked about at once, at least where a layer has them."""
PROBES = 2_048
"""Decisions that an agent is asked about twice, with other keys."""
SLICES = 16
"""Parts of a layer between threads."""


class Answered:
    """The policies of an agent in all layers: ``_sides[side][own slot, the other's slot]``.

    Attributes:
        decisions: how many there are.
        same: it plays alike from both seats.
    """

    kind = FIXED
    same: bool
    _sides: tuple[dict[tuple[int, int], Codes], dict[tuple[int, int], Codes]]

    def __init__(self, spec: str, solver: Solver, say: Say | None) -> None:
        self.spec, self.solver = spec, solver
        self.decisions = 0
        self._telling = Telling(say, spec)

    def codes(self, layer: Layer, side: int) -> Codes:
        """Return the policy in a layer."""
        x, y = layer.slot_a, layer.slot_b
        if side == 0:
            return self._sides[0][x, y]
        return np.ascontiguousarray(self._sides[1][y, x].transpose(2, 0, 1))


class Asked(Answered):
    """An agent, asked about every decision of the game.

    Weight vectors tell which moves they play alike often. Any other agent must be deterministic.

    Args:
        agent: the agent.
        solver: of the game; it need not be solved.
        say: told how long it takes, if that is more than some seconds.

    Raises:
        TableError: it draws lots, or answers what the solver does not know.
    """

    def __init__(self, agent: Agent, solver: Solver, say: Say | None = None) -> None:
        super().__init__(agent.spec, solver, say)
        self.agent = agent
        # what a weight vector sees turns with the board; of others nothing is known
        alike = type(agent) is WeightAgent and solver.opposite
        self._cells_left = self._cells_all = (1 if alike else 2) * solver.encoding.cells
        sides: tuple[dict[tuple[int, int], Codes], ...] = ({}, {})
        # others are asked by one thread, in one order: they need not stand more
        compiled = type(agent) is WeightAgent and solver.threads > 1
        pool = ThreadPoolExecutor(solver.threads) if compiled else None
        with pool or nullcontext():
            self._map: Any = pool.map if pool else map
            for x, y in solver.all_pairs():
                layer = solver.layer(x, y)
                sides[0][x, y] = self._ask(layer, 0)
                if not alike:
                    sides[1][y, x] = self._ask(layer, 1)
            del self._map
        self._sides = (sides[0], sides[0] if alike else sides[1])
        self.same = alike or (
            solver.opposite
            and all(np.array_equal(sides[0][pair], sides[1][pair]) for pair in sides[0])
        )

    def _ask(self, layer: Layer, side: int) -> Codes:
        """Ask about a layer: uint8 [own configurations, 6, the other's]."""
        seats = layer.seats()
        own, other = seats[side], seats[1 - side]
        configs = (layer.a.moves(layer.slot_a).configs, layer.b.moves(layer.slot_b).configs)
        numbers = (layer.a.seat, layer.b.seat)
        count, across = len(own.masks), len(other.masks)
        out = np.zeros((count, 6, across), np.uint8)
        rows = max(1, BATCH // (6 * across))
        r_pass = layer.a.rules.board.pass_action

        def ask(first: int) -> tuple[int, int]:
            last = min(count, first + rows)
            states = _templates(numbers, (last - first) * 6 * across)
            which = np.empty((len(states), 3), np.int32)
            asked = int(positions.list_decisions(
                states, numbers[side], numbers[1 - side], configs[side], configs[1 - side], own,
                other.guard, other.masks, first, last, out, which,
            ))  # fmt: skip
            if asked:
                bits = self._answers(states[:asked], probe=first == 0)
                odd = positions.note_answers(bits, which[:asked], own, other.guard, r_pass, out)
                if odd:
                    raise TableError(f"{self.agent.spec}: {odd} answers are not legal moves")
            return asked, (last - first) * across

        for asked, cells in self._map(ask, range(0, count, rows)):
            self.decisions += asked
            self._cells_left -= cells
            self._telling.note(
                f"asked about {_count(self.decisions)} decisions",
                1.0 - self._cells_left / self._cells_all,
            )
        return out

    def _answers(self, states: npt.NDArray[np.void], probe: bool) -> npt.NDArray[np.int64]:
        """Return the actions that are played in each position, as bits."""
        agent, rules = self.agent, self.solver.rules
        if type(agent) is WeightAgent:
            bits = np.empty(len(states), np.int64)
            positions.best_bits(states, rules.array, np.array(agent.weights), bits)
            return bits
        keys = np.arange(1, len(states) + 1, dtype=np.uint64)
        actions = np.asarray(agent.act(states, keys)).astype(np.int64)
        if probe:
            some = states[:PROBES]
            again = agent.act(some.copy(), ~keys[: len(some)] * np.uint64(0x9E3779B97F4A7C15))
            if not np.array_equal(again, actions[: len(some)]):
                raise _lots(agent.spec, "asked twice about one position, it answers differently")
        return np.int64(1) << actions


class Judge(NamedTuple):
    """How an agent chooses: by what it thinks of the positions its moves lead to.

    evaluator: judges positions, whatever came before them. turns: … and however the board is
    turned. throws: thrown and answered by whoever it belongs to, before positions are judged. keep:
    what a seat that passes keeps of its odds. tie: chances so close are equal, of which the first
    is taken.
    """

    evaluator: Evaluator
    turns: bool
    throws: int = 0
    keep: float = 1.0
    tie: float = 0.0


def judge_of(agent: Agent, rules: Rules) -> Judge | None:
    """Return how a value network chooses, or a search over built-in values; None: ask the agent."""
    if isinstance(agent, CheckedAgent):
        agent = agent.inner
    if type(agent) is ValueNet:
        return Judge(agent, turns=True)
    if type(agent) is not SearchAgent or agent.replies is not None:
        return None
    if type(agent.evaluator) not in (ValueNet, LinearValue):
        return None  # of others nobody knows what they look at
    throws = agent.depth - 1
    if throws and rules.empty_throws > 1:
        return None  # R23: within a turn of three throws stand positions that no table has
    led_to = (3 if rules.battles else 1) * rules.pieces + rules.pass_allowed  # by a face, at most
    if throws and agent.budget and led_to * (6 * led_to) ** throws > agent.budget:
        return None  # some decisions may be searched less deep
    turns = type(agent.evaluator) is ValueNet  # a linear value knows which seat is the first
    return Judge(agent.evaluator, turns, throws, 1.0 - agent.pass_cost, TIE)


class Judged(Answered):
    """An agent whose decisions follow from what it thinks of each position before a throw.

    Args:
        spec: the agent's name.
        judge: how it chooses.
        solver: of the game; it need not be solved.
        say: told how long it takes, if that is more than some seconds.
    """

    def __init__(self, spec: str, judge: Judge, solver: Solver, say: Say | None = None) -> None:
        super().__init__(spec, solver, say)
        self.judge = judge
        self.same = judge.turns and solver.opposite
        sides = (0,) if self.same else (0, 1)
        self._judged, self._all = 0, len(sides) * solver.encoding.cells
        pool = ThreadPoolExecutor(solver.threads) if solver.threads > 1 else None
        with pool or nullcontext():
            self._map: Any = pool.map if pool else map
            tables = self._tables(sides, self._judge)
            for _ in range(judge.throws):
                tables = self._tables(sides, partial(self._look_ahead, tables))
            self._sides = self._tables(sides, partial(self._choose, tables))
            del self._map

    def _tables(self, sides: tuple[int, ...], make: Any) -> Any:
        """Make a table of every layer, for each side: by (own slot, the other's slot)."""
        made: list[dict[tuple[int, int], npt.NDArray[Any]]] = [{} for _ in sides]
        for x, y in self.solver.all_pairs():
            for side in sides:
                made[side][(x, y) if side == 0 else (y, x)] = make(x, y, side)
        return made[0], made[-1]

    def _judge(self, x: int, y: int, side: int) -> npt.NDArray[np.float32]:
        """Return the win chance of the seat about to throw: [own configurations, the other's]."""
        layer = self.solver.layer(x, y)
        seats, numbers = layer.seats(), (layer.a.seat, layer.b.seat)
        configs = (layer.a.moves(x).configs, layer.b.moves(y).configs)
        own, other = seats[side], seats[1 - side]
        out = np.zeros((len(own.masks), len(other.masks)), np.float32)
        across = len(other.masks)
        rows = max(1, BATCH // across)

        def judge(first: int) -> int:
            last = min(len(out), first + rows)
            states = _templates(numbers, (last - first) * across)
            cells = np.empty(len(states), np.int64)
            count = judging.list_positions(
                states, numbers[side], numbers[1 - side], configs[side], configs[1 - side], own,
                other.masks, first, last, cells,
            )  # fmt: skip
            chances = self.judge.evaluator.value(states[:count])
            out.reshape(-1)[cells[:count]] = chances[:, numbers[side]]
            return (last - first) * across

        for cells in self._map(judge, range(0, len(out), rows)):
            self._judged += cells
            self._telling.note(
                f"judged {_count(self._judged)} positions", self._judged / self._all
            )
        return out

    def _run(self, tables: Any, x: int, y: int, function: Any, side: int, out: Any) -> int:
        """Call one of the passes of ``judging`` on a layer, in slices; return what it counted."""

        def block(pair: tuple[int, int]) -> Pair:
            return tables[0][pair], tables[1][pair[::-1]].T

        layer = self.solver.layer(x, y, block)
        layer.p[:], layer.q[:] = block((x, y))
        where, (a, b) = layer.where(), layer.seats()
        step = -(-layer.ni // SLICES)

        def run(first: int) -> int:
            last = min(layer.ni, first + step)
            found = function(
                where, a, b, side, self.judge.keep, self.judge.tie, out, first, last
            )
            return int(found)

        return sum(self._map(run, range(0, layer.ni, step)))

    def _look_ahead(self, tables: Any, x: int, y: int, side: int) -> npt.NDArray[np.float32]:
        """Return the win chance of the seat about to throw, as it looks one throw ahead."""
        out = np.zeros(self._sizes(x, y)[:: 1 - 2 * side], np.float32)
        self._run(tables, x, y, judging.look_ahead, side, out)
        return out

    def _choose(self, tables: Any, x: int, y: int, side: int) -> Codes:
        """Return the policy of a layer: [own configurations, 6, the other's]."""
        own, other = self._sizes(x, y)[:: 1 - 2 * side]
        out = np.empty((own, 6, other), np.uint8)
        self.decisions += self._run(tables, x, y, judging.choose, side, out)
        return out

    def _sizes(self, x: int, y: int) -> tuple[int, int]:
        solver = self.solver
        return int(solver.a.encoding.sizes[x]), int(solver.b.encoding.sizes[y])


def _templates(seats: tuple[int, int], count: int) -> npt.NDArray[np.void]:
    states = np.zeros(count, STATE)
    states["pieces"] = -1
    states["plays"][:, list(seats)] = 1
    states["throws"], states["winner"], states["last_action"] = 1, -1, -1
    return states


def _count(number: int) -> str:
    """Return 8,123 or 1.2 million."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:.1f} million"


def _lots(spec: str, why: str) -> TableError:
    return TableError(
        f"{spec} draws lots: {why}; an exact result needs a deterministic agent (or a weight "
        "vector, whose ties are known); simulate it: kimble evaluate"
    )


def check_lots(agent: Agent) -> None:
    """Refuse an agent that says that it draws lots, however few its choices are in this game.

    Raises:
        TableError: it does, or the agent does that it is made of.
    """
    part: object = agent
    while part is not None:
        if getattr(part, "draws_lots", False):
            raise _lots(agent.spec, "that is how it plays")
        part = getattr(part, "inner", None)


def player(agent: Agent, solver: Solver, say: Say | None = None) -> Player:
    """Return how an agent plays; ``random`` is not asked, nor is who goes by a value of positions.

    Raises:
        TableError: an agent that draws lots; one for other rules.
    """
    check_lots(agent)
    rules = getattr(agent, "rules", None)
    if isinstance(rules, Rules) and rules.hash != solver.rules.hash:
        raise TableError(f"{agent.spec} plays {rules}, not {solver.rules}")
    if agent.spec == "random":
        return Uniform()
    judge = judge_of(agent, solver.rules)
    if judge is not None:
        return Judged(agent.spec, judge, solver, say)
    return Asked(agent, solver, say)
