"""Agents: specs, users' own, and the boundary that lets nothing illegal by."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from test_features import bits, decisions, new_games

from kimble_env import Game, choose, features, kernel, opponents
from kimble_env.errors import AgentError, IllegalMoveError, KimbleError, PositionError
from kimble_env.features import FEATURES
from kimble_env.notation import parse_position
from kimble_env.opponents import (
    Agent,
    CheckedAgent,
    WeightAgent,
    decision_keys,
    hide_random_state,
    known_specs,
    make_agent,
    register_alias,
    register_maker,
)
from kimble_env.rules import Rules, find_rules

KIMBLE = find_rules("kimble")

OWN = '''
import numpy as np
from kimble_env.kernel import legal_batch

class Lowest:
    """An agent as a class that is given the rules."""
    def __init__(self, rules):
        self.rules = rules
    def act(self, positions, keys):
        legal = np.empty(len(positions), np.int64)
        legal_batch(positions, self.rules.array, legal)
        return [int(bits & -bits).bit_length() - 1 for bits in legal]

class Bare:
    """An agent as a class that is given nothing."""
    def act(self, positions, keys):
        return Lowest(find_rules("kimble")).act(positions, keys)

from kimble_env.rules import find_rules
instance = Lowest(find_rules("kimble"))

def factory(rules):
    return Lowest(rules)

def lowest(game):
    return game.legal_moves[0]

def as_text(game):
    return str(game.legal_moves[0])

def as_code(game):
    return game.legal_moves[0].action

def drawn(game, key):
    return game.legal_moves[key % len(game.legal_moves)]

def nonsense(game):
    return 3.5

def wrong_text(game):
    return "3-99"

not_an_agent = 7
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own agents.py"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def asked() -> np.ndarray:
    return decisions(KIMBLE, 96)[0]


def answers(agent: Agent, positions: np.ndarray) -> list[int]:
    return agent.act(positions, decision_keys(positions)).tolist()


# -------------------------------------------------------------------------------------------- specs


def test_random_never_passes_by_choice_and_its_mask_cousin_does(asked: np.ndarray) -> None:
    passing = KIMBLE.board.pass_action
    plain, mask = make_agent("random", KIMBLE), make_agent("random:mask", KIMBLE)
    keys = np.random.default_rng(1).integers(0, 2**64, len(asked), np.uint64)
    legal = np.empty(len(asked), np.int64)
    kernel.legal_batch(asked, KIMBLE.array, legal)
    assert (plain.act(asked, keys) != passing).all()  # each has another move
    assert (mask.act(asked, keys) == passing).sum() > 10
    assert (plain.spec, mask.spec) == ("random", "random:mask")


def test_an_agent_answers_one_action_code_per_position(asked: np.ndarray) -> None:
    for spec in ("random", "cautious", 'weights:{"capture": 2}'):
        agent = make_agent(spec, "kimble")
        assert isinstance(agent, Agent)
        assert isinstance(agent, WeightAgent)
        actions = agent.act(asked, decision_keys(asked))
        assert actions.dtype == np.int16
        assert actions.shape == (len(asked),)
    assert agent.act(asked[:0], np.empty(0, np.uint64)).shape == (0,)


def test_a_batch_may_be_split_in_any_way(own: str, asked: np.ndarray) -> None:
    keys = decision_keys(asked)
    for spec in ("random", "random:mask", "mixed", f"{own}:drawn", f"{own}:Lowest"):
        agent = make_agent(spec, KIMBLE)
        whole = agent.act(asked, keys).tolist()
        for size in (1, 7, 64):
            parts = [
                agent.act(asked[k : k + size], keys[k : k + size]).tolist()
                for k in range(0, len(asked), size)
            ]
            assert [action for part in parts for action in part] == whole
    assert len(set(whole)) > 1


def test_keys_differ_between_seeds_seats_and_plies() -> None:
    states = new_games(KIMBLE, 400, seed=5)
    states["seat"] = np.arange(400) % 4
    states["plies"] = np.arange(400) // 20
    assert len(np.unique(decision_keys(states))) == 400
    assert (decision_keys(states) == decision_keys(states)).all()


def test_weights_from_text_list_and_file(tmp_path: Path) -> None:
    weights = {"capture": 5, "pass": -1.5}
    expected = [float(weights.get(name, 0)) for name in FEATURES]
    bare, wrapped = tmp_path / "bare.json", tmp_path / "wrapped.json"
    bare.write_text(json.dumps(weights), encoding="utf-8")
    wrapped.write_text(json.dumps({"text": "mine", "weights": weights}), encoding="utf-8")
    specs = (json.dumps(weights), json.dumps(expected), str(bare), str(wrapped))
    for argument in specs:
        agent = make_agent(f"weights:{argument}", KIMBLE)
        assert isinstance(agent, WeightAgent)
        assert agent.weights.tolist() == expected
        assert agent.spec == f"weights:{argument}"
        with pytest.raises(ValueError, match="read-only"):
            agent.weights[0] = 1


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ('{"captures": 1, "capture": "x"}', "captures.*capture.*must be a finite number"),
        ('{"capture": NaN}', "finite"),
        ('{"capture": true}', "finite number"),
        ("[1, 2]", f"expected {len(FEATURES)} weights"),
        ('["1"]', "must be numbers"),
        ("[" * 70 + "]" * 70, "must be numbers"),  # deeper than numpy can go
        ("{", "not JSON"),
        ("/no/such/file.json", "cannot read"),
        ("", "cannot read"),
    ],
)
def test_bad_weights_are_named(argument: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        make_agent(f"weights:{argument}", KIMBLE)


def test_weight_agent_scores_every_legal_action(asked: np.ndarray) -> None:
    agent = make_agent("capture", KIMBLE)
    assert isinstance(agent, WeightAgent)
    scores = agent.score(asked)
    assert scores.dtype == np.float32
    assert scores.shape == (len(asked), KIMBLE.board.actions)
    chosen = scores[np.arange(len(asked)), answers(agent, asked)]
    assert (chosen == scores.max(axis=1)).all()


def test_an_unknown_spec_lists_the_known_ones() -> None:
    with pytest.raises(AgentError, match=r"unknown agent 'nobody'.*cautious.*random"):
        make_agent("nobody", KIMBLE)
    with pytest.raises(AgentError, match="option '@lever=3'"):
        make_agent("nobody@lever=3", KIMBLE)
    with pytest.raises(AgentError, match="'mask' after the colon"):
        make_agent("random:pass", KIMBLE)
    assert {"random", "weights", "heuristic", "cautious"} <= set(known_specs())


def test_entry_points_are_loaded_on_the_first_unknown_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "_makers", {"random": opponents._makers["random"]})
    monkeypatch.setattr(opponents, "_aliases", {})
    monkeypatch.setattr(opponents, "_loaded", False)
    # As on a path where the distribution is not installed, and with a broken plug-in beside it.
    broken = opponents.metadata.EntryPoint("bad", "no_such_package:register", "kimble.agents")
    monkeypatch.setattr(opponents.metadata, "entry_points", lambda group: [broken])
    monkeypatch.setattr(opponents, "_load_failures", [])
    assert make_agent("random", KIMBLE).spec == "random"
    assert not opponents._loaded
    assert isinstance(make_agent("cautious", KIMBLE), WeightAgent)
    with pytest.raises(AgentError, match="failed to load: no_such_package"):
        make_agent("nobody", KIMBLE)


def test_registering(monkeypatch: pytest.MonkeyPatch, asked: np.ndarray) -> None:
    monkeypatch.setattr(opponents, "_makers", dict(opponents._makers))
    monkeypatch.setattr(opponents, "_aliases", dict(opponents._aliases))

    def maker(argument: str, rules: Rules) -> Agent:
        return WeightAgent(f"mine:{argument}", rules, features.random_weights())

    register_maker("mine", maker)
    register_maker("mine", maker)  # again is harmless
    register_alias("short", "mine:7")
    assert make_agent("mine:7", KIMBLE).spec == make_agent("short", KIMBLE).spec == "mine:7"
    with pytest.raises(AgentError, match="another maker"):
        register_maker("mine", lambda argument, rules: maker(argument, rules))
    with pytest.raises(AgentError, match="plain word"):
        register_maker("a:b", maker)
    with pytest.raises(AgentError, match="already"):
        register_alias("random", "mine:7")
    with pytest.raises(AgentError, match="already"):
        register_alias("short", "mine:8")


# ----------------------------------------------------------------------------------- users' agents


@pytest.mark.parametrize(
    "name", ["Lowest", "Bare", "instance", "factory", "lowest", "as_text", "as_code"]
)
def test_own_agents_from_a_file(name: str, own: str, asked: np.ndarray) -> None:
    agent = make_agent(f"{own}:{name}", KIMBLE)
    legal = np.empty(len(asked), np.int64)
    kernel.legal_batch(asked, KIMBLE.array, legal)
    assert answers(agent, asked) == [bits(b)[0] for b in legal]
    assert agent.spec == f"{own}:{name}"


def test_own_agents_from_a_module_and_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: np.ndarray
) -> None:
    (tmp_path / "kimble_test_module.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = make_agent("kimble_test_module:lowest", KIMBLE)
    import kimble_test_module as module

    expected = answers(agent, asked)
    for thing in (module.Lowest, module.Bare, module.instance, module.factory, module.lowest):
        assert answers(make_agent(thing, KIMBLE), asked) == expected
    assert make_agent(module.lowest, KIMBLE).spec == "lowest"
    assert make_agent(agent, KIMBLE) is agent


def test_own_agents_work_in_every_rule_set(own: str) -> None:
    for text in ("kombat", "norske", "norske[board=ludo52]", "kimble[pieces=2]"):
        rules = find_rules(text, players=2)
        positions, _ = decisions(rules, 48)
        for name in ("lowest", "factory"):
            answers(make_agent(f"{own}:{name}", rules), positions)  # checked at the boundary


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{own}:missing", "has no 'missing'; it has"),
        ("{own}:not_an_agent", "no agent: expected an object with act"),
        ("/no/such/file.py:x", "there is no file"),
        ("mine\0.py:x", "cannot be a file"),
        ("~nobody_here/mine.py:x", "cannot be a file"),
        ("weights:mine\0.json", "cannot read that file"),
        ("no_such_module_here:x", "there is no module 'no_such_module_here'"),
        ("json.no_such_part:x", "there is no module 'json.no_such_part'"),
        ("{broken}:x", "fails while it is loaded: ZeroDivisionError: division by zero"),
        ("{broken}", "names a file only; name the agent in it too: .*broken.py:NAME"),
        ('weights:{{"captur": 1}}', "unknown feature 'captur'; did you mean capture\\?; known"),
        ('weights:{{"capture": NaN}}', "weight of 'capture' must be a finite number, got nan$"),
    ],
)
def test_bad_own_agents_are_named(spec: str, message: str, own: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0", encoding="utf-8")
    with pytest.raises(AgentError, match=message):
        make_agent(spec.format(own=own, broken=broken), KIMBLE)


def test_what_a_function_cannot_be_called_with_is_said_when_it_is_made() -> None:
    with pytest.raises(AgentError, match=r"takes \(game\) or \(game, key\), not \(game, extra\)"):
        make_agent(lambda game, extra: None, KIMBLE)
    with pytest.raises(AgentError, match=r"takes \(game\) or \(game, key\), not \(\)"):
        make_agent(lambda: None, KIMBLE)
    make_agent(lambda game, key, more=1: None, KIMBLE)


def test_an_error_in_an_agent_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "falls.py"
    file.write_text("def play(game):\n    return 1 / 0\n", encoding="utf-8")
    agent = make_agent(f"{file}:play", find_rules("kimble", players=2))
    game = Game.from_text("kimble R3,20/Y5 R 4 1")
    told = r"fails: ZeroDivisionError: division by zero \(falls.py, line 2, in play\)"
    with pytest.raises(AgentError, match=told) as caught:
        choose(agent, game)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    file = tmp_path / "leaves.py"
    file.write_text("import sys\ndef play(game):\n    sys.exit(3)\n", encoding="utf-8")
    with pytest.raises(AgentError, match=r"fails: SystemExit: 3 \(leaves.py, line 3, in play\)"):
        choose(make_agent(f"{file}:play", find_rules("kimble", players=2)), game)


def test_an_agent_for_other_rules_is_refused() -> None:
    agent = make_agent("random", find_rules("norske"))
    with pytest.raises(AgentError, match=r"plays norske .*, not kimble"):
        make_agent(agent, KIMBLE)

    class Foreign:
        rules = find_rules("kombat")

        def act(self, positions: np.ndarray, keys: np.ndarray) -> list[int]:
            return []

    with pytest.raises(AgentError, match="plays kombat"):
        make_agent(Foreign, KIMBLE)


# ------------------------------------------------------------------------------------ the boundary


class Fixed:
    """Answers what it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.seen: list[np.ndarray] = []

    def act(self, positions: np.ndarray, keys: np.ndarray) -> object:
        self.seen.append(positions)
        positions["pieces"] = 5  # its own copy: the caller's stay as they are
        keys[:] = 0
        return self.answer


