"""The vector code of the networks' layers against plain matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from agents.net_compiling import fast
from agents.row_sums import add_rows


@fast
def some_rows(p, rows, bias, width, index, value, first, n, out, at, lowest):
    """Call the code from compiled code, as it must be."""
    add_rows(p, rows, bias, width, index, value, first, n, out, at, lowest)


@pytest.mark.parametrize("width", [8, 16, 24, 32, 40, 64, 72, 96, 128, 168])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 30])
def test_sums_are_those_of_a_matrix_product(width: int, n: int) -> None:
    rng = np.random.default_rng([width, n])
    inputs, rows, at = 40, 3, 5
    bias = rows + inputs * width
    p = rng.normal(size=bias + width + 2).astype(np.float32)
    weights = p[rows:bias].reshape(inputs, width).astype(np.float64)
    index = rng.choice(inputs, n, replace=False).astype(np.int32)
    value = rng.normal(size=n + 6).astype(np.float32)
    lowest = np.float32(-0.25)

    def check(out: np.ndarray, expected: np.ndarray) -> None:
        exact = np.maximum(p[bias : bias + width] + expected, lowest)
        assert abs(out[at : at + width] - exact).max() < 1e-5
        assert (out[:at] == 7).all()  # nothing is written beside its place
        assert (out[at + width :] == 7).all()

    out = np.full(at + width + 9, 7, np.float32)
    some_rows(p, rows, bias, width, index, value, 2, n, out, at, lowest)
    check(out, value[2 : 2 + n].astype(np.float64) @ weights[index])
    out[:] = 7
    some_rows(p, rows, bias, width, None, value, 6, n, out, at, lowest)
    check(out, value[6 : 6 + n].astype(np.float64) @ weights[:n])
    assert (out[at : at + width] == lowest).any() or width == 8
