"""Calibrates levels: finds the temperature of each level and writes ``agents/levels.json``.

The loss of a decision is the win chance of the best legal move less that of the move played, by a
reference that knows better (``evaluation.losses``). An agent's scores of all moves are asked once;
what it loses at a temperature is then the mean of the losses weighted with the softmax, with no
drawing and no games. So the temperature that loses as much as the ladder wants is found by halving
an interval. The ladder is described in ``agents.levels``; :func:`ladder` has its numbers.

From Python::

    from evaluation.calibrate import calibrate, find_reference
    entry = calibrate("cautious", find_reference("kimble", players=2))

and at the command line ``kimble calibrate cautious mixed --rules kimble --players 2``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import seat_chances
from agents.levels import (
    FILE,
    FORMAT,
    HIGHEST,
    canonical_spec,
    fingerprint,
    game_key,
    legal_masks,
    move_scores,
    softmax,
)
from agents.search import make_search
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.kernel import take_states
from kimble_env.opponents import Agent, make_agent
from kimble_env.rules import Rules, find_rules

FLOOR = 0.0005
"""An agent that loses less counts as losing this much where levels below it are spaced."""

FIRST = 0.9
"""Level 1 loses this part of what the hottest temperature loses."""

SEARCH = "depth=3,eval=linear"
"""What judges where there are neither exact values nor a public set."""

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """Decisions with the chances that losses are measured by.

    Attributes:
        name: where they come from.
        rules: the rules with as many players.
        positions: STATE [B], each with a die thrown and two legal actions or more.
        losses: float64 [B, A], win chance of the best action less that of each; inf if illegal.
    """

    name: str
    rules: Rules
    positions: npt.NDArray[np.void]
    losses: Scores


def reference_of(
    name: str, rules: Rules, positions: npt.NDArray[np.void], chances: npt.NDArray[Any]
) -> Reference:
    """Return the reference made of win chances of the seat to act, [B, A].

    Raises:
        KimbleError: no positions, or chances of another shape.
    """
    legal = legal_masks(positions, rules)
    if len(positions) == 0 or chances.shape != legal.shape:
        raise KimbleError(
            f"a reference needs chances {list(legal.shape)} of one position or more, got "
            f"{list(chances.shape)}"
        )
    own = np.where(legal, chances, -np.inf).astype(np.float64)
    return Reference(name, rules, positions, own.max(axis=1, keepdims=True) - own)


def expected_loss(
    scores: Scores, temperature: float, reference: Reference
) -> npt.NDArray[np.float64]:
    """Return what each decision loses on average at a temperature: float64 [B]."""
    chances = softmax(scores, temperature, reference.rules.board.pass_action)
    lost = np.where(chances > 0.0, reference.losses, 0.0)
    return (chances * lost).sum(axis=1)


def ladder(own: float, hottest: float) -> tuple[float, ...]:
    """Return the loss that each level aims at, of levels 1 to 10.

    Args:
        own: mean loss of the agent itself, in wins.
        hottest: mean loss at the hottest temperature.

    Raises:
        KimbleError: the agent loses about as much as chance does, so there is nothing to ladder.
    """
    first, last = FIRST * hottest, max(own, FLOOR)
    if last >= 0.95 * first:
        raise KimbleError(
            f"no ladder: the agent loses {1000 * own:.1f} mWP per decision, chance "
            f"{1000 * hottest:.1f}"
        )
    factor = (last / first) ** (1.0 / (HIGHEST - 1))
    return (*(first * factor**k for k in range(HIGHEST - 1)), own)


def calibrate(agent: str | Agent | Callable[..., Any], reference: Reference) -> dict[str, Any]:
    """Return the entry of ``levels.json`` for an agent.

    Args:
        agent: with ``evaluate`` or ``score``.
        reference: what it is measured on.

    Raises:
        AgentError: an agent that is not known, or has neither.
        KimbleError: it loses about as much as chance does.
    """
    made = make_agent(agent, reference.rules)
    scores = move_scores(made, reference.positions, reference.rules)
    finite = scores[np.isfinite(scores)]
    scale = float(np.ptp(finite)) or 1.0

    def loss(temperature: float) -> float:
        return float(expected_loss(scores, temperature, reference).mean())

    cold, hot = 1e-9 * scale, 1e3 * scale
    targets = ladder(loss(cold), loss(np.inf))
    temperatures = [_temperature(loss, target, cold, hot) for target in targets[:-1]]
    reached = [loss(t) for t in temperatures] + [loss(cold)]
    error = expected_loss(scores, cold, reference).std(ddof=1) / np.sqrt(len(scores))
    return {
        "fingerprint": fingerprint(made),
        "scale": "chances" if callable(getattr(made, "evaluate", None)) else "scores",
        "temperatures": [float(f"{t:.4g}") for t in temperatures],
        "losses_mwp": [round(1000 * x, 2) for x in reached],
        "own_error_mwp": round(1000 * float(error), 2),
        "hottest_mwp": round(1000 * loss(np.inf), 2),
        "reference": reference.name,
        "decisions": len(reference.positions),
    }


def _temperature(loss: Callable[[float], float], target: float, cold: float, hot: float) -> float:
    """Return a temperature that loses the target; the interval's ends lose less and more."""
    for _ in range(60):
        middle = float(np.sqrt(cold * hot))
        if loss(middle) < target:
            cold = middle
        else:
            hot = middle
        if hot / cold < 1.00005:
            break
    return float(np.sqrt(cold * hot))


