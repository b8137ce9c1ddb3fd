"""Loss per decision: what a move gives away, against a reference.

The *loss* of a decision is the win chance of the best legal move less that of the move played, over
decisions with two legal moves or more, in thousandths of a win (mWP). Win rates hardly tell good
players apart, because the dice decide most games; losses do, and from a few thousand positions.

A reference gives the win chance after every legal move: an evaluator (``agents.evaluators``), an
agent with ``evaluate``, or a *public set*, which holds positions and reference values so that
everybody's figures can be compared:

>>> from evaluation.losses import public_losses
>>> public_losses("cautious", "kombat", players=4).mean          # doctest: +SKIP

Public sets lie in ``evaluation/data`` for kimble, kombat and norske with 2, 3 and 4 players;
``public_sets.py`` made them and says how. For kimble and kombat with two players they are exact.

Command: ``kimble losses cautious random --rules kombat --players 4``.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.evaluators import Evaluator, exact_move_values, make_evaluator, seat_chances
from agents.exact.decisions import PLAYER, WILD, play_positions
from kimble_env.errors import AgentError, KimbleError
from kimble_env.kernel import STATE, game_keys, legal_batch
from kimble_env.opponents import (
    Agent,
    check_actions,
    check_decisions,
    hide_random_state,
    make_agent,
)
from kimble_env.rules import Rules, find_rules

FOLDER = Path(__file__).parent / "data"
FORMAT = "kimble-public-1"
PHASES = ("opening", "middle", "end")
"""By the seat that is ahead: less than a third, less than two thirds of all its pips made, more."""

STATED_PLAY = f"{PLAYER} in all seats, {WILD:.0%} of moves uniform other than pass"
KEY_SEED = 20261130  # of the keys with which agents are asked

States = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PublicSet:
    """Decisions with reference values.

    Attributes:
        rules: the rules, with the seats that play.
        header: what made it, see ``public_sets.py``.
        positions: STATE [N], each with a die thrown and two legal actions or more.
        values: float64 [N, A], the win chance of the seat to act after each action, NaN if illegal.
        errors: float64 [N, A], standard errors of each action's value less that of the reference's
            first choice (which has 0 itself); NaN if illegal. All 0 where the values are exact.
    """

    rules: Rules
    header: dict[str, Any]
    positions: States
    values: Floats
    errors: Floats

    @property
    def name(self) -> str:
        """Its name, such as ``public:kombat-4p``, and the first digits of its checksum."""
        return f"public:{set_name(self.rules)} ({self.header['sha256'][:8]})"


Reference = str | Evaluator | Agent | PublicSet | Callable[..., Any]


@dataclass(frozen=True)
class Losses:
    """What an agent gives away.

    Attributes:
        agent: its name.
        rules: the rules.
        reference: name of what judged it.
        losses: float64 [N], loss of each decision, in win probability.
        phases: int8 [N], places in ``PHASES``.
        passes: bool [N], where the agent passed (a part, if it was asked more than once).
    """

    agent: str
    rules: Rules
    reference: str
    losses: Floats
    phases: npt.NDArray[np.int8]
    passes: Floats

    @property
    def mean(self) -> float:
        """Mean loss per decision, in win probability."""
        return float(self.losses.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean over positions (not of what the reference gets wrong)."""
        return _error(self.losses)

    @cached_property
    def best(self) -> float:
        """Share of decisions in which nothing is lost (less than .05 mWP)."""
        return float((self.losses < 5e-5).mean())

    def quantile(self, share: float) -> float:
        """Loss that so many of the decisions do not exceed."""
        return float(np.quantile(self.losses, share))

    def as_json(self) -> dict[str, Any]:
        """Return figures in thousandths of a win, plain JSON data."""
        phases = {}
        for k, name in enumerate(PHASES):
            part = self.losses[self.phases == k]
            if len(part):
                phases[name] = {
                    "decisions": len(part),
                    "mean": _mwp(part.mean()),
                    "error": _mwp(_error(part)),
                }
        return {
            "agent": self.agent,
            "reference": self.reference,
            "decisions": len(self.losses),
            "mean": _mwp(self.mean),
            "error": _mwp(self.error),
            "nothing_lost_share": round(self.best, 4),
            "pass_share": round(float(self.passes.mean()), 4),
            "quantiles": {q: _mwp(self.quantile(float(q))) for q in ("0.5", "0.9", "0.99")},
            "phases": phases,
        }


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


