"""How the numbers of a declared table become codes: public plans, and cuts that look at the data privately."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.budget import NOTHING, Budget
from accord.core.errors import InvalidParameter, NotEnoughRecords, NothingReleased
from accord.core.guarantee import ApproxDP
from accord.core.release import named
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.location.locate import LocationPlan, locate, location_plan
from accord.marginals import NumericBinning
from accord.tables import Column, Table
from accord.tables.names import listed, shown

__all__ = ["Cut", "CutPlan", "check_cuts", "cut_plan", "make_cuts", "public_binning"]

_ATOMS_SHARE, _LARGEST_ATOMS_SHARE, _FEWEST_ATOMS = Fraction(2, 5), Fraction(3, 5), 4
_CONSTANT = Fraction(3, 5)
_WHOLE_CELLS = 64
_MOST_MULTIPLES, _ROUNDED = 1 << 15, 6
_HAIR, _HAIR_OF_ZERO = 2.0**-26, 2.0**-46
"""So much of a located constant, or so far from zero, is no spread: ends this close say that the column is constant."""
_LEAST_EPSILON = Fraction(1, 10_000)
"""With cells that are found privately; the tables of any cells can be planned from it on, and are noise below it."""

_EDGES, _WHOLE, _QUANTILES = "declared edges", "whole numbers", "private quantiles"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How the numbers of one column become codes.

    Parameters
    ----------
    name
        Of the column.
    how
        "declared edges", "whole numbers" between declared bounds, or "private quantiles".
    cells
        At most so many.
    quantiles
        What it spends on private quantiles; nothing for the other cuts.
    atoms
        So many values that many records share get a cell of their own, at most; private quantiles look for them too.
    frequent
        What it spends on finding these.

    """

    name: str
    how: str
    cells: int
    quantiles: Budget = NOTHING
    atoms: int = 0
    frequent: Budget = NOTHING

    @property
    def budget(self) -> Budget:
        """What it spends."""
        return self.quantiles + self.frequent

    @property
    def most_cells(self) -> int:
        """Cells of the column at most: an atom splits the cell that it is in, and has one of its own."""
        return self.cells + 2 * self.atoms


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CutPlan:
    """The cuts of all columns of numbers, and how columns without bounds are located before.

    Parameters
    ----------
    cuts
        One for each column of numbers, in their order.
    located
        Names of the columns that have neither bounds nor edges.
    location
        How these are located together; None if there are none.

    """

    cuts: tuple[Cut, ...]
    located: tuple[str, ...]
    location: LocationPlan | None

    @property
    def budget(self) -> Budget:
        """What all of it spends."""
        first = NOTHING if self.location is None else self.location.budget
        return sum((cut.budget for cut in self.cuts), first)


def cut_plan(
    columns: Sequence[Column], *, units: int, cells: int, quantiles: Budget, locating: Sequence[Budget]
) -> CutPlan:
    """Return the cuts of the columns of numbers among these: a function of public facts.

    Parameters
    ----------
    columns
        That are read.
    units
        Number of units of privacy.
    cells
        Of a column that is cut at private quantiles, a power of two.
    quantiles
        Of all private quantiles together: each column has an equal part. Nothing is spent where there are none.
    locating
        What locating may spend, from the least: the first that suffices is taken.

    Raises
    ------
    NotEnoughRecords
        If there are too few units to locate columns without bounds; nothing was spent.

    """
    numbers = [column for column in columns if column.is_number]
    fixed = {column.name: _fixed_cut(column) for column in numbers}
    private = [column for column in numbers if fixed[column.name] is None]
    parts = quantiles.split(dict.fromkeys((column.name for column in private), 1)) if private else {}
    cuts = tuple(
        fixed[column.name] or _private_cut(column, units=units, cells=cells, budget=parts[column.name])
        for column in numbers
    )
    located = tuple(column.name for column in private if column.bounds is None)
    return CutPlan(
        cuts=cuts,
        located=located,
        location=_location(located, units=units, locating=locating) if located else None,
    )


