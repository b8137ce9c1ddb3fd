"""What a recorded game says of its players: losses, luck, and where it was decided.

Every decision with two legal moves or more is valued move by move. Its *loss* is the chance to win
after the best move less that after the move played, battles averaged (R18). The *luck* of a throw
is the value after it, with the best move made, less the mean over its faces; of a battle the value
after it less the mean over its outcomes; of the lot for the start likewise. The luck-adjusted
result of a player is the result (1 for a win, 1/n each for a game cut off) less all luck; see
``evaluation.luck``.

The values come from a *reference*, the best that there is for the rules (:func:`find_reference`):
the table of a solved game, else a shipped value network one throw ahead, else the frozen linear
value one throw ahead (which is what the agent ``search:depth=2`` does), else rollouts. One game is
a small sample: the losses are facts about decisions, as good as the reference; the adjusted result
still varies.

>>> from evaluation.analysis import analyse
>>> found = analyse(read_record("game.jsonl"))                             # doctest: +SKIP
>>> [(p.name, p.loss, p.luck, p.grade) for p in found.players]             # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import (
    Evaluator,
    exact_move_values,
    make_evaluator,
    position_values,
    seat_chances,
    settled_values,
    throw_values,
)
from agents.exact.table import table_is_ready
from evaluation.luck import lot_luck
from evaluation.tabletop import player_seats
from kimble_env.afterstates import expand_throws
from kimble_env.board import SEAT_LETTERS
from kimble_env.errors import KimbleError
from kimble_env.game import Game
from kimble_env.kernel import battle_batch, legal_batch
from kimble_env.notation import GameRecord, format_move, format_position
from kimble_env.rules import Rules

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]

FORMAT = "kimble-analysis/1"
BANDS = (
    (1.0, "A", "next to nothing given away"),
    (4.0, "B", "strong"),
    (8.0, "C", "sound"),
    (16.0, "D", "loose"),
    (32.0, "E", "careless"),
    (float("inf"), "F", "wild"),
)
"""Grades: mean loss per decision, in thousandths of a win, below which they are given with two
players. With n players the limits are 2/n of these, for there is less of a win to be lost."""


# -------------------------------------------------------------------------------------- references


class OneThrowAhead:
    """An evaluator that looks one throw ahead: the mean over the faces after the best moves.

    Args:
        inner: values what comes out.
        rules: the rules of the positions.
    """

    def __init__(self, inner: Evaluator, rules: Rules) -> None:
        self.inner, self.rules = inner, rules
        self.name, self.hash = f"{inner.name}, one throw ahead", inner.hash

    def value(self, states: States) -> Floats:
        """Return the chance that each seat wins: float64 [B, 4]."""
        return throw_values(self.inner, states, self.rules)


def even_chances(states: States) -> Floats:
    """Give each seat that plays the same chance; judges rollouts that are cut off."""
    plays = (states["plays"] != 0).astype(np.float64)
    shares: Floats = plays / plays.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class Reference:
    """What the values of an analysis come from.

    Attributes:
        kind: "exact", "net", "linear", "rollouts" or "own".
        value: the evaluator, look-ahead included.
        text: a sentence that says how far it can be trusted.
    """

    kind: str
    value: Evaluator
    text: str


_TEXTS = {
    "exact": "Exact: the values come from the table of the solved game.",
    "net": "Estimates: a trained value network that looks one throw ahead.",
    "linear": "Estimates: a fitted linear value that looks one throw ahead.",
    "rollouts": "Rough estimates: games played on by a heuristic; small losses are noise.",
    "own": "Estimates by an evaluator that was asked for.",
}
_EVEN = "evaluation.analysis:even_chances"
_ROLLOUTS = f"rollouts:n=300,policy=cautious,plies=0,luck=no,eval={_EVEN}"


def _nets(rules: Rules) -> list[str]:
    """Return the shipped networks for these rules and players, the least loss measured first."""
    from agents.value_net import MODELS

    found = []
    for path in MODELS.glob("*.json"):
        card = json.loads(path.read_text(encoding="utf-8"))
        if card.get("rules_hash") == rules.hash and card.get("players") == rules.players:
            measured = (card.get("measured") or {}).get("loss") or {}
            found.append((float(measured.get("mean_mwp", np.inf)), path.stem))
    return [name for _, name in sorted(found)]


def _candidates(rules: Rules) -> list[tuple[str, str, int]]:
    """Return (kind, spec, throws ahead) in the order of trust."""
    found = [("exact", "exact", 0)] if table_is_ready(rules) else []
    found += [("net", f"net:{name}", 1) for name in _nets(rules)]
    found.append(("linear", "linear", 1))
    found.append(("rollouts", _ROLLOUTS, 0))
    return found


def find_reference(rules: Rules, spec: str | None = None, ahead: int | None = None) -> Reference:
    """Return the best reference that there is for these rules, or the one asked for.

    Args:
        rules: the rules, without the option ``members``.
        spec: of an evaluator; None for the best.
        ahead: 0 or 1 throws to look ahead; None: 1, but 0 for exact values and rollouts.

    Raises:
        KimbleError: none fits, with what each of them says.
    """
    if rules.members is not None:
        raise KimbleError(f"games with the option members cannot be analysed, got {rules}")
    if ahead not in (None, 0, 1):
        raise KimbleError(f"an analysis looks 0 or 1 throws ahead, got {ahead!r}")
    if spec is not None:
        kind = spec.partition(":")[0]
        steps = 0 if kind in ("exact", "rollouts") else 1
        return _reference(kind if kind in _TEXTS else "own", spec, steps, rules, ahead)
    reasons = []
    for kind, candidate, steps in _candidates(rules):
        try:
            return _reference(kind, candidate, steps, rules, ahead)
        except (KimbleError, ModuleNotFoundError) as error:
            reasons.append(f"{candidate}: {error}")
    raise KimbleError(f"nothing values positions of {rules}: {'; '.join(reasons)}")


def _reference(kind: str, spec: str, steps: int, rules: Rules, ahead: int | None) -> Reference:
    value = make_evaluator(spec, rules)
    if steps if ahead is None else ahead:
        value = OneThrowAhead(value, rules)
    return Reference(kind, value, _TEXTS[kind])


# ----------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class RankedMove:
    """A legal move: chance to win of who decides, and what is lost against the best."""

    move: str
    chance: float
    loss: float


@dataclass(frozen=True)
class Decision:
    """A choice between two legal moves or more.

    Attributes:
        throw: number of the throw in the game, from 1.
        seat: 0 to 3.
        die: 1 to 6.
        position: its text, with the die.
        played: the text of the move played.
        loss: chance to win given away.
        ranked: every legal move, best first.
    """

    throw: int
    seat: int
    die: int
    position: str
    played: str
    loss: float
    ranked: tuple[RankedMove, ...]


@dataclass(frozen=True)
class PlayerReport:
    """How one player did.

    Attributes:
        name: from the record, else the letters of the seats.
        seats: 0 to 3.
        decisions: choices between two legal moves or more.
        loss: sum of chances given away; 1 is a whole win.
        per_decision: mean loss in thousandths of a win; None without decisions.
        grade: a letter of ``BANDS``; None without decisions.
        luck: sum of luck, of all dice of the game.
        own_luck: of that, the luck of the player's own throws and battles.
        result: 1 for a win, 1/n for a game cut off, 0 else; None in an unfinished game.
        adjusted: result less luck; in an unfinished game its last chance less luck.
    """

    name: str
    seats: tuple[int, ...]
    decisions: int
    loss: float
    per_decision: float | None
    grade: str | None
    luck: float
    own_luck: float
    result: float | None
    adjusted: float


@dataclass(frozen=True)
class Analysis:
    """What :func:`analyse` found.

    Attributes:
        rules: with their seats.
        reference: where the values come from.
        players: one each.
        decisions: in the order of play.
        chances: float64 [throws + 1, players], each player's chance before the first throw and
            after every one.
        throw_luck: float64 [throws, players], battles of the throw included.
        lot_luck: float64 [players], of the lot for the start.
        finished: the game has a result.
        result: that result in words.
    """

    rules: Rules
    reference: Reference
    players: tuple[PlayerReport, ...]
    decisions: tuple[Decision, ...]
    chances: Floats
    throw_luck: Floats
    lot_luck: Floats
    finished: bool
    result: str

    def costliest(self, count: int = 3) -> list[Decision]:
        """Return the decisions with the largest losses, largest first; those of 0 left out."""
        worst = sorted(self.decisions, key=lambda d: (-d.loss, d.throw))[:count]
        return [decision for decision in worst if decision.loss > 0.0]

    def as_dict(self) -> dict[str, Any]:
        """Return it as data that JSON can hold; seats are letters."""
        value = self.reference.value
        players = []
        for player in self.players:
            data = asdict(player)
            data["seats"] = [SEAT_LETTERS[seat] for seat in player.seats]
            players.append(data)
        decisions = [{**asdict(d), "seat": SEAT_LETTERS[d.seat]} for d in self.decisions]
        return {
            "format": FORMAT,
            "rules": str(self.rules),
            "rules_hash": self.rules.hash,
            "reference": {
                "kind": self.reference.kind, "name": value.name, "hash": value.hash,
                "text": self.reference.text,
            },
            "finished": self.finished,
            "result": self.result,
            "players": players,
            "chances": np.round(self.chances, 6).tolist(),
            "throw_luck": np.round(self.throw_luck, 6).tolist(),
            "lot_luck": np.round(self.lot_luck, 6).tolist(),
            "decisions": decisions,
        }  # fmt: skip


def grade_of(per_decision: float, players: int = 2) -> str:
    """Return the grade of a mean loss in thousandths of a win."""
    scaled = per_decision * players / 2
    return next(letter for limit, letter, _ in BANDS if scaled < limit)


# ------------------------------------------------------------------------------------- the analysis


@dataclass
class _Calls:
    """A game taken apart: its states, and which of them are thrown from or decided in."""

    states: States
    throws: list[int]
    """Rows before a throw; the row after each is its outcome."""
    plays: list[int]
    """Rows with a die that was played; the row after each is before the next throw."""
    points: list[int]
    """Rows at which a throw is over (before the next), the first row too."""


def _take_apart(game: Game) -> _Calls:
    """Return every position that a game went through, sorted by what was done there."""
    game, states = game.copy(), [game.state]
    while True:
        try:
            game.undo()
        except KimbleError:
            break
        states.append(game.state)
    states.reverse()
    calls = _Calls(np.concatenate(states), [], [], [0])
    for i, (before, after) in enumerate(pairwise(states)):
        if (before["out"] != after["out"]).any():  # a seat was taken out (R34): no luck, no choice
            calls.points[-1] = i + 1 if after["die"][0] == 0 else calls.points[-1]
        elif before["die"][0] == 0:
            calls.throws.append(i)
            if after["die"][0] == 0:
                calls.points.append(i + 1)
        else:
            calls.plays.append(i)
            calls.points.append(i + 1)
    return calls


def analyse(
    record: GameRecord,
    *,
    reference: str | Reference | None = None,
    ahead: int | None = None,
    say: Callable[[str], object] | None = None,
) -> Analysis:
    """Analyse a recorded game, finished or not.

    Args:
        record: the game; it is replayed and checked.
        reference: what values positions: a spec of an evaluator, or a Reference; None for the best.
        ahead: see :func:`find_reference`.
        say: told what is being done, in words.

    Raises:
        KimbleError: the record does not replay, or nothing values its positions.
    """
    game = Game.from_record(record)
    rules = game.rules
    if not isinstance(reference, Reference):
        reference = find_reference(rules, reference, ahead)
    tell = say or (lambda text: None)
    tell(f"valuing with {reference.value.name}")
    calls = _take_apart(game)
    owners = [list(seats) for seats in player_seats(rules)]

    def by_player(values: Floats) -> Floats:
        return np.stack([values[:, seats].sum(axis=1) for seats in owners], axis=1)

    value = reference.value
    points = calls.states[calls.points]
    chances = by_player(position_values(value, points, rules))
    tell(f"{len(calls.throws)} throws")
    luck = np.zeros((len(calls.throws), 4))
    luck += _luck_of_throws(calls, rules, value)
    tell(f"{len(calls.plays)} moves")
    worth = exact_move_values(value, calls.states[calls.plays], rules)
    luck += _luck_of_battles(calls, rules, value, worth)
    first = calls.states[:1]
    fresh = int(first["plies"][0]) == 0 and (first["pieces"] == -1).all()
    lot = lot_luck(first, rules, value) if fresh else np.zeros((1, 4))
    decisions = _decisions(calls, rules, worth)
    throw_luck = by_player(luck)
    throwers = calls.states["seat"][calls.throws]
    names = record.players or tuple("".join(SEAT_LETTERS[s] for s in seats) for seats in owners)
    decided, settled = settled_values(calls.states[-1:])
    finished = game.result is not None
    ends = by_player(settled)[0] if decided[0] else chances[-1]
    players = []
    for k, seats in enumerate(owners):
        own = [d.loss for d in decisions if d.seat in seats]
        mean = 1000.0 * float(np.mean(own)) if own else None
        total = float(throw_luck[:, k].sum() + by_player(lot)[0, k])
        mine = np.isin(throwers, seats)
        players.append(
            PlayerReport(
                name=names[k], seats=tuple(seats), decisions=len(own), loss=float(sum(own)),
                per_decision=mean, grade=None if mean is None else grade_of(mean, rules.players),
                luck=total, own_luck=float(throw_luck[mine, k].sum()),
                result=float(ends[k]) if finished else None, adjusted=float(ends[k]) - total,
            )
        )  # fmt: skip
    return Analysis(
        rules, reference, tuple(players), tuple(decisions), chances, throw_luck,
        by_player(lot)[0], finished, str(game.result) if finished else "unfinished",
    )  # fmt: skip


def _luck_of_throws(calls: _Calls, rules: Rules, value: Evaluator) -> Floats:
    """Return the luck of every throw: float64 [throws, 4]."""
    rows = calls.throws
    if not rows:
        return np.zeros((0, 4))
    throws = expand_throws(calls.states[rows], rules)
    after = position_values(value, throws.children, rules).reshape(-1, 6, 4)
    mean = (after * throws.chance.reshape(-1, 6, 1)).sum(axis=1)
    face = calls.states["last_die"][np.array(rows) + 1].astype(np.int64) - 1
    found: Floats = after[np.arange(len(rows)), face] - mean
    return found


def _luck_of_battles(calls: _Calls, rules: Rules, value: Evaluator, worth: Floats) -> Floats:
    """Return the luck of battles at the throw that they belong to: float64 [throws, 4]."""
    luck = np.zeros((len(calls.throws), 4))
    if not rules.battles or not calls.plays:
        return luck
    before, after = calls.states[calls.plays], calls.states[np.array(calls.plays) + 1]
    actions = after["last_action"].astype(np.int16)
    defenders = np.empty(len(before), np.int8)
    battle_batch(before, rules.array, actions, defenders)
    fought = np.flatnonzero(defenders >= 0)
    if len(fought):
        came = value.value(after[fought]) - worth[fought, actions[fought]]
        throws = np.searchsorted(calls.throws, np.array(calls.plays)[fought]) - 1
        np.add.at(luck, throws, came)
    return luck


def _decisions(calls: _Calls, rules: Rules, worth: Floats) -> list[Decision]:
    """Return every choice between two legal moves or more, its moves ranked."""
    if not calls.plays:
        return []
    states = calls.states[calls.plays]
    after = calls.states[np.array(calls.plays) + 1]
    legal = np.empty(len(states), np.int64)
    legal_batch(states, rules.array, legal)
    own = seat_chances(worth, states, rules)
    decisions = []
    for i, bits in enumerate(legal.tolist()):
        actions = [a for a in range(rules.board.actions) if bits >> a & 1]
        if len(actions) < 2:
            continue
        die, best = int(states["die"][i]), max(float(own[i, a]) for a in actions)
        played = int(after["last_action"][i])
        order = sorted(actions, key=lambda a: (-float(own[i, a]), a != played, a))
        ranked = tuple(
            RankedMove(format_move(rules, a, die), float(own[i, a]), best - float(own[i, a]))
            for a in order
        )
        decisions.append(
            Decision(
                throw=int(states["plies"][i]) + 1 - int(calls.states["plies"][0]),
                seat=int(states["seat"][i]), die=die,
                position=format_position(rules, states[i : i + 1]),
                played=format_move(rules, played, die),
                loss=best - float(own[i, played]), ranked=ranked,
            )
        )  # fmt: skip
    return decisions
