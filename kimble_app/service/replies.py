"""How answers and errors are written, and how the document describes them."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from kimble_app.api.errors import STATUS, ApiError, as_api_error
from kimble_app.api.schema import ErrorBody

_WORDS = {
    400: "not JSON",
    401: "no secret, or access key, was sent",
    403: "the wrong secret, or access key",
    404: "there is no such thing",
    405: "another method",
    409: "not now",
    413: "too much",
    415: "sent without Content-Type: application/json",
    422: "a value that cannot be",
    429: "too often",
    503: "too busy, or too much work",
}


class Json(Response):
    """An answer as JSON; numbers that JSON does not know are a fault of ours, found here."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return json.dumps(
            content, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()


def errors(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return what the document says of the errors with these codes."""
    statuses = sorted({STATUS[code] for code in codes})
    return {n: {"model": ErrorBody, "description": _WORDS[n]} for n in statuses}


COMMON = errors(
    "bad_json", "not_json", "no_token", "forbidden", "too_large", "bad_request", "too_many", "busy"
)
"""Errors that any route with a body may have."""
READING = errors("no_token", "forbidden", "bad_request", "too_many", "busy")
"""Errors that any other route may have."""


async def reply_error(request: Request, error: Exception) -> Response:
    """Return any error as ``{code, message, field}``."""
    shown = as_api_error(error)
    headers = {} if shown.retry_after is None else {"Retry-After": str(shown.retry_after)}
    if shown.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    metrics = request.app.state.metrics
    metrics.refused.labels(shown.code).inc()
    return JSONResponse(shown.as_dict(), shown.status, headers)


async def reply_invalid(request: Request, error: Exception) -> Response:
    """Return what FastAPI found in a request; a body that is no JSON has a code of its own."""
    found = error.errors()  # type: ignore[attr-defined]
    if any(fault["type"] == "json_invalid" for fault in found):
        error = ApiError("bad_json", "the body is not JSON")
    return await reply_error(request, error)


async def reply_http(request: Request, error: Exception) -> Response:
    """Return what Starlette refuses: an unknown path, another method, a body it cannot read."""
    status = getattr(error, "status_code", 400)
    codes = {404: "not_found", 405: "wrong_method", 400: "bad_json", 413: "too_large"}
    if status not in codes:
        return await reply_error(request, error)
    texts = {
        404: "there is nothing at this address; /v1/openapi.json lists all there are",
        405: "this address knows another method",
    }
    reply = await reply_error(
        request, ApiError(codes[status], texts.get(status, "the body cannot be read"))
    )
    for name, value in (getattr(error, "headers", None) or {}).items():
        reply.headers[name] = value
    return reply