# ----------------------------------------------------------------------------------- the references


def find_reference(
    rules: str | Rules = "kimble", players: int | None = None, decisions: int | None = None
) -> Reference:
    """Return the best reference for some rules.

    Exact values, else the public set (``evaluation.losses``), else, for options that have neither,
    a search of its own over decisions of stated play.

    Args:
        rules: Rules or their text.
        players: 2 to 4; by default as the rules have.
        decisions: use so many; None: all of a public set, 10,000 of an exact one, 1,500 searched.

    Raises:
        KimbleError: there is no value function to search with.
    """
    found = find_rules(rules)
    if players is not None and found.players != players:
        found = found.replace(players=players)
    reference = _exact(found, decisions or 10_000) or _public(found)
    if reference is None:
        return _searched(found, decisions or 1500)
    if decisions is None or decisions >= len(reference.positions):
        return reference
    rows = np.arange(decisions)
    return Reference(
        reference.name, found, take_states(reference.positions, rows), reference.losses[rows]
    )


def _exact(rules: Rules, most: int) -> Reference | None:
    from agents.exact.decisions import read_decisions, set_path
    from agents.exact.solver import two_seats

    if len(rules.seats) != 2 or two_seats(rules).seats != rules.seats:
        return None
    if not set_path(rules).exists():
        return None
    exact = read_decisions(rules)
    rows = np.arange(min(most, len(exact.positions)))
    name = f"exact values of {exact.rules}"
    return reference_of(name, rules, take_states(exact.positions, rows), exact.win[rows])


def _public(rules: Rules) -> Reference | None:
    from evaluation.losses import public_names, read_public, set_name

    if set_name(rules) not in public_names():
        return None
    preset = find_rules(rules.name, players=rules.players)
    if (preset.hash, preset.seats) != (rules.hash, rules.seats):
        return None
    public = read_public(rules)
    return reference_of(public.name, rules, public.positions, public.values)


def _searched(rules: Rules, decisions: int) -> Reference:
    from evaluation.losses import sample_decisions

    positions = sample_decisions(rules, decisions)
    searcher = make_search(SEARCH, rules)
    chances = seat_chances(searcher.values(positions), positions, rules)
    name = f"search:{SEARCH} ({searcher.evaluator.hash[:8]})"  # type: ignore[attr-defined]
    return reference_of(name, rules, positions, chances)


