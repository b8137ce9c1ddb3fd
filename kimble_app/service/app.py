"""The service put together: :func:`make_app` returns an ASGI application."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import product
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from kimble_app.api import answers, schema
from kimble_app.api.errors import ApiError
from kimble_app.api.specs import Access
from kimble_app.service import game_routes, live, stateless
from kimble_app.service.guards import LOG, Guards
from kimble_app.service.host import Host
from kimble_app.service.metrics import Metrics
from kimble_app.service.replies import reply_error, reply_http, reply_invalid
from kimble_app.service.settings import Settings, SettingsError
from kimble_app.service.store import Store
from kimble_app.service.work import Workers
from kimble_env import __version__
from kimble_env.errors import KimbleError
from kimble_env.opponents import make_agent
from kimble_env.rules import PRESETS, find_rules

SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while others wait. Python's own 5 ms would be most of
what a client of this service waits for."""

_DESCRIPTION = """Moves, positions and games of Kimble, Kombat Kimble and Norske Kimble.

Positions are texts such as `norske R3,20/B0/Y-/G- R 4 1`: rules, the progress of each seat's
pieces, the seat to act, the die (or `-` before the throw), and the throws left. Errors are
`{code, message, field}`. The events of games also come over a WebSocket, see docs/service.md.
"""


def make_app(settings: Settings | None = None) -> FastAPI:
    """Return the service.

    Args:
        settings: what an operator has set; the defaults if None.

    Raises:
        SettingsError: an operator's agents that cannot be allowed.
    """
    chosen = Settings() if settings is None else settings
    app = FastAPI(
        title="Kimble RL",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
    )
    _check_own_agents(chosen.agents)
    _set_state(app, chosen)
    app.include_router(stateless.router)
    app.include_router(game_routes.router)
    app.include_router(live.router)
    app.add_exception_handler(ApiError, reply_error)
    app.add_exception_handler(RequestValidationError, reply_invalid)
    app.add_exception_handler(HTTPException, reply_http)
    app.add_middleware(Guards, settings=chosen, metrics=app.state.metrics)
    if chosen.origins:  # outermost, so that refusals can be read by the page too
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(chosen.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-kimble-key"],
            max_age=600,
        )
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def _check_own_agents(specs: Sequence[str]) -> None:
    """Check that an operator's agents can be made, under some rule set at least.

    Specs with a table of exact values are taken as they are: making one may solve the game.

    Raises:
        SettingsError: naming the first that cannot.
    """
    for spec in specs:
        if "exact" in spec:
            continue
        faults = []
        for name, players in product(PRESETS, (4, 2, 3)):
            try:
                make_agent(spec, find_rules(name, players=players))
                break
            except (KimbleError, ModuleNotFoundError) as error:
                faults.append(str(error))
        else:
            raise SettingsError(f"agent {spec!r} fits no rule set: {faults[0]}")


def _set_state(app: FastAPI, settings: Settings) -> None:
    metrics = Metrics()
    app.state.settings, app.state.metrics = settings, metrics
    app.state.access = Access(
        depth=settings.depth, batch=settings.batch, extra=settings.agents, kept=64
    )
    app.state.store = None  # opened when the service starts
    app.state.listening = 0


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the database and the threads; close them again."""
    state, settings = app.state, app.state.settings
    sys.setswitchinterval(SWITCH_SECONDS)
    limits = (settings.queue, settings.seconds, state.metrics)
    state.workers = Workers("kimble-move", settings.threads, *limits)
    state.searchers = Workers("kimble-search", 1, *limits)
    state.keepers = Workers("kimble-game", 2, *limits)
    await asyncio.to_thread(warm_up)
    state.store = await asyncio.to_thread(Store, settings.database)
    state.host = Host(state.store, state.access, state.metrics, settings.games)
    state.host.loop = asyncio.get_running_loop()
    keeper = asyncio.create_task(_forget_now_and_then(state.host, settings.keep_days))
    await asyncio.to_thread(state.host.resume)
    try:
        yield
    finally:
        keeper.cancel()
        state.host.close()
        for workers in (state.workers, state.searchers, state.keepers):
            workers.close()
        state.store.close()


async def _forget_now_and_then(host: Host, keep_days: float) -> None:
    """Delete what nobody has touched for so many days (0: nothing), at the start and every hour."""
    while keep_days:
        try:
            await asyncio.to_thread(host.forget, time.time() - keep_days * 86_400)
        except Exception:  # the database is away: the next hour may find it again
            LOG.exception("old games cannot be deleted")
        await asyncio.sleep(3600)


@cache
def warm_up() -> None:
    """Ask one of everything: what has not been compiled on this machine is compiled now.

    Else the first client to name an agent would wait for it, longer than a request may take.
    """
    access = Access()
    for name in PRESETS:
        text = answers.start_text(PRESETS[name])
        for agent in (None, "cautious", "search:depth=1", "search:depth=2", "cautious@level=5"):
            answers.answer_move(schema.MoveRequest(position=text, die=6, agent=agent), access)
        answers.answer_moves(schema.MovesRequest(position=text, die=6), access)
        answers.answer_play(schema.PlayRequest(position=text, die=6, move="enter"), access)
        answers.answer_evaluate(schema.EvaluateRequest(position=text), access)
    solved = schema.MoveRequest(position="kimble[pieces=2] R3,20/Y0,8 R 4 1", agent="exact")
    answers.answer_move(solved, access)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; FastAPI's own shape of errors is not ours, so it is left out."""
    if app.openapi_schema is None:
        build = FastAPI.openapi
        document = build(app)
        shapes = document.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            shapes.pop(name, None)
        for methods in document["paths"].values():
            for route in methods.values():
                _errors_are_json(route["responses"])
        document["components"]["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-Kimble-Key"},
            "secret": {"type": "http", "scheme": "bearer"},
        }
        app.openapi_schema = document
    return app.openapi_schema


def _errors_are_json(responses: dict[str, Any]) -> None:
    """Say that errors are JSON on routes whose answers are not."""
    for status, answer in responses.items():
        if int(status) >= 400:
            answer["content"] = {"application/json": next(iter(answer["content"].values()))}
