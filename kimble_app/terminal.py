"""The terminal: single keys as they are pressed, and its other screen."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "back", "\b": "back", "\x03": "stop"}


@contextmanager
def screen() -> Iterator[None]:
    """Use the terminal's other screen, without a cursor, and give the first one back."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[2J")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def split_keys(text: str) -> list[str]:
    """Return the keys in what a terminal sent: characters, and names for the others."""
    keys, at = [], 0
    while at < len(text):
        if text[at] == "\x1b":
            if text[at + 1 : at + 2] in ("[", "O"):
                end = at + 2
                while end < len(text) and not text[end].isalpha() and text[end] != "~":
                    end += 1
                keys.append(ARROWS.get(text[end : end + 1], "unknown"))
                at = end + 1
                continue
            keys.append("escape")
        else:
            keys.append(CONTROLS.get(text[at], text[at]))
        at += 1
    return keys


class _PosixKeys:
    """Keys as they are pressed, on systems with termios."""

    def read(self, wait: float) -> list[str]:
        import select

        ready, _, _ = select.select([sys.stdin], [], [], wait)
        if not ready:
            return []
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            return ["stop"]  # the terminal is gone
        return split_keys(data.decode(errors="replace"))


class _WindowsKeys:
    """Keys as they are pressed, on Windows."""

    def read(self, wait: float) -> list[str]:
        import msvcrt

        end = time.monotonic() + wait
        while not msvcrt.kbhit():  # type: ignore[attr-defined, unused-ignore]
            if time.monotonic() > end:
                return []
            time.sleep(0.02)
        key = msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
        if key in ("\x00", "\xe0"):
            code = msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
            return [{"H": "up", "P": "down"}.get(code, "unknown")]
        return split_keys(key)


@contextmanager
def keyboard() -> Iterator[Any]:
    """Read single keys; the terminal is given back as it was."""
    try:
        import termios
        import tty
    except ImportError:
        yield _WindowsKeys()
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        mode = termios.tcgetattr(sys.stdin)
        mode[3] &= ~termios.ISIG  # Ctrl-C is a key here: it stops, also while something is typed
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, mode)
        yield _PosixKeys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
