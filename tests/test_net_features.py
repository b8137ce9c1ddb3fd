"""Inputs of value networks against a slow, independent model, and their symmetries."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from agents.net_features import (
    MOST_INPUTS,
    feature_count,
    feature_names,
    feature_version,
    net_features,
)
from kimble_env import Game, find_rules
from kimble_env.kernel import (
    empty_states,
    faults_batch,
    game_keys,
    new_game_batch,
    play_random_batch,
)
from kimble_env.rules import Rules
from tests.oracle import DEFAULTS, Oracle


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
        if feature_version(rules) > 1:
            out |= slow_unit_features(rules, state, seat, playing)
    out["throws 2"] = float(state["throws"] > 1)
    out["throws 3"] = float(state["throws"] > 2)
    return out


def slow_unit_features(
    rules: Rules, state: Any, seat: int, playing: set[int]
) -> dict[str, float]:
    """What version 2 adds of one seat; what happens if it throws is asked of the slow rules."""
    board, out = rules.board, {}
    ego = int(state["seat"])
    rel = (seat - ego) % 4
    pieces = {s: [int(p) for p in state["pieces"][s][: rules.pieces]] for s in playing}
    own = pieces[seat]
    for p in set(own):
        if 0 <= p <= board.leave:
            field = (board.starts[seat] + p - board.starts[ego]) % board.ring
            out[f"seat {rel} battery on track {field}"] = own.count(p) - 1.0
        elif board.leave < p <= board.stretch_last:
            out[f"seat {rel} battery on stretch {p - board.stretch_first}"] = own.count(p) - 1.0
    afield = [p for p in own if 0 <= p <= board.stretch_last]
    counts = [p for p in afield if rules.three_throws_when == "none_in_play" or p <= board.leave]
    throws = int(state["throws"]) if seat == ego else 1 if counts else rules.empty_throws
    six = 1 - (5 / 6) ** throws
    out[f"seat {rel} enter"] = six * (-1 in own)
    out[f"seat {rel} joins"] = six * (-1 in own and 0 in own)
    out[f"seat {rel} alone"] = float(len(set(afield)) == 1)
    words = slow_choices(rules, state, seat)
    words["fall"] /= board.leave + 1
    out |= {f"seat {rel} {word}": value / 6 for word, value in words.items()}
    for other in playing - {seat}:
        risk = stake = wall = 0.0
        for q in pieces[other]:
            t = (board.starts[other] + q - board.starts[seat]) % board.ring
            if not 0 <= q <= board.leave or t > board.leave:
                continue
            gaps = {t - p for p in own if 0 <= p <= board.leave and p != t}
            if q == 0 and rules.protected_start:
                wall = len(gaps & set(range(1, 7))) / 6
                continue
            if -1 in own or t in own:
                gaps.add(6 + t)
            chance = len(gaps & set(range(1, 6))) / 6
            again = {d for d in range(1, 7) if d in gaps or d + 6 in gaps}
            chance += six if 6 in gaps else six * len(again) / 6
            risk += chance
            stake += chance * (q + 1) / (board.leave + 1)
        pair = f"seat {rel} hits {(other - ego) % 4}"
        out |= {f"{pair}: risk": risk, f"{pair}: stake": stake, f"{pair}: wall": wall}
    return out


def slow_choices(rules: Rules, state: Any, seat: int) -> dict[str, float]:
    """Count over the faces what a seat may do if it throws now, by the slow rules."""
    options = {name: getattr(rules, name) for name in DEFAULTS if name not in ("board",)}
    words = dict.fromkeys(("single", "bad", "stuck", "lost", "fall"), 0.0)
    pieces = {s: [int(p) for p in state["pieces"][s][: rules.pieces]] for s in rules.seats}
    for die in range(1, 7):
        game = Oracle(rules.name, rules.seats, board=rules.board.name, **options)
        game.set(pieces, seat)
        game.throw(die)
        if game.die is None:
            words["stuck"] += 1
            continue
        steps = game._legal_steps()
        if steps[0].clean:
            words["single"] += len(steps) == 1
            continue
        losses = []
        for move in game.legal_moves():
            after = copy.deepcopy(game)
            after.play(move)
            lost = sum(event[2] for event in after.events if event[1] == seat)
            losses.append((sum(pieces[seat]) - sum(after.pieces[seat]), lost))
        least = min(fall for fall, _ in losses)
        words["bad"] += 1
        words["fall"] += least
        words["lost"] += next(lost for fall, lost in losses if fall == least)
    return words


def bunched(rules: Rules, states: Any, seed: int = 5) -> Any:
    """The positions with pieces moved onto own starts and own pieces, as chance rarely does it."""
    rng, out = np.random.default_rng(seed), states.copy()
    for i in np.flatnonzero(out["status"] == 0):
        before = out[i : i + 1].copy()
        for seat in rules.seats:
            own = out["pieces"][i, seat]
            for k in range(rules.pieces):
                kind = rng.integers(6)
                if kind == 0:
                    own[k] = 0
                elif kind == 1 and 0 <= own[0] <= rules.board.stretch_last:
                    own[k] = own[0]
                elif kind == 2:
                    own[k] = rules.board.stretch_first + rng.integers(rules.board.stretch)
        faults = np.empty(1, np.int64)
        faults_batch(out[i : i + 1], rules.array, faults)
        if faults[0]:
            out[i : i + 1] = before
    return out


GAMES = (
    ("kimble", 2), ("kimble", 4), ("kombat", 3), ("kombat", 4), ("norske", 2), ("norske", 4),
    ("norske[board=ludo52]", 3), ("kimble[board=cross40,pieces=2]", 4), ("norske[pieces=2]", 2),
    ("norske[own_collision=stander,three_throws_when=none_on_track]", 4),
    ("norske[own_collision=mover,batteries=no]", 3),
)  # fmt: skip


@pytest.mark.parametrize(("text", "players"), GAMES)
def test_features_are_what_the_documentation_says(text: str, players: int) -> None:
    rules = find_rules(text, players=players)
    states = random_positions(rules, 90)
    if feature_version(rules) > 1:
        states = np.concatenate([states, bunched(rules, states)])
    names = feature_names(rules)
    assert len(set(names)) == len(names) == feature_count(rules)
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


def test_only_rules_with_units_have_the_second_version() -> None:
    for text in ("kimble", "kombat", "kimble[home=yes]", "kombat[board=ludo52]"):
        assert feature_version(find_rules(text)) == 1
    for text in ("norske", "norske[batteries=no,protected_start=no]", "kimble[batteries=yes]"):
        assert feature_version(find_rules(text)) == 2
    assert [feature_count(find_rules(text)) for text in ("kombat", "norske")] == [234, 430]
    kimble, norske = (feature_names(find_rules(text)) for text in ("kimble", "norske"))
    assert norske[: len(kimble)] == kimble


@pytest.mark.parametrize("text", ["kimble", "kombat", "norske"])
def test_turning_the_board_by_one_seat_changes_nothing(text: str) -> None:
    rules = find_rules(text, players=4)
    states = bunched(rules, random_positions(rules, 60))
    turned = states.copy()
    for name in ("pieces", "plays", "places", "out"):
        turned[name] = np.roll(states[name], 1, axis=1)
    turned["seat"] = (states["seat"] + 1) % 4
    count = feature_count(rules)
    same = net_features(states, rules.array, count) == net_features(turned, rules.array, count)
    assert same[states["status"] == 0].all()


@pytest.mark.parametrize("text", ["kimble", "kombat"])
def test_the_faces_that_hit_are_those_with_a_legal_move_that_hits(text: str) -> None:
    rules = find_rules(text, players=2)
    names = feature_names(rules)
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
