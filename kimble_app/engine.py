"""``kimble engine``: one JSON object per line in, one per line out, for programs in any language.

A line asks for what a path of the service answers, under the path's own name, with the same fields;
what comes back is the same answer or the same error::

    {"id": 1, "ask": "move", "position": "norske R3,20/B0/Y-/G- R 4 1", "agent": "cautious"}
    {"id": 1, "answer": {"move": "20-24", "ranked": [...], ...}}
    {"id": 2, "ask": "move", "position": "chess"}
    {"id": 2, "error": {"code": "bad_position", "message": "...", "field": "position"}}

``id`` is given back as it came: a text, a number or null. Answers come in the order of the lines.
The engine ends when its input does, or when it is asked to ``quit``; no line makes it end
otherwise. Nothing but answers is ever written to its standard output.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from pydantic import Field, StrictInt, StrictStr

from kimble_app.api import answers, schema
from kimble_app.api.errors import ApiError, as_api_error
from kimble_app.api.specs import LOCAL
from kimble_env import __version__

MAX_LINE = 8_000_000
"""Longest line, in bytes: a batch of 10,000 positions needs less than a megabyte."""


class RulesQuestion(schema.Request):
    """What is asked about a rule set."""

    rules: StrictStr = Field(default="kimble", max_length=600)
    players: StrictInt | None = Field(default=None, ge=2, le=4)


class LayoutQuestion(RulesQuestion):
    """What is asked about drawing a board."""

    viewer: StrictInt = Field(default=0, ge=0, le=3)


class Nothing(schema.Request):
    """A question without fields."""


Question = tuple[type[schema.Request], Callable[[Any], dict[str, Any]]]

QUESTIONS: dict[str, Question] = {
    "move": (schema.MoveRequest, answers.answer_move),
    "moves": (schema.MovesRequest, answers.answer_moves),
    "play": (schema.PlayRequest, answers.answer_play),
    "evaluate": (schema.EvaluateRequest, answers.answer_evaluate),
    "move/batch": (schema.MoveBatchRequest, answers.answer_move_batch),
    "moves/batch": (schema.MovesBatchRequest, answers.answer_moves_batch),
    "play/batch": (schema.PlayBatchRequest, answers.answer_play_batch),
    "evaluate/batch": (schema.EvaluateBatchRequest, answers.answer_evaluate_batch),
    "agents": (RulesQuestion, lambda q: answers.answer_agents(q.rules, q.players, LOCAL)),
    "models": (Nothing, lambda q: answers.answer_models()),
    "rules": (RulesQuestion, lambda q: answers.answer_rules(q.rules, q.players)),
    "layout": (LayoutQuestion, lambda q: answers.answer_layout(q.rules, q.players, q.viewer)),
    "health": (Nothing, lambda q: {"status": "ok", "version": __version__}),
    "quit": (Nothing, lambda q: {}),
}
"""What may be asked, and who answers: the paths of the service without their /v1/."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def read_line(line: bytes) -> dict[str, Any]:
    """Return the object of a line.

    Raises:
        ApiError: it is none.
    """
    try:
        data = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError("bad_json", f"a line must be one JSON object: {error}") from None
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise ApiError("bad_json", f"a line must be one JSON object, got a {kind}")
    return data


def answer_line(line: bytes) -> dict[str, Any]:
    """Return what is written for a line: its id and an answer, or an error. Never raises."""
    number: Any = None
    try:
        data = read_line(line)
        number = data.pop("id", None)
        if isinstance(number, bool | list | dict) or number in (math.inf, -math.inf):
            number = None
            raise ApiError("bad_request", "an id is a text, a number or null", "id")
        ask = data.pop("ask", None)
        if not isinstance(ask, str) or ask not in QUESTIONS:
            raise ApiError("bad_request", _unknown(ask), "ask")
        model, function = QUESTIONS[ask]
        return {"id": number, "answer": function(model(**data))}
    except (Exception, SystemExit) as error:  # an agent of the user's own may do anything
        found = as_api_error(error)
        if found.code == "internal":
            traceback.print_exc()  # on stderr, for whoever wrote that agent
            found = ApiError("internal", f"{type(error).__name__}: {error}")
        return {"id": number, "error": found.as_dict()}


def _unknown(ask: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(ask, QUESTIONS, 1) if isinstance(ask, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    got = "nothing" if ask is None else repr(str(ask)[:40])
    return f"ask must be one of {', '.join(QUESTIONS)}; got {got}{hint}"


def lines_of(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a stream; None for one that is too long, the whole of which is skipped."""
    while line := source.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = source.readline(MAX_LINE)
        yield None


def encode(answer: dict[str, Any]) -> bytes:
    """Return a line of ASCII, its end included."""
    text = json.dumps(answer, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii") + b"\n"


def serve_lines(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer lines until there are none, or ``quit`` is asked."""
    for line in lines_of(source):
        if line is None:
            error = ApiError("too_large", f"a line may have {MAX_LINE:,} bytes")
            answer: dict[str, Any] = {"id": None, "error": error.as_dict()}
        elif not line.strip():
            continue
        else:
            answer = answer_line(line)
        sink.write(encode(answer))
        sink.flush()
        if answer.get("answer") == {}:
            return


def run() -> None:
    """Answer the lines of standard input on standard output.

    What agents print goes to standard error: file descriptor 1 is moved out of their reach.
    """
    sys.stdout.flush()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        with sink:
            serve_lines(sys.stdin.buffer, sink)
    except BrokenPipeError:  # nobody reads any more
        os._exit(0)
