"""How value networks compile: like the engine, in a folder named by the engine and these sources.

numba does not notice changes in files that a function calls into, so the folder's name is a hash
over all sources given, inside the engine's own (see ``kimble_env._jit``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numba

from kimble_env._jit import CODE_CACHE, COMPILED

F = TypeVar("F", bound=Callable[..., Any])

HERE = Path(__file__).parent
SOURCES = tuple(HERE / name for name in ("net_compiling.py", "net_features.py", "net_kernel.py"))


def compiler(name: str, sources: Iterable[Path]) -> Callable[..., Any]:
    """Return a decorator that compiles: nogil, cached; sums may be reordered to vectorise.

    Args:
        name: first word of the name of the cache folder.
        sources: every file, besides the engine's, whose functions end up in the compiled code.
    """
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes() if path.exists() else b"")
    folder = str(CODE_CACHE / f"{name}-{digest.hexdigest()[:16]}")

    def compile_it(function: F, **options: Any) -> F:
        if not COMPILED:
            return function
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            every = {"cache": True, "nogil": True, "error_model": "numpy", **options}
            compiled: F = numba.njit(**every)(function)
        finally:
            numba.config.CACHE_DIR = previous
        return compiled

    return compile_it


_compile = compiler("net", SOURCES)
# Sums may be reordered, so that loops vectorise; "nnan" and "ninf" are left out, since the softmax
# of absent seats uses infinity.
_REORDER = {"reassoc", "nsz", "arcp", "contract"}


def fast(function: F) -> F:
    """Compile a function of the networks of this package."""
    compiled: F = _compile(function, fastmath=_REORDER)
    return compiled


def inlined(function: F) -> F:
    """Compile as ``fast`` does, and have LLVM copy the function into its callers."""
    compiled: F = _compile(function, fastmath=_REORDER, forceinline=True)
    return compiled
