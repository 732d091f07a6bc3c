"""What will be measured with which budget: decided by public facts, before a record is read."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import combinations
from typing import final

from accord.accounting.losses import ExponentialLoss, PrivacyLoss
from accord.accounting.noise_losses import ConcentratedLoss, DiscreteGaussianLoss, DiscreteLaplaceLoss
from accord.accounting.of_stages import LARGEST_EXACT, Losses, composed_epsilon
from accord.core.errors import InvalidParameter
from accord.core.guarantee import ApproxDP
from accord.marginals.domain import Column, ColumnKind, Domain

__all__ = [
    "CHOICE",
    "CHOSEN",
    "EDGE",
    "FULL",
    "HEAVIEST",
    "LARGEST_SCORE",
    "PRODUCTS",
    "RARE",
    "ROOT_2",
    "SCORE",
    "SQUARES",
    "TREE",
    "ExpectedError",
    "MarginalPlan",
    "Mode",
    "Noise",
    "Step",
    "calibrated",
    "column_name",
    "expected_error",
    "make_plan",
    "pair_name",
    "planned_losses",
    "sizes_of",
    "total_epsilon",
]


ROOT_2 = Fraction(14143, 10000)
"""Just above the square root of 2."""

_GRAIN = 256
_FINEST = 1 << 30
_TIGHT = Fraction(998, 1000)
_MOST_TRIES = 40


class Noise(Enum):
    """The mechanism of a step."""

    GAUSSIAN = "discrete Gaussian"
    LAPLACE = "discrete Laplace"
    NUMBER = "discrete Gaussian on one number"
    CHOICE = "exponential mechanism"


@final
@dataclass(frozen=True, slots=True)
class Step:
    """Releases of one kind, planned before a record is read.

    Parameters
    ----------
    what
        For people: what is released.
    noise
        The mechanism.
    times
        How many releases, each with a fresh draw.
    number
        Standard deviation of Gaussian noise, scale of Laplace noise, or epsilon of a choice. Counts are in units of
        1 / ``whole`` of a unit of privacy.
    moved
        How far one unit of privacy moves the query: whole / 1 for a table (the weight that leaves one cell and enters
        another), the largest change for a number or for a score. A unit's records share its weight, so it is the same
        whatever their number is in either of two neighbours and wherever they stand.
    single
        Whether it counts one column, before all others.

    """

    what: str
    noise: Noise
    times: int
    number: Fraction
    moved: int
    single: bool = False

    def words(self, whole: int) -> str:
        """Return its number with what it is, where a unit of privacy weighs ``whole``."""
        number = float(self.number) if self.noise is Noise.CHOICE else float(self.number) / whole
        label = {Noise.CHOICE: "epsilon", Noise.LAPLACE: "scale"}.get(self.noise, "standard deviation")
        return f"{label} {number:.4g}"

    def losses(self, *, exact: bool) -> list[tuple[PrivacyLoss, int]]:
        """Return the losses of all its releases and how often each occurs.

        ``exact`` says that a unit of privacy is one record: then a table's neighbours differ by 1 in two cells, and
        each of the two noises is discrete Gaussian on one integer. Otherwise any number of cells moves, by up to
        a unit's weight together, and a loss is returned that is known by its moments alone.
        """
        if self.noise is Noise.CHOICE:
            return [(ExponentialLoss(self.number), self.times)]
        if self.noise is Noise.LAPLACE:
            return [(DiscreteLaplaceLoss(2 * self.moved / self.number, 2 * self.moved), self.times)]
        if exact:
            cells = 1 if self.noise is Noise.NUMBER else 2
            return [(DiscreteGaussianLoss(sigma=self.number, shift=self.moved), cells * self.times)]
        distance = self.moved if self.noise is Noise.NUMBER else self.moved * ROOT_2
        return [(ConcentratedLoss((distance / self.number) ** 2 / 2), self.times)]

    def quieter(self, factor: float) -> "Step":
        """Return it with this much more noise, rounded to the safe side."""
        if self.noise is Noise.CHOICE:
            number = Fraction(math.floor(float(self.number) / factor * _FINEST), _FINEST)
        else:
            number = Fraction(math.ceil(float(self.number) * factor * _GRAIN), _GRAIN)
        return replace(self, number=number)


def total_epsilon(steps: Sequence[Step], *, delta: Fraction, one_record: bool) -> Fraction | None:
    """Return an epsilon that all steps together have at this delta, adaptively; None where none is known."""
    try:
        losses, exact = planned_losses(steps, one_record=one_record)
    except InvalidParameter:
        return None
    return composed_epsilon(losses, delta=delta, exact=exact)


def planned_losses(steps: Sequence[Step], *, one_record: bool) -> tuple[Losses, bool]:
    """Return the losses of all steps with how often each occurs, and whether each is the mechanism's own."""
    exact = one_record and all(step.number <= LARGEST_EXACT for step in steps if step.noise is not Noise.CHOICE)
    found: Counter[PrivacyLoss] = Counter()
    for step in steps:
        for loss, times in step.losses(exact=exact):
            found[loss] += times
    return frozenset(found.items()), exact


