"""What stands before every route: who may come in, how often, with how much; and what they see.

One plain ASGI layer, so that an empty request costs microseconds. Order: the size and the rate of
what comes, the access key, the route; whatever goes wrong inside becomes ``{code, message, field}``
and is logged, and the client never sees a trace.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections import OrderedDict
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kimble_app.api.errors import ApiError, as_api_error
from kimble_app.service.metrics import Metrics
from kimble_app.service.settings import Settings

LOG = logging.getLogger("kimble.service")
OPEN_PATHS = ("/v1/health", "/v1/openapi.json")
"""Paths that need no access key: watchdogs and readers of the documentation have none."""
GAMES_PATH = "/v1/games/"
"""Below it the secret of a seat, an invitation or a watcher opens the game instead of the key."""
MOST_ADDRESSES = 10_000
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
]


def same_secret(given: str, expected: str) -> bool:
    """Compare two secrets in a time that tells nothing about them, not even their length."""
    return hmac.compare_digest(
        hashlib.sha256(given.encode(errors="replace")).digest(),
        hashlib.sha256(expected.encode(errors="replace")).digest(),
    )


class Rates:
    """A bucket of tokens for each address: ``burst`` at once, ``rate`` a second from then on."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now: float) -> bool:
        """Take a token of an address; False if it has none."""
        if not self._rate:
            return True
        tokens, last = self._buckets.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + (now - last) * self._rate)
        allowed = tokens >= 1.0
        self._buckets[address] = (tokens - allowed, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed


class Guards:
    """The layer itself.

    Args:
        app: what it stands before.
        settings: its limits.
        metrics: where it counts.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._rates = Rates(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or say why not."""
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).extend(_HEADERS)
            await send(message)

        try:
            self._let_in(scope)
            body = await self._read(scope, receive)
            await self.app(scope, _replay(body, receive), counted)
        except Exception as error:
            if not isinstance(error, ApiError):
                LOG.exception("%s %s failed", scope["method"], _route(scope))
            shown = as_api_error(error)
            self.metrics.refused.labels(shown.code).inc()
            if status:  # too late to say anything: the answer has begun
                raise
            await send_error(shown, counted)
        finally:
            route = _route(scope)
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - began)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._let_in(scope)
        except ApiError as error:
            self.metrics.refused.labels(error.code).inc()
            await receive()  # the offer to connect; closing now answers it with 403
            await send({"type": "websocket.close", "code": 1008, "reason": error.code})
            return
        await self.app(scope, receive, send)

    def _let_in(self, scope: Scope) -> None:
        client = scope.get("client")
        address = client[0] if client else ""
        if not self._rates.take(address, time.monotonic()):
            raise ApiError("too_many", "too many requests from this address", retry_after=1)
        key, path = self.settings.key, scope["path"]
        if key is None or path in OPEN_PATHS or scope.get("method") == "OPTIONS":
            return
        if path.startswith(GAMES_PATH):
            return  # the game asks for a secret of its own
        given = header(scope, b"x-kimble-key") or bearer(scope)
        if given is None:
            raise ApiError("no_token", "this service needs an access key: X-Kimble-Key: ...")
        if not same_secret(given, key):
            raise ApiError("forbidden", "that is not the access key")

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body whole, as long as it is not too large."""
        most = self.settings.body
        if scope["method"] == "POST" and not _is_json(header(scope, b"content-type")):
            # so a web page elsewhere cannot post here without asking (CORS) first
            raise ApiError("not_json", "send JSON, with the header Content-Type: application/json")
        length = header(scope, b"content-length")
        if length is not None and (not length.isdecimal() or int(length) > most):
            raise ApiError("too_large", f"a body may have {most} bytes at most")
        if scope["method"] in ("GET", "HEAD", "OPTIONS", "DELETE") and not length:
            return b""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return b""  # gone already
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise ApiError("too_large", f"a body may have {most} bytes at most")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


def _is_json(kind: str | None) -> bool:
    return kind is not None and kind.partition(";")[0].strip().lower() == "application/json"


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the body that has been read, and then what comes after it."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _route(scope: Scope) -> str:
    """Return the route's pattern: few and our own, unlike the paths that clients ask for."""
    return str(getattr(scope.get("route"), "path", "other"))


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request, None if it is not there."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def bearer(scope: Scope) -> str | None:
    """Return the secret of ``Authorization: Bearer ...``, None if there is none."""
    text = header(scope, b"authorization") or ""
    kind, _, secret = text.partition(" ")
    return secret.strip() or None if kind.lower() == "bearer" else None


async def send_error(error: ApiError, send: Send) -> None:
    """Send ``{code, message, field}``."""
    body = json.dumps(error.as_dict()).encode()
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    start: dict[str, Any] = {"type": "http.response.start", "status": error.status}
    await send({**start, "headers": headers})
    await send({"type": "http.response.body", "body": body})
