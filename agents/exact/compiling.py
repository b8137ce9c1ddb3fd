"""How this package compiles: like the engine, in folders named by the engine and these sources.

numba does not notice changes in files that a function calls into, so the folder's name is a hash
over the file of the function and those it uses (``USES``), inside the engine's own folder (see
``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from kimble_env._jit import CODE_CACHE, COMPILED

F = TypeVar("F", bound=Callable[..., Any])

USES: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "positions": ("kernels",),
    "probes": (),
    "lookup": ("probes",),
    "norske": ("probes",),
}
"""The jitted files of this package, and the jitted files of it that each of them calls into."""


@cache
def _folder(name: str) -> Path:
    digest = hashlib.sha256()
    for source in ("compiling", *USES[name], name):
        digest.update((Path(__file__).parent / f"{source}.py").read_bytes())
    return CODE_CACHE / f"exact-{name}-{digest.hexdigest()[:16]}"


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
    numba.config.CACHE_DIR = str(_folder(function.__module__.rpartition(".")[2]))
    try:
        options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": True}
        compiled: F = numba.njit(**options, **more)(function)
    finally:
        numba.config.CACHE_DIR = previous
    return compiled