def calibrated(steps: Sequence[Step], *, epsilon: Fraction, delta: Fraction, one_record: bool) -> tuple[Step, ...]:
    """Return the steps with the least common factor on their noise, to two parts in a thousand, that keeps the budget.

    Raises
    ------
    InvalidParameter
        If no amount of noise in reach does.

    """

    def spent(factor: float) -> Fraction | None:
        return total_epsilon([step.quieter(factor) for step in steps], delta=delta, one_record=one_record)

    factor = _search(spent, epsilon)
    if factor is None:
        raise InvalidParameter(
            "epsilon and delta must leave room for the planned steps: ask for fewer or a larger epsilon."
        )
    return tuple(step.quieter(factor) for step in steps)


def _search(spent: Callable[[float], Fraction | None], epsilon: Fraction) -> float | None:
    """Return a factor that spends at most epsilon: first by proportion, then by halving between too much and enough."""
    factor, too_little, enough = 1.0, 0.0, math.inf
    for _ in range(_MOST_TRIES):
        found = spent(factor)
        if found is not None and found <= epsilon:
            enough = min(enough, factor)
            if found >= _TIGHT * epsilon or enough <= too_little * (1 + 1e-3):
                return enough
        else:
            too_little = max(too_little, factor)
        guess = (
            factor * 2
            if found is None
            else factor * float(found / epsilon) * (1 - 1e-4 if found < epsilon else 1 + 1e-4)
        )
        inside = too_little * (1 + 1e-6) < guess < enough * (1 - 1e-6)
        factor = guess if inside else ((too_little + enough) / 2 if math.isfinite(enough) else 2 * too_little)
    return enough if math.isfinite(enough) else None


Mode = str
_MEAN_SIZE = math.sqrt(2 / math.pi)
SCORE = 2
"""Standard scores are in halves."""
LARGEST_SCORE = 2 * SCORE
"""They are cut off at two."""
HEAVIEST = 4
"""The largest weight of a score; the others are smaller whole numbers. Every choice is charged for it."""


