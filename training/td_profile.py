"""Where the time of value learning goes: rules, inputs, network, torch; per throw, in CPU seconds.

    kimble train td runs/x --players 4 --profile

Windows are played and learned from with a network that has learned for a moment, and their CPU time
is taken. What inputs and network cost is measured apart, on positions of the same games, and
multiplied by the rows that the windows needed; the rest of play is the rules: throwing, moving,
copying positions. Medians are taken. CPU time is the sum over all threads, so it holds on a busy
machine too, but for what its neighbours take away in cache and in shared cores.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.net_features import feature_count, net_features_batch, scratch_inputs
from agents.net_kernel import make_scratch, win_chances_batch
from kimble_env.kernel import take_states
from training import td_kernel as kernel
from training.td import Run
from training.td_config import TDConfig

_REPEATS = 4  # passes over the games' positions per measurement
_WARM = 40  # windows before the clock starts: games have spread over all stages by then


def profile(config: TDConfig, windows: int = 20) -> dict[str, Any]:
    """Return microseconds of CPU per throw by part, and throws per CPU second.

    Args:
        config: settings; nothing is written.
        windows: windows that are timed.
    """
    torch.set_num_threads(1)
    run = Run(config, Path("."), shown=False)
    run.warm_up()
    for _ in range(_WARM):
        run.step()
    rows = run.games.stats[:, kernel.ROWS].sum()
    times = []
    costs = _RowCosts(run)
    for _ in range(windows):  # one after the other, so that neighbours disturb all alike
        start = time.process_time()
        run.games.play(run.window)
        middle = time.process_time()
        run.advance()
        end = time.process_time()
        times.append([middle - start, end - middle])
        costs.measure()
    done = run.games.stats[:, kernel.ROWS].sum() - rows
    rows_per_throw = float(done) / (windows * run.per_window)
    play, learn = 1e6 * np.median(times, axis=0) / run.per_window
    per = {"play": float(play), "torch": float(learn)}
    inputs, network = costs.medians()
    parts = {
        "rules": max(per["play"] - rows_per_throw * (inputs + network), 0.0),
        "inputs": rows_per_throw * inputs,
        "network": rows_per_throw * network,
        "torch": per["torch"],
    }
    total = sum(per.values())
    return {
        "rules": str(run.rules),
        "players": run.rules.players,
        "microseconds_per_throw": {**{k: round(v, 3) for k, v in parts.items()},
                                   "all": round(total, 3)},
        "share": {k: round(v / total, 3) for k, v in parts.items()},
        "rows_per_throw": round(rows_per_throw, 2),
        "throws_per_cpu_second": round(1e6 / total),
        "windows": windows,
    }


class _RowCosts:
    """What the inputs and the network of one position cost, on the positions of the games."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.x = np.empty((run.config.games, feature_count(run.rules)), np.float32)
        self.out = np.empty((run.config.games, 4), np.float32)
        self.inputs, self.scratch = scratch_inputs(), make_scratch(run.games.net)
        self.times: list[list[float]] = []
        self.measure()
        self.times.clear()  # that was the compiler

    def measure(self) -> None:
        """Take the CPU time of both for where the games stand now."""
        states, r = take_states(self.run.games.states), self.run.rules.array
        params = self.run.games.net.params
        start = time.process_time()
        for _ in range(_REPEATS):
            net_features_batch(states, r, *self.inputs, self.x)
        middle = time.process_time()
        for _ in range(_REPEATS):
            win_chances_batch(states, r, params, self.scratch, self.out)
        self.times.append([middle - start, time.process_time() - middle])

    def medians(self) -> tuple[float, float]:
        """Return microseconds of CPU for the inputs and for the network of a position."""
        first, both = 1e6 * np.median(self.times, axis=0) / _REPEATS / len(self.out)
        return float(first), float(max(both - first, 0.0))


def table(found: dict[str, Any]) -> str:
    """Return a profile as text."""
    lines = [f"{found['rules']}, {found['players']} players: CPU time of a throw"]
    parts = found["microseconds_per_throw"]
    for name, text in (
        ("rules", "throwing, moving, copying positions"),
        ("inputs", "what the network sees of the positions"),
        ("network", "the network, compiled"),
        ("torch", "learning"),
    ):
        lines.append(
            f"  {name:<8} {parts[name]:7.2f} us  {100 * found['share'][name]:5.1f} %  {text}"
        )
    lines.append(
        f"  all      {parts['all']:7.2f} us          {found['rows_per_throw']} network rows a "
        f"throw, {found['throws_per_cpu_second']:,} throws a CPU second"
    )
    return "\n".join(lines)
