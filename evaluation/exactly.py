"""How good is an agent, exactly? Two seats, at most three pieces, no dice and no interval.

Everything is computed over all positions of the game by the solver of ``agents.exact``: the win
share against ``random``, a perfect player or another agent, what the best answer to the agent would
score (its exploitability), and what its decisions cost, weighed by how often the agent meets them
when it plays itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.exact import positions
from agents.exact.asking import check_lots
from agents.exact.duels import Duel, Evaluator, Study
from agents.exact.errors import UnsettledError
from agents.exact.policies import Player
from agents.exact.solver import two_seats
from kimble_env.errors import AgentError
from kimble_env.kernel import STATE
from kimble_env.notation import format_position
from kimble_env.opponents import make_agent
from kimble_env.rules import Rules

Say = Callable[[str], None]
RANDOM, PERFECT = "random", "perfect"
DEFAULT_PIECES = 2
TOLERANCE = {1: 1e-12, 2: 1e-10, 3: 1e-9}
SHOWN = 5  # costly positions listed


def game_of(rules: str | Rules, pieces: int | None = None) -> Rules:
    """Return two-seat rules for an exact evaluation: 2 pieces unless the text or ``pieces`` says.

    Raises:
        RulesError: rules that cannot be, or two different numbers of pieces.
        AgentError: four pieces, which have no exact evaluation.
    """
    given = two_seats(rules)
    if pieces is not None and isinstance(rules, str) and "pieces=" in rules:
        if given.pieces != pieces:
            raise AgentError(f"the rules say {given.pieces} pieces, --pieces {pieces}: give one")
    if pieces is None and not (isinstance(rules, str) and "pieces=" in rules):
        pieces = DEFAULT_PIECES if isinstance(rules, str) else given.pieces
    game = given if pieces is None else given.replace(pieces=pieces)
    if game.pieces > max(TOLERANCE):
        raise AgentError(
            f"exact results exist for 1 to {max(TOLERANCE)} pieces, got {game.pieces}; for four "
            "pieces there are the losses on the decision sets: kimble losses"
        )
    return game


def exactly(
    agent: str,
    rules: str | Rules = "kimble",
    pieces: int | None = None,
    versus: tuple[str, ...] = (RANDOM, PERFECT),
    response: bool = True,
    costs: bool = True,
    threads: int = 2,
    say: Say | None = None,
    evaluator: Evaluator | None = None,
) -> dict[str, Any]:
    """Judge an agent exactly; the figures are ready for JSON.

    Args:
        agent: spec of a deterministic agent or of a weight vector (whose ties are even lots).
        rules: text or Rules; the seats are two opposite ones, whatever it says.
        pieces: per seat, 1 to 3; 2 if neither says.
        versus: opponents: "random", "perfect", or specs.
        response: compute the best answer to the agent too.
        costs: … and what its decisions cost when it plays itself.
        threads: sweeps at once.
        say: told of long work.
        evaluator: of this game, for several agents to share (it solves the game once); ``threads``
            and ``say`` are then its own.

    Returns:
        ``agent``, ``rules``, ``rules_hash``, ``pieces``, ``positions``, ``decisions`` (of the whole
        game), ``versus``: by opponent ``first``, ``second`` (win chance throwing first and second)
        and ``share``, their mean; ``best_response`` (the same of the best answer to the agent) and
        ``exploitability`` (its share minus 1/2), or in ``unsettled`` why there is none;
        ``loss_per_decision`` in thousandths of a win, and ``itself``: what a game of the agent
        against itself holds. What was not asked for is None. ``cpu_parts``: CPU seconds of the
        process, by what was computed: ``solve`` (0 if done before), ``policy`` (what the agent
        plays everywhere), ``versus NAME``, ``best_response``, ``costs``.

    Raises:
        RulesError: rules that cannot be or that the solver does not know.
        AgentError: unknown agents; four pieces; an evaluator of another game.
        TableError: an agent that draws lots.
    """
    game = game_of(rules, pieces)
    _check_agents((agent, *versus), game)
    if evaluator is None:
        evaluator = Evaluator(game, TOLERANCE[game.pieces], threads, say)
    elif evaluator.rules.hash != game.hash:
        raise AgentError(f"the evaluator is for {evaluator.rules}, not for {game}")
    players: dict[str, Player] = {}
    clock = Clock()
    if PERFECT in versus or costs:
        evaluator.perfect()
        clock.note("solve")
    me = _player(evaluator, agent, players)
    clock.note("policy")
    out: dict[str, Any] = {
        "agent": agent,
        "rules": str(game),
        "rules_hash": game.hash,
        "pieces": game.pieces,
        "positions": evaluator.solver.encoding.positions(),
        "decisions": getattr(me, "decisions", 0),
        "versus": {},
        "best_response": None,
        "exploitability": None,
        "unsettled": None,
        "loss_per_decision": None,
        "itself": None,
        "cpu_parts": clock.parts,
    }
    for name in versus:
        other = _player(evaluator, name, players)
        out["versus"][name] = _shares(evaluator.duel(me, other))
        clock.note(f"versus {name}")
    if response:
        out.update(_response(evaluator, me))
        clock.note("best_response")
    if costs:
        study = evaluator.study(me, me)
        out["loss_per_decision"] = 1000.0 * study.loss_per_decision()
        out["itself"] = account(evaluator, study)
        clock.note("costs")
    return out


def _check_agents(specs: tuple[str, ...], game: Rules) -> None:
    """Refuse agents that have no exact result, before the work."""
    for spec in dict.fromkeys(specs):
        if spec != PERFECT:
            check_lots(make_agent(spec, game))


def _response(evaluator: Evaluator, me: Player) -> dict[str, Any]:
    """Return what the best answer to a player wins, or why there is none."""
    try:
        best = evaluator.best_response(me)
    except UnsettledError as error:
        return {"unsettled": str(error)}
    return {"best_response": _shares(best), "exploitability": best.mean - 0.5}


class Clock:
    """CPU seconds of this process by what was done, all threads together."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self._last = time.process_time()

    def note(self, what: str) -> None:
        """Count what was spent since the last call for this."""
        now = time.process_time()
        self.parts[what] = round(self.parts.get(what, 0.0) + now - self._last, 2)
        self._last = now


