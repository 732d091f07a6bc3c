"""accord: differentially private distribution learning.

Bring any density estimator, get a private model and synthetic data, with a proof you can read.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.density.estimator import PrivateDensity
    from accord.synthesis import SyntheticTable, plan_table, synthesise_table

__version__ = "0.1.0"
__all__ = ["PrivateDensity", "SyntheticTable", "__version__", "plan_table", "synthesise_table"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Load a room when it is first asked for."""
    if name in {"SyntheticTable", "plan_table", "synthesise_table"}:
        return getattr(importlib.import_module("accord.synthesis"), name)
    if name == "PrivateDensity":
        try:
            from accord.density.estimator import PrivateDensity  # noqa: PLC0415 - an optional dependency
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "sklearn":
                raise
            message = 'PrivateDensity needs scikit-learn, which is not installed: pip install "accord[sklearn]".'
            raise ModuleNotFoundError(message, name=error.name) from None
        return PrivateDensity
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
