"""What is written is read again as exactly the same values, whatever the schema says of the file's form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.tables import columns_as_bytes, parse_schema, read_table

ROWS = 2000
SEED = 5
SCHEMA = r"""
version = 2
[csv]
separator = "{separator}"
decimal = "{decimal}"
quote = "{quote}"
[[columns]]
name = "any number"
kind = "number"
[[columns]]
name = "thousandths"
kind = "number"
decimals = 3
[[columns]]
name = "whole"
kind = "integer"
[[columns]]
name = "truth"
kind = "boolean"
true = ["yes", "1"]
false = ["no"]
[[columns]]
name = "label, with a comma"
kind = "category"
categories = ["a,b", "q\"q", "q'q", "two\nlines", " spaces ", "\r", "=1", "é", "x;y", "NA", "\t", "-", "a|b", "1.50"]
[[columns]]
name = "time"
kind = "datetime"
[[columns]]
name = "day"
kind = "date"
format = "{day}"
[[columns]]
name = "grade"
kind = "ordinal"
categories = ["low", "high"]
"""


def columns() -> list[NDArray[Any]]:
    """Values up to the ends of their ranges; each seventh cell is missing."""
    generator = np.random.default_rng(SEED)
    numbers = generator.normal(0, 1, ROWS) * 10.0 ** generator.integers(-30, 30, ROWS)
    numbers[1:7] = [5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 9007199254740991, 1e22, 0.1 + 0.2]
    found: list[NDArray[Any]] = [
        numbers,
        np.round(generator.normal(0, 1e6, ROWS), 3),
        generator.integers(-(2**53) + 1, 2**53, ROWS).astype(np.float64),
        generator.integers(0, 2, ROWS).astype(np.int32),
        generator.integers(0, 14, ROWS).astype(np.int32),
        generator.integers(-62_135_596_800, 253_402_300_800, ROWS).astype(np.float64),
        generator.integers(-719_162, 2_932_897, ROWS).astype(np.float64),
        generator.integers(0, 2, ROWS).astype(np.int32),
    ]
    for values in found:
        values[::7] = np.nan if values.dtype.kind == "f" else -1
    return found


@pytest.mark.parametrize("parquet", [False, True])
@pytest.mark.parametrize("day", ["%Y-%m-%d", "%d %B %Y", "%j/%Y", "%d.%b.%Y"])
@pytest.mark.parametrize("quote", [r"\"", "'"])
@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ","), (";", "."), (r"\t", ","), ("|", ".")])
def test_what_is_written_is_read_again(
    tmp_path: Path, separator: str, decimal: str, quote: str, day: str, *, parquet: bool
) -> None:
    form = {"{separator}": separator, "{decimal}": decimal, "{quote}": quote, "{day}": day}
    text = SCHEMA
    for place, value in form.items():
        text = text.replace(place, value)
    schema = parse_schema(text)
    given = columns()
    path = tmp_path / "rows"
    path.write_bytes(columns_as_bytes(given, schema=schema, parquet=parquet))
    read = read_table(path, schema=schema)
    for column, before, after in zip(schema.read, given, read.columns, strict=True):
        np.testing.assert_array_equal(before, after, err_msg=f"{column.name}, seed {SEED}")
