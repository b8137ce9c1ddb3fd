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
from collections.abc import Callable, Sequence
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
from training.checks import check_distil
from training.distil_config import DistilConfig
from training.progress import ProgressLine
from training.settings import settings_help
from training.td import ExactLoss, Games, Learner, commit, judge, present_columns, versions
from training.td_config import TDConfig

OTHER = 2
"""The relative seat of the other player: the two sit opposite each other."""


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
        self.y[:, OTHER] = 1.0 - own
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
        y[:, 0], y[:, OTHER] = own, 1.0 - own
        x = net_features(states, self.rules.array, feature_count(self.rules))
        return torch.from_numpy(x), torch.from_numpy(y)

    def take(self, learner: Learner) -> None:
        """Let the network play with its newest weights."""
        self.games.take(learner.layers())


def distil(config: DistilConfig, folder: str | Path, *, progress: bool = True) -> ValueNet:
    """Fit a network to exact values, write the run folder, return the network.

    Raises:
        KimbleError: settings that cannot be, no exact values, or a folder with a run in it.
    """
    place = Path(folder)
    rules = check_distil(config, place)
    torch.set_num_threads(1)
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
    method = f"distillation ({config.source})"

    def keep(step: int) -> None:
        told = {"method": method, "positions": step * config.batch, **about}
        write_net(place / "value", rules, learner.layers(), training=told)

    try:
        _learn(config, rules, learner, source, place, keep, progress)
    except KeyboardInterrupt:
        if (place / "value.json").exists():
            print(f"\ninterrupted; net:{place} is the network last measured", file=sys.stderr)
        raise
    return read_net(place / "value", f"net:{folder}", rules)


def _learn(
    config: DistilConfig, rules: Rules, learner: Learner, source: Any, place: Path,
    keep: Callable[[int], None], progress: bool,
) -> None:
    """Take all steps; measure ten times on the way, and keep the network each time."""
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
            keep(step)
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
