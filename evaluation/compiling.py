"""How this package compiles: like the engine, in a folder named by the engine and these sources.

numba does not notice changes in files that a function calls into, so the folder's name is a hash
over all jitted sources of this package, inside the engine's own (see ``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from kimble_env._jit import CODE_CACHE, COMPILED

F = TypeVar("F", bound=Callable[..., Any])

SOURCES = ("compiling.py", "counting.py")


def _folder() -> Path:
    digest = hashlib.sha256()
    for name in SOURCES:
        path = Path(__file__).parent / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return CODE_CACHE / f"evaluation-{digest.hexdigest()[:16]}"


_CACHE = _folder()


def njit(function: F) -> F:
    """Compile: nogil, cached in the folder of this package's sources."""
    if not COMPILED:
        return function
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_CACHE)
    try:
        compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = previous
    return compiled
