"""A pure function for every question: a request in, a dict of the answer's shape out.

Every door calls these: the routes of the service, the lines of the engine, the commands. Nothing is
kept between calls but agents ready made (``specs.Access``).

>>> from kimble_app.api.answers import answer_move
>>> from kimble_app.api.schema import MoveRequest
>>> answer_move(MoveRequest(position="norske R3,20/B0/Y-/G- R 4 1", agent="random"))["move"]
'20-24'
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kimble_app.api import schema
from kimble_app.api.errors import ApiError, about, as_api_error
from kimble_app.api.positions import move_texts, read_positions
from kimble_app.api.specs import LOCAL, Access, default_agent, model_cards
from kimble_env import kernel
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.game import Event, Game, read_die, read_seed
from kimble_env.kernel import RUNNING
from kimble_env.notation import Result, format_position
from kimble_env.opponents import Agent, check_actions, decision_keys, hide_random_state
from kimble_env.rules import OPTIONS, PRESETS, Rules, find_rules

CHUNK = 2048
"""Positions decided between two looks at the clock."""

States = npt.NDArray[np.void]


def check_time(until: float | None) -> None:
    """Stop work whose time is up.

    Args:
        until: a time of ``time.monotonic()``; None for no limit.

    Raises:
        ApiError: it is later than that.
    """
    if until is not None and time.monotonic() > until:
        raise ApiError("too_slow", "this took longer than allowed here: ask for less at once")


# ----------------------------------------------------------------------------------- one position


def answer_move(
    request: schema.MoveRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return a ``MoveAnswer``: the move of an agent, and what every legal move is worth.

    Args:
        request: what is asked.
        access: which agents may be asked for.
        until: see :func:`check_time`; a single decision is never broken off.

    Raises:
        ApiError: about the field that is wrong.
    """
    check_time(until)
    rules, states, seed = _one(request.position, request.seed)
    seat, die = _throw(states, rules, request.die, needed=True)
    bits = int(kernel.legal_one(states, rules.board_array)) if states["die"][0] else 0
    agent = access.agent(request.agent, request.level, rules)
    answer = {
        "move": None,
        "ranked": [],
        "forced": bits & (bits - 1) == 0,
        "seat": SEAT_LETTERS[seat],
        "die": die,
        "agent": agent.spec,
        "seed": seed,
        "rules": str(rules),
        "rules_hash": rules.hash,
    }
    if bits:
        texts = move_texts(rules)[die]
        actions = [action for action in range(rules.board.actions) if bits >> action & 1]
        action = int(_decide(agent, states, rules)[0])
        answer["move"] = texts[action]
        answer["ranked"] = _ranked(agent, states, rules, actions, action, texts)
    return answer


def _one(position: str, seed: int | None) -> tuple[Rules, States, int]:
    """Return the rules, the position STATE [1] with its random state, and the seed."""
    with about("seed"):
        number = secrets.randbits(53) if seed is None else read_seed(seed)
    group = read_positions([position], "position")[0]
    kernel.game_keys(np.uint64(number), 0, keys := np.empty(1, np.uint64))
    group.states["seed"] = keys
    return group.rules, group.states, number


def _throw(states: States, rules: Rules, die: int | None, needed: bool) -> tuple[int, int]:
    """Throw a given die if the position waits for one; return (seat, die) of the throw."""
    seat, thrown = int(states["seat"][0]), int(states["die"][0])
    if states["status"][0] != RUNNING:
        raise ApiError("game_over", "the game of this position is over", "position")
    if die is not None:
        if thrown:
            raise ApiError("illegal_throw", f"the position has a die already: {thrown}", "die")
        with about("die"):
            kernel.throw_one(states, rules.board_array, read_die(die))
        return seat, die
    if needed and not thrown:
        raise ApiError(
            "bad_position", "no die has been thrown: give one as die, or in the text", "position"
        )
    return seat, thrown


def _decide(agent: Agent, states: States, rules: Rules) -> npt.NDArray[np.int16]:
    """Return the actions of an agent, checked, for positions with a die thrown."""
    try:
        answer = agent.act(hide_random_state(states), decision_keys(states))
        return check_actions(states, rules, answer, agent.spec)
    except KimbleError as error:
        raise as_api_error(error, "agent") from error


