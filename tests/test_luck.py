"""Luck: mean zero for every chance event and any evaluator, and results that keep their mean."""

from __future__ import annotations

import numpy as np
import pytest

from agents.evaluators import make_evaluator
from evaluation.luck import (
    AdjustedResult,
    draw_luck,
    lot_luck,
    play_adjusted,
    play_with_luck,
    throw_with_luck,
)
from evaluation.match import play_match
from kimble_env import kernel
from kimble_env.errors import KimbleError
from kimble_env.kernel import take_states
from kimble_env.notation import parse_position
from kimble_env.opponents import make_agent
from kimble_env.rules import Rules, find_rules
from tests.test_afterstates import waiting

THREE = {2: ["mixed", "random"], 3: ["mixed", "cautious", "random"], 4: ["mixed", "runner"] * 2}


def odd(states: np.ndarray) -> np.ndarray:
    """An evaluator that says nothing sensible: luck must have mean zero by it all the same."""
    rows = states["pieces"].astype(np.int64).reshape(len(states), -1)
    seeds = (rows @ np.arange(3, 19) + 7 * states["seat"] + states["throws"]) % 997
    chances = np.random.default_rng(5).random((997, 4))[seeds] + 0.01
    chances *= states["plies"][:, None] % 3 + 1
    chances *= states["plays"] != 0
    return chances / chances.sum(axis=1, keepdims=True)


def with_seeds(states: np.ndarray, count: int) -> np.ndarray:
    """Each position ``count`` times, with other dice to come."""
    many = take_states(states, np.repeat(np.arange(len(states)), count))
    many["seed"] = np.random.default_rng(1).integers(1 << 62, size=len(many))
    return many


# ------------------------------------------------------------------------ each event has mean zero


@pytest.mark.parametrize(
    ("spec", "evaluator"),
    [
        *((spec, "linear") for spec in ("kimble", "kombat[die=popomatic]", "norske")),
        *((spec, "odd") for spec in ("kimble", "kombat[die=popomatic]", "norske")),
        *((spec, "net") for spec in ("kimble", "norske")),
    ],
)
def test_the_luck_of_a_throw_has_mean_zero_over_the_faces(spec: str, evaluator: str) -> None:
    rules = find_rules(spec)
    value = make_evaluator(odd if evaluator == "odd" else evaluator, rules)
    positions = waiting(rules, 25)
    many = with_seeds(positions, 120)
    faces = many["face"].copy()
    _, luck = throw_with_luck(many, rules, value)
    moved = 0.0
    for k in range(len(positions)):
        rows = slice(120 * k, 120 * (k + 1))
        by_face: dict[int, np.ndarray] = {}
        for die, row in zip(many["last_die"][rows], luck[rows], strict=True):
            assert np.allclose(by_face.setdefault(int(die), row), row), "the face decides"
        assert len(by_face) == 6, "every face came up"
        before = int(faces[rows][0])
        chances = [kernel.face_probability(rules.array, before, die) for die in range(1, 7)]
        mean = sum(c * by_face[die] for die, c in enumerate(chances, 1))
        assert np.abs(mean).max() < 1e-12
        moved = max(moved, float(np.abs(luck[rows]).max()))
    assert moved > 0.02, "there is luck to speak of"
    assert np.abs(luck.sum(axis=1)).max() < 1e-9, "what one wins the others lose"


@pytest.mark.parametrize("spec", ["kombat", "kombat[die=popomatic]"])
def test_the_luck_of_a_battle_has_mean_zero_over_the_36(spec: str) -> None:
    name = "kombat[die=popomatic]" if "pop" in spec else "kombat"
    rules, states = parse_position(f"{name} R3/B0/Y9/G20 R 4 1{' face=4' if 'pop' in spec else ''}")
    value = make_evaluator(odd, rules)
    many = with_seeds(states, 3000)
    luck = play_with_luck(many, np.full(3000, 4, np.int16), rules, value)
    by_dice: dict[tuple[int, int], np.ndarray] = {}
    for dice, row in zip(many["last_battle"].tolist(), luck, strict=True):
        assert np.allclose(by_dice.setdefault(tuple(dice), row), row)
    chance = kernel.face_probability
    total, r = np.zeros(4), rules.array
    for (attack, defence), row in by_dice.items():
        total += chance(r, int(states["face"][0]), attack) * chance(r, attack, defence) * row
    assert len(by_dice) == 36
    assert np.abs(total).max() < 1e-12
    assert np.abs(luck).max() > 0.05