def _player(evaluator: Evaluator, name: str, players: dict[str, Player]) -> Player:
    if name not in players:
        if name == PERFECT:
            players[name] = evaluator.perfect()
        else:
            players[name] = evaluator.player(make_agent(name, evaluator.rules))
    return players[name]


def _shares(duel: Duel) -> dict[str, float]:
    return {"share": duel.mean, "first": duel.first, "second": duel.second}


def account(evaluator: Evaluator, study: Study) -> dict[str, Any]:
    """Return what a study says about a game, ready for JSON.

    ``throws``, ``decisions``, ``loss``, ``throw_luck_sd``, ``battle_luck_sd`` (standard deviations
    over a game) and ``luck_per_throw_sd``; ``stalled``, the share of games that never end;
    ``passes`` and ``pass_best``: decisions with a pass played, and with one that is strictly best;
    ``kinds``: by kind of move, how often it was on offer, was (one of the) best, and what it costs
    where it is not; ``mistakes``: dearest first; ``positions``: the dearest ones.
    """
    throws = study.per_game("throws")
    return {
        "throws": throws,
        "decisions": study.per_game("decisions"),
        "loss": study.per_game("loss"),
        "stalled": study.stalled,
        "throw_luck_sd": float(np.sqrt(study.per_game("throw_luck"))),
        "battle_luck_sd": float(np.sqrt(study.per_game("battle_luck"))),
        "luck_per_throw_sd": float(np.sqrt(study.per_game("throw_luck") / throws)),
        "passes": study.per_game("passes"),
        "pass_best": study.per_game("pass_best"),
        "kinds": _kinds(study),
        "mistakes": _mistakes(study),
        "positions": [_costly(evaluator, row) for row in study.worst[:SHOWN]],
    }


