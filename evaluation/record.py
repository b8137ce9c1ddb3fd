"""The record of a tournament: a file of JSON lines that only ever grows.

The first line says what is played; it appears whole or not at all. Every further line is a
finished chunk of blocks with a check sum, written in one go and forced to the disk. A program
killed while it writes leaves a torn last line, which the next one cuts off: what it held is simply
played again. A line that is damaged anywhere else, a block that stands twice, or a file of
something else is refused.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.tabletop import TALLIES
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole

FORMAT = "kimble-tournament-1"
LENGTH_BIN = 20
"""Throws per bin of the histogram of game lengths."""


class RecordError(KimbleError):
    """A record that is damaged, of something else, or of another tournament."""


class Result(NamedTuple):
    """A finished chunk: blocks ``first`` and following of pairing ``pair``.

    places: int8 [blocks, R], the place that won, -1 for a game cut off. luck: float64 [blocks,
    kinds], what the first agent of the pair owes to its dice, summed over the games of a kind; None
    if it was not measured. lengths: games per bin of LENGTH_BIN throws. plies: throws in all.
    tallies: int64 [2, TALLIES]. seconds: CPU seconds spent.
    """

    pair: int
    first: int
    places: npt.NDArray[np.int8]
    luck: npt.NDArray[np.float64] | None
    lengths: dict[int, int]
    plies: int
    tallies: npt.NDArray[np.int64]
    seconds: float


def _line(data: Mapping[str, Any]) -> str:
    """Return one line of the record: JSON with its check sum at the end."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f'{text[:-1]},"crc":{zlib.crc32(text.encode())}}}\n'


def _parse(line: str) -> dict[str, Any] | None:
    """Return the data of a line, None if it is torn or damaged."""
    body, comma, crc = line.rstrip("\n").rpartition(',"crc":')
    if not comma or not crc.endswith("}") or not crc[:-1].isdigit():
        return None
    text = body + "}"
    if zlib.crc32(text.encode()) != int(crc[:-1]):
        return None
    data = json.loads(text)
    return data if isinstance(data, dict) else None


def result_line(result: Result) -> str:
    """Return a chunk as a line of the record."""
    data: dict[str, Any] = {
        "pair": result.pair,
        "first": result.first,
        "blocks": len(result.places),
        "won": "".join("-" if p < 0 else str(p) for p in result.places.ravel().tolist()),
        "lengths": {str(k): v for k, v in sorted(result.lengths.items())},
        "plies": result.plies,
        "tallies": result.tallies.tolist(),
        "seconds": round(result.seconds, 4),
    }
    if result.luck is not None:
        data["luck"] = np.round(result.luck, 5).ravel().tolist()
    return _line(data)


def read_result(data: Mapping[str, Any], seatings: int, kinds: int) -> Result:
    """Return the chunk of a line.

    Raises:
        RecordError: it does not fit the tournament.
    """
    try:
        blocks = data["blocks"]
        text = np.frombuffer(data["won"].encode("ascii"), np.uint8).astype(np.int16) - ord("0")
        places = np.where(text == ord("-") - ord("0"), -1, text).astype(np.int8)
        luck = data.get("luck")
        return Result(
            int(data["pair"]),
            int(data["first"]),
            places.reshape(blocks, seatings),
            None if luck is None else np.array(luck, np.float64).reshape(blocks, kinds),
            {int(k): int(v) for k, v in data["lengths"].items()},
            int(data["plies"]),
            np.array(data["tallies"], np.int64).reshape(2, len(TALLIES)),
            float(data["seconds"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, UnicodeError) as error:
        raise RecordError(f"a line does not fit the tournament: {error!r}") from None


def make_record(path: Path, header: Mapping[str, Any], results: Sequence[Result] = ()) -> None:
    """Start a record, with results if there are any; it appears whole or not at all."""
    lines = [_line({"format": FORMAT, **header}), *map(result_line, results)]
    write_whole(path, "".join(lines))


def read_lines(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Return the header, the lines of all finished chunks, and how many bytes of the file are good.

    Raises:
        RecordError: the file is not a record, or is damaged before its last line.
        OSError: the file cannot be read.
    """
    raw = path.read_bytes()
    *whole, torn = raw.split(b"\n")
    parsed: list[dict[str, Any]] = []
    for number, line in enumerate(whole, 1):
        try:
            data = _parse(line.decode("utf-8"))
        except (UnicodeDecodeError, ValueError):
            data = None
        if data is None or (number == 1 and data.get("format") != FORMAT):
            if number == 1:
                raise RecordError(f"{path} is not the record of a tournament ({FORMAT})")
            if number == len(whole) and not torn:
                torn = line + b"\n"  # a last line of which only the end reached the disk
                break
            raise RecordError(f"{path} is damaged in line {number}: its check sum does not fit")
        parsed.append(data)
    if not parsed:
        raise RecordError(f"{path} is not the record of a tournament ({FORMAT})")
    return parsed[0], parsed[1:], len(raw) - len(torn)


@contextmanager
def appending(path: Path, good: int) -> Iterator[IO[bytes]]:
    """Open a record to write on, cut to its good bytes; nobody else may write to it meanwhile.

    Raises:
        RecordError: another process writes to it.
    """
    with open(path, "r+b", buffering=0) as file:
        _lock(file, path)
        if os.fstat(file.fileno()).st_size < good:
            raise RecordError(f"{path} has become shorter while it was read")
        file.truncate(good)
        file.seek(0, os.SEEK_END)
        yield file


def _lock(file: IO[bytes], path: Path) -> None:
    """Take the file for this process; the system lets go of it when the process ends."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RecordError(f"another process is playing {path} right now") from None


def append(file: IO[bytes], result: Result) -> None:
    """Write a finished chunk and have it on the disk before going on."""
    data = result_line(result).encode()
    while data:
        data = data[file.write(data) :]
    os.fsync(file.fileno())
