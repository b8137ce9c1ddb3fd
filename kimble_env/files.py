"""Writing a file so that it is there whole, old or new, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file (text as UTF-8); its name appears, or changes, when all of it is on the disk.

    Raises:
        UnicodeEncodeError: text that is not Unicode. Nothing has changed.
        OSError: the file cannot be written. Nothing has changed.
    """
    data = content.encode() if isinstance(content, str) else content
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(place.parent))
    partial = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)
