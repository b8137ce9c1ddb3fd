"""Distillation: a value network fitted to exact win chances of games of two seats.

    python -m training.distil runs/exact-net --rules kimble --start runs/first

Positions come from one of two places:

* ``set``: the committed positions of a solved game with their exact values (``agents/exact/data``).
  Losses are then measured on the decisions of the same file, which are other positions.
* ``table``: positions of games that the network plays against itself (with exploration), asked of
  the table, new ones for every step.

``--start`` takes the weights of a trained network first; without it learning starts from nothing.
The folder gets the files of a run: ``config.json``, ``metrics.jsonl``, ``value.*``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.exact.decisions import read_decisions
from agents.exact.table import find_table
from agents.net_features import feature_count, net_features
from agents.value_net import ValueNet, load_net, read_net, write_net
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.kernel import take_states
from kimble_env.rules import Rules
from training.progress import ProgressLine
from training.settings import Settings, setting, settings_help
from training.td import ExactLoss, Games, Learner, commit, judge, present_columns, versions
from training.td_config import TDConfig


@dataclass(frozen=True)
class DistilConfig(Settings):
    """Settings of a distillation."""

    rules: str = setting("kimble", "rules of a solved game of two players")
    source: str = setting("set", "set: the committed positions; table: positions of own games")
    start: str = setting("", "network to start from: a name or a folder; empty for none")
    steps: int = setting(20_000, "minibatches to learn from")
    batch: int = setting(1024, "positions per minibatch")
    learning_rate: float = setting(1e-3, "Adam's step at the start; it falls to 0 by cosine")
    average: float = setting(0.999, "decay of the averaged weights, which are kept")
    hidden: int = setting(64, "units of the first hidden layer, a multiple of 8")
    hidden2: int = setting(32, "units of the second hidden layer, a multiple of 8")
    seed: int = setting(1, "seed of weights, games and minibatches")
    evaluate_games: int = setting(2_000, "games against random at each of ten evaluations")

    def __post_init__(self) -> None:
        low = {"steps": 1, "batch": 1, "hidden": 8, "hidden2": 8, "evaluate_games": 1, "seed": 0}
        for name, least in low.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise KimbleError(f"{name} must be a whole number of at least {least}: {value!r}")
        if self.source not in ("set", "table"):
            raise KimbleError(f"source must be set or table, got {self.source!r}")
        if not 0.0 < self.learning_rate <= 1.0 or not 0.0 <= self.average < 1.0:
            raise KimbleError("learning_rate must lie in 0..1 and average in 0..1, below 1")
        if self.hidden % 8 or self.hidden2 % 8:
            raise KimbleError("hidden layers must be multiples of 8 wide")

    def command(self) -> str:
        """Return the command that repeats this run."""
        return self.command_line("kimble train distil FOLDER")


class _Set:
    """The committed positions: minibatches without end, each pass in another order."""

    def __init__(self, rules: Rules, config: DistilConfig) -> None:
        data = read_decisions(rules)
        self.x = torch.from_numpy(
            net_features(data.sample, rules.array, feature_count(rules))
        )
        own = torch.from_numpy(data.value)
        self.y = torch.zeros(len(own), 4)
        self.y[:, 0] = own
        self.y[:, _other(rules)] = 1.0 - own
        self.rng = np.random.default_rng([config.seed, 0xD1])
        self.batch, self.order = min(config.batch, len(own)), np.zeros(0, np.int64)

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs and targets."""
        if len(self.order) < self.batch:
            self.order = self.rng.permutation(len(self.x))
        part, self.order = self.order[: self.batch], self.order[self.batch :]
        rows = torch.from_numpy(part)
        return self.x[rows], self.y[rows]

    def take(self, learner: Learner) -> None:
        """Do nothing: the positions are fixed."""


