"""The agent ``search``: exact over exact values, equal to a slow search, within its budget."""

from __future__ import annotations

import numpy as np
import pytest

from agents import search, search_kernels
from agents.evaluators import best_spec, make_evaluator
from agents.rollouts import make_rollouts
from agents.search import SearchAgent, make_search
from agents.spec_options import any_text, read_options, whole_number, yes_or_no
from evaluation.match import play_match
from kimble_env import find_rules
from kimble_env.errors import AgentError
from kimble_env.game import Game
from kimble_env.kernel import RUNNING, WON, take_states
from kimble_env.notation import parse_position
from kimble_env.opponents import decision_keys, hide_random_state, make_agent
from kimble_env.rules import Rules
from kimble_env.testing import random_positions

States = np.ndarray


class Distance:
    """A toy evaluator: chances in proportion to a power of how far each seat has come."""

    name, hash = "distance", "0" * 16

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.calls: list[int] = []

    def value(self, states: States) -> np.ndarray:
        self.calls.append(len(states))
        assert ((states["die"] == 0) | (states["status"] != RUNNING)).all()
        pieces = states["pieces"][:, :, : self.rules.pieces].astype(np.float64)
        way = (np.where(states["plays"][:, :, None] != 0, pieces, 0.0) + 2.0).sum(axis=2) ** 3
        way += 100.0 * (np.arange(4) == states["seat"][:, None])
        out = np.where(states["plays"] != 0, way, 0.0)
        out /= out.sum(axis=1, keepdims=True)
        won = states["status"] == WON
        out[won] = np.arange(4)[None, :] == states["winner"][won][:, None]
        return out


class Exact:
    """The exact table as an evaluator."""

    name, hash = "table", "1" * 16

    def __init__(self, rules: Rules) -> None:
        self.inner = make_agent("exact", rules).inner  # type: ignore[attr-defined]

    def value(self, states: States) -> np.ndarray:
        out = np.zeros((len(states), 4))
        won = states["status"] == WON
        out[won] = np.arange(4)[None, :] == states["winner"][won][:, None]
        rows = np.flatnonzero(~won)
        own = self.inner.values(take_states(states, rows)).astype(np.float64)
        seats = states["seat"][rows].astype(int)
        others = states["plays"][rows].copy()
        others[np.arange(len(rows)), seats] = 0
        out[rows, seats] = own
        out[rows, others.argmax(axis=1)] = 1.0 - own
        return out


# ------------------------------------------------------- a slow and obvious second search


def charged(value: np.ndarray, team: list[int], keep: float) -> np.ndarray:
    """Chances with the odds of a team multiplied by ``keep``."""
    own = value[team].sum()
    odds = own / (1.0 - own) * keep
    share = odds / (1.0 + odds)
    out = value * (1.0 - share) / (1.0 - own)
    out[team] = value[team] * share / own
    return out


def slow_value(game: Game, evaluator: Distance, throws: int, keep: float = 1.0) -> np.ndarray:
    """Value of a game before a throw, by ``Game`` alone."""
    if game.over or throws == 0:
        return evaluator.value(game.state)[0]
    total = np.zeros(4)
    for die, chance in game.chance_outcomes:
        after = game.copy()
        team = [game.seat, (game.seat + 2) % 4] if game.rules.two_colours else [game.seat]
        after.throw(die)
        if not after.legal_moves:
            total += chance * slow_value(after, evaluator, throws - 1, keep)
            continue
        choices = slow_moves(after, evaluator, throws - 1, keep)
        total += chance * max(choices.values(), key=lambda v, t=team: round(v[t].sum(), 9))
    return total