def test_illegal_answers_never_get_through(own: str) -> None:
    rules, positions = parse_position("kimble R3/B0/Y-/G- R 4 1")
    keys = decision_keys(positions)
    for answer in ([0], [5], [-1], [34], np.array([2**40])):
        with pytest.raises(
            IllegalMoveError, match=r"agent 'Fixed' answers.*; legal: 4 \(3-7\), 33 \(pass\)$"
        ):
            make_agent(Fixed(answer), rules).act(positions, keys)
    for answer in ([4.0], [[4]], [4, 4], None, "4"):
        with pytest.raises(AgentError, match="must return whole numbers"):
            make_agent(Fixed(answer), rules).act(positions, keys)
    with pytest.raises(AgentError, match=r"must return a move.*got 3\.5"):
        make_agent(f"{own}:nonsense", rules).act(positions, keys)
    with pytest.raises(IllegalMoveError, match="'3-99'; legal moves: 3-7, pass"):
        make_agent(f"{own}:wrong_text", rules).act(positions, keys)
    assert make_agent(Fixed([4]), rules).act(positions, keys).tolist() == [4]


def test_a_function_plays_positions_of_other_seats_starters_and_limits(own: str) -> None:
    made = make_agent(f"{own}:lowest", find_rules("kimble", starter="B", max_turns=5))
    for text, action in (
        ("kimble R3/Y0 R 4 1", 4),
        ("kimble R3/B0/Y-/G- R 4 1 turn=6", 4),
        ("kimble R3/Y0 R 4 1 turn=5", 4),
        ("kimble R3/Y0 R 4 1", 4),
    ):
        _, positions = parse_position(text)
        assert made.act(positions, decision_keys(positions)).tolist() == [action]


