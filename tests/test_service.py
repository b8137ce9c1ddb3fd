"""The service: positions in, answers out; keys, limits and errors; the document of its routes."""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kimble_app.api import schema
from kimble_app.service.app import make_app
from kimble_app.service.guards import Rates
from kimble_app.service.settings import Settings, SettingsError
from kimble_env import Game
from tests.serving import KEY, ROOT, serving

POSITION = "norske R3,20/B0/Y-/G- R 4 1"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("service"), origins=("https://example.org",)) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=300) as found:
        yield found


def error(response: httpx.Response, status: int, code: str, field: str | None = None) -> str:
    """Check that an answer is an error, and nothing else; return its message."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"code", "message", "field"}
    assert (body["code"], body["field"]) == (code, field)
    assert "Traceback" not in body["message"]
    return str(body["message"])


def test_a_move_comes_back_with_its_rivals(client: httpx.Client) -> None:
    position = "kimble[pieces=2] R3,20/Y5,9 R 4 1"
    answer = client.post("/v1/move", json={"position": position, "agent": "exact", "seed": 1})
    assert answer.status_code == 200
    body = schema.MoveAnswer.model_validate(answer.json())
    legal = {move.text for move in Game.from_text(position).legal_moves}
    assert {row.move for row in body.ranked} == legal
    assert body.move == body.ranked[0].move
    assert body.ranked[0].loss == 0.0


def test_every_stateless_route_answers(client: httpx.Client) -> None:
    two = [POSITION, "kombat R3,20/B7/Y- R 4 1"]
    calls = [
        ("move", {"position": POSITION}, schema.MoveAnswer),
        ("moves", {"position": POSITION}, schema.MovesAnswer),
        ("play", {"position": POSITION, "move": "20-24"}, schema.PlayAnswer),
        ("move/batch", {"positions": two, "agent": "cautious"}, schema.MoveBatchAnswer),
        ("moves/batch", {"positions": two}, schema.MovesBatchAnswer),
        ("play/batch", {"plays": [{"position": POSITION, "move": "20-24"}]},
         schema.PlayBatchAnswer),
    ]  # fmt: skip
    for path, body, shape in calls:
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == 200, (path, answer.text)
        shape.model_validate(answer.json())
    looks = [
        ("agents", schema.AgentsAnswer),
        ("models", schema.ModelsAnswer),
        ("rules", schema.RulesAnswer),
        ("layout", schema.LayoutAnswer),
        ("health", schema.HealthAnswer),
    ]
    for path, shape in looks:
        answer = client.get(f"/v1/{path}")
        assert answer.status_code == 200, (path, answer.text)
        shape.model_validate(answer.json())
    figures = client.get("/v1/metrics").text
    assert 'kimble_requests_total{route="/v1/move",status="200"}' in figures
    assert "kimble_moves_total" in figures


def test_dice_are_drawn_from_the_seed(client: httpx.Client) -> None:
    body = {"position": "norske R3,20/B0/Y-/G- R - 1", "seed": 5}
    first = client.post("/v1/play", json=body).json()
    assert first == client.post("/v1/play", json=body).json()
    game = Game.from_text(str(body["position"]), 5)
    assert first["die"] == game.throw()
    assert first["position"] == game.to_text()
    faces = {client.post("/v1/play", json={**body, "seed": n}).json()["die"] for n in range(40)}
    assert faces == {1, 2, 3, 4, 5, 6}


JSON = {"Content-Type": "application/json"}


def test_errors_have_one_shape(client: httpx.Client) -> None:
    error(client.post("/v1/move", content="{", headers=JSON), 400, "bad_json")
    for kind in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-json"}):
        content = json.dumps({"position": POSITION})
        error(client.post("/v1/move", content=content, headers=kind), 415, "not_json")
    error(client.post("/v1/move", json=[]), 422, "bad_request")
    error(client.post("/v1/move", json={}), 422, "bad_request", "position")
    error(client.post("/v1/move", json={"position": 3}), 422, "bad_request", "position")
    error(client.post("/v1/move", json={"position": "x"}), 422, "bad_position", "position")
    wrong = {"position": POSITION, "nonsense": 1}
    error(client.post("/v1/move", json=wrong), 422, "bad_request", "nonsense")
    for seed in (-1, 2**64, "1", 1.5, True):
        body = {"position": POSITION, "seed": seed}
        error(client.post("/v1/move", json=body), 422, "bad_request", "seed")
    body = {"position": POSITION, "agent": "mine.py:play"}
    text = error(client.post("/v1/move", json=body), 422, "bad_agent", "agent")
    assert "/v1/agents" in text
    error(client.get("/v1/nothing"), 404, "not_found")
    error(client.get("/v1/move"), 405, "wrong_method")
    error(client.get("/v1/rules", params={"rules": "poker"}), 422, "bad_rules", "rules")
    error(client.get("/v1/layout", params={"viewer": 9}), 422, "bad_request", "viewer")
    batch = {"positions": [POSITION, "nonsense"]}
    error(client.post("/v1/move/batch", json=batch), 422, "bad_position", "positions[1]")
    deep = "[" * 100_000
    error(client.post("/v1/move", content=deep, headers=JSON), 400, "bad_json")
    error(client.post("/v1/move", content=b"\xff\xfe", headers=JSON), 400, "bad_json")


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_fuzzed_positions_are_answered_or_refused(
    client: httpx.Client, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([POSITION, "kombat R3,20/B7/Y- R 4 1", "kimble R-/Y- R - 1"]))
    text = list(start)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(text) - 1))
        text[i] = data.draw(st.sampled_from([*"RBYG/-x,H0123456789* []=", "", "é", "\0", "\ud800"]))
    body = json.dumps({"position": "".join(text), "agent": "random"})
    for path in ("move", "moves", "play"):
        answer = client.post(f"/v1/{path}", content=body, headers=JSON)
        assert answer.status_code in (200, 409, 422), (path, body, answer.text)


def test_limits(tmp_path: Path) -> None:
    limits = {"body": 3000, "batch": 5, "rate": 1.0, "burst": 60}
    with serving(tmp_path, **limits) as url, httpx.Client(base_url=url, timeout=300) as client:
        long = {"positions": [POSITION] * 200}
        error(client.post("/v1/move/batch", json=long), 413, "too_large")
        parts = iter([b" " * 2000] * 5)
        error(client.post("/v1/move", content=parts, headers=JSON), 413, "too_large")
        six = {"positions": [POSITION] * 6}
        for path in ("move/batch", "moves/batch", "evaluate/batch"):
            error(client.post(f"/v1/{path}", json=six), 413, "too_large", "positions")
        named = {**six, "agent": "random"}
        error(client.post("/v1/move/batch", json=named), 413, "too_large", "positions")
        plays = {"plays": [{"position": POSITION, "move": "20-24"}] * 6}
        error(client.post("/v1/play/batch", json=plays), 413, "too_large", "plays")
        statuses = [client.get("/v1/health").status_code for _ in range(80)]
        assert statuses[0] == 200
        refused = client.get("/v1/health")
        error(refused, 429, "too_many")
        assert refused.headers["retry-after"] == "1"


def test_rates_fill_up_again_and_forget() -> None:
    rates = Rates(2.0, 3)
    assert [rates.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert rates.take("b", 0.0)
    assert rates.take("a", 0.6)
    assert not rates.take("a", 0.6)
    for n in range(10_100):
        rates.take(f"address {n}", 1.0)
    assert len(rates._buckets) == 10_000


def test_the_access_key(tmp_path: Path) -> None:
    with serving(tmp_path, key=KEY) as url, httpx.Client(base_url=url, timeout=300) as client:
        body = {"position": POSITION}
        error(client.post("/v1/move", json=body), 401, "no_token")
        for wrong in (KEY[:-1], KEY + "x", "é" * 20):
            headers = {"X-Kimble-Key": wrong.encode("latin-1")}
            answer = client.post("/v1/move", json=body, headers=headers)
            error(answer, 403, "forbidden")
        good = client.post("/v1/move", json=body, headers={"X-Kimble-Key": KEY})
        assert good.status_code == 200
        bearer = {"Authorization": f"Bearer {KEY}"}
        assert client.post("/v1/move", json=body, headers=bearer).status_code == 200
        assert client.get("/v1/health").status_code == 200
        error(client.get("/v1/metrics"), 401, "no_token")
        error(client.post("/v1/games", json={}), 401, "no_token")
        made = client.post("/v1/games", json={}, headers=bearer).json()
        address = f"/v1/games/{made['state']['game']}"
        # who has been invited needs no key, and who has only the key may not look in
        invited = {"Authorization": f"Bearer {made['invite']}"}
        assert client.post(address + "/join", json={}, headers=invited).status_code == 200
        error(client.get(address, headers=bearer), 403, "forbidden")


def test_only_listed_pages_may_ask(client: httpx.Client) -> None:
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
        answer = client.options("/v1/move", headers={"Origin": origin, **asked})
        assert (answer.headers.get("access-control-allow-origin") == origin) is allowed
        refused = client.post("/v1/move", content="{", headers={"Origin": origin, **JSON})
        assert (refused.headers.get("access-control-allow-origin") == origin) is allowed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"host": "0.0.0.0"}, "access key is needed"),
        ({"host": "example.org"}, "access key is needed"),
        ({"key": "short"}, "at least 16"),
        ({"database": "mysql://x"}, "database must be"),
        ({"origins": ("example.org",)}, "must be like"),
        ({"batch": 0, "burst": 0}, "batch must be at least 1.*|burst must be at least 1"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, object], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Settings(**options)  # type: ignore[arg-type]


def test_settings_that_can_be() -> None:
    Settings(host="::1")
    Settings(host="localhost")
    Settings(host="0.0.0.0", key=KEY)
    Settings(host="0.0.0.0", insecure=True)


def test_an_operators_agents_must_be_such_as_can_be_made(tmp_path: Path) -> None:
    """Said before it listens, not to the first client that names it."""
    for spec in ("nosuch", f"{tmp_path / 'none.py'}:play", "net:nowhere/at/all"):
        with pytest.raises(SettingsError, match="fits no rule set"):
            make_app(Settings(agents=(spec,)))
    own = tmp_path / "mine.py"
    own.write_text("def play(game):\n    return game.legal_moves[0]\n", encoding="utf-8")
    make_app(Settings(agents=(f"{own}:play", "net:norske-2p", "rollouts", "exact")))


def test_everything_is_compiled_before_it_listens(tmp_path: Path) -> None:
    """Else the first client to ask for a deeper search waits for a compiler."""
    program = (
        "from kimble_app.service.app import warm_up\n"
        "from agents.search_kernels import count_replies, grow\n"
        "warm_up()\n"
        "print(len(count_replies.signatures), len(grow.signatures))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_the_command_refuses_to_serve_everybody(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kimble_app", "serve", "--host", "0.0.0.0"]
    command += ["--database", f"sqlite:///{tmp_path / 'x.sqlite'}"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: host 0.0.0.0 lets other machines in")
    assert len(done.stderr.splitlines()) == 1


def test_work_that_takes_too_long_is_answered(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time\n\ndef play(game):\n    time.sleep(3)\n    return game.legal_moves[0]\n"
    )
    spec = f"{slow}:play"
    options = {"seconds": 0.5, "threads": 1, "queue": 1, "agents": (spec,)}
    with serving(tmp_path, **options) as url, httpx.Client(base_url=url, timeout=300) as client:
        body = {"position": POSITION, "agent": spec}

        def ask() -> httpx.Response:
            return client.post("/v1/move", json=body)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = [future.result() for future in [pool.submit(ask) for _ in range(6)]]
        codes = sorted(answer.json()["code"] for answer in answers)
        assert set(codes) == {"busy", "too_slow"}
        assert all(answer.status_code == 503 for answer in answers)
        assert client.get("/v1/health").status_code == 200  # the loop itself was never held


def test_the_document_is_what_the_code_says() -> None:
    """Renew it with: python -m kimble_app.service.document"""
    written = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert written == make_app().openapi(), "run: python -m kimble_app.service.document"


def test_the_document_describes_errors_as_they_are(url: str) -> None:
    document = httpx.get(f"{url}/v1/openapi.json", timeout=300).json()
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            for status, answer in route["responses"].items():
                if int(status) >= 400:
                    shape = answer["content"]["application/json"]["schema"]
                    assert shape["$ref"].endswith("/ErrorBody"), (path, method, status)


def test_batches_are_decided_quickly_enough_to_be_one_call(client: httpx.Client) -> None:
    rng, texts, seed = np.random.default_rng(0), [], 0
    while len(texts) < 3000:
        game, seed = Game("kimble", seed=seed), seed + 1
        while not game.over and len(texts) < 3000:
            game.throw()
            if game.legal_moves:
                texts.append(game.to_text())
                game.play(game.legal_moves[rng.integers(len(game.legal_moves))])
    body = {"positions": texts, "agent": "cautious", "seed": 3}
    began = time.process_time()
    answer = client.post("/v1/move/batch", json=body)
    assert time.process_time() - began < 30  # not a measure: a sign that it is not one by one
    moves = answer.json()["moves"]
    assert len(moves) == 3000
    for i in range(0, 3000, 371):
        alone = Game.from_text(texts[i])
        assert moves[i] in [move.text for move in alone.legal_moves]
