"""Tables of exact values: making, storing and asking them.

A table file is a header (``blockfile.py``) and, for two seats opposite each other, one array of
16-bit numbers (65535 = a certain win), for adjacent seats two. The array runs over layers, then the
rank of the seat about to throw, then the rank of the other seat: see ``encoding.py``.

>>> table = find_table("kimble", pieces=2)              # doctest: +SKIP
>>> table.values(states)                                # doctest: +SKIP
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import lookup
from agents.exact.blockfile import check_blocks, locked, map_blocks, read_header, write_blocks
from agents.exact.encoding import Encoding, encoding_of
from agents.exact.errors import TableError
from agents.exact.solver import ENCODING, Solver, Statistics, two_seats
from kimble_env._jit import cache_folder
from kimble_env.errors import KimbleError
from kimble_env.kernel import STATE
from kimble_env.rules import Rules

SUFFIX = ".table"
SHIPPED = Path(__file__).parent / "tables"
BUILT_ON_USE = 3
"""Tables of at most so many pieces are made when they are first asked for."""

_WORK = {1: "some seconds", 2: "some seconds", 3: "up to some minutes"}

Values = npt.NDArray[np.float32]


class Table:
    """Exact values of one game of two seats.

    Args:
        rules: rules with two seats.
        arrays: one array [cells] (seats opposite each other) or two.
        scale: worth of one unit: 1/65535 for 16-bit tables, 1.0 for floats.
        header: what made it.
    """

    def __init__(
        self, rules: Rules, arrays: list[npt.NDArray[Any]], scale: float, header: dict[str, Any]
    ) -> None:
        self.rules, self.header = rules, header
        self.encoding = encoding_of(rules)
        first, second = rules.seats
        self.distance = int(rules.array[4 * first + second])
        for array in arrays:
            if array.shape != (self.encoding.cells,):
                raise TableError(
                    f"table of {rules}: shape {array.shape}, expected ({self.encoding.cells},)"
                )
        code = self.encoding
        self._where = (
            arrays[0], arrays[-1], self.distance, float(scale), code.block_starts, code.sizes,
            code.slot, code.ranks, code.ring,
        )

    def check(self, states: npt.NDArray[np.void]) -> None:
        """Raise unless the table can answer for these positions.

        Raises:
            TableError: not STATE [B], not two seats, or seats at another distance.
        """
        if states.dtype != STATE or states.ndim != 1:
            raise TableError(f"positions must be STATE [B], got {states.dtype} {states.shape}")
        if not len(states):
            return
        seats = (states["plays"] != 0) @ np.array([1, 2, 4, 8])
        for bits in np.flatnonzero(np.bincount(seats, minlength=16)).tolist():
            playing = [seat for seat in range(4) if bits >> seat & 1]
            if len(playing) != 2:
                raise TableError(f"the exact table is for two seats, a position has {playing}")
            a, b = playing
            between = {int(self.rules.array[4 * a + b]), int(self.rules.array[4 * b + a])}
            if self.distance not in between:
                raise TableError(
                    f"the table is for seats like {self.rules.seats}, a position has {playing}"
                )

    def values(self, states: npt.NDArray[np.void]) -> Values:
        """Return the win chance of the seat to act: float32 [B].

        Before a throw that of the position, with a die thrown that of its best move.

        Raises:
            TableError: positions that the table is not for.
        """
        self.check(states)
        out = np.empty(len(states), np.float32)
        lookup.values_batch(states, self.rules.array, *self._where, out)
        return out

    def moves(self, states: npt.NDArray[np.void]) -> Values:
        """Return the win chance of the seat to act after each action: float32 [B, A].

        Illegal actions (all of them before a throw) have -1.

        Raises:
            TableError: positions that the table is not for.
        """
        self.check(states)
        out = np.empty((len(states), self.rules.board.actions), np.float32)
        lookup.moves_batch(states, self.rules.array, *self._where, out)
        return out

    def losses(self, states: npt.NDArray[np.void]) -> Values:
        """Return what each legal action loses against the best: float32 [B, A], NaN if illegal.

        Raises:
            TableError: positions that the table is not for.
        """
        win = self.moves(states)
        best = win.max(axis=1, keepdims=True)
        return np.where(win >= 0.0, best - win, np.float32(np.nan)).astype(np.float32)

    def backups(self, states: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
        """Return what the table says one throw later: float64 [B]; ``values`` if it is right.

        Raises:
            TableError: positions that the table is not for.
        """
        self.check(states)
        out = np.empty(len(states), np.float64)
        lookup.backups_batch(states, self.rules.array, *self._where, out)
        return out


# -------------------------------------------------------------------------------- random positions


def random_positions(rules: Rules, count: int, seed: int) -> npt.NDArray[np.void]:
    """Return positions before a throw, uniform over those that can be: STATE [count].

    Args:
        rules: rules with two seats.
        seed: of numpy's generator.
    """
    code = encoding_of(rules)
    configs = np.concatenate([code.configurations(k) for k in range(len(code.masks))])
    generator = np.random.default_rng(seed)
    out: list[npt.NDArray[np.void]] = []
    missing = count
    while missing > 0:
        states = np.zeros(missing * 2, STATE)
        states["pieces"] = -1
        seat = generator.integers(2, size=len(states))
        for k in (0, 1):
            states["plays"][:, rules.seats[k]] = 1
            states["pieces"][:, rules.seats[k], : rules.pieces] = configs[
                generator.integers(len(configs), size=len(states))
            ]
        states["seat"] = np.array(rules.seats)[seat]
        states["throws"], states["winner"] = 1, -1
        states["last_seat"], states["last_action"] = -1, -1
        lookup.set_throws(states, rules.array)
        good = states[~_clash(rules, states)][:missing]
        out.append(good)
        missing -= len(good)
    return np.concatenate(out)


def _clash(rules: Rules, states: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Tell where both seats stand on one ring field."""
    masks = []
    for seat in rules.seats:
        p = states["pieces"][:, seat].astype(np.int64)
        field = (p + rules.board.starts[seat]) % rules.board.ring
        on_ring = (p >= 0) & (p <= rules.board.leave)
        masks.append(np.bitwise_or.reduce(np.where(on_ring, np.int64(1) << field, 0), axis=1))
    out: npt.NDArray[np.bool_] = (masks[0] & masks[1]) != 0
    return out


