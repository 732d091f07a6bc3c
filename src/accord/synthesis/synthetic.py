"""What was released of a table, with everything that may be made of it free of charge."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, final

from accord import __version__
from accord.accounting.account import account
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP
from accord.core.release import Composed, Stage
from accord.core.shared import SharedRandomness
from accord.core.verdict import Verdict, tell
from accord.kept import Kind, checked, content_of, kept, restored
from accord.ledger import Statement
from accord.marginals.verdicts import TableErrors
from accord.reports import Claim, Report, release_json, report_page, tables_of
from accord.synthesis.conditions import clauses_of
from accord.synthesis.file import KINDS
from accord.synthesis.model import Accepted, Columns, Given, Shares, TableModel
from accord.synthesis.probability import Probability, error_of
from accord.synthesis.release import TableRelease
from accord.synthesis.terms import MOST_ROWS, Terms
from accord.tables import Schema, check_output, columns_as_table, write_file
from accord.tables.dtypes import FrameKind
from accord.tables.frames import as_frame
from accord.tables.names import listed, shown

__all__ = ["Marginal", "SyntheticTable"]

_MODEL_FORMAT: Final = "accord model"
_MODEL_VERSION: Final = 2
_NEAR_NOISE = "where holds for {} of the rows, which noise alone may have made: do not conclude from these rows."
_REPORTED_ROWS: Final = 10_000
_MOST_CELLS: Final = 10_000_000

Cell = str | tuple[float, float] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marginal:
    """The released shares of a few columns.

    Parameters
    ----------
    columns
        Their names.
    cells
        Of each column: labels, or the two ends of cells of numbers (dates as days, times as seconds, since 1970), and
        None for a missing cell.
    shares
        They add up to 1; one axis a column, in the order of ``cells``.

    """

    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    shares: Shares


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SyntheticTable:
    """A private release of a table, from which rows are drawn free of charge.

    Formal guarantees
    -----------------
    - Privacy: that of ``guarantee``; everything here is a function of public facts and of what was released, and no
      record is held.
    - Rows stand for units of privacy: one of ``account()["rows_stand_for"]`` each.
    - Not promised: that rows are independent of each other, see `accord.marginals.MarginalModel.rounded`; that shares
      of columns that no measured table holds together are right.

    Parameters
    ----------
    release
        What was released.
    schema, terms
        What was known of the table, and what was asked for.
    verdicts
        What a reader must know.
    ledger
        What the ledger said after the charge, if there is one.
    frame
        As what rows are given: the kind of frame that the data were.

    """

    release: TableRelease
    schema: Schema
    terms: Terms
    verdicts: tuple[Verdict, ...] = ()
    ledger: Statement | None = None
    frame: FrameKind = "pyarrow"

    def __repr__(self) -> str:
        """Return what was promised, and of what."""
        names = [column.name for column in self.schema.read]
        said = "" if self.answered else ", no answer"
        return f"SyntheticTable({self.guarantee!r}, units={self.release.units}, columns={names!r}{said})"

    @property
    def answered(self) -> bool:
        """Whether there is a model; blocks that did not agree give none, and their budget is spent all the same."""
        return self.release.answered

    @property
    def guarantee(self) -> ApproxDP:
        """The promise."""
        return self.release.guarantee

    @property
    def stages(self) -> tuple[Stage | Composed, ...]:
        """The mechanisms that ran."""
        return self.release.stages

    def sample(self, rows: int, *, where: str | None = None, seed: int | None = None) -> Any:  # noqa: ANN401 - other libraries' frames
        """Return synthetic rows as a frame of the kind that the data were; a table of pyarrow where they were a file.

        Parameters
        ----------
        rows
            From 1 to 10,000,000; as many as you like, as often as you like.
        where
            A condition that all rows fulfil, such as ``"state = 'CA' and age >= 65"``: see docs/models.md.
        seed
            For the same rows again.

        Returns
        -------
        frame
            All columns that the schema writes, in its order: dates, texts, booleans, and whole numbers where the schema
            declares no decimals. A mapping of arrays where the data were one.

        Raises
        ------
        InvalidParameter
            If there was no answer, or the condition cannot be read, or no row fulfils it.

        Warns
        -----
        VerdictWarning
            If the condition's probability is near what noise alone may make of it.

        """
        cells = self.cells(rows, where=where, seed=seed)
        return as_frame(columns_as_table(cells, schema=self.schema), kind=self.frame)

    def cells(self, rows: int, *, where: str | None = None, seed: int | None = None) -> Columns:
        """Return the same rows as one array for each column that is read: floats with NaN, positions of labels with -1.

        Raises
        ------
        InvalidParameter
            As `sample`.

        """
        count = _check.integer("rows", rows, least=1, most=MOST_ROWS)
        if seed is not None:
            seed = _check.integer("seed", seed, least=0, most=2**63 - 1)
        if where is None:
            return self.release.rows(count, seed=seed)
        found, probability = self._given(where)
        if probability.value <= 0:
            raise InvalidParameter("where holds in no row of this release: no part of its model fulfils it.")
        if probability.is_noise:
            tell(Verdict("condition-near-noise", _NEAR_NOISE.format(probability)))
        shared = SharedRandomness.fresh() if seed is None else SharedRandomness(seed)
        return found.rows(count, shared.stream("synthetic rows"))

    def probability(self, where: str) -> Probability:
        """Return the share of rows that fulfil a condition, without drawing any, and how far noise may have moved it.

        It is a share of what `account` says that rows stand for. Free of charge. Exact in the model where it is one of
        tables; from a million draws for a density.

        Parameters
        ----------
        where
            As in `sample`.

        Raises
        ------
        InvalidParameter
            If there was no answer, or the condition cannot be read.

        """
        return self._given(where)[1]

    def _given(self, where: str) -> tuple[Given | Accepted, Probability]:
        """Return the law given a condition, and the condition's share."""
        law, errors = self.release.law, self.release.errors
        if law is None:
            raise InvalidParameter("there was no answer, so there is no model to ask.")
        clauses = clauses_of(where, schema=self.schema)
        found = law.given_any(clauses)
        error = None if errors is None or not isinstance(law, TableModel) else error_of(clauses, law, errors)
        return found, Probability(value=found.probability, error=error)

    def marginal(self, columns: str | Sequence[str]) -> Marginal:
        """Return the released shares of a few columns, without drawing rows.

        Parameters
        ----------
        columns
            A name, or several different ones; their cells together at most ten million.

        Raises
        ------
        InvalidParameter
            If there is no such column, no answer, too large a table, or the learner has a density without cells.

        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        known = [column.name for column in self.schema.read]
        if not names or len(set(names)) < len(names) or not set(names) <= set(known):
            raise InvalidParameter(f"columns must be different ones of {listed(known)}.")
        law = self.release.law
        if law is None or not law.has_shares:
            reason = "the learner has a density without cells" if self.answered else "there was no answer"
            raise InvalidParameter(f"there are no released shares, because {reason}: draw rows, or use tables.")
        cells = tuple(self._cells_of(name) for name in names)
        if math.prod(map(len, cells)) > _MOST_CELLS:
            raise InvalidParameter("columns have more than ten million cells together: ask for fewer.")
        return Marginal(columns=names, cells=cells, shares=law.shares(names))

    def _cells_of(self, name: str) -> tuple[Cell, ...]:
        column = next(column for column in self.schema.read if column.name == name)
        if column.is_label:
            return (*column.categories, None)
        if self.release.errors is None:
            raise InvalidParameter(f"column {shown(name)} was not cut into cells.")
        edges = self.release.errors.columns[name].edges
        return (*pairwise(edges), None)

    def account(self) -> dict[str, Any]:
        """Return what was promised, to whom, what ran, and what to expect: the content of every report, as plain data.

        The keys are those of release.json, see ``docs/report.md``.
        """
        return account(
            self.release,
            units=self.release.units,
            unit_column=self.schema.unit,
            written=self.terms.written,
            learner=self.release.learner,
            warnings=self.verdicts,
            **_expected(self.release.errors),
        )

    def report(self, path: Path | str, *, rows: int = _REPORTED_ROWS, seed: int | None = None) -> None:
        """Write the report for the world: a page if the path ends in .html, release.json if in .json.

        A file that is there is replaced.

        Parameters
        ----------
        path
            Where to.
        rows, seed
            Of the synthetic rows whose shares it shows.

        Raises
        ------
        InvalidParameter
            If there was no answer, or the path cannot be written.

        """
        kind = Path(path).suffix.lower()
        if kind not in {".html", ".json"}:
            raise InvalidParameter("path must end in .html, for people, or in .json, for machines.")
        target = check_output(Path(path), option="path", force=True, inputs=[])
        content = self.report_of(self.cells(rows, seed=seed))
        written = report_page(content).encode() if kind == ".html" else release_json(content).encode("ascii")
        write_file(target, written)

    def save(self, path: Path | str) -> None:
        """Write the release to a file, from which `load` makes it again: equal laws, equal rows for equal seeds.

        The file is a zip of JSON and arrays of released numbers. It holds the schema, the account and what was
        released; no record, no path of this machine.

        Parameters
        ----------
        path
            Where to; a file that is there is replaced.

        Raises
        ------
        InvalidParameter
            If there was no answer, or the path cannot be written.

        """
        target = check_output(Path(path), option="path", force=True, inputs=[])
        write_file(target, self.kept())

    def kept(self) -> bytes:
        """Return the content of the file that `save` writes.

        Raises
        ------
        InvalidParameter
            If there was no answer.

        """
        if not self.answered:
            raise InvalidParameter("there was no answer, so there is no model to keep.")
        return kept(self, kinds=_KINDS, format=_MODEL_FORMAT, version=_MODEL_VERSION, shown=self.account())

    @staticmethod
    def load(path: Path | str) -> "SyntheticTable":
        """Return the release that a file holds. Nothing in the file is executed, and nothing is spent.

        Parameters
        ----------
        path
            Of a file that `save`, or ``accord synth --model``, wrote.

        Raises
        ------
        InvalidParameter
            If there is no such file, or it is damaged.

        """
        return SyntheticTable.of_kept(content_of(Path(path)))

    @staticmethod
    def of_kept(content: bytes) -> "SyntheticTable":
        """Return the release that the content of a file holds, as `load`."""
        found, shown = restored(
            content, kinds=_KINDS, format=_MODEL_FORMAT, versions=range(2, _MODEL_VERSION + 1), what=SyntheticTable
        )
        assert isinstance(found, SyntheticTable)  # noqa: S101 - the kind that was asked for
        if shown != json.loads(json.dumps(found.account())):
            raise InvalidParameter("the file shows another account than that of what it holds: it was changed by hand.")
        return found

    def report_of(self, cells: Columns) -> Report:
        """Return the content of a report on these synthetic rows."""
        columns, pairs = tables_of(cells, schema=self.schema, errors=self.release.errors)
        return Report(
            version=__version__,
            account=self.account(),
            claims=tuple(_claims(self.schema)),
            seeded=self.terms.seed is not None,
            rows=len(cells[0]),
            columns=columns,
            pairs=pairs,
            budget={} if self.ledger is None else {"words": self.ledger.words},
        )


def _of_parts(**parts: Any) -> SyntheticTable:  # noqa: ANN401 - checked by their kinds
    """Return a release from which one row was drawn, so that parts that do not go together are found out."""
    found: SyntheticTable = checked(SyntheticTable)(**parts)
    law = found.release.law
    if law is None or law.schema != found.schema:
        raise InvalidParameter("these are not the parts of a release.")
    found.account()
    columns_as_table(found.cells(1, seed=1), schema=found.schema)
    return found


_KINDS: Final = {**KINDS, "synthetic table": Kind(SyntheticTable, make=_of_parts)}


def _expected(errors: TableErrors | None) -> dict[str, Any]:
    """Return the expected error of each column and measured pair; nothing is said of others."""
    if errors is None:
        return {"expected_errors": {}, "expected_pair_errors": []}
    return {
        "expected_errors": {name: column.error for name, column in errors.columns.items()},
        "expected_pair_errors": [
            {"names": list(names), "expected_error": pair.error, "merged_share": pair.merged}
            for names, pair in errors.pairs.items()
        ],
    }


def _claims(schema: Schema) -> list[Claim]:
    """Return what the schema states, which is taken as public knowledge."""
    by = "the schema: whoever wrote it says that it was not read off the rows"
    claims = []
    for column in schema.read:
        stated = []
        if column.categories:
            stated.append(f"{len(column.categories)} labels")
        if column.bounds is not None:
            stated.append("bounds")
        if column.edges:
            stated.append("edges of bins")
        if stated:
            claims.append(Claim(what=f"{column.name}: {' and '.join(stated)} are public knowledge", by=by))
    if schema.unit is not None:
        claims.append(Claim(what=f"all records of one unit of privacy have the same {schema.unit}", by=by))
    return claims