def check_cuts(
    plan: CutPlan, columns: Sequence[Column], *, epsilon: Fraction, units: int, several_records: bool
) -> None:
    """Refuse, before anything is spent, what a mechanism of the cuts or of the tables after them would refuse.

    Parameters
    ----------
    plan
        Of these columns.
    columns
        That are read.
    epsilon
        Of the whole release.
    units, several_records
        Number of units of privacy, and whether one may have several records.

    Raises
    ------
    InvalidParameter
        If epsilon or delta are too small for a step; nothing was spent.

    """
    bounded = {column.name for column in columns if column.bounds is not None}
    private = [cut for cut in plan.cuts if cut.budget.epsilon]
    if private and epsilon < _LEAST_EPSILON:
        message = (
            f"epsilon must be at least {float(_LEAST_EPSILON)} for columns of numbers that are cut privately: below it "
            f"all is noise. Nothing was spent."
        )
        raise InvalidParameter(message)
    for cut in private:
        try:
            NumericBinning.check_around(
                epsilon=cut.quantiles.epsilon,
                cells=cut.cells,
                bounded=cut.name in bounded,
                units=units,
                several_records=several_records,
            )
            NumericBinning.check_frequent(epsilon=cut.frequent.epsilon, delta=cut.frequent.delta)
        except InvalidParameter as error:
            message = f"epsilon and delta are too small to cut {shown(cut.name)} into cells: {error} Nothing was spent."
            raise InvalidParameter(message) from None
    if plan.location is not None:
        _ = plan.location.mode


def _location(names: tuple[str, ...], *, units: int, locating: Sequence[Budget]) -> LocationPlan:
    """Return the plan with the first of these budgets that suffices."""
    needed = 0
    for budget in locating:
        try:
            plan = location_plan(units=units, columns=len(names), budget=budget)
        except NotEnoughRecords as error:
            needed = error.needed
            continue
        return plan
    message = (
        f"to find where the numbers of {listed(names)} are, {needed} records or units of privacy are needed at this "
        f"epsilon, and there are {units}: state bounds for them in the schema, or leave them out. Nothing was spent."
    )
    raise NotEnoughRecords(message, needed=needed, present=units)


def _fixed_cut(column: Column) -> Cut | None:
    """Return the cut of a column that needs no look at the data, None for the others."""
    if column.edges:
        return Cut(name=column.name, how=_EDGES, cells=len(column.edges) - 1)
    if column.bounds is not None and _decimals(column) == 0:
        count = math.floor(column.bounds[1]) - math.ceil(column.bounds[0]) + 1
        if 1 <= count <= _WHOLE_CELLS:
            return Cut(name=column.name, how=_WHOLE, cells=count)
    return None


