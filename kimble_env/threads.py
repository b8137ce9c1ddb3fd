"""Slices of a batch on a shared pool of threads.

The kernels release the interpreter lock, so plain threads run them side by side. (numba's own
``parallel=True`` is not used: it kills forked children, and under some threading layers two Python
threads at once.) One pool serves the whole process, grows to the largest number of threads asked
for, and is made anew in a forked child.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np

from kimble_env.errors import KimbleError

SMALLEST_SLICE = 64
"""Games below which a slice is not worth waking a thread for."""

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_process = 0
_inside = threading.local()


def check_threads(threads: int | np.integer) -> int:
    """Return ``threads`` as an int if it is a whole number of at least 1.

    Raises:
        KimbleError: it is not.
    """
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise KimbleError(f"threads must be a whole number of at least 1, got {threads!r}")
    return int(threads)


def slices(count: int, threads: int) -> list[tuple[int, int]]:
    """Cut ``count`` games into at most ``threads`` slices (start, stop) of nearly equal length."""
    parts = max(1, min(threads, count // SMALLEST_SLICE))
    cuts = [count * part // parts for part in range(parts + 1)]
    return list(pairwise(cuts))


def run_slices(function: Callable[[int, int], object], count: int, threads: int = 1) -> None:
    """Run ``function(start, stop)`` over slices of ``range(count)`` and wait for all of them.

    The last slice runs in the calling thread. Called from a thread of the pool, all runs in that
    thread, so that slices never wait for each other.

    Args:
        function: called once per slice; should spend its time in kernels.
        count: number of games, 0 or more.
        threads: slices that may run at once; small batches use fewer.

    Raises:
        An interrupt (Ctrl-C) of the calling thread, else the first exception of a slice, in the
        order of the slices; either only after all slices have ended.
    """
    parts = slices(count, threads)
    if len(parts) == 1 or getattr(_inside, "slice", False):
        function(0, count)
        return
    futures: list[Future[None]] = []
    own: BaseException | None = None
    try:
        with _lock:  # a pool that grows must not shut down between look-up and submit
            pool = _grown_pool(len(parts) - 1)
            for part in parts[:-1]:
                futures.append(pool.submit(_run_inside, function, *part))
        function(*parts[-1])
    except BaseException as error:
        own = error
    interrupt = _wait_for_all(futures)
    if own is not None and not isinstance(own, Exception):
        interrupt = own
    for first in (interrupt, *(future.exception() for future in futures), own):
        if first is not None:
            raise first


def _wait_for_all(futures: list[Future[None]]) -> BaseException | None:
    """Wait until every future has ended, whatever interrupts; return the last interrupt.

    A slice that still ran would write into games that the caller takes for its own again.
    """
    interrupt: BaseException | None = None
    while True:
        try:
            wait(futures)
            return interrupt
        except BaseException as error:
            interrupt = error


def _run_inside(function: Callable[[int, int], object], start: int, stop: int) -> None:
    _inside.slice = True
    function(start, stop)


def _grown_pool(size: int) -> ThreadPoolExecutor:
    """Return the pool of this process with at least ``size`` threads; call with the lock held."""
    global _pool, _pool_size, _pool_process
    if _pool is None or _pool_size < size or _pool_process != os.getpid():
        if _pool is not None and _pool_process == os.getpid():
            _pool.shutdown(wait=False)  # what was submitted still runs to its end
        _pool = ThreadPoolExecutor(size, thread_name_prefix="kimble")
        _pool_size, _pool_process = size, os.getpid()
    return _pool


def _forget_lock() -> None:
    """In a forked child: a lock that another thread held at the fork would never be released."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
