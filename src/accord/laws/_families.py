"""Simpler forms of laws: finite ones as exact laws, mixtures of one component as that component, and so on."""

import math
from collections.abc import Hashable
from fractions import Fraction
from itertools import chain, product

import numpy as np

from accord.core.errors import InvalidParameter
from accord.distributions import Atoms, Categorical, Distribution, Mixture, Normal, PointMass, Product, Uniform
from accord.laws.finite import FiniteLaw

__all__ = ["as_finite", "as_product", "holds_labels", "simplified"]

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
