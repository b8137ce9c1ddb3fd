"""Decision sets: positions from stated play with the exact value of every legal move.

A four-piece table is gigabytes, so it is not shipped; these sets are (``data/*.npz``). They hold
two parts: ``decision_*``, die thrown and two legal moves or more, with the win chance after each
action, to measure losses on; and ``sample_*``, positions before a throw with their win chance, to
train on. Made by::

    python -m agents.exact.decisions --rules kimble --pieces 4

Play: ``cautious`` in both seats, one move in ten drawn uniformly among the moves other than pass.
Of the positions met, one in eight is kept (drawn by a fixed seed), so that few come from one game.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact.errors import TableError
from agents.exact.solver import two_seats
from agents.exact.table import Table, find_table
from kimble_env.kernel import (
    RUNNING,
    STATE,
    empty_states,
    game_keys,
    new_game_batch,
    play_batch,
    throw_batch,
)
from kimble_env.notation import shown_action, shown_actions
from kimble_env.opponents import decision_keys, hide_random_state, make_agent, shown_position
from kimble_env.rules import Rules, find_rules

FOLDER = Path(__file__).parent / "data"
FORMAT = "kimble-decisions-1"
PLAYER = "cautious"
WILD = 0.1
KEPT = 0.125
GAMES = 1000
NONE = 65535


@dataclass(frozen=True)
class Decisions:
    """A set read from its file.

    Attributes:
        rules: two seats.
        header: what made it.
        positions: STATE [B], die thrown.
        win: float32 [B, A], win chance of the seat to act after each action, NaN if illegal.
        sample: STATE [S], before a throw.
        value: float32 [S], win chance of the seat about to throw.
    """

    rules: Rules
    header: dict[str, Any]
    positions: npt.NDArray[np.void]
    win: npt.NDArray[np.float32]
    sample: npt.NDArray[np.void]
    value: npt.NDArray[np.float32]

    def losses(self, actions: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Return the win chance that each chosen action gives away: float64 [B], 0 for the best.

        Raises:
            TableError: an action that is not legal.
        """
        chosen = self.win[np.arange(len(self.win)), actions].astype(np.float64)
        if np.isnan(chosen).any():
            at = int(np.flatnonzero(np.isnan(chosen))[0])
            die = int(self.positions[at]["die"])
            bits = sum(1 << int(a) for a in np.flatnonzero(~np.isnan(self.win[at])))
            raise TableError(
                f"decision {at}, {shown_position(self.rules, self.positions[at])}: "
                f"{shown_action(self.rules, int(actions[at]), die)} is not legal; legal: "
                f"{shown_actions(self.rules, bits, die)}"
            )
        return np.nanmax(self.win, axis=1).astype(np.float64) - chosen


# ------------------------------------------------------------------------------------------ making


