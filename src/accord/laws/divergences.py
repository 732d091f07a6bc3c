"""Total variation, Hellinger distance and Kullback-Leibler divergence of two laws."""

import math
from collections.abc import Hashable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import chain, count, product
from typing import overload

import numpy as np

from accord.core.coupling import Distribution, Measure
from accord.core.errors import InvalidParameter
from accord.distributions import Atoms, Categorical, Mixture, Normal, PointMass, Product, Uniform
from accord.laws.finite import FiniteLaw, Pair, best_event, side_by_side
from accord.laws.hockey_stick import float_above, root_above
from accord.laws.line import Line, line_hellinger, line_kl_divergence, line_total_variation, take_apart
from accord.laws.normal import normal_hellinger, normal_kl_divergence, normal_total_variation

__all__ = [
    "as_finite",
    "as_product",
    "finite_hellinger",
    "finite_kl_divergence",
    "finite_total_variation",
    "hellinger",
    "holds_labels",
    "kl_divergence",
    "simplified",
    "total_variation",
]


_MOST_OUTCOMES = 1_000_000


def as_finite(law: object) -> FiniteLaw | None:
    """Return a law on finitely many records exactly, None for any other; records of several columns are tuples."""
    if isinstance(law, FiniteLaw):
        return law
    if isinstance(law, Categorical):
        return FiniteLaw.of(law.categories, weights=law.probabilities)
    if isinstance(law, PointMass):
        vector = law.vector
        return FiniteLaw.of([law.label if vector is None else vector if len(vector) > 1 else vector[0]], weights=[1])
    if isinstance(law, Atoms):
        return None if law.rest_mass > 0 else FiniteLaw.of(law.values, weights=law.masses)
    if isinstance(law, Mixture):
        return _finite_mixture(law)
    return _finite_product(law) if isinstance(law, Product) else None


def _finite_mixture(law: Mixture) -> FiniteLaw | None:
    parts = [(as_finite(part), Fraction(weight)) for part, weight in law.positive]
    masses: dict[Hashable, Fraction] = {}
    labels: dict[Hashable, Hashable] = {}
    for part, weight in parts:
        if part is None:
            return None
        for key, label, mass in zip(part.index, part.outcomes, part.probabilities, strict=True):
            masses[key] = masses.get(key, Fraction(0)) + weight * mass
            labels.setdefault(key, label)
    return FiniteLaw.of(labels.values(), weights=masses.values())


def _finite_product(law: Product) -> FiniteLaw | None:
    parts = [as_finite(part) for part in law.factors]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if math.prod(len(part) for part in known) > _MOST_OUTCOMES:
        raise InvalidParameter("a product with more than a million outcomes is too large to be enumerated.")
    if law.dimension == 1:
        return known[0]
    columns = [
        [outcome if isinstance(outcome, tuple) and factor.dimension > 1 else (outcome,) for outcome in part]
        for factor, part in zip(law.factors, known, strict=True)
    ]
    outcomes = [tuple(chain.from_iterable(record)) for record in product(*columns)]
    weights = [math.prod(masses) for masses in product(*(part.numerators for part in known))]
    return FiniteLaw.of(outcomes, weights=weights)


def simplified(law: Distribution) -> Distribution:
    """Return an equal law in a simpler form: one component, one factor, no atoms, normals side by side as one."""
    if isinstance(law, Mixture):
        parts = [simplified(part) for part, _ in law.positive]
        return parts[0] if all(part == parts[0] for part in parts) else law
    if isinstance(law, Atoms) and law.rest is not None and not any(law.masses):
        return simplified(law.rest)
    if not isinstance(law, Product):
        return law
    factors = [simplified(part) for part in law.factors]
    if len(factors) == 1:
        return factors[0]
    normals = [part for part in factors if isinstance(part, Normal)]
    return _joint(normals) if len(normals) == len(factors) else Product(factors)


def _joint(normals: list[Normal]) -> Normal:
    """Return independent normal laws as one."""
    mean = np.concatenate([part.mean for part in normals])
    covariance = np.zeros((len(mean), len(mean)))
    start = 0
    for part in normals:
        end = start + part.dimension
        covariance[start:end, start:end] = part.covariance
        start = end
    return Normal(mean, covariance)


