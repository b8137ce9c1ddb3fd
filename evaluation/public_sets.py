"""Making the public sets: decisions with reference values, for ``losses.py``.

::

    python -m evaluation.public_sets --rules kombat --players 4
    python -m evaluation.public_sets --rules kombat --players 2 --check

Positions are from stated play: ``cautious`` in all seats, one move in ten drawn uniformly among the
moves other than pass, one decision in eight kept, from the start of games to the end.

**Exact.** For kimble and kombat with two players the values are those of the solved game
(``agents/exact/data``), and the errors 0.

**Search and rollouts.** For the others the difference of each move from the first choice of a
search is estimated twice. The search, ``search:depth=3`` over the linear value, is free of noise
but believes its value. The rollouts play on from the move, all seats by the best move of the linear
value, for ``--plies`` throws; their result is the value where they stand less the luck on the way
(``luck.py``), and rollout j throws the same dice after every move. They are less biased, and noisy.
Both are weighed by their precision: with v the variance of what the rollouts say against the
search, their own noise taken off (measured over the whole set), and e the standard error of the
rollouts, the estimate is search + v / (v + e^2) (rollouts - search), and its standard error the
root of v e^2 / (v + e^2). Moves that the search puts more than 30 mWP behind are not rolled out;
their error is the root of v. What is left is the bias that search and rollouts share, as both end
in the same linear value. ``--check`` measures all of it where the truth is known.

A run stopped half-way goes on where it was: parts lie in ``<file>.parts``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agents.evaluators import make_evaluator, seat_chances
from agents.exact.decisions import read_decisions
from agents.linear_value import LinearValue
from agents.search import make_search
from evaluation.losses import (
    FOLDER,
    FORMAT,
    STATED_PLAY,
    digest,
    pack,
    read_public,
    sample_decisions,
    set_name,
)
from evaluation.luck_kernel import advance_best_batch
from kimble_env.afterstates import expand_moves
from kimble_env.files import write_whole
from kimble_env.kernel import empty_states, game_keys, legal_batch, take_states
from kimble_env.opponents import hide_random_state
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import run_slices

SEARCH = "depth=3,budget=0"
MARGIN = 0.03  # moves further behind by the search are not rolled out
DICE_SEED = 1  # of the rollouts
PART = 100  # positions between two checkpoints

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]


class Rolled(NamedTuple):
    """What search and rollouts say of each action: float64 [N, A], NaN where nothing is said.

    search: win chance of the seat to act. rolled: the same by rollouts. error: standard error of
    rolled less that of the search's first choice, on equal dice. base: of the first choice itself.
    """

    search: Floats
    rolled: Floats
    error: Floats
    base: Floats


def estimate(
    positions: States, rules: Rules, value: LinearValue, trials: int, plies: int, threads: int
) -> Rolled:
    """Search and roll out every legal action of some positions."""
    rows, count = np.arange(len(positions)), rules.board.actions
    searcher = make_search(f"{SEARCH},eval={value.name},pass_cost=0", rules)
    legal = np.empty(len(positions), np.int64)
    legal_batch(positions, rules.array, legal)
    mask = legal[:, None] >> np.arange(count) & 1 != 0
    search = seat_chances(searcher.values(positions), positions, rules)
    search = np.where(mask, search, np.nan)
    first = np.nanargmax(search, axis=1)
    close = mask & (search >= np.nanmax(search, axis=1)[:, None] - MARGIN)
    games = roll_out(positions, close, rules, value, trials, plies, threads)
    rolled = np.where(close, games.mean(axis=2), np.nan)
    apart = games - games[rows, first][:, None]
    error = np.where(close, apart.std(axis=2, ddof=1) / trials**0.5, np.nan)
    base = games[rows, first].std(axis=1, ddof=1) / trials**0.5
    return Rolled(search, rolled, error, base)


def roll_out(
    positions: States,
    chosen: npt.NDArray[np.bool_],
    rules: Rules,
    value: LinearValue,
    trials: int,
    plies: int,
    threads: int,
) -> Floats:
    """Return the result of each rollout after the chosen actions: float64 [N, A, trials], else 0.

    Win chance of the seat to act, battles averaged.
    """
    moves = expand_moves(hide_random_state(positions), rules)
    rows = np.flatnonzero(chosen[moves.parent, moves.action])
    keys = np.empty(trials, np.uint64)
    game_keys(np.uint64(DICE_SEED), 0, keys)
    games = take_states(moves.children, np.repeat(rows, trials))
    games["seed"] = np.tile(keys, len(rows))
    for name in ("throw_count", "battle_count"):
        games[name] = 0  # the throws to come are the first of each seat's stream
    lasts = games["plies"].astype(np.int64) + plies
    luck = np.zeros((len(games), 4))
    run_slices(
        lambda a, b: advance_best_batch(
            games[a:b], rules.array, value.vector, empty_states(2), lasts[a:b], luck[a:b]
        ),
        len(games),
        threads,
    )
    result = (value.value(games) - luck).reshape(len(rows), trials, 4)
    seats = positions["seat"][moves.parent[rows]].astype(np.int64)
    own = result[np.arange(len(rows)), :, seats] * moves.chance[rows, None]
    out = np.zeros((*chosen.shape, trials))
    np.add.at(out, (moves.parent[rows], moves.action[rows]), own)
    return out


def weigh(found: Rolled) -> tuple[Floats, Floats, dict[str, Any]]:
    """Weigh search and rollouts; return values, errors (both [N, A]) and notes for the header."""
    rows = np.arange(len(found.search))
    first = np.nanargmax(found.search, axis=1)
    searched = found.search - found.search[rows, first][:, None]
    rolled = found.rolled - found.rolled[rows, first][:, None]
    said = np.isfinite(rolled)
    said[rows, first] = False
    noise = found.error[said] ** 2
    between = max(float(((rolled - searched)[said] ** 2 - noise).mean()), 1e-8)
    squared = np.where(said, found.error**2, np.inf)
    trust = between / (between + squared)
    apart = np.where(said, searched + trust * (rolled - searched), searched)
    errors = np.sqrt(np.where(said, trust * np.where(said, squared, 1.0), between))
    errors[rows, first] = 0.0
    errors[np.isnan(found.search)] = np.nan
    values = found.rolled[rows, first][:, None] + apart
    notes = {
        "rolled_out_share": round(float(said.sum() / (np.isfinite(searched).sum() - len(rows))), 3),
        "rollout_error_mwp": _mwp(float(np.sqrt(noise.mean()))),
        "search_spread_mwp": _mwp(float(between**0.5)),
        "error_mwp": _mwp(float(np.sqrt(np.mean(errors[said] ** 2)))),
        "base_error_mwp": _mwp(float(np.sqrt(np.mean(found.base**2)))),
        "first_choice_kept_share": round(float((np.nanargmax(values, axis=1) == first).mean()), 4),
    }
    return values, errors, notes


def _mwp(value: float) -> float:
    return round(1000.0 * value, 2)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _in_parts(
    positions: States, rules: Rules, value: LinearValue, options: argparse.Namespace, folder: Path
) -> Rolled:
    """Estimate part by part, keeping what is done in a folder of its own."""
    words = f"{rules.hash} {value.hash} {options.trials} {options.plies} {options.seed} {SEARCH}"
    mark = hashlib.sha256(words.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for start in range(0, len(positions), PART):
        path = folder / f"{mark}-{start:06d}.npz"
        if path.exists():
            with np.load(path) as file:
                parts.append(Rolled(*(file[name] for name in Rolled._fields)))
            continue
        part = take_states(positions[start : start + PART])
        parts.append(
            estimate(part, rules, value, options.trials, options.plies, options.threads)
        )
        partial = path.with_suffix(".new.npz")
        np.savez(partial, **parts[-1]._asdict())
        partial.replace(path)
        _tell(f"{set_name(rules)}: {start + len(part)} of {len(positions)}")
    return Rolled(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _write(path: Path, rules: Rules, arrays: dict[str, Any], notes: dict[str, Any]) -> None:
    header = {
        "format": FORMAT, "rules": str(rules), "rules_hash": rules.hash,
        "seats": list(rules.seats), "decisions": len(arrays["seat"]), "play": STATED_PLAY,
        **notes, "sha256": digest(arrays),
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.stem + ".new.npz")
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(partial, header=text, **arrays)
    write_whole(path, partial.read_bytes())
    partial.unlink()
    print(json.dumps({**header, "bytes": path.stat().st_size}, indent=1))


def make_exact(rules: Rules, path: Path, count: int) -> None:
    """Write the set of a solved game: the first decisions of the shipped exact ones."""
    known = read_decisions(rules)
    rows = np.flatnonzero(np.isfinite(known.win).sum(axis=1) > 1)[:count]
    values = known.win[rows].astype(np.float64)
    arrays = pack(known.positions[rows], values, np.where(np.isfinite(values), 0.0, np.nan), rules)
    _write(path, rules, arrays, {
        "reference": "exact", "table_sha256": known.header["table_sha256"],
        "command": f"python -m evaluation.public_sets --rules {rules} --players 2 "
                   f"--decisions {count}",
    })  # fmt: skip


def make_estimated(rules: Rules, path: Path, options: argparse.Namespace) -> None:
    """Write a set estimated by search and rollouts."""
    start = time.process_time()
    value: Any = make_evaluator("linear", rules)
    positions = sample_decisions(rules, options.decisions, options.seed)
    folder = path.with_name(path.stem + ".parts")
    found = _in_parts(positions, rules, value, options, folder)
    values, errors, notes = weigh(found)
    names = ("rules", "players", "decisions", "trials", "plies", "seed")
    command = " ".join(f"--{name} {getattr(options, name)}" for name in names)
    _write(path, rules, pack(positions, values, errors, rules), {
        "reference": f"search:{SEARCH} and {options.trials} rollouts of {options.plies} throws",
        "evaluator": value.name, "evaluator_hash": value.hash, **notes,
        "command": f"python -m evaluation.public_sets {command}",
        "cpu_seconds": round(time.process_time() - start),
    })  # fmt: skip
    shutil.rmtree(folder)


def check(rules: Rules, options: argparse.Namespace) -> dict[str, Any]:
    """Estimate decisions whose exact values are known; return how far off the estimates are."""
    known = read_public(rules)
    rows = np.arange(min(options.decisions, len(known.positions)))
    value: Any = make_evaluator("linear", rules)
    positions, truth = take_states(known.positions, rows), known.values[rows]
    found = estimate(positions, rules, value, options.trials, options.plies, options.threads)
    values, errors, notes = weigh(found)
    first = np.nanargmax(found.search, axis=1)
    said = np.isfinite(found.rolled)
    said[rows, first] = False

    def off(estimated: Floats) -> float:
        apart = estimated - estimated[rows, first][:, None] - truth + truth[rows, first][:, None]
        return _mwp(float(np.sqrt(np.mean(apart[said] ** 2))))

    def lost(estimated: Floats) -> float:
        best = np.nanargmax(estimated, axis=1)
        return _mwp(float((np.nanmax(truth, axis=1) - truth[rows, best]).mean()))

    return {
        "decisions": len(rows), **notes,
        "off_mwp": {"search": off(found.search), "rollouts": off(found.rolled),
                    "both": off(values)},
        "lost_by_first_choice_mwp": {"search": lost(found.search), "both": lost(values)},
        "told_error_mwp": _mwp(float(np.sqrt(np.mean(errors[said] ** 2)))),
    }  # fmt: skip


def main() -> None:
    """Make the public set of one rule set and number of players."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--trials", type=int, default=16, help="rollouts of each move")
    parser.add_argument("--plies", type=int, default=24, help="throws of a rollout")
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="against the exact set; writes none")
    parser.add_argument("--estimated", action="store_true", help="also where the game is solved")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rules = find_rules(options.rules).replace(players=options.players)
    path = options.out if options.out is not None else FOLDER / f"{set_name(rules)}.npz"
    if options.check:
        print(json.dumps(check(rules, options), indent=1))
    elif rules.players == 2 and rules.name in ("kimble", "kombat") and not options.estimated:
        make_exact(rules, path, options.decisions)
    else:
        make_estimated(rules, path, options)


if __name__ == "__main__":
    main()
