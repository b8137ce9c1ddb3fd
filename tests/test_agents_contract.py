"""What holds for every agent: any batch, no illegal move, illegal positions refused, copies.

Kinds are found in the registry, so a new one is checked, or named as missing here.
"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agents.heuristics import heuristic_names
from evaluation.cli import evaluate
from kimble_env import find_rules, kernel
from kimble_env.errors import AgentError, PositionError
from kimble_env.features import FEATURE_COUNT, advance_weighted_batch
from kimble_env.kernel import play_batch, put_states, take_states
from kimble_env.opponents import (
    check_actions,
    decision_keys,
    hide_random_state,
    known_specs,
    make_agent,
)
from kimble_env.rules import Rules
from kimble_env.testing import check_agent, random_positions

RULE_SETS = ("kimble", "kombat", "norske")
QUICK = ("random", "random:mask", 'weights:{"capture": 2, "pass": -1}', *heuristic_names())
SEARCHING = (
    "search:depth=1",
    "search",
    "search:depth=3,budget=100",
    "search:depth=2,replies=cautious",
    "rollouts:n=2,plies=2",
    "cautious@level=3",
    "search:depth=1@level=5",
)
SPECS = (*QUICK, *SEARCHING)

OWN = """
import numpy as np
from kimble_env.kernel import legal_batch

class Lowest:
    def __init__(self, rules):
        self.rules = rules
    def score(self, positions):
        return np.tile(-np.arange(self.rules.board.actions, dtype=float), (len(positions), 1))
    def act(self, positions, keys):
        legal = np.empty(len(positions), np.int64)
        legal_batch(positions, self.rules.array, legal)
        return [int(bits & -bits).bit_length() - 1 for bits in legal]

def first(game):
    return game.legal_moves[0]
