"""Solve a game and say what came out: the data behind ``kimble solve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from agents.exact.duels import MOST_PIECES, perfect_play
from agents.exact.encoding import encoding_of
from agents.exact.errors import TableError
from agents.exact.layers import Pair
from agents.exact.solver import Solver, peak_bytes, two_seats, value_type
from agents.exact.table import table_path, write_table
from agents.exact.telling import Say
from kimble_env.rules import Rules

OPEN = 1e-6
"""Positions whose lower and upper value differ by more than this count as open."""
FIGURES = (
    "sweeps", "most_sweeps", "start_value", "start_lower", "start_upper", "bracket", "open_share",
    "bracket_sweeps", "bracket_cpu_seconds", "expected_throws", "strict_pass_share", "table",
    "cpu_seconds", "wall_seconds",
)  # fmt: skip
"""What :func:`solve_game` finds out, in order; None for what it is not asked for."""
ROWS_AT_ONCE = 512
"""Rows compared at once: layers of four pieces have 24,158 of as many cells."""


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
    value: bool = True,
) -> dict[str, Any]:
    """Solve a game of two seats, write its table, and return figures that JSON can hold.

    Args:
        rules: text or Rules (its seats are ignored).
        pieces: pieces per seat if the text does not say.
        adjacent: neighbours instead of seats opposite each other.
        bracket: bound the value from both sides too (default: up to 3 pieces).
        play: strict passes and, where play ends for sure, the expected number of throws (default:
            up to 3 pieces; more is an error).
        tolerance: largest change in the last sweep of a layer (default by pieces).
        threads: sweeps that run at once.
        folder: for checkpoints (default: the cache folder for 4 pieces, none for fewer).
        table: where the table goes (default: the cache folder).
        say: called with lines of progress.
        value: solve the game itself; without it the bracket alone, and no table.

    Returns:
        ``positions``, ``sweeps`` (mean over positions), ``most_sweeps`` of a layer, ``tolerance``,
        ``bracket`` (largest gap between the two sides, None if not run), ``open_share`` (positions
        where the gap exceeds 1e-6), ``start_value``, ``start_lower``, ``start_upper`` (win chance
        of the seat that throws first), ``bracket_sweeps``, ``bracket_cpu_seconds``,
        ``expected_throws``, ``strict_pass_share``, ``cpu_seconds``, ``wall_seconds`` (of the value
        alone), ``peak_bytes``, ``table``, ``rules``, ``rules_hash``, ``pieces``, ``seats``. What
        was not asked for is None.

    Raises:
        RulesError: rules that cannot be or that the solver does not know.
        TableError: a damaged or foreign checkpoint; ``play`` with four pieces; a game that this
            machine has no memory for.
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
    _check_memory(game)
    solver = Solver(game, "value", tolerance, threads, folder, say=say)
    out: dict[str, Any] = {
        "rules": str(game),
        "rules_hash": game.hash,
        "pieces": game.pieces,
        "seats": list(game.seats),
        "positions": solver.encoding.positions(),
        "tolerance": solver.tolerance,
        **dict.fromkeys(FIGURES),
    }
    if value:
        out.update(_value_of(solver, target, small if play is None else play))
    if not value or (small if bracket is None else bracket):
        out.update(bracket_of(game, tolerance, threads, folder, say))
    out["peak_bytes"] = peak_bytes()
    return out


def _check_memory(game: Rules) -> None:
    """Refuse a game of which one layer is more than the memory of this machine."""
    code = encoding_of(game)
    largest = int(max(code.sizes)) ** 2
    least = 2 * largest * value_type(game).itemsize
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if least > memory:
        raise TableError(
            f"{game} with {game.pieces} pieces is too large for this machine: the values of its "
            f"largest layer alone take {least / 1e9:.1f} GB, and it has {memory / 1e9:.1f} GB"
        )