def _mwp(value: float) -> float | None:
    """In thousandths of a win, three digits; None where there is no number."""
    return round(1000.0 * float(value), 3) if np.isfinite(value) else None


# ------------------------------------------------------------------------------------- the losses


def decision_losses(
    agent: str | Agent | Callable[..., Any],
    positions: States,
    rules: str | Rules,
    reference: Reference,
    repeats: int = 1,
) -> Losses:
    """Ask an agent about positions and tell what its moves lose.

    Args:
        agent: a spec, an agent or a function.
        positions: STATE [N], each with a die thrown. Those with one legal action only count
            nothing and are left out.
        rules: Rules or their text.
        reference: what judges; a public set must hold these very positions.
        repeats: how often each position is asked, with other keys: agents that choose by chance
            then have their mean loss.

    Raises:
        KimbleError: no positions with a choice, or repeats below 1.
        PositionError: naming every fault of every position.
        AgentError: an agent or reference that is not known or does not fit.
    """
    rules = find_rules(rules)
    if isinstance(repeats, bool) or not isinstance(repeats, int | np.integer) or repeats < 1:
        raise KimbleError(f"repeats must be a whole number of at least 1, got {repeats!r}")
    check_decisions(positions, rules)
    made = make_agent(agent, rules)
    name, values = reference_values(reference, positions, rules)
    rows = np.flatnonzero(np.isfinite(values).sum(axis=1) > 1)
    if len(rows) == 0:
        raise KimbleError("no position leaves a choice, so there is nothing to lose")
    asked, values = hide_random_state(positions[rows]), values[rows]
    best = np.nanmax(values, axis=1)
    losses, passes = np.zeros(len(rows)), np.zeros(len(rows))
    keys = np.empty(len(rows), np.uint64)
    for k in range(int(repeats)):
        game_keys(np.uint64(KEY_SEED + k), 0, keys)
        actions = check_actions(asked, rules, made.act(asked, keys), made.spec)
        losses += best - values[np.arange(len(rows)), actions]
        passes += actions == rules.board.pass_action
    return Losses(
        made.spec, rules, name, losses / repeats, phases(asked, rules), passes / repeats
    )


def reference_values(
    reference: Reference, positions: States, rules: Rules
) -> tuple[str, Floats]:
    """Return the name of a reference and its values: float64 [N, A], NaN for illegal actions.

    Raises:
        AgentError: it is neither an evaluator nor an agent with ``evaluate``.
        KimbleError: a public set of other positions or rules.
    """
    if isinstance(reference, PublicSet):
        if rules.hash != reference.rules.hash:
            raise KimbleError(f"{reference.name} is for {reference.rules}, not {rules}")
        same = len(positions) == len(reference.positions) and (
            board_bytes(positions) == board_bytes(reference.positions)
        )
        if not same:
            raise KimbleError(f"{reference.name} judges its own positions only")
        return reference.name, reference.values
    judge = _judge(reference, rules)
    if callable(getattr(judge, "value", None)):
        name = f"{judge.name} ({judge.hash})"
        win: Any = exact_move_values(judge, positions, rules)
    else:
        name, win = judge.spec, judge.evaluate(hide_random_state(positions))
    legal = np.empty(len(positions), np.int64)
    legal_batch(positions, rules.array, legal)
    mask = legal[:, None] >> np.arange(rules.board.actions) & 1 != 0
    return name, np.where(mask, seat_chances(win, positions, rules), np.nan)


def _judge(reference: Any, rules: Rules) -> Any:
    """Return an evaluator, or an agent with win chances."""
    try:
        return make_evaluator(reference, rules)
    except AgentError as error:
        try:
            agent = make_agent(reference, rules)
        except AgentError:
            raise error from None
        if not callable(getattr(agent, "evaluate", None)):
            raise AgentError(f"{agent.spec} has no win chances, so it cannot judge moves") from None
        return agent


def board_bytes(positions: States) -> bytes:
    """Return what the values of positions depend on, as bytes: pieces, seat, die, throws left."""
    pieces = np.sort(positions["pieces"], axis=2).tobytes()
    return pieces + b"".join(positions[name].tobytes() for name in ("seat", "die", "throws"))


def phases(positions: States, rules: Rules) -> npt.NDArray[np.int8]:
    """Return the phase of each position, a place in ``PHASES``: int8 [N]."""
    pips = (positions["pieces"].astype(np.int64) + 1)[:, :, : rules.pieces].sum(axis=2)
    whole = rules.pieces * (rules.last_progress + 1)
    ahead = (pips * (positions["plays"] != 0)).max(axis=1) / whole
    return np.minimum((3 * ahead).astype(np.int8), 2)


