"""Runs the service in this process until it is told to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable

import uvicorn

from kimble_app.service.app import make_app
from kimble_app.service.settings import Settings

LARGEST_MESSAGE = 4096  # of a WebSocket: clients say who they are and no more
SECONDS_TO_FINISH = 10


class _Server(uvicorn.Server):
    """A server that says where it listens."""

    def __init__(self, config: uvicorn.Config, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say = say

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Begin to listen."""
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                self._say(f"kimble serve: http://{shown}:{port}")


def make_server(
    settings: Settings, proxy: str | None = None, say: Callable[[str], None] = print
) -> uvicorn.Server:
    """Return a server of the service; ``run`` or ``serve`` starts it.

    Args:
        settings: of the service.
        proxy: addresses of a proxy whose X-Forwarded-For is to be believed, None for none.
        say: told where it listens.
    """
    config = uvicorn.Config(
        make_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,  # addresses of people are nobody's business by default
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )
    return _Server(config, say)


def run(settings: Settings, proxy: str | None = None, say: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        SettingsError: a database that cannot be opened.
    """
    from kimble_app.service.store import Store

    Store(settings.database).close()  # wrong settings are told before anything listens
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.key is None and settings.insecure:
        say("kimble serve: --insecure: whoever can reach this machine can use it")
    server = make_server(settings, proxy, say)
    server.run()
    if not server.started:
        raise OSError(f"cannot listen on {settings.host}:{settings.port}")
