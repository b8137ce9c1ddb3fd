"""How the rooms above the engine compile: cached in a folder named by the engine and by sources.

numba does not notice changes in files that a function calls into, so the name of the folder is a
hash over all files named, inside the engine's own folder (see ``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from kimble_env._jit import CODE_CACHE, COMPILED


def compiler(name: str, *sources: str | Path, **options: Any) -> Callable[..., Any]:
    """Return a decorator that compiles: nogil, cached in a folder of its own.

    It takes the function, and more options of ``numba.njit`` for that function: ``_nrt=True`` for
    one that makes arrays, which others cannot (see ``kimble_env._jit.njit``).

    Args:
        name: what the folder's name begins with.
        sources: paths of every file, beside the engine's, that holds a function compiled with this
            decorator or called by one.
        options: of ``numba.njit``, for every function.
    """
    digest = hashlib.sha256()
    for source in (__file__, *sources):
        digest.update(Path(source).name.encode() + Path(source).read_bytes())
    folder = str(CODE_CACHE / f"{name}-{digest.hexdigest()[:16]}")
    every = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False, **options}

    def compile_it(function: Any, **more: Any) -> Any:
        if not COMPILED:
            return function
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            return numba.njit(**{**every, **more})(function)
        finally:
            numba.config.CACHE_DIR = previous

    return compile_it
