"""Value learning: TD(lambda) over afterstates, thousands of games in step.

Compiled code (``td_kernel``) plays a window of throws of all games and writes positions and targets
into two big matrices; torch learns from them; the averaged weights go back into the compiled code.

A run writes one folder::

    config.json       settings, versions, rules hash, the command that repeats it
    metrics.jsonl     one object per evaluation: throws, win shares with intervals, speed, stalls
    checkpoint.pt     to resume from; there whole, old or new, at any moment
    value.safetensors, value.json   the averaged weights, played by the spec ``net:FOLDER``
    report.md         what came out
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agents.net_features import feature_count, net_features
from agents.net_kernel import best_action_batch, make_net, make_scratch, play_game_batch
from agents.value_net import Layer, ValueNet, load_net, read_net, write_net
from evaluation.match import player_seats
from evaluation.statistics import wilson
from kimble_env.errors import KimbleError
from kimble_env.features import play_weighted_batch
from kimble_env.files import write_whole
from kimble_env.kernel import (
    RUNNING,
    STATE,
    WON,
    empty_states,
    game_keys,
    new_game_batch,
    put_states,
    take_states,
)
from kimble_env.rules import Rules
from kimble_env.threads import run_slices
from training import td_kernel as kernel
from training.checks import check_td, td_to_resume, vectors
from training.progress import ProgressLine, clock
from training.settings import settings_help
from training.td_config import TDConfig, read_count

LIBRARIES = ("numpy", "numba", "torch", "safetensors")
_CHECKPOINT_SECONDS = 60.0

Floats = npt.NDArray[np.float32]


def versions() -> dict[str, str]:
    """Return the versions of Python, this project and the libraries that a result depends on."""
    import platform
    from importlib.metadata import version

    from kimble_env import __version__

    own = {"python": platform.python_version(), "kimble-rl": __version__}
    return {**own, **{name: version(name) for name in LIBRARIES}}


def commit() -> str | None:
    """Return the commit of the sources, with + if they have been changed; None outside git."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=here, capture_output=True, text=True, check=True, timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


# -------------------------------------------------------------------------------------- the network


