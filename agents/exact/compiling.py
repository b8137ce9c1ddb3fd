"""How this package compiles (see ``agents.compiling``): a folder for each of its jitted files.

Sums and comparisons may be reordered, so that loops vectorise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from agents.compiling import compiler

F = TypeVar("F", bound=Callable[..., Any])

USES: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "positions": ("kernels",),
    "judging": ("kernels", "positions"),
    "probes": (),
    "lookup": ("probes",),
    "norske": ("probes",),
}
"""The jitted files of this package, and the jitted files of it that each of them calls into."""


@cache
def _compiler(name: str) -> Callable[..., Any]:
    folder = Path(__file__).parent
    sources = [folder / f"{source}.py" for source in ("compiling", *USES[name], name)]
    return compiler(f"exact-{name}", *sources, fastmath=True, _nrt=True)


def fast(function: F) -> F:
    """Compile a function of one of the files in ``USES``."""
    compiled: F = _compiler(function.__module__.rpartition(".")[2])(function)
    return compiled


def inner(function: F) -> F:
    """Compile as ``fast`` does, copied into its callers: for what is called once per cell.

    Passing a dozen arrays to a function takes longer than such a function itself, and counting who
    refers to them longer still (five to twenty times the work of a cell). So nothing is counted in
    here (``_nrt``): such a function must neither make an array nor return one.
    """
    options = {"forceinline": True, "_nrt": False}
    compiled: F = _compiler(function.__module__.rpartition(".")[2])(function, **options)
    return compiled
