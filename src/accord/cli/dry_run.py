"""``accord synth --dry-run``: the whole plan, before a single row is read."""

import pyarrow as pa
import pyarrow.parquet as pq

from accord.cli.request import Request
from accord.core import check as _check
from accord.core.errors import InvalidParameter, SchemaMismatch
from accord.synthesis.outlook import Outlook
from accord.synthesis.table import MOST_UNITS
from accord.synthesis.task import task_of
from accord.tables import Schema, read_header, read_schema
from accord.tables.column import refuse_data_as_labels
from accord.tables.files import files_of
from accord.tables.names import normal_form, shown

__all__ = ["dry_run"]


def dry_run(request: Request, *, size: str | None) -> Outlook:
    """Return the plan of a request; of the data only the header is read, and for Parquet the number of rows.

    Raises
    ------
    AccordError
        If the request could not be met.

    """
    request.count()
    terms = request.terms()
    if request.schema is None:
        raise SchemaMismatch("a schema is needed: run `accord schema DATA --out schema.toml` and complete that file.")
    schema = read_schema(request.schema).with_unit(request.unit).with_target(request.target)
    _refuse_missing_columns(request, schema)
    units = _units(request, schema, size=size)
    return task_of(schema, terms).outlook(units)


def _units(request: Request, schema: Schema, *, size: str | None) -> int:
    if size is not None:
        return _check.integer("--size", size, least=1, most=MOST_UNITS)
    if schema.unit is None:
        try:
            return max(1, sum(int(pq.read_metadata(path).num_rows) for path in files_of(request.data)))
        except (pa.ArrowException, OSError, ValueError):
            pass  # not Parquet: counting would read rows
    what = "records" if schema.unit is None else "units"
    raise InvalidParameter(f"--dry-run reads no row: say --size N, how many {what} the table has.")


def _refuse_missing_columns(request: Request, schema: Schema) -> None:
    """Refuse a schema that does not fit the header, or takes its labels from the data."""
    for path in files_of(request.data):
        refuse_data_as_labels(path, files=schema.label_files)
    header = {normal_form(name) for name in read_header(request.data, csv=schema.csv)}
    wanted = [*(column.name for column in schema.read), *([schema.unit] if schema.unit is not None else [])]
    lost = [name for name in wanted if normal_form(name) not in header]
    if lost:
        raise SchemaMismatch(f"the data file {shown(request.data.name)} has no column {shown(lost[0])}.")
