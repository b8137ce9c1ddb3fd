"""The shared schema of every door: answers have the shapes they promise, errors name a field."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kimble_app.api import answers, schema
from kimble_app.api.errors import MOST_TEXT, STATUS, ApiError, as_api_error
from kimble_app.api.positions import read_positions
from kimble_app.api.specs import Access
from kimble_env import Game
from kimble_env.errors import KimbleError
from kimble_env.notation import parse_position

RULES = [
    "kimble",
    "kombat",
    "norske",
    "kimble[pieces=2]",
    "kimble[die=popomatic]",
    "norske[max_sixes=3]",
    "kimble[play_for_places=yes]",
    "kimble[two_colours=yes]",
    "kombat[max_turns=40]",
]
PUBLIC = Access(depth=3)


def sample(rules: str, seed: int, waiting: bool = True) -> list[str]:
    """Positions of one game played at random, with a die thrown (or every one)."""
    rng = np.random.default_rng(seed)
    players = 4 if "two_colours" in rules else 2 + seed % 3
    game = Game(rules, seed=seed) if players == 4 else Game(rules, seed=seed, players=players)
    texts = []
    while not game.over and len(texts) < 60:
        if not waiting:
            texts.append(game.to_text())
        game.throw()
        if game.legal_moves:
            texts.append(game.to_text())
            game.play(game.legal_moves[rng.integers(len(game.legal_moves))])
    return texts + ([] if waiting else [game.to_text()])


@pytest.mark.parametrize("rules", RULES)
def test_a_batch_is_read_as_one_by_one(rules: str) -> None:
    texts = sample(rules, 5, waiting=False) + sample(rules, 6, waiting=False)
    seen = np.zeros(len(texts), int)
    for group in read_positions(texts):
        for i, state in zip(group.index, group.states, strict=True):
            expected_rules, expected = parse_position(texts[i])
            assert group.rules == expected_rules
            assert state.tobytes() == expected[0].tobytes(), texts[i]
            seen[i] += 1
    assert (seen == 1).all()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_spoilt_text_is_judged_as_one_by_one(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(sample("norske", 3, waiting=False)))
    i = data.draw(st.integers(0, len(text) - 1))
    inserted = data.draw(st.sampled_from([*"RBYG/-x,H0123456789* ", "", "é", "\0"]))
    spoilt = text[:i] + inserted + text[i + data.draw(st.integers(0, 1)) :]
    found = outcome(lambda: parse_position(spoilt)[1].tobytes())
    assert outcome(lambda: read_positions([spoilt])[0].states.tobytes()) == found


def outcome(call: Callable[[], bytes]) -> bytes | str:
    try:
        return call()
    except KimbleError as error:
        return str(error)


@pytest.mark.parametrize("rules", RULES)
def test_answers_have_the_shapes_they_promise(rules: str) -> None:
    texts = sample(rules, 11)[-12:]
    for text in texts:
        request = schema.MoveRequest(position=text, agent="cautious", seed=4)
        answer = answers.answer_move(request, PUBLIC)
        schema.MoveAnswer.model_validate(answer)
        legal = [move.text for move in Game.from_text(text).legal_moves]
        assert sorted(row["move"] for row in answer["ranked"]) == sorted(legal)
        assert answer["move"] == answer["ranked"][0]["move"]
        assert answer["forced"] == (len(legal) == 1)
        moves = answers.answer_moves(schema.MovesRequest(position=text))
        schema.MovesAnswer.model_validate(moves)
        assert [row["move"] for row in moves["legal"]] == legal
        play = schema.PlayRequest(position=text, move=answer["move"], seed=8)
        played = answers.answer_play(play)
        schema.PlayAnswer.model_validate(played)
        game = Game.from_text(text, 8)
        game.play(answer["move"])
        assert played["position"] == game.to_text()
    batch = schema.MoveBatchRequest(positions=texts, agent="cautious", seed=4)
    found = answers.answer_move_batch(batch, PUBLIC)
    schema.MoveBatchAnswer.model_validate(found)
    for text, move in zip(texts, found["moves"], strict=True):
        assert move in [m.text for m in Game.from_text(text).legal_moves]
    legal_batch = answers.answer_moves_batch(schema.MovesBatchRequest(positions=texts))
    for text, moves in zip(texts, legal_batch["legal"], strict=True):
        assert moves == [m.text for m in Game.from_text(text).legal_moves]


def test_a_batch_of_mixed_rules_keeps_its_order() -> None:
    texts = [text for rules in RULES for text in sample(rules, 2)[:5]]
    order = np.random.default_rng(1).permutation(len(texts))
    mixed = [texts[i] for i in order]
    request = schema.MoveBatchRequest(positions=mixed, agent="capture", seed=1)
    moves = answers.answer_move_batch(request, PUBLIC)["moves"]
    for text, move in zip(mixed, moves, strict=True):
        assert move in [m.text for m in Game.from_text(text).legal_moves]


def test_the_die_may_be_given_with_the_position() -> None:
    before, after = "norske R3,20/B0/Y-/G- R - 1", "norske R3,20/B0/Y-/G- R 4 1"
    one = answers.answer_move(schema.MoveRequest(position=before, die=4, agent="cautious", seed=1))
    two = answers.answer_move(schema.MoveRequest(position=after, agent="cautious", seed=1))
    assert one == two
    nothing = schema.MoveRequest(position="norske R-/B-/Y-/G- R - 3", die=2, agent="cautious")
    answer = answers.answer_move(nothing)
    assert (answer["move"], answer["ranked"], answer["forced"]) == (None, [], True)
    assert (answer["seat"], answer["die"]) == ("R", 2)


def test_win_chances_come_with_losses() -> None:
    position = "kimble[pieces=2] R3,20/Y5,9 R 4 1"
    answer = answers.answer_move(schema.MoveRequest(position=position, agent="exact"), PUBLIC)
    assert answer["ranked"][0]["loss"] == 0.0
    for row in answer["ranked"]:
        assert row["win"][0] + row["win"][2] == pytest.approx(1.0, abs=1e-4)
        assert row["loss"] == pytest.approx(answer["ranked"][0]["win"][0] - row["win"][0], abs=2e-6)
        assert row["score"] is None


def test_levels_keep_the_scores_of_the_agent_inside() -> None:
    position = "kimble R3,20,9/B0,5/Y1,13/G2,17 R 4 1"
    for agent, name in (("cautious", "score"), ("search:depth=1", "win")):
        full = answers.answer_move(schema.MoveRequest(position=position, agent=agent), PUBLIC)
        request = schema.MoveRequest(position=position, agent=agent, level=2, seed=1)
        weak = answers.answer_move(request, PUBLIC)
        assert weak["agent"] == f"{agent}@level=2"
        best = [(row["move"], row[name]) for row in full["ranked"]]
        assert [(row["move"], row[name]) for row in weak["ranked"]] == best
    both = schema.MoveRequest(position=position, agent="cautious@level=3", level=2)
    with pytest.raises(ApiError, match="has a level"):
        answers.answer_move(both, PUBLIC)


@pytest.mark.parametrize("rules", [rules for rules in RULES if "two_colours" not in rules])
def test_evaluations_are_chances_and_agree_with_the_best_move(rules: str) -> None:
    texts = [text for text in sample(rules, 4, waiting=False)[-6:] if " * " not in text]
    for text in texts:
        found = answers.answer_evaluate(schema.EvaluateRequest(position=text), PUBLIC)
        schema.EvaluateAnswer.model_validate(found)
        assert found["over"] or sum(found["win"]) == pytest.approx(1.0, abs=1e-4)
        assert (found["best"] is None) == (text.split()[3] == "-")
    if len({text.split("]")[0] for text in texts}) == 1 and texts:
        batch = schema.EvaluateBatchRequest(positions=texts)
        win = answers.answer_evaluate_batch(batch, PUBLIC)["win"]
        assert win[-1] == pytest.approx(found["win"], abs=1e-6)


@pytest.mark.parametrize(
    "position",
    ["kimble R3/Y- R 4 1", "kimble R3/B- R 4 1", "kombat[pieces=3] R3/B-/G- R 4 1",
     "norske R3/B-/Y-/G- R 4 1", "kimble[two_colours=yes] R3/B-/Y-/G- R 4 1",
     "norske[board=ludo52] R3/B-/Y-/G- R 4 1"],
)  # fmt: skip
def test_there_is_an_agent_for_any_rules_when_none_is_named(position: str) -> None:
    answer = answers.answer_move(schema.MoveRequest(position=position), PUBLIC)
    assert answer["ranked"]
    known = answers.answer_models()["models"]
    for model in known:
        if model["rules_hash"] == answer["rules_hash"]:
            assert model["agent"].startswith("net:")


def test_equal_seeds_give_equal_choices() -> None:
    texts = sample("kimble", 7)
    one = schema.MoveBatchRequest(positions=texts, agent="random", seed=12)
    other = schema.MoveBatchRequest(positions=texts, agent="random", seed=13)
    first = answers.answer_move_batch(one, PUBLIC)["moves"]
    assert first == answers.answer_move_batch(one, PUBLIC)["moves"]
    assert first != answers.answer_move_batch(other, PUBLIC)["moves"]
    alone = schema.MoveRequest(position=texts[0], agent="random", seed=12)
    assert answers.answer_move(alone)["move"] == first[0]


@pytest.mark.parametrize(
    "spec",
    [
        "/etc/passwd:x",
        "mine.py:play",
        "os:system",
        "weights:/etc/passwd",
        "weights:mine.json",
        "net:runs/policy",
        "net:../x",
        "net:/etc",
        "exact:/etc/passwd",
        "exact",
        "search:depth=4",
        "search:depth=1,eval=mine.py:f",
        "search:depth=1,replies=mine.py:f",
        "search:budget=0",
        "search:nonsense=1",
        "rollouts:n=2",
        "cautious@level=2@level=3",
        "heuristic:../x",
        "",
    ],
)
def test_strangers_name_no_files(spec: str) -> None:
    request = schema.MoveRequest.model_construct(
        position="kimble R3/B-/Y-/G- R 4 1", die=None, agent=spec, level=None, seed=1
    )
    with pytest.raises(ApiError) as raised:
        answers.answer_move(request, PUBLIC)
    assert raised.value.code == "bad_agent"
    assert raised.value.field == "agent"


def test_weights_of_their_own_are_welcome_however_wild() -> None:
    position = "kimble R3,9/B-/Y-/G- R 4 1"
    for weights in ('{"capture": 5}', '{"progress": 1e308}', '{"progress": -1e308}'):
        request = schema.MoveRequest(position=position, agent=f"weights:{weights}")
        answer = answers.answer_move(request, PUBLIC)
        json.dumps(answer, allow_nan=False)
    bad = schema.MoveRequest(position=position, agent='weights:{"nonsense": 1}')
    with pytest.raises(ApiError, match="nonsense") as raised:
        answers.answer_move(bad, PUBLIC)
    assert raised.value.field == "agent"
    deep = schema.MoveRequest(position=position, agent="weights:" + "[" * 900 + "]" * 900)
    with pytest.raises(ApiError, match="must be numbers") as raised:
        answers.answer_move(deep, PUBLIC)
    assert raised.value.code == "bad_agent"


def test_what_there_is() -> None:
    for rules in ("kimble", "kombat", "norske[pieces=2]"):
        found = answers.answer_agents(rules, access=PUBLIC)
        schema.AgentsAnswer.model_validate(found)
        names = [row["agent"] for row in found["agents"]]
        assert "random" in names
        assert found["default"] in names
        schema.RulesAnswer.model_validate(answers.answer_rules(rules))
        schema.LayoutAnswer.model_validate(answers.answer_layout(rules))
    schema.ModelsAnswer.model_validate(answers.answer_models())
    changed = [o for o in answers.answer_rules("norske[pieces=2]")["options"] if o["differs"]]
    assert [(o["option"], o["value"]) for o in changed] == [("pieces", "2")]
    start = answers.answer_rules("kombat", players=2)["start"]
    assert start == "kombat R-/Y- R - 1"


@pytest.mark.parametrize(
    ("call", "code", "field"),
    [
        (lambda: answers.answer_rules("nonsense"), "bad_rules", "rules"),
        (lambda: answers.answer_layout("kimble", viewer=7), "bad_request", "viewer"),
        (
            lambda: answers.answer_play(schema.PlayRequest(position="kimble R3/B- R 4 1")),
            "illegal_move",
            "move",
        ),
        (
            lambda: answers.answer_play(
                schema.PlayRequest(position="kimble R3/B- R 4 1", move="4-8")
            ),
            "illegal_move",
            "move",
        ),
        (
            lambda: answers.answer_move(
                schema.MoveRequest(position="kimble R3/B- R 4 1", die=4, agent="random")
            ),
            "illegal_throw",
            "die",
        ),
        (
            lambda: answers.answer_move(
                schema.MoveRequest(position="kimble R3/B- R - 1", agent="random")
            ),
            "bad_position",
            "position",
        ),
        (
            lambda: answers.answer_move_batch(
                schema.MoveBatchRequest(positions=["kimble R3/B- R 4 1", "kimble R3/B- R - 1"])
            ),
            "bad_position",
            "positions[1]",
        ),
        (
            lambda: answers.answer_play_batch(
                schema.PlayBatchRequest(plays=[schema.PlayRequest(position="nonsense")])
            ),
            "bad_position",
            "plays[0].position",
        ),
    ],
)
def test_errors_name_the_field(call: object, code: str, field: str) -> None:
    with pytest.raises(ApiError) as raised:
        call()  # type: ignore[operator]
    assert raised.value.as_dict()["code"] == code
    assert raised.value.as_dict()["field"] == field


def test_illegal_moves_are_answered_with_the_legal_ones() -> None:
    for move in (None, "4-8"):
        request = schema.PlayRequest(position="kimble R3/B- R 4 1", move=move)
        with pytest.raises(ApiError, match=r"3-7, pass$"):
            answers.answer_play(request)


def test_errors_of_shape_name_the_field_and_surprises_tell_nothing() -> None:
    with pytest.raises(ValidationError) as raised:
        schema.MoveRequest.model_validate({"position": 3, "sede": 1})
    error = as_api_error(raised.value)
    assert (error.code, error.field) == ("bad_request", "position")
    assert "sede" in str(error)
    inside = as_api_error(RuntimeError("secret of /home"))
    assert inside.code == "internal"
    assert "secret" not in str(inside)
    assert len(ApiError("bad_request", "x" * 5000).as_dict()["message"]) == MOST_TEXT
    assert set(STATUS.values()) <= {400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503}
