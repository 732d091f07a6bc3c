"""How large the density of one law gets with respect to another: bounds of log dP/dnu for a single record."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from accord.core.coupling import Distribution, Measure
from accord.distributions import (
    Atoms,
    Categorical,
    Mixture,
    Normal,
    Piecewise,
    PointMass,
    Product,
    Uniform,
    WithAtoms,
    bounded,
)

__all__ = ["RatioBound", "log_ratio_bound"]

_Floats = NDArray[np.float64]
_SLACK = 2.0**-40
_EQUAL = 2.0**-45
_MOST_CORNERS_OF = 10
_LISTED = (Atoms, Categorical, PointMass)


class RatioBound(NamedTuple):
    """Two upper bounds of ``log dP/dnu``; infinite where none is known.

    Attributes
    ----------
    seen
        On the support of nu, with masses counted at the atoms of nu alone: what a coupling over nu can see of P. It is
        -inf where P has nothing there.
    everywhere
        The same if P is absolutely continuous with respect to nu, else inf.

    """

    seen: float
    everywhere: float


_UNKNOWN = RatioBound(math.inf, math.inf)
_APART = RatioBound(-math.inf, math.inf)


def log_ratio_bound(law: object, reference: Distribution) -> RatioBound:
    """Return bounds of the log density of a law with respect to a reference, for one record.

    Formal guarantees
    -----------------
    - `seen` is at least the supremum of ``log_densities([law], x, reference=reference)`` minus the same for the
      reference, over almost all x under the reference, up to rounding.
    - Closed forms, the least bounds, for: equal laws, two normal laws, lists of labels or numbers, boxes and histograms
      in one column, and products factor by factor. A mixture in the numerator is bounded by the weighted sum over its
      components; one in the denominator component by component.
    - Where nothing better is known and the reference is constant on boxes, the law's own `log_density_bound` is used.
    - Not promised: the least bound for mixtures; any bound (inf) for other pairs.

    Parameters
    ----------
    law
        Anything; what is not a law of the reference's dimension has nothing that can be seen.
    reference
        A public probability.

    Source
    ------
    theory S2; docs/proofs/poisson.md.

    Examples
    --------
    >>> log_ratio_bound(Categorical([1, 2], [3, 1]), Categorical([1, 2], [1, 1])).seen.__round__(6)
    0.405465
    >>> log_ratio_bound(Normal(0, 2), Normal(0, 1)).seen
    inf

    """
    if not isinstance(law, Distribution) or law.dimension != reference.dimension:
        return _APART
    with np.errstate(all="ignore"):
        found = _bound(law, reference)
    return RatioBound(*(math.inf if math.isnan(value) else float(value) for value in found))


def _bound(law: Distribution, reference: Distribution) -> RatioBound:
    """Return the bounds by the first rule that fits the pair."""
    kinds = type(law), type(reference)
    if kinds[0] is kinds[1] and law == reference:
        return RatioBound(0.0, 0.0)
    if isinstance(law, Mixture) and kinds[0] is Mixture:
        return _of_mixture(law, reference)
    return _to_mixture(law, reference) if isinstance(reference, Mixture) else _unmixed(law, reference)


def _unmixed(law: Distribution, reference: Distribution) -> RatioBound:
    """Return the bounds for a pair without mixtures."""
    kinds = type(law), type(reference)
    if isinstance(law, Normal) and isinstance(reference, Normal) and kinds[0] is Normal:
        return _normal(law, reference)
    if isinstance(law, Product) and isinstance(reference, Product) and law.spans == reference.spans:
        return _by_factor(law, reference)
    if isinstance(reference, _LISTED):
        return _to_atoms(law, reference)
    if kinds[0] in _LISTED:
        return _from_atoms(law, reference)
    return _densities(law, reference)


def _of_mixture(law: Mixture, reference: Distribution) -> RatioBound:
    parts = [(_bound(part, reference), math.log(weight)) for part, weight in law.positive]
    return RatioBound(
        _log_sum([bound.seen + log for bound, log in parts]),
        _log_sum([bound.everywhere + log for bound, log in parts]),
    )


def _to_mixture(law: Distribution, reference: Mixture) -> RatioBound:
    """Where one component dominates the law, its ratio is a bound; else each record is seen through one of them."""
    parts = [(_bound(law, part), math.log(weight)) for part, weight in reference.positive]
    everywhere = min(bound.everywhere - log for bound, log in parts)
    return RatioBound(min(everywhere, max(bound.seen - log for bound, log in parts)), everywhere)


def _by_factor(law: Product, reference: Product) -> RatioBound:
    parts = [_bound(*pair) for pair in zip(law.factors, reference.factors, strict=True)]
    seen = [bound.seen for bound in parts]
    return RatioBound(-math.inf if -math.inf in seen else sum(seen), sum(bound.everywhere for bound in parts))


# --- normal laws ------------------------------------------------------------------------------------------------------


def _normal(law: Normal, reference: Normal) -> RatioBound:
    """Return the supremum of the ratio of two normal densities: ``-log v / 2 + c^2 / 2 (1 - v)`` along each axis.

    The axes are those in which the reference is standard and the law has independent columns with variances v and
    means c.
    """
    factor = reference.cholesky
    shift = np.linalg.solve(factor, np.array(law.mean) - np.array(reference.mean))
    half = np.linalg.solve(factor, law.cholesky)
    variances, axes = np.linalg.eigh(half @ half.T)
    along = axes.T @ shift
    same = np.abs(variances - 1) <= _EQUAL * len(along)
    centred = np.abs(along) <= _EQUAL * (1 + float(np.abs(shift).max()))
    terms = np.where(
        same,
        np.where(centred, 0.0, np.inf),
        np.where(variances < 1, -np.log(variances) / 2 + along**2 / (1 - variances) / 2, np.inf),
    )
    total = float(terms.sum())
    total += _SLACK * (1 + abs(total))
    return RatioBound(total, total)


# --- atoms ------------------------------------------------------------------------------------------------------------


def _to_atoms(law: Distribution, reference: Distribution) -> RatioBound:
    """Return the larger of the ratio of masses at the reference's atoms and that of the densities elsewhere."""
    values, masses = _listed(reference)
    counted = _masses(law, values)
    ratio = float(np.max(np.log(counted) - np.log(masses), initial=-np.inf))
    rest, share = _rest(reference)
    own, own_share = _rest(law)
    dense = _APART
    if rest is not None and law.measure is Measure.BOTH and own is None:
        dense = _UNKNOWN  # it has a density, and keeps it to itself
    if rest is not None and own is not None:
        scale = math.log(own_share) - math.log(share)
        found = _bound(own, rest)
        dense = RatioBound(found.seen + scale, found.everywhere + scale)
    covered = abs(float(counted.sum()) + own_share - 1) <= len(values) * _SLACK
    whole = max(ratio, dense.everywhere) if own is not None else ratio
    return RatioBound(max(ratio, dense.seen), whole if covered else math.inf)


