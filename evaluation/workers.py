"""Worker processes for agents that have to be asked: started by spawn, one job after the other.

A job is some blocks of one line-up. Which worker plays it changes nothing: a block depends on the
seed and its number alone. Workers end when the process that started them ends, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from evaluation.tabletop import Chunk, Seating, Table, make_agents
from kimble_env.errors import KimbleError
from kimble_env.opponents import Agent
from kimble_env.rules import Rules

_AHEAD = 2  # jobs per worker that are handed over before the results of others are in


class Job(NamedTuple):
    """Blocks ``first`` and following of a line-up.

    recipe: of :func:`make_recipe`. key: whatever the caller knows it by. adjust: spec of the value
    function that luck is measured with.
    """

    recipe: bytes
    seed: int
    first: int
    blocks: int
    cap: int
    key: Any = None


def check_workers(workers: int) -> int:
    """Return ``workers`` if it is a whole number of at least 1.

    Raises:
        KimbleError: it is not.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise KimbleError(f"workers must be a whole number of at least 1, got {workers!r}")
    return workers


def make_recipe(
    rules: Rules, agents: Iterable[Any], seatings: Seating, adjust: str | None = None
) -> bytes:
    """Return what a worker needs to set up a line-up.

    Raises:
        KimbleError: an agent that cannot be sent to another process.
    """
    agents = list(agents)
    for agent in agents:
        try:
            pickle.loads(pickle.dumps(agent))  # some things pickle and cannot be read back
        except Exception as error:
            raise KimbleError(
                f"{agent!r} cannot be sent to worker processes ({error}); name it as file.py:name "
                "or module:name, or play with workers=1"
            ) from None
    return pickle.dumps((rules, agents, seatings, adjust))


def make_table(
    rules: Rules, agents: Sequence[Agent], seatings: Seating | None, adjust: str | None = None
) -> Table:
    """Return the table of a line-up; with ``adjust`` one that counts luck by that evaluator.

    Raises:
        KimbleError: an evaluator that is not known or does not fit, or rules whose luck cannot be
            counted.
    """
    if adjust is None:
        return Table(rules, agents, seatings)
    from agents.evaluators import make_evaluator
    from evaluation.luck import LuckyTable

    if rules.members is not None:
        raise KimbleError(f"luck can be counted without the option members only, got {rules}")
    return LuckyTable(rules, agents, seatings, make_evaluator(adjust, rules))


@lru_cache(maxsize=4)
def _table(recipe: bytes) -> Table:
    rules, agents, seatings, adjust = pickle.loads(recipe)
    return make_table(rules, make_agents(agents, rules), seatings, adjust)


def play_chunk(job: Job, table: Any, threads: int = 1, report: Any = None) -> Chunk:
    """Play a job at its table, in this process; a table that counts luck adds it."""
    chunk: Chunk = table.play_blocks(job.seed, job.first, job.blocks, job.cap, threads, report)
    counted = getattr(table, "agents_luck", None)
    return chunk if counted is None else chunk._replace(luck=counted().astype(np.float32))


def play_job(job: Job) -> Chunk:
    """Play a job, which says all that is needed."""
    return play_chunk(job, _table(job.recipe))


def _watch_parent() -> None:
    """End this process when the one that started it is gone: nobody wants its results then."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _begin() -> None:
    sys.stdout = sys.stderr  # what agents print is no result
    threading.Thread(target=_watch_parent, daemon=True).start()


class Workers:
    """A pool of spawned processes; use it as a context manager.

    Args:
        count: number of processes, at least 1.
    """

    def __init__(self, count: int) -> None:
        self.count = check_workers(count)
        self._pool = ProcessPoolExecutor(
            self.count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
        )

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Chunk]]:
        """Yield every job with its result, in the order in which they end.

        Raises:
            KimbleError: what an agent raised, or that the processes died.
        """
        running: dict[Future[Chunk], Job] = {}
        rest = iter(jobs)
        try:
            while True:
                while len(running) < self.count * _AHEAD:
                    job = next(rest, None)
                    if job is None:
                        break
                    running[self._pool.submit(play_job, job)] = job
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise KimbleError(
                "the worker processes died: an agent ended them, memory ran out, or a script "
                'started workers outside of `if __name__ == "__main__":`'
            ) from None
        finally:
            for future in running:
                future.cancel()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
