"""Routes that keep nothing: a position in, an answer out. ``kimble_app.api.answers`` thinks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kimble_app.api import answers, schema
from kimble_app.api.specs import SLOW_KINDS, kind_of
from kimble_app.service.replies import COMMON, READING, Json, errors

router = APIRouter(prefix="/v1")
_RULES = Query(max_length=600, description="a rules text", examples=["norske[pieces=2]"])
_PLAYERS = Query(ge=2, le=4, description="how many play; 4 if left out")
_DECIDING = {**COMMON, **errors("bad_position", "game_over", "too_slow")}


async def _decide(request: Request, body: Any, function: Any) -> Any:
    """Answer in a thread: searches have one of their own, so that they keep nobody waiting."""
    state = request.app.state
    spec = getattr(body, "agent", None) or ""
    workers = state.searchers if kind_of(spec) in SLOW_KINDS else state.workers
    return await workers.run(function, body, state.access, workers.until())


@router.post("/move", response_model=schema.MoveAnswer, responses=_DECIDING)
async def move(request: Request, body: schema.MoveRequest) -> Response:
    """The move of an agent, and what every legal move is worth."""
    answer = await _decide(request, body, answers.answer_move)
    request.app.state.metrics.moves.inc()
    return Json(answer)


@router.post("/moves", response_model=schema.MovesAnswer, responses=_DECIDING)
async def moves(request: Request, body: schema.MovesRequest) -> Response:
    """The legal moves."""
    state = request.app.state
    return Json(await state.workers.run(answers.answer_moves, body, state.access))


@router.post("/play", response_model=schema.PlayAnswer, responses=_DECIDING)
async def play(request: Request, body: schema.PlayRequest) -> Response:
    """The position after a throw, a move, or both."""
    state = request.app.state
    return Json(await state.workers.run(answers.answer_play, body, state.access))


@router.post("/evaluate", response_model=schema.EvaluateAnswer, responses=_DECIDING)
async def evaluate(request: Request, body: schema.EvaluateRequest) -> Response:
    """The chance of every seat to win."""
    return Json(await _decide(request, body, answers.answer_evaluate))


@router.post("/move/batch", response_model=schema.MoveBatchAnswer, responses=_DECIDING)
async def move_batch(request: Request, body: schema.MoveBatchRequest) -> Response:
    """A move for each of many positions."""
    answer = await _decide(request, body, answers.answer_move_batch)
    request.app.state.metrics.moves.inc(len(answer["moves"]))
    return Json(answer)


@router.post("/moves/batch", response_model=schema.MovesBatchAnswer, responses=_DECIDING)
async def moves_batch(request: Request, body: schema.MovesBatchRequest) -> Response:
    """The legal moves of each of many positions."""
    return Json(await _decide(request, body, answers.answer_moves_batch))


@router.post("/play/batch", response_model=schema.PlayBatchAnswer, responses=_DECIDING)
async def play_batch(request: Request, body: schema.PlayBatchRequest) -> Response:
    """Many plays, each on its own."""
    return Json(await _decide(request, body, answers.answer_play_batch))


@router.post("/evaluate/batch", response_model=schema.EvaluateBatchAnswer, responses=_DECIDING)
async def evaluate_batch(request: Request, body: schema.EvaluateBatchRequest) -> Response:
    """The chances of each of many positions of the same rules."""
    return Json(await _decide(request, body, answers.answer_evaluate_batch))


@router.get("/agents", response_model=schema.AgentsAnswer, responses=READING)
async def agents(
    request: Request,
    rules: Annotated[str, _RULES] = "kimble",
    players: Annotated[int | None, _PLAYERS] = None,
) -> Response:
    """The agents that can be asked under these rules."""
    state = request.app.state
    return Json(await state.workers.run(answers.answer_agents, rules, players, state.access))


@router.get("/models", response_model=schema.ModelsAnswer, responses=READING)
async def models(request: Request) -> Response:
    """The shipped networks, how they were made and what they are worth."""
    return Json(await request.app.state.workers.run(answers.answer_models))


@router.get("/rules", response_model=schema.RulesAnswer, responses=READING)
async def rules(
    request: Request,
    rules: Annotated[str, _RULES] = "kimble",
    players: Annotated[int | None, _PLAYERS] = None,
) -> Response:
    """Every option of a rule set in words."""
    return Json(await request.app.state.workers.run(answers.answer_rules, rules, players))


@router.get("/layout", response_model=schema.LayoutAnswer, responses=READING)
async def layout(
    request: Request,
    rules: Annotated[str, _RULES] = "kimble",
    players: Annotated[int | None, _PLAYERS] = None,
    viewer: Annotated[int, Query(ge=0, le=3, description="the seat at the lower left")] = 0,
) -> Response:
    """Where everything is on the board, for drawing it."""
    run = request.app.state.workers.run
    return Json(await run(answers.answer_layout, rules, players, viewer))


@router.get("/health", response_model=schema.HealthAnswer, responses=errors("too_many"))
async def health(request: Request) -> Response:
    """Here, and ready."""
    return Json({"status": "ok", "version": request.app.version})


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        **errors("no_token", "forbidden", "too_many"),
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    },
)
async def metrics(request: Request) -> Response:
    """Figures in the text format of Prometheus."""
    return Response(
        request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
    )
