"""Find out privately what the columns of a table are: forms of cells, frequent labels, locations and scales."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord.accounting.of_stages import settled
from accord.core.blocks import Progress
from accord.core.budget import Budget
from accord.core.coupling import ABSTAIN
from accord.core.errors import InvalidParameter, NotEnoughRecords
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring
from accord.core.records import Records
from accord.core.release import NoAnswerType, Release, composing, named
from accord.core.secret import PrivateRandomness, require_private
from accord.core.shared import SharedRandomness, require_shared, uniform_open
from accord.core.spending import spending
from accord.ledger import Ledger
from accord.location.locate import LocationPlan, locate, location_plan
from accord.noise.discrete_laplace import DiscreteLaplace
from accord.noise.thresholded_counts import ThresholdedCounts

__all__ = ["FORMS", "Discovered", "discover"]

FORMS: Mapping[str, str] = {
    "integer": r"^[+-]?(0|[1-9][0-9]{0,14})$",
    "number": r"^[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][+-]?[0-9]+)?$",
    "boolean": r"^(true|false|True|False|TRUE|FALSE)$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "datetime": r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
}
"""Forms that a cell can have, the first that fits; other texts and missing cells are two more."""

_NAMES = (*FORMS, "text", "missing")
_BEFORE: Mapping[str, tuple[int, int]] = {"forms": (2, 0)}
_AFTER: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "boolean": {"unused": (6, 2)},
    "text": {"labels": (6, 1), "unused": (0, 1)},
    "integer": {"labels": (3, 1), "location": (3, 1)},
    "number": {"labels": (3, 1), "location": (3, 1)},
    "date": {"location": (6, 1), "unused": (0, 1)},
    "datetime": {"location": (6, 1), "unused": (0, 1)},
}
"""What comes after the histogram of forms, by what they say: parts of a column's epsilon and delta."""
_TINY_SHARE = 0.02
_FEW_LEVELS, _COVERED = 200, 0.98
_DAY = 86_400
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What was released of one column.

    Parameters
    ----------
    name
        As in the header, public.
    kind
        "integer", "number", "category", "boolean", "date" or "datetime"; "text" where there are too many labels.
    levels
        Frequent labels with noisy counts, the most frequent first, for a category.
    missing
        Noisy share of missing cells, from 0 to 1.
    centre, scale
        About the median and a robust standard deviation of a column of numbers (dates as days since 1970, datetimes as
        seconds); None where they are not known.

    """

    name: str
    kind: str
    levels: tuple[tuple[str, int], ...] = ()
    missing: float = 0.0
    centre: float | None = None
    scale: float | None = None


def discover(
    cells: Sequence[pa.Array],
    *,
    names: Sequence[str],
    epsilon: Number,
    delta: Number,
    units: Any = None,  # noqa: ANN401 - array-like of labels
    unit: str | None = None,
    shared: SharedRandomness | None = None,
    randomness: PrivateRandomness | None = None,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
) -> Release[tuple[Discovered, ...]]:
    """Release forms, labels, locations and scales of columns whose types nobody has declared.

    Every column gets an equal part of the budget. A quarter of it pays for a histogram of the forms of its cells; what
    follows depends on that: the frequent labels of texts and numbers, location and scale of numbers and dates.

    Formal guarantees
    -----------------
    - Privacy: ``(epsilon, delta)`` under replacing one unit, the sum of all steps (theory C2); steps that need more
      units than there are, are left out by public numbers alone and spend nothing.
    - Of a unit with several records one is looked at, chosen without looking.
    - Not promised: that a kind is right, or that all labels are found: a label is released only if it is frequent.

    Parameters
    ----------
    cells
        Texts of each column, null for missing, as `accord.tables.read_texts` returns them.
    names
        Of the columns.
    epsilon, delta
        Of everything together.
    units, unit, shared, randomness, progress, ledger
        As in `PrivateSampler.release`.

    Raises
    ------
    InvalidParameter
        If there are no columns, or not one name and one length for all of them.

    Source
    ------
    theory S5, C2; Korolova et al. (2009) for labels; proof page ``docs/proofs/discovery.md``.

    """
    source, key = require_private(randomness), require_shared(shared)
    total = Budget.asked(epsilon, delta)
    if not cells or len(cells) != len(names) or len({len(column) for column in cells}) != 1:
        raise InvalidParameter("cells must be columns of one length, at least one, with a name each.")
    given = Records.of(np.zeros(len(cells[0])), units=units, unit=unit)  # the cells are texts, read below
    rows = _one_a_unit(given, randomness=source)
    promised = ApproxDP(total.epsilon, total.delta, Neighbouring.REPLACE_ONE, given.word)
    budgets = total.split(dict.fromkeys(range(len(cells)), 1))
    _check_steps(budgets[0], units=len(rows))
    found = []
    with spending(ledger, promised, what=f"discovery of {len(cells)} columns"), composing("basic") as run:
        for place, (name, column) in enumerate(zip(names, cells, strict=True)):
            if progress is not None:
                progress(place, len(cells), "looking at columns")
            chosen = column.take(pa.array(rows))
            with named(name):
                found.append(
                    _column(name, chosen, budget=budgets[place], shared=key.child("column", place), randomness=source)
                )
    return Release(tuple(found), promised, settled(run, promised))


def _one_a_unit(given: Records, *, randomness: PrivateRandomness) -> NDArray[np.int64]:
    """Return one row of each unit, in the order of units: which one is a secret draw of this unit's own."""
    if given.owners is None:
        return np.arange(given.size)
    counts = np.bincount(given.owners)
    order = np.argsort(given.owners, kind="stable")
    place = np.floor(uniform_open(randomness.words(len(counts))) * counts).astype(np.int64)
    chosen: NDArray[np.int64] = order[np.cumsum(counts) - counts + np.minimum(place, counts - 1)]
    return chosen


