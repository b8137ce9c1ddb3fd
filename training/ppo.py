"""Masked PPO (sb3-contrib) on the batched engine, against heuristics and past selves.

The learner's seat rotates over the games; the other seats are played inside ``step`` by a line-up
drawn per game: a heuristic, or a snapshot of the policy itself. A move's reward is all that happens
until the learner's next decision, losses included (-1/(n - 1)).

A run writes one folder::

    config.json         settings, versions, rules hash
    metrics.jsonl       one object per evaluation: decisions, win shares with intervals, speed
    tensorboard/        the same curves and the losses of SB3
    snapshots/00200000/ policies on the way (the past selves)
    checkpoint.zip      to resume from; there whole, old or new, at any moment
    policy/             the trained policy, played by the spec ``net:FOLDER/policy``
    report.html         the curves with their intervals, the last evaluation, settings, versions
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from agents.move_inputs import MoveInputs
from agents.network import Layer, PolicyAgent, load_policy, save_policy
from evaluation import play_match
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.rewards import Shaping
from kimble_env.vector import KimbleVectorEnv
from training.checks import check_ppo
from training.config import PPOConfig
from training.masked_ppo import BatchedPPO, PlainBuffer
from training.move_policy import MovePolicy
from training.progress import ProgressLine
from training.report import write_run_page
from training.sb3_adapter import KimbleVecEnv
from training.settings import settings_help

LIBRARIES = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


def versions() -> dict[str, str]:
    """Return the versions of Python, this project and the libraries that a result depends on."""
    from kimble_env import __version__

    return {
        "python": platform.python_version(),
        "kimble-rl": __version__,
        **{name: version(name) for name in LIBRARIES},
    }


def policy_layers(policy: Any) -> list[Layer]:
    """Return the (weight, bias) of every layer of the policy, from observation to logits."""
    told = isinstance(policy, MovePolicy)
    hidden = policy.policy_net if told else policy.mlp_extractor.policy_net
    return [
        (m.weight.detach().numpy().copy(), m.bias.detach().numpy().copy())
        for m in (*hidden, policy.action_net)
        if isinstance(m, torch.nn.Linear)
    ]


def lineups(
    heuristics: Sequence[str], past: Sequence[Any], share: float
) -> tuple[list[Any], list[float]]:
    """Return the pool of line-ups and how often each is drawn.

    Every line-up is named by one agent, which takes all other seats. Past selves share ``share`` of
    the games, heuristics the rest.
    """
    pool: list[Any] = [*heuristics, *past]
    of_past = share if past else 0.0
    chances = [(1.0 - of_past) / len(heuristics)] * len(heuristics)
    chances += [of_past / len(past)] * len(past) if past else []
    return pool, chances


class Run:
    """One training run: its folder, environment, pool of opponents and measurements."""

    def __init__(self, config: PPOConfig, folder: Path, progress: bool) -> None:
        self.config = config
        self.folder = folder
        self.rules = config.found_rules()
        self.envs = KimbleVectorEnv(
            config.envs,
            self.rules,
            opponents=self._pool(())[0],
            seat="rotate",
            cup_cost=config.drink_cost,
            shaping=Shaping(config.shaping, config.gamma),
            autoreset_mode="SAME_STEP",
            threads=config.threads,
        )
        self.moves = MoveInputs(self.rules) if config.move_width else None
        self.rng = np.random.default_rng([config.seed, 0x505])
        self.line = ProgressLine(config.decisions, "decisions", shown=progress)
        self.last_share: float | None = None
        self.seconds_before = 0.0  # of learning before a run was resumed

    def _pool(self, past: Sequence[Any]) -> tuple[list[Any], list[float]]:
        seats = self.config.players - 1
        pool, chances = lineups(self.config.names("heuristics"), past, self.config.past_share)
        return [[one] * seats for one in pool], chances

    def snapshots(self) -> list[Path]:
        """Return the folders of the snapshots so far, oldest first."""
        return sorted((self.folder / "snapshots").glob("*/policy.json"))

    def refresh_opponents(self) -> None:
        """Put the newest snapshot and a draw of older ones into the pool."""
        found = [path.parent for path in self.snapshots()]
        if not found:
            return
        older = found[:-1]
        count = min(self.config.past_selves - 1, len(older))
        chosen = [older[k] for k in sorted(self.rng.choice(len(older), count, replace=False))]
        past = [load_policy(place, self.rules, sample=True) for place in [*chosen, found[-1]]]
        pool, chances = self._pool(past)
        self.envs.set_opponents(pool, chances)

    def save_policy(self, model: BatchedPPO, place: Path) -> PolicyAgent:
        """Write the policy as it is now to a folder, and return the agent that plays it."""
        save_policy(
            place,
            self.rules,
            policy_layers(model.policy),
            "relu",
            moves=self.moves.names if self.moves is not None else (),
            move_weights=model.policy.move_weights() if self.moves is not None else None,
            players=self.config.players,
            decisions=int(model.num_timesteps),
            training=dataclasses.asdict(self.config),
            versions=versions(),
        )
        return load_policy(place, self.rules)

    def evaluate(self, agent: PolicyAgent, decisions: int, seconds: float) -> dict[str, Any]:
        """Play the policy against each baseline; append the figures to metrics.jsonl."""
        row: dict[str, Any] = {"decisions": decisions, "seconds": round(seconds, 1), "against": {}}
        for baseline in self.config.names("baselines"):
            result = play_match(
                [agent, *[baseline] * (self.config.players - 1)],
                self.rules,
                self.config.evaluate_games,
                seed=self.config.seed,
            )
            row["against"][baseline] = {
                "games": result.games,
                "win_share": result.share(0),
                "interval95": list(result.wilson(0)),
                "truncated_share": result.truncated / result.games,
            }
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.last_share = row["against"][self.config.names("baselines")[0]]["win_share"]
        return row


class RunCallback(BaseCallback):
    """Between updates: progress, snapshots, evaluations, checkpoints, and the end of the time."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.started = time.perf_counter()
        self.paused = 0.0
        self._next_snapshot = self._next_evaluation = 0
        self._time_is_up = False

    def _on_training_start(self) -> None:
        config, done = self.run.config, self.model.num_timesteps
        self._next_snapshot = (done // config.snapshot_every + 1) * config.snapshot_every
        self._next_evaluation = (done // config.evaluate_every + 1) * config.evaluate_every
        if done == 0:
            self.measure()
            save_checkpoint(self.run, self.model)

    def _on_step(self) -> bool:
        if self.n_calls % 8 == 0:
            self._show()
        return not self._time_is_up

    def _show(self) -> None:
        share = self.run.last_share
        name = self.run.config.names("baselines")[0]
        note = "" if share is None else f"last won {100 * share:.1f} % v {name}"
        minutes = self.run.config.minutes
        limit = 60 * minutes - self.learning_seconds() if minutes else math.inf
        self.run.line.update(self.model.num_timesteps, note, max(limit, 0.0))

    def _on_rollout_start(self) -> None:
        config, done, due = self.run.config, self.model.num_timesteps, False
        if done >= self._next_snapshot:
            self._next_snapshot += config.snapshot_every
            self.run.save_policy(self.model, self.run.folder / "snapshots" / f"{done:012d}")
            self.run.refresh_opponents()
            due = True
        if done >= self._next_evaluation:
            self._next_evaluation += config.evaluate_every
            self.measure()
            due = True
        if due:
            save_checkpoint(self.run, self.model)

    def _on_rollout_end(self) -> None:
        minutes = self.run.config.minutes
        # The update of this rollout is still made; the first step of the next one ends learning.
        self._time_is_up = bool(minutes) and self.learning_seconds() >= 60 * minutes

    def learning_seconds(self) -> float:
        """Seconds of learning since this process started it, evaluations left out."""
        return time.perf_counter() - self.started - self.paused

    def measure(self) -> None:
        """Keep the policy as it is now, and judge it: metrics.jsonl and TensorBoard get a point."""
        before = time.perf_counter()
        agent = self.run.save_policy(self.model, self.run.folder / "policy")
        seconds = self.run.seconds_before + self.learning_seconds()
        row = self.run.evaluate(agent, int(self.model.num_timesteps), seconds)
        for baseline, figures in row["against"].items():
            self.logger.record(f"evaluation/win_share_v_{baseline}", figures["win_share"])
        self.logger.dump(int(self.model.num_timesteps))
        self.paused += time.perf_counter() - before


def make_model(run: Run, envs: KimbleVecEnv) -> BatchedPPO:
    """Return an untrained model for a run."""
    config = run.config
    told: dict[str, Any] = {}
    if run.moves is not None:
        told = {"moves": run.moves.shape, "move_width": config.move_width, "told": envs.told}
    model = BatchedPPO(
        MovePolicy if told else "MlpPolicy",
        envs,
        learning_rate=lambda left: config.learning_rate * (0.1 + 0.9 * left),
        n_steps=config.steps,
        batch_size=config.batch,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip,
        rollout_buffer_class=PlainBuffer,
        ent_coef=config.entropy,
        policy_kwargs={
            "net_arch": {key: [config.width] * config.depth for key in ("pi", "vf")},
            "activation_fn": torch.nn.ReLU,
            "optimizer_kwargs": {"eps": 1e-5, "fused": True},
            **told,
        },
        tensorboard_log=str(run.folder / "tensorboard"),
        seed=config.seed,
        device="cpu",
    )
    with torch.no_grad():
        model.policy.action_net.bias[run.rules.board.pass_action] = config.pass_bias
    return model


def save_checkpoint(run: Run, model: BatchedPPO) -> None:
    """Replace the checkpoint of a run; it is there whole, old or new, at any moment."""
    temporary = run.folder / "checkpoint.part.zip"
    model.save(temporary)
    os.replace(temporary, run.folder / "checkpoint.zip")


def write_config(config: PPOConfig, folder: Path) -> None:
    """Make the folder of a run if need be, and write its settings and versions."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "config": dataclasses.asdict(config),
        "rules_hash": config.found_rules().hash,
        "versions": versions(),
    }
    write_whole(folder / "config.json", json.dumps(about, indent=1) + "\n")


def train(
    config: PPOConfig | Mapping[str, Any],
    folder: str | Path,
    *,
    resume: bool = False,
    progress: bool = True,
) -> PolicyAgent:
    """Train a policy and return the agent that plays it.

    Ctrl-C keeps the policy and a checkpoint before it ends the training.

    Args:
        config: the settings, or some of them by name.
        folder: where the run is kept; see the page of this module.
        resume: go on from the folder's last checkpoint, with the settings stored there;
            ``decisions``, ``minutes`` and ``threads`` given by name replace them.
        progress: show a line on standard error with rate, time left and the last win share.

    Raises:
        KimbleError: settings or a folder that cannot be used.
        KeyboardInterrupt: after Ctrl-C, when all has been kept.
    """
    place = Path(folder)
    given = dataclasses.asdict(config) if isinstance(config, PPOConfig) else dict(config)
    settings = check_ppo(given, place, resume)
    run = Run(settings, place, progress)  # names every fault before anything is written
    write_config(settings, place)
    torch.set_num_threads(1)  # small networks are several times faster so
    envs = KimbleVecEnv(run.envs, run.moves)
    try:
        _learn(run, envs, resume)
    finally:
        run.line.close()
        envs.close()
    return load_policy(place / "policy", run.rules)


def _learn(run: Run, envs: KimbleVecEnv, resume: bool) -> None:
    """Learn until the decisions or the minutes are used up, and keep what was learned."""
    if resume:
        model = BatchedPPO.load(run.folder / "checkpoint.zip", envs, device="cpu")
        cut_metrics(run.folder, model.num_timesteps)
        run.seconds_before = last_seconds(run.folder)
        run.refresh_opponents()
    else:
        model = make_model(run, envs)
    left = run.config.decisions - model.num_timesteps
    if left <= 0:
        return
    callback = RunCallback(run)
    try:
        model.learn(left, callback, reset_num_timesteps=not resume, tb_log_name="ppo")
    except KeyboardInterrupt:
        run.save_policy(model, run.folder / "policy")
        save_checkpoint(run, model)
        run.line.close()
        print(
            f"interrupted after {model.num_timesteps:,} decisions; the policy and a checkpoint are "
            f"kept. Go on with: kimble train ppo {run.folder} --resume",
            file=sys.stderr,
        )
        raise
    callback.measure()
    save_checkpoint(run, model)
    write_run_page(run.folder, run.rules)
    if model.num_timesteps < run.config.decisions and run.line.shown:
        run.line.close()
        print(
            f"stopped after {run.config.minutes:g} minutes and {model.num_timesteps:,} decisions",
            file=sys.stderr,
        )


def cut_metrics(folder: Path, done: int) -> None:
    """Take away the evaluations after ``done`` decisions, which come again.

    So does the one before the first decision, if that is where a run goes on.
    """
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [line for line in lines if done and json.loads(line)["decisions"] <= done]
    if kept != lines:
        write_whole(path, "".join(f"{line}\n" for line in kept))


def last_seconds(folder: Path) -> float:
    """Return the seconds of learning that the last evaluation of a run tells, 0 without one."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return float(json.loads(lines[-1])["seconds"]) if lines else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m training.ppo``."""
    parser = argparse.ArgumentParser(
        "python -m training.ppo", description="Train a policy with masked PPO."
    )
    parser.add_argument("folder", help="where the run is kept, e.g. runs/first")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    for name, default, text in settings_help(PPOConfig):
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), help=f"{text} ({default})")
    read = vars(parser.parse_args(arguments))
    folder, resume = read.pop("folder"), read.pop("resume")
    given = {name: value for name, value in read.items() if value is not None}
    try:
        agent = train(given, folder, resume=resume)
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"trained: {agent.spec}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
