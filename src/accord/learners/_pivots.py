"""How many records make a normal fit accurate: the least number that one of three bounds proves.

The law of the total variation between fit and truth is the same for every normal law on R^d. On the line its quantiles
are computed; for two to five columns they were simulated once, with a confidence bound (99.9 % for the whole table), by
``benchmarks/learner_pivots.py``; beyond the table, and from some number of records on, Chernoff's bound holds.
"""

import json
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.learners._normal_accuracy import records_for
from accord.learners._normal_line import MOST_ALPHA, failure_chances
from accord.learners._normal_sizes import geometric_sizes, least_size

__all__ = ["least_records"]

_Floats = NDArray[np.float64]
_Sizes = NDArray[np.int64]

_LINE_LEAST = 3
_LINE_RATIO = 1.005
_LINE_BETA = 1e-6
_LINE_MOST = 1 << 50
_FAR_BELOW = 16


@lru_cache(maxsize=256)
def least_records(alpha: float, beta: float, *, dimension: int) -> int:
    """Return a b from which on the fit is within total variation alpha, but for probability beta.

    Raises
    ------
    OverflowError
        If no number can be certified at double precision.

    """
    closed = records_for(alpha, beta, dimension=dimension)
    found = _on_the_line(alpha, beta, closed) if dimension == 1 else _by_table(alpha, beta, closed, dimension)
    return closed if found is None else min(closed, found)


def _on_the_line(alpha: float, beta: float, closed: int) -> int | None:
    """Return what the computed chances prove; from ``closed`` on the closed bound takes over."""
    if beta < _LINE_BETA or closed > _LINE_MOST:
        return None
    sizes = geometric_sizes(_LINE_LEAST, closed, ratio=_LINE_RATIO)
    sizes = sizes[sizes * _FAR_BELOW >= closed]
    chances = failure_chances(min(alpha, MOST_ALPHA), sizes)
    return least_size(sizes, chances, beta, dimension=1)


def _by_table(alpha: float, beta: float, closed: int, dimension: int) -> int | None:
    """Return what the stored quantiles prove, None where they do not reach up to ``closed``."""
    table = _stored()
    bands = table["bands"].get(dimension)
    if bands is None:
        return None
    sizes = geometric_sizes(int(bands[0, 0]), closed, ratio=table["ratio"])
    if sizes[-1] > bands[-1, 1]:
        return None
    rows = bands[np.searchsorted(bands[:, 1], sizes)]
    # P[TV >= q / sqrt(b)] is at most the level of q, which is stored rounded up; levels fall along a row.
    proved = rows[:, 2:] <= alpha * np.sqrt(sizes)[:, None] * table["unit"]
    levels = np.array([1.0, *table["levels"]])
    chances = levels[np.where(proved, np.arange(1, len(levels)), 0).max(axis=1)]
    return least_size(sizes, chances, beta, dimension=dimension)


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    text = resources.files("accord.learners").joinpath("learner_pivots.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    table["bands"] = {part["dimension"]: np.array(part["bands"]) for part in table["tables"]}
    return table
