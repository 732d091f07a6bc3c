"""What comes out: a value with its guarantee, or no answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, TypeVar, final

from accord.privacy.guarantees import ApproxDP, PureDP
from accord.privacy.stages import Composed, Stage

__all__ = ["NoAnswer", "NoAnswerType", "Release"]

T = TypeVar("T")
U = TypeVar("U")


class NoAnswerType(Enum):
    """Type of `NoAnswer`. A singleton; it survives copying and pickling; compare with ``is``."""

    NO_ANSWER = "NoAnswer"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NoAnswer"

    __str__ = __repr__


NoAnswer: Final = NoAnswerType.NO_ANSWER
"""The mechanism ran and released nothing. Falsy. The budget is spent all the same."""


@final
@dataclass(frozen=True, slots=True)
class Release(Generic[T]):
    """A released value, what was promised for it, and what ran.

    Formal guarantees
    -----------------
    - Privacy: ``guarantee``, for the mechanisms that made ``value``; `map` keeps it (theory M6).
    - ``stages`` are written by the mechanisms that ran, each with its parameters. Of a release made by several they
      compose to at most ``guarantee``.
    - Not promised: anything about other releases from the same data. Budgets add up.

    Parameters
    ----------
    value
        What came out.
    guarantee
        The promise.
    stages
        One for a mechanism, one composition of them for a release by several; none for a release that was made by hand.

    Examples
    --------
    >>> from accord.privacy import PureDP
    >>> Release(20, PureDP(1)).map(lambda count: count / 2).value
    10.0
    >>> Release(NoAnswer, PureDP(1)).map(len).value
    NoAnswer

    """

    value: T | NoAnswerType
    guarantee: PureDP | ApproxDP
    stages: tuple[Stage | Composed, ...] = field(default=(), compare=False, repr=False)

    def map(self, function: "Callable[[T], U]") -> "Release[U]":
        """Apply ``function`` to the value (post-processing, free of charge); `NoAnswer` stays `NoAnswer`.

        ``function`` must not look at the data again.
        """
        if isinstance(self.value, NoAnswerType):
            return Release(self.value, self.guarantee, self.stages)
        return Release(function(self.value), self.guarantee, self.stages)
