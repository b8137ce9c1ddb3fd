"""Agents that go by a value of positions: their decisions read off it are those they would make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from agents.exact import asking, positions, telling
from agents.exact.asking import Asked, Judged, player
from agents.exact.duels import Evaluator
from agents.exact.layers import Layer
from agents.exact.policies import Uniform
from agents.exact.solver import Solver, two_seats
from agents.linear_value import make_linear
from agents.rollouts import make_rollouts
from agents.search import SearchAgent
from agents.value_net import ValueNet, model_facts
from kimble_env.opponents import decision_keys, make_agent
from kimble_env.rules import Rules
from tests.test_value_net import random_layers

FORCED = "kimble[pass_allowed=no]"
LONG = pytest.mark.long


def random_net(rules: Rules) -> ValueNet:
    layers = random_layers(rules, seed=5)
    return ValueNet("net:random", rules, model_facts(rules, layers), layers, "0" * 16)


def search(rules: Rules, depth: int, linear: bool = True) -> SearchAgent:
    evaluator = make_linear("", rules) if linear else random_net(rules)
    return SearchAgent("search", rules, evaluator, depth)


def prepared(rules: Rules, threads: int = 1) -> Solver:
    solver = Solver(rules, threads=threads)
    solver.prepare()
    return solver


def decisions(layer: Layer, side: int, rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield decisions of some configurations: their positions, and (own, die, other) of each."""
    seats, numbers = layer.seats(), (layer.a.seat, layer.b.seat)
    configs = (layer.a.moves(layer.slot_a).configs, layer.b.moves(layer.slot_b).configs)
    own, other = seats[side], seats[1 - side]
    rng = np.random.default_rng(layer.slot_a * 100 + layer.slot_b)
    across = len(other.masks)
    out = np.zeros((len(own.masks), 6, across), np.uint8)
    for row in rng.choice(len(own.masks), min(rows, len(own.masks)), replace=False).tolist():
        states = asking._templates(numbers, 6 * across)
        which = np.empty((6 * across, 3), np.int32)
        count = positions.list_decisions(
            states, numbers[side], numbers[1 - side], configs[side], configs[1 - side], own,
            other.guard, other.masks, row, row + 1, out, which,
        )  # fmt: skip
        some = rng.permutation(count)[:60]
        yield states[some], which[some]


def compare(agent: Any, one: Judged, solver: Solver, rows: int = 4) -> tuple[int, int, float]:
    """Return how many decisions were compared, in how many the agent plays otherwise, and the
    largest difference of the two moves' values in its own eyes."""
    asked, other, worst = 0, 0, 0.0
    for x, y in solver.all_pairs():
        layer = solver.layer(x, y)
        for side in (0, 1):
            codes, own = one.codes(layer, side), layer.seats()[side]
            guards = layer.seats()[1 - side].guard
            for states, which in decisions(layer, side, rows):
                if len(states) == 0:
                    continue
                actions = agent.act(states, decision_keys(states))
                values = getattr(agent, "values", agent.evaluate)(states)
                for k, (i, die, j) in enumerate(which.tolist()):
                    code = int(codes[(i, die, j) if side == 0 else (j, i, die)])
                    assert code.bit_count() == 1
                    n = code.bit_length() - 1
                    move = (
                        solver.rules.board.pass_action if n == 4
                        else int(own.codes[i, guards[j], die, n])
                    )  # fmt: skip
                    seat = int(states["seat"][k])
                    gap = abs(float(values[k, actions[k], seat] - values[k, move, seat]))
                    asked += 1
                    other += move != actions[k]
                    worst = max(worst, gap)
    return asked, other, worst


GAMES = (
    pytest.param("kombat", 2),
    pytest.param("norske", 2),
    pytest.param("kimble", 2, marks=LONG),
    pytest.param(FORCED, 2, marks=LONG),
    pytest.param("kombat", 3, marks=LONG),
)


