"""The race of one normal law on R^3, in compiled loops; imported at its first use only, because numba is slow to.

The points are those of `normal_lattice`: the same hashes, the same order of uniforms, in cells of the same chart.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from accord.couplings._chart import Chart, Floats, Integers
from accord.couplings._normal_cells import MOST_CELLS, SeenLaw, scale_cells, too_far, too_many
from accord.couplings._normal_loops import FAR, MANY, LawNumbers, Words, list_cells, run_race

__all__ = ["compile_loops", "listed", "numbers", "race"]


def numbers(law: SeenLaw) -> LawNumbers:
    """Return what the loops need of a law."""
    chart = law.chart
    d = chart.dimension
    entries = [(column, row) for column, _ in chart.columns() for row in range(column + 1, d)]
    freedom = chart.records - 1.0 - np.arange(d)
    half = 0.5 * freedom
    constant = half * math.log(chart.records) - (half - 1.0) * math.log(2.0) - gammaln(half)
    return LawNumbers(
        column=np.array([column for column, _ in entries], dtype=np.int64),
        row=np.array([row for _, row in entries], dtype=np.int64),
        mean=np.ascontiguousarray(law.mean, dtype=np.float64),
        unit=np.ascontiguousarray(law.unit, dtype=np.float64),
        inverse=np.ascontiguousarray(np.linalg.inv(law.unit), dtype=np.float64),
        log_spread=np.log(law.spread),
        precision=np.sqrt(float(chart.records)) / law.spread,
        constant=np.asarray(constant + math.log(chart.log_scale_width)),
        log_peak=(1.0 + np.arange(d, dtype=np.float64)) * (math.log(chart.step) - 0.5 * math.log(2.0 * math.pi)),
        records=float(chart.records),
        step=chart.step / math.sqrt(chart.records),
        log_width=float(chart.log_scale_width),
    )


def listed(law: SeenLaw, *, root: np.uint64) -> tuple[Integers, Floats, Words]:
    """Return the cells of a law, their bounds, and their hashes from the word ``root``.

    Raises
    ------
    FitFailed
        If a cell number is beyond 2^50, or there are more than `MOST_CELLS`.

    """
    scales, bounds = scale_cells(law)
    most = MOST_CELLS[law.chart.dimension]
    count, cells, cell_bounds, hashes = list_cells(
        numbers(law), np.ascontiguousarray(scales), np.ascontiguousarray(bounds), law.depth, most, root
    )
    if count == FAR:
        raise too_far()
    if count == MANY:
        raise too_many()
    return cells, cell_bounds, hashes


def race(law: SeenLaw, *, root: np.uint64, draws: Words, log_limit: float) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the point that a law takes in each draw, shape (n, D + 1), and whether there is one, shape (n,).

    Parameters
    ----------
    law
        The law, seen through its chart.
    root, draws
        Words that all laws share: of the cells, and of each draw.
    log_limit
        Scores are looked for below its exponential.

    """
    cells, bounds, hashes = listed(law, root=root)
    order = np.argsort(-bounds, kind="stable")
    best, winner = run_race(numbers(law), cells, bounds, hashes, order, draws, log_limit)
    return np.column_stack([cells[winner[:, 0]], winner[:, 1]]), best < log_limit


@cache
def compile_loops(dimension: int) -> None:
    """Run the loops once on a public law, so that a fault of the compiler is an error and no law's abstention."""
    law = SeenLaw.of(Chart(dimension=dimension, records=10_000), mean=np.zeros(dimension), cholesky=np.eye(dimension))
    scales, bounds = scale_cells(law)
    top = [int(np.argmax(bounds))]
    root, draws = np.uint64(0), np.zeros(1, dtype=np.uint64)
    count, cells, cell_bounds, hashes = list_cells(numbers(law), scales[top], bounds[top], 0.0, 1 << 10, root)
    if count > 0:
        run_race(numbers(law), cells, cell_bounds, hashes, np.arange(count), draws, 0.0)