def test_ragged_answers_are_named() -> None:
    rules, positions = parse_position("kimble R3/B0/Y-/G- R 4 1")
    ragged = Fixed([[4], [4, 4]])
    ragged.evaluate = lambda positions: [[0.5], [0.5, 0.5]]  # type: ignore[attr-defined]
    agent = make_agent(ragged, rules)
    with pytest.raises(AgentError, match="must return whole numbers"):
        agent.act(positions, decision_keys(positions))
    with pytest.raises(AgentError, match="must return chances as numbers"):
        agent.evaluate(positions)  # type: ignore[attr-defined]


def test_agents_see_copies_without_the_dice_to_come(asked: np.ndarray) -> None:
    before, keys = asked.tobytes(), decision_keys(asked)
    legal = np.empty(len(asked), np.int64)
    kernel.legal_batch(asked, KIMBLE.array, legal)
    spy = Fixed([bits(b)[0] for b in legal])
    make_agent(spy, KIMBLE).act(asked, keys)
    assert asked.tobytes() == before
    assert (keys == decision_keys(asked)).all()
    for name in ("seed", "throw_count", "battle_count", "choice_count"):
        assert asked[name].any() or name in ("battle_count", "choice_count")
        assert not spy.seen[0][name].any()
    hidden = hide_random_state(asked)
    assert (hidden["pieces"] == asked["pieces"]).all()
    assert (hidden["die"] == asked["die"]).all()


