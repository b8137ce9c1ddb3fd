"""How this package compiles what is its own: cached in a folder named by the engine and by sources.

numba does not notice changes in files that a function calls into, so the name of the folder is a
hash over all files named, inside the engine's own folder (see ``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from kimble_env._jit import CODE_CACHE, COMPILED

F = TypeVar("F", bound=Callable[..., Any])


def compiler(name: str, *sources: str | Path) -> Callable[[F], F]:
    """Return a decorator that compiles: nogil, cached in a folder of its own.

    Args:
        name: what the folder's name begins with.
        sources: paths of every file, beside the engine's, that holds a function compiled with this
            decorator or called by one.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(Path(source).name.encode() + Path(source).read_bytes())
    folder = str(CODE_CACHE / f"{name}-{digest.hexdigest()[:16]}")

    def compile_it(function: F) -> F:
        if not COMPILED:
            return function
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            options = {"cache": True, "nogil": True, "error_model": "numpy"}
            compiled: F = numba.njit(**options)(function)
        finally:
            numba.config.CACHE_DIR = previous
        return compiled

    return compile_it