def slow_moves(
    game: Game, evaluator: Distance, throws: int, keep: float = 1.0
) -> dict[int, np.ndarray]:
    """Value of every legal move, ``throws`` more throws ahead."""
    out = {}
    for move in game.legal_moves:
        battles = game.battle_outcomes(move) or [(None, 1.0)]
        value = np.zeros(4)
        for battle, chance in battles:
            after = game.copy()
            after.play(move, battle=battle)
            value += chance * slow_value(after, evaluator, throws, keep)
        if str(move) == "pass":
            team = [game.seat, (game.seat + 2) % 4] if game.rules.two_colours else [game.seat]
            value = charged(value, team, keep)
        out[move.action] = value
    return out


@pytest.mark.parametrize(
    "position",
    [
        "kimble R3,20/B0,26/Y5/G- R 4 1",
        "kimble R26,28/B-/Y24,29/G- R 3 1",
        "kombat R3,20/B2/Y5/G- R 4 1",
        "norske R-/B0x2,5/Y-/G27 R 6 1",
        "norske R-/B-/Y-/G- B 6 1",
        "kimble[die=popomatic,pieces=2] R3,20/B0 R 4 1 face=4",
        "kombat[die=popomatic,pieces=2] R3,20/B2 R 4 1 face=4",
        "kimble[two_colours=yes] R30,28/B4/Y8/G9 R 2 1",
    ],
)
def test_it_finds_what_a_slow_search_finds(position: str) -> None:
    rules, states = parse_position(position)
    evaluator = Distance(rules)
    for depth, cost in ((1, 0.0), (2, 0.0), (2, 0.4)):
        agent = SearchAgent("s", rules, evaluator, depth, 0, pass_cost=cost)
        slow = slow_moves(Game.from_text(position), evaluator, depth - 1, 1.0 - cost)
        found = agent.values(states)[0]
        assert set(np.flatnonzero(found.any(axis=1)).tolist()) == set(slow)
        for action, value in slow.items():
            assert found[action] == pytest.approx(value, abs=1e-12)


def test_depth_two_looks_further_than_depth_one() -> None:
    """Two far pieces, one of them in front of an enemy: only looking ahead sees the danger."""
    rules, states = parse_position("kimble[pass_allowed=no] R20,3/B18/Y-/G- R 1 1")
    ones, twos = (
        SearchAgent("s", rules, Distance(rules), depth).values(states) for depth in (1, 2)
    )
    assert not np.allclose(ones[0][:, 0], twos[0][:, 0])


# --------------------------------------------------------------------- over exact values


@pytest.mark.parametrize("text", ["kimble[pieces=2]", "kombat[pieces=2]", "norske[pieces=2]"])
def test_over_exact_values_every_depth_is_exact(text: str) -> None:
    rules = find_rules(text, players=2)
    exact, table = Exact(rules), make_agent("exact", rules)
    positions = random_positions(rules, 60, seed=3)
    truth = table.evaluate(positions)  # type: ignore[attr-defined]
    seats = positions["seat"].astype(int)
    rows = np.arange(len(positions))
    own = truth[rows, :, seats]
    for depth, count in ((1, 60), (2, 60), (3, 12)):
        agent = SearchAgent("s", rules, exact, depth, 0)
        part = positions[:count]
        found = agent.values(part)
        # tables hold 16 bits, so a backed-up value may be half a unit off
        assert np.abs(found - truth[:count]).max() < 1.6e-5
        chosen = agent.act(part, decision_keys(part))
        assert (own[rows[:count], chosen] >= own[:count].max(axis=1) - 1.6e-5).all()


# --------------------------------------------------------------------- what a pass costs