@final
@dataclass(frozen=True, slots=True)
class ExpectedError:
    """How far the noise that is planned for one table moves it at most, before a record is read.

    The model is fitted to all tables together and shrinks what is rare, which makes it less; rare codes that are put
    together are in it as if each was counted. What came out, a model's ``errors`` say.

    Parameters
    ----------
    columns
        Names of the table's columns.
    cells
        Of the table.
    error
        Mean total variation distance by noise, at most 1.

    """

    columns: tuple[str, ...]
    cells: int
    error: float

    @property
    def way(self) -> int:
        """Number of columns."""
        return len(self.columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalPlan:
    """All steps of a release, their noise, and the error to expect.

    Parameters
    ----------
    mode
        "full": the table of all columns at once. "pairs": all pairs, then chosen triples. "rounds": chosen tables.
    units
        n, the number of units of privacy.
    whole
        What a unit weighs: 1 for one record.
    steps
        In order; later ones may depend on what earlier ones released.
    promised
        The guarantee.
    spent
        The epsilon that the steps add up to, at most the promised one.
    most_groups
        Into how many groups an ordered column's codes are put at most.
    number_groups
        The same for numbers: so few that the noise of two such columns' table is not large for n.
    errors
        Expected error of each column, and of each table of more columns that is measured for certain.

    """

    mode: Mode
    units: int
    whole: int
    steps: tuple[Step, ...]
    promised: ApproxDP
    spent: Fraction
    most_groups: int
    number_groups: int
    errors: tuple[ExpectedError, ...]

    def step(self, what: str) -> Step | None:
        """Return the step with this name, or None."""
        return next((step for step in self.steps if step.what == what), None)

    @property
    def expected_errors(self) -> dict[str, float]:
        """Mean total variation by noise at most, of each column by its own noise, as planned."""
        return {error.columns[0]: error.error for error in self.errors if error.way == 1}

    def lines(self) -> list[str]:
        """Return the plan in words and numbers."""
        found = [
            (
                f"mode {self.mode}: {self.units} units; epsilon {float(self.promised.epsilon):g}, of which "
                f"{float(self.spent):.6g} is spent, and delta {float(self.promised.delta):g}"
            )
        ]
        found.extend(f"{step.times} x {step.what}: {step.noise.value}, {step.words(self.whole)}" for step in self.steps)
        found.extend(
            f"{' by '.join(error.columns)}: {error.cells} cells, mean total variation by noise at most "
            f"{error.error:.4f}"
            for error in self.errors
        )
        return found


def sizes_of(shape: Sequence[int], tables: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the number of cells of tables."""
    return [math.prod(shape[column] for column in table) for table in tables]


def noise_size(cells: float, deviation: float) -> float:
    """Return the mean L1 size of Gaussian noise of this deviation."""
    return cells * deviation * _MEAN_SIZE


def expected_error(cells: float, deviation: float, *, units: int) -> float:
    """Return the mean total variation by Gaussian noise of this deviation."""
    return min(1.0, noise_size(cells, deviation) / (2 * units))


FULL = "table of all columns"
PRODUCTS = "sum of products of two columns' scores"
SQUARES = "sum of squared scores of a column"
EDGE = "choice of a pair of the tree"
TREE = "pair of the tree"
CHOICE = "choice of a table"
CHOSEN = "chosen table"
RARE = 3
"""So many deviations of noise a code must hold, by its noisy count, not to be put together with others."""

_LEAST_GROUPS = 12
_ROUND_GROUPS = 32
_LEAST_NUMBER_GROUPS = 6
_LARGEST_SHARES, _MANY_NUMBER_GROUPS = (0.13, 0.04), 24
_SHARE_ONES, _SHARE_CELLS, _SHARE_WIDE, _SHARE_NUMBERS, _SHARE_CHOICES = 0.23, 0.23, 0.42, 0.15, 0.1
_MOST_EXPECTED = 0.25
_MOST_PAIRS = 45
_PART_COARSE, _FEW_COARSE = 0.12, 2
_MOST_PRODUCTS = 12
_SHARE_TREE = 0.3
_SHARE_KNOWN, _MOST_OF_FEW = 0.25, 16
_MOST_NOISE = 0.5
_ROOT_8 = math.sqrt(8)


def make_plan(
    domain: Domain,
    *,
    units: int,
    whole: int,
    promised: ApproxDP,
    max_cells: int,
    triples: float,
    rounds: int | None,
) -> MarginalPlan:
    """Return the plan of `MarginalLearner` for this many units of this weight."""
    budget = _Shares(promised, whole)
    groups = _most_groups(domain, max_cells=max_cells)
    pairs = math.comb(domain.dimension, 2)
    fine = any(column.rounds > 1 for column in domain.columns)
    if not fine and (
        domain.dimension == 1 or (domain.cells <= max_cells and _full_is_better(domain, budget, groups, units))
    ):
        mode, steps, groups = "full", [_full_step(promised, whole)], max(domain.shape)
    elif groups is not None and pairs <= _MOST_PAIRS and rounds is None:
        mode, steps = "pairs", _pair_steps(domain, budget, groups, units=units, triples=triples)
    else:
        mode, groups = "rounds", _ROUND_GROUPS
        steps = _round_steps(domain, budget, rounds)
    one_record = whole == 1
    if mode != "full":
        steps = list(calibrated(steps, epsilon=promised.epsilon, delta=promised.delta, one_record=one_record))
    spent = promised.epsilon if mode == "full" else total_epsilon(steps, delta=promised.delta, one_record=one_record)
    if spent is None:
        message = (
            f"no total is known for these steps at epsilon {float(promised.epsilon):g} and this delta: choose a "
            f"smaller epsilon. Nothing was spent."
        )
        raise InvalidParameter(message)
    return MarginalPlan(
        mode=mode,
        units=units,
        whole=whole,
        steps=tuple(steps),
        promised=promised,
        spent=spent,
        most_groups=groups,
        number_groups=groups if mode == "full" else min(groups, _number_groups(steps, units=units * whole)),
        errors=_errors(domain, steps, groups=groups, units=units * whole),
    )


class _Shares:
    """Shares of the budget as noise, before it is calibrated: by zero-concentrated DP."""

    def __init__(self, promised: ApproxDP, whole: int) -> None:
        reach = math.log(promised.delta.denominator) - math.log(promised.delta.numerator)
        self.rho = (math.sqrt(reach + float(promised.epsilon)) - math.sqrt(reach)) ** 2
        self.epsilon = float(promised.epsilon)
        self.whole = whole

    def table(self, what: str, share: float, *, times: int = 1) -> Step:
        deviation = self.whole * math.sqrt(times / (share * self.rho))
        return Step(what, Noise.GAUSSIAN, times, Fraction(deviation), self.whole)

    def number(self, what: str, share: float, *, times: int, moved: int) -> Step:
        deviation = moved * math.sqrt(times / (2 * share * self.rho))
        return Step(what, Noise.NUMBER, times, Fraction(deviation), moved)

    def choice(self, what: str, share: float, *, times: int) -> Step:
        epsilon = Fraction(_ROOT_8 * math.sqrt(share * self.rho / times))
        return Step(what, Noise.CHOICE, times, epsilon, 2 * self.whole * HEAVIEST)


def column_name(column: Column) -> str:
    """Return what the plan calls the counts of one column."""
    return f"cells of {column.name}" if column.rounds > 1 else f"table of {column.name}"


def pair_name(domain: Domain, table: Sequence[int]) -> str:
    """Return what the plan calls the table of two columns."""
    left, right = (domain.columns[column].name for column in table)
    return f"table of {left} and {right}"


def _most_groups(domain: Domain, *, max_cells: int) -> int | None:
    """Return the most groups of an ordered column with which all cells are at most ``max_cells``; None if too few."""
    largest: int = max(domain.shape)
    for groups in [*range(largest, _LEAST_GROUPS, -1), _LEAST_GROUPS]:
        if math.prod(_capped(domain, int(groups))) <= max_cells:
            return int(groups)
    return None


def _number_groups(steps: Sequence[Step], *, units: int) -> int:
    """Return g such that the noise of a table of g^2 cells, of average deviation, has the largest share allowed.

    It is smaller where groups are many: noise in cells far from where records are pulls numbers apart.
    """
    tables = [step for step in steps if step.noise is Noise.GAUSSIAN and not step.single]
    noise = [float(step.number) for step in tables if step.what != CHOSEN or any(one.what == TREE for one in tables)]
    if not noise:
        return _ROUND_GROUPS
    deviation = sum(noise) / len(noise)
    few, many = (math.isqrt(int(share * 2 * units / noise_size(1, deviation))) for share in _LARGEST_SHARES)
    return max(_LEAST_NUMBER_GROUPS, min(few, _MANY_NUMBER_GROUPS), many)


def _capped(domain: Domain, groups: int) -> tuple[int, ...]:
    return tuple(
        column.size if column.kind is ColumnKind.CATEGORY else min(column.size, groups) for column in domain.columns
    )


def _full_step(promised: ApproxDP, whole: int) -> Step:
    return Step(FULL, Noise.LAPLACE, 1, 2 * whole / promised.epsilon, whole)


def _full_is_better(domain: Domain, budget: _Shares, groups: int | None, units: int) -> bool:
    """Return whether pairs summed from the full table have less noise than pairs measured one by one.

    Not where the full table is mostly noise: cutting it back to a law flattens every column.
    """
    scale = 2 / budget.epsilon
    if groups is None or expected_error(domain.cells, math.sqrt(2) * scale, units=units) > _MOST_NOISE:
        return False
    fine = sizes_of(domain.shape, list(combinations(range(domain.dimension), 2)))
    coarse = sizes_of(_capped(domain, groups), list(combinations(range(domain.dimension), 2)))
    full = [noise_size(size, math.sqrt(2) * scale * math.sqrt(domain.cells / size)) for size in fine]
    deviations = _pair_deviations(coarse, 1.0, budget)
    single = [noise_size(size, deviation / budget.whole) for size, deviation in zip(coarse, deviations, strict=True)]
    return sum(full) <= sum(single)


def _pair_deviations(sizes: Sequence[int], share: float, budget: _Shares) -> list[float]:
    """Return the noise with the least sum of ``size * deviation``: it falls with the cube root of the size."""
    weights = [size ** (1 / 3) for size in sizes]
    factor = budget.whole * math.sqrt(sum(weight**2 for weight in weights) / (share * budget.rho))
    return [factor / weight for weight in weights]


def _pair_steps(domain: Domain, budget: _Shares, groups: int, *, units: int, triples: float) -> list[Step]:
    shape = _capped(domain, groups)
    pairs = list(combinations(range(domain.dimension), 2))
    numbers = sum(column.kind is ColumnKind.NUMBER and column.size > 1 for column in domain.columns)
    share = _SHARE_ONES if all(column.rounds == 1 for column in domain.columns) else _SHARE_CELLS
    steps = _single_steps(domain, budget, share)
    left = 1 - share
    if numbers > 1:
        left -= _SHARE_NUMBERS
    share, times = _chosen(shape, budget, share=triples * left, units=units) if triples > 0 else (0.0, 0)
    chosen = _rounds(budget, share, times) if times else []
    left -= share
    for table, deviation in zip(pairs, _pair_deviations(sizes_of(shape, pairs), left, budget), strict=True):
        steps.append(Step(pair_name(domain, table), Noise.GAUSSIAN, 1, Fraction(deviation), budget.whole))
    return [*steps, *_number_steps(numbers, budget), *chosen]


def _number_steps(numbers: int, budget: _Shares) -> list[Step]:
    if numbers < 2:
        return []
    square = budget.whole * LARGEST_SCORE**2
    share = 2 * _SHARE_NUMBERS / (numbers + 1)
    return [
        budget.number(SQUARES, share, times=numbers, moved=square),
        budget.number(PRODUCTS, _SHARE_NUMBERS - share, times=math.comb(numbers, 2), moved=2 * square),
    ]


def _chosen(shape: tuple[int, ...], budget: _Shares, *, share: float, units: int) -> tuple[float, int]:
    """Return a share of the budget and how many choices: as many as there are columns, if triples may be worth it.

    Where none is, a few choices, by less of the budget, of tables at coarse groups.
    """
    sizes = sorted(sizes_of(shape, list(combinations(range(len(shape)), 3))))
    for rounds in range(min(len(shape), len(sizes)), 0, -1):
        deviation = math.sqrt(rounds / (share * (1 - _SHARE_CHOICES) * budget.rho))
        if expected_error(sizes[rounds - 1], deviation, units=units) <= _MOST_EXPECTED:
            return share, rounds
    return (share * _PART_COARSE, _FEW_COARSE) if sizes else (0.0, 0)


def _rounds(budget: _Shares, share: float, times: int) -> list[Step]:
    return [
        budget.choice(CHOICE, share * _SHARE_CHOICES, times=times),
        budget.table(CHOSEN, share * (1 - _SHARE_CHOICES), times=times),
    ]


def _single_steps(domain: Domain, budget: _Shares, share: float) -> list[Step]:
    """Return the counts of each column, with the least sum of cells times noise that a share of the budget gives."""
    columns = domain.columns
    weights = [(column.rounds / column.size) ** (1 / 3) for column in columns]
    factor = budget.whole * math.sqrt(
        sum(column.rounds / weight**2 for column, weight in zip(columns, weights, strict=True)) / (share * budget.rho)
    )
    return [
        Step(column_name(column), Noise.GAUSSIAN, column.rounds, Fraction(factor * weight), budget.whole, single=True)
        for column, weight in zip(columns, weights, strict=True)
    ]


def _round_steps(domain: Domain, budget: _Shares, rounds: int | None) -> list[Step]:
    """Return the counts of columns, a tree of pairs, and tables that are chosen a few at a time."""
    dimension = domain.dimension
    if dimension == 1:
        return _single_steps(domain, budget, 1.0)
    numbers = sum(column.kind is ColumnKind.NUMBER and column.size > 1 for column in domain.columns)
    products = _number_steps(numbers, budget) if numbers <= _MOST_PRODUCTS else []
    known = all(column.rounds == 1 for column in domain.columns) and dimension <= _MOST_OF_FEW
    singles = _SHARE_KNOWN if known else _SHARE_WIDE
    left = 1 - singles - (_SHARE_NUMBERS if products else 0)
    times = dimension - 1
    tree = [
        budget.choice(EDGE, _SHARE_TREE * _SHARE_CHOICES * left, times=times),
        budget.table(TREE, _SHARE_TREE * (1 - _SHARE_CHOICES) * left, times=times),
    ]
    later = _rounds(budget, (1 - _SHARE_TREE) * left, 2 * dimension if rounds is None else rounds)
    return [*_single_steps(domain, budget, singles), *tree, *products, *later]


def _errors(domain: Domain, steps: Sequence[Step], *, groups: int, units: int) -> tuple[ExpectedError, ...]:
    """Return the expected error of each column and of each table that is measured for certain, from its own noise."""
    names = [column.name for column in domain.columns]
    ones, tables = _certain(domain, steps, groups=groups)
    found = []
    for place, (size, one) in enumerate(zip(domain.shape, ones, strict=True)):
        precision = one**-2 if one else 0.0
        # Rare codes are put together by the column's own counts: then no other table counts them one by one.
        if not one or size * RARE * one <= units:
            for table, of, deviation in tables:
                if place in table:
                    precision += of[place] / (math.prod(of[column] for column in table) * deviation**2)
        found.append(_expected((names[place],), size, 1 / math.sqrt(precision), units=units))
    for table, of, deviation in tables:
        cells = math.prod(of[column] for column in table)
        found.append(_expected(tuple(names[column] for column in table), cells, deviation, units=units))
    return tuple(found)


def _certain(
    domain: Domain, steps: Sequence[Step], *, groups: int
) -> tuple[list[float], list[tuple[tuple[int, ...], tuple[int, ...], float]]]:
    """Return the noise of each column, 0 if it is not counted alone, and each larger table's columns, shape, noise."""
    pairs = {pair_name(domain, pair): pair for pair in combinations(range(domain.dimension), 2)}
    singles = {step.what: float(step.number) for step in steps if step.single}
    ones = [singles.get(column_name(column), 0.0) for column in domain.columns]
    tables = []
    for step in steps:
        if step.what == FULL:
            deviation = math.sqrt(2) * float(step.number)
            ones = [deviation] if domain.dimension == 1 else ones
            tables += [] if domain.dimension == 1 else [(tuple(range(domain.dimension)), domain.shape, deviation)]
        elif step.what in pairs:
            tables.append((pairs[step.what], _capped(domain, groups), float(step.number)))
    return ones, tables


def _expected(columns: tuple[str, ...], cells: int, deviation: float, *, units: int) -> ExpectedError:
    return ExpectedError(columns, cells, expected_error(cells, deviation, units=units))
