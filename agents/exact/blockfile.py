"""Files of the exact solver: one page of JSON, then raw numbers; written whole or not at all.

Tables and checkpoints share this layout, so that both are refused for the same reasons: not ours,
made for something else, cut short, or damaged (SHA-256 over the numbers).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact.errors import TableError

HEADER_BYTES = 4096
FORMAT = "kimble-exact-1"
_PART = 1 << 24


@contextmanager
def locked(path: Path, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the right to make a file: other processes that want to wait until this one is done.

    The lock goes with the process, however it ends. Where the system has no ``fcntl`` (Windows)
    nobody waits; files are still written whole.

    Args:
        path: the file to be made; the lock is beside it.
        say: told when somebody else is making it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if say is not None:
                say(f"another process is making {path}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_blocks(path: Path, header: dict[str, Any], blocks: Sequence[npt.NDArray[Any]]) -> None:
    """Write C-contiguous arrays of one dtype behind a header; complete, or not under this name."""
    digest = hashlib.sha256()
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        file.write(b" " * HEADER_BYTES)
        for block in blocks:
            flat = block.reshape(-1).view(np.uint8)
            for at in range(0, flat.size, _PART):
                digest.update(flat[at : at + _PART])
                file.write(flat[at : at + _PART])
        full = {
            "format": FORMAT,
            **header,
            "dtype": blocks[0].dtype.name,
            "shapes": [list(block.shape) for block in blocks],
            "sha256": digest.hexdigest(),
        }
        text = json.dumps(full).encode()
        if len(text) >= HEADER_BYTES:
            raise TableError(f"{path}: header of {len(text)} bytes, limit {HEADER_BYTES - 1}")
        file.seek(0)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def read_header(path: Path, expected: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the header of a file.

    Args:
        expected: entries that must be equal.

    Raises:
        TableError: missing, not ours, cut short, or made for something else.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(HEADER_BYTES)
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        header = json.loads(text.decode())
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TableError(f"{path}: not a file of the exact solver (expected format {FORMAT})")
    for name, value in (expected or {}).items():
        if header.get(name) != value:
            raise TableError(
                f"{path}: made for another game: {name} is {header.get(name)!r}, expected {value!r}"
            )
    numbers = sum(int(np.prod(shape)) for shape in header["shapes"])
    wanted = HEADER_BYTES + numbers * np.dtype(header["dtype"]).itemsize
    if path.stat().st_size != wanted:
        raise TableError(f"{path}: {path.stat().st_size} bytes, expected {wanted}: cut short")
    return header


def map_blocks(path: Path, header: dict[str, Any]) -> list[npt.NDArray[Any]]:
    """Map the arrays of a file into memory, read-only; ``header`` is that of ``read_header``."""
    out, at = [], HEADER_BYTES
    dtype = np.dtype(header["dtype"])
    for shape in header["shapes"]:
        out.append(np.memmap(path, dtype, "r", at, tuple(shape)))
        at += int(np.prod(shape)) * dtype.itemsize
    return out


def check_blocks(path: Path, header: dict[str, Any]) -> None:
    """Read a file through and compare its checksum.

    Raises:
        TableError: the numbers are damaged.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(HEADER_BYTES)
        while part := file.read(_PART):
            digest.update(part)
    if digest.hexdigest() != header["sha256"]:
        raise TableError(
            f"{path}: damaged: SHA-256 of the numbers is {digest.hexdigest()}, "
            f"expected {header['sha256']}; delete the file to compute it again"
        )