def sample_decisions(rules: str | Rules, count: int, seed: int = 1) -> States:
    """Return decisions from stated play (``STATED_PLAY``): STATE [count], random state zeroed.

    One in eight is kept of those met in games from the start to the end.

    Raises:
        KimbleError: count below 1.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise KimbleError(f"count must be a whole number of at least 1, got {count!r}")
    rules = find_rules(rules)
    positions: States = play_positions(rules, int(count), 0, seed)[0]
    return positions


# ------------------------------------------------------------------------------------ public sets


def set_name(rules: Rules) -> str:
    """Return the name of the public set of some rules: ``kombat-4p``."""
    return f"{rules.name}-{rules.players}p"


def public_names() -> tuple[str, ...]:
    """Return the names of the public sets that there are."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.npz")))


def public_losses(
    agent: str | Agent | Callable[..., Any],
    rules: str | Rules = "kimble",
    players: int | None = None,
    repeats: int = 1,
) -> Losses:
    """Return the losses of an agent on the public set of some rules; see ``decision_losses``."""
    found = find_rules(rules)
    public = read_public(found if players is None else found.replace(players=players))
    return decision_losses(agent, public.positions, public.rules, public, repeats)


def read_public(rules: str | Rules, path: Path | None = None) -> PublicSet:
    """Read the public set of some rules (by default the shipped one).

    Args:
        rules: Rules or their text, for as many players as they say.

    Raises:
        KimbleError: there is none (those that there are are named), it is damaged, or for others.
    """
    rules = find_rules(rules)
    path = FOLDER / f"{set_name(rules)}.npz" if path is None else path
    try:
        # From bytes: numpy leaves a damaged file open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise KimbleError(
            f"there is no public set {path.stem!r}; there are: {', '.join(public_names())}"
        ) from None
    except Exception as error:
        raise KimbleError(f"{path}: no public set, or damaged: {error}") from None
    if header.get("format") != FORMAT or header.get("sha256") != digest(arrays):
        raise KimbleError(f"{path}: damaged, or not of format {FORMAT}: the checksum does not fit")
    if header["rules_hash"] != rules.hash or header["seats"] != list(rules.seats):
        raise KimbleError(
            f"the public set {path.stem} is made for {header['rules']}, seats {header['seats']}, "
            f"not for {rules}, seats {list(rules.seats)}; --reference exact, best or linear judges "
            "decisions that are drawn anew"
        )
    positions = unpack(arrays, rules)
    values, errors = (np.full((len(positions), rules.board.actions), np.nan) for _ in range(2))
    rows = np.repeat(np.arange(len(positions)), arrays["counts"])
    values[rows, arrays["actions"]] = arrays["values"]
    errors[rows, arrays["actions"]] = arrays["errors"]
    return PublicSet(rules, header, positions, values, errors)


def pack(positions: States, values: Floats, errors: Floats, rules: Rules) -> dict[str, Any]:
    """Return the arrays of a set's file; moves are listed in the order of positions and codes."""
    rows, actions = np.nonzero(np.isfinite(values))
    return {
        "pieces": np.sort(positions["pieces"][:, list(rules.seats), : rules.pieces], axis=2),
        **{name: positions[name] for name in ("seat", "die", "throws")},
        "counts": np.isfinite(values).sum(axis=1).astype(np.uint8),
        "actions": actions.astype(np.int8),
        "values": np.round(values[rows, actions], 5).astype(np.float32),
        "errors": np.round(errors[rows, actions], 5).astype(np.float32),
    }


def unpack(arrays: dict[str, Any], rules: Rules) -> States:
    """Return the positions of a set's file: STATE [N]."""
    pieces = arrays["pieces"]
    states = np.zeros(len(pieces), STATE)
    states["pieces"] = -1
    for k, seat in enumerate(rules.seats):
        states["plays"][:, seat] = 1
        states["pieces"][:, seat, : rules.pieces] = pieces[:, k]
    for name in ("seat", "die", "throws"):
        states[name] = arrays[name]
    states["last_seat"], states["last_die"] = states["seat"], states["die"]
    states["winner"], states["last_action"] = -1, -1
    return states


def digest(arrays: dict[str, Any]) -> str:
    """Return the sha256 of a file's arrays: names, shapes and bytes."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + str(arrays[name].shape).encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()
