"""Every error accord raises on purpose.

An error names the parameter, the rule and a next step. Its text never repeats a value that came from the data.
"""

from functools import partial

__all__ = [
    "AccordError",
    "BudgetExceeded",
    "DataError",
    "FitFailed",
    "InvalidParameter",
    "LedgerError",
    "NotEnoughRecords",
    "NotPrivateWarning",
    "NothingReleased",
    "SchemaMismatch",
    "WorkersLost",
    "WrongRandomness",
]


class AccordError(Exception):
    """Base of every error raised on purpose by accord."""


class InvalidParameter(AccordError, ValueError):
    """A public argument is outside the range where the promise holds."""


class BudgetExceeded(AccordError):
    """A request would go over a cap. It was refused before anything was computed; nothing has been spent.

    Attributes
    ----------
    requested
        The guarantee that was asked for.
    spent
        What had been spent before.
    cap
        What may be spent in all.

    """

    def __init__(self, message: str, *, requested: object, spent: object, cap: object) -> None:
        super().__init__(message)
        self.requested = requested
        self.spent = spent
        self.cap = cap

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the way back from a worker process."""
        return partial(type(self), requested=self.requested, spent=self.spent, cap=self.cap), self.args


class LedgerError(AccordError):
    """A ledger cannot be read, trusted or written. Without its entry nothing is released."""


class NotPrivateWarning(UserWarning):
    """Release noise came from a stand-in for the operating system's source: good for tests, private for nobody."""


class WrongRandomness(AccordError, TypeError):
    """Secret and shared randomness were exchanged."""


class DataError(AccordError, ValueError):
    """The data cannot be used as they stand; nothing has been spent."""


class SchemaMismatch(DataError):
    """The table and its schema do not fit."""


class NotEnoughRecords(DataError):
    """Fewer units of privacy than the plan needs; nothing has been spent.

    Attributes
    ----------
    needed
        The number of units the plan needs.
    present
        The number of units given.

    """

    def __init__(self, message: str, *, needed: int, present: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.present = present


class NothingReleased(AccordError, RuntimeError):
    """The mechanism ran and had no answer where a fitted estimator must have one. The budget is spent all the same.

    Attributes
    ----------
    guarantee
        What was spent.
    columns
        Names of the columns without an answer.

    """

    def __init__(self, message: str, *, guarantee: object, columns: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.guarantee = guarantee
        self.columns = columns

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the way back from a worker process."""
        return partial(type(self), guarantee=self.guarantee, columns=self.columns), self.args


class FitFailed(AccordError, ArithmeticError):
    """A learner cannot fit these records. Inside a block this becomes the block's abstention."""


class WorkersLost(AccordError, RuntimeError):
    """Workers of a cluster went away, again and again or all of them. What was charged before is spent."""


for _error in (
    AccordError,
    BudgetExceeded,
    DataError,
    FitFailed,
    InvalidParameter,
    LedgerError,
    NotEnoughRecords,
    NothingReleased,
    NotPrivateWarning,
    SchemaMismatch,
    WorkersLost,
    WrongRandomness,
):
    _error.__module__ = "accord.errors"  # their public name, in texts and pickles
