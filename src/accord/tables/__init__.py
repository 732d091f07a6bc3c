"""Tables: what a person states about them, and how they are read and written."""

from accord.tables.cells import units_from_cells
from accord.tables.column import Column
from accord.tables.csv_file import CsvFormat
from accord.tables.reader import Table, read_batches, read_header, read_table, read_texts
from accord.tables.schema import Draft, Schema, draft_schema, parse_schema, read_schema
from accord.tables.writer import (
    Outputs,
    check_csv,
    check_output,
    columns_as_bytes,
    columns_as_table,
    outputs,
    write_file,
)

__all__ = [
    "Column",
    "CsvFormat",
    "Draft",
    "Outputs",
    "Schema",
    "Table",
    "check_csv",
    "check_output",
    "columns_as_bytes",
    "columns_as_table",
    "draft_schema",
    "outputs",
    "parse_schema",
    "read_batches",
    "read_header",
    "read_schema",
    "read_table",
    "read_texts",
    "units_from_cells",
    "write_file",
]
