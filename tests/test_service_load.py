"""The load script in a short form, and a thousand games at once. Nothing here is timed."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from benchmarks.load import measure
from kimble_app.api import schema
from kimble_app.api.specs import Access
from kimble_app.service.host import Host
from kimble_app.service.metrics import Metrics
from kimble_app.service.store import Store


def test_the_load_script_in_a_short_form() -> None:
    found = measure("cautious", "kimble", 4, seconds=1.0, flood_requests=1600, games=10)
    assert found["latency"]["move_requests"] == found["latency"]["empty_requests"] == 100
    assert found["latency"]["p99_ratio"] > 0
    assert found["batch"]["moves"] == 8000
    assert found["games"]["actions"] == 20
    memory = found["memory"]["memory_mb"]
    assert found["memory"]["requests"] == 1600
    assert memory[-1] - memory[1] < 8, memory  # after the first tenth it stays as it is


def open_games(tmp_path: Path, count: int) -> None:
    """Open games of a person and three bots, then throw in each."""
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    host = Host(store, Access(), Metrics())
    bots = {letter: schema.BotRequest(agent="cautious", level=3) for letter in "BYG"}
    body = schema.CreateRequest(rules="kimble", bots=bots)
    seats = []
    for _ in range(count):
        made = host.create(body)
        game = made["state"]["game"]
        seats.append((game, host.join(game, made["invite"], schema.JoinRequest())))
    assert store.count_open() == count
    for game, seat in seats:
        state = seat["state"]
        assert (state["status"], state["chair"]) == ("running", "R")
        acted = host.act(game, seat["token"], "throw", schema.ThrowRequest())
        assert acted["events"][0]["thrown_by"] == "R"
    host.close()
    store.close()


def test_many_games_with_bots(tmp_path: Path) -> None:
    open_games(tmp_path, 100)


@pytest.mark.long
def test_a_thousand_games_with_bots(tmp_path: Path) -> None:
    before = resident()
    open_games(tmp_path, 1000)
    assert resident() - before < 100, "MB of memory for a thousand games"


def resident() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def test_work_is_not_kept_in_memory(tmp_path: Path) -> None:
    """Clients that send ever other weights, rules and seats fill no cache without end."""
    from kimble_app.api import answers, positions

    access = Access(kept=8)
    for n in range(60):
        text = f"kimble[max_sixes={n % 50 + 1}] R{n % 28}/B-/Y-/G- R 4 1"
        request = schema.MoveRequest(position=text, agent=f'weights:{{"capture": {n}}}')
        answers.answer_move(request, access)
    assert len(access._made) <= 8
    assert positions.MOST_PARTS <= 100_000
