"""The fitted law: of greatest entropy on groups of codes, with a law of its own inside each group."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.core import check as _check
from accord.core.coupling import Measure
from accord.core.errors import InvalidParameter
from accord.core.shared import Generator
from accord.marginals.dense import DenseEngine
from accord.marginals.domain import ColumnKind, Domain
from accord.marginals.errors import Grouping, ModelErrors
from accord.marginals.placing import (
    draw_within,
    even_levels,
    independent_levels,
    latent_correlations,
    place_within,
    prediction_scores,
)
from accord.marginals.tree import TreeEngine

__all__ = ["MarginalModel", "ReleasedNumbers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SWEEPS = 10
_MOST_BALANCED = 1 << 21
_MOST_PAIRS = 2000
_ENOUGH = 20_000
"""Records from which correlations inside groups are taken."""
_NEVER, _LEAST = 1e-300, 1e-100
_MOST_HELD = 1 << 27
"""Cells of a model that is read, at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalModel:
    """A law on records of codes, made of released numbers only.

    Formal guarantees
    -----------------
    - Law: `sample` draws independent records of exactly the law (up to floats) that `marginal` and `log_density` state.
    - `rounded` returns records whose pair tables are the law's up to about one record a cell. Each record still looks
      like the law; the records are not independent. That is what to release where a table of the same size is wanted:
      independent records add an error of their own, the larger one for large n (as if the data were drawn again).
    - Not promised: that unmeasured tables fit, or that rare cells are right: see the plan's errors.

    Parameters
    ----------
    domain
        The columns.
    measured
        Tables that were measured, as positions of columns.
    total
        n, the number of units of privacy.
    edges
        Where the cells of a column with a grid begin and end, in numbers, by the column's position.
    errors
        How far each column and each measured pair is expected to be from the records, by the noise that was used and
        the codes that were put together.

    """

    domain: Domain
    measured: tuple[tuple[int, ...], ...]
    total: int
    edges: Mapping[int, tuple[float, ...]]
    errors: ModelErrors
    _engine: DenseEngine | TreeEngine
    _potentials: tuple[Floats, ...]
    _groupings: tuple[Grouping, ...]

    @property
    def released(self) -> "ReleasedNumbers":
        """The numbers that make this model."""
        return ReleasedNumbers(
            domain=self.domain,
            measured=self.measured,
            total=self.total,
            edges=self.edges,
            errors=self.errors,
            dense=isinstance(self._engine, DenseEngine),
            tables=self._engine.tables,
            potentials=self._potentials,
            groupings=self._groupings,
        )

    @property
    def dimension(self) -> int:
        """Number of columns of a record."""
        return self.domain.dimension

    @property
    def measure(self) -> Measure:
        """Counting measure on codes."""
        return Measure.COUNTING

    @property
    def cells(self) -> int:
        """Number of cells that the fit keeps track of."""
        return self._engine.cells

    def marginal(self, columns: Iterable[str | int]) -> Floats:
        """Return the probabilities of a table.

        Parameters
        ----------
        columns
            Names or positions; their table should have at most some millions of cells.

        Returns
        -------
        array
            One axis a column, in the order given.

        Raises
        ------
        InvalidParameter
            If there is no such column.

        """
        places = self.domain.places(columns)
        shape = [self._groupings[place].groups for place in places]
        table = self._engine.table(self._potentials, places).reshape(shape)
        for axis, place in enumerate(places):
            grouping = self._groupings[place]
            spread = np.take(table, grouping.group_of, axis=axis)
            table = spread * grouping.within.reshape([-1 if other == axis else 1 for other in range(len(places))])
        return table

    def sample(self, size: int, generator: Generator) -> Ints:
        """Return independent records of codes, shape (size, d)."""
        count = _check.integer("size", size, least=0)
        groups = self._engine.sample(self._potentials, count, independent_levels, generator)
        return np.stack(
            [draw_within(grouping, groups[:, column], generator) for column, grouping in enumerate(self._groupings)],
            axis=1,
        )

    def rounded(self, size: int, generator: Generator, *, sweeps: int = _SWEEPS) -> Ints:
        """Return records whose one- and two-column tables are the law's, rounded, shape (size, d).

        Parameters
        ----------
        size
            At least 0.
        generator
            Where the choices come from.
        sweeps
            How often, at most, each cell of each record may change.

        """
        count = _check.integer("size", size, least=0)
        sweeps = _check.integer("sweeps", sweeps, least=0)
        groups = self._engine.sample(self._potentials, count, even_levels, generator)
        groups = groups[generator.permutation(count)]
        if sweeps and count:
            groups = self._balanced(groups, sweeps, generator)
        return self._placed(groups, generator)

    def _balanced(self, groups: Ints, sweeps: int, generator: Generator) -> Ints:
        from accord.marginals.rounding import balance  # noqa: PLC0415 - compiled at its first use: slow to import

        shape = self._engine.shape
        pairs = [*combinations(range(len(shape)), 2)]
        if len(pairs) > _MOST_PAIRS:  # the others are as far off as any drawn rows are
            pairs = sorted({pair for table in self.measured for pair in combinations(sorted(table), 2)})
        tables = [
            table
            for table in [*((column,) for column in range(len(shape))), *pairs]
            if int(np.prod([shape[column] for column in table])) <= _MOST_BALANCED
        ]
        return balance(
            groups,
            shape=shape,
            tables=tables,
            expected=[len(groups) * one for one in self._engine.several(self._potentials, tables)],
            factors=self._engine.tables,
            potentials=self._potentials,
            sweeps=sweeps,
            word=int(generator.integers(0, 1 << 63)),
        )

    def _placed(self, groups: Ints, generator: Generator) -> Ints:
        """Return codes for groups; columns of numbers in turn, so that they go along with those already placed."""
        codes = np.empty(groups.shape, dtype=np.int64)
        numbers = self.numbers
        columns = self.domain.columns
        correlations = None
        if len(numbers) > 1:
            drawn = groups
            if len(groups) < _ENOUGH:
                drawn = self._engine.sample(self._potentials, _ENOUGH, even_levels, generator)
            correlations = latent_correlations(numbers, columns, self._groupings, drawn)
        values = np.zeros(groups.shape[::-1])
        for column, grouping in enumerate(self._groupings):
            if correlations is not None and column in numbers:
                before = [other for other in numbers if other < column]
                scores = prediction_scores(
                    column, before, correlations=correlations, values=values, generator=generator
                )
            else:
                scores = generator.random(len(groups))
            codes[:, column] = place_within(grouping, groups[:, column], scores)
            if column in numbers:
                present = codes[:, column] < columns[column].values
                placed = np.array(columns[column].positions)[codes[present, column]]
                if placed.size:
                    values[column, present] = (placed - placed.mean()) / (placed.std() or 1.0)
        return codes

    def given(self, weights: Mapping[int, Floats]) -> "tuple[float, MarginalModel | None]":
        """Return the probability of a condition, and the law given it; None where it is impossible.

        Parameters
        ----------
        weights
            Of some columns, by position: for each code the probability, from 0 to 1, that it fulfils its part of the
            condition; the parts are independent of each other given the codes.

        """
        groupings, factors = list(self._groupings), list(self._potentials)
        for column, weight in weights.items():
            grouping = groupings[column]
            inside = grouping.within * weight
            share = np.bincount(grouping.group_of, weights=inside, minlength=grouping.groups)
            within = np.where(share[grouping.group_of] > 0, inside / np.maximum(share[grouping.group_of], 1e-300), 0.0)
            groupings[column] = replace(grouping, within=within)
            log_share = np.log(np.maximum(share, _NEVER))
            home = next(place for place, table in enumerate(self._engine.tables) if column in table)
            axes = [-1 if other == column else 1 for other in self._engine.tables[home]]
            shape = [self._engine.shape[other] for other in self._engine.tables[home]]
            factors[home] = (factors[home].reshape(shape) + log_share.reshape(axes)).ravel()
        logs = [self._engine.solve(potentials)[0] for potentials in (factors, self._potentials)]
        probability = float(np.exp(min(logs[0] - logs[1], 0.0)))
        if probability < _LEAST:
            return 0.0, None
        return probability, replace(self, _groupings=tuple(groupings), _potentials=tuple(factors))

    def log_density(self, x: ArrayLike) -> Floats:
        """Return the log probability of each record, shape (n,); -inf for what is no record of codes."""
        records = np.asarray(x)
        if records.ndim == 1 and self.dimension == 1:
            records = records[:, None]
        if records.ndim != 2 or records.shape[1] != self.dimension:
            raise InvalidParameter(f"x must have shape (n, {self.dimension}).")
        with np.errstate(invalid="ignore"):
            numbers = records.astype(np.float64)
            valid = ((numbers >= 0) & (numbers < np.array(self.domain.shape)) & (numbers == np.floor(numbers))).all(1)
        codes = np.where(valid[:, None], numbers, 0).astype(np.int64)
        groups = np.stack(
            [grouping.group_of[codes[:, column]] for column, grouping in enumerate(self._groupings)], axis=1
        )
        logs = np.full(len(codes), -self._engine.solve(self._potentials)[0])
        for table, potential in zip(self._engine.tables, self._potentials, strict=True):
            place = np.zeros(len(codes), dtype=np.int64)
            for column in table:
                place = place * self._engine.shape[column] + groups[:, column]
            logs += potential[place]
        with np.errstate(divide="ignore"):
            for column, grouping in enumerate(self._groupings):
                logs += np.log(grouping.within[codes[:, column]])
        return np.where(valid, logs, -np.inf)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Positions of the columns of numbers."""
        return tuple(place for place, column in enumerate(self.domain.columns) if column.kind is ColumnKind.NUMBER)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedNumbers:
    """All that makes a `MarginalModel`, as plain numbers that may be written down and read again.

    Parameters
    ----------
    domain, measured, total, edges, errors
        As in `MarginalModel`.
    dense
        Whether all cells are held at once, or those of the cliques of a junction tree.
    tables, potentials
        Positions of the columns of each table, and a logarithm of a weight for each of its cells, flat.
    groupings
        The groups of each column.

    """

    domain: Domain
    measured: tuple[tuple[int, ...], ...]
    total: int
    edges: Mapping[int, tuple[float, ...]]
    errors: ModelErrors
    dense: bool
    tables: tuple[tuple[int, ...], ...]
    potentials: tuple[Floats, ...]
    groupings: tuple[Grouping, ...]

    def model(self) -> MarginalModel:
        """Return the model.

        Raises
        ------
        InvalidParameter
            If the numbers do not fit together, or make a model larger than any that is released.

        """
        if not (self._has_groups() and self._has_tables() and self._has_errors()):
            raise InvalidParameter("these are not the released numbers of a model.")
        shape = tuple(grouping.groups for grouping in self.groupings)
        if self.dense and math.prod(shape) > _MOST_HELD:
            raise InvalidParameter("the model has more cells than any that is released.")
        engine = DenseEngine(shape, self.tables) if self.dense else TreeEngine(shape, self.tables)
        if engine.cells > _MOST_HELD:
            raise InvalidParameter("the model has more cells than any that is released.")
        return MarginalModel(
            domain=self.domain,
            measured=self.measured,
            total=self.total,
            edges=self.edges,
            errors=self.errors,
            _engine=engine,
            _potentials=self.potentials,
            _groupings=self.groupings,
        )

    def _has_groups(self) -> bool:
        return len(self.groupings) == self.domain.dimension and all(
            one.counts.ndim == 1 == one.group_of.ndim
            and len(one.counts) == len(one.deviations) > 0
            and one.group_of.shape == one.within.shape == (size,)
            and set(np.unique(one.group_of)) == set(range(one.groups))
            and bool((one.within >= 0).all())
            and bool(np.isfinite(one.within).all())
            for one, size in zip(self.groupings, self.domain.shape, strict=True)
        )

    def _has_tables(self) -> bool:
        shape = [grouping.groups for grouping in self.groupings]
        every = range(len(shape))
        known = all(
            set(table) <= set(every) and list(table) == sorted(set(table)) and table
            for table in (*self.tables, *self.measured)
        )
        return (
            known
            and len(self.tables) == len(self.potentials)
            and set(every) == set().union(*self.tables)
            and all(
                potential.shape == (math.prod(shape[column] for column in table),)
                and not np.isnan(potential).any()
                and -np.inf < float(potential.max()) < np.inf
                for table, potential in zip(self.tables, self.potentials, strict=True)
            )
        )

    def _has_errors(self) -> bool:
        columns = range(self.domain.dimension)
        return (
            self.total >= 1
            and set(self.edges) <= set(columns)
            and len(self.errors.columns) == self.domain.dimension
            and all(
                one.low.shape == one.high.shape == (size,)
                for one, size in zip(self.errors.columns, self.domain.shape, strict=True)
            )
            and all(set(pair) <= set(columns) for pair in self.errors.pairs)
        )
