"""The ladder of this project's agents: ``docs/ladder.md``, made by one command.

::

    python -m evaluation.ladder --folder runs/ladder --write docs/ladder.md

For each rule set with 2, 3 and 4 players:

* a tournament of all named heuristics and ``random`` gives ratings and points;
* a match of each agent alone against ``random`` at all other places, and one against ``tuned``,
  gives the win shares, each until its 95 % half-width is half a point;
* searching agents play the same two matches with the luck of the dice taken off, because raw games
  of theirs would take days. What they then needed, and what raw games would have, is told.

Everything finished is kept in the folder, so that a run that was stopped goes on. What the page to
be written has already is not played again while rules, agents and evaluator are the same and its
interval is as narrow as asked for (write another page to play everything). So after new networks
the same command plays their games alone.

All matches alone against a yardstick use the same seed, so there all agents meet the same dice.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.match import DEFAULT_CAP, MatchResult, play_match
from evaluation.planner import design_effect, games_needed
from evaluation.progress import progress_bar
from evaluation.ratings import ANCHOR
from evaluation.report import percent, summarise
from evaluation.tabletop import Table, make_agents
from evaluation.tournament import (
    adopt_record,
    fingerprint,
    make_settings,
    play_tournament,
    read_tournament,
)
from kimble_env import __version__
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.opponents import known_specs, make_agent
from kimble_env.rules import Rules, find_rules

RULES = ("kimble", "kombat", "norske")
PLAYERS = (2, 3, 4)
SEARCHING = (
    "net", "search:depth=2", "search:depth=1,eval=linear", "search:depth=2,eval=linear",
)  # fmt: skip
"""Agents that play adjusted matches; ``net`` is the network that ships for the rules, if any, and a
search without ``eval`` is over it. (One throw deep that is the network itself.)"""
ADJUST = "best"
"""Counts their luck: the shipped network of the rules where there is one, else ``linear``."""
YARDSTICKS = (ANCHOR, "tuned")
HALF_WIDTH = 0.005
SEED = 2026
FORMAT = "kimble-ladder-1"
CHAIN_RULES, CHAIN_GAMES = "kimble[pass_allowed=no]", 200_000
_PILOT = 400  # games that tell how many are needed
_CHUNK_SECONDS = 20.0  # of a searching agent's match between two savings


def fast_agents() -> list[str]:
    """Return ``random`` and all named heuristics that this installation knows.

    A heuristic that is ``random`` by another name is left out.
    """
    from agents.heuristics import heuristic_names

    known = known_specs()
    random = fingerprint(make_agent(ANCHOR), ANCHOR)
    return [
        ANCHOR,
        *(
            name
            for name in heuristic_names()
            if name in known and fingerprint(make_agent(name), name) != random
        ),
    ]


# -------------------------------------------------------------------------------------- the matches


def alone(
    spec: str, other: str, rules: Rules, half_width: float, *, progress: Any = None
) -> dict[str, Any]:
    """Play an agent alone against ``other`` at all other places, until the half-width is reached.

    Returns:
        share, interval95 (seat-block bootstrap), games and more, as plain JSON data.
    """
    lineup = [spec, *[other] * (rules.players - 1)]
    result = play_match(lineup, rules, _PILOT, SEED)
    for _ in range(4):  # the pilot's own share is uncertain: look again
        share = min(max(result.share(0), 0.02), 0.98)
        effect = min(max(design_effect(result, 0), 0.5), 1.5)
        block = rules.players
        games = games_needed(0.94 * half_width, share, design_effect=effect, block=block)
        if games <= result.games:
            break
        result = play_match(lineup, rules, games, SEED, progress=progress)
    return _row(spec, other, rules, result)


def alone_adjusted(
    spec: str,
    other: str,
    rules: Rules,
    half_width: float,
    seconds: float,
    kept: list[dict[str, Any]],
    adjust: str = ADJUST,
) -> Iterator[list[dict[str, Any]]]:
    """Play on a luck-adjusted match chunk by chunk; yield all chunks so far after each of them.

    Stops at the half-width, or when the chunks have taken ``seconds`` of CPU time.

    Args:
        kept: the chunks of an earlier run: first block, scores and luck of the agent per block.
    """
    lineup = [spec, *[other] * (rules.players - 1)]
    chunks = list(kept)
    blocks = 4
    play_match(lineup, rules, 1, SEED, adjust=adjust)  # compiles: that is not to be counted
    while True:
        spent = sum(chunk["seconds"] for chunk in chunks)
        if chunks:
            half = 1.96 * _standard_error(_adjusted_blocks(chunks))
            if (len(_adjusted_blocks(chunks)) >= 50 and half <= half_width) or spent >= seconds:
                return
            done = sum(len(chunk["raw"]) for chunk in chunks)
            blocks = int(max(2, min(500, _CHUNK_SECONDS * done / max(spent, 1e-3))))
        first = sum(len(chunk["raw"]) for chunk in chunks)
        start = time.process_time()
        result = play_match(lineup, rules, blocks * rules.players, SEED, first=first, adjust=adjust)
        if result.luck is None:
            raise KimbleError("luck was not counted")
        chunks.append(
            {
                "first": first,
                "raw": result.scores[:, :, 0].mean(axis=1).round(6).tolist(),
                "luck": result.luck[:, :, 0].mean(axis=1, dtype=np.float64).round(6).tolist(),
                "truncated": result.truncated,
                "seconds": round(time.process_time() - start, 3),
            }
        )
        yield chunks


def _adjusted_blocks(chunks: Sequence[dict[str, Any]]) -> np.ndarray:
    raw = np.concatenate([chunk["raw"] for chunk in chunks])
    luck: np.ndarray = np.concatenate([chunk["luck"] for chunk in chunks])
    return np.asarray(raw - luck)


def _standard_error(blocks: np.ndarray) -> float:
    return float(blocks.std(ddof=1)) / len(blocks) ** 0.5 if len(blocks) > 1 else float("inf")


def _row(spec: str, other: str, rules: Rules, result: MatchResult) -> dict[str, Any]:
    return {
        "agent": spec,
        "other": other,
        "fingerprint": fingerprint(make_agent(spec, rules), spec),
        "other_fingerprint": fingerprint(make_agent(other, rules), other),
        "share": result.share(0),
        "interval95": list(result.bootstrap(0)),
        "games": result.games,
        "truncated": result.truncated,
    }


def adjusted_row(
    spec: str, other: str, rules: Rules, chunks: Sequence[dict[str, Any]], adjust: str = ADJUST
) -> dict[str, Any]:
    """Return the figures of a luck-adjusted match from its chunks."""
    from agents.evaluators import make_evaluator

    value = make_evaluator(adjust, rules)
    blocks = _adjusted_blocks(chunks)
    raw = np.concatenate([chunk["raw"] for chunk in chunks])
    luck = raw - blocks
    share, error = float(blocks.mean()), _standard_error(blocks)
    ratio = float(raw.var() / blocks.var()) if blocks.var() > 0 else 1.0
    games = len(blocks) * rules.players
    return {
        "agent": spec,
        "other": other,
        "fingerprint": fingerprint(make_agent(spec, rules), spec),
        "other_fingerprint": fingerprint(make_agent(other, rules), other),
        "adjust": value.name,
        "adjust_hash": value.hash,
        "share": share,
        "interval95": [share - 1.96 * error, share + 1.96 * error],
        "raw_share": float(raw.mean()),
        "raw_half_width": 1.96 * _standard_error(raw),
        "agreement": float(luck.mean()) / max(_standard_error(luck), 1e-12),
        "variance_ratio": ratio,
        "games": games,
        "raw_games_for_the_same": round(games * ratio),
        "truncated": sum(chunk["truncated"] for chunk in chunks),
        "cpu_seconds": sum(chunk["seconds"] for chunk in chunks),
    }


# -------------------------------------------------------------------------------------- all of them


class Ladder:
    """Plays what is missing of the ladder and keeps it in a folder.

    Args:
        folder: where records and figures are kept.
        games: of each pairing of the tournaments; half as many again with four players, whose games
            vary more.
        half_width: of the matches alone against ``random``, as a share.
        tuned_half_width: of those against ``tuned``, which cost several times as much.
        seconds: CPU seconds that one match of a searching agent may take.
        fast: the agents of the tournaments.
        searching: the agents that play adjusted matches.
        against: the yardsticks of those matches; all if left out.
        adjust: what counts their luck.
        page: figures of an earlier run by ("kimble", 2) and so on: what is there and still true is
            not played again.
    """

    def __init__(
        self,
        folder: Path,
        games: int = 2200,
        half_width: float = HALF_WIDTH,
        tuned_half_width: float = HALF_WIDTH,
        seconds: float = 30.0,
        fast: Sequence[str] | None = None,
        searching: Sequence[str] = SEARCHING,
        against: Sequence[str] | None = None,
        adjust: str = ADJUST,
        page: dict[tuple[str, int], dict[str, Any]] | None = None,
    ) -> None:
        self.folder, self.adjust = folder, adjust
        self.games = games
        self.half_width = {ANCHOR: half_width, "tuned": tuned_half_width}
        self.seconds = seconds
        self.fast = list(fast) if fast is not None else fast_agents()
        self.searching = list(searching)
        self.against = list(against) if against is not None else self.yardsticks
        self.page = page or {}
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def yardsticks(self) -> list[str]:
        """``random``, and ``tuned`` where it is known."""
        return [name for name in YARDSTICKS if name in self.fast]

    def play(self, name: str, players: int, say: Any = print) -> None:
        """Play everything that is missing of one rule set and number of players."""
        self.play_fast(name, players, say)
        self.play_searching(name, players, say)

    def play_fast(self, name: str, players: int, say: Any = print) -> None:
        """Play what is missing of the heuristics: their tournament and their matches alone."""
        rules = find_rules(name).replace(players=players)
        key = f"{name}-{players}p"
        if not self._on_page(name, rules):
            self._tournament(key, rules, say)
        for other in self.yardsticks:
            for spec in self.fast:
                if spec != other:
                    self._alone(key, spec, other, rules, say)

    def _on_page(self, name: str, rules: Rules) -> bool:
        """Tell whether the page has the tournament that would be played."""
        known = self.page.get((name, rules.players))
        if known is None or not _still_true(known, rules):
            return False
        same = {agent["agent"] for agent in known["agents"]} == set(self.fast)
        pairs = len(self.fast) * (len(self.fast) - 1) // 2
        return same and known["games"] >= pairs * self._games_of(rules)

    def _games_of(self, rules: Rules) -> int:
        return self.games * 3 // 2 if rules.players == 4 else self.games

    def _tournament(self, key: str, rules: Rules, say: Any) -> None:
        settings = make_settings(self.fast, rules, seed=SEED)
        say(f"{key}: tournament of {len(self.fast)}")
        if (self.folder / f"{key}.jsonl").exists():
            adopt_record(self.folder / f"{key}.jsonl", settings)  # agents may have changed
        path, games = self.folder / f"{key}.jsonl", self._games_of(rules)
        with progress_bar() as bar:
            play_tournament(settings, path, games, progress=bar)

    def play_searching(self, name: str, players: int, say: Any = print) -> None:
        """Play what is missing of the networks and searching agents."""
        rules = find_rules(name).replace(players=players)
        key = f"{name}-{players}p"
        specs = []
        for asked in self.searching:
            try:
                specs.append(spelled(asked, rules))
            except KimbleError as error:
                say(f"{key}: no {asked}: {error}")
        for spec in dict.fromkeys(specs):  # without a network two ways of asking are one agent
            for other in self.against:
                self._alone_adjusted(key, spec, other, rules, say)

    def _alone(self, key: str, spec: str, other: str, rules: Rules, say: Any) -> None:
        kept, wanted = self.rows(key, "alone"), self.half_width[other]
        prints = [fingerprint(make_agent(s, rules), s) for s in (spec, other)]
        for row in kept + _rows_of_page(self.page.get((rules.name, rules.players))):
            same = [row["fingerprint"], row["other_fingerprint"]] == prints
            if (row["agent"], row["other"]) == (spec, other) and same and _width(row) <= wanted:
                return
        row = alone(spec, other, rules, wanted)
        say(f"{key}: {spec} alone against {other}: {percent(row['share'], 2)} %")
        rest = [r for r in kept if (r["agent"], r["other"]) != (spec, other)]
        self._keep(key, "alone", [*rest, row])

    def _alone_adjusted(self, key: str, spec: str, other: str, rules: Rules, say: Any) -> None:
        from agents.evaluators import make_evaluator

        kept, wanted = self.rows(key, "searching"), self.half_width[other]
        mine = [r for r in kept if (r["row"]["agent"], r["row"]["other"]) == (spec, other)]
        rest = [r for r in kept if r not in mine]
        known = self.page.get((rules.name, rules.players), {})
        for row in [r["row"] for r in mine] + known.get("searching", []):
            same = (row["agent"], row["other"]) == (spec, other)
            if same and _width(row) <= wanted and _prints_of(row, rules) == _prints_in(row):
                return
        prints = [fingerprint(make_agent(s, rules), s) for s in (spec, other)]
        prints.append(make_evaluator(self.adjust, rules).hash)
        before: list[dict[str, Any]] = []
        if mine and _prints_in(mine[0]["row"]) == prints:
            before = mine[0]["chunks"]
        for chunks in alone_adjusted(
            spec, other, rules, wanted, self.seconds, before, self.adjust
        ):
            row = adjusted_row(spec, other, rules, chunks, self.adjust)
            self._keep(key, "searching", [*rest, {"row": row, "chunks": chunks}])
            say(
                f"{key}: {spec} alone against {other}: {percent(row['share'], 2)} "
                f"±{percent(_width(row), 2)} %, {row['games']} games, {row['cpu_seconds']:.0f} s"
            )

    def rows(self, key: str, kind: str) -> list[dict[str, Any]]:
        """Return what is kept of a kind (``alone`` or ``searching``)."""
        path = self.folder / f"{key}-{kind}.json"
        if not path.exists():
            return []
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def _keep(self, key: str, kind: str, rows: list[dict[str, Any]]) -> None:
        write_whole(self.folder / f"{key}-{kind}.json", json.dumps(rows))

    # --------------------------------------------------------------------------------- the document

    def figures(
        self, name: str, players: int, before: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return all figures of one rule set and number of players; None if nothing is kept.

        Args:
            name, players: of the rules.
            before: figures of an earlier run. What the folder lacks is taken from them, where the
                rules and the agents are still the same.
        """
        key = f"{name}-{players}p"
        rules = find_rules(name).replace(players=players)
        known = before if before is not None and _still_true(before, rules) else None
        path = self.folder / f"{key}.jsonl"
        if path.exists():
            found = _tournament_figures(summarise(read_tournament(path), running=False))
        elif known is not None:
            found = {**known, "agents": [dict(agent) for agent in known["agents"]]}
        else:
            return None
        prints = {agent["agent"]: agent["fingerprint"] for agent in found["agents"]}
        earlier = {} if known is None else {a["agent"]: a for a in known["agents"]}
        lines = [
            row
            for row in self.rows(key, "alone")
            if row["fingerprint"] == prints.get(row["agent"])
            and row["other_fingerprint"] == prints.get(row["other"])
        ]
        for agent in found["agents"]:
            met = dict(earlier.get(agent["agent"], {}).get("alone_against", {}))
            for row in lines:
                if row["agent"] == agent["agent"]:
                    keep = ("share", "interval95", "games", "truncated")
                    met[row["other"]] = {k: row[k] for k in keep}
            agent["alone_against"] = met
        rows = [r["row"] for r in self.rows(key, "searching")]
        rows += [] if known is None else known["searching"]
        best: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:  # of two rows of one match the one that says more
            match = row["agent"], row["other"]
            true = _prints_of(row, rules) == _prints_in(row)
            if true and (match not in best or _width(row) < _width(best[match])):
                best[match] = row
        found["searching"] = sorted(
            best.values(), key=lambda r: (YARDSTICKS.index(r["other"]), -r["share"])
        )
        return found


