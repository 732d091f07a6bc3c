"""Which laws run no code but accord's."""

from accord.distributions.atoms import Atoms
from accord.distributions.categorical import Categorical
from accord.distributions.exponential import Exponential
from accord.distributions.gamma import Gamma
from accord.distributions.mixture import Mixture
from accord.distributions.normal import Normal
from accord.distributions.piecewise import Piecewise
from accord.distributions.point_mass import PointMass
from accord.distributions.poisson import Poisson
from accord.distributions.product import Product
from accord.distributions.uniform import Uniform

__all__ = ["is_own"]

_LEAVES = frozenset({Categorical, Exponential, Gamma, Normal, Piecewise, PointMass, Poisson, Uniform})


def is_own(law: object) -> bool:
    """Return whether a law runs no code but accord's: its class and those of its parts are accord's own families."""
    kind = type(law)
    if kind is Mixture:
        return all(is_own(part) for part, _ in law.positive)  # type: ignore[attr-defined]
    if kind is Product:
        return all(is_own(factor) for factor in law.factors)  # type: ignore[attr-defined]
    if kind is Atoms:
        return law.rest is None or is_own(law.rest)  # type: ignore[attr-defined]
    return kind in _LEAVES