def test_the_game_of_a_function_has_other_dice() -> None:
    thrown: list[list[int]] = []

    def look(game: object, key: int) -> object:
        choice = game.legal_moves[0]  # type: ignore[attr-defined]
        trial = game.copy()  # type: ignore[attr-defined]
        trial.play(trial.legal_moves[0])
        thrown.append([trial.throw() for _ in range(1)])
        return choice

    states = new_games(KIMBLE, 200, seed=9)
    legal = np.empty(200, np.int64)
    none = np.full((200, 4), -1, np.int8)
    features.advance_weighted_batch(
        states, KIMBLE.array, np.zeros((1, len(FEATURES))), none, 1 << 30, legal
    )
    actions = make_agent(look, KIMBLE).act(states, decision_keys(states))
    real = kernel.take_states(states)
    kernel.play_batch(real, KIMBLE.array, actions, np.zeros((200, 2), np.int8))
    kernel.throw_batch(real, KIMBLE.array, np.zeros(200, np.int8), legal)
    same = np.mean(real["last_die"] == np.array(thrown)[:, 0])
    assert 0.05 < same < 0.3  # one in six by chance


BAD_POSITIONS = [
    (lambda s: s["pieces"].__setitem__((2, 0, 0), 99), "position 2: .*99"),
    (lambda s: s["die"].__setitem__(1, 0), "position 1: no die has been thrown"),
    (lambda s: s["die"].__setitem__(1, 7), "position 1: .*die"),
    (lambda s: s["status"].__setitem__(3, kernel.TRUNCATED), "position 3: the game is over"),
    (lambda s: s["throws"].__setitem__(0, 3), "position 0: .*throws"),
]