def _start(rules: Rules, first: int) -> npt.NDArray[np.void]:
    states = empty_states(GAMES)
    plays = np.zeros((GAMES, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    keys = np.empty(GAMES, np.uint64)
    game_keys(20260101, first, keys)
    new_game_batch(states, rules.array, plays, keys, np.zeros((0, 2), np.int8))
    return states


def _choose(
    agent: Any, states: npt.NDArray[np.void], legal: npt.NDArray[np.int64], rules: Rules,
    generator: np.random.Generator,
) -> npt.NDArray[np.int16]:
    """Return the moves played: the agent's, or now and then any."""
    hidden = hide_random_state(states)
    actions = np.array(agent.act(hidden, decision_keys(states)), np.int16)
    wild = make_agent("random", rules).act(hidden, generator.integers(1 << 62, size=len(states),
                                                                     dtype=np.uint64))
    at = generator.random(len(states)) < WILD
    actions[at] = wild[at]
    return actions


def play_positions(
    rules: Rules, decisions: int, sample: int, seed: int = 1
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Play games as stated above; return positions with a die to play, and before a throw.

    Returns:
        STATE [decisions], each with two legal actions or more, and STATE [sample].
    """
    generator = np.random.default_rng(seed)
    agent = make_agent(PLAYER, rules)
    met: tuple[list[Any], list[Any]] = ([], [])
    found, first = [0, 0], 0
    while found[0] < decisions or found[1] < sample:
        states = _start(rules, first)
        first += GAMES
        while len(states):
            for part, chosen in ((1, states), (0, None)):
                if part == 0:
                    legal = np.empty(len(states), np.int64)
                    throw_batch(states, rules.array, np.zeros(len(states), np.int8), legal)
                    chosen = states[legal & (legal - 1) != 0]
                kept = hide_random_state(chosen[generator.random(len(chosen)) < KEPT])
                met[part].append(kept)
                found[part] += len(kept)
            asked = np.flatnonzero(legal)
            playing = np.ascontiguousarray(states[asked])
            actions = _choose(agent, playing, legal[asked], rules, generator)
            play_batch(playing, rules.array, actions, np.zeros((len(asked), 2), np.int8))
            states[asked] = playing
            states = np.ascontiguousarray(states[states["status"] == RUNNING])
    mixed = [np.concatenate(part) for part in met]
    return tuple(  # type: ignore[return-value]
        np.ascontiguousarray(part[generator.permutation(len(part))[:count]])
        for part, count in zip(mixed, (decisions, sample), strict=True)
    )


def _pack(states: npt.NDArray[np.void], rules: Rules) -> dict[str, npt.NDArray[Any]]:
    pieces = np.sort(states["pieces"][:, list(rules.seats), : rules.pieces], axis=2)
    return {"pieces": pieces, "seat": states["seat"], "die": states["die"],
            "throws": states["throws"]}


def _unpack(
    pieces: npt.NDArray[np.int8], seat: Any, die: Any, throws: Any, rules: Rules
) -> npt.NDArray[np.void]:
    states = np.zeros(len(pieces), STATE)
    states["pieces"] = -1
    for k, player in enumerate(rules.seats):
        states["plays"][:, player] = 1
        states["pieces"][:, player, : rules.pieces] = pieces[:, k]
    states["seat"], states["die"], states["throws"] = seat, die, throws
    states["winner"], states["last_action"] = -1, -1
    states["last_seat"] = np.where(states["die"] > 0, seat, -1)
    states["last_die"] = states["die"]
    return states


def _digest(arrays: dict[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + str(arrays[name].shape).encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def make_decisions(
    table: Table, path: Path, decisions: int = 100_000, sample: int = 200_000
) -> dict[str, Any]:
    """Play, ask the table, and write a set; return its header."""
    rules = table.rules
    chosen, before = play_positions(rules, decisions, sample)
    win = table.moves(chosen)
    numbers = np.where(win < 0, NONE, np.round(win * (NONE - 1))).astype(np.uint16)
    arrays = {f"decision_{k}": v for k, v in _pack(chosen, rules).items()}
    # moves of a position in the order of their codes: at most pieces + 1 of them
    rows, actions = np.nonzero(win >= 0)
    arrays["decision_counts"] = (win >= 0).sum(axis=1).astype(np.uint8)
    arrays["decision_actions"] = actions.astype(np.int8)
    arrays["decision_win"] = numbers[rows, actions]
    arrays |= {f"sample_{k}": v for k, v in _pack(before, rules).items()}
    arrays["sample_value"] = np.round(table.values(before) * (NONE - 1)).astype(np.uint16)
    header = {
        "format": FORMAT,
        "rules": str(rules),
        "rules_hash": rules.hash,
        "pieces": rules.pieces,
        "seats": list(rules.seats),
        "decisions": decisions,
        "sample": sample,
        "play": f"{PLAYER} in both seats, {WILD:.0%} of moves uniform other than pass",
        "table_sha256": table.header.get("sha256"),
        "command": f'python -m agents.exact.decisions --rules "{rules}"',
        "sha256": _digest(arrays),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(path, header=text, **arrays)
    return header


# ----------------------------------------------------------------------------------------- reading


def set_path(rules: str | Rules) -> Path:
    """Return where the shipped set of a game is."""
    game = two_seats(rules)
    return FOLDER / f"{game.name}-{game.pieces}-{game.hash}.npz"


def read_decisions(rules: str | Rules, path: Path | None = None) -> Decisions:
    """Read the set of a game (by default the shipped one).

    Raises:
        TableError: there is none, it is damaged, or for another game.
    """
    game = two_seats(find_rules(rules))
    path = set_path(game) if path is None else path
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise TableError(f"no decision set {path}") from None
    except Exception as error:
        raise TableError(f"{path}: not a decision set, or damaged: {error}") from None
    if header.get("format") != FORMAT or header.get("sha256") != _digest(arrays):
        raise TableError(f"{path}: damaged, or not of format {FORMAT}: the checksum does not fit")
    if header["rules_hash"] != game.hash:
        raise TableError(f"{path}: made for {header['rules']!r}, expected {str(game)!r}")
    names = ("pieces", "seat", "die", "throws")
    parts = [
        _unpack(*(arrays[f"{part}_{name}"] for name in names), game)
        for part in ("decision", "sample")
    ]
    win = np.full((len(parts[0]), game.board.actions), np.nan, np.float32)
    rows = np.repeat(np.arange(len(win)), arrays["decision_counts"])
    win[rows, arrays["decision_actions"]] = arrays["decision_win"] / np.float32(NONE - 1)
    value = arrays["sample_value"] / np.float32(NONE - 1)
    return Decisions(game, header, parts[0], win, parts[1], value.astype(np.float32))


def main() -> None:
    """Make the set of a game; its table must exist, or be small enough to make."""
    parser = argparse.ArgumentParser(description="Make a set of decisions with exact values.")
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--pieces", type=int)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=200_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    game = two_seats(options.rules, options.pieces)
    path = options.out if options.out is not None else set_path(game)
    header = make_decisions(find_table(game), path, options.decisions, options.sample)
    print(json.dumps({**header, "file": str(path), "bytes": path.stat().st_size}, indent=1))


if __name__ == "__main__":
    main()
