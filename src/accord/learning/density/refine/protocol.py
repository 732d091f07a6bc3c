"""What refining takes and gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accord.core.blocks import Progress
from accord.core.guarantee import ApproxDP, PureDP
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.distributions import Distribution

__all__ = ["RefinedModel", "Refiner"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefinedModel:
    """A model that was released, and how it came about.

    Parameters
    ----------
    model
        The law.
    public
        By name, what else was released, and parameters: all of it may be shown to anyone.

    """

    model: Distribution
    public: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Refiner(Protocol):
    """Improve a public model by private looks at the data.

    Formal guarantees
    -----------------
    - Privacy: `refine` has the guarantee `guarantee` for one unit under "replace one", whatever the model, which must
      be public (or an earlier private output, by composition). The number of units is public.
    - Not promised: that the model gets better.

    """

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """The guarantee of one call of `refine`."""
        ...

    def refine(
        self,
        model: Distribution,
        records: NDArray[np.float64],
        *,
        units: NDArray[np.int64] | int,
        shared: SharedRandomness | None = None,
        randomness: PrivateRandomness | None = None,
        progress: Progress | None = None,
    ) -> RefinedModel:
        """Return a model nearer to the law of the records.

        Parameters
        ----------
        model
            A law of records of d columns.
        records
            Shape (n, d).
        units
            The unit of each record, shape (n,); or the number of units, which is then that of records: one each.
        shared
            A public key for whatever is random in the search but hides nothing.
        randomness
            The secret source of the releases; the operating system's unless given.
        progress
            Called with rounds done, rounds in all, and a word.

        """
        ...
