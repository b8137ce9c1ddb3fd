"""Golden playthroughs: whole games, written down throw by throw, that must come out the same.

Each file in ``games`` is one game of one rule set. A line is one throw::

    seat die | legal moves | move [battle dice] | events | position afterwards

The moves are chosen by counting, not by chance (see ``choose``); the dice come from the seed. So a
file pins the streams of dice, the legal moves, what moves do, events and texts. A second reading
takes the dice from the file and pins the rules alone.

The files are renewed, on purpose and after reading the diff, with

    python -m tests.golden --write
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kimble_env import Event, Game, Move
from kimble_env.board import SEAT_LETTERS

HERE = Path(__file__).parent / "games"
HEAD = """\
# Golden playthrough, see tests/golden/__init__.py. Renewed by: python -m tests.golden --write
# seat die | legal moves | move [battle dice] | events | position afterwards
"""
TO_THE_END = 10_000


@dataclass(frozen=True)
class Playthrough:
    """Which game a file holds: rules, keywords of ``Game``, and how many throws of it at most."""

    rules: str
    seed: int
    throws: int = 150
    options: tuple[tuple[str, Any], ...] = ()


PLAYTHROUGHS: dict[str, Playthrough] = {
    "kimble": Playthrough("kimble", 1, TO_THE_END),
    "kombat": Playthrough("kombat", 2, TO_THE_END),
    "norske": Playthrough("norske", 3, TO_THE_END),
    "kimble_two_players": Playthrough("kimble", 4, TO_THE_END, (("players", 2), ("pieces", 2))),
    "kimble_two_colours": Playthrough("kimble[pieces=2,two_colours=yes]", 5, TO_THE_END),
    "kimble_places": Playthrough("kimble[pieces=2,play_for_places=yes]", 6, TO_THE_END),
    "kimble_popomatic": Playthrough("kimble[die=popomatic,pass_allowed=no]", 7),
    "kimble_ludo52": Playthrough("kimble[board=ludo52,pieces=3,stretch_block=yes]", 8),
    "kimble_sixes": Playthrough("kimble[extra_throw_needs_move=yes,max_sixes=2]", 9),
    "kimble_max_turns": Playthrough("kimble[max_turns=40]", 10),
    "kombat_popomatic": Playthrough("kombat[die=popomatic]", 11, 150, (("players", 3),)),
    "kombat_two_colours": Playthrough("kombat[pieces=2,two_colours=yes]", 12, TO_THE_END),
    "norske_cross40": Playthrough("norske[board=cross40,own_collision=mover]", 13),
    "norske_stander": Playthrough(
        "norske[own_collision=stander,three_throws_when=none_on_track]", 14
    ),
    "norske_places": Playthrough("norske[pieces=2,play_for_places=yes]", 15, TO_THE_END),
    "norske_two_teams": Playthrough("norske[pieces=3]", 16, TO_THE_END, (("seats", "BG"),)),
}


def choose(game: Game) -> Move:
    """A move by counting: mostly another piece each time, and a pass now and then."""
    moves = game.legal_moves
    if len(moves) > 1 and str(moves[-1]) == "pass" and game.plies % 13 != 0:
        moves = moves[:-1]
    return moves[(5 * game.plies + 3 * (game.die or 0)) % len(moves)]


def event_text(event: Event) -> str:
    """An event in a word or four: ``loss B 1 captured``."""
    kind, seat, *rest = event.as_tuple()
    return " ".join([kind, SEAT_LETTERS[seat], *map(str, rest)])


def one_throw(game: Game, die: int | None, move: str | None, battle: tuple[int, int] | None) -> str:
    """Throw and play (what is None is drawn, or chosen) and return the line that tells it."""
    seat = SEAT_LETTERS[game.seat]
    die = game.throw(die)
    legal = " ".join(map(str, game.legal_moves)) or "none"
    told = "none"
    if game.legal_moves:
        told = move if move is not None else str(choose(game))
        game.play(told, battle)
        fought = game.state["last_battle"][0].tolist()
        if fought[0]:
            told += f" {fought[0]}:{fought[1]}"
    events = ", ".join(map(event_text, game.events)) or "-"
    position = game.to_text().split(" ", 1)[1]
    return f"{seat} {die} | {legal} | {told} | {events} | {position}"


def playthrough(name: str) -> str:
    """Play the game of a file and return the whole text of it."""
    plan = PLAYTHROUGHS[name]
    game = Game(plan.rules, seed=plan.seed, **dict(plan.options))
    dice = " ".join(f"{SEAT_LETTERS[seat]}{face}" for seat, face in game.starter_dice) or "none"
    lines = [HEAD + f"seed {plan.seed}", f"starter dice {dice}", f"start {game.to_text()}"]
    while not game.over and game.plies < plan.throws:
        lines.append(one_throw(game, None, None, None))
    lines.append(f"result {game.result}")
    return "\n".join(lines) + "\n"


def replay(text: str) -> list[str]:
    """Play the dice, moves and battles of a file and return the lines that come out."""
    lines = [line for line in text.splitlines() if not line.startswith(("#", "seed", "starter"))]
    game = Game.from_text(lines[0].removeprefix("start "))
    told = [f"start {game.to_text()}"]
    for line in lines[1:-1]:
        thrown, _, played, _, _ = line.split(" | ")
        move, _, fought = played.partition(" ")
        dice = tuple(map(int, fought.split(":"))) if fought else None
        battle = (dice[0], dice[1]) if dice else None
        told.append(one_throw(game, int(thrown[-1]), None if move == "none" else move, battle))
    return [*told, f"result {game.result}"]
