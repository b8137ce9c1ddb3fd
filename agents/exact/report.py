"""Solve a game and say what came out: the data behind ``kimble solve``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agents.exact.duels import MOST_PIECES, perfect_play
from agents.exact.errors import TableError
from agents.exact.solver import Say, Solver, two_seats
from agents.exact.table import table_path, write_table
from kimble_env.rules import Rules

OPEN = 1e-6
"""Positions whose lower and upper value differ by more than this count as open."""


def solve_game(
    rules: str | Rules,
    pieces: int | None = None,
    adjacent: bool = False,
    bracket: bool | None = None,
    play: bool | None = None,
    tolerance: float | None = None,
    threads: int = 2,
    folder: Path | None = None,
    table: Path | None = None,
    say: Say | None = None,
) -> dict[str, Any]:
    """Solve a game of two seats, write its table, and return figures that JSON can hold.

    Args:
        rules: text or Rules (its seats are ignored).
        pieces: pieces per seat if the text does not say.
        adjacent: neighbours instead of seats opposite each other.
        bracket: solve from both sides too (default: up to 3 pieces).
        play: strict passes and, where play ends for sure, the expected number of throws (default:
            up to 3 pieces; more is an error).
        tolerance: largest change in the last sweep of a layer (default by pieces).
        threads: sweeps that run at once.
        folder: for checkpoints (default: the cache folder for 4 pieces, none for fewer).
        table: where the table goes (default: the cache folder).
        say: called with lines of progress.

    Returns:
        ``positions``, ``sweeps`` (mean over positions), ``most_sweeps`` of a layer, ``tolerance``,
        ``bracket`` (largest gap between the two sides, None if not run), ``open_share`` (positions
        where the gap exceeds 1e-6), ``start_value``, ``start_lower``, ``start_upper`` (win chance
        of the seat that throws first; without a bracket the last two are None),
        ``expected_throws``, ``strict_pass_share``, ``cpu_seconds``, ``wall_seconds``,
        ``peak_bytes``, ``table``, ``rules``, ``rules_hash``, ``pieces``, ``seats``.

    Raises:
        RulesError: rules that cannot be or that the solver does not know.
        TableError: a damaged or foreign checkpoint; ``play`` with four pieces.
    """
    game = two_seats(rules, pieces, adjacent)
    small = game.pieces <= MOST_PIECES
    if play and not small:
        raise TableError(
            f"throws and passes of perfect play are counted for at most {MOST_PIECES} pieces, "
            f"got {game.pieces}"
        )
    target = table if table is not None else table_path(game)
    if folder is None and not small:
        folder = target.with_suffix(".layers")
    solver = Solver(game, "value", tolerance, threads, folder, say=say)
    statistics = solver.solve()
    write_table(solver, target, statistics)
    p = solver.block(0, 0)[0]
    out: dict[str, Any] = {
        "rules": str(game),
        "rules_hash": game.hash,
        "pieces": game.pieces,
        "seats": list(game.seats),
        "positions": solver.encoding.positions(),
        "sweeps": round(statistics.sweeps, 2),
        "most_sweeps": statistics.most_sweeps,
        "tolerance": solver.tolerance,
        "start_value": float(p[0, 0]),
        **dict.fromkeys(("start_lower", "start_upper", "bracket", "open_share")),
        **dict.fromkeys(("expected_throws", "strict_pass_share")),
        "table": str(target),
    }
    if small if play is None else play:
        found = perfect_play(solver, not game.pass_allowed)
        out["expected_throws"] = found.expected_throws
        out["strict_pass_share"] = float(found.strict_pass_share)
    if small if bracket is None else bracket:
        out.update(bracket_of(game, tolerance, threads, folder, say))
    out["cpu_seconds"] = round(statistics.cpu_seconds, 2)
    out["wall_seconds"] = round(statistics.wall_seconds, 2)
    out["peak_bytes"] = statistics.peak_bytes
    return out


def bracket_of(
    game: Rules, tolerance: float | None, threads: int, folder: Path | None, say: Say | None
) -> dict[str, Any]:
    """Solve from both sides: endless play counted as lost, then as won, for the first seat."""
    sides = []
    for mode in ("lower", "upper"):
        where = None if folder is None else folder / mode
        sides.append(Solver(game, mode, tolerance, threads, where, say=say))
        sides[-1].solve()
    low, high = sides
    slots = range(len(low.encoding.masks))
    gap, wide, cells = 0.0, 0, 0
    for x in slots:
        for y in slots:
            free = ~shared_fields(low, x, y)
            for a, b in zip(low.block(x, y), high.block(x, y), strict=True):
                apart = np.abs(np.asarray(a) - np.asarray(b))[free]
                gap = max(gap, float(apart.max(initial=0.0)))
                wide += int((apart > OPEN).sum())
                cells += apart.size
    return {
        "bracket": gap,
        "open_share": wide / cells,
        "start_lower": float(low.block(0, 0)[0][0, 0]),
        "start_upper": float(high.block(0, 0)[0][0, 0]),
    }


def shared_fields(solver: Solver, x: int, y: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell for every cell of a layer whether both seats claim a ring field: bool [ni, nj]."""
    masks = []
    for seat, slot in ((solver.a, x), (solver.b, y)):
        p = seat.moves(slot).configs.astype(np.int64)
        board = solver.rules.board
        fields = (p + board.starts[seat.seat]) % board.ring
        on_ring = (p >= 0) & (p <= board.leave)
        masks.append(np.bitwise_or.reduce(np.where(on_ring, np.int64(1) << fields, 0), axis=1))
    out: np.ndarray[Any, np.dtype[np.bool_]] = (masks[0][:, None] & masks[1][None, :]) != 0
    return out
