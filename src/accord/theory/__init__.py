"""The statements of the papers under their own names: see ``docs/statements.md``.

`CoupleI`, `CoupleII` and `FactB3StableMode` are what a paper calls a public class, with the rule that the paper states.
"""

from functools import partial

from accord.core.stable_mode import StableMode
from accord.theory.agnostic import AgnosticPrivateLearner
from accord.theory.black_box import BlackBoxPrivateLearner
from accord.theory.boosted import BoostedPrivateLearner
from accord.theory.couplings.poisson import PoissonCoupling
from accord.theory.couplings.tuple_poisson import TuplePoissonCoupling
from accord.theory.minimum_distance import MinimumDistanceLearner
from accord.theory.parts import RecordsUse

CoupleI = partial(PoissonCoupling, rule="earliest")
CoupleII = TuplePoissonCoupling
FactB3StableMode = partial(StableMode, rule="distance")

__all__ = [
    "AgnosticPrivateLearner",
    "BlackBoxPrivateLearner",
    "BoostedPrivateLearner",
    "CoupleI",
    "CoupleII",
    "FactB3StableMode",
    "MinimumDistanceLearner",
    "PoissonCoupling",
    "RecordsUse",
    "TuplePoissonCoupling",
]