@pytest.mark.parametrize(("spoil", "message"), BAD_POSITIONS)
@pytest.mark.parametrize("own_agent", [False, True])
def test_illegal_positions_are_refused(
    spoil: object, message: str, own_agent: bool, asked: np.ndarray
) -> None:
    positions = kernel.take_states(asked[:8])
    spoil(positions)  # type: ignore[operator]
    agent = make_agent(Fixed([0] * 8) if own_agent else "random", KIMBLE)
    with pytest.raises(PositionError, match=message) as caught:
        agent.act(positions, np.zeros(8, np.uint64))
    assert caught.value.faults


def test_every_fault_is_listed(asked: np.ndarray) -> None:
    positions = kernel.take_states(asked[:3])
    positions["pieces"][0, 0, 0] = 99
    positions["die"][2] = 0
    with pytest.raises(PositionError) as caught:
        make_agent("random", KIMBLE).act(positions, np.zeros(3, np.uint64))
    assert [fault[:10] for fault in caught.value.faults] == ["position 0", "position 2"]
    many = kernel.take_states(asked)
    many["die"] = 0
    with pytest.raises(PositionError, match="and 76 more"):
        make_agent("random", KIMBLE).act(many, np.zeros(len(many), np.uint64))


def test_malformed_calls_are_refused(asked: np.ndarray) -> None:
    agent = make_agent("random", KIMBLE)
    with pytest.raises(PositionError, match="must be an array STATE"):
        agent.act(np.zeros(3), np.zeros(3, np.uint64))
    with pytest.raises(PositionError, match="must be an array STATE"):
        agent.act("kimble R3/B- R 4 1", np.zeros(1, np.uint64))  # type: ignore[arg-type]
    for keys in (np.zeros(2, np.uint64), np.zeros(3, np.int64), [0, 0, 0]):
        with pytest.raises(AgentError, match=r"keys must be an array uint64 \[3\]"):
            agent.act(asked[:3], keys)  # type: ignore[arg-type]
    with pytest.raises(KimbleError, match="unknown rule set"):
        make_agent("random", "poker")


def test_win_chances_are_checked(asked: np.ndarray) -> None:
    class Judge(Fixed):
        def evaluate(self, positions: np.ndarray) -> object:
            return self.answer

    def judge(answer: object) -> object:
        agent = make_agent(Judge(answer), KIMBLE)
        return agent.evaluate(asked[:2])  # type: ignore[attr-defined]

    good = np.zeros((2, KIMBLE.board.actions, 4))
    assert judge(good).dtype == np.float32  # type: ignore[attr-defined]
    with pytest.raises(AgentError, match="must return chances"):
        judge(good[:1])
    with pytest.raises(AgentError, match=r"not in 0\.\.1"):
        judge(good + 2)
    with pytest.raises(AgentError, match=r"not in 0\.\.1"):
        judge(good * np.nan)
    assert not hasattr(make_agent(Fixed([]), KIMBLE), "evaluate")


# ------------------------------------------------------------------------------- copies and pickles


def play_elsewhere(data: bytes, positions: bytes) -> list[int]:
    agent = pickle.loads(data)
    states = np.frombuffer(bytearray(positions), kernel.STATE)
    return answers(agent, states)


def test_agents_copy_and_pickle(own: str, asked: np.ndarray) -> None:
    for spec in ("random", "mixed", 'weights:{"size": 1}', f"{own}:drawn", f"{own}:Lowest"):
        agent = make_agent(spec, KIMBLE)
        expected = answers(agent, asked)
        for twin in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
            assert answers(twin, asked) == expected
            assert twin.spec == agent.spec
            if isinstance(twin, WeightAgent):
                assert not twin.weights.flags.writeable
    assert answers(pickle.loads(pickle.dumps(make_agent(Fixed([33]), KIMBLE))), asked[:1]) == [33]


