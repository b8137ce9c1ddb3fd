"""Loading a user's own agent: the object named in ``file.py:name`` or ``module:name``.

The folder of the file, or the current folder for a module, is appended to ``sys.path``, so that the
user's code may import what lies next to it. It comes last and hides nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from kimble_env.errors import AgentError


def split_own(spec: str) -> tuple[str, str] | None:
    """Split ``file.py:name`` or ``module:name`` at its last colon; None if it is neither."""
    place, colon, name = spec.rpartition(":")
    if not colon or not name.isidentifier():
        return None
    is_module = all(part.isidentifier() for part in place.split("."))
    return (place, name) if place.endswith(".py") or is_module else None


def absolute(spec: str) -> str:
    """Return the spec with a file's path made absolute, so that it works from any folder."""
    split = split_own(spec)
    if split is None or not split[0].endswith(".py"):
        return spec
    return f"{_resolved(split[0])}:{split[1]}"


def _resolved(place: str) -> Path:
    """Return the path of a file, absolute.

    Raises:
        AgentError: no file can have that path, for instance with a NUL in it.
    """
    try:
        if "\0" in place:
            raise ValueError("it holds a NUL")
        return Path(place).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: ~nobody, or a loop
        raise AgentError(f"{place!r} cannot be a file: {error}") from None


def load_own(spec: str) -> Any:
    """Return the object that ``file.py:name`` or ``module:name`` names.

    Raises:
        AgentError: no such file, module or name, or the code fails while it is loaded (the error
            of the code is the cause).
    """
    split = split_own(spec)
    if split is None:
        raise AgentError(f"cannot read {spec!r}; expected file.py:name or module:name")
    place, name = split
    module = _load_file(_resolved(place)) if place.endswith(".py") else _load_module(place, spec)
    if not hasattr(module, name):
        public = ", ".join(n for n in vars(module) if not n.startswith("_")) or "nothing"
        raise AgentError(f"{place} has no {name!r}; it has {public}")
    return getattr(module, name)


def _reach(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _load_file(path: Path) -> ModuleType:
    """Execute a file as a module of its own, anew each time."""
    if not path.is_file():
        raise AgentError(f"there is no file {path}")
    name = f"kimble_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AgentError(f"{path} is not Python code")
    _reach(path.parent)
    module = importlib.util.module_from_spec(spec)
    previous = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if previous is None:
            del sys.modules[name]
        else:
            sys.modules[name] = previous
        raise AgentError(f"{path} fails while it is loaded: {told(error)}") from error
    return module


def prints_aside() -> AbstractContextManager[object]:
    """Send what is printed meanwhile to standard error: what agents print is no result."""
    return redirect_stdout(sys.stderr)


def told(error: BaseException) -> str:
    """Return an error in one line: its kind and its text."""
    return f"{type(error).__name__}: {error}"


def _load_module(place: str, spec: str) -> ModuleType:
    _reach(Path.cwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and place.split(".")[: error.name.count(".") + 1] == (
            error.name.split(".")
        ):
            raise AgentError(f"there is no module {place!r} (in {spec!r})") from None
        raise AgentError(f"module {place!r} fails while it is loaded: {told(error)}") from error
    except Exception as error:
        raise AgentError(f"module {place!r} fails while it is loaded: {told(error)}") from error
