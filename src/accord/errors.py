"""Every error accord raises on purpose; they are defined in the core, and this is their public name."""

from accord.core.errors import (
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
)

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