def _ranked(
    agent: Agent, states: States, rules: Rules, actions: list[int], chosen: int, texts: Any
) -> list[dict[str, Any]]:
    """Return the legal moves, best first; of equal ones the chosen move comes first."""
    win, score = _judge(agent, states)
    seat = int(states["seat"][0])
    worth = [0.0] * len(actions)
    if win is not None:
        own = [seat, seat ^ 2] if rules.two_colours else [seat]  # R17: a player's two colours
        worth = [float(win[action, own].sum()) for action in actions]
    elif score is not None:
        worth = [_finite(float(score[action])) for action in actions]
    best = max(worth)
    order = sorted(range(len(actions)), key=lambda k: (-worth[k], actions[k] != chosen, actions[k]))
    return [
        {
            "move": texts[actions[k]],
            "win": None if win is None else [round(float(x), 6) for x in win[actions[k]]],
            "score": round(worth[k], 6) if win is None and score is not None else None,
            "loss": None if win is None else round(best - worth[k], 6),
        }
        for k in order
    ]


def _finite(score: float) -> float:
    """Weights of a client may be as large as they like, but JSON has no infinities."""
    return max(-3e38, min(3e38, score)) if score == score else 0.0


def _judge(agent: Agent, states: States) -> tuple[Any, Any]:
    """Return (win chances [A, 4], scores [A]) of one position; None for what an agent lacks."""
    hidden = hide_random_state(states)
    for holder in _layers(agent):
        for name in ("evaluate", "score"):
            method = getattr(holder, name, None)
            if callable(method):
                with about("agent"):
                    found = np.asarray(method(hidden))[0]
                if name == "evaluate":
                    return found, None
                return None, found
    return None, None


def _layers(agent: Any) -> Iterator[Any]:
    """Yield an agent and what is inside it: the agent that is checked, or made weaker."""
    while agent is not None:
        yield agent
        agent = getattr(agent, "inner", None) or getattr(agent, "base", None)


def answer_moves(request: schema.MovesRequest, access: Access = LOCAL) -> dict[str, Any]:
    """Return a ``MovesAnswer``: what is legal.

    Raises:
        ApiError: about the field that is wrong.
    """
    with about("position"):
        game = Game.from_text(request.position, 0)
    seat, die = game.seat, game.die
    if request.die is not None:
        with about("die"):
            die = game.throw(request.die)
    legal = [
        {
            "move": move.text,
            "action": move.action,
            "source": move.source,
            "target": move.target,
            "battle": game.starts_battle(move),
        }
        for move in game.legal_moves
    ]
    return {
        "position": game.to_text(),
        "seat": SEAT_LETTERS[seat],
        "die": die,
        "legal": legal,
        "forced": len(legal) <= 1,
        "over": game.over,
        **_ruled(game.rules),
    }


def _ruled(rules: Rules) -> dict[str, str]:
    return {"rules": str(rules), "rules_hash": rules.hash}


def answer_play(request: schema.PlayRequest, access: Access = LOCAL) -> dict[str, Any]:
    """Return a ``PlayAnswer``: the position after a throw, a move, or both.

    Raises:
        ApiError: about the field that is wrong.
    """
    with about("seed"):
        seed = read_seed(request.seed)
    with about("position"):
        game = Game.from_text(request.position, seed)
    thrower = game.seat
    die = game.die
    if die is None or request.die is not None:
        with about("die" if request.die is not None else "position"):
            die = game.throw(request.die)
    elif request.move is None:
        legal = ", ".join(move.text for move in game.legal_moves)
        raise ApiError("illegal_move", f"a die has been thrown: give a move, {legal}", "move")
    battle = request.battle
    if request.move is not None:
        with about("battle" if _starts_battle(game, request.move) else "move"):
            game.play(request.move, None if battle is None else (battle[0], battle[1]))
        fought = game.state["last_battle"][0].tolist()
        battle = fought if fought[0] else None
    elif battle is not None:
        raise ApiError("illegal_move", "battle dice come with a move", "battle")
    return {
        "thrown_by": SEAT_LETTERS[thrower],
        "die": die,
        "move": request.move,
        "battle": battle,
        "events": [event_dict(event) for event in game.events],
        **standing(game),
        "seed": seed,
        **_ruled(game.rules),
    }