# ------------------------------------------------------------------------------ making and finding


def gather(solver: Solver, dtype: Any) -> list[npt.NDArray[Any]]:
    """Return the arrays of a solved game: float, or uint16 with 65535 for a certain win."""
    code = solver.encoding
    arrays = [np.empty(code.cells, dtype) for _ in range(1 if solver.symmetric else 2)]
    for x in range(len(code.masks)):
        for y in range(len(code.masks)):
            p, q = solver.block(x, y)
            _place(arrays[0], code, x, y, p)
            if not solver.symmetric:
                _place(arrays[1], code, y, x, q.T)
    return arrays


def _place(array: npt.NDArray[Any], code: Encoding, x: int, y: int, block: Any) -> None:
    start = int(code.block_starts[x, y])
    part = array[start : start + block.size].reshape(block.shape)
    step = 512
    for low in range(0, block.shape[0], step):
        for left in range(0, block.shape[1], step):
            tile = np.ascontiguousarray(block[low : low + step, left : left + step])
            if array.dtype == np.uint16:
                small = np.empty(tile.size, np.uint16)
                lookup.unscale(tile.reshape(-1), small)
                tile = small.reshape(tile.shape)
            part[low : low + step, left : left + step] = tile


def table_of(solver: Solver) -> Table:
    """Return the table of a solved game in memory, in the solver's own precision."""
    return Table(solver.rules, gather(solver, solver.dtype), 1.0, {})


def identity(rules: Rules) -> dict[str, Any]:
    """Return the header entries that say what a table is for."""
    first, second = rules.seats
    return {
        "kind": "table",
        "rules_hash": rules.hash,
        "pieces": rules.pieces,
        "distance": int(rules.array[4 * first + second]),
        "encoding": ENCODING,
    }