def _value_of(solver: Solver, target: Path, play: bool) -> dict[str, Any]:
    """Solve the game and write its table; return the figures of perfect play."""
    statistics = solver.solve()
    write_table(solver, target, statistics)
    out = {
        "sweeps": round(statistics.sweeps, 2),
        "most_sweeps": statistics.most_sweeps,
        "start_value": float(solver.block(0, 0)[0][0, 0]),
        "table": str(target),
        "cpu_seconds": round(statistics.cpu_seconds, 2),
        "wall_seconds": round(statistics.wall_seconds, 2),
    }
    if play:
        found = perfect_play(solver, not solver.rules.pass_allowed)
        out["expected_throws"] = found.expected_throws
        out["strict_pass_share"] = float(found.strict_pass_share)
    return out


def bracket_of(
    game: Rules, tolerance: float | None, threads: int, folder: Path | None, say: Say | None
) -> dict[str, Any]:
    """Bound the value: endless play counted as lost, then as won, for the first seat.

    Between seats opposite each other what one loses by endless play the other wins, so one solve
    holds both bounds. Neighbours take two, one after the other.

    Args:
        folder: for the checkpoints of both, which stay there; None: kept in memory.

    Returns:
        ``bracket``, ``open_share``, ``start_lower``, ``start_upper`` (see :func:`solve_game`) and
        ``bracket_sweeps`` (mean over cells), ``bracket_cpu_seconds``.
    """
    cpu, cells, sweeps = 0.0, 0, 0
    sides: list[Solver] = []
    for mode in ("lower", "upper"):
        if not (sides and sides[0].opposite):
            where = None if folder is None else folder / mode
            sides.append(Solver(game, mode, tolerance, threads, where, say=say))
            took = sides[-1].solve()
            cpu, cells = cpu + took.cpu_seconds, cells + took.cells
            sweeps += took.cell_sweeps
    gap, share = gap_of(sides)
    return {
        "bracket": gap,
        "open_share": share,
        "start_lower": float(sides[0].block(0, 0)[0][0, 0]),
        "start_upper": float(_upper(sides, 0, 0)[0][0, 0]),
        "bracket_sweeps": round(sweeps / max(cells, 1), 2),
        "bracket_cpu_seconds": round(cpu, 2),
    }


def _upper(sides: list[Solver], x: int, y: int) -> Pair:
    """Return the upper bounds in a layer; of opposite seats they are the lower ones turned."""
    p, q = sides[-1].block(x, y) if len(sides) > 1 else sides[0].block(y, x)
    return (p, q) if len(sides) > 1 else (q.T, p.T)


def gap_of(sides: list[Solver]) -> tuple[float, float]:
    """Return the largest gap between the bounds, and the share of positions where it is open."""
    gap, wide, cells = 0.0, 0, 0
    for x, y in sides[0].all_pairs():
        for low, high in zip(sides[0].block(x, y), _upper(sides, x, y), strict=True):
            for first in range(0, len(low), ROWS_AT_ONCE):
                rows = slice(first, first + ROWS_AT_ONCE)
                free = ~shared_fields(sides[0], x, y, rows)
                apart = np.abs(low[rows] - high[rows])[free]
                gap = max(gap, float(apart.max(initial=0.0)))
                wide += int((apart > OPEN).sum())
                cells += apart.size
    return gap, wide / cells


def shared_fields(
    solver: Solver, x: int, y: int, rows: slice = slice(None)
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell for every cell of a layer whether both seats claim a ring field: bool [rows, nj]."""
    masks = []
    for seat, slot in ((solver.a, x), (solver.b, y)):
        p = seat.moves(slot).configs.astype(np.int64)
        board = solver.rules.board
        fields = (p + board.starts[seat.seat]) % board.ring
        on_ring = (p >= 0) & (p <= board.leave)
        masks.append(np.bitwise_or.reduce(np.where(on_ring, np.int64(1) << fields, 0), axis=1))
    out: np.ndarray[Any, np.dtype[np.bool_]] = (masks[0][rows, None] & masks[1][None, :]) != 0
    return out
