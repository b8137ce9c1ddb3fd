"""Events of a game as they happen, over a WebSocket at ``/v1/games/ID/events``.

The client's first message is ``{"token": SECRET, "after": N}``: the secret of a seat, of the
invitation or of a watcher, and the last event that it has seen (0 for none). From then on it gets
every event after that one, in order and without gaps, each as one JSON text. Whoever was cut off
connects again and says where it was. Errors are sent as ``{code, message, field}`` and close the
connection.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from kimble_app.api.errors import ApiError, as_api_error
from kimble_app.service.guards import LOG

router = APIRouter(prefix="/v1/games")
SECONDS_TO_SAY_HELLO = 10.0
PAGE = 500
POLICY, TRY_AGAIN = 1008, 1013


class Hello(BaseModel):
    """The first message of a client."""

    model_config = ConfigDict(extra="forbid")
    token: StrictStr = Field(max_length=100)
    after: StrictInt = Field(default=0, ge=0, le=10**9)


@router.websocket("/{game}/events")
async def events(socket: WebSocket, game: str) -> None:
    """Send the events of a game until the client leaves."""
    await socket.accept()
    state = socket.app.state
    queue: asyncio.Queue[Any] | None = None
    try:
        if state.listening >= state.settings.connections:
            raise ApiError("busy", "too many connections", retry_after=10)
        state.listening += 1
        try:
            hello = await _hello(socket)
            queue = await state.host.listen(game, hello.token, state.keepers.run)
            await _stream(socket, game, hello, queue)
        finally:
            state.listening -= 1
            if queue is not None:
                state.host.leave(game, queue)
    except WebSocketDisconnect:
        pass
    except Exception as error:
        await _refuse(socket, error)


async def _hello(socket: WebSocket) -> Hello:
    """Wait for the first message."""
    try:
        text = await asyncio.wait_for(socket.receive_text(), SECONDS_TO_SAY_HELLO)
    except TimeoutError:
        raise ApiError("no_token", "no secret came") from None
    except KeyError:
        raise ApiError("bad_json", "the first message must be a text") from None
    try:
        return Hello.model_validate_json(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise ApiError("bad_json", "the first message is not JSON") from None
        raise as_api_error(error) from error


async def _stream(socket: WebSocket, game: str, hello: Hello, queue: asyncio.Queue[Any]) -> None:
    """Send what is stored, then what happens; end when the client ends or has fallen behind."""
    state, last = socket.app.state, hello.after
    while True:
        page = await state.keepers.run(state.host.past, game, hello.token, last, PAGE)
        for event in page["events"]:
            await socket.send_text(json.dumps(event, ensure_ascii=False))
            last = event["n"]
        if last >= page["last"]:
            break
    gone = asyncio.create_task(_until_gone(socket))
    try:
        while True:
            wait = asyncio.create_task(queue.get())
            done, _ = await asyncio.wait({wait, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone in done:
                wait.cancel()
                return
            event = wait.result()
            if event is None:
                raise ApiError("busy", "too far behind: connect again", retry_after=0)
            if event["n"] > last:
                await socket.send_text(json.dumps(event, ensure_ascii=False))
                last = event["n"]
    finally:
        gone.cancel()


async def _until_gone(socket: WebSocket) -> None:
    """Read and throw away what the client sends, until it leaves."""
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
    except (WebSocketDisconnect, RuntimeError):
        return


async def _refuse(socket: WebSocket, error: Exception) -> None:
    """Say what is wrong and close."""
    if not isinstance(error, ApiError):
        LOG.exception("a WebSocket failed")
    shown = as_api_error(error)
    socket.app.state.metrics.refused.labels(shown.code).inc()
    code = TRY_AGAIN if shown.code in ("busy", "too_slow", "internal") else POLICY
    try:
        await socket.send_text(json.dumps(shown.as_dict()))
        await socket.close(code, shown.code)
    except (RuntimeError, WebSocketDisconnect):
        pass  # gone already
