"""Games at the service: seats and secrets, turns, undo, bots, dice that can be checked, events."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from kimble_app.api import schema
from kimble_app.api.errors import ApiError
from kimble_app.api.specs import Access
from kimble_app.service import table as table_module
from kimble_app.service.dice import Dice, DiceError, check_fair_game, commitment, read_fair_game
from kimble_app.service.host import Host
from kimble_app.service.metrics import Metrics
from kimble_app.service.settings import SettingsError
from kimble_app.service.store import MovedError, Store
from kimble_app.service.table import Chair, Table
from kimble_env import Game
from kimble_env.errors import AgentError, KimbleError
from kimble_env.rules import find_rules
from tests.serving import Player, bearer, new_game, serving
from tests.test_service import error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("games")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=300) as found:
        yield found


def play_on(
    players: dict[str, Player], state: dict[str, Any], most: int = 10_000
) -> dict[str, Any]:
    """Let people throw and play, not cleverly, up to so many requests."""
    for n in range(most):
        if state["status"] == "over":
            break
        answer = players[state["chair"]].act(state, n)
        assert answer.status_code == 200, answer.text
        state = answer.json()["state"]
    return state


@pytest.mark.parametrize(
    ("rules", "people", "bots"),
    [
        ("kimble[pieces=1]", 2, "BG"),
        ("kombat[pieces=2]", 3, ""),
        ("norske[pieces=2]", 1, "Y"),
        ("kimble[die=popomatic,pieces=1]", 2, ""),
        ("kombat[die=popomatic,pieces=1]", 2, ""),
        ("kimble[two_colours=yes,pieces=1]", 1, "B"),
        ("kimble[play_for_places=yes,pieces=1]", 2, "B"),
        ("kimble[max_turns=30]", 2, ""),
    ],
)
def test_a_game_from_beginning_to_end(
    client: httpx.Client, rules: str, people: int, bots: str
) -> None:
    seats = people + len(bots)
    body: dict[str, Any] = {"rules": rules}
    body["bots"] = {letter: {"agent": "cautious", "level": 4} for letter in bots}
    if "two_colours" not in rules:
        body["players"] = seats
        if bots == "Y":
            body["seats"] = "RY"
    told, players = new_game(client, people, **body)
    begun = told["state"]
    assert begun["status"] == "running"
    assert begun["secret"] is None
    state = play_on(players, begun)
    schema.GameView.model_validate(state)
    assert state["status"] == "over"
    assert commitment(bytes.fromhex(state["secret"])) == begun["commitment"]
    watcher = Player(client, state["game"], told["watch"])
    fair = watcher.see("record")
    assert fair.status_code == 200
    data = read_fair_game(fair.text)
    checked = check_fair_game(data, begun["commitment"])
    lines = watcher.see("record.jsonl").text.splitlines()
    game = Game.from_record(lines)
    assert game.to_text() == state["position"]
    assert checked["throws"] == game.plies
    events = all_events(watcher)
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert sum(event["kind"] == "throw" for event in events) == game.plies
    for event in events:
        schema.GameEvent.model_validate(event)
    error(next(iter(players.values())).ask("throw"), 409, "game_over")
    error(next(iter(players.values())).ask("undo"), 409, "conflict")


def all_events(player: Player) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = player.see("events", after=len(found), most=300).json()
        found += page["events"]
        if len(found) >= page["last"]:
            return found


def test_bots_play_among_themselves_to_the_end(client: httpx.Client) -> None:
    bots = {letter: {"agent": "cautious"} for letter in "RBYG"}
    told, _ = new_game(client, 0, rules="kimble[pieces=1]", bots=bots)
    watcher = Player(client, told["state"]["game"], told["watch"])
    for _ in range(600):
        state = watcher.see().json()
        if state["status"] == "over":
            break
    assert state["status"] == "over"
    check_fair_game(watcher.see("record").json(), told["state"]["commitment"])


# ------------------------------------------------------------------------------- who may do what


def test_tokens_wrong_missing_and_swapped(client: httpx.Client) -> None:
    told, players = new_game(client, 2, players=2)
    other, strangers = new_game(client, 2, players=2)
    state = told["state"]
    now, waiting = players[state["chair"]], players["Y" if state["chair"] == "R" else "R"]
    game = state["game"]
    address = f"/v1/games/{game}"
    for what in ("throw", "undo"):
        error(client.post(f"{address}/{what}", json={}), 401, "no_token")
    error(client.get(address), 401, "no_token")
    error(client.get(address, headers={"Authorization": "Basic eDp5"}), 401, "no_token")
    for token in ("x", "é" * 5, now.token[:-1], now.token + "0", now.token.upper(),
                  strangers["R"].token, other["invite"], other["watch"], "0" * 40):  # fmt: skip
        headers = {"Authorization": f"Bearer {token}".encode()}
        wanted = (403, "forbidden")
        for what in ("throw", "move", "undo", "join"):
            body = {"move": "enter"} if what == "move" else {}
            error(client.post(f"{address}/{what}", json=body, headers=headers), *wanted)
        for what in ("", "/events", "/record", "/record.jsonl"):
            error(client.get(address + what, headers=headers), *wanted)
    error(waiting.ask("throw"), 409, "not_your_turn")  # the other seat's secret
    for role in ("watch", "invite"):
        reader = Player(client, game, told[role])
        assert reader.see().json()["last"] == state["last"]
        error(reader.ask("throw"), 403, "forbidden")
        error(reader.ask("undo"), 403, "forbidden")
    error(Player(client, game, told["watch"]).ask("join"), 403, "forbidden")
    error(Player(client, game, told["invite"]).ask("join"), 409, "conflict", "seat")
    assert now.see().json()["last"] == state["last"]  # nothing of all that was done
    error(client.get("/v1/games/0123456789abcdef", headers=bearer("x")), 404, "not_found")
    error(client.get("/v1/games/..%2f..", headers=bearer("x")), 404, "not_found")
    error(client.get("/v1/games/zzz", headers=bearer("x")), 422, "bad_request", "game")


def test_secrets_are_not_in_the_database(client: httpx.Client, folder: Path) -> None:
    told, players = new_game(client, 2, players=2)
    data = b"".join(path.read_bytes() for path in folder.glob("games.sqlite*"))
    for token in (told["invite"], told["watch"], *(player.token for player in players.values())):
        assert token.encode() not in data


def test_bad_games_are_refused(client: httpx.Client) -> None:
    def create(**body: Any) -> httpx.Response:
        return client.post("/v1/games", json=body)

    error(create(rules="poker"), 422, "bad_rules", "rules")
    error(create(rules="norske[members=20]"), 422, "bad_rules", "rules")
    error(create(players=2, bots={"B": {"agent": "cautious"}}), 422, "bad_request", "bots")
    error(create(bots={"X": {"agent": "cautious"}}), 422, "bad_request", "bots.X")
    error(create(bots={"B": {"agent": "mine.py:play"}}), 422, "bad_agent", "agent")
    error(create(seats="RBX"), 422, "bad_request", "seats")
    error(create(request_id="short"), 422, "bad_request", "request_id")
    told, _ = new_game(client, 0, players=2)
    game = told["state"]["game"]
    host = Player(client, game, told["invite"])
    error(host.ask("join", name="x" * 41), 422, "bad_request", "name")
    error(host.ask("join", name="a\x00b"), 422, "bad_request", "name")
    error(host.ask("join", seat="B"), 409, "conflict", "seat")
    error(Player(client, game, told["watch"]).see("record"), 409, "conflict")


def test_moves_out_of_turn_or_out_of_the_rules(client: httpx.Client) -> None:
    told, players = new_game(client, 2, players=2, rules="kimble")
    state = told["state"]
    now = players[state["chair"]]
    error(now.ask("move", move="enter"), 422, "illegal_move", "move")
    error(now.ask("throw", after=state["last"] - 1), 409, "conflict", "after")
    thrown = now.ask("throw", after=state["last"]).json()
    while not thrown["state"]["legal"]:
        state = thrown["state"]
        now = players[state["chair"]]
        thrown = now.ask("throw").json()
    error(now.ask("throw"), 422, "illegal_throw")
    error(now.ask("move", move="1-2"), 422, "illegal_move", "move")
    error(now.ask("move", move=7), 422, "bad_request", "move")
    good = now.ask("move", move=thrown["state"]["legal"][0])
    schema.ActAnswer.model_validate(good.json())


# ------------------------------------------------------------------------------------------- undo


def until_move(players: dict[str, Player], state: dict[str, Any]) -> dict[str, Any]:
    """Throw until somebody has a move to play."""
    while state["die"] is None:
        state = players[state["chair"]].ask("throw").json()["state"]
    return state


def test_undo_needs_everybody(client: httpx.Client) -> None:
    told, players = new_game(client, 3, players=3, rules="kimble[pieces=1]")
    error(players["R"].ask("undo"), 409, "conflict")  # nothing to take back
    before = until_move(players, told["state"])
    mover = players[before["chair"]]
    after = mover.ask("move", move=before["legal"][-1]).json()["state"]
    others = [player for player in players.values() if player is not mover]
    asked = mover.ask("undo").json()["state"]
    assert asked["undo"] == [before["chair"]]
    error(others[0].ask("undo", agree="yes"), 422, "bad_request", "agree")
    refused = others[0].ask("undo", agree=False).json()["state"]
    assert refused["undo"] is None
    assert refused["position"] == after["position"]
    error(others[0].ask("undo", agree=False), 409, "conflict", "agree")
    others[0].ask("undo")
    half = others[1].ask("undo").json()["state"]
    assert half["position"] == after["position"]
    done = mover.ask("undo").json()
    assert done["state"]["position"] == before["position"]
    assert done["state"]["die"] == before["die"]
    assert done["state"]["undo"] is None
    assert done["events"][-1]["kind"] == "undone"
    state = play_on(players, done["state"])
    watcher = Player(client, state["game"], told["watch"])
    check_fair_game(watcher.see("record").json(), told["state"]["commitment"])


def test_a_request_for_undo_lapses_when_the_game_goes_on(client: httpx.Client) -> None:
    told, players = new_game(client, 2, players=2)
    state = until_move(players, told["state"])
    mover = players[state["chair"]]
    state = mover.act(state).json()["state"]
    mover.ask("undo")
    state = players[state["chair"]].act(state).json()["state"]
    assert state["undo"] is None


def test_undo_with_bots_alone_takes_their_moves_back_too_and_the_dice_stay(
    client: httpx.Client,
) -> None:
    told, players = new_game(client, 1, players=3, bots={"B": {"agent": "cautious"},
                                                         "Y": {"agent": "random"}})  # fmt: skip
    state = until_move(players, told["state"])
    me = next(iter(players.values()))
    move = state["legal"][0]
    first = me.ask("move", move=move).json()
    back = me.ask("undo").json()["state"]
    assert back["position"] == state["position"]
    again = me.ask("move", move=move).json()

    def dice(answer: dict[str, Any]) -> list[int]:
        return [event["die"] for event in answer["events"] if event["kind"] == "throw"]

    assert dice(first) == dice(again)  # nobody throws again for better luck
    assert first["state"]["position"] == again["state"]["position"]


# ------------------------------------------------------------------------------------ done once


def test_a_repeated_request_is_done_once(client: httpx.Client) -> None:
    name = "request-of-creation-0001"
    body = {"players": 2, "request_id": name}
    first, again = (client.post("/v1/games", json=body).json() for _ in range(2))
    assert first == again
    other = client.post("/v1/games", json={**body, "players": 3})
    error(other, 409, "conflict", "request_id")
    assert client.post("/v1/games", json={"players": 2}).json()["invite"] != first["invite"]
    game, host = first["state"]["game"], bearer(first["invite"])
    join = f"/v1/games/{game}/join"
    mine = [
        client.post(join, json={"request_id": "join-of-the-first-one"}, headers=host).json()
        for _ in range(3)
    ]
    assert len({(answer["seat"], answer["token"]) for answer in mine}) == 1
    named = {"request_id": "join-of-the-first-one", "name": "another"}
    error(client.post(join, json=named, headers=host), 409, "conflict", "request_id")
    yours = client.post(join, json={"request_id": "join-of-the-second-one"}, headers=host).json()
    assert yours["seat"] != mine[0]["seat"]
    players = {a["seat"]: Player(client, game, a["token"]) for a in (mine[0], yours)}
    state = yours["state"]
    now = players[state["chair"]]
    throw = {"request_id": "throw-number-one-of-mine"}
    answers = [now.ask("throw", **throw).json() for _ in range(3)]
    assert answers[0]["events"] == answers[1]["events"] == answers[2]["events"]
    assert answers[2]["state"]["last"] == state["last"] + len(answers[0]["events"])
    clash = now.ask("undo", **throw)
    error(clash, 409, "conflict", "request_id")


# ------------------------------------------------------------------------------------- WebSocket


@contextlib.contextmanager
def listen(url: str, game: str, token: str, after: int = 0) -> Iterator[Any]:
    with connect(f"{url.replace('http', 'ws')}/v1/games/{game}/events") as socket:
        socket.send(json.dumps({"token": token, "after": after}))
        yield socket


def test_events_come_as_they_happen_and_resume_where_one_was(
    url: str, client: httpx.Client
) -> None:
    told, players = new_game(client, 2, players=2, rules="kimble[pieces=2]")
    game, state = told["state"]["game"], told["state"]
    seen: list[dict[str, Any]] = []
    for cut in range(6):
        with listen(url, game, told["watch"], len(seen)) as socket:
            state = play_on(players, state, 10)
            while len(seen) < state["last"] - (cut % 2) * 3:  # leaves in the middle, now and then
                seen.append(json.loads(socket.recv(120)))
        state = play_on(players, state, 5)  # while nobody listens
    with listen(url, game, told["watch"], len(seen)) as socket:
        while len(seen) < state["last"]:
            seen.append(json.loads(socket.recv(120)))
    assert [event["n"] for event in seen] == list(range(1, state["last"] + 1))
    stored = all_events(Player(client, game, told["watch"]))
    assert seen == stored


def test_two_listeners_see_the_same(url: str, client: httpx.Client) -> None:
    told, players = new_game(client, 2, players=2)
    game = told["state"]["game"]
    with listen(url, game, told["watch"]) as one, listen(url, game, players["R"].token) as two:
        state = play_on(players, told["state"], 12)
        lists = [[json.loads(s.recv(120)) for _ in range(state["last"])] for s in (one, two)]
    assert lists[0] == lists[1]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"token": "wrong"}', "forbidden"),
        ('{"token": 3}', "bad_request"),
        ("not json", "bad_json"),
        ('{"token": "x", "after": -1}', "bad_request"),
        ("[]", "bad_request"),
    ],
)
def test_listeners_without_a_secret(
    url: str, client: httpx.Client, message: str, code: str
) -> None:
    told, _ = new_game(client, 0, players=2)
    address = f"{url.replace('http', 'ws')}/v1/games/{told['state']['game']}/events"
    with connect(address) as socket:
        socket.send(message)
        said = json.loads(socket.recv(120))
        assert said["code"] == code
        with pytest.raises(ConnectionClosed):
            socket.recv(120)
    with connect(address.replace(told["state"]["game"], "0" * 16)) as socket:
        socket.send(json.dumps({"token": told["watch"]}))
        assert json.loads(socket.recv(120))["code"] == "not_found"


def test_huge_messages_end_the_connection(url: str, client: httpx.Client) -> None:
    told, _ = new_game(client, 0, players=2)
    with listen(url, told["state"]["game"], told["watch"]) as socket:
        socket.recv(120)
        socket.send("x" * 100_000)
        with pytest.raises(ConnectionClosed):
            socket.recv(120)


# ---------------------------------------------------------------------------- dice, table, store


def test_the_dice_are_fair_and_those_of_the_recipe() -> None:
    dice = Dice(b"\x01" * 32, {0: "a", 2: "é"})
    game = Game("kimble", players=2, starter="R", seed=1)
    counts = [0] * 7
    for n in range(6000):
        counts[dice.throw(game, n)] += 1
    assert counts[0] == 0
    assert all(abs(count - 1000) < 150 for count in counts[1:])
    import hashlib
    import hmac

    mixed = hashlib.sha256('[["R","a"],["Y","é"]]'.encode()).hexdigest()
    digest = hmac.new(b"\x01" * 32, f"{mixed}|throw|R|0".encode(), hashlib.sha256).digest()
    assert dice.throw(game, 0) == 1 + int.from_bytes(digest[:8], "big") * 6 // 2**64
    other = Dice(b"\x01" * 32, {0: "b", 2: "é"})
    assert [other.throw(game, n) for n in range(20)] != [dice.throw(game, n) for n in range(20)]


def fair_game(rules: str = "kombat[pieces=1]") -> dict[str, Any]:
    table = Table("0" * 16, secrets.token_bytes(32), Access().agent)
    chairs = {0: Chair("bot", "a", "cautious"), 2: Chair("bot", "b", "random")}
    table.create(find_rules(rules, players=2), chairs)
    while table.bot_waits:
        table.play_bots(1000)
    return json.loads(json.dumps(table.fair_record()))


def test_changed_dice_are_found(tmp_path: Path) -> None:
    data = fair_game()
    found = check_fair_game(data)
    assert found["throws"] > 10
    good = tmp_path / "game.json"
    good.write_text(json.dumps(data), encoding="utf-8")
    other = fair_game()
    with pytest.raises(DiceError, match="you were told"):
        check_fair_game(data, other["dice"]["commitment"])
    swapped = {**data, "dice": other["dice"]}
    with pytest.raises(DiceError, match=r"by the secret|by its dice|who begins"):
        check_fair_game(swapped)
    nonces = {**data["dice"], "nonces": {"R": "mine", "Y": ""}}
    with pytest.raises(DiceError, match=r"by the secret|by its dice|who begins"):
        check_fair_game({**data, "dice": nonces})
    for key, value in (("secret", None), ("secret", "zz"), ("secret", "00" * 32),
                       ("nonces", {"X": ""}), ("nonces", {"R": 3})):  # fmt: skip
        with pytest.raises(DiceError):
            check_fair_game({**data, "dice": {**data["dice"], key: value}})
    for text in (
        "",
        "[]",
        "{}",
        json.dumps({**data, "dice": 3}),
        json.dumps({**data, "record": 3}),
    ):
        with pytest.raises(DiceError):
            read_fair_game(text)


def test_the_table_is_its_events() -> None:
    rules = find_rules("kombat[pieces=2]", players=3)
    table = Table("0" * 16, b"\x07" * 32, Access().agent)
    events = table.create(rules, {1: Chair("bot", "bot", "cautious")})
    events += table.join(None, "Ann", "n")
    events += table.join(2, "Bo", "")
    for n in range(150):
        if table.status == "over":
            break
        if table.bot_waits:
            events += table.play_bots(30)
        elif table.game is not None and table.game.die is None:
            events += table.throw(table.chair_to_act)
        else:
            assert table.game is not None
            legal = table.game.legal_moves
            events += table.move(table.chair_to_act, legal[n % len(legal)].text)
        if n % 20 == 19 and table.status != "over":
            events += table.undo(0, True)
            events += table.undo(2, n % 40 == 19)
        copy = Table("0" * 16, b"\x07" * 32, Access().agent)
        copy.replay(json.loads(json.dumps(events)))
        assert copy.view() == table.view()
    assert [event["n"] for event in events] == list(range(1, table.last + 1))


def test_another_process_that_was_quicker_is_noticed(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'games.sqlite'}"
    hosts = [Host(Store(address), Access(), Metrics()) for _ in range(2)]
    try:
        told = hosts[0].create(schema.CreateRequest(players=2))
        game = told["state"]["game"]
        for host in hosts:  # both have the game in memory before either changes it
            host.look(game, told["watch"])
        first = hosts[0].join(game, told["invite"], schema.JoinRequest())
        second = hosts[1].join(game, told["invite"], schema.JoinRequest())
        assert {first["seat"], second["seat"]} == {"R", "Y"}
        tokens = {first["seat"]: first["token"], second["seat"]: second["token"]}
        state = second["state"]
        for n in range(40):
            if state["status"] == "over":
                break
            what = "throw" if state["die"] is None else "move"
            body: Any = schema.ThrowRequest()
            if what == "move":
                body = schema.GameMoveRequest(move=state["legal"][0])
            state = hosts[n % 2].act(game, tokens[state["chair"]], what, body)["state"]
        assert [e["n"] for e in hosts[0].store.events(game)] == list(range(1, state["last"] + 1))
        with pytest.raises(MovedError):
            hosts[0].store.append(game, [{"n": 2, "kind": "joined"}], "open", "person")
    finally:
        for host in hosts:
            host.close()
            host.store.close()


def test_a_failing_disk_repeats_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    host = Host(store, Access(), Metrics())
    told = host.create(schema.CreateRequest(players=2))
    game = told["state"]["game"]
    seats = [host.join(game, told["invite"], schema.JoinRequest()) for _ in range(2)]
    tokens = {seat["seat"]: seat["token"] for seat in seats}
    state = seats[1]["state"]
    with monkeypatch.context() as broken:

        def fail(*_: Any, **__: Any) -> None:
            raise OSError("no space left")

        broken.setattr(store, "append", fail)
        with pytest.raises(OSError, match="no space"):
            host.act(game, tokens[state["chair"]], "throw", schema.ThrowRequest())
    assert host.look(game, told["watch"]) == state
    after = host.act(game, tokens[state["chair"]], "throw", schema.ThrowRequest())
    assert after["events"][0]["n"] == state["last"] + 1
    host.close()
    store.close()


def test_a_bot_that_fails_takes_nothing_back(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    host = Host(store, Access(), Metrics())
    bots = {"Y": schema.BotRequest(agent="cautious")}
    told = host.create(schema.CreateRequest(players=2, rules="kimble[starter=R]", bots=bots))
    game = told["state"]["game"]
    seat = host.join(game, told["invite"], schema.JoinRequest())

    def gone(*_: Any) -> Any:
        raise AgentError("that agent is gone")

    host._entries[game].table._find_agent = gone
    state, before = seat["state"], seat["state"]["last"]
    for _ in range(200):
        if state["chair"] != "R":
            break
        what = "throw" if state["die"] is None else "move"
        body: Any = schema.ThrowRequest()
        if what == "move":
            body = schema.GameMoveRequest(move=state["legal"][0])
        acted = host.act(game, seat["token"], what, body)
        before, state = acted["events"][0]["n"], acted["state"]
    assert state["chair"] == "Y"  # the bot waits for its agent …
    assert [event["n"] for event in store.events(game)][before - 1] == before  # … and I have moved
    host.close()
    store.close()


def test_old_games_can_be_forgotten(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    host = Host(store, Access(), Metrics())
    told = host.create(schema.CreateRequest(players=2))
    game, token = told["state"]["game"], told["watch"]
    assert host.look(game, token)["status"] == "open"
    assert host.forget(0.0) == 0
    assert host.forget(4e9) == 1
    assert store.secret(game) is None
    assert store.count_open() == 0
    with pytest.raises(KimbleError, match="no such game"):
        host.look(game, token)
    host.close()
    store.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:////no/such/folder/x.sqlite", "postgresql://"
                                 "nobody:secret@127.0.0.1:1/none"])  # fmt: skip
def test_databases_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Store(url)
    assert "secret" not in str(raised.value)


def test_too_many_games(tmp_path: Path) -> None:
    with serving(tmp_path, games=3) as url, httpx.Client(base_url=url, timeout=300) as client:
        for _ in range(3):
            new_game(client, 0)
        error(client.post("/v1/games", json={}), 429, "too_many")


def test_open_games_are_counted_alike_however_many_ask_at_once(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    metrics = Metrics()
    host = Host(store, Access(), metrics, most=5)
    bots = {letter: schema.BotRequest(agent="random") for letter in "RY"}

    def create(n: int) -> str:
        body = schema.CreateRequest(
            players=2, rules="kimble[pieces=1]", request_id=f"created-at-once-number-{n // 2}",
            bots=bots if n < 4 else None,
        )  # fmt: skip
        try:
            return str(host.create(body)["state"]["game"])
        except ApiError as refused:
            return refused.code

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(create, range(24)))
    assert "conflict" not in found
    host._bots.submit(lambda: None).result(timeout=120)  # bots have played to the end
    others = Host(store, Access(), Metrics(), most=5)  # another process counts what is stored
    for one in (host, others):
        one._count_open()
        assert one.metrics.games._value.get() == store.count_open()
    games = {name for name in found if name != "too_many"}
    over = sum(store.events(game)[-1]["kind"] == "over" for game in games)
    assert store.count_open() == len(games) - over <= 5
    host.close()
    others.close()
    store.close()


def test_bots_that_pass_for_ever_are_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "MOST_EVENTS", 150)
    store = Store(f"sqlite:///{tmp_path / 'games.sqlite'}")
    host = Host(store, Access(), Metrics())
    passes = schema.BotRequest(agent='weights:{"pass": 1}')
    bots = dict.fromkeys("RY", passes)
    told = host.create(schema.CreateRequest(players=2, rules="kimble", bots=bots))
    game, watch = told["state"]["game"], told["watch"]
    deadline = time.monotonic() + 120
    while host.look(game, watch)["status"] != "over":
        assert time.monotonic() < deadline, "the game goes on for ever"
        time.sleep(0.05)
    state = host.look(game, watch)
    schema.GameView.model_validate(state)
    assert state["over"]
    assert state["legal"] == []
    assert state["result"] == {"status": "truncated", "winner": None, "places": [], "out": []}
    assert store.events(game)[-1]["kind"] == "over"
    assert store.count_open() == host.metrics.games._value.get() == 0
    assert check_fair_game(host.record(game, watch))["throws"] > 50
    again = Host(store, Access(), Metrics())  # another process reads it alike
    assert again.look(game, watch) == state
    host.close()
    again.close()
    store.close()


def test_games_that_nobody_touches_make_room_again(tmp_path: Path) -> None:
    with serving(tmp_path, games=1) as url, httpx.Client(base_url=url, timeout=300) as client:
        new_game(client, 0)
        error(client.post("/v1/games", json={}), 429, "too_many")
    with serving(tmp_path, games=1, keep_days=1e-9) as url:
        with httpx.Client(base_url=url, timeout=300) as client:
            deadline = time.monotonic() + 120
            while client.post("/v1/games", json={}).status_code == 429:
                assert time.monotonic() < deadline, "the old game is still counted"
                time.sleep(0.2)


def test_the_command_checks_dice(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from kimble_app.cli import app

    data = fair_game()
    place, run = tmp_path / "game.json", CliRunner()
    place.write_text(json.dumps(data), encoding="utf-8")
    told = data["dice"]["commitment"]
    good = run.invoke(app, ["check-dice", str(place), "--commitment", told, "--json"])
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["commitment"] == told
    changed = json.loads(data["record"][1])
    changed["die"] = changed["die"] % 6 + 1
    for record in ([data["record"][0], json.dumps(changed), *data["record"][2:]], []):
        place.write_text(json.dumps({**data, "record": record}), encoding="utf-8")
        bad = run.invoke(app, ["check-dice", str(place)])
        assert bad.exit_code != 0
        assert isinstance(bad.exception, KimbleError)
