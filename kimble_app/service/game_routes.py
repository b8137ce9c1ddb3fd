"""Routes of games. The secret of a seat, an invitation or a watcher comes as a bearer token."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import PlainTextResponse, Response

from kimble_app.api import schema
from kimble_app.service.guards import bearer
from kimble_app.service.replies import COMMON, READING, Json, errors

router = APIRouter(prefix="/v1/games")
GameId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="the id of a game")]
_ONE = errors("not_found")
_ACTING = {**COMMON, **_ONE, **errors("conflict", "too_slow")}
_SECRET = {"security": [{"secret": []}]}


def _token(request: Request) -> str | None:
    return bearer(request.scope)  # type: ignore[arg-type]


async def _run(request: Request, method: str, *arguments: Any) -> Any:
    state = request.app.state
    return await state.keepers.run(getattr(state.host, method), *arguments)


@router.post("", response_model=schema.CreateAnswer, status_code=201,
             responses={**COMMON, **errors("conflict")})  # fmt: skip
async def create(request: Request, body: schema.CreateRequest) -> Response:
    """A new game. Its dice are fixed by a secret whose hash is told now."""
    return Json(await _run(request, "create", body), 201)


@router.post("/{game}/join", response_model=schema.JoinAnswer, responses=_ACTING,
             openapi_extra=_SECRET)  # fmt: skip
async def join(request: Request, game: GameId, body: schema.JoinRequest) -> Response:
    """Take a chair, with the secret of the invitation."""
    return Json(await _run(request, "join", game, _token(request), body))


@router.post("/{game}/throw", response_model=schema.ActAnswer, responses=_ACTING,
             openapi_extra=_SECRET)  # fmt: skip
async def throw(request: Request, game: GameId, body: schema.ThrowRequest) -> Response:
    """Throw the die."""
    return Json(await _run(request, "act", game, _token(request), "throw", body))


@router.post("/{game}/move", response_model=schema.ActAnswer, responses=_ACTING,
             openapi_extra=_SECRET)  # fmt: skip
async def move(request: Request, game: GameId, body: schema.GameMoveRequest) -> Response:
    """Play a move."""
    return Json(await _run(request, "act", game, _token(request), "move", body))


@router.post("/{game}/undo", response_model=schema.ActAnswer, responses=_ACTING,
             openapi_extra=_SECRET)  # fmt: skip
async def undo(request: Request, game: GameId, body: schema.UndoRequest) -> Response:
    """Ask for undo, agree or refuse; the last move of a person is taken back when all agree."""
    return Json(await _run(request, "act", game, _token(request), "undo", body))


@router.get("/{game}", response_model=schema.GameView, responses={**READING, **_ONE},
            openapi_extra=_SECRET)  # fmt: skip
async def look(request: Request, game: GameId) -> Response:
    """How the game stands."""
    return Json(await _run(request, "look", game, _token(request)))


@router.get("/{game}/events", response_model=schema.EventsAnswer, responses={**READING, **_ONE},
            openapi_extra=_SECRET)  # fmt: skip
async def events(
    request: Request,
    game: GameId,
    after: Annotated[int, Query(ge=0, le=10**9, description="the last event seen")] = 0,
    most: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """The events after one that was seen. (A WebSocket at the same address sends them as they
    happen.)"""
    return Json(await _run(request, "past", game, _token(request), after, most))


@router.get("/{game}/record", response_model=schema.FairRecord,
            responses={**READING, **_ONE, **errors("conflict")}, openapi_extra=_SECRET)  # fmt: skip
async def record(request: Request, game: GameId) -> Response:
    """The record with what checks its dice: for `kimble check-dice`."""
    return Json(await _run(request, "record", game, _token(request)))


@router.get("/{game}/record.jsonl", response_class=PlainTextResponse,
            responses={**READING, **_ONE, **errors("conflict")}, openapi_extra=_SECRET)  # fmt: skip
async def record_lines(request: Request, game: GameId) -> Response:
    """The bare record, lines of JSON: for `kimble watch` and `kimble analyze`."""
    found = await _run(request, "record", game, _token(request))
    return PlainTextResponse("".join(line + "\n" for line in found["record"]))
