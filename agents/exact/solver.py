"""Solving the two-seat game layer by layer, with checkpoints.

The stretch masks of both seats only grow, so layers (pairs of masks) are solved from the most
advanced down, each by sweeps (``layers.py``) until nothing changes by more than the tolerance.

Modes:
    value: all values start from 1/2; endless play, possible where passing is allowed, then counts
        1/2 to each seat. Two seats opposite each other have the same table, so one of (S, T) and
        (T, S) is solved and the other is its transpose. Where both seats would rather pass than
        move, any value in a range would satisfy the equations, and what the first sweeps happen to
        find there would stay. So the first sweeps charge a pass by choice with a small chance of
        ending the game as a draw (``tolls``), which leaves one solution only, and take it back.
    lower, upper: seat a starts from 0 and seat b from 1, or the other way round: endless play
        counts as lost (won) for seat a. The true value lies between the two, and where they meet
        they are its certificate. All pairs of masks are solved.
"""

from __future__ import annotations

import contextlib
import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agents.exact.blockfile import check_blocks, map_blocks, read_header, write_blocks
from agents.exact.encoding import Encoding
from agents.exact.errors import TableError
from agents.exact.layers import Blocks, Layer, Pair, Tolls
from agents.exact.telling import SECONDS_BETWEEN_LINES, Say
from agents.exact.transitions import SeatMoves, check_supported
from agents.exact.units import SeatUnits, UnitLayer, check_units
from kimble_env._jit import NOTE
from kimble_env.rules import Rules, find_rules
from kimble_env.threads import check_threads

START = {"value": (0.5, 0.5), "lower": (0.0, 1.0), "upper": (1.0, 0.0)}
MOST_SWEEPS = 20_000
DEFAULT_TOLERANCE = {1: 1e-12, 2: 1e-11, 3: 1e-8, 4: 1e-6}
TOLLS: Tolls = ((0.05, 1e-2), (0.005, 1e-3))
ENCODING = "masks x colex ranks, 1"
LEAST_SECONDS, LEAST_SHARE = 2.0, 0.01
"""Sweeps of so many seconds, over so large a share of all cells, tell how long the rest takes."""


@dataclass
class Statistics:
    """What a solve took: ``sweeps`` is the mean over cells, ``most_sweeps`` that of a layer."""

    cells: int = 0
    cell_sweeps: int = 0
    most_sweeps: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_bytes: int = 0
    layers: int = 0
    resumed: int = 0
    largest_change: float = 0.0

    @property
    def sweeps(self) -> float:
        return self.cell_sweeps / max(self.cells, 1)


