"""The statements of the papers under their own names: see ``docs/statements.md``."""

from accord.theory.agnostic import AgnosticPrivateLearner
from accord.theory.black_box import BlackBoxPrivateLearner
from accord.theory.boosted import BoostedPrivateLearner
from accord.theory.couplings.poisson import PoissonCoupling
from accord.theory.couplings.tuple_poisson import TuplePoissonCoupling
from accord.theory.minimum_distance import MinimumDistanceLearner
from accord.theory.parts import RecordsUse

__all__ = [
    "AgnosticPrivateLearner",
    "BlackBoxPrivateLearner",
    "BoostedPrivateLearner",
    "MinimumDistanceLearner",
    "PoissonCoupling",
    "RecordsUse",
    "TuplePoissonCoupling",
]