def write_table(solver: Solver, path: Path, statistics: Statistics) -> dict[str, Any]:
    """Write the table of a solved game; return its header.

    Raises:
        TableError: a checkpoint is missing or damaged.
    """
    p, _ = solver.block(0, 0)
    header = {
        **identity(solver.rules),
        "rules": str(solver.rules),
        "seats": list(solver.rules.seats),
        "tolerance": solver.tolerance,
        "positions": solver.encoding.positions(),
        "start_value": float(p[0, 0]),
        "sweeps": round(statistics.sweeps, 2),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_blocks(path, header, gather(solver, np.uint16))
    return header


def read_table(path: Path, rules: Rules, check: bool = False) -> Table:
    """Map a table file.

    Args:
        rules: what it must be for.
        check: read it through and compare its checksum.

    Raises:
        TableError: missing, damaged, cut short, or for another game.
    """
    header = read_header(path, identity(rules))
    if check:
        check_blocks(path, header)
    return Table(rules, map_blocks(path, header), 1.0 / 65535.0, header)


def table_path(rules: Rules) -> Path:
    """Return where the table of a game is kept in the cache folder."""
    return cache_folder() / "exact" / _file_name(rules)


def _file_name(rules: Rules) -> str:
    return f"{rules.name}-{rules.pieces}-{rules.hash}-{identity(rules)['distance']}{SUFFIX}"


def find_table(
    rules: str | Rules,
    pieces: int | None = None,
    adjacent: bool = False,
    say: Callable[[str], None] | None = None,
) -> Table:
    """Return the table of a game: shipped, from the cache folder, or made now (few pieces only).

    Args:
        rules: text or Rules; the seats are opposite or adjacent ones, whatever it says.
        say: told what is being made; by default it goes to stderr.

    Raises:
        RulesError: rules that cannot be or that the solver does not know.
        TableError: there is no table and it is too large to make unasked, or its file is damaged.
    """
    game = two_seats(rules, pieces, adjacent)
    small = game.pieces <= BUILT_ON_USE
    shipped, kept = SHIPPED / _file_name(game), table_path(game)
    if shipped.exists():
        return read_table(shipped, game, check=small)
    if not small:
        if kept.exists():
            return read_table(kept, game)
        text = str(game.replace(pieces=4))
        raise TableError(
            f"no table of {game} in {kept.parent}; make it with: "
            f'kimble solve --rules "{text}" --pieces {game.pieces}'
        )
    tell = say if say is not None else lambda line: print(line, file=sys.stderr, flush=True)
    return _kept_or_made(game, kept, tell)


def table_is_ready(rules: Rules) -> bool:
    """Tell whether the table of a game lies ready, or is made in a moment (one piece).

    :func:`find_table` may solve for minutes; who only wants the best that there is asks here first.
    """
    if len(rules.seats) != 2 or rules.two_colours:
        return False
    try:
        game = two_seats(rules, adjacent=(rules.seats[1] - rules.seats[0]) % 4 != 2)
    except KimbleError:
        return False
    return game.pieces == 1 or (SHIPPED / _file_name(game)).exists() or table_path(game).exists()


def _kept_or_made(game: Rules, path: Path, tell: Callable[[str], None]) -> Table:
    """Return the table of the cache folder; make it if it is not there, or damaged."""
    if path.exists() and (found := _read_if_whole(game, path, tell)) is not None:
        return found
    with locked(path, tell):
        if path.exists() and (found := _read_if_whole(game, path, None)) is not None:
            return found  # another process has made it meanwhile
        tell(
            f"exact: solving {game} once, {_WORK[game.pieces]}; the table goes to {path}"
        )
        solver = Solver(game, threads=2, say=tell)
        statistics = solver.solve()
        write_table(solver, path, statistics)
        tell(f"exact: solved in {statistics.wall_seconds:.0f} s")
    return read_table(path, game, check=True)


def _read_if_whole(game: Rules, path: Path, tell: Callable[[str], None] | None) -> Table | None:
    try:
        return read_table(path, game, check=True)
    except TableError as error:
        if tell is not None:
            what = str(error).partition("; delete")[0]  # nobody needs to: it is replaced
            tell(f"exact: {what}; it is made again")
        return None
