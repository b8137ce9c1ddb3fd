"""Threads beside the event loop: so many at work, so many waiting, so long and no longer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from kimble_app.api.errors import ApiError
from kimble_app.service.metrics import Metrics

Result = TypeVar("Result")


class Workers:
    """A small pool of threads with a limit on how many requests may wait for it.

    Args:
        name: of its threads.
        threads: how many.
        queue: requests at work or waiting before others are turned away.
        seconds: after that long a request is answered ``too_slow``. Its thread goes on to its next
            look at the clock: Python cannot stop it, so the limits of batch and depth matter.
    """

    def __init__(
        self, name: str, threads: int, queue: int, seconds: float, metrics: Metrics
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._limit, self._seconds, self._metrics = queue + threads, seconds, metrics
        self._inside = 0  # touched by the event loop alone

    def until(self) -> float:
        """Return when a request that begins now must have ended, on the clock ``monotonic``."""
        return time.monotonic() + self._seconds

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in a thread and wait for it.

        Raises:
            ApiError: too many wait already (``busy``), or it took too long (``too_slow``).
        """
        if self._inside >= self._limit:
            raise ApiError("busy", "too many requests at once: try again", retry_after=1)
        self._inside += 1
        self._metrics.waiting.inc()
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(self._leave_from(asyncio.get_running_loop()))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds + 0.5)
        except TimeoutError:
            raise ApiError(
                "too_slow", "this took longer than allowed here", retry_after=1
            ) from None

    def _leave_from(self, loop: asyncio.AbstractEventLoop) -> Callable[[Future[Any]], None]:
        """Return what to do when the thread, not the client, is done: it is counted until then."""

        def leave(future: Future[Any]) -> None:
            try:
                loop.call_soon_threadsafe(self._leave)
            except RuntimeError:
                pass  # the loop has ended: nobody counts any more

        return leave

    def _leave(self) -> None:
        self._inside -= 1
        self._metrics.waiting.dec()

    def close(self) -> None:
        """Let the threads finish what they are at, and take nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
