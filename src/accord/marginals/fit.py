"""The model of greatest entropy that fits noisy tables: a smooth convex problem in the logarithms of its factors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["STRENGTH", "Engine", "Feature", "Fitted", "Noisy", "fit"]

Floats = NDArray[np.float64]
STRENGTH = 0.15
_FEATURE_STRENGTH = 1e-4
_EMPTY_STRENGTH = 1e-3
_NOISE, _CLEAR, _LOST = 2.0, 2.5, 0.15


def noise_alone(one: "Noisy") -> NDArray[np.bool_]:
    """Return which cells of a table of several columns hold nothing, for all that its counts tell.

    Where the cells that do not stand out of the noise hold together no more than noise would, they are empty: the
    positive part of their noise would otherwise be taken for records in each of them. What is lost is at most two
    deviations of their sum, or 0.15 of each one's.
    """
    none = np.zeros(len(one.counts), dtype=np.bool_)
    if len(one.table) < 2 or not one.sparse:
        return none
    light = one.counts < _CLEAR * one.deviations
    held, squares = float(one.counts[light].sum()), float((one.deviations[light] ** 2).sum())
    return light if held <= max(_NOISE * math.sqrt(squares), _LOST * float(one.deviations[light].sum())) else none


class Engine(Protocol):
    """Exact tables of ``p(x)`` proportional to ``exp(sum of potentials)``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        ...

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each potential."""
        ...

    def solve(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log of the total weight, and each table's probabilities."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """A measured table.

    Parameters
    ----------
    table
        Its columns.
    counts, deviations
        Noisy counts, flat, and the standard deviation of each one's noise.
    strength
        The weight of the entropy.
    cell_of
        Which of the counts each cell of the table adds to, where cells were counted together; None where each has its
        own.
    sparse
        Whether cells that do not stand out are likely to be empty: those of numbers alone, far from where records are.

    """

    table: tuple[int, ...]
    counts: Floats
    deviations: Floats
    strength: float = STRENGTH
    cell_of: NDArray[np.int64] | None = None
    sparse: bool = True

    def means(self, law: Floats) -> Floats:
        """Return the probabilities of what was counted, from those of the table's cells."""
        if self.cell_of is None:
            return law
        return np.bincount(self.cell_of, weights=law, minlength=len(self.counts)).astype(np.float64)

    def spread(self, factors: Floats) -> Floats:
        """Return the log factor of each cell, from those of what was counted."""
        return factors if self.cell_of is None else factors[self.cell_of]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """A measured sum over records of a function of two columns: values on the cells of their table."""

    table: tuple[int, ...]
    values: Floats
    total: float
    deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A potential for each of the engine's tables, and the multipliers of each measured one, to go on from."""

    potentials: tuple[Floats, ...]
    multipliers: tuple[Floats, ...]


def fit(
    engine: Engine,
    noisy: Sequence[Noisy],
    *,
    total: float,
    features: Sequence[Feature] = (),
    start: Sequence[Floats] = (),
    iterations: int = 200,
) -> Fitted:
    """Return the fitted model.

    With one strength s for all, the law p minimises ``s n KL(p, uniform) + sum (n p - count)^2 / (2 deviation^2)``. Its
    dual is ``log Z(t) - t . y / n + (s / 2 n) sum (deviation t)^2``, strictly convex in the factors' logarithms t,
    which a limited-memory Newton method (L-BFGS) minimises after scaling each coordinate by its curvature. A larger
    strength for one table is the same as more noise in it.

    Parameters
    ----------
    engine
        One potential a table; each measured table must be one of them.
    noisy, features
        What was measured, on the engine's columns.
    total
        n, public.
    start
        Multipliers to begin from, of the first of the measured tables, in their order.
    iterations
        At most so many steps.

    """
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to load, and not every run needs it

    places = {table: place for place, table in enumerate(engine.tables)}
    sizes = [len(one.counts) for one in noisy]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    empty = [noise_alone(one) for one in noisy]
    counts = [np.where(none, 0.0, one.counts) for one, none in zip(noisy, empty, strict=True)]
    targets = np.concatenate([*counts, [one.total for one in features]]) / total
    ridge = np.concatenate(
        [
            *(
                np.where(none, _EMPTY_STRENGTH, one.strength) * one.deviations
                for one, none in zip(noisy, empty, strict=True)
            ),
            [_FEATURE_STRENGTH * one.deviation**2 for one in features],
        ]
    )
    ridge = ridge / total
    curvature = np.maximum(targets, 0) + 1 / total
    curvature[ends[-1] :] = [np.mean(one.values**2) for one in features]
    scale = 1 / np.sqrt(curvature + ridge)

    def potentials(point: Floats) -> list[Floats]:
        sums = [np.zeros(math.prod(engine.shape[column] for column in table)) for table in engine.tables]
        for one, low, high in zip(noisy, ends[:-1], ends[1:], strict=True):
            sums[places[one.table]] += one.spread(point[low:high])
        for feature, weight in zip(features, point[ends[-1] :], strict=True):
            sums[places[feature.table]] += weight * feature.values
        return sums

    def dual(scaled: Floats) -> tuple[float, Floats]:
        point = scaled * scale
        log_total, tables = engine.solve(potentials(point))
        means = np.concatenate(
            [
                *(one.means(tables[places[one.table]]) for one in noisy),
                [float(one.values @ tables[places[one.table]]) for one in features],
            ]
        )
        value = log_total - float(point @ targets) + 0.5 * float(ridge @ point**2)
        return value, (means - targets + ridge * point) * scale

    begin = np.zeros(len(scale))
    for low, one in zip(ends[:-1], start, strict=False):
        begin[low : low + len(one)] = one
    found = minimize(
        dual,
        begin / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-7},
    )
    point = np.asarray(found.x, dtype=np.float64) * scale
    multipliers = tuple(point[low:high] for low, high in pairwise(ends))
    return Fitted(potentials=tuple(potentials(point)), multipliers=multipliers)
