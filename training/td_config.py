"""Settings of value learning: one dataclass, a sentence per field, checked before all else."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any

from kimble_env.errors import KimbleError
from kimble_env.rules import Rules, find_rules


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TDConfig:
    """Settings of TD(lambda) over afterstates. ``kimble train td --help`` prints the sentences."""

    rules: str = _setting("kimble", "rules to train on, a name or name[option=value,...]")
    players: int = _setting(2, "number of players, 2 to 4")
    throws: int = _setting(40_000_000, "throws to play and learn from, forced ones included")
    seed: int = _setting(1, "seed of dice, weights, opponents and minibatches")
    games: int = _setting(1024, "games played in step")
    window: int = _setting(32, "throws of each game between two updates")
    lam: float = _setting(0.8, "lambda of the targets: how much later throws correct earlier ones")
    stride: int = _setting(2, "every so many positions one is learned from")
    batch: int = _setting(1024, "positions per minibatch")
    learning_rate: float = _setting(2e-3, "Adam's step at the start")
    last_rate: float = _setting(4e-5, "Adam's step at the end; between them it falls by cosine")
    average: float = _setting(
        0.998, "decay of the averaged weights, which play, set the targets and are kept"
    )
    explore: float = _setting(0.03, "chance that the learner's move is drawn uniformly")
    others: float = _setting(0.25, "share of games against snapshots and heuristics")
    heuristics: str = _setting(
        "random,cautious,mixed", "weight vectors among the opponents: comma-separated specs"
    )
    snapshots: int = _setting(3, "past selves in the pool at one time")
    snapshot_every: int = _setting(0, "throws between two snapshots; 0 for a twentieth of all")
    start: str = _setting(
        "", "network to start from: a shipped name or a folder; empty for none (then warmup)"
    )
    warmup: int = _setting(
        8_192, "games between random players and heuristics whose results are learned first"
    )
    hidden: int = _setting(64, "units of the first hidden layer, a multiple of 8")
    hidden2: int = _setting(32, "units of the second hidden layer, a multiple of 8")
    cap: int = _setting(3_000, "throws after which a stalled game is cut off and counted")
    evaluate_every: int = _setting(0, "throws between two evaluations; 0 for a twentieth of all")
    evaluate_games: int = _setting(4_000, "games per evaluation and baseline")
    baselines: str = _setting(
        "random,mixed", "weight vectors that evaluations are against, comma-separated"
    )
    threads: int = _setting(2, "threads that play; they do not change the result")
    minutes: float = _setting(
        0.0, "measure the speed first and set throws to what so many minutes allow (0: no)"
    )

    def __post_init__(self) -> None:
        faults = [text for text in map(self._fault, _RANGES) if text]
        if not faults:
            if self.window % self.stride:
                faults.append(f"window must be a multiple of stride, got {self.window}")
            if self.hidden % 8 or self.hidden2 % 8:
                faults.append("hidden layers must be multiples of 8 wide")
            if self.batch > self.rows:
                faults.append(f"batch must be at most games x window / stride = {self.rows}")
        if faults:
            raise KimbleError("; ".join(faults))

    def _fault(self, name: str) -> str | None:
        low, high = _RANGES[name]
        value = getattr(self, name)
        kind = int if isinstance(getattr(type(self), name), int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
            return f"{name} must lie in {low}..{high}, got {value!r}"
        return None

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

    def names(self, setting: str) -> list[str]:
        """Return the specs of a comma-separated setting; none of them may hold a comma."""
        return [name.strip() for name in getattr(self, setting).split(",") if name.strip()]

    def command(self) -> str:
        """Return the command that repeats this run."""
        words = ["kimble train td FOLDER"]
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name not in ("minutes", "threads") and value != f.default:
                text = f'"{value}"' if isinstance(value, str) and not value.isalnum() else value
                words.append(f"--{f.name.replace('_', '-')} {text}")
        return " ".join(words)


_RANGES: dict[str, tuple[float, float]] = {
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
    "threads": (1, 256),
    "minutes": (0.0, 1e6),
}


def read_count(text: str) -> int:
    """Read a number of throws such as 40M, 1.5G, 250k or 1000000.

    Raises:
        KimbleError: it cannot be read.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kKmMgG]?)", text.strip().replace("_", ""))
    if match is None:
        raise KimbleError(f"a number of throws must be like 40M, 250k or 1000000, got {text!r}")
    scale = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2].lower()]
    return round(float(match[1]) * scale)


def settings_help() -> list[tuple[str, Any, str]]:
    """Return (name, default, sentence) of every setting."""
    return [(f.name, f.default, f.metadata["help"]) for f in dataclasses.fields(TDConfig)]
