"""``kimble engine``: JSON lines in and out, as a function, as a process, from Python and Node."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")

from hypothesis import given, settings
from hypothesis import strategies as st

from kimble_app import engine
from kimble_app.api import schema
from kimble_app.api.errors import STATUS

POSITION = "norske R3,20/B0/Y-/G- R 4 1"
ANSWERS = {
    "move": schema.MoveAnswer,
    "moves": schema.MovesAnswer,
    "play": schema.PlayAnswer,
    "move/batch": schema.MoveBatchAnswer,
    "moves/batch": schema.MovesBatchAnswer,
    "play/batch": schema.PlayBatchAnswer,
    "agents": schema.AgentsAnswer,
    "models": schema.ModelsAnswer,
    "rules": schema.RulesAnswer,
    "layout": schema.LayoutAnswer,
}
ASKED: dict[str, dict[str, Any]] = {
    "move": {"position": POSITION, "agent": "cautious", "seed": 1},
    "moves": {"position": POSITION},
    "play": {"position": POSITION, "move": "20-24", "seed": 1},
    "move/batch": {"positions": [POSITION, "kombat R3/B- R 4 1"], "agent": "random", "seed": 1},
    "moves/batch": {"positions": [POSITION]},
    "play/batch": {"plays": [{"position": "kimble R3/B- R - 1", "die": 4, "move": "3-7"}]},
    "agents": {"rules": "kimble[pieces=1]", "players": 2},
    "rules": {"rules": "norske", "players": 2},
    "layout": {"viewer": 2},
}


def ask(**data: Any) -> dict[str, Any]:
    """Return what is answered to a line."""
    return engine.answer_line(json.dumps(data).encode())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_answers_have_the_shapes_of_the_service(name: str) -> None:
    answer = ask(id=7, ask=name, **ASKED.get(name, {}))
    assert answer["id"] == 7
    assert "answer" in answer, answer
    ANSWERS[name].model_validate(answer["answer"])


def test_every_path_without_state_can_be_asked() -> None:
    assert set(engine.QUESTIONS) == {*ANSWERS, "evaluate", "evaluate/batch", "health", "quit"}


def test_the_move_is_that_of_the_service() -> None:
    from kimble_app.api.answers import answer_move

    answer = ask(ask="move", **ASKED["move"])["answer"]
    assert answer == answer_move(schema.MoveRequest(**ASKED["move"]))


@pytest.mark.parametrize(
    ("line", "code", "field", "word"),
    [
        (b"nonsense", "bad_json", None, "one JSON object"),
        (b"[1]", "bad_json", None, "list"),
        (b'"\xff"', "bad_json", None, "utf-8"),
        (b'{"id": NaN}', "bad_json", None, "NaN"),
        (b"[" * 100_000, "bad_json", None, "recursion"),
        (b'{"a": ' + b"9" * 5000 + b"}", "bad_json", None, "digits"),
        (b'{"id": [1]}', "bad_request", "id", "an id is"),
        (b'{"id": 1e999}', "bad_request", "id", "an id is"),
        (b"{}", "bad_request", "ask", "ask must be one of move"),
        (b'{"id": 1}', "bad_request", "ask", "got nothing"),
        (b'{"ask": "moev"}', "bad_request", "ask", "did you mean 'move'"),
        (b'{"ask": "move"}', "bad_request", "position", "required"),
        (b'{"ask": "health", "x": 1}', "bad_request", "x", "not permitted"),
        (b'{"ask": "move", "position": "chess"}', "bad_position", "position", "cannot read"),
        (b'{"ask": "move", "position": "kimble R3/B- R 4 1", "agent": "x"}', "bad_agent", "agent",
         "unknown agent"),
        (b'{"ask": "play", "position": "kimble R3/B- R 4 1", "move": "1-5"}', "illegal_move",
         "move", "not legal"),
    ],
)  # fmt: skip
def test_mistakes_are_answered(line: bytes, code: str, field: str | None, word: str) -> None:
    error = engine.answer_line(line)["error"]
    assert (error["code"], error["field"]) == (code, field)
    assert word in error["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["id", "ask", "position", "positions", "agent", "die", "seed", "level"])
VALUES = JSON | st.sampled_from(["move", "moves", "play", POSITION, "kimble R3/B- R - 1", "random"])


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=80) | st.dictionaries(NAMES, VALUES).map(lambda d: json.dumps(d).encode())
)
def test_no_line_is_left_without_a_good_answer(line: bytes) -> None:
    answer = engine.answer_line(line)
    assert set(answer) in ({"id", "answer"}, {"id", "error"})
    back = json.loads(engine.encode(answer), parse_constant=pytest.fail)
    if "error" in back:
        assert set(back["error"]) == {"code", "message", "field"}
        assert back["error"]["code"] in STATUS
        assert back["error"]["code"] != "internal", back


def test_lines_too_long_are_skipped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_LINE", 40)
    source = io.BytesIO(b"x" * 100 + b'\n\n{"id": 5, "ask": "health"}\n' + b"y" * 41)
    sink = io.BytesIO()
    engine.serve_lines(source, sink)
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [line.get("error", {}).get("code") for line in lines] == ["too_large", None, "too_large"]
    assert lines[1]["id"] == 5


BAD_AGENT = """
import sys
print("printed on import")

def talks(game):
    print("printed while thinking")
    return game.legal_moves[0]

def breaks(game):
    raise ZeroDivisionError("mine")

def leaves(game):
    sys.exit(3)
"""


def test_as_a_process_that_nothing_brings_down(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BAD_AGENT)
    asked = [{"id": name, "ask": "move", "position": POSITION, "agent": f"mine.py:{name}"}
             for name in ("talks", "breaks", "leaves")]  # fmt: skip
    lines = [*map(json.dumps, asked), "junk", '{"id": 9, "ask": "health"}', '{"ask": "quit"}', "x"]
    done = subprocess.run(
        [sys.executable, "-m", "kimble_app", "engine"], input="\n".join(lines), text=True,
        capture_output=True, timeout=300, cwd=tmp_path, env=_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["answer"]["move"] == "20-24"
    assert "printed while thinking" in done.stderr
    assert "ZeroDivisionError: mine" in answers[1]["error"]["message"]
    assert answers[2]["error"]["code"] == "bad_agent"
    assert "SystemExit: 3" in answers[2]["error"]["message"]
    assert answers[3]["error"]["code"] == "bad_json"
    assert answers[4]["answer"]["status"] == "ok"
    assert answers[5:] == [{"id": None, "answer": {}}]


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
