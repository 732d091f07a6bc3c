"""What the stages of a private density need to know of an estimator: public facts only."""

from dataclasses import dataclass
from typing import final

from accord.core import check as _check
from accord.core.coupling import Learner
from accord.learners import ScipyLearner
from accord.learning.density.normal_family import CovarianceKind

__all__ = ["BlackBox", "DensityFamily", "NormalMixtures"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NormalMixtures:
    """Mixtures of normal laws, which have statistics to release.

    Parameters
    ----------
    components
        1 to 200; a single normal law is a mixture of one.
    covariance
        As in scikit-learn.

    """

    components: int
    covariance: CovarianceKind = "full"

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", _check.integer("components", self.components, least=1, most=200))

    @property
    def words(self) -> str:
        """Public words for a ledger."""
        return f"{self.components} normal component{'s' if self.components > 1 else ''}, {self.covariance}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBox:
    """Laws that only a learner knows.

    Parameters
    ----------
    learner
        Any `Learner`.
    restarts
        How many seeds it is fitted with, where its result depends on one.

    """

    learner: Learner
    restarts: int = 1

    @property
    def words(self) -> str:
        """Public words for a ledger."""
        name = type(self.learner).__name__
        return f"{name}, {self.learner.family}" if isinstance(self.learner, ScipyLearner) else name


DensityFamily = NormalMixtures | BlackBox