def _starts_battle(game: Game, move: str) -> bool:
    try:
        return game.starts_battle(move)
    except KimbleError:
        return False  # play says what is wrong with it


def standing(game: Game) -> dict[str, Any]:
    """Return where a game stands, as in a ``PlayAnswer``: who is to act, and with what."""
    return {
        "position": game.to_text(),
        "seat": SEAT_LETTERS[game.seat],
        "throws": game.throws,
        "legal": [move.text for move in game.legal_moves],
        "over": game.over,
        "result": result_dict(game.result),
    }


def event_dict(event: Event) -> dict[str, Any]:
    """Return a ``PieceEvent``."""
    return {
        "kind": event.kind,
        "seat": SEAT_LETTERS[event.seat],
        "count": event.count,
        "cause": event.cause,
        "by": None if event.by is None else SEAT_LETTERS[event.by],
    }


def result_dict(result: Result | None) -> dict[str, Any] | None:
    """Return a ``GameResult``, None for a game that goes on."""
    if result is None:
        return None
    return {
        "status": result.status,
        "winner": None if result.winner is None else SEAT_LETTERS[result.winner],
        "places": [SEAT_LETTERS[seat] for seat in result.places],
        "out": [SEAT_LETTERS[seat] for seat in result.out],
    }


def answer_evaluate(
    request: schema.EvaluateRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return an ``EvaluateAnswer``: the chance of every seat to win.

    Raises:
        ApiError: about the field that is wrong.
    """
    check_time(until)
    group = read_positions([request.position], "position")[0]
    evaluator = access.evaluator(request.evaluator, group.rules)
    win, best = _worth(evaluator, group.states, group.rules)
    die, action = int(group.states["die"][0]), int(best[0])
    return {
        "win": [round(float(x), 6) for x in win[0]],
        "best": move_texts(group.rules)[die][action] if action >= 0 else None,
        "evaluator": evaluator.name,
        "evaluator_hash": evaluator.hash,
        "over": bool(group.states["status"][0] != RUNNING),
        **_ruled(group.rules),
    }


def _worth(evaluator: Any, states: States, rules: Rules) -> tuple[Any, Any]:
    """Return (chances [B, 4], best action [B], -1 where no die waits) of positions."""
    from agents.evaluators import move_values

    win = np.zeros((len(states), 4))
    best = np.full(len(states), -1)
    thrown = (states["die"] > 0) & (states["status"] == RUNNING)
    with about("evaluator"):
        if not thrown.all():
            win[~thrown] = evaluator.value(kernel.take_states(states, ~thrown))
        if thrown.any():
            some = kernel.take_states(states, thrown)
            values = np.asarray(move_values(evaluator, some, rules), np.float64)
            best[thrown], win[thrown] = _best_moves(values, some, rules)
    return win, best


def _best_moves(values: Any, states: States, rules: Rules) -> tuple[Any, Any]:
    """Return (action [B], chances [B, 4]) of the move that is best for the seat to act."""
    legal = np.empty(len(states), np.int64)
    kernel.legal_batch(states, rules.board_array, legal)
    rows = np.arange(len(states))
    seats = states["seat"].astype(np.int64)
    own = values[rows, :, seats]
    if rules.two_colours:
        own = own + values[rows, :, seats ^ 2]  # R17
    allowed = legal[:, None] >> np.arange(values.shape[1]) & 1 != 0
    action = np.where(allowed, own, -np.inf).argmax(axis=1)
    return action, values[rows, action]


# ---------------------------------------------------------------------------------- many positions


def answer_move_batch(
    request: schema.MoveBatchRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return a ``MoveBatchAnswer``: a move for each position, decided together.

    Raises:
        ApiError: about the field, or the first position, that is wrong.
    """
    texts = request.positions
    with about("seed"):
        seed = read_seed(request.seed)
    access.limit_batch(len(texts), request.agent)
    keys = np.empty(len(texts), np.uint64)
    kernel.game_keys(np.uint64(seed), 0, keys)
    moves: list[str] = [""] * len(texts)
    names = set()
    for first in range(0, len(texts), CHUNK):
        for group in read_positions(texts[first : first + CHUNK], _Numbered(first)):
            check_time(until)
            group.index += first
            _check_waiting(group)
            group.states["seed"] = keys[group.index]
            agent = access.agent(request.agent, request.level, group.rules)
            names.add(agent.spec)
            _write_moves(moves, group, _decide(agent, group.states, group.rules))
    return {"moves": moves, "agent": names.pop() if len(names) == 1 else None, "seed": seed}


class _Numbered(str):
    """The name of a field in messages about a chunk: counts from the chunk's first position."""

    first: int

    def __new__(cls, first: int) -> _Numbered:
        text = super().__new__(cls, "positions[{}]")
        text.first = first
        return text

    def format(self, *numbers: Any, **names: Any) -> str:
        return f"positions[{numbers[0] + self.first}]"


def _check_waiting(group: Any) -> None:
    """Check that a die has been thrown in every position of a group."""
    idle = (group.states["die"] == 0) | (group.states["status"] != RUNNING)
    if idle.any():
        number = int(group.index[np.flatnonzero(idle)[0]])
        text = "no die has been thrown, so there is nothing to decide"
        raise ApiError("bad_position", text, f"positions[{number}]")


def _write_moves(moves: list[str], group: Any, actions: npt.NDArray[np.int16]) -> None:
    tables = move_texts(group.rules)
    rows = zip(group.index.tolist(), group.states["die"].tolist(), actions.tolist(), strict=True)
    for i, die, action in rows:
        moves[i] = tables[die][action]


def answer_moves_batch(
    request: schema.MovesBatchRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return a ``MovesBatchAnswer``: the legal moves of each position.

    Raises:
        ApiError: about the first position that is wrong.
    """
    access.limit_batch(len(request.positions))
    legal: list[list[str]] = [[] for _ in request.positions]
    for first in range(0, len(request.positions), CHUNK):
        check_time(until)
        chunk = request.positions[first : first + CHUNK]
        for group in read_positions(chunk, _Numbered(first)):
            bits = np.empty(len(group.states), np.int64)
            kernel.legal_batch(group.states, group.rules.board_array, bits)
            tables = move_texts(group.rules)
            rows = zip(group.index.tolist(), group.states["die"].tolist(), bits.tolist(),
                       strict=True)  # fmt: skip
            for i, die, found in rows:
                legal[first + i] = [
                    tables[die][a] for a in range(found.bit_length()) if found >> a & 1
                ]
    return {"legal": legal}


def answer_play_batch(
    request: schema.PlayBatchRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return a ``PlayBatchAnswer``: each play on its own.

    Raises:
        ApiError: about the first play that is wrong.
    """
    access.limit_batch(len(request.plays), field="plays")
    plays = []
    for i, play in enumerate(request.plays):
        check_time(until)
        try:
            plays.append(answer_play(play, access))
        except ApiError as error:
            name = f"plays[{i}]" + (f".{error.field}" if error.field else "")
            raise ApiError(error.code, str(error), name) from error
    return {"plays": plays}


def answer_evaluate_batch(
    request: schema.EvaluateBatchRequest, access: Access = LOCAL, until: float | None = None
) -> dict[str, Any]:
    """Return an ``EvaluateBatchAnswer``: chances by one evaluator, so all of the same rules.

    Raises:
        ApiError: about the field, or the first position, that is wrong.
    """
    texts = request.positions
    access.limit_batch(len(texts))
    win = np.zeros((len(texts), 4))
    evaluator: Any = None
    for first in range(0, len(texts), CHUNK):
        for group in read_positions(texts[first : first + CHUNK], _Numbered(first)):
            check_time(until)
            found = access.evaluator(request.evaluator, group.rules)
            if evaluator is not None and found.hash != evaluator.hash:
                raise ApiError("bad_request", "all positions of a batch must be of the same rules",
                               "positions")  # fmt: skip
            evaluator = found
            win[group.index + first] = _worth(found, group.states, group.rules)[0]
    return {
        "win": np.round(win, 6).tolist(),
        "evaluator": evaluator.name,
        "evaluator_hash": evaluator.hash,
    }


# --------------------------------------------------------------------------------- what there is


def read_rules(text: str, players: int | None = None) -> Rules:
    """Return the rules that a request names.

    Raises:
        ApiError: they cannot be.
    """
    with about("rules"):
        return find_rules(text) if players is None else find_rules(text, players=players)


def answer_agents(
    rules: str = "kimble", players: int | None = None, access: Access = LOCAL
) -> dict[str, Any]:
    """Return an ``AgentsAnswer``: the agents that fit these rules, each tried by making it.

    Raises:
        ApiError: rules that cannot be.
    """
    found = read_rules(rules, players)
    agents = []
    for spec, kind, text in _candidates(found, access.extra):
        try:
            agent = access.agent(spec, None, found)
        except ApiError:
            continue  # it does not fit these rules, or its files do not come with this version
        win = callable(getattr(agent, "evaluate", None))
        agents.append({"agent": spec, "kind": kind, "text": text, "win": win})
    try:
        access.agent("random", 1, found)
        levels = True
    except ApiError:
        levels = False
    return {
        "rules": str(found),
        "default": default_agent(found),
        "agents": agents,
        "levels": levels,
    }


def _candidates(rules: Rules, extra: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return (spec, kind, sentence) of every agent that could be asked for."""
    from agents.exact.table import table_is_ready
    from agents.heuristics import describe_heuristic, heuristic_names

    found = [("random", "random", "Any legal move other than pass, all equally likely: par.")]
    found += [(name, "heuristic", describe_heuristic(name)) for name in heuristic_names()]
    for depth in (1, 2):
        text = f"Looks {depth} throw{'s' * (depth > 1)} ahead and judges what comes out."
        found.append((f"search:depth={depth}", "search", text))
    for name, card in model_cards().items():
        text = f"A value network for {card.get('players')} players of {card.get('rules')}."
        found.append((f"net:{name}", "net", text))
    if table_is_ready(rules):
        found.append(("exact", "exact", "Perfect play of two seats, from a table."))
    found += [(spec, "own", "Added by whoever runs this service.") for spec in extra]
    return found


def answer_models() -> dict[str, Any]:
    """Return a ``ModelsAnswer``: the shipped networks and how they were made."""
    models = [
        {
            "name": name,
            "agent": f"net:{name}",
            "rules": _text_of(card.get("rules")),
            "rules_hash": _text_of(card.get("rules_hash")),
            "players": card.get("players") if isinstance(card.get("players"), int) else None,
            "card": card,
        }
        for name, card in model_cards().items()
    ]
    return {"models": models}


def _text_of(value: Any) -> str | None:
    return None if value is None else str(value)


def answer_rules(rules: str = "kimble", players: int | None = None) -> dict[str, Any]:
    """Return a ``RulesAnswer``: every option of a rule set, its value and what it means.

    Raises:
        ApiError: rules that cannot be.
    """
    found = read_rules(rules, players)
    preset = PRESETS[found.name]
    options = []
    for name, option in OPTIONS.items():
        value = getattr(found, name)
        choices = ("yes", "no") if option.kind == "yesno" else option.choices
        options.append(
            {
                "option": name,
                "value": _option_text(value),
                "text": option.text,
                "rule": option.rule,
                "kind": option.kind,
                "choices": list(choices),
                "differs": value != getattr(preset, name),
            }
        )
    return {
        "name": found.name,
        "presets": list(PRESETS),
        "seats": [SEAT_LETTERS[seat] for seat in found.seats],
        "players": found.players,
        "start": start_text(found),
        "actions": found.board.actions,
        "options": options,
        **_ruled(found),
    }


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(getattr(value, "name", value))


@lru_cache(maxsize=64)
def start_text(rules: Rules) -> str:
    """Return the position before the first throw, with the first seat that plays to throw."""
    fixed = rules.replace(starter=SEAT_LETTERS[rules.seats[0]])
    state = Game(fixed, seed=0).state
    return format_position(rules, state)


def answer_layout(
    rules: str = "kimble", players: int | None = None, viewer: int | str = 0
) -> dict[str, Any]:
    """Return a ``LayoutAnswer``: where everything is on the board, for drawing it.

    Raises:
        ApiError: rules or a viewer that cannot be.
    """
    from kimble_env.game import read_seat
    from kimble_env.render.layout import board_layout

    found = read_rules(rules, players)
    with about("viewer"):
        seat = read_seat(viewer)
    return board_layout(found.board, pieces=found.pieces, home=found.home, viewer=seat).as_dict()
