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

SOURCES = ("compiling.py", "probes.py", "kernels.py", "lookup.py", "positions.py", "norske.py")


def _folder() -> Path:
    digest = hashlib.sha256()
    for name in SOURCES:
        path = Path(__file__).parent / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return CODE_CACHE / f"exact-{digest.hexdigest()[:16]}"


_CACHE = _folder()


def fast(function: F) -> F:
    """Compile: nogil, cached; sums and comparisons may be reordered, so that loops vectorise."""
    return _compile(function) if COMPILED else function


def inner(function: F) -> F:
    """Compile as ``fast`` does, copied into its callers: for what is called once per cell.

    Passing a dozen arrays to a function takes longer than such a function itself.
    """
    return _compile(function, forceinline=True) if COMPILED else function


def _compile(function: F, **more: bool) -> F:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_CACHE)
    try:
        options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": True}
        compiled: F = numba.njit(**options, **more)(function)
    finally:
        numba.config.CACHE_DIR = previous
    return compiled