_PRINTS = ("fingerprint", "other_fingerprint", "adjust_hash")


def spelled(asked: str, rules: Rules) -> str:
    """Return the whole spec of an agent, the network named that ``net`` or a search stands for.

    Raises:
        AgentError: there is no such agent for these rules.
    """
    from agents.levels import canonical_spec
    from agents.value_net import shipped_name

    spec = f"net:{shipped_name(rules)}" if asked == "net" else asked
    return canonical_spec(make_agent(spec, rules))


def _width(row: dict[str, Any]) -> float:
    """Return the half-width of the 95 % interval of a row."""
    low, high = row["interval95"]
    return float(high - low) / 2


def _rows_of_page(figures: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the matches alone of a page as rows of ``alone``."""
    agents = [] if figures is None else figures["agents"]
    prints = {agent["agent"]: agent["fingerprint"] for agent in agents}
    return [
        {
            **met, "agent": agent["agent"], "other": other,
            "fingerprint": agent["fingerprint"], "other_fingerprint": prints.get(other),
        }
        for agent in agents
        for other, met in agent["alone_against"].items()
    ]  # fmt: skip


def _prints_in(row: dict[str, Any]) -> list[str]:
    """Return what the agents and the evaluator of a row were made of."""
    return [row[name] for name in _PRINTS]


def _prints_of(row: dict[str, Any], rules: Rules) -> list[str]:
    """Return what the agents and the evaluator of a row are made of today."""
    from agents.evaluators import make_evaluator

    try:
        prints = [fingerprint(make_agent(row[k], rules), row[k]) for k in ("agent", "other")]
        return [*prints, make_evaluator(row["adjust"], rules).hash]
    except KimbleError:  # there is no such agent any more
        return []


def _still_true(figures: dict[str, Any], rules: Rules) -> bool:
    """Tell whether figures are of these very rules and of the agents as they are today."""
    if figures["rules_hash"] != rules.hash or figures["players"] != rules.players:
        return False
    try:
        return all(
            fingerprint(make_agent(a["agent"], rules), a["agent"]) == a["fingerprint"]
            for a in figures["agents"]
        )
    except KimbleError:
        return False


def _tournament_figures(summary: dict[str, Any]) -> dict[str, Any]:
    keep = ("agent", "fingerprint", "games", "elo", "elo95", "points", "points95",
            "pass_share", "captures_per_game", "mean_length")  # fmt: skip
    of_all = ("rules", "rules_hash", "players", "games", "truncated_share", "mean_length",
              "versions")  # fmt: skip
    agents = [{k: agent[k] for k in keep} for agent in summary["agents"]]
    return {**{k: summary[k] for k in of_all}, "agents": agents}


def chain_check(kept: dict[str, Any] | None, games: int) -> dict[str, Any]:
    """Return the match of ``safest`` against ``random`` by which the whole chain is checked.

    It is played unless ``kept`` is of the very same.
    """
    rules = find_rules(CHAIN_RULES).replace(players=2)
    prints = [fingerprint(make_agent(s, rules), s) for s in ("safest", ANCHOR)]
    same = {"rules_hash": rules.hash, "fingerprints": prints}
    if kept is not None and all(kept[name] == value for name, value in same.items()):
        return kept
    result = play_match(["safest", ANCHOR], rules, games, 1)
    return {
        **same, "share": result.share(0), "interval95": list(result.bootstrap(0)),
        "games": result.games,
    }  # fmt: skip


def _chain_part(check: dict[str, Any]) -> str:
    share, (low, high) = check["share"], check["interval95"]
    met = "it does" if 0.66 <= share <= 0.69 else "**it does not**"
    return f"""
## The check of the whole chain

In `{CHAIN_RULES}` with two players `safest` (capture, else enter, else fewest
enemy pieces 1 to 6 fields behind, else furthest) must win 66 to 69 % against `random`: 68 % over a
million games is published for Trouble, the same game. It wins **{percent(share, 2)} %** (95 %:
{percent(low, 2)} to {percent(high, 2)}, {check["games"]:,} games): {met}.
"""


def measure_speed(agents: Sequence[str], blocks: int = 300) -> dict[str, float]:
    """Return the four-player games of ``kimble`` per CPU second when an agent sits everywhere."""
    rules = find_rules("kimble")
    speeds = {}
    for spec in agents:
        table = Table(rules, make_agents([spec] * 4, rules))
        table.play_blocks(SEED, 0, 2, DEFAULT_CAP)  # compiles
        chunk = table.play_blocks(SEED, 0, blocks, DEFAULT_CAP)
        speeds[spec] = chunk.places.size / max(chunk.seconds, 1e-9)
    return speeds


def _speed_part(speeds: dict[str, float]) -> str:
    cells = ", ".join(f"`{spec}` {speed:,.0f}" for spec, speed in speeds.items())
    return (
        "\n## Speed\n\nFour-player games of `kimble` per CPU second of one core, the agent in all "
        f"seats, compiled, choices and captures counted ({_processor()}, the best of the runs that "
        f"made this page, on a busy machine): {cells}.\n"
    )


def _processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        named = [line for line in text.splitlines() if line.startswith("model name")]
        return named[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return platform.processor() or "an unnamed processor"


def document(
    ladders: Sequence[dict[str, Any]],
    command: str,
    chain: dict[str, Any],
    speeds: dict[str, float] | None = None,
) -> str:
    """Return the text of ``docs/ladder.md``."""
    head = _INTRODUCTION.format(
        command=command, version=__version__, python=platform.python_version(),
        numpy=np.__version__, cap=f"{DEFAULT_CAP:,}", seed=SEED,
    )  # fmt: skip
    parts = [_ladder_part(ladder) for ladder in ladders]
    parts.append(_chain_part(chain))
    return head + "".join(parts) + (_speed_part(speeds) if speeds else "")


_INTRODUCTION = """\
# The ladder

How the agents of this project compare, for each rule set with 2, 3 and 4 players. This page is made
by a command; no figure in it is typed by hand:

```
{command}
```

Versions: kimble-rl {version}, Python {python}, numpy {numpy}. Seed of the dice {seed}; games are
cut off after {cap} throws and then count 1/n to each player.

How to read the tables:

* **Elo**: Plackett-Luce rating from a tournament of everybody against everybody, `random` at 0,
  with the half-width of its 95 % interval (whole seat blocks drawn again).
* **points**: share of the games (%) at tables shared with one other agent, in every arrangement of
  the seats on equal dice, over all opponents; par is 50.
* **v random**, **v tuned**: win share (%) of the agent *alone* against those at all other places,
  all rotations of the seats on equal dice; par is 100/n. ± is the half-width of a 95 % seat-block
  bootstrap interval. `tuned` is a heuristic whose weights were sought by machine for each rule set
  and number of players. Luck caps all of these: nobody wins far more.
* **games**: how many stand behind the row.
* **passes**: share of its choices (%) that the agent answers by passing.

Networks and searching agents are slow, so their luck is taken off: *adjusted* is the win share less
what the dice gave, an unbiased estimate (`kimble evaluate --adjust best`), *luck by* what counted
it: the network of the rules, or the linear value. *raw* is the share of
the same games, *variance ÷* how many times smaller the variance of a block has become, *saved* the
raw games that the same interval would have taken beyond those played, *agree* the difference of raw
and adjusted in standard errors (a self-test: it should lie within ±4). They play until ±0.5 points
or for the CPU seconds that they are given; a wider ± means that these were used up, a match that is
not there that it was not played. The games come from several runs that filled one record; what was
played earlier stays while rules, weights, networks and evaluator are the same.
"""


def _ladder_part(ladder: dict[str, Any]) -> str:
    n = ladder["players"]
    sticks = [s for s in YARDSTICKS if any(s in a["alone_against"] for a in ladder["agents"])]
    lines = [
        f"\n## {ladder['rules']}, {n} players\n",
        f"{ladder['games']:,} games of the tournament, mean length {ladder['mean_length']:.0f} "
        f"throws, {100 * ladder['truncated_share']:.3f} % cut off. Rules hash "
        f"`{ladder['rules_hash']}`{_print_of_tuned(ladder)}.\n",
        "| | agent | Elo | points |" + "".join(f" v {s} |" for s in sticks) + " games | passes |",
        "|---:|---|---:|---:|" + "---:|" * len(sticks) + "---:|---:|",
    ]
    for rank, agent in enumerate(ladder["agents"], 1):
        elo = (agent["elo95"][1] - agent["elo95"][0]) / 2
        points = (agent["points95"][1] - agent["points95"][0]) / 2
        met = agent["alone_against"]
        games = agent["games"] + sum(row["games"] for row in met.values())
        cells = [
            str(rank),
            f"`{agent['agent']}`",
            f"{agent['elo']:.0f}" + (f" ±{elo:.0f}" if elo > 0 else ""),
            f"{percent(agent['points'])} ±{percent(points, 2)}",
            *(_share(met.get(s)) for s in sticks),
            f"{games:,}",
            percent(agent["pass_share"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("\n" + _widest(ladder, sticks))
    if ladder["searching"]:
        lines += _searching(ladder)
    return "\n".join(lines) + "\n"


def _print_of_tuned(ladder: dict[str, Any]) -> str:
    prints = [a["fingerprint"] for a in ladder["agents"] if a["agent"] == "tuned"]
    return f"; weights of `tuned`: `{prints[0]}`" if prints else ""


def _widest(ladder: dict[str, Any], sticks: Sequence[str]) -> str:
    """Return the sentence that says whether every half-width is as small as it was to be."""
    widths = {"points": [a["points95"] for a in ladder["agents"]]}
    for stick in sticks:
        met = [a["alone_against"].get(stick) for a in ladder["agents"]]
        widths[f"v {stick}"] = [row["interval95"] for row in met if row is not None]
    parts = []
    for name, intervals in widths.items():
        widest = max((high - low) / 2 for low, high in intervals)
        parts.append(_against_aim(f"{name} ±{percent(widest, 2)}", widest))
    return f"Widest half-widths: {', '.join(parts)}."


def _share(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{percent(row['share'])} ±{percent(_width(row), 2)}"


def _searching(ladder: dict[str, Any]) -> list[str]:
    judges = {row["adjust"]: row["adjust_hash"] for row in ladder["searching"]}
    named = " or ".join(f"`{name}` (`{print_}`)" for name, print_ in judges.items())
    lines = [
        f"\nNetworks and search, luck counted by {named}:\n",
        "| agent | alone against | adjusted | raw | games | variance ÷ | saved | agree | luck by |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in ladder["searching"]:
        saved = row["raw_games_for_the_same"] - row["games"]
        lines.append(
            f"| `{row['agent']}` | `{row['other']}` | {_share(row)} | {percent(row['raw_share'])} "
            f"±{percent(row['raw_half_width'], 2)} | {row['games']:,} "
            f"| {row['variance_ratio']:.1f} | {saved:,} | {row['agreement']:+.1f} "
            f"| {row['adjust'].partition(':')[0]} |"
        )
    widest = max(_width(row) for row in ladder["searching"])
    return [*lines, f"\nWidest half-width: {_against_aim(f'±{percent(widest, 2)}', widest)}."]


def _against_aim(text: str, width: float) -> str:
    """Return a half-width as text, with a word where it is wider than was aimed at."""
    return text if width < HALF_WIDTH + 5e-5 else f"{text} (more than the ±0.5 aimed at)"


def _read_before(path: Path) -> dict[str, Any]:
    """Return the data of a page written earlier; nothing if there is none of this format."""
    if not path.exists():
        return {}
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    same = data.get("format") == FORMAT and data.get("seed") == SEED
    return data if same else {}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play what is missing and write the document."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.ladder", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/ladder"))
    parser.add_argument("--write", type=Path, help="the document, for example docs/ladder.md")
    parser.add_argument(
        "--only", nargs="*", help="for example kimble-2p norske-4p; all if left out"
    )
    parser.add_argument("--games", type=int, default=2200, help="of each pairing of a tournament")
    parser.add_argument("--points", type=float, default=100 * HALF_WIDTH, help="half-width wanted")
    parser.add_argument("--tuned-points", type=float, default=100 * HALF_WIDTH, help="v tuned")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="per match of a searching agent"
    )
    parser.add_argument(
        "--agents", nargs="*", help="of the tournaments; all heuristics if left out"
    )
    parser.add_argument(
        "--searching", nargs="*", default=list(SEARCHING), help="net: the shipped network, if any"
    )
    parser.add_argument(
        "--searching-against", nargs="*", choices=YARDSTICKS, help="all yardsticks if left out"
    )
    parser.add_argument(
        "--only-searching", action="store_true", help="leave the heuristics as they are"
    )
    parser.add_argument("--adjust", default=ADJUST, help="evaluator that counts their luck")
    parser.add_argument("--no-play", action="store_true", help="only write the document")
    given = parser.parse_args(arguments)
    data = _read_before(given.write.with_suffix(".json")) if given.write is not None else {}
    before = {(kept["rules"], kept["players"]): kept for kept in data.get("ladders", [])}
    ladder = Ladder(
        given.folder, given.games, given.points / 100, given.tuned_points / 100, given.seconds,
        given.agents, given.searching, given.searching_against, given.adjust, before,
    )  # fmt: skip
    keys = [(name, players) for name in RULES for players in PLAYERS]
    if not given.no_play:
        for name, players in keys:
            if not given.only or f"{name}-{players}p" in given.only:
                play = ladder.play_searching if given.only_searching else ladder.play
                play(name, players)
    if given.write is None:
        return
    found = [ladder.figures(*key, before.get(key)) for key in keys]
    kept = [figures for figures in found if figures is not None]
    if not kept:
        raise KimbleError(f"nothing has been played in {given.folder}")
    command = (
        f"python -m evaluation.ladder --games {given.games} --points {given.points:g} "
        f"--tuned-points {given.tuned_points:g} --seconds {given.seconds:g} --write {given.write}"
    )
    same = data.get("processor") == _processor()
    earlier = data.get("games_per_cpu_second", {}) if same else {}
    speeds = {k: max(v, earlier.get(k, 0.0)) for k, v in measure_speed(ladder.fast).items()}
    chain = chain_check(data.get("chain_check"), CHAIN_GAMES)
    write_whole(given.write, document(kept, command, chain, speeds))
    data = {"format": FORMAT, "kimble_rl": __version__, "seed": SEED, "ladders": kept,
            "chain_check": chain, "games_per_cpu_second": speeds,
            "processor": _processor()}  # fmt: skip
    write_whole(given.write.with_suffix(".json"), json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KimbleError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