def holds_labels(law: Distribution) -> bool:
    """Return whether the records of a law are labels that are no numbers."""
    if isinstance(law, Categorical):
        return not all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in law.categories)
    return isinstance(law, PointMass) and law.vector is None


def as_product(law: Distribution) -> Product | None:
    """Return a product, or a box as a product of its sides; None for any other law."""
    if isinstance(law, Uniform) and law.dimension > 1:
        return Product(Uniform(low, high) for low, high in zip(law.low, law.high, strict=True))
    return law if isinstance(law, Product) else None


_NARROW = Fraction(1, 2**60)
_DIGITS = 24
_ROOT_BITS = 64


def finite_total_variation(pair: Pair) -> Fraction:
    """Return the largest ``P(E) - Q(E)``, exactly."""
    one = Fraction(1)
    return best_event(pair, ratio=one).excess(one)


def finite_hellinger(pair: Pair) -> float:
    """Return ``h`` with ``h^2 = 1 - sum sqrt(p q)``, rounded up."""
    if _are_equal(pair):
        return 0.0
    for bits in (_ROOT_BITS << step for step in count()):
        least, most = _squared_hellinger(pair, bits=bits)
        if most - least <= most * _NARROW:
            return min(1.0, root_above(most))
    raise AssertionError  # pragma: no cover - the bounds close in on a number above 0