@pytest.mark.parametrize(("text", "pieces"), GAMES)
def test_a_network_plays_what_its_values_say(text: str, pieces: int) -> None:
    rules = two_seats(text, pieces)
    solver, agent = prepared(rules), random_net(rules)
    one = player(agent, solver)
    assert isinstance(one, Judged)
    asked, other, worst = compare(agent, one, solver, 16 if rules.home else 4)
    assert asked > 2_000
    assert other < 0.002 * asked
    assert worst < 1e-6


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("text", ["kombat", pytest.param("kimble", marks=LONG)])
@pytest.mark.parametrize("linear", [True, pytest.param(False, marks=LONG)])
def test_a_search_plays_what_its_values_say(text: str, depth: int, linear: bool) -> None:
    """… with what a pass costs it, at every throw of the tree; a linear value sees seats unlike."""
    rules = two_seats(text, 1 if depth == 3 else 2)
    solver, agent = prepared(rules), search(rules, depth, linear)
    assert (agent.pass_cost > 0.0) is linear
    one = player(agent, solver)
    assert isinstance(one, Judged)
    asked, other, worst = compare(agent, one, solver, 20 if depth == 3 else 1)
    assert asked > 500
    assert other < 0.005 * asked
    assert worst < 1e-6


def test_all_decisions_of_a_small_game_are_those_asked_for() -> None:
    """Neighbours see the board unlike: each seat has policies of its own."""
    rules = two_seats("kombat", 1, adjacent=True)
    solver, agent = prepared(rules, threads=2), random_net(rules)
    judged, asked = player(agent, solver), Asked(agent, solver)
    assert isinstance(judged, Judged)
    assert judged.decisions == asked.decisions > 0
    assert not judged.same
    for pair in solver.all_pairs():
        layer = solver.layer(*pair)
        for side in (0, 1):
            differ = judged.codes(layer, side) != asked.codes(layer, side)
            assert differ.mean() < 0.001


def test_who_else_decides_is_asked() -> None:
    rules = two_seats("kimble", 1)
    solver = prepared(rules)
    linear = make_linear("", rules)
    kept = SearchAgent("search", rules, linear, 4, budget=5)
    others = (
        make_agent("cautious", rules),
        SearchAgent("search", rules, linear, 2, replies=make_agent("cautious", rules)),
        SearchAgent("search", rules, make_rollouts("n=4", rules), 1),
        kept,
    )
    for agent in others:
        assert asking.judge_of(agent, solver.rules) is None, agent.spec
    assert asking.judge_of(search(rules, 4), rules) is not None
    assert asking.judge_of(make_agent("search:depth=2,eval=linear", rules), rules) is not None
    norske = two_seats("norske", 1)
    assert asking.judge_of(search(norske, 1), norske) is not None
    assert asking.judge_of(search(norske, 2), norske) is None


def test_long_work_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = two_seats("kimble", 1)
    said: list[str] = []
    monkeypatch.setattr(telling, "SECONDS_BETWEEN_LINES", 0.0)
    Judged("net:mine", asking.Judge(random_net(rules), True), prepared(rules), said.append)
    assert said
    assert all(re.match(r"net:mine: judged [\d,]+ positions, about ", line) for line in said)


def test_duels_and_losses_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SECONDS_BETWEEN_LINES", 0.0)
    said: list[str] = []
    evaluator = Evaluator(two_seats("kimble[pass_allowed=no]", 2), say=said.append)
    perfect = evaluator.perfect()
    for work, name in (
        (lambda: evaluator.duel(Uniform(), perfect), "random against perfect play"),
        (lambda: evaluator.best_response(Uniform()), "the best answer against random"),
        (lambda: evaluator.study(perfect, perfect), "what perfect play meets and loses"),
    ):
        said.clear()
        work()
        line = rf"{name}: layer \d+,\d+: change \S+(, some [\d]+ % of the work, about .+ more)?"
        assert said
        assert all(re.fullmatch(line, one) for one in said)
        assert re.search(r"some \d+ % of the work, about \d+ s more", said[-1])


def test_threads_ask_about_the_same_decisions() -> None:
    rules = two_seats("kombat", 2)
    agent = make_agent("cautious", rules)
    one, two = Asked(agent, prepared(rules)), Asked(agent, prepared(rules, threads=2))
    assert one.decisions == two.decisions
    for x, y in prepared(rules).all_pairs():
        layer = prepared(rules).layer(x, y)
        assert np.array_equal(one.codes(layer, 0), two.codes(layer, 0))
