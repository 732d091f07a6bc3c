"""Where sizes and certificates were in 0.1: they are in `accord.theory.planning`."""

from typing import Any

from accord._moved import moved


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Return a name that moved, with a warning."""
    return moved(__name__, name)
