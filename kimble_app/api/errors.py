"""Errors as ``{code, message, field}``: the same for HTTP, WebSocket and the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kimble_env.errors import (
    AgentError,
    GameOverError,
    IllegalMoveError,
    IllegalThrowError,
    KimbleError,
    NotationError,
    PositionError,
    RulesError,
)

STATUS = {
    "bad_request": 422,  # a body of another shape, a value out of range
    "bad_json": 400,
    "bad_rules": 422,
    "bad_position": 422,
    "bad_agent": 422,
    "illegal_move": 422,
    "illegal_throw": 422,
    "game_over": 409,
    "not_your_turn": 409,
    "conflict": 409,
    "no_token": 401,
    "forbidden": 403,
    "not_found": 404,
    "wrong_method": 405,
    "too_large": 413,
    "not_json": 415,
    "too_many": 429,
    "internal": 500,
    "busy": 503,
    "too_slow": 503,
}
"""Every code of an error, and the HTTP status that it comes with."""

_CODES: tuple[tuple[type[KimbleError], str], ...] = (
    (RulesError, "bad_rules"),
    (PositionError, "bad_position"),
    (NotationError, "bad_position"),
    (IllegalMoveError, "illegal_move"),
    (IllegalThrowError, "illegal_throw"),
    (GameOverError, "game_over"),
    (AgentError, "bad_agent"),
)
MOST_TEXT = 600
"""Longest message, in characters: a message quotes what was sent."""


class ApiError(KimbleError):
    """An error with a code, and the field of the request that it is about.

    Args:
        code: one of ``STATUS``.
        message: one sentence.
        field: such as ``position`` or ``positions[3]``; None for the request as a whole.
        retry_after: seconds after which trying again may help.
    """

    def __init__(
        self, code: str, message: str, field: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.field, self.retry_after = code, field, retry_after

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]

    def as_dict(self) -> dict[str, Any]:
        """Return ``{code, message, field}``."""
        text = str(self)
        shown = text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."
        return {"code": self.code, "message": shown, "field": self.field}


def as_api_error(error: Exception, field: str | None = None) -> ApiError:
    """Return any exception as an ApiError; what nobody foresaw says nothing of its inside."""
    if isinstance(error, ApiError):
        if error.field is None and field is not None:
            return ApiError(error.code, str(error), field, error.retry_after)
        return error
    if isinstance(error, KimbleError):
        code = next((code for kind, code in _CODES if isinstance(error, kind)), "bad_request")
        return ApiError(code, str(error), field)
    faults = _validation_faults(error)
    if faults is not None:
        return ApiError("bad_request", "; ".join(text for _, text in faults), faults[0][0])
    if isinstance(error, ModuleNotFoundError):
        return ApiError("bad_agent", f"the module {error.name} is not installed here", field)
    return ApiError("internal", "something went wrong here; it is in the log of the service")


def _validation_faults(error: Exception) -> list[tuple[str | None, str]] | None:
    """Return (field, sentence) for each fault that pydantic or FastAPI found, else None."""
    found = getattr(error, "errors", None)
    if not callable(found) or (not hasattr(error, "title") and not hasattr(error, "body")):
        return None
    faults = []
    for fault in found()[:20]:
        place = [part for part in fault["loc"] if part not in ("body", "query", "path", "header")]
        field = field_name(place)
        faults.append((field, f"{field}: {fault['msg']}" if field else str(fault["msg"])))
    return faults or [(None, "the request has another shape than expected")]


def field_name(place: list[Any]) -> str | None:
    """Return ``plays[3].move`` for ["plays", 3, "move"]; None for an empty list."""
    name = ""
    for part in place:
        if part == "[key]":  # pydantic's word for "the name itself, not what it holds"
            continue
        name += f"[{part}]" if isinstance(part, int) else f"{'.' * bool(name)}{part}"
    return name or None


@contextmanager
def about(field: str) -> Iterator[None]:
    """Whatever KimbleError is raised inside becomes an ApiError about this field."""
    try:
        yield
    except KimbleError as error:
        raise as_api_error(error, field) from error
