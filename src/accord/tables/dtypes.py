"""Data frames by their declared types alone: which library's they are, and what their columns' types suggest."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from accord.core.containers import library_of
from accord.core.errors import InvalidParameter

__all__ = ["FrameKind", "kind_of", "suggested"]

FrameKind: TypeAlias = Literal["pyarrow", "pandas", "polars", "mapping"]
"""A library of data frames, or a mapping of names to arrays; files count as pyarrow."""


def kind_of(data: Any) -> FrameKind:  # noqa: ANN401 - any container
    """Return what kind of frame this is; a path is read into one of pyarrow.

    Raises
    ------
    InvalidParameter
        If it is none.

    """
    if isinstance(data, (str, Path)):
        return "pyarrow"
    library = library_of(data)
    framed = getattr(data, "columns", None) is not None
    if library == "pyarrow" and isinstance(data, pa.Table):
        return "pyarrow"
    if library == "pandas" and framed:
        return "pandas"
    if library == "polars" and framed and hasattr(data, "to_arrow"):
        return "polars"
    if isinstance(data, Mapping):
        return "mapping"
    raise InvalidParameter(
        "data must be a data frame of pandas, polars or pyarrow, a mapping of names to arrays, or the path of a CSV or "
        f"Parquet file: this is a {type(data).__name__}."
    )


def suggested(data: Any) -> dict[str, tuple[str, str]]:  # noqa: ANN401 - any container
    """Return for each column of a frame the kind that its type suggests, None where it says nothing, and the type.

    Names and types are all that is looked at: not the cells, and not the categories of a categorical, which are cells.

    Raises
    ------
    InvalidParameter
        If it is no frame, or a path.

    """
    if isinstance(data, (str, Path)):
        raise InvalidParameter("frame must be a data frame: for a file there is draft_schema, and accord schema.")
    return {name: (_suggestion(written), written) for name, written in _types(data)}


def _types(data: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any container
    match kind_of(data):
        case "pyarrow":
            for field in data.schema:
                yield field.name, "dictionary" if pa.types.is_dictionary(field.type) else str(field.type)
        case "mapping":
            for name, cells in data.items():
                typed = getattr(cells, "dtype", None)
                yield str(name), _name_of(typed) if isinstance(typed, np.dtype) else "list"
        case _:
            for name, typed in zip(data.columns, data.dtypes, strict=True):
                yield str(name), _name_of(typed)


def _name_of(typed: Any) -> str:  # noqa: ANN401 - a type of any library
    """Return the name of a type, without categories."""
    text = str(typed)
    return text.split("(", 1)[0] if text.lower().startswith(("categorical", "category", "enum")) else text


def _suggestion(written: str) -> str:
    """Return the kind that a type's name suggests, or the sign that a person must decide."""
    name = written.lower().replace("[pyarrow]", "")
    if name.startswith("bool"):
        return "boolean"
    if name.startswith(("int", "uint")):
        return "integer"
    if name.startswith(("float", "double", "halffloat", "decimal")):
        return "number"
    if name.startswith(("datetime", "timestamp")):
        return "datetime"
    return "date" if name.startswith("date") else "?"
