"""The frame of the benchmarks: samples, alternated runs, rows with verdicts, table and JSON.

Times are CPU seconds of this process, so work of other programs on the same machine hardly matters
(a little does come through shared caches and the clock frequency: hence alternated runs, medians
and the spread beside every figure). Only the gain by threads needs wall time; the load that other
programs put on the machine meanwhile is measured with it.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "kimble-rl", "numpy", "numba", "gymnasium", "pettingzoo", "open_spiel", "pygame-ce", "torch",
    "stable-baselines3", "sb3-contrib",
)  # fmt: skip
NO_FIGURE = "-"


@dataclass(frozen=True)
class Sample:
    """One timed piece of work: its CPU seconds and what was done in them, by unit."""

    seconds: float
    counts: Mapping[str, float]

    def rate(self, unit: str) -> float:
        """How many of `unit` per second."""
        return self.counts[unit] / self.seconds


Measure = Callable[[], Sample]
Samples = dict[str, list[Sample]]


@dataclass(frozen=True)
class Figure:
    """A median with the least and the greatest value beside it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """The figure of some values."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Row:
    """One line of the table: ours, the peer's, the measure that decides, and its target.

    `value` is compared with `target` (and `goal`, the better mark); `at_most` turns the comparison
    round. A row without a target is there to be read. `note` says why a figure is missing or how
    far to trust it.
    """

    name: str
    unit: str
    ours: Figure | None = None
    peer: Figure | None = None
    value: Figure | None = None
    target: float | None = None
    goal: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """`goal`, `met`, `missed`, or `-` where there is nothing to judge."""
        if self.value is None or self.target is None:
            return NO_FIGURE
        sign = -1.0 if self.at_most else 1.0
        if sign * self.value.median < sign * self.target:
            return "missed"
        if self.goal is not None and sign * self.value.median >= sign * self.goal:
            return "goal"
        return "met"


@dataclass
class Settings:
    """How thoroughly to measure: rounds of alternated runs, and the size of one run."""

    rounds: int = 9
    size: float = 1.0

    def sized(self, count: int) -> int:
        """`count`, made smaller for a quick look, and at least 1."""
        return max(1, int(count * self.size))


def say(message: str) -> None:
    """Progress, on stderr and at once."""
    print(message, file=sys.stderr, flush=True)


def alternate(measures: Mapping[str, Measure], rounds: int, warm: int = 1) -> Samples:
    """Run every measure in turn, `rounds` times over, after `warm` turns that do not count.

    The order is reversed in every second round, so that nobody always follows the same neighbour.
    """
    names = list(measures)
    samples: Samples = {name: [] for name in names}
    for turn in range(-warm, rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            sample = measures[name]()
            if turn >= 0:
                samples[name].append(sample)
        label = f"round {turn + 1} of {rounds}" if turn >= 0 else "warming up"
        say(f"    {label}: {', '.join(names)}")
    return samples


def rates(samples: Sequence[Sample], unit: str) -> Figure:
    """The rates of one contender."""
    return Figure.of([sample.rate(unit) for sample in samples])


def ratios(ours: Sequence[Sample], peer: Sequence[Sample], unit: str, theirs: str = "") -> Figure:
    """Ours divided by the peer's, taken round by round so that a slow spell hits both."""
    pairs = zip(ours, peer, strict=True)
    return Figure.of([a.rate(unit) / b.rate(theirs or unit) for a, b in pairs])


def compare(
    name: str,
    samples: Samples,
    ours: str,
    peer: str,
    unit: str,
    *,
    target: float | None = None,
    goal: float | None = None,
    note: str = "",
) -> Row:
    """A row with the rates of both and their ratio; contenders that are not there leave gaps."""
    mine, other = samples.get(ours), samples.get(peer)
    return Row(
        name=name,
        unit=f"{unit}/s",
        ours=rates(mine, unit) if mine else None,
        peer=rates(other, unit) if other else None,
        value=ratios(mine, other, unit) if mine and other else None,
        target=target,
        goal=goal,
        note=note,
    )


@contextmanager
def outside_load() -> Iterator[list[float]]:
    """Measure how many cores' worth of work *others* did meanwhile: the list gets the answer.

    Nothing is added where the system does not say (anything but Linux).
    """
    load: list[float] = []
    busy, own, start = _busy_seconds(), _own_seconds(), time.perf_counter()
    yield load
    wall = time.perf_counter() - start
    if busy is not None and (after := _busy_seconds()) is not None:
        others = (after - busy) - (_own_seconds() - own)
        load.append(max(0.0, others / wall))


def _own_seconds() -> float:
    """CPU seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])


def _busy_seconds() -> float | None:
    """CPU seconds spent by the whole machine so far, idle and waiting left out."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, soft, steal = (int(word) for word in words[:8])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def describe_machine() -> dict[str, Any]:
    """CPU, cores, system, Python and the versions that matter, as plain data."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine_line(machine: Mapping[str, Any]) -> str:
    """The machine in one sentence."""
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    head = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"
    load = machine.get("other_programs_cores")
    tail = "" if load is None else f"; other programs kept {load:.2f} cores busy meanwhile"
    return f"{head}, Python {machine['python']}; {packages}{tail}"


def number(value: float) -> str:
    """Four digits or so: `2,150,000`, `13,400`, `24.1`, `0.82`."""
    if abs(value) >= 1000:
        step = 10 ** max(0, len(str(int(abs(value)))) - 3)
        return f"{round(value / step) * step:,}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(row: Row) -> list[str]:
    """A row as text: name, unit, ours, peer, value, range of the value, target, verdict."""
    value = row.value
    bound = "at most" if row.at_most else "at least"
    target = NO_FIGURE if row.target is None else f"{bound} {number(row.target)}"
    if row.goal is not None:
        target += f", goal {number(row.goal)}"
    return [
        row.name,
        row.unit,
        number(row.ours.median) if row.ours else NO_FIGURE,
        number(row.peer.median) if row.peer else NO_FIGURE,
        number(value.median) if value else NO_FIGURE,
        f"{number(value.low)} to {number(value.high)}" if value else NO_FIGURE,
        target,
        row.verdict,
    ]


HEADINGS = ["measured", "unit", "ours", "peer", "value", "from - to", "target", "verdict"]
LEFT_ALIGNED = {0, 1, 6, 7}


def table(rows: Sequence[Row]) -> str:
    """An aligned plain-text table with the notes below it."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    lines.insert(1, ["-" * width for width in widths])
    text = [
        "  ".join(
            cell.ljust(width) if column in LEFT_ALIGNED else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*text, *notes(rows)])


def notes(rows: Sequence[Row]) -> list[str]:
    """The notes of the rows, one line each; a note shared by several rows is told once."""
    told: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            told.setdefault(row.note, []).append(row.name)
    return [f"* {', '.join(names)}: {note}" for note, names in told.items()]


def as_data(rows: Sequence[Row], machine: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Everything as plain data, ready for JSON."""
    return {
        "format": "kimble-bench/1",
        "machine": dict(machine),
        "rounds": settings.rounds,
        "size": settings.size,
        "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
    }


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all."""
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
