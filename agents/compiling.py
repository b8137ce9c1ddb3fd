"""How the modules of this package compile: like the engine, in folders named by the sources.

numba does not notice changes in files that a function calls into. So each group of modules has a
folder whose name is a hash over its sources, inside the engine's own (see ``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from kimble_env._jit import CODE_CACHE, COMPILED

F = TypeVar("F", bound=Callable[..., Any])


def compiler(name: str, *files: str) -> Callable[[F], F]:
    """Return a decorator that compiles as the engine does: nogil, cached on disk.

    Args:
        name: of the group; the start of its folder's name.
        files: every jitted module of the group, next to this file.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.encode() + (Path(__file__).parent / file).read_bytes())
    folder = CODE_CACHE / f"{name}-{digest.hexdigest()[:16]}"

    def fast(function: F) -> F:
        if not COMPILED:
            return function
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)
        try:
            compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        finally:
            numba.config.CACHE_DIR = previous
        return compiled

    return fast
