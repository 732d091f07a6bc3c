"""A mixture of normal laws as arrays, and back."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.distributions import Distribution, Mixture, Normal

__all__ = ["NormalMixture", "root_of"]

Floats = NDArray[np.float64]
_LEAST_PART = 1e-9


def root_of(covariance: Floats) -> Floats:
    """Return the lower Cholesky factor; each column keeps a part of its variance that is its own, collinear or not."""
    own = np.diag(_LEAST_PART * np.diag(covariance) + np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.cholesky(covariance + own), dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NormalMixture:
    """Weights (K,), means (K, d) and lower Cholesky factors (K, d, d)."""

    weights: Floats
    means: Floats
    factors: Floats

    @classmethod
    def of(cls, law: Distribution) -> "NormalMixture":
        """Read a normal law or a mixture of them; any other is refused."""
        parts = law.positive if isinstance(law, Mixture) else ((law, 1.0),)
        normals = [(part, weight) for part, weight in parts if isinstance(part, Normal)]
        if len(normals) < len(parts) or not normals:
            raise InvalidParameter("model must be a Normal or a Mixture of normal laws.")
        return cls(
            weights=np.array([weight for _, weight in normals]),
            means=np.array([part.mean for part, _ in normals]),
            factors=np.array([part.cholesky for part, _ in normals]),
        )

    def law(self) -> Distribution:
        """Return the law; a single component is a `Normal`."""
        covariances = self.covariances
        laws = [Normal(mean, covariance) for mean, covariance in zip(self.means, covariances, strict=True)]
        return laws[0] if len(laws) == 1 else Mixture(laws, self.weights)

    @property
    def covariances(self) -> Floats:
        """Shape (K, d, d), exactly symmetric."""
        product = self.factors @ self.factors.transpose(0, 2, 1)
        symmetric: Floats = 0.5 * (product + product.transpose(0, 2, 1))
        return symmetric

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return int(self.means.shape[1])

    @property
    def count(self) -> int:
        """The number of components."""
        return len(self.weights)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean (d,) and covariance (d, d) of the whole law."""
        mean = self.weights @ self.means
        centred = self.means - mean
        covariance = (
            np.einsum("k,kij->ij", self.weights, self.covariances) + (self.weights[:, None] * centred).T @ centred
        )
        return mean, covariance

    def draw(self, size: int, generator: Generator) -> Floats:
        """Return records, shape (size, d)."""
        picks = np.searchsorted(np.cumsum(self.weights)[:-1], generator.random(size), side="right")
        noise = generator.standard_normal((size, self.dimension))
        records: Floats = self.means[picks] + np.einsum("nij,nj->ni", self.factors[picks], noise)
        return records
