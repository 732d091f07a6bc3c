"""Make ``flights.parquet`` from the nycflights13 table ``flights`` (CSV or Parquet).

Usage: ``python examples/make_flights.py SOURCE [DESTINATION]``

All rows stay, in the order of the source; a missing value stays missing. ``README.md`` beside this file says where the
table comes from.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ROWS = 336_776
SCHEMA = pa.schema(
    {
        "month": pa.int8(),
        "day": pa.int8(),
        "hour": pa.int8(),
        "carrier": pa.string(),
        "origin": pa.string(),
        "dest": pa.string(),
        "dep_delay": pa.int16(),
        "arr_delay": pa.int16(),
        "air_time": pa.int16(),
        "distance": pa.int16(),
    }
)


def read(source: Path) -> pa.Table:
    """Columns of ``SCHEMA`` from ``source``, in the types of ``SCHEMA``; a value that does not fit is an error."""
    if source.suffix == ".csv":
        missing = pa.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True, include_columns=SCHEMA.names)
        table = pa.csv.read_csv(source, convert_options=missing)
    else:
        table = pq.read_table(source, columns=SCHEMA.names)
    return table.select(SCHEMA.names).cast(SCHEMA).replace_schema_metadata(None)


def main() -> None:
    """Read the source named on the command line and write the example file."""
    if len(sys.argv) not in {2, 3}:
        sys.exit(__doc__)
    destination = Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).with_name("flights.parquet")
    table = read(Path(sys.argv[1]))
    if table.num_rows != ROWS:
        sys.exit(f"expected the {ROWS} rows of nycflights13, found {table.num_rows}")
    pq.write_table(
        table, destination, compression="zstd", compression_level=22, use_dictionary=True, row_group_size=table.num_rows
    )
    sys.stdout.write(f"{destination}: {table.num_rows} rows, {destination.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