def _squared_hellinger(pair: Pair, *, bits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of ``h^2`` from whole square roots of ``numbers * 4^bits``."""
    whole, missed = 0, 0
    for number, other in zip(pair.first, pair.second, strict=True):
        square = number * other << 2 * bits
        root = math.isqrt(square)
        whole += root
        missed += root * root < square
    square = pair.first_total * pair.second_total << 2 * bits
    root = math.isqrt(square)
    above = root + (root * root < square)
    return 1 - Fraction(whole + missed, root), 1 - Fraction(whole, above)


def finite_kl_divergence(pair: Pair) -> float:
    """Return ``sum p log(p / q)``, rounded up; infinite if p has mass where q has none."""
    if _are_equal(pair):
        return 0.0
    if any(number and not other for number, other in zip(pair.first, pair.second, strict=True)):
        return math.inf
    for digits in (_DIGITS << step for step in count()):
        least, most = _kl_bounds(pair, digits=digits)
        if most - least <= least * _NARROW:
            return float_above(most)
    raise AssertionError  # pragma: no cover - the bounds close in on a number above 0


def _kl_bounds(pair: Pair, *, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds from logarithms in units of 10^-digits.

    The error of each logarithm, in units, is at most 6 from the rounded ratio, 5 |log| from the rounded logarithm
    (`Decimal.ln` is correctly rounded) and 1 from the whole number. The sum, with weights p, has no larger one.
    """
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    total, largest = 0, Decimal(0)
    for number, other in zip(pair.first, pair.second, strict=True):
        if number:
            above, below = number * pair.second_total, other * pair.first_total
            log = context.ln(context.divide(Decimal(above), Decimal(below)))
            largest = max(largest, abs(log))
            total += number * int(log.scaleb(digits, context))
    unit = Fraction(1, 10**digits)
    error = 7 + 5 * math.ceil(largest)
    middle = Fraction(total, pair.first_total)
    return (middle - error) * unit, (middle + error) * unit


def _are_equal(pair: Pair) -> bool:
    return pair.first_total == pair.second_total and pair.first == pair.second


_Finite = FiniteLaw | Categorical
_Law = FiniteLaw | Distribution
_NOTHING_KNOWN = "no formula is known for these two laws; estimate_total_variation gives an interval from draws."


@overload
def total_variation(p: _Finite, q: _Finite) -> Fraction: ...
@overload
def total_variation(p: Normal, q: Normal) -> float: ...
@overload
def total_variation(p: _Law, q: _Law) -> Fraction | float: ...
def total_variation(p: _Law, q: _Law) -> Fraction | float:
    """Largest ``|P(B) - Q(B)|`` over events B.

    Formal guarantees
    -----------------
    - Finite laws (`FiniteLaw`, `Categorical`, `PointMass`, `Atoms` without a rest, mixtures and products of them): a
      Fraction, exact; float probabilities count with their exact values.
    - Normal laws: a float. A closed form where d = 1 (relative error about 1e-15, however close the laws are), where
      the covariances are equal, or where the laws differ along one axis only (about 1e-16 times the condition number of
      the covariances; axes whose variances differ by less than 1e-13 count as equal); otherwise one integral, stopped
      when two resolutions agree to 1e-10 (the largest error seen in tests was 2e-9), and kept between ``h^2`` and
      ``h sqrt(2 - h^2)``, h being the Hellinger distance.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): probabilities of cells between
      the crossings of the densities, so that heavy tails count in full; an error of about 1e-13 for laws whose
      probabilities of intervals are that good.
    - Products with the same columns, and boxes: if they differ in one factor, or one pair of factors is
      singular; boxes in closed form. Other laws are refused: see `estimate_total_variation`.
    - Equal laws are exactly 0 apart; laws with atoms only and laws with a density are exactly 1 apart.
    - Not promised: that the floats are upper bounds; a proved error of the integral.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory 1; docs/proofs/laws.md (the integral).

    Examples
    --------
    >>> total_variation(FiniteLaw({"a": 3, "b": 1}), FiniteLaw({"a": 1, "b": 1}))
    Fraction(1, 4)
    >>> round(total_variation(Normal(0, 1), Normal(1, 1)), 6)
    0.382925

    """
    finite = _finite_pair(p, q)
    return _total_variation(*_distributions(p, q)) if finite is None else finite_total_variation(finite)


def hellinger(p: _Law, q: _Law) -> float:
    """Hellinger distance ``h`` with ``h^2 = 1 - int sqrt(p q)``, from 0 to 1.

    Formal guarantees
    -----------------
    - Finite laws (see `total_variation`): rounded up, within two units in the last place, however close the laws are.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): an integral of
      ``(sqrt p - sqrt q)^2``, panels of which are halved until they agree to 1e-11 (relative).
    - Products with the same columns, and boxes: from those of the factors. Other laws are refused.
    - Equal laws are exactly 0 apart.
    - Not promised: that the floats, but for finite laws, are upper bounds.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory L5 (this normalisation); docs/proofs/laws.md.

    Examples
    --------
    >>> hellinger(FiniteLaw({"a": 1}), FiniteLaw({"b": 1}))
    1.0
    >>> round(hellinger(Normal(0, 1), Normal(1, 1)), 6)
    0.342787

    """
    finite = _finite_pair(p, q)
    return _hellinger(*_distributions(p, q)) if finite is None else finite_hellinger(finite)


def kl_divergence(p: _Law, q: _Law) -> float:
    """Kullback-Leibler divergence ``int p log(p / q)`` of ``p`` from ``q``, in nats; not symmetric.

    Formal guarantees
    -----------------
    - Finite laws (see `total_variation`): rounded up, within two units in the last place; infinite if and only if
      ``p`` has mass where ``q`` has none (or the value is beyond the largest float). About 20 microseconds an atom.
    - Normal laws: closed form, however close the laws are. Relative error about 1e-15 for d = 1, for d > 1 about 1e-16
      times the larger condition number of the covariances.
    - On a line, with or without atoms (mixtures, histograms, boxes, atoms with a density, scipy laws and any law with
      `interval` and `cdf`): an integral of
      ``p log(p / q) - p + q``, as above; infinite where p has more than 1e-300 of mass outside q, or the tails add up
      without end. Tails that fade too slowly to be added up are refused.
    - Products with the same columns, and boxes: the sum over factors. Other laws are refused.
    - Equal laws are exactly 0 apart.
    - Not promised: that the floats, but for finite laws, are upper bounds.

    Parameters
    ----------
    p, q
        Two finite laws, or two distributions of one dimension.

    Raises
    ------
    InvalidParameter
        If they are no such laws, or nothing is known for the pair.

    Source
    ------
    theory M7; docs/proofs/laws.md.

    Examples
    --------
    >>> round(kl_divergence(FiniteLaw({"a": 1, "b": 1}), FiniteLaw({"a": 3, "b": 1})), 6)
    0.143841
    >>> kl_divergence(Normal(1, 1), Normal(0, 1))
    0.5

    """
    finite = _finite_pair(p, q)
    return _kl_divergence(*_distributions(p, q)) if finite is None else finite_kl_divergence(finite)


def _total_variation(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return 1.0
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_total_variation(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_total_variation(*lines)
    return _boxes_total_variation(p, q) if isinstance(p, Uniform) and isinstance(q, Uniform) else _products(p, q)


def _products(p: Distribution, q: Distribution) -> float:
    """Return the total variation of two products that differ in one factor only, or are singular in one."""
    pairs = [pair for pair in _factors(p, q) if pair[0] != pair[1]]
    if len(pairs) == 1:
        return float(total_variation(*pairs[0]))
    if any(_are_singular(*pair) for pair in pairs):
        return 1.0
    raise InvalidParameter(_NOTHING_KNOWN)


def _hellinger(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return 1.0
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_hellinger(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_hellinger(*lines)
    distances = [hellinger(*pair) for pair in _factors(p, q)]
    if max(distances) >= 1:
        return 1.0
    return math.sqrt(-math.expm1(math.fsum(math.log1p(-(distance**2)) for distance in distances)))


def _kl_divergence(p: Distribution, q: Distribution) -> float:
    if p == q:
        return 0.0
    if _are_singular(p, q):
        return math.inf
    if isinstance(p, Normal) and isinstance(q, Normal):
        return normal_kl_divergence(p, q)
    lines = _lines(p, q)
    if lines is not None:
        return line_kl_divergence(*lines)
    return math.fsum(kl_divergence(*pair) for pair in _factors(p, q))


def _boxes_total_variation(p: Uniform, q: Uniform) -> float:
    """Return what the larger box has outside the common part, as a share of it."""
    low = tuple(map(max, p.low, q.low))
    high = tuple(map(min, p.high, q.high))
    if not all(start < end for start, end in zip(low, high, strict=True)):
        return 1.0
    return max(0.0, -math.expm1(Uniform(low, high).log_volume - max(p.log_volume, q.log_volume)))


def _are_singular(p: Distribution, q: Distribution) -> bool:
    """Return whether one law consists of atoms while the other has none."""
    return {p.measure, q.measure} == {Measure.COUNTING, Measure.LEBESGUE}


def _lines(p: Distribution, q: Distribution) -> tuple[Line, Line] | None:
    first, second = take_apart(p), take_apart(q)
    return None if first is None or second is None else (first, second)


def _factors(p: Distribution, q: Distribution) -> list[tuple[Distribution, Distribution]]:
    """Return the factors of two products with the same columns, side by side; refuse other laws."""
    first, second = as_product(p), as_product(q)
    if not (isinstance(first, Product) and isinstance(second, Product)) or first.spans != second.spans:
        raise InvalidParameter(_NOTHING_KNOWN)
    return list(zip(first.factors, second.factors, strict=True))


def _finite_pair(p: object, q: object) -> Pair | None:
    """Return two finite laws side by side; None if either is not finite."""
    first, second = as_finite(p), as_finite(q)
    return None if first is None or second is None else side_by_side(first, second)


def _distributions(p: object, q: object) -> tuple[Distribution, Distribution]:
    """Return two distributions of one dimension in their simplest form."""
    if not (isinstance(p, Distribution) and isinstance(q, Distribution)):
        raise InvalidParameter("p and q must be laws of one kind: both finite, or both distributions such as Normal.")
    if p.dimension != q.dimension:
        raise InvalidParameter("p and q must have the same dimension.")
    first, second = simplified(p), simplified(q)
    if holds_labels(first) != holds_labels(second) and _are_singular(first, second):
        raise InvalidParameter("p and q must be laws of one kind: labels have no distance from numbers.")
    return first, second
