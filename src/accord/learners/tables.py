"""Tables of records as learners read them."""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import FitFailed

__all__ = [
    "ADDED",
    "fail",
    "finite_rows",
    "number_table",
    "records_for",
    "smoothed",
    "tuple_total_variation",
]


ADDED = 0.25
"""What is added to each count (S6)."""

_ROUND_UP = 1.0 + 1e-12


def smoothed(cells: NDArray[np.int64], *, count: int) -> NDArray[np.float64]:
    """Return weights of ``count`` cells: how often each occurs, and a quarter."""
    weights: NDArray[np.float64] = np.bincount(cells, minlength=count).astype(np.float64) + ADDED
    return weights


def records_for(alpha: float, beta: float, *, cells: int) -> int:
    """Return a b from which on the law is within total variation alpha of any law on the cells, but for chance beta.

    The mean total variation is at most ``(sqrt((d - 1) b) / 2 + c (d - 1)) / (b + c d)``, one record moves it by at
    most ``1 / (b + c d)``, and McDiarmid's inequality does the rest.
    """
    rest = cells - 1
    spread = 0.5 * math.sqrt(rest) + math.sqrt(-math.log(beta) / 2)
    # alpha (b + c d) >= spread sqrt(b) + c (d - 1), a quadratic in sqrt(b): true from its larger root on.
    inside = spread**2 + 4 * alpha * ADDED * (rest - alpha * (rest + 1))
    root = (spread + math.sqrt(max(inside, 0.0))) / (2 * alpha)
    return max(1, math.ceil(root**2 * _ROUND_UP))


def tuple_total_variation(records: int, block_size: int, *, cells: int) -> float:
    """Return an upper bound on E TV(q^l, p^l), q fitted to b records of p.

    The lesser of ``l E TV`` and, by Hellinger, ``sqrt(1 - (1 - h)^(2 l))`` with h = E h^2 at most
    ``1 - sqrt(b / (b + c d)) + (d - 1) / (2 b)`` (theory L5, S6).
    """
    rest, all_added = cells - 1, ADDED * cells
    plain = records * (0.5 * math.sqrt(rest * block_size) + ADDED * rest) / (block_size + all_added)
    squared = 1 - math.sqrt(block_size / (block_size + all_added)) + rest / (2 * block_size)
    joint = math.sqrt(-math.expm1(2 * records * math.log1p(-squared))) if squared < 1 else 1.0
    return min(1.0, plain, joint)


_Floats = NDArray[np.float64]


def number_table(records: NDArray[Any], *, law: str) -> _Floats:
    """Return the records as float64, shape (n, d); text, dates and complex numbers are refused."""
    table = None
    try:
        given = np.asarray(records)
        if given.dtype.kind in "biufO":
            with np.errstate(all="ignore"):
                table = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        table = None
    if table is None:  # raised here, outside the handler: numpy's own message quotes the cell
        fail("the records are not numbers", law=law)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        fail("the records are not a table of rows and columns", law=law)
    return table


def finite_rows(records: NDArray[Any], *, law: str) -> _Floats:
    """Return the rows without NaN and infinities as float64, shape (m, d)."""
    table = number_table(records, law=law)
    finite: _Floats = table[np.isfinite(table).all(axis=1)]
    return finite


def fail(reason: str, *, law: str) -> NoReturn:
    """Raise `FitFailed` for a kind of law."""
    raise FitFailed(f"no {law} can be fitted: {reason}.")
