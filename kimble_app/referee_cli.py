"""``kimble referee``: a match of Norske Kimble refereed in the terminal, from throw to protocol.

The screen is drawn anew after every key and every second. What the keys mean is in
``referee_desk``, how the match is kept in ``match_file``, the page at the end in ``protocol``.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kimble_app.match_file import MatchFile, read_match
from kimble_app.protocol import protocol_page
from kimble_app.referee_desk import Desk
from kimble_app.terminal import keyboard, screen
from kimble_env.board import SEAT_LETTERS, SEAT_NAMES
from kimble_env.errors import KimbleError
from kimble_env.files import write_whole
from kimble_env.ledger import DRINKS
from kimble_env.refereed import RefereedGame
from kimble_env.rules import DEFAULT_SEATS, find_rules


def read_team(text: str, seat: int) -> list[tuple[str, str]]:
    """Return the members of ``"Aino:vichy, Eero:long drink"``; a drink left out is vichy.

    Raises:
        KimbleError: not two members, or an unknown drink.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise KimbleError(
            f"team {SEAT_NAMES[seat]}: expected two members such as 'Aino:vichy, Eero:beer', "
            f"got {text!r}"
        )
    members = []
    for part in parts:
        name, _, drink = (word.strip() for word in part.partition(":"))
        drink = drink or "vichy"
        if drink not in DRINKS or not name:
            raise KimbleError(
                f"team {SEAT_NAMES[seat]}: a member is NAME:DRINK with a drink of "
                f"{', '.join(DRINKS)}; got {part!r}"
            )
        members.append((name, drink))
    return members


def read_starter(text: str, seats: Sequence[int]) -> str:
    """Return the option ``starter`` of a colour that plays, by name or letter, or of ``random``.

    Raises:
        KimbleError: anything else.
    """
    word = text.strip().lower()
    if word == "random":
        return word
    for seat in seats:
        if word in (SEAT_NAMES[seat], SEAT_LETTERS[seat].lower()):
            return SEAT_LETTERS[seat]
    known = ", ".join(f"{SEAT_NAMES[seat]} ({SEAT_LETTERS[seat]})" for seat in seats)
    raise KimbleError(f"the starter must be one of {known}, or random for a lot; got {text!r}")


def write_protocol(path: Path, game: RefereedGame, begun: float) -> Path:
    """Write the protocol page of a match; return its path."""
    write_whole(path, protocol_page(game, begun))
    return path


def begin_match(
    path: Path,
    rules: str,
    players: int | None,
    teams: dict[int, str],
    starter: str | None,
    cups: str,
    seed: int | None,
) -> MatchFile:
    """Begin a match in a new file.

    Without ``players`` the teams that are named play, or all four if fewer than two are.

    Raises:
        KimbleError: settings that cannot be, or a file that exists already.
    """
    found = find_rules(rules)
    if players is None:
        players = len(teams) if len(teams) in DEFAULT_SEATS else len(SEAT_NAMES)
    seats = DEFAULT_SEATS.get(players)
    if seats is None:
        raise KimbleError(f"players must be 2, 3 or 4, got {players}")
    if len(teams) == players:
        seats = tuple(sorted(teams))  # the colours that are named, whichever they are
    options: dict[str, Any] = {"seats": seats}
    if starter is not None:
        options["starter"] = read_starter(starter, seats)
    members = {seat: read_team(text, seat) for seat, text in teams.items()}
    game = RefereedGame(found, seed=seed, teams=members, cups=cups, **options)
    return MatchFile.create(path, game, time.time())


def referee(
    path: Path,
    *,
    rules: str,
    players: int | None,
    teams: dict[int, str],
    starter: str | None,
    cups: str,
    seed: int | None,
    protocol: bool,
    out: Path | None,
) -> None:
    """Referee a match in the terminal, or write its protocol.

    Raises:
        KimbleError: files or settings that cannot be used, or no terminal.
    """
    page = out or path.with_suffix(".html")
    if protocol:
        game, begun = read_match(path)
        print(f"protocol: {write_protocol(page, game, begun)}")
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise KimbleError("refereeing needs a terminal; --protocol writes the page without one")
    _warm_up()
    if path.exists():
        file = MatchFile.open(path)
    else:
        file = begin_match(path, rules, players, teams, starter, cups, seed)
    with file:
        _run(file, page)
    game = file.game
    print(f"log: {path}   protocol: {write_protocol(page, game, file.begun)}")
    print(game.to_text() if game.result is None else str(game.result))


def _warm_up() -> None:
    """Let the engine compile while nothing is at stake (once, it is kept on the disk)."""
    game = RefereedGame.from_text("norske R30,Hx3/B1/Y-/G- R 2 1", time=0)
    game.play("30-H")
    game.referee.ruling(0, "warming up", do="team_out", seat="B")
    game.referee.ruling(0, "warming up", do="drop", seat="R")
    RefereedGame("norske", seed=1).throw()


def _run(file: MatchFile, page: Path) -> None:
    """Draw, read keys and let clocks run until the referee stops."""
    offset, since = time.time() - file.begun, time.monotonic()
    offset = max(offset, file.game.referee.now)  # the clock of the day may have been set back

    def exact() -> float:
        return offset + time.monotonic() - since

    desk = Desk(
        file.game, exact, file.save, lambda: str(write_protocol(page, file.game, file.begun))
    )
    begun = SEAT_NAMES[file.game.log[0]["start"]["seat"]]
    agreed = "drawn by lot" if file.game.rules.starter == "random" else "as agreed"
    desk.messages.append(("0", f"{begun} begins, {agreed}"))  # R8
    if file.dropped:
        desk.messages.append(("0", "resumed; a last line that a crash had cut short was dropped"))
    with screen(), keyboard() as keys:
        while not desk.done:
            size = shutil.get_terminal_size()
            _draw(desk.lines(size.lines, size.columns), desk.bell)
            desk.bell = False
            wait = 1.0 - exact() % 1.0 + 0.01
            for key in keys.read(min(wait, 0.25)):
                desk.press(key)
            if desk.prompt is None:
                desk.tick()


def _draw(lines: list[str], bell: bool) -> None:
    text = "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in lines[:-1])
    text += f"{lines[-1]}\x1b[K\x1b[J" + ("\a" if bell else "")
    sys.stdout.write(text)
    sys.stdout.flush()