"""


def test_every_kind_is_checked_here() -> None:
    """A kind that is registered and not in this file fails, so that nobody forgets it."""
    elsewhere = {"exact", "net"}  # below, with rules and files of their own
    checked = {spec.partition(":")[0].partition("@")[0] for spec in SPECS}
    kinds = {spec.partition(":")[0] for spec in known_specs().values()}
    assert kinds <= checked | elsewhere | {"heuristic"}


@pytest.mark.parametrize("spec", SPECS)
def test_batches_order_pieces_and_pickles_change_nothing(spec: str) -> None:
    for k, name in enumerate(RULE_SETS):
        for players in (2, 3, 4):
            rules = find_rules(name, players=players)
            count = 60 if spec in QUICK else 25
            check_agent(spec, rules, decisions=count, seed=10 * k + players)


@pytest.mark.parametrize("name", RULE_SETS)
def test_exact_is_checked_with_two_pieces(name: str) -> None:
    check_agent("exact", find_rules(f"{name}[pieces=2]", players=2), decisions=100)
    check_agent("search:depth=2,eval=exact", find_rules(f"{name}[pieces=2]", players=2),
                decisions=40)  # fmt: skip


@pytest.mark.parametrize("spec", SPECS)
def test_copies_answer_alike_and_keep_their_name(spec: str) -> None:
    rules = find_rules("kombat", players=3)
    positions = random_positions(rules, 20, seed=4)
    keys = decision_keys(positions)
    agent = make_agent(spec, rules)
    answers = agent.act(positions, keys)
    for twin in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert twin.spec == agent.spec
        assert (twin.act(positions, keys) == answers).all()


@pytest.mark.parametrize("spec", SPECS)
def test_illegal_positions_are_refused_by_name(spec: str) -> None:
    rules = find_rules("norske", players=2)
    agent = make_agent(spec, rules)
    good = random_positions(rules, 3, seed=5)
    keys = decision_keys(good)
    waiting, outside, over = (good.copy() for _ in range(3))
    waiting["die"][1] = 0
    outside["pieces"][2, 0, 0] = 77
    over["status"][0], over["winner"][0] = kernel.WON, 0
    for positions, words in (
        (waiting, "position 1: no die has been thrown"),
        (outside, "position 2: .*route"),
        (over, "position 0: .*over"),
    ):
        with pytest.raises(PositionError, match=words):
            agent.act(positions, keys)
        if hasattr(agent, "evaluate"):
            with pytest.raises(PositionError, match=words):
                agent.evaluate(positions)
    with pytest.raises(PositionError, match="STATE"):
        agent.act(np.zeros(3), keys)  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="keys"):
        agent.act(good, keys[:2])


# ------------------------------------------------------------ legal moves only


def decide(rules: Rules, specs: tuple[str, ...], decisions: int, games: int, seed: int) -> int:
    """Let agents play each other, checking every action; return the number of decisions."""
    agents = [make_agent(spec, rules) for spec in specs]
    states, keys = kernel.empty_states(games), np.empty(games, np.uint64)
    plays = np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    weights, asked = np.zeros((1, FEATURE_COUNT)), np.full((games, 4), -1, np.int8)
    legal, made = np.zeros(games, np.int64), 0
    while made < decisions:
        over = np.flatnonzero(states["status"] != kernel.RUNNING) if made else np.arange(games)
        if len(over):
            fresh = take_states(states, over)
            kernel.game_keys(np.uint64(seed), made, keys[: len(over)])
            log = np.empty((0, 2), np.int8)
            kernel.new_game_batch(fresh, rules.array, plays[over], keys[: len(over)], log)
            put_states(states, over, fresh)
        advance_weighted_batch(states, rules.array, weights, asked, 1 << 30, legal)
        rows = np.flatnonzero(legal)
        positions = take_states(states, rows)
        answers = np.empty(len(rows), np.int16)
        turn = (positions["plies"] + rows) % len(agents)
        for k, agent in enumerate(agents):
            own = np.flatnonzero(turn == k)
            part = hide_random_state(take_states(positions, own))
            given = agent.act(part, decision_keys(take_states(positions, own)))
            answers[own] = check_actions(part, rules, given, agent.spec)
        play_batch(positions, rules.array, answers, np.zeros((len(rows), 2), np.int8))
        put_states(states, rows, positions)
        made += len(rows)
    return made


@pytest.mark.parametrize("name", RULE_SETS)
def test_no_agent_ever_answers_an_illegal_move(name: str) -> None:
    assert decide(find_rules(name), SPECS, 6000, 400, seed=1) >= 6000


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("name", RULE_SETS)
def test_no_agent_answers_an_illegal_move_in_a_million_decisions(name: str, players: int) -> None:
    rules = find_rules(name, players=players)
    quick = (*QUICK, "search:depth=1", "cautious@level=3")
    assert decide(rules, quick, 1_000_000, 4000, seed=2) >= 1_000_000
    assert decide(rules, SEARCHING, 50_000, 1000, seed=3) >= 50_000


# ------------------------------------------------------------ one's own agents


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own_of_mine.py"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_own_agents_play_matches_from_files_modules_and_functions(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own.parent)
    for spec in (f"{own}:first", f"{own}:Lowest", "own_of_mine:first", "own_of_mine:Lowest",
                 "own_of_mine:Lowest@level=6"):  # fmt: skip
        result = evaluate([spec, "random"], "norske", 2, 10, seed=3, json=True)
        assert result.games == 10
        assert result.agents == (spec, "random")
    plain = evaluate([lambda game: game.legal_moves[0], "random"], "norske", 2, 10, 3, True)
    named = evaluate(["own_of_mine:first", "random"], "norske", 2, 10, 3, True)
    assert (plain.winners == named.winners).all()  # the same agent, however it is given


def test_own_agents_in_the_command(own: Path) -> None:
    lineup = ["own_of_mine.py:first", "own_of_mine:Lowest@level=4", "search:depth=1@level=2"]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); "
         "from kimble_app.__main__ import main; main()", str(Path(__file__).parents[1]),
         "evaluate", *lineup, "--rules", "kombat[pieces=1]", "--games", "6", "--json"],
        cwd=own.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [agent["agent"] for agent in json.loads(done.stdout)["agents"]] == lineup
