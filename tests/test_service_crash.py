"""The service is killed again and again, on SQLite and on PostgreSQL: nothing is lost or repeated.

A player goes on as a front end would: it repeats a request that got no answer with the same
``request_id``, and compares what it has been told with what is stored.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from kimble_app.service.dice import check_fair_game
from kimble_app.service.store import Store
from tests.serving import Player, Process, free_port, new_game


def postgres_folder() -> Path | None:
    """Where PostgreSQL's programs are; Debian keeps them off the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return places[0].parent if places else None


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of the tests' own; give its URL. It refuses to run as root, so another does."""
    programs = postgres_folder()
    if programs is None:
        message = "PostgreSQL (initdb) is not there"
        if os.environ.get("KIMBLE_REQUIRE_ALL"):
            pytest.fail(message)
        pytest.skip(message)
    with running_postgres(programs, tmp_path_factory.mktemp("postgres")) as url:
        yield url


@contextlib.contextmanager
def running_postgres(programs: Path, folder: Path) -> Iterator[str]:
    as_user: list[str] = []
    if os.geteuid() == 0:
        folder = Path(f"/tmp/kimble-postgres-{os.getpid()}")  # where another user may go
        folder.mkdir(mode=0o700)
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    port, data = free_port(), folder / "data"

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(programs / program), *arguments]
        done = subprocess.run(
            command,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    try:
        run("initdb", "-D", str(data), "-U", "tester", "--auth=trust", "--no-sync", "-E", "UTF8")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder}"
        run("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'games.sqlite'}"
    return str(request.getfixturevalue("postgres"))


class Killer:
    """Kills the service after a while, and starts it again."""

    def __init__(self, database: str) -> None:
        self.database, self.kills = database, 0
        self.service = Process(database)

    def kill_after(self, seconds: float) -> threading.Thread:
        def kill() -> None:
            time.sleep(seconds)
            self.service.kill()
            self.kills += 1

        thread = threading.Thread(target=kill)
        thread.start()
        return thread


class Table:
    """A game of two people and a bot that goes on through kills; what was answered is kept."""

    def __init__(self, killer: Killer) -> None:
        self.killer = killer
        self.client = httpx.Client(base_url=killer.service.url, timeout=300)
        told, self.players = new_game(
            self.client, 2, rules="kombat", players=3, bots={"B": {"agent": "cautious"}}
        )
        self.state, self.watch = told["state"], told["watch"]
        self.game, self.commitment = self.state["game"], self.state["commitment"]
        self.number, self.heard = 0, list[dict[str, Any]]()
        self.before = len(self.watcher().see("events").json()["events"])

    def watcher(self) -> Player:
        return Player(self.client, self.game, self.watch)

    def over(self) -> bool:
        return bool(self.state["status"] == "over")

    def take(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.state = answer.json()["state"]
        self.heard += answer.json()["events"]

    def next_request(self) -> tuple[str, str, dict[str, Any]]:
        """Return who asks for what: the chair, ``throw`` or ``move``, and the body."""
        self.number += 1
        body = {"request_id": f"a_request,_number_{self.number:08}"}
        if self.state["die"] is None:
            return self.state["chair"], "throw", body
        legal = self.state["legal"]
        return self.state["chair"], "move", {**body, "move": legal[self.number % len(legal)]}

    def play_until_killed(self) -> tuple[str, str, dict[str, Any]] | None:
        """Play on; return the request that got no answer, None if the game was over before."""
        while not self.over():
            chair, what, body = self.next_request()
            try:
                self.take(self.players[chair].ask(what, **body))
            except httpx.TransportError:
                return chair, what, body
        return None

    def start_again(self) -> None:
        self.client.close()
        self.killer.service = Process(self.killer.database)
        self.client = httpx.Client(base_url=self.killer.service.url, timeout=300)
        self.players = {
            letter: Player(self.client, self.game, player.token)
            for letter, player in self.players.items()
        }

    def check(self, pending: tuple[str, str, dict[str, Any]] | None) -> None:
        """Nothing answered is lost; a request sent again is done exactly once."""
        stored = everything(self.watcher())[self.before :]
        assert stored[: len(self.heard)] == self.heard
        if pending is not None:
            chair, what, body = pending
            again = self.players[chair].ask(what, **body)
            self.take(again)
            twice = self.players[chair].ask(what, **body)
            assert twice.json()["events"] == again.json()["events"]
        assert everything(self.watcher())[self.before :] == self.heard

    def finish(self) -> None:
        while not self.over():
            self.number += 1
            answer = self.players[self.state["chair"]].act(self.state, self.number)
            self.state = answer.json()["state"]
        record = self.watcher().see("record").json()
        assert check_fair_game(record, self.commitment)["throws"] > 0
        self.client.close()


def play_through_kills(killer: Killer, kills: int) -> int:
    """Play one game to its end, killed so many times or fewer if it ends early; return how often.

    The server is up when this returns.
    """
    rng, table, done = np.random.default_rng(kills), Table(killer), 0
    while done < kills and not table.over():
        thread = killer.kill_after(float(rng.uniform(0.02, 0.5)))
        pending = table.play_until_killed()
        thread.join()
        done += 1
        table.start_again()
        table.check(pending)
    table.finish()
    return done


def everything(player: Player) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = player.see("events", after=len(found), most=1000).json()
        found += page["events"]
        if len(found) >= page["last"]:
            return found


def test_killed_and_started_again(database: str) -> None:
    killer = Killer(database)
    try:
        play_through_kills(killer, 2 if database.startswith("sqlite") else 1)
    finally:
        killer.service.kill()


@pytest.mark.long
def test_killed_many_times(database: str) -> None:
    killer, left = Killer(database), 32
    try:
        while left > 0:
            left -= play_through_kills(killer, min(left, 8))
        assert killer.kills == 32
    finally:
        killer.service.kill()


def test_postgresql_keeps_games_as_sqlite_does(postgres: str) -> None:
    """The routes of games once more, in one process, so that it is quick."""
    from kimble_app.api import schema
    from kimble_app.api.specs import Access
    from kimble_app.service.host import Host
    from kimble_app.service.metrics import Metrics

    stores = [Store(postgres), Store(postgres)]
    hosts = [Host(store, Access(), Metrics()) for store in stores]
    try:
        body = schema.CreateRequest(players=2, request_id="a-creation-0123456789")
        told = hosts[0].create(body)
        assert hosts[1].create(body) == told
        game = told["state"]["game"]
        names = ["Änne 🎲", "Bo"]
        seats = [
            hosts[n].join(game, told["invite"], schema.JoinRequest(name=names[n])) for n in range(2)
        ]
        tokens = {seat["seat"]: seat["token"] for seat in seats}
        state = seats[1]["state"]
        assert state["chairs"][seats[0]["seat"]]["name"] == names[0]
        for n in range(60):
            throws = state["die"] is None
            act: Any = schema.ThrowRequest() if throws else None
            act = act or schema.GameMoveRequest(move=state["legal"][0])
            what = "throw" if throws else "move"
            state = hosts[n % 2].act(game, tokens[state["chair"]], what, act)["state"]
        events = stores[0].events(game)
        assert [event["n"] for event in events] == list(range(1, state["last"] + 1))
        assert stores[1].forget(4e9) >= 1
        assert stores[0].secret(game) is None
    finally:
        for host in hosts:
            host.close()
            host.store.close()
