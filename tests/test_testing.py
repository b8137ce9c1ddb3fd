"""The checks for users pass what is right and name what is wrong."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from kimble_env import Game, kernel, kimble_v0, testing
from kimble_env.errors import AgentError, KimbleError
from kimble_env.opponents import make_agent
from kimble_env.rules import PRESETS, find_rules
from kimble_env.testing import CheckError, check_aec, check_agent, random_positions

# ------------------------------------------------------------------------------------------ agents


class Base:
    """An agent that plays the lowest legal action."""

    spec = "mine"

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def legal(self, positions: Any) -> Any:
        bits = np.zeros(len(positions), np.int64)
        kernel.legal_batch(positions, self.rules.array, bits)
        return [[a for a in range(64) if int(b) >> a & 1] for b in bits]

    def act(self, positions: Any, keys: Any) -> Any:
        return np.array([legal[0] for legal in self.legal(positions)], np.int16)


class Illegal(Base):
    def act(self, positions: Any, keys: Any) -> Any:
        return np.full(len(positions), 27, np.int16)


class Short(Base):
    def act(self, positions: Any, keys: Any) -> Any:
        return super().act(positions, keys)[:-1]


class Forgetful(Base):
    """Draws from a generator of its own, so the same question gets another answer."""

    def __init__(self, rules: Any) -> None:
        super().__init__(rules)
        self.random = np.random.default_rng(1)

    def act(self, positions: Any, keys: Any) -> Any:
        return np.array([self.random.choice(one) for one in self.legal(positions)], np.int16)


class Splitting(Base):
    """Answers by the place in the batch."""

    def act(self, positions: Any, keys: Any) -> Any:
        legal = self.legal(positions)
        return np.array([one[i % len(one)] for i, one in enumerate(legal)], np.int16)


class Ordered(Base):
    """Looks at the first piece of the list, which means nothing."""

    def act(self, positions: Any, keys: Any) -> Any:
        chosen = []
        for s, legal in zip(positions, self.legal(positions), strict=True):
            first = 1 + int(s["pieces"][s["seat"], 0])
            chosen.append(first if first in legal else legal[0])
        return np.array(chosen, np.int16)


class Coloured(Base):
    """Plays red differently."""

    def act(self, positions: Any, keys: Any) -> Any:
        return np.array(
            [
                legal[-1] if s["seat"] == 0 else legal[0]
                for s, legal in zip(positions, self.legal(positions), strict=True)
            ],
            np.int16,
        )


class Judge(Base):
    def evaluate(self, positions: Any) -> Any:
        out = np.zeros((len(positions), self.rules.board.actions, 4), np.float32)
        for i, legal in enumerate(self.legal(positions)):
            out[i, legal] = positions["plays"][i] / positions["plays"][i].sum()
        return out


class Overconfident(Judge):
    def evaluate(self, positions: Any) -> Any:
        return super().evaluate(positions) * np.float32(1.1)


class Wild(Judge):
    def evaluate(self, positions: Any) -> Any:
        return super().evaluate(positions) * np.float32("nan")


class Generous(Judge):
    def evaluate(self, positions: Any) -> Any:
        return np.full((len(positions), self.rules.board.actions, 4), 0.25, np.float32)


@pytest.mark.parametrize("name", PRESETS)
def test_good_agents_pass(name: str) -> None:
    check_agent("random", name, decisions=100, turns=True)
    check_agent(Judge, f"{name}[pieces=2]", decisions=50)
    check_agent(Base, find_rules(name, players=2), decisions=50)


def test_a_function_of_the_game_passes_where_pickling_is_not_asked_for() -> None:
    def first(game: Game) -> Any:
        return game.legal_moves[0]

    check_agent(first, "norske", decisions=20, pickles=False)
    with pytest.raises(CheckError, match="cannot be pickled"):
        check_agent(first, "norske", decisions=20)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (Illegal, r"answers action 27 \(26-29\) in 'kimble .*legal: "),
        (Short, "must return whole numbers"),
        (Forgetful, "asked the same again"),
        (Splitting, "in a batch of half|asked alone|reverse"),
        (Ordered, "pieces reordered"),
        (Coloured, "turned by one seat"),
        (Overconfident, "do not add up"),
        (Generous, "after an illegal action"),
        (Wild, "not in 0..1"),
    ],
)
def test_what_is_wrong_with_an_agent_is_named(agent: Any, words: str) -> None:
    with pytest.raises(CheckError, match=words) as error:
        check_agent(agent, "kimble", decisions=60, turns=True)
    assert isinstance(error.value, AssertionError)


def test_turning_needs_four_seats_and_unknown_agents_are_errors() -> None:
    with pytest.raises(CheckError, match="needs four seats"):
        check_agent("random", find_rules("kimble", players=3), decisions=5, turns=True)
    with pytest.raises(AgentError, match="unknown agent"):
        check_agent("nobody-knows-me", decisions=5)


def test_random_positions_are_choices_and_vary() -> None:
    for name in ("kimble[pass_allowed=no]", "norske", "kombat"):
        rules = find_rules(name)
        states = random_positions(rules, 150, seed=4)
        bits = np.zeros(150, np.int64)
        kernel.legal_batch(states, rules.array, bits)
        assert (bits & (bits - 1) != 0).all()
        faults = np.zeros(150, np.int64)
        kernel.faults_batch(states, rules.array, faults)
        assert not faults.any()
        assert set(states["seat"].tolist()) == {0, 1, 2, 3}
        assert len(np.unique(states["die"])) == 6
        assert len(np.unique(states["plies"])) > 50
        assert (states == random_positions(rules, 150, seed=4)).all()
        assert (states != random_positions(rules, 150, seed=5)).any()


def test_rules_without_choices_are_named() -> None:
    rules = "kimble[pieces=1,pass_allowed=no]"  # one piece, and it must move
    with pytest.raises(KimbleError, match="hardly any game"):
        random_positions(rules, 5)


def test_a_good_agent_made_by_the_registry_stays_good() -> None:
    check_agent(make_agent("random:mask", "norske"), "norske", decisions=30)


# --------------------------------------------------------------------------------- the environment


@pytest.mark.parametrize(
    "arguments",
    [{"rules": name} for name in PRESETS]
    + [{"two_colours": True}, {"max_turns": 30}, {"rules": "norske", "play_for_places": True}],
)
def test_our_environments_pass(arguments: dict[str, Any]) -> None:
    check_aec(kimble_v0.env(**arguments))
    check_aec(lambda: kimble_v0.raw_env(**arguments), games=1)


class Env(kimble_v0.raw_env):
    """The environment, with the defects of its subclasses."""

    def __init__(self) -> None:
        super().__init__("kimble[pieces=1]")


class Unseeded(Env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        super().reset(seed=1)


class SecondSame(Env):
    def reset(self, seed: Any = None, options: Any = None) -> None:
        if seed is not None:
            self.kept = seed
        super().reset(seed=self.kept)


class NewSpaces(Env):
    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(34)


class CopiedMask(Env):
    def observe(self, agent: str) -> Any:
        seen = super().observe(agent)
        return {**seen, "action_mask": seen["action_mask"].copy()}


class OtherType(Env):
    def observe(self, agent: str) -> Any:
        return {**super().observe(agent), "observation": np.zeros(160, np.float32)}


class Overwriting(Env):
    def observe(self, agent: str) -> Any:
        seen = super().observe(agent)
        self.__dict__.setdefault("page", np.zeros(160, np.int8))[:] = seen["observation"]
        return {**seen, "observation": self.page}


class NoLosses(Env):
    def last(self, observe: bool = True) -> Any:
        seen, reward, *rest = super().last(observe)
        return seen, max(reward, 0.0), *rest


class NumpyFlags(Env):
    def last(self, observe: bool = True) -> Any:
        seen, reward, end, cut, info = super().last(observe)
        return seen, reward, np.bool_(end), cut, info


class Doubled(Env):
    def last(self, observe: bool = True) -> Any:
        seen, reward, *rest = super().last(observe)
        return seen, reward * (2 if reward > 0 else 1), *rest


class Forgetting(Env):
    """Starts anew when copied, as environments with EzPickle do."""

    def __deepcopy__(self, memo: Any) -> Any:
        other = Forgetting()
        other.reset(seed=3)
        return other


class Uncopied(Env):
    def __getstate__(self) -> Any:
        raise TypeError("no copies")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Unseeded, "copy of the first|seed is ignored"),
        (SecondSame, "copy of the first"),
        (NewSpaces, "new object every time"),
        (CopiedMask, "one object"),
        (OtherType, "does not lie in its observation space"),
        (Overwriting, "written into an observation"),
        (NoLosses, "nobody was shown a loss"),
        (NumpyFlags, "plain bools"),
        (Doubled, "do not add up to 0"),
        (Forgetting, "after deepcopy the game does not go on"),
        (Uncopied, "does not survive"),
    ],
)
def test_what_is_wrong_with_an_environment_is_named(env: Any, words: str) -> None:
    with pytest.raises(CheckError, match=words):
        check_aec(env)


def test_checks_can_be_left_out() -> None:
    check_aec(Doubled(), zero_sum=False)
    check_aec(Uncopied(), copies=False)


def test_the_example_on_the_page_runs() -> None:
    assert doctest.testmod(testing).failed == 0
