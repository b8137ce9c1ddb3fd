"""Load on the service: ``python -m benchmarks.load``.

Starts ``kimble serve`` as a process of its own and measures, all in one run:

* 50 clients at 4 requests a second each: ``/v1/move``, and an empty endpoint (``/v1/health``), by
  turns, so that both meet the same machine; the 99th percentile of each and their ratio
* CPU time of one request of each kind, which is the same on a crowded machine
* moves a second of ``/v1/move/batch``, by batches that one client sends one after another
* games open at once with bots, each of them played on
* memory of the service over many requests

Clients are a process of their own too, with keep-alive connections. A request is due at a set time
and its waiting is counted from then, so a slow answer does not spare the next one its wait.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from kimble_env import Game

ROOT = Path(__file__).resolve().parent.parent
CLIENTS, PER_SECOND = 50, 4.0


class Service:
    """``kimble serve`` in a process."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "kimble_app", "serve", "--port", "0", "--rate", "0"]
        command += ["--database", f"sqlite:///{folder / 'games.sqlite'}", "--games", "100000"]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = ""
        for line in self.process.stderr:
            found = re.search(r"http://\S+", line)
            if found:
                self.url = found[0]
                break
        if not self.url:
            raise SystemExit("the service did not start")

    def memory(self) -> float:
        """Return its memory (resident set) in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+)", text)
        assert found is not None
        return int(found[1]) / 1024

    def cpu(self) -> float:
        """Return the CPU seconds that it has used."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").split(") ")[1]
        ticks = words.split()
        return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait(30)
        if self.process.stderr is not None:
            self.process.stderr.close()


def positions(count: int, rules: str, players: int, seed: int = 1) -> list[str]:
    """Return positions with a choice from games played at random, as text."""
    rng, texts = np.random.default_rng(seed), list[str]()
    while len(texts) < count:
        game = Game(rules, players=players, seed=int(rng.integers(2**40)))
        while not game.over and len(texts) < count:
            game.throw()
            if not game.legal_moves:
                continue
            if len(game.legal_moves) > 1:
                texts.append(game.to_text())
            game.play(game.legal_moves[rng.integers(len(game.legal_moves))])
    return texts


class Connection:
    """A keep-alive connection that sends requests made beforehand: a client that costs little."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Connection:
        """Connect."""
        host, port = url.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, request: bytes) -> int:
        """Send a request, read the whole answer, return its status."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None
        await self.reader.readexactly(int(length[1]))
        return int(head[9:12])