def test_a_pass_costs_odds_and_certainty_costs_nothing() -> None:
    rules, states = parse_position("kimble R30,28/B4/Y8/G9 R 2 1")
    plain, dear = (
        SearchAgent("s", rules, Distance(rules), 1, pass_cost=cost).evaluate(states)[0]
        for cost in (0.0, 0.25)
    )
    act = rules.board.pass_action
    assert (np.delete(dear, act, axis=0) == np.delete(plain, act, axis=0)).all()
    odds = [chances[act, 0] / (1.0 - chances[act, 0]) for chances in (dear, plain)]
    assert odds[0] == pytest.approx(0.75 * odds[1])
    assert dear[act].sum() == pytest.approx(1.0)
    others = [chances[act, 1:] / chances[act, 1:].sum() for chances in (dear, plain)]
    assert others[0] == pytest.approx(others[1])
    for own in (0.0, 1.0):
        chances = np.array([own, 1.0 - own, 0.0, 0.0])
        search_kernels.charge(rules.array, chances, 0, 0.75)
        assert chances.tolist() == [own, 1.0 - own, 0.0, 0.0]
    norske = SearchAgent("s", find_rules("norske"), Distance(rules), pass_cost=0.25)
    assert norske.pass_cost == 0.0  # R22: nobody may pass there
    assert SearchAgent("s", rules, Distance(rules)).pass_cost == 0.0
    with pytest.raises(AgentError, match="pass_cost from 0 to"):
        SearchAgent("s", rules, Distance(rules), pass_cost=1.0)


@pytest.mark.parametrize("depth", [1, 2])
def test_over_the_linear_value_nobody_stands_still(depth: int) -> None:
    """That value overrates standing still: a search that believed it passed its games away."""
    spec = f"search:depth={depth},eval=linear"
    result = play_match([spec, "random"], "kombat", games=200, seed=1)
    assert result.share(0) > 0.5
    assert result.truncated == 0


# --------------------------------------------------------------------- what judges


def test_without_eval_the_network_of_the_rules_judges_and_the_spec_says_so() -> None:
    for text, players, judge in (
        ("kombat", 2, "net:kombat-2p"), ("norske", 4, "net:norske-4p"),
        ("kimble[pass_allowed=no]", 2, "linear"), ("kombat[pieces=2]", 3, "linear"),
    ):  # fmt: skip
        rules = find_rules(text, players=players)
        assert best_spec(rules) == judge
        assert make_agent("search:depth=1", rules).spec == f"search:depth=1,eval={judge}"
        assert make_search("", rules).evaluator.name.startswith(judge)
        assert make_rollouts("n=10", rules).name == f"rollouts:n=10,eval={judge}"
    turned = find_rules("kimble").replace(seats=(1, 3))
    assert best_spec(turned) == "net:kimble-2p"  # R and Y, turned by one seat
    assert best_spec(turned.replace(seats=(0, 1))) == "linear"
    with pytest.raises(AgentError, match="best stands alone"):
        make_evaluator("best:4p", turned)


def test_the_hash_changes_with_all_that_decides() -> None:
    rules = find_rules("kimble", players=2)
    specs = ("", "depth=1", "eval=linear", "budget=9", "replies=cautious", "replies=mixed",
             "pass_cost=7")  # fmt: skip
    assert len({make_search(spec, rules).hash for spec in specs}) == len(specs)
    assert make_search("eval=net", rules).hash == make_search("budget=20000", rules).hash
    assert make_search("eval=net", rules).spec == "search:depth=2,eval=net:kimble-2p"


# --------------------------------------------------------------------- the budget


def test_the_budget_lessens_the_depth_of_one_decision_and_of_no_other() -> None:
    rules = find_rules("kimble", players=2)
    positions = random_positions(rules, 40, seed=1)
    evaluator = Distance(rules)
    one, two = (SearchAgent("s", rules, evaluator, d, 0).values(positions) for d in (1, 2))
    some = SearchAgent("s", rules, evaluator, 2, 40).values(positions)
    shallow = (some == one).all(axis=(1, 2))
    deep = (some == two).all(axis=(1, 2))
    assert (shallow | deep).all()
    assert 5 < shallow.sum() < 35
    evaluator.calls.clear()
    SearchAgent("s", rules, evaluator, 4, 40).values(positions[:1])
    assert sum(evaluator.calls) <= 40