def _from_atoms(law: Distribution, reference: Distribution) -> RatioBound:
    """Return what a reference without a list of atoms sees of a law with one: its density only."""
    if reference.measure is not Measure.LEBESGUE:
        return _UNKNOWN
    rest, share = _rest(law)
    if rest is None:
        return _APART
    found = _bound(rest, reference)
    scale = math.log(share)
    return RatioBound(found.seen + scale, math.inf if _listed(law)[0] else found.everywhere + scale)


def _listed(law: Distribution) -> tuple[list[tuple[object, ...]], _Floats]:
    """Return the records of positive mass, and their masses."""
    if isinstance(law, PointMass):
        return [law.vector if law.vector is not None else (law.label,)], np.ones(1)
    values = law.values if isinstance(law, Atoms) else law.categories if isinstance(law, Categorical) else ()
    masses = law.masses if isinstance(law, Atoms) else law.probabilities if isinstance(law, Categorical) else ()
    pairs = [(value, mass) for value, mass in zip(values, masses, strict=True) if mass > 0]
    return [(value,) for value, _ in pairs], np.array([mass for _, mass in pairs])


def _masses(law: Distribution, records: list[tuple[object, ...]]) -> _Floats:
    """Return the law's masses at these records, shape (n,)."""
    if not records or law.measure is Measure.LEBESGUE:
        return np.zeros(len(records))
    table = np.empty((len(records), law.dimension), dtype=object)
    for row, record in enumerate(records):
        for column, value in enumerate(record):
            table[row, column] = value
    logs = law.log_mass(table) if isinstance(law, WithAtoms) else law.log_density(table)
    return np.asarray(np.exp(logs))


