"""What the stages of a private density need to know of an estimator: public facts only."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from accord.core import check as _check
from accord.core.coupling import Distribution, Learner
from accord.core.errors import InvalidParameter
from accord.distributions import Mixture, Normal
from accord.learners.traits import traits_of

__all__ = [
    "BlackBox",
    "CovarianceKind",
    "DensityFamily",
    "NormalMixtures",
    "NormalParameters",
]


_Floats = NDArray[np.float64]

CovarianceKind = Literal["full", "diag", "spherical", "tied"]
"""As in scikit-learn's GaussianMixture."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NormalParameters:
    """Weights, means and covariances of a mixture of normal laws.

    Parameters
    ----------
    weights
        Shape (c,), adding up to 1.
    means
        Shape (c, d).
    covariances
        Shape (c, d, d).

    Examples
    --------
    >>> found = NormalParameters.of(Normal(1.0, 4.0)).moved(centre=np.array([10.0]), scale=np.array([3.0]))
    >>> found.law()
    Normal(mean=(13.0,), covariance=((36.0,),))

    """

    weights: _Floats
    means: _Floats
    covariances: _Floats

    @classmethod
    def of(cls, law: Distribution) -> "NormalParameters":
        """Read a `Normal` or a `Mixture` of them.

        Raises
        ------
        InvalidParameter
            For any other law.

        """
        parts, weights = (law.components, law.weights) if isinstance(law, Mixture) else ((law,), (1.0,))
        normals = [part for part in parts if isinstance(part, Normal)]
        if len(normals) < len(parts):
            raise InvalidParameter("law must be Normal, or a Mixture of Normal.")
        return cls(
            weights=np.array(weights),
            means=np.array([part.mean for part in normals]),
            covariances=np.array([part.covariance for part in normals]),
        )

    def moved(self, *, centre: _Floats, scale: _Floats) -> "NormalParameters":
        """Return the law of ``centre + scale * x``, column by column."""
        return NormalParameters(
            weights=self.weights,
            means=centre + scale * self.means,
            covariances=self.covariances * np.outer(scale, scale),
        )

    def of_kind(self, kind: CovarianceKind) -> "NormalParameters":
        """Return the same with covariances of a kind: off-diagonals dropped, averaged, or pooled by weight."""
        d = self.means.shape[1]
        diagonals = np.diagonal(self.covariances, axis1=1, axis2=2)
        if kind == "full":
            return self
        if kind == "tied":
            pooled = np.einsum("c,cij->ij", self.weights, self.covariances)
            matrices = np.repeat(pooled[None], len(self.weights), axis=0)
        else:
            wide = diagonals if kind == "diag" else diagonals.mean(axis=1, keepdims=True)
            matrices = wide[:, :, None] * np.eye(d)
        return NormalParameters(weights=self.weights, means=self.means, covariances=matrices)

    def law(self) -> Distribution:
        """Return a `Normal`, or a `Mixture` of several."""
        parts = [Normal(mean, matrix) for mean, matrix in zip(self.means, self.covariances, strict=True)]
        return parts[0] if len(parts) == 1 else Mixture(parts, self.weights)


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
        _check.store(self, components=_check.integer("components", self.components, least=1, most=200))

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
        own = traits_of(self.learner).words
        return ", ".join(filter(None, (type(self.learner).__name__, own)))


DensityFamily = NormalMixtures | BlackBox