def test_the_batch_is_worked_on_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = find_rules("kombat", players=3)
    positions = random_positions(rules, 30, seed=2)
    agent = SearchAgent("s", rules, Distance(rules), 2, 0)
    whole = agent.values(positions)
    monkeypatch.setattr(search, "_AT_ONCE", 50)
    monkeypatch.setattr(search, "_DECISIONS_AT_ONCE", 7)
    assert (agent.values(positions) == whole).all()
    for k in range(30):
        assert (agent.values(positions[k : k + 1]) == whole[k : k + 1]).all()


def test_equal_positions_are_judged_once() -> None:
    """In Norske with nothing in play five faces of six lead to the same position."""
    rules, states = parse_position("norske R-/B-/Y-/G- R 6 1")
    evaluator = Distance(rules)
    SearchAgent("s", rules, evaluator, 2, 0).values(states)
    # one move; then 1..5 without a move (one position), a 6 that makes a battery
    assert evaluator.calls == [7]


# --------------------------------------------------------------------- replies and specs


def test_replies_of_an_agent_are_the_only_ones_looked_at() -> None:
    rules, states = parse_position("kimble R10,3/B20,15/Y-/G- R 1 1")
    pacifist = make_agent('weights:{"pass": 100}', rules)  # who always passes captures nobody
    peaceful = SearchAgent("s", rules, Distance(rules), 2, 0, pacifist).values(states)
    fierce = SearchAgent("s", rules, Distance(rules), 2, 0).values(states)
    legal = np.flatnonzero(fierce[0].any(axis=1))
    assert (peaceful[0, legal, 0] > fierce[0, legal, 0]).all()


def test_options_are_read_and_every_fault_is_named() -> None:
    readers = {"depth": whole_number(1, 8), "eval": any_text, "luck": yes_or_no}
    read = read_options("s", "depth=3,eval=(a:n=1,m=[2,3]),luck=no", readers, {"more": 5})
    assert read == {"depth": 3, "eval": "a:n=1,m=[2,3]", "luck": False, "more": 5}
    assert read_options("s", "", readers, {"depth": 2}) == {"depth": 2}
    with pytest.raises(AgentError) as caught:
        read_options("s", "depth=9,deep=1,eval=,luck=maybe,depth=2,loud", readers, {})
    for piece in ("a whole number from 1 to 8, got '9'", "no option 'deep', did you mean depth?",
                  "something", "yes or no", "set twice",
                  "expected option=value, got 'loud'", "options: depth, eval, luck"):  # fmt: skip
        assert piece in str(caught.value)


def test_forced_and_empty_batches_are_answered_without_a_search() -> None:
    rules, states = parse_position("norske R5,20/B0/Y-/G- R 6 1")
    forced = parse_position("norske R5/B0/Y-/G- R 4 1")[1]
    evaluator = Distance(rules)
    agent = SearchAgent("s", rules, evaluator)
    assert agent.act(forced, decision_keys(forced)).tolist() == [6]
    assert agent.act(states[:0], np.empty(0, np.uint64)).shape == (0,)
    assert evaluator.calls == []
    assert agent.evaluate(states[:0]).shape == (0, rules.board.actions, 4)


def test_the_dice_to_come_are_not_seen() -> None:
    rules = find_rules("kombat", players=2)
    positions = random_positions(rules, 20, seed=4)
    agent = SearchAgent("s", rules, Distance(rules))
    assert positions["seed"].any()
    assert (agent.values(positions) == agent.values(hide_random_state(positions))).all()


def test_what_cannot_be_searched_is_refused() -> None:
    rules = find_rules("norske[members=200+0/200+0]")
    with pytest.raises(AgentError, match="members"):
        SearchAgent("s", rules, Distance(rules))
    with pytest.raises(AgentError, match="depth >= 1"):
        SearchAgent("s", find_rules("kimble"), Distance(rules), 0)
