"""Settings of a learner: a frozen dataclass whose fields have a sentence and a range each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, TypeVar

from kimble_env.errors import KimbleError

S = TypeVar("S", bound="Settings")


def setting(default: Any, text: str) -> Any:
    """Return a field with its default and the sentence that ``--help`` says of it."""
    return field(default=default, metadata={"help": text})


class Settings:
    """What the settings of all learners can do; the dataclasses derive from it.

    Attributes:
        RANGES: lowest and highest value of every number, by name. A field whose default is a whole
            number takes whole numbers only.
    """

    RANGES: ClassVar[Mapping[str, tuple[float, float]]] = {}

    def range_faults(self) -> list[str]:
        """Return a sentence for every number that is none or out of its range."""
        return [text for text in map(self._fault, self.RANGES) if text]

    def _fault(self, name: str) -> str | None:
        low, high = self.RANGES[name]
        value = getattr(self, name)
        kind = int if isinstance(getattr(type(self), name), int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
            return f"{name} must lie in {low}..{high}, got {value!r}"
        return None

    def names(self, name: str) -> list[str]:
        """Return the specs of a comma-separated setting; none of them may hold a comma."""
        return [spec.strip() for spec in getattr(self, name).split(",") if spec.strip()]

    def command_line(self, start: str, leave_out: Sequence[str] = ()) -> str:
        """Return the command that repeats a run: ``start``, then what is not as by default."""
        words = [start]
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if f.name not in leave_out and value != f.default:
                text = f'"{value}"' if isinstance(value, str) and not value.isalnum() else value
                words.append(f"--{f.name.replace('_', '-')} {text}")
        return " ".join(words)


def read_settings(kind: type[S], given: Mapping[str, Any]) -> S:
    """Return the settings named, the rest as they are by default.

    Raises:
        KimbleError: a setting that does not exist, or a value that cannot be.
    """
    known = [name for name, _, _ in settings_help(kind)]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise KimbleError(f"unknown settings: {', '.join(unknown)}; known: {', '.join(known)}")
    return kind(**given)


def settings_help(kind: type[Settings]) -> list[tuple[str, Any, str]]:
    """Return (name, default, sentence) of every setting of a learner."""
    fields = dataclasses.fields(kind)
    return [(f.name, f.default, f.metadata["help"]) for f in fields]
