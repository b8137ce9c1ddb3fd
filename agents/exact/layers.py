"""One layer of the two-seat game: its tables in one array, and the sweeps that solve it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.exact import kernels, positions
from agents.exact.errors import UnsettledError
from agents.exact.transitions import FINISHED, UNUSED, SeatMoves

SLOTS = 4  # moves of one face: every piece has at most one
NO_FIELD = 63
SMALL_LAYER = 100_000  # cells below which a second thread costs more than it brings
CHUNKS_PER_THREAD = 8

Pair = tuple[npt.NDArray[Any], npt.NDArray[Any]]
Blocks = Callable[[tuple[int, int]], Pair]
Tolls = Sequence[tuple[float, float]]
Report = Callable[[int, float, int], None]


@dataclass(frozen=True)
class LayerResult:
    """What solving a layer took: sweeps, last change, CPU-independent seconds."""

    sweeps: int
    change: float
    seconds: float


class Layer:
    """Seat a on mask ``slot_a``, seat b on mask ``slot_b``; tables P and Q as kernels.py has them.

    Args:
        a, b: move tables of the two seats (``SeatMoves``, or ``SeatUnits`` in Norske),
            ``add_losses`` done for the two masks.
        blocks: returns solved P and Q of a later layer (slot_a, slot_b); None for those who want
            the tables of moves alone, or fill the arena themselves.
        dtype: float32 or float64.
        start: first values of P and Q.
    """

    def __init__(
        self, a: Any, b: Any, slot_a: int, slot_b: int, blocks: Blocks | None, dtype: Any,
        start: tuple[float, float],
    ) -> None:
        self.a, self.b, self.slot_a, self.slot_b = a, b, slot_a, slot_b
        self.dtype = np.dtype(dtype)
        self.ni = int(a.encoding.sizes[slot_a])
        self.nj = int(b.encoding.sizes[slot_b])
        self.exits_a = _exits(a, slot_a)
        self.exits_b = _exits(b, slot_b)
        self._lay_out()
        self._fill(blocks, start)
        self._tables()

    # ------------------------------------------------------------------------------- the arena

    def _lay_out(self) -> None:
        sizes_a, sizes_b = self.a.encoding.sizes, self.b.encoding.sizes
        rows = [self.ni] + [int(sizes_a[e]) for e in self.exits_a]
        widths = [self.nj] + [int(sizes_b[e]) for e in self.exits_b]
        at, p_rows, q_rows = 0, [], []
        for count in rows:
            for side in (p_rows, q_rows):
                side.append(at + self.nj * np.arange(count, dtype=np.int64))
                at += count * self.nj
        exits = []
        for width in widths[1:]:
            exits.append((at, at + self.ni * width, width))
            at += 2 * self.ni * width
        zero, one, minus = at, at + self.nj, at + 2 * self.nj
        self.constants = (zero, one, minus)
        p_rows.append(np.array([one, minus], np.int64))
        q_rows.append(np.array([zero, zero], np.int64))
        self.p_rows, self.q_rows = np.concatenate(p_rows), np.concatenate(q_rows)
        self.exits = np.array(exits, np.int64).reshape(-1, 3)
        self.row_base = dict(zip(self.exits_a, np.cumsum(rows[:-1]).tolist(), strict=True))
        self.column_base = dict(zip(self.exits_b, np.cumsum(widths[:-1]).tolist(), strict=True))
        self.row_count, self.columns = sum(rows) + 2, sum(widths) + 2
        self.length = at + 3 * self.nj

    def _fill(self, blocks: Blocks | None, start: tuple[float, float]) -> None:
        self.arena = np.empty(self.length, self.dtype)
        if blocks is None:
            return  # memory that is not touched costs nothing
        self.p[:], self.q[:] = start
        for e in self.exits_a:
            first, count = self.row_base[e], int(self.a.encoding.sizes[e])
            pair = blocks((e, self.slot_b))
            for side, block in zip((self.p_rows, self.q_rows), pair, strict=True):
                _copy(self._view(int(side[first]), count, self.nj), block)
        for (at_p, at_q, width), e in zip(self.exits.tolist(), self.exits_b, strict=True):
            for at, block in zip((at_p, at_q), blocks((self.slot_a, e)), strict=True):
                _copy(self._view(at, self.ni, width), block)
        for at, value in zip(self.constants, (0.0, 1.0, -1.0), strict=True):
            self.arena[at : at + self.nj] = value

    def _view(self, at: int, rows: int, columns: int) -> npt.NDArray[Any]:
        return self.arena[at : at + rows * columns].reshape(rows, columns)

    @property
    def p(self) -> npt.NDArray[Any]:
        """Win chance of seat a about to throw: [ni, nj]."""
        return self._view(int(self.p_rows[0]), self.ni, self.nj)

    @property
    def q(self) -> npt.NDArray[Any]:
        """Win chance of seat b about to throw: [ni, nj], seat a's configuration as the row."""
        return self._view(int(self.q_rows[0]), self.ni, self.nj)

    def exit_blocks(self) -> list[tuple[tuple[int, int], Pair]]:
        """Return views of what lies here of each later layer: its slots, and P and Q."""
        out = []
        for e in self.exits_a:
            first, count = self.row_base[e], int(self.a.encoding.sizes[e])
            views = [
                self._view(int(rows[first]), count, self.nj) for rows in (self.p_rows, self.q_rows)
            ]
            out.append(((e, self.slot_b), (views[0], views[1])))
        for (at_p, at_q, width), e in zip(self.exits.tolist(), self.exits_b, strict=True):
            pair = (self._view(at_p, self.ni, width), self._view(at_q, self.ni, width))
            out.append(((self.slot_a, e), pair))
        return out

    # ------------------------------------------------------------------------------ move tables

    def _tables(self) -> None:
        moves_a, moves_b = self.a.moves(self.slot_a), self.b.moves(self.slot_b)
        self.a_moves = _reach(moves_a, self.slot_a, self.row_base, self.row_count)
        self.b_moves = _reach(moves_b, self.slot_b, self.column_base, self.columns)
        self.a_fields = _seen(self.a.hits, moves_a.own_fields)
        b_fields = moves_b.own_fields
        ring = self.b.encoding.ring
        self.b_masks = _bits(b_fields)
        starts, cells, minus = [0], [], []
        for field in range(ring):
            where, piece = np.nonzero(b_fields == field)
            cells.append(where)
            minus.append(moves_b.minus[where, piece])
            starts.append(starts[-1] + len(where))
        self.cell_starts = np.array(starts, np.int64)
        self.cells = np.concatenate(cells).astype(np.uint32)
        self.cells_minus = np.concatenate(minus).astype(np.uint32)

    def place(self) -> kernels.Place:
        """Return where the tables lie, for the kernels."""
        return kernels.Place(
            self.arena, self.p_rows, self.q_rows, self.exits, self.columns, self.nj,
            self.constants[0],
        )

    def rows(self) -> kernels.Rows:
        """Return the moves of seat a, for the kernels."""
        moves = self.a.moves(self.slot_a)
        return kernels.Rows(
            self.a_moves, counts_of(moves), moves.flags, moves.fields, moves.losers, self.a_fields,
            moves.minus, moves.own_fields, _by_field(self.a, self.dtype), _idle(moves, self.dtype),
        )  # fmt: skip

    def cols(self) -> kernels.Columns:
        """Return the moves of seat b, for the kernels."""
        moves = self.b.moves(self.slot_b)
        hits = _pad(moves, moves.fields)
        return kernels.Columns(
            self.b_moves, moves.flags, self.b_masks, np.where(hits < 0, NO_FIELD, hits).astype(
                np.int8
            ),
            _pad(moves, moves.losers).clip(0).astype(self.b_moves.dtype),
            _by_field(self.b, self.dtype), _idle(moves, self.dtype), self.cell_starts, self.cells,
            self.cells_minus,
        )  # fmt: skip

    def where(self, arena: npt.NDArray[Any] | None = None) -> positions.Where:
        """Return where the tables lie, for ``positions.py``; in another arena if given."""
        places = self.column_places()
        return positions.Where(
            self.arena if arena is None else arena, self.p_rows, self.q_rows, *places
        )

    def seats(self) -> tuple[positions.Seat, positions.Seat]:
        """Return the moves of both seats, for ``positions.py``."""
        moves = (self.a.moves(self.slot_a), self.b.moves(self.slot_b))
        masks = [_bits(m.own_fields) for m in moves]
        seen = [
            _bits(_seen(seat.hits, m.own_fields))
            for seat, m in zip((self.a, self.b), moves, strict=True)
        ]
        reached = (
            _numbers(moves[0], self.slot_a, self.row_base, self.row_count),
            _numbers(moves[1], self.slot_b, self.column_base, self.columns),
        )
        return tuple(  # type: ignore[return-value]
            positions.Seat(
                _guarded(to), _guarded(counts_of(m)), _guarded(m.fields), _guarded(m.losers),
                (m.flags >> 1).astype(np.int8), np.ones(len(m.configs), np.int8), m.own_fields,
                m.minus, np.zeros(len(m.configs), np.int8), own, theirs, _guarded(m.codes),
                _by_field(seat, np.dtype(np.float64)),
            )
            for seat, m, to, own, theirs in zip(
                (self.a, self.b), moves, reached, masks, seen, strict=True
            )
        )

    def column_places(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return where column c of row i lies in P and Q: base[c] + i * width[c] (int64 each).

        Of the two columns after the exits one is "seat b has won"; the other is never looked up.
        """
        sizes = self.b.encoding.sizes
        zero, one, _ = self.constants
        p_base = [int(self.p_rows[0]) + np.arange(self.nj)]
        q_base = [int(self.q_rows[0]) + np.arange(self.nj)]
        width = [np.full(self.nj, self.nj)]
        for (at_p, at_q, columns), e in zip(self.exits.tolist(), self.exits_b, strict=True):
            p_base.append(at_p + np.arange(int(sizes[e])))
            q_base.append(at_q + np.arange(int(sizes[e])))
            width.append(np.full(columns, columns))
        p_base.append(np.array([zero, zero]))
        q_base.append(np.array([one, one]))
        width.append(np.array([0, 0]))
        return tuple(np.concatenate(part).astype(np.int64) for part in (p_base, q_base, width))

    # ----------------------------------------------------------------------------------- sweeps

    def solve(
        self, tolerance: float, most_sweeps: int, pool: ThreadPoolExecutor | None, threads: int,
        report: Report | None = None, tolls: Tolls = (),
    ) -> LayerResult:
        """Sweep until no value changes by more than ``tolerance``.

        Args:
            tolls: pairs (toll, change): the first sweeps take half the chance that a pass by choice
                ends the game as a draw from here, each until a sweep changes no value by more than
                its ``change``; the last sweeps take none.

        Raises:
            UnsettledError: that was not reached within ``most_sweeps``.
        """
        sweep, arguments = self.sweeper()
        return self.iterate(
            sweep, arguments, tolerance, most_sweeps, pool, threads, report, tolls
        )

    def iterate(
        self, sweep: Any, arguments: tuple[Any, ...], tolerance: float, most_sweeps: int,
        pool: ThreadPoolExecutor | None, threads: int, report: Report | None = None,
        tolls: Tolls = (),
    ) -> LayerResult:
        """Sweep as ``solve`` does, with any compiled sweep (arguments but toll and rows).

        Raises:
            UnsettledError: the tolerance was not reached within ``most_sweeps``.
        """
        began = time.monotonic()
        ahead = list(tolls)
        for count in range(1, most_sweeps + 1):
            toll = ahead[0][0] if ahead else 0.0
            change = self.sweep(sweep, (*arguments, toll), pool, threads, report, count)
            if report is not None:
                report(count, change, 0)
            if ahead and change <= max(ahead[0][1], tolerance):
                ahead.pop(0)
            elif not ahead and change <= tolerance:
                return LayerResult(count, change, time.monotonic() - began)
        raise UnsettledError(
            f"layer {self.slot_a}, {self.slot_b}: values still change by {change:.3g} after "
            f"{most_sweeps} sweeps, expected at most {tolerance:.3g}"
        )

    def sweeper(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the compiled sweep for perfect play, and its arguments but toll and rows."""
        sweep = kernels.sweep_battles if self.a.rules.battles else kernels.sweep_plain
        return sweep, (self.place(), self.rows(), self.cols())

    def sweep(
        self, sweep: Any, arguments: tuple[Any, ...], pool: ThreadPoolExecutor | None, threads: int,
        report: Report | None, count: int,
    ) -> float:
        """Sweep once over all rows, in slices on the pool; return the largest change."""
        if pool is None or threads < 2 or self.ni < 2 * threads or self.ni * self.nj < SMALL_LAYER:
            return float(sweep(*arguments, 0, self.ni))
        parts = min(self.ni, threads * CHUNKS_PER_THREAD)
        cuts = [self.ni * k // parts for k in range(parts, -1, -1)]
        jobs = [
            pool.submit(sweep, *arguments, low, high)
            for high, low in pairwise(cuts)
        ]
        change = 0.0
        for k, job in enumerate(jobs):
            change = max(change, float(job.result()))
            if report is not None:
                report(count, change, self.ni - cuts[k + 1])
        return change


def counts_of(moves: Any) -> npt.NDArray[np.int8]:
    """Return how many moves each configuration has per face: int8 [N, (guards,) 6]."""
    counts: npt.NDArray[np.int8] = (moves.targets[..., 0] != UNUSED).sum(axis=-1).astype(np.int8)
    return counts


def _exits(seat: Any, slot: int) -> list[int]:
    """Return the other masks that a move can reach from a mask."""
    reached = np.unique(seat.moves(slot).targets[..., 0]).tolist()
    return [s for s in reached if s >= 0 and s != slot]


def _numbers(moves: Any, slot: int, base: dict[int, int], count: int) -> npt.NDArray[np.int64]:
    """Turn (slot, rank) of every move into one number: own ranks, exits, won; -1 no move."""
    where, rank = moves.targets[..., 0], moves.targets[..., 1]
    number = np.full(where.shape, -1, np.int64)
    number[where == slot] = rank[where == slot]
    for s, first in base.items():
        number[where == s] = first + rank[where == s]
    number[where == FINISHED] = count - 2
    return number


def _reach(moves: Any, slot: int, base: dict[int, int], count: int) -> npt.NDArray[Any]:
    """Number the moves as the kernels want them: always ``SLOTS`` per face.

    Faces with fewer than four moves repeat one; without any move they stay where they are, except
    for a 6, where staying is handled by the kernel.
    """
    number = _numbers(moves, slot, base, count)
    none = np.repeat(np.arange(len(number))[:, None], 6, axis=1)
    none[:, 5] = count - 1
    out = np.empty((*number.shape[:2], SLOTS), np.int64)
    out[:] = np.where(number[..., 0] >= 0, number[..., 0], none)[..., None]
    for k in range(number.shape[2]):
        out[..., k] = np.where(number[..., k] >= 0, number[..., k], out[..., 0])
    return out.astype(np.uint16 if count < 1 << 16 else np.uint32)


def _guarded(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give a table the axis of guards, of which Kimble and Kombat have one."""
    return np.ascontiguousarray(table[:, None])


def _bits(fields: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return fields, -1 for none, as bits: int8 [N, pieces] to int64 [N]."""
    bits = np.where(fields >= 0, np.int64(1) << fields.clip(0).astype(np.int64), 0)
    out: npt.NDArray[np.int64] = np.bitwise_or.reduce(bits, axis=1)
    return out


def _pad(moves: Any, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Widen [N, 6, pieces] to [N, 6, SLOTS] the way ``_reach`` does: repeat the first move."""
    used = moves.targets[..., 0] != UNUSED
    out = np.empty((*table.shape[:2], SLOTS), table.dtype)
    out[:] = table[..., :1]
    out[..., : table.shape[2]] = np.where(used, table, table[..., :1])
    return out


def _seen(hits: npt.NDArray[np.int8], places: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Translate own places into the other seat's progress of the same fields; -1 stays."""
    return np.where(places >= 0, hits[places.clip(0)], np.int8(-1)).astype(np.int8)


def _by_field(seat: SeatMoves, dtype: Any) -> npt.NDArray[Any]:
    """Return the battle chances of ``seat`` by the progress of the seat it meets."""
    out = np.zeros(seat.chances.shape, dtype)
    met = seat.hits >= 0
    out[seat.hits[met]] = seat.chances[met]
    return out


def _idle(moves: Any, dtype: Any) -> npt.NDArray[Any]:
    """Return the chance of a throw below 6 without a move, per configuration."""
    out: npt.NDArray[Any] = ((moves.flags[:, :5] & 1).sum(axis=1) / 6.0).astype(dtype)
    return out


def _copy(to: npt.NDArray[Any], block: npt.NDArray[Any], tile: int = 512) -> None:
    """Copy a block that may be a transposed view, tile by tile."""
    for low in range(0, to.shape[0], tile):
        for left in range(0, to.shape[1], tile):
            part = np.s_[low : low + tile, left : left + tile]
            to[part] = block[part]
