"""Help for the tests of the service: servers in a thread or in a process, and players."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from kimble_app.service.server import make_server
from kimble_app.service.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
KEY = "a-key-of-the-tests-0123456789"


@contextlib.contextmanager
def serving(folder: Path, **options: Any) -> Iterator[str]:
    """Serve from a thread of this process; give the address."""
    options.setdefault("database", f"sqlite:///{folder / 'games.sqlite'}")
    options.setdefault("rate", 0.0)
    options.setdefault("seconds", 120.0)  # the first call of anything may compile it
    lines: list[str] = []
    server = make_server(Settings(port=0, **options), say=lines.append)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 600  # the first of all compiles
        while not lines and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert lines, "the service did not start"
        yield lines[0].split()[-1]
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the service did not stop"


class Process:
    """``kimble serve`` as a process of its own, to be killed."""

    def __init__(self, database: str, **environment: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "kimble_app", "serve", "--rate", "0"]
        command += ["--port", str(self.port), "--database", database]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{self.port}"
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("kimble serve: http"):
                return
        raise AssertionError("the service did not start: " + "".join(self.said))

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Player:
    """Somebody with a secret of a game."""

    def __init__(self, client: httpx.Client, game: str, token: str) -> None:
        self.client, self.game, self.token = client, game, token

    def ask(self, what: str, **body: Any) -> httpx.Response:
        return self.client.post(
            f"/v1/games/{self.game}/{what}", json=body, headers=bearer(self.token)
        )

    def see(self, what: str = "", **query: Any) -> httpx.Response:
        address = f"/v1/games/{self.game}" + (f"/{what}" if what else "")
        return self.client.get(address, params=query, headers=bearer(self.token))

    def act(self, state: dict[str, Any], choice: int = 0, **body: Any) -> httpx.Response:
        """Throw, or play a move that is legal."""
        if state["die"] is None:
            return self.ask("throw", **body)
        legal = [move for move in state["legal"] if move != "pass"] or ["pass"]
        return self.ask("move", move=legal[choice % len(legal)], **body)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def new_game(
    client: httpx.Client, people: int, **body: Any
) -> tuple[dict[str, Any], dict[str, Player]]:
    """Create a game and let so many people join; return what was told, and players by letter."""
    made = client.post("/v1/games", json=body)
    assert made.status_code == 201, made.text
    told = made.json()
    game, players = told["state"]["game"], {}
    for n in range(people):
        answer = client.post(
            f"/v1/games/{game}/join",
            json={"name": f"player {n}", "nonce": f"nonce {n} é"},
            headers=bearer(told["invite"]),
        )
        assert answer.status_code == 200, answer.text
        told["state"] = answer.json()["state"]
        players[answer.json()["seat"]] = Player(client, game, answer.json()["token"])
    return told, players
