"""Settings of a training run: one dataclass, a sentence per field, checked before all else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kimble_env.errors import KimbleError
from kimble_env.rules import Rules, find_rules
from training.settings import Settings, setting


@dataclass(frozen=True)
class PPOConfig(Settings):
    """Settings of masked PPO. ``python -m training.ppo --help`` and ``kimble train ppo --help``
    print the sentences."""

    rules: str = setting("kimble", "rules to train on, a name or name[option=value,...]")
    players: int = setting(4, "number of players, 2 to 4")
    decisions: int = setting(1_500_000, "decisions of the learner to train on, in all")
    seed: int = setting(1, "seed of dice, opponents, weights and minibatches")
    envs: int = setting(1024, "games played at once")
    steps: int = setting(16, "decisions per game between two updates")
    batch: int = setting(2048, "decisions per minibatch")
    epochs: int = setting(3, "passes over the decisions of an update")
    learning_rate: float = setting(1e-3, "Adam's step at the start; it falls linearly to a tenth")
    gamma: float = setting(1.0, "discount per decision; 1 keeps the value a win chance")
    drink_cost: float = setting(
        0.0, "what a cup of norske costs (a piece lost or come home), in units of the win's reward"
    )
    shaping: float = setting(
        0.0, "scale of the potential-based shaping reward (progress); changes no best policy"
    )
    gae_lambda: float = setting(0.9, "lambda of generalised advantage estimation")
    clip: float = setting(0.2, "how far an update may move a probability ratio")
    entropy: float = setting(0.005, "weight of the entropy bonus")
    width: int = setting(64, "units of each hidden layer, policy and value apart")
    depth: int = setting(2, "number of hidden layers")
    move_width: int = setting(
        32, "hidden units of the network that sees what each move does (0: the board alone)"
    )
    pass_bias: float = setting(
        -3.0,
        "logit of pass at the start; far below 0 starts near the player random, who seldom passes",
    )
    heuristics: str = setting(
        "random,cautious,capture,mixed", "opponents besides past selves: comma-separated specs"
    )
    past_share: float = setting(0.25, "share of games against past selves, once there are any")
    past_selves: int = setting(2, "past selves in the pool at one time: the newest and older ones")
    snapshot_every: int = setting(200_000, "decisions between two snapshots of the policy")
    evaluate_every: int = setting(
        200_000, "decisions between two evaluations, one curve point each"
    )
    evaluate_games: int = setting(2_000, "games per evaluation and baseline")
    baselines: str = setting("random,mixed", "whom the evaluations are against, comma-separated")
    max_turns: int = setting(2_000, "turns after which a stalled game is cut off")
    threads: int = setting(2, "threads that step the games")
    minutes: float = setting(0.0, "stop learning after so many minutes (0: never)")

    RANGES: ClassVar[Mapping[str, tuple[float, float]]] = {
        "players": (2, 4),
        "decisions": (1, 10**12),
        "seed": (0, 2**31 - 1),
        "envs": (1, 1 << 20),
        "steps": (1, 1 << 16),
        "batch": (1, 1 << 24),
        "epochs": (1, 1000),
        "learning_rate": (1e-9, 1.0),
        "gamma": (0.0, 1.0),
        "drink_cost": (-10.0, 10.0),
        "shaping": (0.0, 100.0),
        "gae_lambda": (0.0, 1.0),
        "clip": (1e-6, 10.0),
        "entropy": (0.0, 10.0),
        "pass_bias": (-100.0, 100.0),
        "width": (1, 4096),
        "depth": (1, 16),
        "move_width": (0, 4096),
        "past_share": (0.0, 1.0),
        "past_selves": (1, 64),
        "snapshot_every": (1, 10**12),
        "evaluate_every": (1, 10**12),
        "evaluate_games": (1, 10**9),
        "max_turns": (1, 2**31 - 1),
        "threads": (1, 256),
        "minutes": (0.0, 1e6),
    }

    def __post_init__(self) -> None:
        faults = self.range_faults()
        for name in ("heuristics", "baselines"):
            if not getattr(self, name).strip(", "):
                faults.append(f"{name} must name at least one agent")
        if not faults and self.batch > self.envs * self.steps:
            faults.append(
                f"batch must be at most envs x steps = {self.envs * self.steps}, got {self.batch}"
            )
        if faults:
            raise KimbleError("; ".join(faults))

    def found_rules(self) -> Rules:
        """Return the rules to train on, with the cap of stalled games.

        Raises:
            RulesError: rules that cannot be.
        """
        rules = find_rules(self.rules, players=self.players)
        return rules if rules.max_turns is not None else rules.replace(max_turns=self.max_turns)
