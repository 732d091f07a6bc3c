"""Whether a model learnt from synthetic rows is as good on real rows as one learnt from real rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from accord.core.alone import turn
from accord.core.errors import DataError, InvalidParameter
from accord.core.shared import SharedRandomness
from accord.tables import Schema

__all__ = ["Utility", "train_synthetic_test_real"]

_FEWEST = 20
_MOST_ROWS = 50_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """Scores on real rows that neither model has seen: accuracy for labels, R^2 for numbers.

    Parameters
    ----------
    target
        The column that was predicted from all others.
    measure
        "accuracy" or "R^2".
    from_synthetic, from_real
        Scores of gradient boosting learnt from synthetic and from real rows.
    baseline
        The score of always predicting the most frequent label, or the mean, of the real rows.

    """

    target: str
    measure: str
    from_synthetic: float
    from_real: float
    baseline: float


def train_synthetic_test_real(
    real: Sequence[NDArray[Any]],
    synthetic: Sequence[NDArray[Any]],
    *,
    schema: Schema,
    target: str,
    shared: SharedRandomness | None = None,
) -> Utility:
    """Learn to predict one column from the others, once from synthetic and once from real rows, and test on real ones.

    Formal guarantees
    -----------------
    - Fairness: both models learn from equally many rows (at most 50,000) and are tested on the same real rows, a half
      that the second has not seen.
    - Not promised: any privacy. The result is a function of the real records.

    Parameters
    ----------
    real, synthetic
        One array for each of ``schema.read``, as in `Table.columns`.
    schema
        What was declared; at least two columns that are read.
    target
        Name of the column to predict. Rows where it is missing are left out.
    shared
        Key of the split and of the learners; by default a fixed one.

    Raises
    ------
    InvalidParameter
        If there is no such column, or scikit-learn is not installed (``pip install "accord[sklearn]"``).
    DataError
        If fewer than 20 rows of a table have the target, or synthetic rows have a single label.

    """
    places = {column.name: place for place, column in enumerate(schema.read)}
    if target not in places or len(places) < 2:
        raise InvalidParameter("target must be one of at least two columns that are read.")
    place = places[target]
    column = schema.read[place]
    key = shared or SharedRandomness(0)
    truth = _rows(real, place=place)
    made = _rows(synthetic, place=place)
    order = key.stream("split").permutation(len(truth[1]))
    middle = len(order) // 2
    size = min(middle, len(made[1]), _MOST_ROWS)
    if size < _FEWEST or len(truth[1]) - middle < _FEWEST:
        raise DataError(
            f"too few rows have the target: at least {2 * _FEWEST} real and {_FEWEST} synthetic are needed."
        )
    chosen = key.stream("rows").permutation(len(made[1]))[:size]
    labels = [other.is_label for other in schema.read if other.name != target]
    train, test = order[:size], order[middle:][:_MOST_ROWS]
    scores = [
        _score((x[rows], y[rows]), (truth[0][test], truth[1][test]), labels=labels, by_label=column.is_label, key=key)
        for (x, y), rows in ((made, chosen), (truth, train))
    ]
    held = truth[1][test]
    return Utility(
        target=target,
        measure="accuracy" if column.is_label else "R^2",
        from_synthetic=scores[0],
        from_real=scores[1],
        baseline=float(np.unique(held, return_counts=True)[1].max() / len(held)) if column.is_label else 0.0,
    )


def _rows(table: Sequence[NDArray[Any]], *, place: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the other columns, NaN for missing, and the target, of the rows that have it."""
    target = table[place]
    present = target >= 0 if target.dtype.kind in "iu" else ~np.isnan(target)
    others = [np.where(one < 0, np.nan, one) if one.dtype.kind in "iu" else one for one in table]
    inputs = np.column_stack([one for other, one in enumerate(others) if other != place]).astype(np.float64)
    return inputs[present], target[present]


def _score(
    learnt: tuple[NDArray[np.float64], NDArray[Any]],
    tested: tuple[NDArray[np.float64], NDArray[Any]],
    *,
    labels: Sequence[bool],
    by_label: bool,
    key: SharedRandomness,
) -> float:
    try:
        from sklearn.ensemble import (  # noqa: PLC0415 - optional
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
        )
    except ImportError:
        raise InvalidParameter('scikit-learn is needed here: pip install "accord[sklearn]".') from None
    told = [place for place in range(learnt[0].shape[1]) if _differ(learnt[0][:, place])]
    if not told or (by_label and not _differ(learnt[1].astype(np.float64))):
        return _without_learning(learnt[1], tested[1], by_label=by_label)
    inputs = [x[:, told] for x in (learnt[0], tested[0])]
    few = [at for at, place in enumerate(told) if labels[place] and _levels(inputs[0][:, at]) <= 255]
    make = HistGradientBoostingClassifier if by_label else HistGradientBoostingRegressor
    # Stopping early would hold rows of every label back, and a label may have a single row.
    model = make(
        max_iter=60,
        early_stopping=False,
        categorical_features=few or None,
        random_state=key.seed("boosting") % 2**32,
    )
    inputs = [_within(x, few) for x in inputs]
    with turn(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(inputs[0], learnt[1])
        return float(model.score(inputs[1], tested[1]))


def _differ(values: NDArray[np.float64]) -> bool:
    """Return whether there are two different present values."""
    known = values[~np.isnan(values)]
    return len(known) > 0 and bool((known != known[0]).any())


def _without_learning(learnt: NDArray[Any], tested: NDArray[Any], *, by_label: bool) -> float:
    """Return the score of the same answer for every row: the most frequent label, or the mean."""
    if by_label:
        found, counts = np.unique(learnt, return_counts=True)
        return float(np.mean(tested == found[counts.argmax()]))
    around = float(np.sum((tested - tested.mean()) ** 2))
    return 1 - float(np.sum((tested - learnt.mean()) ** 2)) / around if around > 0 else 0.0


def _levels(codes: NDArray[np.float64]) -> float:
    known = codes[~np.isnan(codes)]
    return float(known.max()) + 1 if len(known) else 0.0


def _within(inputs: NDArray[np.float64], few: Sequence[int]) -> NDArray[np.float64]:
    """Return the inputs with codes of labels that the library does not take as missing ones."""
    result = inputs.copy()
    for place in few:
        result[result[:, place] > 254, place] = np.nan
    return result
