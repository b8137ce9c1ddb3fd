"""How kimble_env compiles: lazily, cached on disk in a folder named by a hash of its sources.

numba's own cache notices a change in the file of a function but not in the files of the functions
it calls, so a cache shared by several source files goes stale. Here every jitted module of this
package compiles into one folder whose name is a hash over all of them: change one byte in any and
the next run starts with an empty folder.

``KIMBLE_CACHE`` overrides the place of all caches and tables of this package, ``KIMBLE_QUIET`` (not
empty) silences the note that compiling takes its time.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event

from kimble_env._compiling_note import CompilingNote

F = TypeVar("F", bound=Callable[..., Any])

JITTED_SOURCES = (
    "_jit.py",
    "kernel.py",
    "features.py",
    "afterstates.py",
    "observation.py",
    "rewards.py",
    "aec_kernel.py",
    "stepping.py",
)
COMPILED: bool = not numba.config.DISABLE_JIT
"""False under ``NUMBA_DISABLE_JIT=1``: the same functions then run as plain Python."""


def cache_folder() -> Path:
    """Return the folder for caches and tables: ``KIMBLE_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("KIMBLE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kimble-rl"


def sources_hash() -> str:
    """Return a hash over all jitted sources and the numba and numpy versions (16 hex digits)."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    here = Path(__file__).parent
    for name in JITTED_SOURCES:
        path = here / name
        digest.update(name.encode())
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:16]


CODE_CACHE = cache_folder() / "code" / sources_hash()


NOTE = CompilingNote(CODE_CACHE, quiet=bool(os.environ.get("KIMBLE_QUIET")))
"""Hears of every function of this project that is compiled; ``KIMBLE_QUIET`` silences it."""

if COMPILED:
    event.register("numba:compile", NOTE)


def _compile(function: F, **options: Any) -> F:
    every = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CODE_CACHE)
    try:
        compiled: F = numba.njit(**{**every, **options})(function)
    finally:
        numba.config.CACHE_DIR = previous
    return compiled


def njit(function: F) -> F:
    """Compile ``function`` with numba: nogil, cached in this package's own folder.

    Nobody counts who refers to an array in it (``_nrt``): counting took half the time of a random
    game, and two threads counting on one array wait for each other. The price: it can make no
    array, and return none but one that it was given; numba refuses to compile it otherwise.
    """
    return _compile(function) if COMPILED else function


def allocating(function: F) -> F:
    """Compile as ``njit`` does, a function that makes arrays: not for inner loops."""
    return _compile(function, _nrt=True) if COMPILED else function


def inlined(function: F) -> F:
    """Compile as ``njit`` does, and have LLVM copy the function into its callers.

    For the small functions of the inner loop: a call between jitted functions passes an array as
    seven arguments, which costs more than these functions do.
    """
    return _compile(function, forceinline=True) if COMPILED else function


def wrapping(function: F) -> F:
    """Let uint64 arithmetic wrap silently when the function runs uncompiled."""
    if COMPILED:
        return function
    from functools import wraps

    @wraps(function)
    def quiet(*args: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*args)

    return quiet  # type: ignore[return-value]
