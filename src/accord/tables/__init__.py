"""Tables: what a person states about them, and how they are read and written."""

from accord.tables.draft import draft_schema
from accord.tables.reader import read_header, read_table
from accord.tables.schema import Column, Schema, parse_schema, read_schema
from accord.tables.table import Table
from accord.tables.writer import Outputs, check_output, outputs, rows_as_bytes

__all__ = [
    "Column",
    "Outputs",
    "Schema",
    "Table",
    "check_output",
    "draft_schema",
    "outputs",
    "parse_schema",
    "read_header",
    "read_schema",
    "read_table",
    "rows_as_bytes",
]
