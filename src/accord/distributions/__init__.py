"""Laws on records."""

from accord.core.coupling import Distribution, Measure
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
from accord.distributions.protocol import Bounded, OnALine, Rows, WithAtoms, bounded, on_a_line
from accord.distributions.scipy_law import ScipyLaw
from accord.distributions.stack import log_densities
from accord.distributions.uniform import Uniform

__all__ = [
    "Atoms",
    "Bounded",
    "Categorical",
    "Distribution",
    "Exponential",
    "Gamma",
    "Measure",
    "Mixture",
    "Normal",
    "OnALine",
    "Piecewise",
    "PointMass",
    "Poisson",
    "Product",
    "Rows",
    "ScipyLaw",
    "Uniform",
    "WithAtoms",
    "bounded",
    "log_densities",
    "on_a_line",
]