class _Table:
    """Positions of games that the network plays, with the table's values."""

    def __init__(self, rules: Rules, config: DistilConfig, learner: Learner) -> None:
        self.rules, self.table = rules, find_table(rules)
        games = TDConfig(
            rules=str(rules), players=2, seed=config.seed, games=config.batch, window=8, stride=8,
            batch=8, explore=0.1, others=0.5, snapshots=0, threads=1, hidden=config.hidden,
            hidden2=config.hidden2,
        )  # fmt: skip
        self.games = Games(games, rules, learner.layers())
        self.window = 0

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Play on and return where the games stand."""
        self.games.play(self.window)
        self.window += 1
        states = take_states(self.games.states)
        own = self.table.values(states)
        y = np.zeros((len(own), 4), np.float32)
        y[:, 0], y[:, _other(self.rules)] = own, 1.0 - own
        x = net_features(states, self.rules.array, feature_count(self.rules))
        return torch.from_numpy(x), torch.from_numpy(y)

    def take(self, learner: Learner) -> None:
        """Let the network play with its newest weights."""
        self.games.take(learner.layers())


def _other(rules: Rules) -> int:
    """Return the relative seat of the other player; both must sit opposite each other."""
    if len(rules.seats) != 2 or (rules.seats[1] - rules.seats[0]) % 4 != 2:
        raise KimbleError(f"{rules}: distillation needs two players opposite each other")
    return 2


def distil(config: DistilConfig, folder: str | Path, *, progress: bool = True) -> ValueNet:
    """Fit a network to exact values, write the run folder, return the network.

    Raises:
        KimbleError: settings that cannot be, no exact values, or a folder with a run in it.
    """
    place = Path(folder)
    if (place / "config.json").exists():
        raise KimbleError(f"{place} holds a run already; choose another folder")
    torch.set_num_threads(1)
    rules = TDConfig(rules=config.rules, players=2).found_rules()
    _other(rules)
    hidden = (config.hidden, config.hidden2)
    inputs, present = feature_count(rules), present_columns(rules)
    learner = Learner(inputs, hidden, config.seed, config.average, present)
    if config.start:
        learner.put(load_net(config.start, rules).layers)
    source: Any = (
        _Set(rules, config) if config.source == "set" else _Table(rules, config, learner)
    )
    place.mkdir(parents=True, exist_ok=True)
    about = {
        "settings": dataclasses.asdict(config), "command": config.command(),
        "rules_hash": rules.hash, "versions": versions(), "commit": commit(),
    }  # fmt: skip
    write_whole(place / "config.json", json.dumps(about, indent=1) + "\n")
    _learn(config, rules, learner, source, place, progress)
    write_net(
        place / "value", rules, learner.layers(),
        training={"method": f"distillation ({config.source})", "positions":
                  config.steps * config.batch, **about},
    )  # fmt: skip
    return read_net(place / "value", f"net:{folder}", rules)


def _learn(
    config: DistilConfig, rules: Rules, learner: Learner, source: Any, place: Path, progress: bool
) -> None:
    """Take all steps; measure ten times on the way."""
    exact, start = ExactLoss(rules), time.perf_counter()
    line, note, losses = ProgressLine(config.steps, "steps", shown=progress), "", []
    every = max(1, config.steps // 10)
    for step in range(1, config.steps + 1):
        rate = config.learning_rate * (1 + math.cos(math.pi * step / config.steps)) / 2
        losses.append(learner.learn(*source.next(), rate))
        if step % 16 == 0:
            source.take(learner)
        if step % every == 0 or step == config.steps:
            layers = learner.layers()
            row = {
                "steps": step,
                "seconds": round(time.perf_counter() - start, 2),
                "loss": float(torch.stack(losses).mean()),
                "exact_loss_mwp": exact.measure(layers),
                "against": {
                    "random": judge(layers, rules, "random", config.evaluate_games, 7, 5000, 1)
                },
            }
            losses = []
            with open(place / "metrics.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            found = row["exact_loss_mwp"]
            note = f"cross-entropy {row['loss']:.4f}" + (
                "" if found is None else f", {found:.2f} mWP a decision"
            )
        line.update(step, note)
    line.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m training.distil``."""
    text = (__doc__ or "").split("\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser("python -m training.distil", description=text)
    parser.add_argument("folder", help="where the run is kept")
    for name, default, sentence in settings_help(DistilConfig):
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(default), default=default,
            help=f"{sentence} ({default})",
        )  # fmt: skip
    given = vars(parser.parse_args(arguments))
    folder = given.pop("folder")
    try:
        distil(DistilConfig(**given), folder)
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