def _rest(law: Distribution) -> tuple[Distribution | None, float]:
    """Return the part of a law that has a density, if any, and its mass."""
    if law.measure is Measure.LEBESGUE:
        return law, 1.0
    if isinstance(law, Atoms) and law.rest is not None and law.rest_mass > 0:
        return law.rest, law.rest_mass
    return None, 0.0


# --- densities on a line and on boxes ---------------------------------------------------------------------------------


def _densities(law: Distribution, reference: Distribution) -> RatioBound:
    measures = law.measure, reference.measure
    if Measure.BOTH not in measures and measures[0] is not measures[1]:
        return _APART
    steps, other = _steps(law), _steps(reference)
    if steps is not None and other is not None:
        return _of_steps(steps, other)
    corners, heights = _boxes(law)
    if heights is not None and corners is not None and type(reference) is Normal:
        # A normal density is least at a corner of the box.
        least = np.min([reference.log_density(corner) for corner in corners], axis=0)
        top = float(np.max(heights - least, initial=-np.inf))
        return RatioBound(top, top)
    corners, heights = _boxes(reference)
    known = bounded(law)
    if heights is None or corners is None or known is None or law.measure is not Measure.LEBESGUE:
        return _UNKNOWN
    top = float(np.max(known.log_density_bound(corners[0], corners[-1]) - heights, initial=-np.inf))
    return RatioBound(top, math.inf)


def _steps(law: Distribution) -> tuple[_Floats, _Floats] | None:
    """Return edges and log heights of a law of one column that is constant in between."""
    if type(law) is Piecewise:
        return np.array(law.edges), law.log_heights
    if type(law) is Uniform and law.dimension == 1:
        return np.array([law.low[0], law.high[0]]), np.array([-law.log_volume])
    return None


def _of_steps(law: tuple[_Floats, _Floats], reference: tuple[_Floats, _Floats]) -> RatioBound:
    edges = np.unique(np.concatenate([law[0], reference[0]]))
    own, other = (_heights_on(edges[:-1], steps) for steps in (law, reference))
    seen = other > -np.inf
    top = float(np.max(own[seen] - other[seen], initial=-np.inf))
    return RatioBound(top, top if (own[~seen] == -np.inf).all() else math.inf)


def _heights_on(starts: _Floats, steps: tuple[_Floats, _Floats]) -> _Floats:
    """Return the height of each cell that starts here, shape (n,)."""
    edges, heights = steps
    place = np.searchsorted(edges, starts, side="right") - 1
    inside = (place >= 0) & (place < len(heights))
    return np.where(inside, heights[np.clip(place, 0, len(heights) - 1)], -np.inf)


def _boxes(law: Distribution) -> tuple[_Floats | None, _Floats | None]:
    """Return the corners of the boxes on which a law is constant, shape (2^d, n, d), lowest first, and log heights."""
    if type(law) is Piecewise:
        kept = law.log_heights > -np.inf
        ends = np.array(law.edges)
        return np.stack([ends[:-1][kept, None], ends[1:][kept, None]]), law.log_heights[kept]
    if type(law) is Uniform and law.dimension <= _MOST_CORNERS_OF:
        corners = list(product(*zip(law.low, law.high, strict=True)))
        return np.array(corners)[:, None, :], np.array([-law.log_volume])
    return None, None


def _log_sum(values: list[float]) -> float:
    return math.inf if math.inf in values else float(logsumexp(values)) if values else -math.inf
