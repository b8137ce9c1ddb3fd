"""Measures that need a fresh interpreter: import time, first compile, memory, allocations.

`python -m benchmarks.probes NAME ARGUMENT…` is the child's side; it prints one JSON object. The
functions without an underscore start such children.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.frame import Measure, Sample, say

ROOT = Path(__file__).resolve().parent.parent


def run_child(
    probe: str, *arguments: object, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], str]:
    """Run a probe in a fresh interpreter; return its answer and what it said on stderr."""
    command = [sys.executable, "-m", "benchmarks.probes", probe, *map(str, arguments)]
    child = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        say(child.stderr)
        raise RuntimeError(f"the probe `{probe}` failed in its own interpreter, see stderr")
    return json.loads(child.stdout.splitlines()[-1]), child.stderr


def import_time(module: str) -> Measure:
    """CPU seconds of importing a module in a fresh interpreter, its start not counted."""

    def measure() -> Sample:
        answer, _ = run_child("import", module)
        return Sample(answer["seconds"], {"imports": 1})

    return measure


def first_compile(what: str) -> tuple[float, float, bool]:
    """Compile with an empty cache: CPU seconds, wall seconds, and whether stderr announced it.

    `what` is `game` (until the first throw and play are done) or `all` (every env and playouts).
    """
    with tempfile.TemporaryDirectory(prefix="kimble-bench-") as folder:
        answer, said = run_child("compile", what, environment={"KIMBLE_CACHE": folder})
    return answer["cpu"], answer["wall"], "compil" in said.lower()


def memory(games: int) -> dict[str, float]:
    """Peak memory of a stepping vector env beyond the imports, in MB."""
    return run_child("memory", games)[0]


def allocations(games: int) -> dict[str, float]:
    """What one step allocates beyond the returned arrays (kB), and the allocations by numba."""
    return run_child("allocations", games, environment={"NUMBA_NRT_STATS": "1"})[0]


def _import(module: str) -> dict[str, float]:
    start = time.process_time()
    if module == "kimble_env":
        from kimble_env import Game  # noqa: F401
    else:
        importlib.import_module(module)
    return {"seconds": time.process_time() - start}


def _compile(what: str) -> dict[str, float]:
    from benchmarks import ours

    cpu, wall = time.process_time(), time.perf_counter()
    ours.game_pairs(1)()
    if what == "all":
        ours.aec(1)()
        _vector_steps(16, 1)
        for spec in ("kimble", "kombat", "norske"):
            ours.playouts(spec, 1)()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _vector_steps(games: int, steps: int) -> None:
    from benchmarks import ours

    ours.vector_loop(games, steps)()


def _memory(games: str) -> dict[str, float]:
    """Step the env with the lowest legal action: the sampler's compiler would count otherwise."""
    from benchmarks import ours

    ours.vector_env(1).close()
    before = _status_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    env = ours.vector_env(int(games))
    _, info = env.reset(seed=1)
    for _ in range(300):
        *_, info = env.step(info["action_mask"].argmax(axis=1))
    return {"imports": before, "beyond": _status_mb("VmHWM") - before}


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def _allocations(games: str) -> dict[str, float]:
    """Peak of traced memory during a step minus the bytes of the arrays that the step returned."""
    import tracemalloc

    import numpy as np
    from numba.core.runtime import rtsys

    from benchmarks import ours

    env = ours.vector_env(int(games))
    _, info = env.reset(seed=1)
    rng = np.random.default_rng(1)
    steps, extra, handed, numba_allocations = 20, [], [], 0
    for turn in range(-400, steps):  # the long run-up lets games end, so that autoreset is in it
        mask = info["action_mask"]
        actions = (mask * rng.random(mask.shape, np.float32)).argmax(axis=1)
        mask = None
        info = None
        if turn == 0:
            gc.collect()
            gc.disable()
            tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        counted = rtsys.get_allocation_stats().alloc
        if turn >= 0:
            tracemalloc.reset_peak()
        result = env.step(actions)
        if turn >= 0:
            peak = tracemalloc.get_traced_memory()[1] - before
            numba_allocations += rtsys.get_allocation_stats().alloc - counted
            size = _array_bytes(result)
            extra.append(peak - size)
            handed.append(size)
        info = result[-1]
        del result
    return {
        "beyond_kb": float(np.median(extra)) / 1024,
        "returned_kb": float(np.median(handed)) / 1024,
        "numba_allocations": numba_allocations / steps,
    }


def _array_bytes(value: Any) -> int:
    """Bytes of all arrays inside nested results, each buffer once."""
    import numpy as np

    buffers: dict[int, int] = {}
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, np.ndarray):
            while isinstance(item.base, np.ndarray):
                item = item.base
            buffers[id(item)] = item.nbytes
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return sum(buffers.values())


PROBES = {
    "import": _import,
    "compile": _compile,
    "memory": _memory,
    "allocations": _allocations,
}


def main() -> None:
    """The child's side."""
    name, *arguments = sys.argv[1:]
    print(json.dumps(PROBES[name](*arguments)))


if __name__ == "__main__":
    main()
