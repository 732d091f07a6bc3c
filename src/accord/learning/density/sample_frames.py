"""Records as the kind of table that was asked for."""

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.core.errors import InvalidParameter

__all__ = ["FRAMES", "as_frame"]

FRAMES = ("default", "pandas", "polars")
"""What `as_frame` can make: a numpy array, or a data frame of these."""


def as_frame(records: NDArray[np.float64], *, kind: str, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - theirs
    """Return records as an array ("default") or as a data frame with these column names.

    Raises
    ------
    InvalidParameter
        For another kind, or if the package is not installed.

    Examples
    --------
    >>> as_frame(np.zeros((2, 1)), kind="default", names=("a",)).shape
    (2, 1)

    """
    if kind not in FRAMES:
        raise InvalidParameter("transform must be 'default', 'pandas' or 'polars'.")
    if kind == "default":
        return records
    try:
        package = importlib.import_module(kind)
    except ImportError:
        raise InvalidParameter(f"transform={kind!r} needs {kind}: install it, or use 'default'.") from None
    return package.DataFrame({name: records[:, place] for place, name in enumerate(names)})
