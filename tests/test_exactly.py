"""Exact results of agents: against simulated games, against each other, and their refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agents.exact import kernels, layers, positions
from agents.exact.asking import _count
from agents.exact.duels import Evaluator
from agents.exact.errors import TableError
from agents.exact.policies import Best, Player, Uniform
from agents.exact.settling import Contest, best_answer, sweeper
from agents.exact.solver import two_seats
from agents.heuristics import heuristic_names
from evaluation.exactly import exactly, game_of, print_exactly
from evaluation.match import play_match
from evaluation.solution import Data, add_agent, read
from kimble_env.errors import AgentError
from kimble_env.opponents import make_agent
from kimble_env.rules import Rules

FORCED = "kimble[pass_allowed=no]"
RULE_SETS = (
    "kombat",  # battles, passes, stalling: all that can go wrong
    *(pytest.param(text, marks=pytest.mark.long) for text in (FORCED, "kimble", "norske")),
)


class Bench:
    """An evaluator of two pieces, and players that were asked already."""

    def __init__(self, text: str, pieces: int = 2) -> None:
        self.rules = two_seats(text, pieces)
        self.evaluator = Evaluator(self.rules)
        self.known: dict[str, Player] = {}

    def __getitem__(self, spec: str) -> Player:
        if spec not in self.known:
            self.known[spec] = self.evaluator.player(make_agent(spec, self.rules))
        return self.known[spec]


@pytest.fixture(scope="module", params=RULE_SETS)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def simulated_apart(bench: Bench, one: str, two: str, games: int) -> float:
    """Return how far a simulated share lies from the exact one, in standard errors."""
    exact = bench.evaluator.duel(bench[one], bench[two]).mean
    played = play_match((one, two), bench.rules, games, seed=11, cap=100_000)
    assert played.truncated == 0
    blocks = played.scores[:, :, 0].mean(axis=1)
    return abs(blocks.mean() - exact) / (blocks.std() / len(blocks) ** 0.5)


def test_simulated_games_agree_with_the_exact_share(bench: Bench) -> None:
    """Ties broken by lot in the games are even lots in the exact result."""
    assert simulated_apart(bench, "cautious", "random", 20_000) < 4.0
    assert simulated_apart(bench, "capture", "cautious", 20_000) < 4.0


@pytest.mark.long
@pytest.mark.parametrize("name", heuristic_names())
def test_simulated_games_agree_for_every_heuristic(bench: Bench, name: str) -> None:
    assert simulated_apart(bench, name, "random", 100_000) < 4.5
    assert simulated_apart(bench, name, "cautious", 100_000) < 4.5


def test_what_an_agent_loses_is_what_its_decisions_cost(bench: Bench) -> None:
    """Against perfect play the losses of all decisions add up to what is missing to 1/2.

    Two ways to one number: a duel, which is swept backwards, and the visits, swept forwards.
    """
    evaluator, agent = bench.evaluator, bench["cautious"]
    perfect = evaluator.perfect()
    study = evaluator.study(agent, perfect)
    stalled = bench.rules.pass_allowed  # where a pass is worth as much as a move, to 1e-8
    assert study.per_game("loss", 0) == pytest.approx(
        0.5 - evaluator.duel(agent, perfect).mean, abs=2e-6 if stalled else 1e-8
    )
    assert study.per_game("loss", 1) == pytest.approx(0.0, abs=1e-9)
    assert (study.mistakes >= 0).all()
    assert study.stalled == 0.0


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("kombat[pass_allowed=no]", 1),
        pytest.param(FORCED, 2, marks=pytest.mark.long),
        pytest.param("norske", 2, marks=pytest.mark.long),
    ],
)
def test_luck_explains_the_result(text: str, pieces: int) -> None:
    """The result is start value + luck - losses: with perfect play its variance is that of luck."""
    evaluator = Bench(text, pieces).evaluator
    perfect = evaluator.perfect()
    study = evaluator.study(perfect, perfect)
    value = float(evaluator.solver.block(0, 0)[0][0, 0])
    luck = study.per_game("throw_luck") + study.per_game("battle_luck")
    assert luck == pytest.approx(value * (1.0 - value), abs=1e-7)


def test_the_best_answer_is_at_least_as_good_as_any(bench: Bench) -> None:
    evaluator, agent = bench.evaluator, bench["cautious"]
    best = evaluator.best_response(agent).mean
    others = [evaluator.duel(Uniform(), agent).mean]
    if not bench.rules.home:  # Norske takes its time
        others += [evaluator.duel(one, agent).mean for one in (bench["capture"], agent)]
        assert others[-1] == pytest.approx(0.5, abs=1e-7)
        assert others[0] < evaluator.duel(evaluator.perfect(), agent).mean <= best + 1e-7
    assert max([*others, 0.5]) - 1e-7 <= best < 0.75


def test_nobody_beats_perfect_play(bench: Bench) -> None:
    evaluator = bench.evaluator
    value = float(evaluator.solver.block(0, 0)[0][0, 0]) if evaluator.perfect() else 0.0
    if bench.rules.home:
        assert evaluator.duel(Uniform(), evaluator.perfect()).mean < 0.5
        return
    found = evaluator.duel(Best(), Best())
    assert found.first == pytest.approx(value, abs=2e-6)
    for one in (bench["cautious"], Uniform()):
        assert evaluator.duel(one, evaluator.perfect()).mean < 0.5


def test_two_threads_agree_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Bench("kombat")
    expected = one.evaluator.duel(one["capture"], Best())
    monkeypatch.setattr(layers, "SMALL_LAYER", 0)
    two = Evaluator(one.rules, threads=2)
    found = two.duel(one["capture"], Best())
    assert found.mean == pytest.approx(expected.mean, abs=1e-7)


def test_neighbours_count_both_ways_round() -> None:
    rules = two_seats("kombat[pass_allowed=no]", 1, adjacent=True)
    evaluator = Evaluator(rules)
    agent = evaluator.player(make_agent("capture", rules))
    assert evaluator.duel(agent, agent).mean == pytest.approx(0.5, abs=1e-8)
    played = play_match(("capture", "random"), rules, 40_000, seed=3)
    exact = evaluator.duel(agent, Uniform()).mean
    assert played.share(0) == pytest.approx(exact, abs=4 * 0.5 / played.games**0.5)


def test_a_policy_of_ties_is_an_even_lot() -> None:
    """A weight vector without an opinion is ``random``, and is asked like any other."""
    rules = two_seats("norske", 1)
    evaluator = Evaluator(rules)
    asked = evaluator.player(make_agent('weights:{"pass": -1}', rules))
    other = evaluator.player(make_agent("capture", rules))
    expected = evaluator.duel(Uniform(), other)
    assert evaluator.duel(asked, other).mean == pytest.approx(expected.mean, abs=1e-9)


# --------------------------------------------------------- one piece each, solved another way


def waits_at_the_end(own: np.ndarray, other: np.ndarray, die: np.ndarray) -> np.ndarray:
    """Pass for ever near the stretch while the other waits at home: he may never enter."""
    return (own >= 20) & (other < 0)


def moves_seldom(own: np.ndarray, other: np.ndarray, die: np.ndarray) -> np.ndarray:
    """Pass but for one throw in fifty or so, so that sweeps settle by a thousandth each."""
    return (own >= 0) & ((31 * own + 17 * other + 7 * die) % 53 != 0)


class Passing:
    """An agent of one piece that passes where a rule says so, and moves where it can otherwise."""

    def __init__(self, rules: Rules, passes: Callable[..., np.ndarray]) -> None:
        self.spec, self.rules, self.passes = passes.__name__, rules, passes

    def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        rows, seat = np.arange(len(positions)), positions["seat"].astype(int)
        own, other = (positions["pieces"][rows, s, 0].astype(int) for s in (seat, 2 - seat))
        stay = self.passes(own, other, positions["die"].astype(int))
        return np.where(stay, self.rules.board.pass_action, own + 1).astype(np.int16)


class Dense:
    """One piece against one on kimble28 by dense linear algebra, without engine or solver.

    Written from docs/rules.md: R1, R2, R4, R12, R14. States (who throws, its own progress, the
    other's); values are win chances of player 0 less 1/2, so that endless play is worth 0. Every
    throw ends the game as a draw with a tiny chance, which leaves the equations one solution.
    """

    def __init__(self, passes: Callable[..., np.ndarray]) -> None:
        places = range(-1, 28)
        pairs = [(a, b) for a in places for b in places if min(a, b) < 0 or (b + 14) % 28 != a]
        states = [(who, a, b) for who in (0, 1) for a, b in pairs]
        number = {state: k for k, state in enumerate(states)}
        self.size = len(states)  # the numbers after it: player 0 has won, player 1 has won
        self.to = np.zeros((self.size, 6, 2), int)  # [.., 0] moving, [.., 1] passing
        self.choice = np.zeros((self.size, 6), int)
        for k, (who, a, b) in enumerate(states):
            for die in range(1, 7):
                same = number[(who, a, b) if die == 6 else (1 - who, b, a)]
                move = same
                if a >= 0 or die == 6:
                    target = a + die if a >= 0 else 0
                    hit = b >= 0 and (b + 14) % 28 == target
                    after = (target, -1 if hit else b)
                    if 27 < target <= 31:
                        move = self.size + who
                    elif target <= 27:
                        move = number[(who, *after) if die == 6 else (1 - who, *after[::-1])]
                self.to[k, die - 1] = move, same
                if who == 1:
                    self.choice[k, die - 1] = passes(a, b, die)
        self.mine = np.array([who == 0 for who, _, _ in states])
        self.start = number[0, -1, -1], number[1, -1, -1]

    def values(self, draws: float, lost: float = -0.5) -> np.ndarray:
        """Return the values of the choices, 0.5 and ``lost`` for finished games behind them."""
        matrix, right = np.eye(self.size), np.zeros(self.size)
        to = np.take_along_axis(self.to, self.choice[:, :, None], 2)[:, :, 0]
        ended = np.array([0.5, lost])
        for die in range(6):
            inside = to[:, die] < self.size
            rows = np.flatnonzero(inside)
            np.add.at(matrix, (rows, to[rows, die]), -(1.0 - draws) / 6.0)
            right[~inside] += (1.0 - draws) / 6.0 * ended[to[~inside, die] - self.size]
        return np.concatenate([np.linalg.solve(matrix, right), ended])

    def share(self) -> float:
        """Return the win share of player 0, who throws first in half of the games."""
        values = self.values(1e-9)
        return 0.5 + float(values[list(self.start)].mean())

    def stalled(self) -> float:
        """Return the share of games that never end."""
        return 1.0 - 2.0 * float(self.values(1e-9, lost=0.5)[list(self.start)].mean())

    def best_share(self) -> float:
        """Let player 0 choose the best: Howard's policy iteration."""
        for draws, clear in ((1e-6, 1e-9), (1e-9, 1e-8)):
            for _ in range(100):
                value = self.values(draws)[self.to]
                now = np.take_along_axis(value, self.choice[:, :, None], 2)[:, :, 0]
                better = self.mine[:, None] & (value.max(axis=2) > now + clear)
                if not better.any():
                    break
                self.choice[better] = value.argmax(axis=2)[better]
        return self.share()


@pytest.mark.parametrize("passes", [waits_at_the_end, moves_seldom])
def test_one_piece_agrees_with_dense_linear_algebra(passes: Callable[..., np.ndarray]) -> None:
    """A best answer that keeps the game going for ever, and one that takes a thousand throws."""
    rules = two_seats("kimble", 1)
    evaluator = Evaluator(rules, tolerance=1e-11)
    agent = evaluator.player(Passing(rules, passes))
    dense = Dense(passes)
    assert evaluator.duel(Uniform(), agent).mean == pytest.approx(dense.share(), abs=1e-7)
    assert evaluator.study(Uniform(), agent).stalled == pytest.approx(dense.stalled(), abs=1e-5)
    best = evaluator.best_response(agent).mean
    assert best == pytest.approx(dense.best_share(), abs=1e-7)
    assert best > evaluator.duel(evaluator.perfect(), agent).mean - 1e-9


def test_games_that_never_end_are_counted() -> None:
    """Both wait near the stretch until the other has moved on."""
    rules = two_seats("kimble", 1)
    evaluator = Evaluator(rules, tolerance=1e-11)
    agent = evaluator.player(Passing(rules, lambda own, other, die: (own >= 20) & (other >= 20)))
    study = evaluator.study(agent, agent)
    assert 0.01 < study.stalled < 1.0
    never = evaluator.player(Passing(rules, lambda own, other, die: own > -2))
    assert evaluator.study(never, never).stalled == 1.0


def test_play_that_never_ends_is_worth_one_half_to_the_best_answer() -> None:
    """Both would wait for ever here. Sweeps with the best move find 0.519 and stay there.

    Whatever endless play is worth, 0 or 1, the best answer wins no less, no more.
    """
    bench = Bench("kombat")
    layer = bench.evaluator.solver.layer(4, 4, {}.__getitem__)  # one piece each is home
    codes = Uniform().codes(layer, 0), bench["cautious"].codes(layer, 1)
    bounds = []
    for worth in (0.0, 1.0):
        layer.p[:], layer.q[:] = worth, 1.0 - worth
        sweep, arguments = sweeper(layer, (kernels.BEST, kernels.FIXED), codes)
        for _ in range(300):
            layer.sweep(sweep, (*arguments, 0.0), None, 1, None, 0)
        bounds.append(layer.p.copy())
    best_answer(Contest(layer, codes, 1e-10, 20_000), 0)
    free = ~clashes(layer)
    assert (layer.p - bounds[0])[free].min() > -1e-9
    assert (bounds[1] - layer.p)[free].min() > -1e-9
    configs = layer.a.moves(4).configs.tolist()
    waiting = configs.index([0, 31]), configs.index([13, 31])
    assert bounds[0][waiting] < 0.49
    assert bounds[1][waiting] > 0.51
    assert layer.p[waiting] == pytest.approx(0.5, abs=1e-12)


# ------------------------------------------------------------------------------------ the report


OWN = """
def eager(game):
    return game.legal_moves[0]

class Dice:
    def act(self, positions, keys):
        from kimble_env.opponents import make_agent
        return make_agent("random", RULES).act(positions, keys)
"""


def test_the_report_of_an_agent_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    found = exactly(f"{path}:eager", FORCED, 1, ("random", "perfect", "cautious"), threads=1)
    assert json.loads(json.dumps(found)) == found
    assert found["positions"] == 813
    # with one piece moves are forced, so everybody is perfect
    for row in found["versus"].values():
        assert row["share"] == pytest.approx(0.5, abs=1e-8)
        assert row["first"] == pytest.approx(0.5262585192, abs=1e-8)
    assert found["loss_per_decision"] == 0.0
    parts = ["solve", "policy", "versus random", "versus perfect", "versus cautious"]
    assert list(found["cpu_parts"]) == [*parts, "best_response", "costs"]
    assert found["exploitability"] == pytest.approx(0.0, abs=1e-8)
    lines: list[str] = []
    print_exactly(found, lines.append)
    assert any(line.startswith("perfect") for line in lines)


def test_the_report_of_a_heuristic() -> None:
    found = exactly("cautious", "kombat", 2, threads=1)
    assert 1.0 < found["loss_per_decision"] < 10.0
    assert found["versus"]["random"]["share"] > 0.5 > found["versus"]["perfect"]["share"]
    assert found["exploitability"] > 0.5 - found["versus"]["perfect"]["share"]
    itself = found["itself"]
    assert sum(entry["share_of_loss"] for entry in itself["mistakes"]) == pytest.approx(1.0)
    dearest = itself["positions"][0]
    best = max(dearest["win"].values())
    assert best - min(dearest["win"].values()) >= dearest["loss_each"] / 1000 - 1e-6
    lines: list[str] = []
    print_exactly(found, lines.append)
    assert any(dearest["position"] in line for line in lines)


def test_a_best_answer_that_does_not_settle_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.exact.duels.MOST_SWEEPS", 2)
    said: list[str] = []
    found = exactly("furthest", "kimble", 1, versus=(), costs=False)
    print_exactly(found, said.append)
    assert found["best_response"] is None
    assert found["exploitability"] is None
    assert "after 2 sweeps" in found["unsettled"]
    assert any(line.startswith("no best answer found: layer") for line in said)


def test_a_figure_without_its_best_answer_is_completed(tmp_path: Path) -> None:
    evaluator = Evaluator(game_of("kimble", 1), 1e-11)
    data: Data = {}
    for quick in (True, False):
        add_agent(tmp_path, data, "cautious", "kimble", False, quick, evaluator)
        found = read(tmp_path)["ladder"]["kimble 1 cautious"]
        assert (found["exploitability"] is None) is quick
        assert found["versus"]["random"]["share"] > 0.0
    assert found["exploitability"] > -1e-9


def test_agents_that_draw_lots_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lots.py"
    path.write_text(OWN.replace("RULES", "'kimble[pieces=2]'"))
    with pytest.raises(TableError, match="draws lots"):
        exactly(f"{path}:Dice", "kimble", 2, threads=1)
    for level in (3, 10):  # with one piece there is hardly a choice, so asking twice tells nothing
        with pytest.raises(TableError, match="draws lots"):
            exactly(f"cautious@level={level}", "kimble", 1, threads=1)
    with pytest.raises(TableError, match="draws lots"):
        exactly("cautious", "kimble", 1, versus=("cautious@level=3",), threads=1)


def test_few_decisions_are_said_in_full() -> None:
    assert _count(8_123) == "8,123"
    assert _count(1_234_567) == "1.2 million"


def test_numbers_of_pieces() -> None:
    assert game_of("kimble").pieces == 2
    assert game_of("kimble[pieces=3]").pieces == 3
    assert game_of("kombat", 1).pieces == 1
    with pytest.raises(AgentError, match="give one"):
        game_of("kimble[pieces=3]", 2)
    with pytest.raises(AgentError, match="1 to 3 pieces, got 4"):
        game_of("kimble", 4)


def test_every_loss_is_at_least_nothing(bench: Bench) -> None:
    """… in all positions, not only where play goes."""
    evaluator = bench.evaluator
    agent = bench["capture"]
    evaluator.perfect()
    clear = 0.0
    for x, y in evaluator.solver.all_pairs():
        layer = evaluator.solver.layer(x, y, solved=True)
        everywhere = tuple((~clashes(layer)).astype(float) for _ in range(2))
        sums, kinds = np.zeros((2, len(positions.SUMS))), np.zeros((7, 4))
        mistakes, worst = np.zeros((7, 7, 2)), np.zeros((4, 8))
        codes = (agent.codes(layer, 0), agent.codes(layer, 1))
        positions.tally(
            layer.where(), *layer.seats(), *codes, kernels.SHARES, *everywhere, clear,
            bench.rules.board.leave + 1, sums, kinds, mistakes, worst, 0,
        )  # fmt: skip
        assert (mistakes >= 0.0).all()
        assert (worst[:, 0] >= 0.0).all()


def clashes(layer: layers.Layer) -> np.ndarray:
    a, b = layer.seats()
    return (a.seen[:, None] & b.masks[None, :]) != 0
