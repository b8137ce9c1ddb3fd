"""Inputs of value networks against a slow, independent model, and their symmetries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents.net_features import MOST_INPUTS, feature_count, feature_names, net_features
from kimble_env import Game, find_rules
from kimble_env.kernel import empty_states, game_keys, new_game_batch, play_random_batch
from kimble_env.rules import Rules


def random_positions(rules: Rules, count: int, seed: int = 3) -> Any:
    """Positions before a throw at every stage of random games, some of them finished."""
    states = empty_states(count)
    plays = np.zeros((count, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    keys = np.empty(count, np.uint64)
    game_keys(np.uint64(seed), 0, keys)
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    for k in range(1, 9):
        play_random_batch(states[count * k // 9 :], rules.array, 13 * rules.players)
    return states


def slow_features(rules: Rules, state: Any) -> dict[str, float]:
    """What the documentation of net_features says, spelled out with sets and loops."""
    board, out = rules.board, {}
    ego = int(state["seat"])
    last = board.home if rules.home else board.stretch_last
    playing = {
        s for s in range(4) if state["plays"][s] and not state["places"][s] and not state["out"][s]
    }
    pieces = {s: [int(p) for p in state["pieces"][s][: rules.pieces]] for s in playing}

    def ring(seat: int, progress: int) -> int:
        return (board.starts[seat] + progress) % board.ring

    for seat in playing:
        rel, own = (seat - ego) % 4, pieces[seat]
        for p in own:
            if 0 <= p <= board.leave:
                key = f"seat {rel} track {(ring(seat, p) - board.starts[ego]) % board.ring}"
                out[key] = out.get(key, 0) + 1
            elif board.leave < p <= board.stretch_last:
                key = f"seat {rel} stretch {p - board.stretch_first}"
                out[key] = out.get(key, 0) + 1
        for k in range(1, 5):
            out[f"seat {rel} waiting {k}"] = float(own.count(-1) >= k)
            out[f"seat {rel} home {k}"] = float(rules.home and own.count(board.home) >= k)
        out[f"seat {rel} progress"] = sum(p + 1 for p in own) / (rules.pieces * (last + 1))
        out[f"seat {rel} plays"] = 1.0
        afield = [p for p in own if 0 <= p <= board.stretch_last]
        out[f"seat {rel} batteries"] = sum(own.count(p) > 1 for p in afield) / 4
        arrived = {board.home} if rules.home else set(range(board.stretch_first, last + 1))
        outside = {p for p in own if p not in arrived}
        moves = arrivals = 0
        for die in range(1, 7):
            targets = {p + die for p in afield if p + die <= last and p + die not in afield}
            moves += bool(targets) or (die == 6 and -1 in own and 0 not in own)
            arrivals += any(
                p + die in arrived and p + die not in afield for p in outside if p >= 0
            )
        out[f"seat {rel} moves"] = moves / 6
        out[f"seat {rel} arrivals"] = arrivals / 6
        out[f"seat {rel} last"] = arrivals / 6 * (len(outside) == 1 and -1 not in outside)
        for other in playing - {seat}:
            pair = f"seat {rel} hits {(other - ego) % 4}"
            faces: set[int] = set()
            fire = battles = far = 0.0
            for q in pieces[other]:
                if not 0 <= q <= board.leave or (q == 0 and rules.protected_start):
                    continue
                t = (ring(other, q) - board.starts[seat]) % board.ring
                if t > board.leave:
                    continue
                behind = {t - p for p in set(own) if 0 <= p <= board.leave and t - p > 0}
                near = {d for d in behind if d <= 6} | ({6} if t == 0 and -1 in own else set())
                weight = (q + 1) / (board.leave + 1)
                faces |= near
                fire += len(near) * weight
                far += len({d for d in behind if 7 <= d <= 12}) * weight
                if rules.battles:
                    sector = (ring(other, q) - np.array(board.starts)) % board.ring
                    owner = int(sector.argmin())
                    edge = 2 + (owner == seat) - (owner == other)
                    lost = sum(a + edge >= d for a in range(1, 7) for d in range(1, 7)) / 36
                    battles += len(near) * weight * lost
            words = {"faces": len(faces), "fire": fire, "battles": battles, "far": far}
            for word, value in words.items():
                out[f"{pair}: {word}"] = value / 6
    out["throws 2"] = float(state["throws"] > 1)
    out["throws 3"] = float(state["throws"] > 2)
    return out


GAMES = (
    ("kimble", 2), ("kimble", 4), ("kombat", 3), ("kombat", 4), ("norske", 2), ("norske", 4),
    ("norske[board=ludo52]", 3), ("kimble[board=cross40,pieces=2]", 4),
)  # fmt: skip


@pytest.mark.parametrize(("text", "players"), GAMES)
def test_features_are_what_the_documentation_says(text: str, players: int) -> None:
    rules = find_rules(text, players=players)
    states = random_positions(rules, 90)
    names = feature_names(rules.board)
    assert len(set(names)) == len(names) == feature_count(rules.board)
    found = net_features(states, rules.array, len(names))
    assert found.dtype == np.float32
    assert (found != 0).sum(axis=1).max() < MOST_INPUTS
    for i, state in enumerate(states):
        if state["status"] != 0:
            continue
        slow = slow_features(rules, state)
        expected = np.array([slow.get(name, 0.0) for name in names])
        wrong = np.flatnonzero(abs(found[i] - expected) > 1e-6)
        assert not len(wrong), [(names[k], found[i, k], expected[k]) for k in wrong]


@pytest.mark.parametrize("text", ["kimble", "kombat", "norske"])
def test_turning_the_board_by_one_seat_changes_nothing(text: str) -> None:
    rules = find_rules(text, players=4)
    states = random_positions(rules, 60)
    turned = states.copy()
    for name in ("pieces", "plays", "places", "out"):
        turned[name] = np.roll(states[name], 1, axis=1)
    turned["seat"] = (states["seat"] + 1) % 4
    count = feature_count(rules.board)
    same = net_features(states, rules.array, count) == net_features(turned, rules.array, count)
    assert same[states["status"] == 0].all()


@pytest.mark.parametrize("text", ["kimble", "kombat"])
def test_the_faces_that_hit_are_those_with_a_legal_move_that_hits(text: str) -> None:
    rules = find_rules(text, players=2)
    names = feature_names(rules.board)
    column = names.index("seat 0 hits 2: faces")
    hits = 0
    for state in random_positions(rules, 250):
        if state["status"] != 0:
            continue
        one = state.reshape(1).copy()
        found = net_features(one, rules.array, len(names))[0, column]
        game = Game.from_state(rules, one)
        faces = 0
        for die in range(1, 7):
            game.throw(die)
            theirs = {
                (rules.board.starts[s] + p) % rules.board.ring
                for s in rules.seats
                for p in map(int, state["pieces"][s])
                if s != state["seat"] and 0 <= p <= rules.board.leave
            }
            faces += any(
                rules.board.field(int(state["seat"]), move.target) in theirs
                for move in game.legal_moves
                if str(move) != "pass"
            )
            game.undo()
        assert found == pytest.approx(faces / 6)
        hits += faces
    assert hits > 10
