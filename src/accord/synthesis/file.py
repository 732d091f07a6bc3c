"""What a release is made of, as kinds that a file may hold: released numbers, the schema, and what ran."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP
from accord.core.release import Composed, Stage
from accord.core.verdict import Verdict
from accord.density.columns import ConstantColumns
from accord.distributions import (
    Atoms,
    Categorical,
    Exponential,
    Gamma,
    Mixture,
    Normal,
    Piecewise,
    PointMass,
    Poisson,
    Product,
    ScipyLaw,
    Uniform,
)
from accord.kept import Kind, checked, fields_of
from accord.ledger import Statement
from accord.marginals import Domain, MarginalModel, NumericBinning
from accord.marginals.domain import Column as CodedColumn
from accord.marginals.errors import ColumnError, Grouping, ModelErrors, PairError
from accord.marginals.model import ReleasedNumbers
from accord.synthesis.by_votes import SamplePlan
from accord.synthesis.model import ColumnsLaw, TableModel, table_errors
from accord.synthesis.release import TableRelease
from accord.synthesis.terms import Terms
from accord.tables import Column, Schema
from accord.tables.csv_file import CsvFormat

__all__ = ["KINDS"]


def _guarantee(*, epsilon: Fraction, delta: Fraction, neighbouring: str, unit: str) -> ApproxDP:
    return ApproxDP(epsilon, delta, Neighbouring(neighbouring), unit)


def _pure(*, epsilon: Fraction, neighbouring: str, unit: str) -> PureDP:
    return PureDP(epsilon, Neighbouring(neighbouring), unit)


def _table_model(*, schema: Schema, binnings: tuple[NumericBinning | None, ...], law: MarginalModel) -> TableModel:
    """Return a model of tables whose parts fit together."""
    sizes = [
        len(column.categories) + (not column.required) if binning is None else binning.cells + binning.missing
        for column, binning in zip(schema.read, binnings, strict=True)
    ]
    names = [column.name for column in schema.read]
    if tuple(sizes) != law.domain.shape or names != [column.name for column in law.domain.columns]:
        raise InvalidParameter("these are not the released numbers of a model.")
    return TableModel(schema=schema, binnings=binnings, law=law)


def _release(**parts: Any) -> TableRelease:  # noqa: ANN401 - checked by their kinds
    """Return a release; errors of tables follow from the model."""
    found: TableRelease = checked(TableRelease)(**parts)
    return replace(found, errors=table_errors(found.law)) if isinstance(found.law, TableModel) else found


def _schema(*, columns: tuple[Column, ...], unit: str | None, csv: CsvFormat, target: str | None) -> Schema:
    """Return a schema; the places of files on somebody's machine are not kept."""
    return checked(Schema)(columns=columns, unit=unit, csv=csv, target=target)


def _parts(*names: str) -> Callable[[Any], Mapping[str, Any]]:
    return lambda value: {name: getattr(value, name) for name in names}


def _scipy_law(*, family: str, shapes: tuple[float, ...], loc: float, scale: float) -> ScipyLaw:
    return ScipyLaw(family, *shapes, loc=loc, scale=scale)


def _model_of(**parts: Any) -> MarginalModel:  # noqa: ANN401 - checked by their kinds
    return checked(ReleasedNumbers)(**parts).model()


def _statement(**parts: Any) -> Statement:  # noqa: ANN401 - checked by their kinds
    """Return what a ledger said; its head, which covers times, and how runs ended are in the ledger alone."""
    return checked(Statement)(**parts, unconfirmed=None, head="")


_STATEMENT = ("cap", "spent", "remaining", "charges")
_COLUMN = ("name", "size", "kind", "positions", "other", "missing", "uncounted")
_RELEASE = ("learner", "guarantee", "units", "stages", "model", "sizes", "law")

KINDS: Final[Mapping[str, Kind]] = {
    "release": Kind(TableRelease, _parts(*_RELEASE), _release),
    "terms": Kind(Terms),
    "verdict": Kind(Verdict),
    "ledger": Kind(Statement, _parts(*_STATEMENT), _statement),
    "sizes": Kind(SamplePlan),
    "approximate": Kind(ApproxDP, make=_guarantee),
    "pure": Kind(PureDP, make=_pure),
    "stage": Kind(Stage),
    "composed": Kind(Composed),
    "schema": Kind(Schema, _parts("columns", "unit", "csv", "target"), _schema),
    "declared column": Kind(Column),
    "csv": Kind(CsvFormat),
    "law of columns": Kind(ColumnsLaw),
    "law of tables": Kind(TableModel, _parts("schema", "binnings", "law"), _table_model),
    "marginal model": Kind(MarginalModel, lambda model: fields_of(model.released), _model_of),
    "domain": Kind(Domain, make=Domain),
    "coded column": Kind(CodedColumn, _parts(*_COLUMN), CodedColumn),
    "binning": Kind(NumericBinning, make=NumericBinning),
    "grouping": Kind(Grouping),
    "errors": Kind(ModelErrors),
    "error of a column": Kind(ColumnError),
    "error of a pair": Kind(PairError),
    "constant columns": Kind(ConstantColumns, make=ConstantColumns),
    "atoms": Kind(Atoms, make=Atoms),
    "categorical": Kind(Categorical, make=Categorical),
    "exponential": Kind(Exponential, make=Exponential),
    "gamma": Kind(Gamma, make=Gamma),
    "mixture": Kind(Mixture, make=Mixture),
    "normal": Kind(Normal, _parts("mean", "covariance"), Normal),
    "piecewise": Kind(Piecewise, make=Piecewise),
    "point mass": Kind(PointMass, lambda law: {"value": law.label if law.vector is None else law.vector}, PointMass),
    "poisson": Kind(Poisson, make=Poisson),
    "product": Kind(Product, make=Product),
    "scipy": Kind(ScipyLaw, make=_scipy_law),
    "uniform": Kind(Uniform, make=Uniform),
}
"""All of them; none holds code, or the place of a file."""
