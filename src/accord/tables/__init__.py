"""Tables: what a person states about them, and how they are read and written."""

from accord.tables.column import Column
from accord.tables.csv_format import CsvFormat
from accord.tables.draft import draft_schema
from accord.tables.reader import read_batches, read_header, read_table
from accord.tables.schema import Schema, parse_schema, read_schema
from accord.tables.table import Table
from accord.tables.writer import Outputs, check_output, columns_as_bytes, outputs, rows_as_bytes

__all__ = [
    "Column",
    "CsvFormat",
    "Outputs",
    "Schema",
    "Table",
    "check_output",
    "columns_as_bytes",
    "draft_schema",
    "outputs",
    "parse_schema",
    "read_batches",
    "read_header",
    "read_schema",
    "read_table",
    "rows_as_bytes",
]