def post(path: str, body: Any) -> bytes:
    """Return a POST request as bytes."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


EMPTY = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"


async def _client(
    url: str, requests: Sequence[bytes], offset: float, waits: dict[int, list[float]], kinds: int
) -> None:
    """One client: its request k is due at offset + k / PER_SECOND; kind k % kinds."""
    connection = await Connection.open(url)
    begin = asyncio.get_running_loop().time() + offset
    for k, request in enumerate(requests):
        due = begin + k / PER_SECOND
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        status = await connection.ask(request)
        if status != 200:
            raise SystemExit(f"a request was answered with {status}")
        waits[k % kinds].append(asyncio.get_running_loop().time() - due)
    connection.writer.close()


async def latency(url: str, texts: list[str], agent: str, seconds: float) -> dict[str, Any]:
    """Measure /v1/move and the empty endpoint by turns; return waits in milliseconds."""
    waits: dict[int, list[float]] = {0: [], 1: []}
    each = int(seconds * PER_SECOND)
    clients = []
    for c in range(CLIENTS):
        requests = []
        for k in range(each):
            text = texts[(c * each + k) % len(texts)]
            body = {"position": text, "agent": agent}
            requests.append(EMPTY if k % 2 else post("/v1/move", body))
        offset = 0.5 + c / CLIENTS / PER_SECOND
        clients.append(_client(url, requests, offset, waits, 2))
    await asyncio.gather(*clients)
    out: dict[str, Any] = {"clients": CLIENTS, "requests_per_second": CLIENTS * PER_SECOND}
    for kind, name in ((0, "move"), (1, "empty")):
        for q in (50, 95, 99):
            out[f"{name}_p{q}_ms"] = round(float(np.percentile(waits[kind], q)) * 1000, 2)
        out[f"{name}_requests"] = len(waits[kind])
    out["p99_ratio"] = round(out["move_p99_ms"] / out["empty_p99_ms"], 2)
    return out


async def cost(service: Service, texts: list[str], agent: str, count: int) -> dict[str, Any]:
    """Send one request after another; return the CPU milliseconds that each kind costs.

    Unlike waits, these do not depend on what else the machine is doing.
    """
    connection, out = await Connection.open(service.url), dict[str, Any]()
    moves = [post("/v1/move", {"position": text, "agent": agent}) for text in texts[:500]]
    for name, requests in (("empty", [EMPTY]), ("move", moves)):
        before = service.cpu()
        for k in range(count):
            await connection.ask(requests[k % len(requests)])
        out[f"{name}_cpu_ms"] = round((service.cpu() - before) / count * 1000, 3)
    connection.writer.close()
    return {**out, "requests": count}


def batches(service: Service, texts: list[str], agent: str, rounds: int) -> dict[str, Any]:
    """Send all positions at once, some times; return moves a second, of wall and of CPU."""
    body = {"positions": texts, "agent": agent}
    with httpx.Client(base_url=service.url, timeout=120) as client:
        client.post("/v1/move/batch", json=body).raise_for_status()
        cpu, began = service.cpu(), time.perf_counter()
        for _ in range(rounds):
            client.post("/v1/move/batch", json=body).raise_for_status()
        wall, cpu = time.perf_counter() - began, service.cpu() - cpu
    moves = rounds * len(texts)
    return {
        "batch": len(texts),
        "moves": moves,
        "moves_per_second": round(moves / wall),
        "moves_per_cpu_second": round(moves / max(cpu, 1e-9)),
    }


def open_games(service: Service, count: int, rounds: int) -> dict[str, Any]:
    """Open so many games of one person and three bots, and play each some requests on."""
    before, began = service.memory(), time.perf_counter()
    with httpx.Client(base_url=service.url, timeout=60) as client:
        seats = []
        bots = {letter: {"agent": "cautious"} for letter in "BYG"}
        for _ in range(count):
            made = client.post("/v1/games", json={"bots": bots}).raise_for_status().json()
            game = made["state"]["game"]
            secret = {"Authorization": f"Bearer {made['invite']}"}
            seat = client.post(f"/v1/games/{game}/join", json={}, headers=secret)
            joined = seat.raise_for_status().json()
            seats.append([game, joined["token"], joined["state"]])
        opened = time.perf_counter() - began
        waits = []
        for _ in range(rounds):
            for seat in seats:
                waits.append(_play_on(client, seat))
    return {
        "games": count,
        "open_seconds": round(opened, 1),
        "actions": len(waits),
        "action_p50_ms": round(float(np.percentile(waits, 50)) * 1000, 2),
        "action_p99_ms": round(float(np.percentile(waits, 99)) * 1000, 2),
        "memory_grew_mb": round(service.memory() - before, 1),
    }


def _play_on(client: httpx.Client, seat: list[Any]) -> float:
    game, token, state = seat
    began = time.perf_counter()
    if state["status"] == "over" or state["chair"] != "R":
        return 0.0
    what, body = ("throw", {}) if state["die"] is None else ("move", {"move": state["legal"][0]})
    answer = client.post(
        f"/v1/games/{game}/{what}", json=body, headers={"Authorization": f"Bearer {token}"}
    )
    seat[2] = answer.raise_for_status().json()["state"]
    return time.perf_counter() - began


async def flood(service: Service, texts: list[str], agent: str, count: int) -> dict[str, Any]:
    """Send so many requests as fast as they are answered; return memory along the way."""
    marks = [round(service.memory(), 1)]
    requests = [post("/v1/move", {"position": text, "agent": agent}) for text in texts]
    for mark in range(10):

        async def run(first: int) -> None:
            connection = await Connection.open(service.url)
            for k in range(count // 80):
                await connection.ask(requests[(first + k) % len(requests)])
            connection.writer.close()

        await asyncio.gather(*(run(mark * 131 + c * 977) for c in range(8)))
        marks.append(round(service.memory(), 1))
    return {"requests": count // 80 * 80, "memory_mb": marks}


def measure(
    agent: str,
    rules: str,
    players: int,
    seconds: float,
    flood_requests: int,
    games: int,
    batch: int = 4000,
) -> dict[str, Any]:
    """Run everything; return one dict."""
    texts = positions(4000, rules, players)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        try:
            found: dict[str, Any] = {"agent": agent, "rules": rules, "players": players}
            asyncio.run(latency(service.url, texts, agent, min(2.0, seconds)))  # warm
            found["latency"] = asyncio.run(latency(service.url, texts, agent, seconds))
            each = min(3000, flood_requests)
            found["cost"] = asyncio.run(cost(service, texts, agent, each))
            some = texts[:batch]
            found["batch"] = batches(service, some, agent, max(2, int(seconds)))
            found["games"] = open_games(service, games, 2)
            found["memory"] = asyncio.run(flood(service, texts, agent, flood_requests))
        finally:
            service.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["service_cpu_seconds"] = round(used.ru_utime + used.ru_stime, 1)
    found["machine"] = {"python": platform.python_version(), "cores": os.cpu_count()}
    found["machine"]["load_average"] = [round(x, 1) for x in os.getloadavg()]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--agent", default="cautious")
    parser.add_argument("--rules", default="kimble")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--requests", type=int, default=100_000, help="for memory")
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=4000, help="positions sent at once")
    given = parser.parse_args(arguments)
    found = measure(
        given.agent,
        given.rules,
        given.players,
        given.seconds,
        given.requests,
        given.games,
        given.batch,
    )
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
