"""Learn again, from what was released: a model, or no answer. Post-processing, data are not read here."""

from typing import Any

from numpy.typing import NDArray

from accord.core.alone import alone
from accord.core.coupling import Learner
from accord.core.isolation import Isolation
from accord.core.release import NoAnswer, NoAnswerType
from accord.distributions import Distribution

__all__ = ["learn_again"]


def learn_again(
    learner: Learner, records: NDArray[Any], *, isolation: Isolation, seed: int
) -> Distribution | NoAnswerType:
    """Return the model fitted to released records; no answer if the fit fails or gives something that is no law.

    The budget is spent: what goes wrong here is a result, not an error to try again after.
    """
    model: object = isolation.fit(learner, records, seed=seed)

    def look() -> Distribution | NoAnswerType:  # a foreign object may do anything when it is looked at
        return model if isinstance(model, Distribution) and not isinstance(model, type) else NoAnswer

    return alone(look, failed=NoAnswer)