@dataclass
class Solver:
    """Solve one game of two seats.

    Args:
        rules: rules with exactly two seats.
        mode: "value", "lower" or "upper".
        tolerance: largest change of a value in the last sweep of each layer (default by pieces).
        threads: sweeps that run at once; the result depends on it only within the tolerance.
        folder: for checkpoints; without one the layers stay in memory.
        tolls: with passing allowed and mode "value", see ``Layer.solve`` and the module's page.
        save_seconds: how often a long layer is saved before it is done.
        say: called with a line of progress.

    Raises:
        RulesError: options that the solver does not know.
    """

    rules: Rules
    mode: str = "value"
    tolerance: float | None = None
    threads: int = 1
    folder: Path | None = None
    tolls: Tolls = TOLLS
    save_seconds: float = 1200.0
    say: Say | None = None
    statistics: Statistics = field(default_factory=Statistics)

    def __post_init__(self) -> None:
        if self.mode not in START:
            raise TableError(f"mode must be one of {', '.join(START)}, got {self.mode!r}")
        # Norske has units and a home; the two kinds of solvers share all but moves and sweeps.
        check_units(self.rules) if self.rules.home else check_supported(self.rules)
        kind: Any = SeatUnits if self.rules.home else SeatMoves
        first, second = self.rules.seats
        self.a, self.b = kind(self.rules, first, second), kind(self.rules, second, first)
        self.encoding: Encoding = self.a.encoding
        self.dtype = value_type(self.rules)
        if self.tolerance is None:
            self.tolerance = DEFAULT_TOLERANCE[self.rules.pieces]
        if not 0.0 <= self.tolerance < 1.0:
            raise TableError(f"tolerance must lie between 0 and 1, got {self.tolerance}")
        self.threads = check_threads(self.threads)
        ring = self.rules.board.ring
        same = 2 * self.rules.array[4 * first + second] == ring  # the seats see each other alike
        self.opposite = bool(same)
        self.symmetric = self.opposite and self.mode == "value"
        self._memory: dict[tuple[int, int], Pair] = {}
        self._prepared = False
        self._checked: set[tuple[int, int]] = set()
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    # ------------------------------------------------------------------------------- checkpoints

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must have been made for."""
        return {
            "kind": "layer",
            "rules": str(self.rules),
            "rules_hash": self.rules.hash,
            "pieces": self.rules.pieces,
            "seats": list(self.rules.seats),
            "encoding": ENCODING,
            "mode": self.mode,
            "tolerance": self.tolerance,
            "tolls": [list(pair) for pair in self.tolls],
            "dtype": self.dtype.name,
        }

    def path(self, x: int, y: int, done: bool = True) -> Path:
        """Return the file of a layer (indices into ``encoding.masks``)."""
        assert self.folder is not None
        return self.folder / f"layer-{x:02d}-{y:02d}{'' if done else '-unfinished'}.bin"

    def pairs(self) -> list[tuple[int, int]]:
        """Return the layers in the order of solving."""
        n = len(self.encoding.masks)
        return [
            (x, y)
            for x in range(n - 1, -1, -1)
            for y in range(n - 1, -1, -1)
            if not self.symmetric or y <= x
        ]

    def all_pairs(self) -> list[tuple[int, int]]:
        """Return every layer in the order of solving."""
        slots = range(len(self.encoding.masks) - 1, -1, -1)
        return [(x, y) for x in slots for y in slots]

    def prepare(self) -> None:
        """Make the move tables of both seats complete; ``solve`` does it too."""
        if self._prepared:
            return
        for slot in range(len(self.encoding.masks)):
            self.a.add_losses(slot, self.b)
            self.b.add_losses(slot, self.a)
        self._prepared = True

    def layer(self, x: int, y: int, blocks: Blocks | None = None, solved: bool = False) -> Layer:
        """Return a layer; with ``solved`` filled with the values of this solver."""
        kind = UnitLayer if self.rules.home else Layer
        source = (lambda pair: self.block(*pair)) if solved else blocks
        out = kind(self.a, self.b, x, y, source, self.dtype, START[self.mode])
        if solved:
            out.p[:], out.q[:] = self.block(x, y)
        return out

    def block(self, x: int, y: int) -> Pair:
        """Return the solved P and Q of a layer.

        Raises:
            TableError: its file is missing or damaged.
        """
        if self.symmetric and y > x:
            p, q = self.block(y, x)
            return q.T, p.T
        if (x, y) in self._memory:
            return self._memory[x, y]
        path = self.path(x, y)
        header = read_header(path, {**self.identity, "layer": [x, y]})
        if (x, y) not in self._checked:
            check_blocks(path, header)
            self._checked.add((x, y))
        p, q = map_blocks(path, header)
        return p, q

    def _save(self, layer: Layer, sweeps: int, done: bool) -> None:
        x, y = layer.slot_a, layer.slot_b
        if self.folder is None:
            if done:
                self._memory[x, y] = (layer.p.copy(), layer.q.copy())
            return
        header = {**self.identity, "layer": [x, y], "sweeps": sweeps, "done": done}
        write_blocks(self.path(x, y, done), header, [layer.p, layer.q])
        self._checked.add((x, y))
        if done:
            self.path(x, y, False).unlink(missing_ok=True)

    def _resume(self, layer: Layer) -> None:
        """Take up an unfinished layer where it was saved last."""
        if self.folder is None:
            return
        path = self.path(layer.slot_a, layer.slot_b, False)
        if path.exists():
            header = read_header(path, {**self.identity, "layer": [layer.slot_a, layer.slot_b]})
            check_blocks(path, header)
            layer.p[:], layer.q[:] = map_blocks(path, header)

    # ------------------------------------------------------------------------------------ solving

    def solve(self) -> Statistics:
        """Solve every layer that has no checkpoint yet; return what it took."""
        self._began = time.monotonic()
        self._cpu = time.process_time()
        sizes = self.encoding.sizes
        self._left = self._all = sum(int(sizes[x] * sizes[y]) for x, y in self.pairs())
        self._told = self._began
        self._sweeping = 0.0  # seconds of finished layers, compiling left out
        self.prepare()
        pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        with pool or contextlib.nullcontext():
            for x, y in self.pairs():
                self._solve_layer(x, y, pool)
        self._measure()
        return self.statistics

    def _solve_layer(self, x: int, y: int, pool: ThreadPoolExecutor | None) -> None:
        cells = int(self.encoding.sizes[x] * self.encoding.sizes[y])
        self._left -= cells
        if self.folder is not None and self.path(x, y).exists():
            self.block(x, y)
            self._all -= cells  # nothing is learned from it of how fast sweeps are
            self.statistics.resumed += 1
            return
        layer = self.layer(x, y, lambda pair: self.block(*pair))
        self._resume(layer)
        saved = time.monotonic()
        self._layer_began = self._clock()

        def report(sweep: int, change: float, rows: int) -> None:
            nonlocal saved
            self._progress(layer, sweep, change, rows)
            if self.folder is not None and not rows:
                if time.monotonic() - saved > self.save_seconds:
                    self._save(layer, sweep, False)
                    saved = time.monotonic()

        result = layer.solve(
            float(self.tolerance or 0), MOST_SWEEPS, pool, self.threads, report,
            self.tolls if self.rules.pass_allowed and self.mode == "value" else (),
        )
        self._sweeping += self._clock() - self._layer_began
        self._save(layer, result.sweeps, True)
        statistics = self.statistics
        statistics.layers += 1
        statistics.cells += cells
        statistics.cell_sweeps += cells * result.sweeps
        statistics.most_sweeps = max(statistics.most_sweeps, result.sweeps)
        statistics.largest_change = max(statistics.largest_change, result.change)
        self._measure()
        self._log(layer, result)

    def _measure(self) -> None:
        statistics = self.statistics
        statistics.cpu_seconds = time.process_time() - self._cpu
        statistics.wall_seconds = time.monotonic() - self._began
        statistics.peak_bytes = peak_bytes()

    def _log(self, layer: Layer, result: Any) -> None:
        if self.folder is None:
            return
        entry = {
            "layer": [layer.slot_a, layer.slot_b],
            "cells": layer.ni * layer.nj,
            "sweeps": result.sweeps,
            "change": result.change,
            "seconds": round(result.seconds, 3),
            "cpu_seconds": round(self.statistics.cpu_seconds, 2),
            "peak_bytes": self.statistics.peak_bytes,
        }
        with open(self.folder / "log.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    @staticmethod
    def _clock() -> float:
        """Seconds, standing still while functions are compiled."""
        return time.monotonic() - NOTE.seconds

    def _progress(self, layer: Layer, sweep: int, change: float, rows: int) -> None:
        now = time.monotonic()
        if self.say is None or now - self._told < SECONDS_BETWEEN_LINES:
            return
        self._told = now
        text = f"layer {layer.slot_a},{layer.slot_b}: sweep {sweep}, change {change:.2g}"
        self.say(text + self._speed(layer, sweep - 1 + rows / layer.ni if rows else sweep))

    def _speed(self, layer: Layer, full: float) -> str:
        """Return how fast sweeps are and how long the later layers take, once that is known.

        The first layers are small: their sweeps are over before they have a speed.

        Args:
            layer: the one at work.
            full: sweeps made there, with a fraction.
        """
        cells = layer.ni * layer.nj
        seen = self.statistics.cells + cells * min(full, 1.0)
        seconds = self._sweeping + self._clock() - self._layer_began
        if seconds < LEAST_SECONDS or seen < LEAST_SHARE * self._all:
            return ""
        done = self.statistics.cell_sweeps + cells * full
        rate = done / seconds
        text = f", {2 * rate / 1e6:.1f} M values/s"
        if self._left:
            minutes = self._left * max(done / seen, full) / rate / 60
            about = f"about {minutes:.0f} min" if minutes >= 1 else "less than a minute"
            text += f", {about} for the later layers"
        return text


def value_type(rules: Rules) -> np.dtype[Any]:
    """Return what the solver keeps a value in."""
    return np.dtype(np.float32 if rules.pieces > 3 else np.float64)


def peak_bytes() -> int:
    """Return the most memory that this process has had at once, mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def two_seats(rules: str | Rules, pieces: int | None = None, adjacent: bool = False) -> Rules:
    """Return rules for two opposite (or adjacent) seats.

    Raises:
        RulesError: bad text or options.
    """
    found = find_rules(rules)
    options: dict[str, Any] = {"seats": (0, 1) if adjacent else (0, 2)}
    if pieces is not None:
        options["pieces"] = pieces
    return found.replace(**options)


__all__ = ["Solver", "Statistics", "TableError", "two_seats"]
