"""Weights fitted to known values of moves: where a search for ``tuned`` may begin.

Positions with a choice, and the win chance after each legal move, come from the exact decisions of
the four-piece games (``exact``, two players), from an agent that has win chances (``net:...``), or
from games played to their end after every move, on the same dice for all moves of a position
(``playouts:8``). Those are noisy move by move, but the weights are few and the mean loss is linear
in the values, so noise averages out. The weights are those under which a player that draws its
moves by softmax gives away least: a linear policy, its mean loss brought down by gradient steps::

    python -m training.fit_weights kimble 2 exact weights.json
    python -m training.fit_weights norske 4 playouts:8 weights.json --player tuned
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kimble_env.errors import KimbleError
from kimble_env.features import (
    FEATURE_COUNT,
    FEATURES,
    advance_weighted_batch,
    features_batch,
    play_weighted_batch,
)
from kimble_env.files import write_whole
from kimble_env.kernel import WON, game_keys, legal_batch, play_batch, put_states, take_states
from kimble_env.opponents import decision_keys, hide_random_state, make_agent, weight_vector
from kimble_env.rules import Rules, find_rules
from training.evolve import deal, named_weights, tuned_features

Floats = npt.NDArray[np.float64]

STEPS = 400
_RATE = 0.03
_WILD = 0.15  # share of moves drawn by lot while positions are met
_GAMES = 512
_CAP = 3000


def met_decisions(rules: Rules, player: str, count: int, seed: int) -> npt.NDArray[np.void]:
    """Return positions with a choice, from games of ``player`` against itself: STATE [count].

    Some moves are drawn by lot; of the decisions met one in eight is kept.
    """
    rng, agent = np.random.default_rng(seed), make_agent(player, rules)
    kept: list[npt.NDArray[np.void]] = []
    states, nobody = deal(rules, seed, _GAMES), np.full((_GAMES, 4), -1, np.int8)
    legal, none = np.empty(_GAMES, np.int64), np.zeros((1, FEATURE_COUNT))
    while sum(map(len, kept)) < count:
        advance_weighted_batch(states, rules.array, none, nobody, 1 << 30, legal)
        over = np.flatnonzero(legal == 0)
        if len(over):
            seed += 1
            put_states(states, over, deal(rules, seed, len(over)))
            continue
        kept.append(
            hide_random_state(take_states(states, np.flatnonzero(rng.random(_GAMES) < 0.125)))
        )
        actions = agent.act(states, decision_keys(states))
        for i in np.flatnonzero(rng.random(_GAMES) < _WILD):
            moves = [a for a in range(rules.board.pass_action) if int(legal[i]) >> a & 1]
            actions[i] = rng.choice(moves) if moves else actions[i]
        play_batch(states, rules.array, actions, np.zeros((_GAMES, 2), np.int8))
    return np.concatenate(kept)[:count]


def known_values(
    rules: Rules, source: str, player: str, others: str, count: int, seed: int
) -> tuple[npt.NDArray[np.void], Floats]:
    """Return positions and the win chance of who acts after each action: [B, A], NaN illegal.

    Raises:
        KimbleError: an agent without win chances.
        TableError: no exact decisions for these rules.
    """
    if source == "exact":
        from agents.exact.decisions import read_decisions

        known = read_decisions(rules)
        return known.positions[:count], known.win[:count].astype(np.float64)
    if source.startswith("playouts:") and source[9:].isdecimal() and int(source[9:]) > 0:
        positions = met_decisions(rules, player, count, seed)
        weights = make_agent(player, rules).weights.copy()
        table = [make_agent(name, rules).weights for name in others.split(",")]
        win = played_values(positions, weights, table, int(source[9:]), seed, rules)
        return positions, win
    agent = make_agent(source, rules)
    if not hasattr(agent, "evaluate"):
        raise KimbleError(f"{source!r} has no win chances to fit to")
    positions = met_decisions(rules, player, count, seed)
    win = np.empty((count, rules.board.actions))
    for first in range(0, count, 2048):
        few = positions[first : first + 2048]
        chances = agent.evaluate(few)
        win[first : first + 2048] = chances[np.arange(len(few)), :, few["seat"]]
    legal = legal_actions_of(positions, rules)
    return positions, np.where(legal, win, np.nan)


def played_values(
    positions: npt.NDArray[np.void],
    weights: Floats,
    others: Sequence[Floats],
    playouts: int,
    seed: int,
    rules: Rules,
) -> Floats:
    """Return the share of playouts won after each action: [B, A], NaN illegal.

    By the seat to act, which goes on by ``weights``; the k-th playout has all other seats go on by
    the k-th of ``others`` (over and over). A game cut off counts 1/n.
    """
    legal = legal_actions_of(positions, rules)
    rows, actions = np.nonzero(legal)
    won, keys = np.zeros(len(rows)), np.empty(len(positions), np.uint64)
    for k in range(playouts):
        game_keys(np.uint64((seed << 20) + k), 0, keys)
        states = take_states(positions, rows)
        states["seed"] = keys[rows]
        none = np.zeros((len(rows), 2), np.int8)
        play_batch(states, rules.array, actions.astype(np.int16), none)
        seating = np.ones((len(rows), 4), np.int8)
        seating[np.arange(len(rows)), positions["seat"][rows]] = 0
        table = np.array([weights, others[k % len(others)]])
        play_weighted_batch(states, rules.array, table, seating, _CAP)
        over = states["status"] == WON
        mine = over & (states["winner"] == positions["seat"][rows])
        won += np.where(over, mine, 1.0 / rules.players)
    win = np.full(legal.shape, np.nan)
    win[rows, actions] = won / playouts
    return win


def legal_actions_of(positions: npt.NDArray[np.void], rules: Rules) -> npt.NDArray[np.bool_]:
    """Return which actions are legal: bool [B, A]."""
    legal = np.empty(len(positions), np.int64)
    legal_batch(positions, rules.array, legal)
    flags: npt.NDArray[np.bool_] = legal[:, None] >> np.arange(rules.board.actions) & 1 == 1
    return flags


class Choices:
    """All moves of all positions, their features and what each gives away."""

    def __init__(self, positions: npt.NDArray[np.void], win: Floats, rules: Rules) -> None:
        rows, actions = np.nonzero(~np.isnan(win))
        values = np.empty((len(rows), FEATURE_COUNT))
        features_batch(take_states(positions, rows), rules.array, actions.astype(np.int16), values)
        self.columns = np.array([FEATURES.index(name) for name in tuned_features(rules)])
        self.spread = np.maximum(values[:, self.columns].std(axis=0), 1e-9)
        self.x = (values[:, self.columns] / self.spread).astype(np.float32)
        self.loss = np.nanmax(win, axis=1)[rows] - win[rows, actions]
        self.starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
        self.group = np.cumsum(np.r_[False, rows[1:] != rows[:-1]])

    def greedy_loss(self, w: Floats) -> float:
        """Return the mean loss of the player that takes the highest score (first of equals)."""
        score = self.x @ w.astype(np.float32)
        best = np.maximum.reduceat(score, self.starts)[self.group]
        top = score >= best
        share = top / np.add.reduceat(top.astype(float), self.starts)[self.group]
        return float((share * self.loss).sum() / len(self.starts))

    def soft_loss(self, w: Floats) -> tuple[float, Floats]:
        """Return the mean loss of the softmax player and its gradient."""
        score = (self.x @ w.astype(np.float32)).astype(np.float64)
        score -= np.maximum.reduceat(score, self.starts)[self.group]
        chance = np.exp(score)
        chance /= np.add.reduceat(chance, self.starts)[self.group]
        mean = np.add.reduceat(chance * self.loss, self.starts)
        pull = (chance * (self.loss - mean[self.group])).astype(np.float32)
        return float(mean.mean()), (self.x.T @ pull).astype(np.float64) / len(self.starts)


def fit(choices: Choices, held_out: Choices, start: Floats, steps: int = STEPS) -> Floats:
    """Return the weights (per feature searched, of its raw value) that give away least.

    Adam on the softmax loss; the point with the least greedy loss on ``held_out`` is kept.
    """
    w = start[choices.columns] * choices.spread
    w *= 4.0 / max(float(np.abs(w).max()), 1e-9)
    best, least = w.copy(), choices.greedy_loss(w)
    first, second = np.zeros_like(w), np.zeros_like(w)
    scaling = choices.spread / held_out.spread  # both see the same raw weights
    least = held_out.greedy_loss(w / scaling)
    for step in range(1, steps + 1):
        _, slope = choices.soft_loss(w)
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        size = _RATE * 0.5 * (1 + np.cos(np.pi * step / steps)) + 0.002
        w -= size * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        if step % 10 == 0:
            loss = held_out.greedy_loss(w / scaling)
            if loss < least:
                best, least = w.copy(), loss
    return best / choices.spread


def unit(weights: Floats, choices: Choices) -> Floats:
    """Return weights of the features searched, scaled so that their mean square in spreads is 1."""
    values = weights[choices.columns] * choices.spread
    out = np.zeros(FEATURE_COUNT)
    out[choices.columns] = weights[choices.columns] / np.sqrt((values**2).mean())
    return out


def main() -> None:
    """Fit weights and write them as a file for ``weights:FILE``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("rules")
    parser.add_argument("players", type=int)
    parser.add_argument("source", help="exact, playouts:8, or an agent with win chances")
    parser.add_argument("out", type=Path)
    parser.add_argument("--start", default="planner", help="weights to begin with")
    parser.add_argument("--player", default="mixed", help="meets the positions, unless exact")
    parser.add_argument("--others", default="tuned", help="who plays on in playouts: tuned,random")
    parser.add_argument("--count", type=int, default=60_000, help="positions, a fifth held out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--keep",
        type=float,
        default=0.0,
        help="share of the start in the result: what it knows and the values do not, such as how "
        "weak players err",
    )
    given = parser.parse_args()
    rules = find_rules(given.rules, players=given.players)
    positions, win = known_values(
        rules, given.source, given.player, given.others, given.count, given.seed
    )
    order = np.random.default_rng(given.seed).permutation(len(positions))
    cut = len(positions) // 5
    held = Choices(take_states(positions, order[:cut]), win[order[:cut]], rules)
    seen = Choices(take_states(positions, order[cut:]), win[order[cut:]], rules)
    start = make_agent(given.start, rules).weights
    found = weight_vector({"finish": 0.0})
    before = held.greedy_loss(start[held.columns] * held.spread)
    found[seen.columns] = fit(seen, held, start)
    after = held.greedy_loss(found[held.columns] * held.spread)
    found = given.keep * unit(start, held) + (1.0 - given.keep) * unit(found, held)
    mixed = held.greedy_loss(found[held.columns] * held.spread)
    found[FEATURES.index("finish")] = 100.0 * np.abs(found).max()
    about = {
        "made_by": "python -m training.fit_weights " + " ".join(sys.argv[1:]),
        "rules_hash": rules.hash,
        "positions": len(positions),
        "loss_mwp_before": round(1000 * before, 3),
        "loss_mwp_fitted": round(1000 * after, 3),
        "loss_mwp_kept": round(1000 * mixed, 3),
        "start": named_weights(start),
        "weights": named_weights(found),
    }
    write_whole(given.out, json.dumps(about, indent=1) + "\n")
    print(f"loss per decision on {cut} held out: {1000 * before:.2f} -> {1000 * after:.2f} mWP")


if __name__ == "__main__":
    main()