def _private_cut(column: Column, *, units: int, cells: int, budget: Budget) -> Cut:
    """Return a cut at private quantiles; delta is for the values that many records share alone."""
    share = _atoms_share(column, units=units, epsilon=budget.epsilon)
    parts = budget.split({"quantiles": (1 - share, 0), "frequent": (share, 1)})
    return Cut(
        name=column.name,
        how=_QUANTILES,
        cells=cells,
        quantiles=parts["quantiles"],
        atoms=max(_FEWEST_ATOMS, cells // 4),
        frequent=parts["frequent"],
    )


def _atoms_share(column: Column, *, units: int, epsilon: Fraction) -> Fraction:
    """Return the share of a cut's epsilon that looks for values that many records share: more if it finds a constant.

    Noise among so many declared values should not reach 3/5 of the units.
    """
    multiples = _multiples(column)
    if multiples is None:
        return _ATOMS_SHARE
    least, enough = (
        NumericBinning.epsilon_of_frequent(share * units, among=multiples) / epsilon
        for share in (Fraction(1), _CONSTANT)
    )
    if least > _LARGEST_ATOMS_SHARE:
        return _ATOMS_SHARE
    return min(max(_ATOMS_SHARE, enough), _LARGEST_ATOMS_SHARE)


def _multiples(column: Column) -> range | None:
    """Return all numbers that bounds and decimals allow, in the last decimal; None if too many or not declared."""
    decimals = _decimals(column)
    if column.bounds is None or decimals is None:
        return None
    low, high = (round(bound * 10.0**decimals, _ROUNDED) for bound in column.bounds)
    found = range(math.ceil(low), math.floor(high) + 1)
    return found if 1 <= high - low + 1 <= _MOST_MULTIPLES and found else None


def _decimals(column: Column) -> int | None:
    return 0 if column.format is not None or column.kind == "integer" else column.decimals


# --- looking at the data ----------------------------------------------------------------------------------------------


def public_binning(column: Column) -> NumericBinning | None:
    """Return the cells of a column of numbers whose cut needs no look at the data, None for the others."""
    cut = _fixed_cut(column)
    if cut is None:
        return None
    if cut.how == _EDGES or column.bounds is None:
        return NumericBinning(column.edges, decimals=_decimals(column), missing=True)
    first = math.ceil(column.bounds[0])
    return NumericBinning(np.arange(cut.cells + 1) + first - 0.5, decimals=_decimals(column), missing=True)


def make_cuts(
    table: Table, plan: CutPlan, *, promised: ApproxDP, shared: SharedRandomness, source: PrivateRandomness
) -> tuple[NumericBinning, ...]:
    """Return the binning of each column of a table of numbers that are cut privately.

    Formal guarantees
    -----------------
    - Privacy: ``plan.budget`` under replacing one unit, the sum of all steps (theory C2).
    - Not promised: an answer. Where blocks do not agree on where a column is, nothing of it is released.

    Raises
    ------
    NothingReleased
        Naming the columns without an answer.

    """
    places = _places(table, plan, promised=promised, shared=shared, source=source)
    cuts = {cut.name: cut for cut in plan.cuts}
    return tuple(
        _binning(column, cuts[column.name], values, around=places.get(column.name), table=table, source=source)
        for column, values in zip(table.schema.read, table.columns, strict=True)
    )


def _places(
    table: Table, plan: CutPlan, *, promised: ApproxDP, shared: SharedRandomness, source: PrivateRandomness
) -> dict[str, tuple[float, float]]:
    """Return centre and scale of the columns without bounds; a constant has no scale."""
    if plan.location is None:
        return {}
    names = [column.name for column in table.schema.read]
    records = np.column_stack([table.columns[names.index(name)] for name in plan.located])
    numbers = len(table) if table.units is None else table.units
    with named(", ".join(plan.located)):
        found = locate(records, plan.location, numbers=numbers, word=promised.unit, shared=shared, randomness=source)
    if found.without_answer:
        wanting = tuple(plan.located[place] for place in found.without_answer)
        message = (
            f"nothing was released for {listed(wanting)}: the blocks did not agree on where these columns are, or "
            f"found no numbers there. The budget is spent all the same. State bounds for them in the schema, or leave "
            f"them out."
        )
        raise NothingReleased(message, guarantee=promised, columns=wanting)  # all of it was charged
    centre = np.where(np.isnan(found.centre), found.constant, found.centre)
    scale = np.where(np.isnan(found.centre), 0.0, found.scale)
    return {name: (float(centre[place]), float(scale[place])) for place, name in enumerate(plan.located)}


def _binning(
    column: Column,
    cut: Cut,
    values: NDArray[Any],
    *,
    around: tuple[float, float] | None,
    table: Table,
    source: PrivateRandomness,
) -> NumericBinning:
    decimals = _decimals(column)
    clipped = values if column.bounds is None else np.clip(values, *column.bounds)
    with named(column.name):
        released = NumericBinning.private(
            clipped,
            epsilon=cut.quantiles.epsilon,
            cells=cut.cells,
            bounds=column.bounds,
            around=around,
            decimals=decimals,
            missing=True,
            units=table.units,
            randomness=source,
        )
        refined = _only(released.value).with_frequent(
            clipped,
            epsilon=cut.frequent.epsilon,
            delta=cut.frequent.delta,
            most=cut.atoms,
            among=_multiples(column),
            units=table.units,
            randomness=source,
        )
    cells = _only(refined.value)
    return _constant(cells, around, decimals=decimals) or cells


def _constant(
    binning: NumericBinning, around: tuple[float, float] | None, *, decimals: int | None
) -> NumericBinning | None:
    """Return one cell for a column that was located as a constant and of which nothing else was released.

    What was cut between ends a hair apart is noise: cells that no numbers tell apart. Another value that many records
    share has a cell beyond the ends, and then the column is no constant.
    """
    if around is None or around[1] > 0:
        return None
    value = around[0] if decimals is None else round(around[0], decimals)
    reach = max(abs(value) * _HAIR, _HAIR_OF_ZERO, 0.0 if decimals is None else 0.5 * 10.0**-decimals)
    if binning.edges[0] < value - reach or binning.edges[-1] > value + reach:
        return None
    half = 0.0 if decimals is None else 0.5 * 10.0**-decimals
    cell = (value - half, value + half) if half else (value, math.nextafter(value, math.inf))
    return NumericBinning(cell, decimals=decimals, missing=True)


def _only(value: object) -> NumericBinning:
    if not isinstance(value, NumericBinning):  # pragma: no cover - quantiles always have an answer
        raise AssertionError("no cells were released")  # noqa: TRY004 - a fault of ours
    return value
