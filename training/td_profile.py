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
    play, learn = [], []
    for _ in range(windows):
        start = time.process_time()
        run.games.play(run.window)
        middle = time.process_time()
        run.advance()
        play.append(middle - start)
        learn.append(time.process_time() - middle)
    done = run.games.stats[:, kernel.ROWS].sum() - rows
    rows_per_throw = float(done) / (windows * run.per_window)
    inputs, network = _row_costs(run)
    per = {
        "play": 1e6 * float(np.median(play)) / run.per_window,
        "torch": 1e6 * float(np.median(learn)) / run.per_window,
    }
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


def _row_costs(run: Run, repeats: int = 20) -> tuple[float, float]:
    """Return microseconds of CPU that the inputs and the network of one position cost."""
    states = take_states(run.games.states)
    net, r = run.games.net, run.rules.array
    x = np.empty((len(states), feature_count(run.rules.board)), np.float32)
    out, scratch = np.empty((len(states), 4), np.float32), make_scratch(net)
    inputs = scratch_inputs()
    times: list[list[float]] = []
    for _ in range(repeats + 1):
        start = time.process_time()
        net_features_batch(states, r, *inputs, x)
        middle = time.process_time()
        win_chances_batch(states, r, net.params, scratch, out)
        times.append([middle - start, time.process_time() - middle])
    first, both = 1e6 * np.median(times[1:], axis=0) / len(states)
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