class Learner:
    """The network in torch, its averaged weights and its optimiser.

    Args:
        inputs: length of the vectors.
        hidden: units of the two hidden layers.
        seed: of the first weights.
        average: decay of the averaged weights.
        present: columns that say which relative seats take turns.
    """

    def __init__(
        self, inputs: int, hidden: tuple[int, int], seed: int, average: float, present: list[int]
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        sizes = (inputs, *hidden, 4)
        self.params: list[torch.Tensor] = []
        for a, b in pairwise(sizes):
            # few of the first layer's inputs are not zero: some thirty, whatever the board
            fan = 30 if a == inputs else a
            gain = 0.1 if b == 4 else 1.0
            weight = torch.randn(b, a, generator=generator) * gain * math.sqrt(2.0 / fan)
            self.params += [weight.requires_grad_(), torch.zeros(b, requires_grad=True)]
        self.averaged = [p.detach().clone() for p in self.params]
        self.average = average
        self.present = torch.tensor(present)
        self.optimiser = torch.optim.Adam(self.params, lr=1e-3, fused=True)
        self.steps = 0

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits [B, 4] of vectors [B, F]; -1e9 for seats that do not take turns."""
        linear = torch.nn.functional.linear
        h = torch.relu(linear(x, self.params[0], self.params[1]))
        h = torch.relu(linear(h, self.params[2], self.params[3]))
        return linear(h, self.params[4], self.params[5]) + (x[:, self.present] - 1.0) * 1e9

    def learn(self, x: torch.Tensor, y: torch.Tensor, rate: float) -> torch.Tensor:
        """Take one step of Adam on the cross-entropy against soft targets; return the loss."""
        loss = -(y * torch.log_softmax(self.logits(x), 1)).sum(1).mean()
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        self.steps += 1
        decay = min(self.average, (1 + self.steps) / (10 + self.steps))
        with torch.no_grad():
            torch._foreach_lerp_(self.averaged, self.params, 1.0 - decay)
        return loss.detach()

    def layers(self) -> list[Layer]:
        """Return copies of the averaged weights, as models keep them."""
        arrays = [p.numpy().copy() for p in self.averaged]
        return [(arrays[2 * k], arrays[2 * k + 1]) for k in range(3)]

    def put(self, layers: list[Layer]) -> None:
        """Begin with the weights of another network of this shape.

        Raises:
            KimbleError: its layers have other sizes.
        """
        given = [torch.from_numpy(array) for pair in layers for array in pair]
        sizes = [tuple(array.shape) for array in given]
        if sizes != [tuple(p.shape) for p in self.params]:
            expected = [tuple(p.shape) for p in self.params]
            raise KimbleError(
                f"the network to start from has layers of other sizes: {sizes}, not {expected}"
            )
        with torch.no_grad():
            for own, averaged, array in zip(self.params, self.averaged, given, strict=True):
                own.copy_(array)
                averaged.copy_(array)

    def state(self) -> dict[str, Any]:
        """Return all that a later run needs to learn on."""
        return {
            "params": [p.detach() for p in self.params],
            "averaged": self.averaged,
            "optimiser": self.optimiser.state_dict(),
            "steps": self.steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`state` returned."""
        with torch.no_grad():
            for own, given in zip(self.params, state["params"], strict=True):
                own.copy_(given)
            for own, given in zip(self.averaged, state["averaged"], strict=True):
                own.copy_(given)
        self.optimiser.load_state_dict(state["optimiser"])
        self.steps = state["steps"]


def _start_layers(name: str) -> list[Layer]:
    """Return the weights of a network of any rules and number of players on this board."""
    return load_net(name).layers


def present_columns(rules: Rules) -> list[int]:
    """Return the columns of the inputs that say which relative seats take turns."""
    from agents.net_features import feature_names

    names = feature_names(rules)
    return [names.index(f"seat {k} plays") for k in range(4)]


# --------------------------------------------------------------------------------------- the games


class Lesson(NamedTuple):
    """A window that has been played and waits to be learned from."""

    window: int
    x: Floats  # [rows, F]
    y: Floats  # [rows, 4]


class Games:
    """All games in step, with who decides in them.

    Args:
        config: settings.
        rules: the rules played.
        layers: the first weights.
    """

    def __init__(self, config: TDConfig, rules: Rules, layers: list[Layer]) -> None:
        self.config, self.rules = config, rules
        self.weights = vectors(config.names("heuristics"), rules)
        self.plays = np.zeros(4, np.int8)
        self.plays[list(rules.seats)] = 1
        n = config.games
        self.states = empty_states(n)
        self.control = np.zeros((n, 4), np.int16)
        self.episodes = np.zeros(n, np.int64)
        self.stats = np.zeros((n, kernel.STATS), np.int64)
        self.pool: list[list[Layer]] = []
        self.layers = layers
        self.net = make_net([layers])
        self._tapes: dict[int, kernel.Tape] = {}
        self.x, self.y = self._matrices()
        tape = self._tape(0)
        kernel.begin_all(
            self.states, rules.array, self.plays, self.control, self.episodes, 0,
            len(self.weights), self._settings(0), tape,
        )

    def _matrices(self) -> tuple[Floats, Floats]:
        rows, inputs = self.config.rows, feature_count(self.rules)
        return np.empty((rows, inputs), np.float32), np.empty((rows, 4), np.float32)

    def hand_over(self, spare: Lesson | None) -> tuple[Floats, Floats]:
        """Return ``x`` and ``y``; the next window is written to those of ``spare``, or to new."""
        full = self.x, self.y
        self.x, self.y = (spare.x, spare.y) if spare is not None else self._matrices()
        return full

    def _tape(self, start: int) -> kernel.Tape:
        if start not in self._tapes:
            self._tapes[start] = kernel.make_tape(self.net, self.config.window)
        return self._tapes[start]

    def _settings(self, window: int) -> kernel.Settings:
        c = self.config
        return kernel.Settings(
            np.uint64(c.seed), np.float32(c.lam), np.int64(round(c.explore * 65536)),
            np.int64(round(c.others * 65536)), np.int64(c.cap), np.int64(c.stride),
            np.int64(window % c.stride),
        )

    def take(self, layers: list[Layer]) -> None:
        """Let the learner play with other weights from now on."""
        self.layers = layers
        self.net = make_net([layers, *self.pool])

    def remember(self, layers: list[Layer]) -> None:
        """Put a snapshot into the pool; the oldest goes. Games keep the places of their pool."""
        if self.config.snapshots:
            self.pool = [layers, *self.pool][: self.config.snapshots]
            self.take(self.layers)

    def play(self, window: int) -> None:
        """Play a window; positions and targets are then in ``x`` and ``y``."""
        r, settings = self.rules.array, self._settings(window)
        kept = self.config.window // self.config.stride

        def part(a: int, b: int) -> None:
            kernel.play_window(
                self.states[a:b], r, self.plays, self.control[a:b], self.episodes[a:b], a,
                self.net.params, self.weights, settings, self._tape(a), self.x[a * kept : b * kept],
                self.y[a * kept : b * kept], self.stats[a:b],
            )

        run_slices(part, self.config.games, self.config.threads)

    def state(self) -> dict[str, Any]:
        """Return all that a later run needs to play on."""
        return {
            "states": self.states.tobytes(),
            "control": self.control.copy(),
            "episodes": self.episodes.copy(),
            "stats": self.stats.copy(),
            "pool": self.pool,
            "layers": self.layers,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`state` returned."""
        self.states[:] = np.frombuffer(state["states"], STATE)
        self.control[:] = state["control"]
        self.episodes[:] = state["episodes"]
        self.stats[:] = state["stats"]
        self.pool = state["pool"]
        self.take(state["layers"])


_WARMUP_STEP = 4  # throws between two positions of a game that are learned from


def outcomes(
    rules: Rules, weights: np.ndarray[Any, Any], games: int, seed: int, cap: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Play games of weight vectors and return positions with who won.

    A net that knows nothing passes for ever; this tells it how games end. Every seat of every game
    draws one of the vectors. Games that reach the cap are left out.

    Returns:
        float32 [S, F] inputs and float32 [S, 4] results by relative seat.
    """
    rng = np.random.default_rng([seed, 0x3A])
    keys = np.empty(games, np.uint64)
    game_keys(np.uint64(seed), 1 << 40, keys)
    states, plays = empty_states(games), np.zeros((games, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    seating = rng.integers(len(weights), size=(games, 4)).astype(np.int8)
    met: list[tuple[Any, Any]] = []
    going = np.arange(games)
    while len(going):
        now = take_states(states, going)
        met.append((going, now.copy()))
        play_weighted_batch(now, rules.array, weights, seating[going], _WARMUP_STEP)
        put_states(states, going, now)
        going = going[(now["status"] == RUNNING) & (now["plies"] < cap)]
    winner = states["winner"].astype(np.int64)
    number = np.concatenate([part for part, _ in met])
    positions = np.concatenate([part for _, part in met])
    good = winner[number] >= 0
    number, positions = number[good], take_states(positions, np.flatnonzero(good))
    x = net_features(positions, rules.array, feature_count(rules))
    y = np.zeros((len(x), 4), np.float32)
    y[np.arange(len(x)), (winner[number] - positions["seat"]) & 3] = 1.0
    return x, y


# ------------------------------------------------------------------------------------------ judging


def judge(
    layers: list[Layer],
    rules: Rules,
    spec: str,
    games: int,
    seed: int,
    cap: int,
    threads: int,
    *,
    reverse: bool = False,
) -> dict[str, Any]:
    """Play one network against the others at the table, all seat rotations on equal dice.

    The same games as ``evaluation.play_match`` of the network against a weight vector, compiled.
    ``reverse``: one weight vector against networks.

    Returns:
        games, win_share, interval95 (Wilson), cut_off.
    """
    n = rules.players
    blocks = -(-games // n)
    keys = np.empty(blocks, np.uint64)
    game_keys(np.uint64(seed), 0, keys)
    states = empty_states(blocks)
    plays = np.zeros((blocks, 4), np.int8)
    plays[:, list(rules.seats)] = 1
    new_game_batch(states, rules.array, plays, keys, np.empty((0, 2), np.int8))
    states = take_states(states, np.repeat(np.arange(blocks), n))
    seating = np.full((blocks * n, 4), 0 if reverse else -1, np.int16)
    # in rotation k the first agent sits at place (n - k) mod n, as in a match
    places = [player_seats(rules)[-k % n][0] for k in range(n)]
    own = np.tile(places, blocks)
    seating[np.arange(blocks * n), own] = -1 if reverse else 0
    net, weights = make_net([layers]), vectors([spec], rules)
    run_slices(
        lambda a, b: play_game_batch(
            states[a:b], rules.array, net.params, weights, seating[a:b], cap, make_scratch(net)
        ),
        len(states),
        threads,
    )
    won = (states["status"] == WON) & (states["winner"] == own)
    stalled = int((states["status"] != WON).sum())
    wins = float(won.sum()) + stalled / n
    low, high = wilson(wins, len(states))
    return {
        "games": len(states), "win_share": wins / len(states), "interval95": [low, high],
        "cut_off": stalled,
    }


class ExactLoss:
    """Loss per decision on the committed decisions with exact values, where there are any."""

    def __init__(self, rules: Rules, most: int = 20_000) -> None:
        from agents.exact.decisions import read_decisions, set_path

        self.set = None
        self.rules = rules
        if len(rules.seats) == 2 and (rules.seats[1] - rules.seats[0]) % 4 == 2:
            if set_path(rules).exists():
                self.set = read_decisions(rules)
                self.positions = take_states(self.set.positions, np.arange(most))

    def measure(self, layers: list[Layer]) -> float | None:
        """Return the mean loss in thousandths of win probability (mWP), None without a set."""
        if self.set is None:
            return None
        net, out = make_net([layers]), np.empty(len(self.positions), np.int16)
        best_action_batch(self.positions, self.rules.array, net.params, make_scratch(net), out)
        win = self.set.win[: len(out)]
        lost = np.nanmax(win, axis=1) - win[np.arange(len(out)), out]
        return float(1000 * lost.mean())


# ------------------------------------------------------------------------------------------ the run


class Run:
    """One run: games, learner, folder and measurements."""

    def __init__(self, config: TDConfig, folder: Path, shown: bool) -> None:
        self.config, self.folder = config, folder
        self.rules = config.found_rules()
        present = present_columns(self.rules)
        hidden = (config.hidden, config.hidden2)
        inputs = feature_count(self.rules)
        self.learner = Learner(inputs, hidden, config.seed, config.average, present)
        if config.start:
            self.learner.put(_start_layers(config.start))
        self.games = Games(config, self.rules, self.learner.layers())
        self.exact = ExactLoss(self.rules)
        self.window = 0
        self.lesson: Lesson | None = None  # with a lag: the last window played
        self.teacher = ThreadPoolExecutor(1, "learning")
        self.loss = math.nan
        self.seconds = {"play": 0.0, "learn": 0.0, "judge": 0.0}
        self.cpu = 0.0
        self.kept = 0  # windows behind the last checkpoint
        self.line = ProgressLine(config.windows * self.per_window, "throws", shown=shown)
        self.note = ""

    @property
    def per_window(self) -> int:
        """Throws of a window."""
        return self.config.games * self.config.window

    def warm_up(self) -> None:
        """Learn first who wins games between random players and heuristics."""
        c = self.config
        if not c.warmup or c.start:
            return
        x, y = outcomes(self.rules, self.games.weights, c.warmup, c.seed, c.cap)
        order = np.random.default_rng([c.seed, 0x3B]).permutation(len(x))
        tx, ty = torch.from_numpy(x), torch.from_numpy(y)
        for start in range(0, len(order) - c.batch + 1, c.batch):
            part = torch.from_numpy(order[start : start + c.batch])
            self.learner.learn(tx[part], ty[part], c.learning_rate)
        self.games.take(self.learner.layers())

    def rate(self, window: int) -> float:
        """Return Adam's step in a window."""
        c, share = self.config, window / self.config.windows
        return c.last_rate + (c.learning_rate - c.last_rate) * (1 + math.cos(math.pi * share)) / 2

    def step(self) -> None:
        """Play a window and learn: from it, or with a lag meanwhile from the one before."""
        start, cpu = time.perf_counter(), time.process_time()
        waiting = self.lesson
        learning: Future[None] | None = None
        if waiting is not None:
            learning = self.teacher.submit(self._learn, waiting)
        self.games.play(self.window)
        middle = time.perf_counter()
        if learning is not None:
            learning.result()
        self.advance(waiting)
        self.seconds["play"] += middle - start
        self.seconds["learn"] += time.perf_counter() - middle
        self.cpu += time.process_time() - cpu

    def advance(self, spare: Lesson | None = None) -> None:
        """Learn from what has been played, or with a lag put it by; the newest weights play on.

        Args:
            spare: a lesson learned, whose matrices are free.
        """
        if self.config.lag:
            self.lesson = Lesson(self.window, *self.games.hand_over(spare))
        else:
            self._learn(Lesson(self.window, self.games.x, self.games.y))
        self.window += 1
        self.games.take(self.learner.layers())

    def catch_up(self) -> None:
        """Learn from the window that still waits."""
        if self.lesson is not None:
            self._learn(self.lesson)
            self.lesson = None
            self.games.take(self.learner.layers())

    def _learn(self, lesson: Lesson) -> None:
        x, y = torch.from_numpy(lesson.x), torch.from_numpy(lesson.y)
        order = np.random.default_rng([self.config.seed, lesson.window]).permutation(len(x))
        rate, losses = self.rate(lesson.window), []
        for start in range(0, len(order) - self.config.batch + 1, self.config.batch):
            part = torch.from_numpy(order[start : start + self.config.batch])
            losses.append(self.learner.learn(x[part], y[part], rate))
        self.loss = float(torch.stack(losses).mean())
        if not math.isfinite(self.loss):
            raise KimbleError(f"training broke in window {lesson.window}: the loss is {self.loss}")

    def every(self, setting: str) -> int:
        """Return how many windows lie between two evaluations or snapshots."""
        throws = getattr(self.config, setting) or self.config.throws // 20
        return max(1, round(throws / self.per_window))

    def measure(self) -> dict[str, Any]:
        """Play against the baselines; add a line to ``metrics.jsonl`` and return it."""
        start, c = time.perf_counter(), self.config
        layers = self.learner.layers()
        against = {
            name: judge(layers, self.rules, name, c.evaluate_games, 7, 5000, c.threads)
            for name in c.names("baselines")
        }
        stats = self.games.stats.sum(axis=0)
        throws = self.window * self.per_window
        learning = self.seconds["play"] + self.seconds["learn"]
        row = {
            "throws": throws,
            "seconds": round(learning, 2),
            "cpu_seconds": round(self.cpu, 2),
            "throws_per_second": round(throws / learning),
            "throws_per_cpu_second": round(throws / self.cpu),
            "loss": self.loss,
            "learning_rate": self.rate(self.window),
            "steps": self.learner.steps,
            "games": int(stats[kernel.GAMES]),
            "cut_off": int(stats[kernel.CAPPED]),
            "rows_per_throw": round(stats[kernel.ROWS] / throws, 3),
            "explored": int(stats[kernel.EXPLORED]),
            "traces_cut": int(stats[kernel.CUT]),
            "exact_loss_mwp": self.exact.measure(layers),
            "against": against,
        }
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        parts = [f"{name} {100 * found['win_share']:.1f} %" for name, found in against.items()]
        if row["exact_loss_mwp"] is not None:
            parts.append(f"loss {row['exact_loss_mwp']:.2f} mWP")
        self.note = "v " + ", ".join(parts)
        self.seconds["judge"] += time.perf_counter() - start
        return row

    def save(self) -> None:
        """Write the checkpoint and the averaged weights."""
        state = {
            "learner": self.learner.state(),
            "games": self.games.state(),
            "window": self.window,
            "lesson": self.lesson and tuple(self.lesson),
            "seconds": self.seconds,
            "cpu": self.cpu,
        }
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self.write_net()
        write_whole(self.folder / "checkpoint.pt", buffer.getvalue())
        self.kept = self.window

    def write_net(self) -> None:
        """Write the averaged weights as a model."""
        about = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        write_net(
            self.folder / "value", self.rules, self.learner.layers(),
            training={"method": "TD(lambda) over afterstates",
                      "throws": self.window * self.per_window, **about},
        )

    def restore(self) -> None:
        """Take up the checkpoint; later lines of the metrics go.

        Raises:
            KimbleError: there is none, or it is damaged.
        """
        path = self.folder / "checkpoint.pt"
        try:
            state = torch.load(path, weights_only=False)
        except FileNotFoundError:
            raise KimbleError(f"nothing to resume: no {path}") from None
        except Exception as error:
            raise KimbleError(f"{path} is damaged: {error!r}") from error
        self.kept = state["window"]
        self.learner.restore(state["learner"])
        self.games.restore(state["games"])
        self.window, self.seconds, self.cpu = state["window"], state["seconds"], state["cpu"]
        self.lesson = Lesson(*state["lesson"]) if state["lesson"] else None
        metrics = self.folder / "metrics.jsonl"
        if metrics.exists():
            lines = metrics.read_text(encoding="utf-8").splitlines()
            done = self.window * self.per_window
            kept = [line for line in lines if json.loads(line)["throws"] <= done]
            write_whole(metrics, "".join(f"{line}\n" for line in kept))

    def loop(self) -> None:
        """Learn to the end."""
        saved = time.perf_counter()
        judged, remembered = self.every("evaluate_every"), self.every("snapshot_every")
        if self.window == 0:
            self.warm_up()
        while self.window < self.config.windows:
            self.step()
            if self.window % remembered == 0:
                self.games.remember(self.learner.layers())
            last = self.window == self.config.windows
            if last:
                self.catch_up()
            due = last or self.window % judged == 0
            if due:
                self.measure()
            if due or time.perf_counter() - saved > _CHECKPOINT_SECONDS:
                self.save()
                saved = time.perf_counter()
            self.line.update(self.window * self.per_window, self.note)
        self.line.close()


def rates(config: TDConfig, seconds: float = 4.0) -> dict[str, float]:
    """Learn for some seconds on the side and return the throws per second and per CPU second."""
    run = Run(config, Path("."), shown=False)
    run.step()
    run.seconds, run.cpu, first = {"play": 0.0, "learn": 0.0, "judge": 0.0}, 0.0, run.window
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        run.step()
    throws = (run.window - first) * run.per_window
    taken = run.seconds["play"] + run.seconds["learn"]
    return {"second": throws / taken, "cpu_second": throws / run.cpu}


def train(config: TDConfig, folder: str | Path, *, progress: bool = True) -> ValueNet:
    """Learn by the settings, write the run folder, return the network.

    Raises:
        KimbleError: settings that cannot be, or a folder with another run in it.
    """
    place = Path(folder)
    check_td(config, place)
    torch.set_num_threads(1)  # the threads of torch spin: for matrices this small they only cost
    if config.minutes:
        speed = rates(config)["second"]
        throws = max(1, round(speed * 60 * config.minutes / 1e5)) * 100_000
        config = dataclasses.replace(config, throws=throws, minutes=0.0)
        if progress:
            print(
                f"{speed:,.0f} throws a second, so {throws:,} throws; --throws {throws} repeats it",
                file=sys.stderr,
            )
    run = Run(config, place, progress)
    place.mkdir(parents=True, exist_ok=True)
    about = {
        "settings": dataclasses.asdict(config),
        "command": config.command(),
        "rules_hash": run.rules.hash,
        "versions": versions(),
        "commit": commit(),
    }
    write_whole(place / "config.json", json.dumps(about, indent=1) + "\n")
    return _finish(run)


def resume(folder: str | Path, *, progress: bool = True) -> ValueNet:
    """Go on with a run from its last checkpoint, or from the start if it has none.

    Raises:
        KimbleError: no run there, or a damaged one.
    """
    place = Path(folder)
    config = td_to_resume(place)
    torch.set_num_threads(1)  # the threads of torch spin: for matrices this small they only cost
    run = Run(config, place, progress)
    if (place / "checkpoint.pt").exists():
        run.restore()
    else:
        if progress:
            print(f"{place} has no checkpoint yet: from the start", file=sys.stderr)
        if (place / "metrics.jsonl").exists():
            write_whole(place / "metrics.jsonl", "")
    return _finish(run)


def _finish(run: Run) -> ValueNet:
    try:
        run.loop()
    except KeyboardInterrupt:
        run.line.close()
        kept = f"{run.kept * run.per_window:,} throws are kept" if run.kept else "nothing is kept"
        again = f"go on with: kimble train td {run.folder} --resume"
        print(f"interrupted; {kept}; {again}", file=sys.stderr)
        raise
    write_whole(run.folder / "report.md", report(run.folder))
    return read_net(run.folder / "value", f"net:{run.folder}", run.rules)


def report(folder: Path) -> str:
    """Return the final report of a run as Markdown: the settings, the curve, the speed."""
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    settings, last = about["settings"], rows[-1]
    names = list(last["against"])
    out = [
        f"# Value learning: {settings['rules']}, {settings['players']} players",
        "",
        f"`{about['command']}` at commit {about['commit']}; {last['throws']:,} throws in "
        f"{clock(last['seconds'])} ({last['throws_per_second']:,} a second, "
        f"{last['throws_per_cpu_second']:,} a CPU second); {last['cut_off']} of {last['games']:,} "
        f"games were cut off after {settings['cap']} throws.",
        "",
        "| throws | " + " | ".join(f"wins v {name} %" for name in names) + " | exact loss, mWP |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for row in rows:
        cells = []
        for name in names:
            found = row["against"][name]
            low, high = found["interval95"]
            share = 100 * found["win_share"]
            cells.append(f"{share:.1f} ({100 * low:.1f} to {100 * high:.1f})")
        lost = row["exact_loss_mwp"]
        cells.append("–" if lost is None else f"{lost:.2f}")
        out.append(f"| {row['throws']:,} | " + " | ".join(cells) + " |")
    games = last["against"][names[0]]["games"] if names else 0
    out += ["", f"95 % Wilson intervals, {games:,} games a figure, all seats, equal dice."]
    return "\n".join(out) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m training.td``."""
    parser = argparse.ArgumentParser("python -m training.td", description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="where the run is kept")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    for name, default, text in settings_help(TDConfig):
        kind = read_count if isinstance(default, int) else type(default)
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, default=default, help=f"{text} ({default})"
        )
    given = vars(parser.parse_args(arguments))
    folder, again = given.pop("folder"), given.pop("resume")
    try:
        if again:
            resume(folder)
        else:
            train(TDConfig(**given), folder)
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; go on with --resume {folder}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
