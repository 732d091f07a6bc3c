"""Names of 0.1 that moved: they work for one release, with a warning that says where they are now."""

import importlib
import warnings
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["learner_by_accuracy", "moved"]

_THEORY: Final = {
    "accord.learning": {
        "AgnosticPrivateLearner": "accord.theory",
        "BoostedPrivateLearner": "accord.theory",
        "RecordsUse": "accord.theory",
        "SamplePlan": "accord.synthesis",
        "Synthesis": "accord.synthesis",
        "sample_plan": "accord.synthesis",
        "sample_rows": "accord.synthesis",
        "synthesise": "accord.synthesis",
    },
    "accord.learners": {"MinimumDistanceLearner": "accord.theory"},
    "accord.couplings": {"PoissonCoupling": "accord.theory", "TuplePoissonCoupling": "accord.theory"},
}
_PLANNING: Final = "accord.theory.planning"


def moved(module: str, name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Return what ``name`` of ``module`` was in 0.1, with a warning that names its new place.

    Raises
    ------
    AttributeError
        If it never was there.

    """
    table: Mapping[str, str] = _THEORY.get(module, {})
    place = _PLANNING if module == "accord.planning" else table.get(name)
    if place is None or name.startswith("__"):
        message = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(message)
    found = getattr(importlib.import_module(place), name, None)
    if found is None:
        message = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(message)
    warnings.warn(f"{module}.{name} is now {place}.{name}.", DeprecationWarning, stacklevel=3)
    return found


def learner_by_accuracy(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - what 0.1 took
    """Return what ``accord.learning.PrivateLearner`` was in 0.1 for alpha and beta, with a warning."""
    place = importlib.import_module("accord.theory")
    message = "PrivateLearner with alpha and beta is now accord.theory.BlackBoxPrivateLearner."
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return place.BlackBoxPrivateLearner(*arguments, **named)
