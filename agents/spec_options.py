"""Options in the spec of an agent or an evaluator: ``depth=2,eval=linear``.

Commas part them. A value that holds commas itself stands in brackets:
``eval=(rollouts:n=20,plies=30)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kimble_env.errors import AgentError

Reader = Callable[[str], Any]
"""Reads the text of a value; raises ValueError with what was expected."""

_OPENING, _CLOSING = "([{", ")]}"


def whole_number(low: int, high: int) -> Reader:
    """Return a reader of whole numbers from ``low`` to ``high``."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not low <= int(text[:20]) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def yes_or_no(text: str) -> bool:
    """Read ``yes`` or ``no``."""
    if text not in ("yes", "no"):
        raise ValueError("yes or no")
    return text == "yes"


def any_text(text: str) -> str:
    """Read any text but an empty one."""
    if not text:
        raise ValueError("something")
    return text


def read_options(
    kind: str, argument: str, readers: Mapping[str, Reader], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options that an argument sets, over the defaults.

    Args:
        kind: of the agent or evaluator, for messages.
        argument: what follows the colon of a spec; may be empty.
        readers: of every option that there is.
        defaults: value of every option that is not set.

    Raises:
        AgentError: naming every fault: unknown options, values out of range, one set twice.
    """
    options, faults, seen = dict(defaults), [], set()
    for part in _split(argument) if argument else []:
        name, equals, value = part.partition("=")
        if not equals:
            faults.append(f"expected option=value, got {part!r}")
            continue
        if name not in readers:
            close = get_close_matches(name, readers, 1)
            faults.append(f"no option {name!r}" + (f", did you mean {close[0]}?" if close else ""))
            continue
        if name in seen:
            faults.append(f"{name} is set twice")
        seen.add(name)
        try:
            options[name] = readers[name](_without_brackets(value))
        except ValueError as error:
            faults.append(f"{name} must be {error}, got {value!r}")
    if faults:
        raise AgentError(f"{kind}: {'; '.join(faults)}; options: {', '.join(readers)}")
    return options


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _without_brackets(value: str) -> str:
    return value[1:-1] if value.startswith("(") and value.endswith(")") else value


def write_options(
    kind: str, options: Mapping[str, Any], defaults: Mapping[str, Any], always: Sequence[str] = ()
) -> str:
    """Return one spec for all ways of writing these options: those at their default left out.

    Args:
        kind: of the agent or evaluator.
        options: values of all options.
        defaults: the values that are left out.
        always: options that are written even so.
    """
    parts = []
    for name, default in defaults.items():
        value = options[name]
        if value == default and name not in always:
            continue
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        parts.append(f"{name}=({text})" if "," in text else f"{name}={text}")
    return f"{kind}:{','.join(parts)}" if parts else kind