def test_agents_travel_to_spawned_workers(
    own: str, asked: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = str(Path(own).parent), Path(own).name
    monkeypatch.chdir(folder)
    agent = make_agent(f"{name}:lowest", KIMBLE)  # a relative path, read again by the worker
    assert isinstance(agent, CheckedAgent)
    few = asked[:16]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        job = (pickle.dumps(agent), few.tobytes())
        assert pool.apply(play_elsewhere, job) == answers(agent, few)


# -------------------------------------------------------------------------------- many decisions


@pytest.mark.parametrize("name", ["kimble", "kombat", "norske"])
def test_fifty_thousand_decisions_are_all_legal(name: str) -> None:
    rules = find_rules(name)
    agents = [make_agent(spec, rules) for spec in ("random", "random:mask", "cautious", "mixed")]
    rng = np.random.default_rng(11)
    agents.append(WeightAgent("drawn", rules, rng.normal(size=len(FEATURES))))
    states = new_games(rules, 600)
    none, seating = np.zeros((1, len(FEATURES))), np.full((600, 4), -1, np.int8)
    legal, made = np.empty(600, np.int64), 0
    while made < 50_000:
        features.advance_weighted_batch(states, rules.array, none, seating, 1 << 30, legal)
        rows = np.flatnonzero(legal)
        if len(rows) < 100:
            states = new_games(rules, 600, seed=made)
            continue
        part = kernel.take_states(states, rows)
        actions = agents[made % len(agents)].act(part, decision_keys(part))
        assert ((legal[rows] >> actions.astype(np.int64)) & 1 == 1).all()
        kernel.play_batch(part, rules.array, actions, np.zeros((len(rows), 2), np.int8))
        kernel.put_states(states, rows, part)
        made += len(rows)


def test_choose_gives_the_move_of_an_agent_in_a_game() -> None:
    game = Game.from_text("norske R3,20/B0/Y-/G- R 4 1")
    assert str(choose("random", game)) == "20-24"
    assert str(choose(lambda game: game.legal_moves[-1], game)) == "20-24"
    game = Game("kimble", seed=3)
    bot = make_agent("cautious", game.rules)
    while not game.over:
        game.throw()
        before = game.to_text()
        move = choose(bot, game)
        assert game.to_text() == before
        assert move == choose("cautious", game)
        game.play(move)


def test_choose_before_a_throw_says_so() -> None:
    with pytest.raises(PositionError, match="no die has been thrown"):
        choose("random", Game("kimble", seed=3))
    with pytest.raises(AgentError, match="unknown agent"):
        choose("nobody", Game.from_text("norske R3,20/B0/Y-/G- R 4 1"))


def test_a_subclass_of_weight_agent_decides_in_its_own_way() -> None:
    """It is asked, not judged by its weights."""
    from evaluation import play_match

    class Refuses(WeightAgent):
        def act(self, positions: object, keys: object) -> object:  # type: ignore[override]
            raise RuntimeError("asked")

    agent = Refuses("refuses", find_rules("kimble", players=2), np.zeros(len(FEATURES)))
    with pytest.raises(AgentError, match="'refuses' fails: RuntimeError: asked"):
        play_match([agent, "random"], "kimble", 4)


def test_keys_do_not_give_the_seed_away() -> None:
    """Undoing the finaliser of SplitMix64 used to give the seed, and with it the dice to come."""
    states = new_games(KIMBLE, 8)
    keys = decision_keys(states)
    mask, gamma = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def unmix(z: int) -> int:
        z ^= z >> 31 ^ z >> 62
        z = z * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
        z ^= z >> 27 ^ z >> 54
        z = z * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
        return z ^ z >> 30 ^ z >> 60

    for s, key in zip(states, keys, strict=True):
        counter = (kernel.AGENT_STREAM + int(s["seat"]) << 40) + int(s["plies"]) + 1
        guess = (unmix(int(key)) - counter * gamma) & mask
        assert guess != int(s["seed"])
        drawn = int(kernel.draw(s["seed"], kernel.AGENT_STREAM + int(s["seat"]), int(s["plies"])))
        assert (unmix(drawn) - counter * gamma) & mask == int(s["seed"])
