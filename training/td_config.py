"""Settings of value learning: one dataclass, a sentence per field, checked before all else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kimble_env.errors import KimbleError
from kimble_env.rules import Rules, find_rules
from training.settings import Settings, setting


@dataclass(frozen=True)
class TDConfig(Settings):
    """Settings of TD(lambda) over afterstates. ``kimble train td --help`` prints the sentences."""

    rules: str = setting("kimble", "rules to train on, a name or name[option=value,...]")
    players: int = setting(2, "number of players, 2 to 4")
    throws: int = setting(
        40_000_000,
        "throws to play and learn from, forced ones included; rounded up to whole windows of the "
        "games in step",
    )
    seed: int = setting(1, "seed of dice, weights, opponents and minibatches")
    games: int = setting(1024, "games played in step")
    window: int = setting(32, "throws of each game between two updates")
    lam: float = setting(0.8, "lambda of the targets: how much later throws correct earlier ones")
    stride: int = setting(2, "every so many positions one is looked at and learned from")
    batch: int = setting(512, "positions per minibatch")
    learning_rate: float = setting(2e-3, "Adam's step at the start")
    last_rate: float = setting(4e-5, "Adam's step at the end; between them it falls by cosine")
    average: float = setting(
        0.998, "decay of the averaged weights, which play, set the targets and are kept"
    )
    explore: float = setting(0.03, "chance that the learner's move is drawn uniformly")
    others: float = setting(0.25, "share of games against snapshots and heuristics")
    heuristics: str = setting(
        "random,cautious,mixed", "weight vectors among the opponents: comma-separated specs"
    )
    snapshots: int = setting(3, "past selves in the pool at one time")
    snapshot_every: int = setting(0, "throws between two snapshots; 0 for a twentieth of all")
    start: str = setting(
        "", "network to start from: a shipped name or a folder; empty for none (then warmup)"
    )
    warmup: int = setting(
        8_192, "games between random players and heuristics whose results are learned first"
    )
    hidden: int = setting(64, "units of the first hidden layer, a multiple of 8")
    hidden2: int = setting(32, "units of the second hidden layer, a multiple of 8")
    cap: int = setting(3_000, "throws after which a stalled game is cut off and counted")
    evaluate_every: int = setting(0, "throws between two evaluations; 0 for a twentieth of all")
    evaluate_games: int = setting(4_000, "games per evaluation and baseline")
    baselines: str = setting(
        "random,mixed", "weight vectors that evaluations are against, comma-separated"
    )
    lag: int = setting(
        1, "windows that the weights in play are behind, 0 or 1; with 1 play and learning overlap"
    )
    threads: int = setting(2, "threads that play; they do not change the result")
    minutes: float = setting(
        0.0, "measure the speed first and set throws to what so many minutes allow (0: no)"
    )

    RANGES: ClassVar[Mapping[str, tuple[float, float]]] = {
        "players": (2, 4),
        "throws": (1, 10**12),
        "seed": (0, 2**31 - 1),
        "games": (1, 1 << 20),
        "window": (1, 1 << 12),
        "lam": (0.0, 1.0),
        "stride": (1, 1 << 12),
        "batch": (1, 1 << 24),
        "learning_rate": (1e-9, 1.0),
        "last_rate": (0.0, 1.0),
        "average": (0.0, 0.999999),
        "explore": (0.0, 1.0),
        "others": (0.0, 1.0),
        "snapshots": (0, 64),
        "snapshot_every": (0, 10**12),
        "warmup": (0, 10**7),
        "hidden": (8, 1024),
        "hidden2": (8, 1024),
        "cap": (1, 2**30),
        "evaluate_every": (0, 10**12),
        "evaluate_games": (1, 10**9),
        "lag": (0, 1),
        "threads": (1, 256),
        "minutes": (0.0, 1e6),
    }

    def __post_init__(self) -> None:
        faults = self.range_faults()
        if not faults:
            if self.window % self.stride:
                faults.append(f"window must be a multiple of stride, got {self.window}")
            if self.hidden % 8 or self.hidden2 % 8:
                faults.append("hidden layers must be multiples of 8 wide")
            if self.batch > self.rows:
                faults.append(f"batch must be at most games x window / stride = {self.rows}")
        if faults:
            raise KimbleError("; ".join(faults))

    @property
    def rows(self) -> int:
        """Positions that a window gives to learn from."""
        return self.games * (self.window // self.stride)

    @property
    def windows(self) -> int:
        """Windows in all: the throws rounded up."""
        return -(-self.throws // (self.games * self.window))

    def found_rules(self) -> Rules:
        """Return the rules to train on.

        Raises:
            KimbleError: rules that cannot be, or whose result is not one seat's win.
        """
        rules = find_rules(self.rules, players=self.players)
        faults = []
        if rules.two_colours:
            faults.append("two_colours: a player's chance is not one seat's")
        if rules.play_for_places:
            faults.append("play_for_places: places are not learned, only who wins")
        if rules.members is not None:
            faults.append("members: who can still drink is not among the inputs")
        if faults:
            raise KimbleError(f"value learning cannot take {rules}: {'; '.join(faults)}")
        return rules.replace(max_turns=None) if rules.max_turns is not None else rules

    def command(self) -> str:
        """Return the command that repeats this run."""
        return self.command_line("kimble train td FOLDER", leave_out=("minutes", "threads"))


def read_count(text: str, name: str = "a number") -> int:
    """Read a number of throws or decisions such as 40M, 1.5G, 250k or 1000000.

    Raises:
        KimbleError: it cannot be read; the message begins with ``name``.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kKmMgG]?)", text.strip().replace("_", ""))
    if match is None:
        raise KimbleError(f"{name} must be like 40M, 250k or 1000000, got {text!r}")
    scale = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2].lower()]
    return round(float(match[1]) * scale)