@pytest.mark.parametrize("spec", ["kimble", "kombat", "norske"])
@pytest.mark.parametrize("player", ["random", "furthest"])
def test_where_play_is_known_throw_and_draw_have_mean_zero(spec: str, player: str) -> None:
    """The value after the throw is the mean over the very moves that are drawn among."""
    rules = find_rules(spec)
    value = make_evaluator(odd, rules)
    agent = make_agent(player, rules)
    positions = waiting(rules, 25)
    many = with_seeds(positions, 200)
    known = agent.weights[None, :], np.zeros(len(many), np.int8)
    thrown = many.copy()
    legal, luck = throw_with_luck(thrown, rules, value, known)
    for k in range(len(positions)):
        rows = slice(200 * k, 200 * (k + 1))
        by_face = dict(zip(thrown["last_die"][rows].tolist(), luck[rows], strict=True))
        assert sorted(by_face) == [1, 2, 3, 4, 5, 6]
        assert np.abs(sum(by_face.values())).max() < 1e-12
    drawing = np.flatnonzero(legal)
    asked = take_states(thrown, drawing)
    keys = np.random.default_rng(2).integers(1 << 64, size=len(asked), dtype=np.uint64)
    drawn = agent.act(asked, keys)
    lots = draw_luck(asked, drawn, rules, value, (known[0], known[1][drawing]))
    seen: dict[tuple[int, int], dict[int, np.ndarray]] = {}
    for k, action, lot in zip(drawing, drawn, lots, strict=True):
        by_action = seen.setdefault((int(k) // 200, int(thrown["last_die"][k])), {})
        assert np.allclose(by_action.setdefault(int(action), lot), lot), "the move decides"
    for by_action in seen.values():
        assert np.abs(sum(by_action.values())).max() < 1e-12, "equally likely moves"
    moved = max(np.abs(lot).max() for by_action in seen.values() for lot in by_action.values())
    assert (moved > 0.02) == (player == "random"), "furthest has nothing to draw lots for"
    unknown = draw_luck(asked, drawn, rules, value, (known[0], known[1][drawing] - 1))
    assert not unknown.any()


def test_a_move_without_a_battle_is_no_luck() -> None:
    rules, states = parse_position("kombat R3/B0/Y9/G20 R 4 1")
    luck = play_with_luck(states, np.array([33], np.int16), rules, make_evaluator(odd, rules))
    assert not luck.any()


@pytest.mark.parametrize("spec", ["kimble", "kimble[starter=random]"])
def test_the_lot_for_the_start_has_mean_zero_over_the_seats(spec: str) -> None:
    rules = find_rules(spec).replace(players=3)
    value = make_evaluator("linear", rules)
    starts = new_games(rules, 64)
    luck = lot_luck(starts, rules, value)
    by_seat = {int(s): row for s, row in zip(starts["seat"], luck, strict=True)}
    assert sorted(by_seat) == [0, 1, 2]
    assert np.abs(sum(by_seat.values())).max() < 1e-12
    assert by_seat[0][0] > 0.0, "to start is worth something"
    fixed = rules.replace(starter="R")
    assert not lot_luck(starts, fixed, value).any()


def new_games(rules: Rules, count: int) -> np.ndarray:
    states, keys = kernel.empty_states(count), np.empty(count, np.uint64)
    kernel.game_keys(np.uint64(3), 0, keys)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    kernel.new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    return states


# --------------------------------------------------------------------------------- whole matches


@pytest.mark.parametrize(("spec", "players"), [("kimble", 2), ("kombat", 3), ("norske", 4)])
def test_the_games_are_those_of_play_match_and_the_mean_is_kept(spec: str, players: int) -> None:
    result = play_adjusted(THREE[players], spec, games=240, seed=4, threads=2)
    raw = play_match(THREE[players], spec, games=240, seed=4)
    for name in ("winners", "plies", "places", "tallies", "scores"):
        assert (getattr(result.raw, name) == getattr(raw, name)).all()
    assert result.evaluator == f"linear:{spec}-{players}p"
    assert np.abs(result.luck.sum(axis=2)).max() < 1e-5
    for k in range(players):
        assert abs(result.agreement(k)) < 4.0
        assert result.saved_per_game(k) > 1.8
        low, high = result.interval(k)
        assert low < result.share(k) < high


def test_any_evaluator_counts_the_same_luck_in_step_as_compiled() -> None:
    rules = find_rules("kombat").replace(players=3)
    linear = make_evaluator("linear", rules)
    compiled = play_adjusted(THREE[3], rules, games=24, seed=9)
    in_step = play_adjusted(
        THREE[3], rules, games=24, seed=9, evaluator=lambda states: linear.value(states)
    )
    assert (compiled.raw.winners == in_step.raw.winners).all()
    assert (compiled.raw.tallies == in_step.raw.tallies).all()
    assert np.abs(compiled.luck - in_step.luck).max() < 1e-5


class Asked:
    """Plays as a weight vector does, but has to be asked."""

    def __init__(self, rules: Rules) -> None:
        self.inner = make_agent("mixed", rules)
        self.spec = "asked"

    def act(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        return self.inner.act(positions, keys)


def test_agents_that_are_asked_play_the_same_games_and_chunks_do_not_matter() -> None:
    weights = play_adjusted(["mixed", "random"], "kombat", games=60, seed=2)
    asked = play_adjusted([Asked, "random"], "kombat", games=60, seed=2)
    assert (weights.raw.winners == asked.raw.winners).all()
    assert (weights.raw.tallies == asked.raw.tallies).all()
    assert (weights.luck != asked.luck).any(), "what a weight vector would do is known"
    later = play_adjusted(["mixed", "random"], "kombat", games=20, seed=2, first=10)
    assert (later.luck == weights.luck[10:20]).all()


def test_perfect_players_judged_by_the_perfect_table_have_no_spread_left() -> None:
    result = play_adjusted(
        ["exact", "exact"], "kimble[pieces=2]", games=60, seed=3, evaluator="exact"
    )
    rules = find_rules("kimble[pieces=2]").replace(players=2)
    assert result.raw.scores[:, :, 0].std() > 0.49
    start = make_evaluator("exact", rules).value(new_games(rules, 1))[0]
    assert np.abs(result.scores - 0.5).max() < 2e-3  # 16 bits a throw, some 60 throws
    assert start.sum() == pytest.approx(1.0)
    assert result.saved_per_game(0) > 1e4


def test_games_cut_off_keep_their_mean_too() -> None:
    result = play_adjusted(["mixed", "cautious"], "kimble", games=400, seed=8, cap=60)
    assert result.raw.truncated > 200
    assert (result.raw.plies <= 60).all()
    assert abs(result.agreement(0)) < 4.0
    assert result.luck[result.raw.winners < 0].any()


def test_progress_counts_up_to_all_games() -> None:
    seen: list[tuple[int, int]] = []
    play_adjusted(["random", "random"], "kimble", 10, progress=lambda a, b: seen.append((a, b)))
    assert seen[-1] == (10, 10)


def test_a_line_up_of_one_against_itself_is_par() -> None:
    """The dice of a block are the same for both seatings, so only other blocks differ."""
    result = play_adjusted(["mixed"] * 4, "kombat", games=200, seed=6)
    first = result.scores[:, 0, 0]  # one seating only: not mirrored
    assert abs(first.mean() - 0.25) < 4.0 * first.std() / len(first) ** 0.5
    assert np.allclose(result.scores.sum(axis=2), 1.0, atol=1e-5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(KimbleError, match="without the option members"):
        play_adjusted(["random"] * 4, find_rules("norske[members=20]"))
    with pytest.raises(KimbleError, match="games must be a whole number"):
        play_adjusted(["random", "random"], "kimble", games=0)
    with pytest.raises(KimbleError, match="unknown evaluator"):
        play_adjusted(["random", "random"], "kimble", evaluator="magic")
    with pytest.raises(KimbleError, match="2 to 4 agents"):
        play_adjusted(["random"], "kimble")
    result = play_adjusted(["random", "random"], "kimble", games=4)
    with pytest.raises(KimbleError, match="between 0 and 1"):
        result.interval(0, 95)
    assert isinstance(result, AdjustedResult)