def _split(budget: Budget, *, kind: str) -> dict[str, Budget]:
    """Return the parts of one column's budget, where its forms say this."""
    return budget.split({**_BEFORE, **_AFTER[kind]})


def _form_noise(budget: Budget) -> DiscreteLaplace:
    return DiscreteLaplace(sensitivity=2, scale=2 / budget.epsilon)


def _label_counts(budget: Budget) -> ThresholdedCounts:
    return ThresholdedCounts(epsilon=budget.epsilon, delta=budget.delta)


def _check_steps(budget: Budget, *, units: int) -> None:
    """Make every mechanism that a column may need, whatever its kind, and draw nothing; reads no record."""
    try:
        for kind in _AFTER:
            parts = _split(budget, kind=kind)
            _form_noise(parts["forms"])
            if "labels" in parts:
                _label_counts(parts["labels"])
            plan = _plan(units, budget=parts["location"]) if "location" in parts else None
            if plan is not None:
                _ = plan.mode
    except InvalidParameter as error:
        message = f"epsilon and delta are too small for so many columns: {error} Nothing was spent."
        raise InvalidParameter(message) from None


def _column(
    name: str, cells: pa.Array, *, budget: Budget, shared: SharedRandomness, randomness: PrivateRandomness
) -> Discovered:
    count = len(cells)
    forms = _forms(cells)
    noise = _form_noise(_split(budget, kind="text")["forms"])
    with named("what forms its cells have"):
        noisy = np.asarray(noise.release(np.bincount(forms, minlength=len(_NAMES)), randomness=randomness).value)
    shares = dict(zip(_NAMES, np.maximum(noisy, 0) / max(1, count), strict=True))
    kind = _kind(shares)
    missing = float(min(1.0, shares["missing"]))
    if kind == "boolean":
        return Discovered(name=name, kind=kind, missing=missing)
    parts = _split(budget, kind=kind)
    labels: tuple[tuple[str, int], ...] = ()
    if "labels" in parts:
        labels = _labels(cells, budget=parts["labels"], randomness=randomness)
        covered = sum(times for _, times in labels) / max(1.0, count * (1 - missing))
        few = 0 < len(labels) <= _FEW_LEVELS and covered >= _COVERED
        if kind == "text" or (few and len(labels) <= math.isqrt(_FEW_LEVELS)):
            return Discovered(
                name=name, kind="category" if few else "text", levels=labels if few else (), missing=missing
            )
    centre, scale = _location(
        _numbers(cells, kind=kind), budget=parts["location"], shared=shared, randomness=randomness
    )
    return Discovered(name=name, kind=kind, missing=missing, centre=centre, scale=scale)


