"""How value networks compile (see ``agents.compiling``): sums may be reordered to vectorise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from agents.compiling import compiler

F = TypeVar("F", bound=Callable[..., Any])

HERE = Path(__file__).parent
SOURCES = tuple(
    HERE / name
    for name in ("net_compiling.py", "net_features.py", "net_kernel.py", "row_sums.py")
)
# "nnan" and "ninf" are left out, since a softmax takes no part of an infinite logit.
REORDER = {"reassoc", "nsz", "arcp", "contract"}

_compile = compiler("net", *SOURCES, fastmath=REORDER)


def fast(function: F) -> F:
    """Compile a function of the networks of this package."""
    compiled: F = _compile(function)
    return compiled


def inlined(function: F) -> F:
    """Compile as ``fast`` does, and have LLVM copy the function into its callers."""
    compiled: F = _compile(function, forceinline=True)
    return compiled
