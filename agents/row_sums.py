"""Matrix times vector, spelled out in vector instructions: the inner loop of the value networks.

Written as loops, LLVM cannot know that the result does not overlap the weights, so it keeps storing
and loading the sums. Here a block of sums stays in registers while the rows go by. Vectors are of
eight numbers; LLVM cuts them in two where a processor has only four.

``add_rows`` computes, for j < width (a multiple of 8)::

    out[at + j] = max(lowest, p[bias + j] + sum over i < n of value_i p[rows + width row_i + j])

with value_i = ``value[first + i]``, and for row_i ``index[i]``, or i where the index is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from kimble_env._jit import COMPILED

FLOAT, INT = ir.FloatType(), ir.IntType(64)
LANES = 8
VECTOR = ir.VectorType(FLOAT, LANES)
BLOCKS = ((8, 1), (4, 2), (1, 4))
"""Blocks of columns, the widest first: vectors a block, rows at once. So many sums run side by
side, as one has to wait for the one before."""


class _Sums:
    """Writes the code of one call.

    Args:
        builder: of LLVM's instructions.
        p, value, out: pointers to float.
        index: pointer to int32, or None for all rows in order.
        first, n, rows, bias, width, at: int64 values.
        lowest: a float value.
    """

    def __init__(self, builder: ir.IRBuilder, **given: Any) -> None:
        self.b = builder
        self.__dict__.update(given)
        kind = ir.FunctionType(VECTOR, (VECTOR, VECTOR, VECTOR))
        self.fmuladd = get_or_insert_function(builder.module, kind, "llvm.fmuladd.v8f32")

    def write(self) -> None:
        """Go over the columns with the widest blocks that still fit."""
        column: Any = INT(0)
        for vectors, together in BLOCKS:
            column = self._blocks(column, vectors, together)

    def _load(self, pointer: Any, at: Any) -> Any:
        return self.b.load(self.b.gep(pointer, [at]))

    def _place(self, pointer: Any, at: Any) -> Any:
        """Return a pointer to eight numbers."""
        return self.b.bitcast(self.b.gep(pointer, [at]), VECTOR.as_pointer())

    def _spread(self, number: Any) -> Any:
        """Return a vector of one number eight times."""
        one = self.b.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.b.shuffle_vector(one, one, zeros)

    def _loop(self, start: Any, step: int, end: Any, carried: list[Any], body: Any) -> list[Any]:
        """Write ``while i + step <= end``; body(i, carried) returns what it carries on.

        Return i and what is carried after the loop.
        """
        b, before = self.b, self.b.block
        head, inside, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
        b.branch(head)
        b.position_at_end(head)
        phis = [b.phi(x.type) for x in (start, *carried)]
        for phi, x in zip(phis, (start, *carried), strict=True):
            phi.add_incoming(x, before)
        following = b.add(phis[0], INT(step))
        b.cbranch(b.icmp_signed("<=", following, end), inside, after)
        b.position_at_end(inside)
        for phi, x in zip(phis, (following, *body(phis[0], phis[1:])), strict=True):
            phi.add_incoming(x, b.block)
        b.branch(head)
        b.position_at_end(after)
        return phis

    def _blocks(self, column: Any, vectors: int, together: int) -> Any:
        """Write the blocks of so many vectors from ``column`` on; return the next column."""

        def block(at: Any, _: list[Any]) -> list[Any]:
            self._block(at, vectors, together)
            return []

        return self._loop(column, vectors * LANES, self.width, [], block)[0]

    def _block(self, column: Any, vectors: int, together: int) -> None:
        """Add up all rows in one block of columns, and store it."""
        b = self.b
        own = [b.add(column, INT(LANES * k)) for k in range(vectors)]
        zero = ir.Constant(VECTOR, [0.0] * LANES)
        sums = [self._load_vector(self.p, b.add(self.bias, at)) for at in own]
        sums += [zero] * (vectors * (together - 1))

        def add(rows: int) -> Any:
            def body(i: Any, sums: list[Any]) -> list[Any]:
                sums = list(sums)
                for r in range(rows):
                    number, start = self._row(b.add(i, INT(r)))
                    for k in range(vectors):
                        weights = self._load_vector(self.p, b.add(start, own[k]))
                        at = r * vectors + k
                        sums[at] = b.call(self.fmuladd, [number, weights, sums[at]])
                return sums

            return body

        i, *sums = self._loop(INT(0), together, self.n, sums, add(together))
        if together > 1:
            i, *sums = self._loop(i, 1, self.n, sums, add(1))
        for k in range(vectors):
            total = sums[k]
            for r in range(1, together):
                total = b.fadd(total, sums[r * vectors + k])
            self._store(total, b.add(self.at, own[k]))

    def _row(self, i: Any) -> tuple[Any, Any]:
        """Return the value of row i eight times, and where the row begins."""
        b = self.b
        number = self._spread(self._load(self.value, b.add(self.first, i)))
        row = i if self.index is None else b.sext(self._load(self.index, i), INT)
        return number, b.add(self.rows, b.mul(row, self.width))

    def _load_vector(self, pointer: Any, at: Any) -> Any:
        return self.b.load(self._place(pointer, at), align=4)

    def _store(self, total: Any, at: Any) -> None:
        lowest = self._spread(self.lowest)
        cut = self.b.select(self.b.fcmp_ordered(">", total, lowest), total, lowest)
        self.b.store(cut, self._place(self.out, at), align=4)


_FLOATS, _INTS = types.Array(types.float32, 1, "C"), types.Array(types.int32, 1, "C")


def _pointer(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


if COMPILED:

    @intrinsic
    def add_rows(typing, p, rows, bias, width, index, value, first, n, out, at, lowest):
        """See the head of this file."""
        i64, every = types.int64, isinstance(index, types.NoneType)
        signature = types.void(
            _FLOATS, i64, i64, i64, types.none if every else _INTS, _FLOATS, i64, i64, _FLOATS, i64,
            types.float32,
        )  # fmt: skip

        def generate(context, builder, signature, args):
            p, rows, bias, width, index, value, first, n, out, at, lowest = args
            p, value, out = (_pointer(context, builder, _FLOATS, x) for x in (p, value, out))
            index = None if every else _pointer(context, builder, _INTS, index)
            _Sums(
                builder, p=p, rows=rows, bias=bias, width=width, index=index, value=value,
                first=first, n=n, out=out, at=at, lowest=lowest,
            ).write()  # fmt: skip
            return context.get_dummy_value()

        return signature, generate

else:

    def add_rows(p, rows, bias, width, index, value, first, n, out, at, lowest):
        """See the head of this file."""
        index = np.arange(n) if index is None else index[:n]
        places = rows + width * index[:, None] + np.arange(width)
        total = p[bias : bias + width] + value[first : first + n] @ p[places]
        out[at : at + width] = np.maximum(total, lowest)
