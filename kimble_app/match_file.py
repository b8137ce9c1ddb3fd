"""A refereed match in a file: one JSON line per call, on the disk before it is shown.

The first line is the match as ``RefereedGame.log`` begins it, with ``begun``, the time of day (in
seconds since 1970) of the match's second 0. Every further line is one entry of that log. A line is
written at once and flushed to the disk, so that a crash loses nothing that anybody has seen; a line
that a crash cut short is dropped when the file is opened again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from kimble_env.errors import KimbleError
from kimble_env.refereed import RefereedGame

Entry = dict[str, Any]


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _lock(descriptor: int, path: Path) -> None:
    """Refuse a second referee on one file (where the system knows such locks)."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise KimbleError(f"{path} is being refereed by another process") from None


def read_lines(data: bytes, path: Path) -> tuple[list[Entry], int]:
    """Return the entries of a file's content, and the length of what is whole.

    Raises:
        KimbleError: a line other than an unfinished last one cannot be read.
    """
    entries: list[Entry] = []
    length = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                break
            raise KimbleError(f"{path}, line {number}: not JSON ({error})") from None
        if not line.endswith(b"\n"):
            break  # whole, but nobody was told that it is on the disk
        entries.append(entry)
        length += len(line)
    return entries, length


class MatchFile:
    """The file of one match; ``game`` is the match, ``begun`` the time of day of second 0.

    Make one with :meth:`create` or :meth:`open`; ``save`` writes what the game's log has more than
    the file.
    """

    def __init__(self, path: Path, game: RefereedGame, begun: float, descriptor: int) -> None:
        self.path, self.game, self.begun = path, game, begun
        self.dropped = 0
        self._descriptor = descriptor
        self._saved = 0

    @classmethod
    def create(cls, path: Path, game: RefereedGame, begun: float) -> MatchFile:
        """Begin a new file.

        Raises:
            KimbleError: it exists already, or cannot be written.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            raise KimbleError(f"cannot begin {path}: {error.strerror}") from None
        _lock(descriptor, path)
        file = cls(path, game, begun, descriptor)
        file.save()
        _sync_folder(path.parent)
        return file

    @classmethod
    def open(cls, path: Path) -> MatchFile:
        """Open a match that was begun before, and play all of its log again.

        Raises:
            KimbleError: the file cannot be read, or does not tell a match; it says where.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise KimbleError(f"cannot open {path}: {error.strerror}") from None
        try:
            _lock(descriptor, path)
            data = path.read_bytes()
            entries, length = read_lines(data, path)
            game, begun = match_of(entries, path)
            if length < len(data):
                os.ftruncate(descriptor, length)
                os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        file = cls(path, game, begun, descriptor)
        file.dropped = len(data) - length
        file._saved = len(entries)
        return file

    def save(self) -> None:
        """Write what is new in the log, and wait until it is on the disk."""
        log = self.game.log
        new = log[self._saved :]
        if not new:
            return
        if self._saved == 0:
            new[0] = {**new[0], "begun": self.begun}
        data = b"".join(map(_line, new))
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)
        self._saved = len(log)

    def close(self) -> None:
        """Close the file; the match can be opened again at any time."""
        os.close(self._descriptor)

    def __enter__(self) -> MatchFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def match_of(entries: list[Entry], path: Path) -> tuple[RefereedGame, float]:
    """Return the match that the lines of a file tell, and when it was begun.

    Raises:
        KimbleError: they tell none.
    """
    if not entries or not isinstance(entries[0], dict):
        raise KimbleError(f"{path} is empty: no match was begun in it")
    header = dict(entries[0])
    begun = header.pop("begun", None)
    if isinstance(begun, bool) or not isinstance(begun, int | float):
        raise KimbleError(f"{path}, line 1: begun must be a time, got {begun!r}")
    try:
        return RefereedGame.from_log([header, *entries[1:]]), float(begun)
    except KimbleError as error:
        raise KimbleError(f"{path}: {error}") from error


def read_match(path: Path) -> tuple[RefereedGame, float]:
    """Return the match of a file, also while somebody referees it, and when it was begun.

    Raises:
        KimbleError: the file cannot be read, or does not tell a match.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KimbleError(f"cannot read {path}: {error.strerror}") from None
    return match_of(read_lines(data, path)[0], path)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file last, where folders can be flushed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