def _kinds(study: Study) -> dict[str, dict[str, float]]:
    out = {}
    for name, (offered, best, cost, played) in zip(positions.KINDS, study.kinds, strict=True):
        if offered > 0:
            wrong = offered - best
            out[name] = {
                "offered": float(offered),
                "best_share": float(best / offered),
                "cost_where_wrong": float(1000.0 * cost / wrong) if wrong > 1e-12 else 0.0,
                "played": float(played),
            }
    return out


def _mistakes(study: Study) -> list[dict[str, Any]]:
    total = max(study.per_game("loss"), 1e-300)
    found = [
        {
            "played": positions.KINDS[k],
            "best": positions.KINDS[best],
            "per_game": float(often),
            "loss_each": float(1000.0 * loss / often),
            "share_of_loss": float(loss / total),
        }
        for k, row in enumerate(study.mistakes)
        for best, (often, loss) in enumerate(row)
        if loss > 0.0
    ]
    return sorted(found, key=lambda entry: -entry["share_of_loss"])


def _costly(evaluator: Evaluator, row: Any) -> dict[str, Any]:
    """Describe an entry of ``Study.worst``: its position text, and every move's loss."""
    seat, own, other, die = evaluator.position(row)
    rules = evaluator.rules
    state = np.zeros(1, STATE)
    state["pieces"] = -1
    for player, pieces in zip(rules.seats, (own, other), strict=True):
        state["plays"][:, player] = 1
        state["pieces"][0, player, : len(pieces)] = pieces
    state["seat"], state["die"], state["throws"], state["winner"] = seat, die, 1, -1
    state["last_action"], state["last_seat"], state["last_die"] = -1, seat, die
    win = evaluator.table().moves(state)[0]
    moves = {_move_text(rules, a, die): float(w) for a, w in enumerate(win.tolist()) if w >= 0.0}
    return {
        "position": format_position(rules, state[0]),
        "loss_each": float(1000.0 * row[0] / row[1]),
        "per_game": float(row[1]),
        "win": moves,
    }


def _move_text(rules: Rules, action: int, die: int) -> str:
    if action == rules.board.pass_action:
        return "pass"
    if action == 0:
        return "enter"
    target = action - 1 + die
    return f"{action - 1}-{'H' if rules.home and target >= rules.board.home else target}"


def print_exactly(found: dict[str, Any], tell: Callable[[str], None] = print) -> None:
    """Print what ``exactly`` returned, for people."""
    itself = found["itself"]
    tell(f"{found['agent']} in {found['rules']}, {found['positions']:,} positions, exact")
    if itself is not None and itself["decisions"] == 0:
        tell("a game without choices: whoever plays it plays alike")
    tell("")
    tell(f"{'against':24}{'win share':>12}{'first':>12}{'second':>12}")
    for name, row in found["versus"].items():
        tell(f"{name:24}" + "".join(f"{row[k]:12.6f}" for k in ("share", "first", "second")))
    if found["best_response"] is not None:
        best = found["best_response"]
        row = (1 - best["share"], 1 - best["second"], 1 - best["first"])
        tell(f"{'the best answer to it':24}" + "".join(f"{x:12.6f}" for x in row))
        tell("")
        tell(f"exploitability      {found['exploitability']:.6f} (the best answer wins over 1/2)")
    elif found["unsettled"] is not None:
        tell("")
        tell(f"no best answer found: {found['unsettled']}")
    if itself is None:
        return
    tell(f"loss per decision   {found['loss_per_decision']:.4f} thousandths of a win")
    tell(
        f"a game against itself: {itself['throws']:.1f} throws, {itself['decisions']:.1f} "
        f"decisions, {1000 * itself['loss']:.1f} thousandths lost"
    )
    if itself["stalled"] > 0:
        tell(f"games that never end: {itself['stalled']:.2%}")
    for entry in itself["mistakes"][:SHOWN]:
        tell(
            f"  {entry['played']} where {entry['best']} is best: {entry['per_game']:.2f} a game, "
            f"{entry['loss_each']:.1f} each, {entry['share_of_loss']:.0%} of all loss"
        )
    for entry in itself["positions"]:
        moves = ", ".join(f"{move} {win:.3f}" for move, win in entry["win"].items())
        tell(f"  {entry['position']}: {entry['loss_each']:.1f} lost; {moves}")