def _forms(cells: pa.Array) -> NDArray[np.int64]:
    """Return the number of each cell's form; a cell alone decides it."""
    forms = np.full(len(cells), _NAMES.index("text"))
    for place in reversed(range(len(FORMS))):
        fits = pc.fill_null(pc.match_substring_regex(cells, list(FORMS.values())[place]), fill_value=False)
        forms[fits.to_numpy(zero_copy_only=False)] = place
    forms[pc.is_null(cells).to_numpy(zero_copy_only=False)] = _NAMES.index("missing")
    return forms


def _kind(shares: Mapping[str, float]) -> str:
    """Return what most cells are; a few odd ones are read as missing later."""
    present = max(1e-9, sum(share for form, share in shares.items() if form != "missing"))
    if present < _TINY_SHARE:
        return "text"
    parts = {form: share / present for form, share in shares.items()}
    if parts["integer"] + parts["number"] >= 1 - _TINY_SHARE:
        return "number" if parts["number"] > _TINY_SHARE else "integer"
    for form in ("boolean", "date", "datetime"):
        if parts[form] >= 1 - _TINY_SHARE:
            return form
    return "text"


def _labels(cells: pa.Array, *, budget: Budget, randomness: PrivateRandomness) -> tuple[tuple[str, int], ...]:
    counts = _label_counts(budget)
    values = [ABSTAIN if cell is None else cell for cell in cells.to_pylist()]
    with named("frequent labels"):
        released = counts.release(values, randomness=randomness).value
    if isinstance(released, NoAnswerType):
        return ()
    return tuple(sorted(((str(level), int(times)) for level, times in released), key=lambda one: (-one[1], one[0])))


def _numbers(cells: pa.Array, *, kind: str) -> Floats:
    """Return cells as floats, NaN for what is not of the kind."""
    pattern = FORMS["number"] if kind in {"integer", "number"} else FORMS[kind]
    fits = pc.fill_null(pc.match_substring_regex(cells, pattern), fill_value=False)
    kept = pc.if_else(fits, cells, pa.scalar(None, cells.type))
    if kind in {"integer", "number"}:
        return np.array([np.nan if cell is None else float(cell) for cell in kept.to_pylist()])
    form = "%Y-%m-%d" if kind == "date" else "%Y-%m-%d %H:%M:%S"
    stamps = pc.cast(pc.strptime(kept, format=form, unit="s", error_is_null=True), pa.int64())
    seconds = np.asarray(pc.cast(stamps, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    return seconds / _DAY if kind == "date" else seconds


def _location(
    values: Floats, *, budget: Budget, shared: SharedRandomness, randomness: PrivateRandomness
) -> tuple[float | None, float | None]:
    plan = _plan(len(values), budget=budget)
    if plan is None:
        return None, None
    found = locate(values[:, None], plan, numbers=len(values), word="unit", shared=shared, randomness=randomness)
    constant, centre = float(found.constant[0]), float(found.centre[0])
    if not math.isnan(constant):
        return constant, 0.0
    return (None, None) if math.isnan(centre) else (centre, float(found.scale[0]))


@lru_cache(maxsize=16)
def _plan(units: int, *, budget: Budget) -> LocationPlan | None:
    """Return how to locate, None if there are too few units: public numbers alone decide."""
    try:
        return location_plan(units=units, columns=1, budget=budget)
    except NotEnoughRecords:
        return None