# --------------------------------------------------------------------------------------- the file


def levels_path() -> Path:
    """Return the file of levels that agents read."""
    return Path(str(resources.files("agents").joinpath(FILE)))


def read_levels(path: Path) -> dict[str, Any]:
    """Read a file of levels; one that does not exist is empty.

    Raises:
        KimbleError: it is damaged or of another format.
    """
    if not path.exists():
        return {"format": FORMAT, "agents": {}}
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["format"] != FORMAT or not isinstance(table["agents"], dict):
            raise ValueError(f"its format is {table['format']!r}, expected {FORMAT!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KimbleError(f"{path} is no file of levels: {error}") from None
    return dict(table)


def calibrate_all(
    agents: Sequence[str],
    reference: Reference,
    path: Path | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> dict[str, Any]:
    """Calibrate agents and write them into the file of levels, one by one; return their entries.

    Args:
        agents: specs.
        reference: what they are measured on.
        path: the file; others' entries in it stay. By default the one that agents read.
        say: told a line per agent.

    Raises:
        KimbleError: what :func:`calibrate` and :func:`read_levels` raise; agents done are written.
        OSError: the file cannot be written.
    """
    place = path if path is not None else levels_path()
    table = read_levels(place)
    done = {}
    for spec in agents:
        entry = calibrate(spec, reference)
        name = canonical_spec(make_agent(spec, reference.rules))
        table["agents"].setdefault(name, {})[game_key(reference.rules)] = entry
        table["agents"] = dict(sorted(table["agents"].items()))
        write_whole(place, _text(table))
        done[name] = entry
        losses = " ".join(f"{x:.1f}" for x in entry["losses_mwp"])
        say(f"{name} in {game_key(reference.rules)}: levels 1 to 10 lose {losses} mWP")
    return done


def stale_levels(
    table: dict[str, Any], say: Callable[[str], object] = lambda line: None
) -> list[tuple[str, Rules]]:
    """Return the agents and rules in a table of levels that have changed since, in its order.

    An agent that cannot be made any more is left out, and told of.
    """
    found = []
    for spec, games in table["agents"].items():
        for game, entry in games.items():
            name, _, players = game.rpartition("-")
            try:
                rules = find_rules(name, players=int(players.removesuffix("p")))
                made = make_agent(spec, rules)
            except (KimbleError, ValueError) as error:
                say(f"{spec} in {game} cannot be made: {error}")
                continue
            if fingerprint(made) != entry["fingerprint"]:
                found.append((spec, rules))
    return found


def calibrate_stale(
    path: Path | None = None,
    decisions: int | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> dict[str, Any]:
    """Calibrate again what has changed since; return the entries by ``agent in game``.

    Args:
        path: the file of levels; by default the one that agents read.
        decisions: of each reference, None for all it has.
        say: told a line per agent.

    Raises:
        KimbleError: see :func:`calibrate_all`.
    """
    place = path if path is not None else levels_path()
    done = {}
    for spec, rules in stale_levels(read_levels(place), say):
        reference = find_reference(rules, decisions=decisions)
        entry = calibrate_all([spec], reference, place, say)
        done |= {f"{name} in {game_key(rules)}": row for name, row in entry.items()}
    return done


def _text(table: dict[str, Any]) -> str:
    """Return the JSON with each calibration on one line, so that changes are read easily."""
    lines = [f'{{\n "format": {json.dumps(table["format"])},\n "agents": {{']
    for spec, games in table["agents"].items():
        rows = [f"   {json.dumps(game)}: {json.dumps(games[game])}" for game in sorted(games)]
        lines.append(f"  {json.dumps(spec)}: {{\n" + ",\n".join(rows) + "\n  },")
    if table["agents"]:
        lines[-1] = lines[-1].removesuffix(",")
    return "\n".join(lines) + "\n }\n}\n"
