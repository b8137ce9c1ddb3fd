"""Settings of a distillation: one dataclass, a sentence per field, checked before all else."""

from __future__ import annotations

from dataclasses import dataclass

from kimble_env.errors import KimbleError
from kimble_env.rules import Rules
from training.settings import Settings, setting
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

    def found_rules(self) -> Rules:
        """Return the rules of the game whose values are learned.

        Raises:
            KimbleError: rules that cannot be, or not of two players opposite each other.
        """
        rules = TDConfig(rules=self.rules, players=2).found_rules()
        if len(rules.seats) != 2 or (rules.seats[1] - rules.seats[0]) % 4 != 2:
            raise KimbleError(f"{rules}: distillation needs two players opposite each other")
        return rules

    def command(self) -> str:
        """Return the command that repeats this run."""
        return self.command_line("kimble train distil FOLDER")
