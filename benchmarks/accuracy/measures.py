"""One measure for all tools: how far synthetic rows are from the rows that they were learnt from."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from accuracy.made_up import Columns
from accuracy.tasks import Number, Task
from scipy.stats import rankdata

RAREST = 0.1
MOST_TABLES = 120
MOST_PAIRS_AT = 20  # bins a number of many bins has in tables of two and three columns
DENSE = 4_000_000


def measured(task: Task, train: Columns, test: Columns, fake: Columns) -> dict[str, float]:
    found: dict[str, float] = {}
    if task.table_errors:
        found |= table_errors(task, train, fake)
    if task.special is not None:
        found |= task.special(fake, train)
    if task.target is not None:
        found |= of_trees(task, train, test, fake)
    return found


def table_errors(task: Task, train: Columns, fake: Columns) -> dict[str, float]:
    """Mean total variations of tables of one to three columns, and differences of rank correlations."""
    names = list(task.columns)
    codes, sizes = coded(task, train, train)
    made, _ = coded(task, train, fake)
    found = {"1-way": float(np.mean([variation([codes[c]], [made[c]], [sizes[c]]) for c in range(len(names))]))}
    made, _ = coarse(made, sizes)
    codes, sizes = coarse(codes, sizes)
    for way, name in ((2, "2-way"), (3, "3-way")):
        tables = list(itertools.combinations(range(len(names)), way))
        if len(tables) > MOST_TABLES and way == 3:
            tables = [
                tables[place] for place in np.random.default_rng(3).choice(len(tables), MOST_TABLES, replace=False)
            ]
        if tables:
            found |= of_tables(name, tables, codes, made, sizes)
    numbers = [name for name, spec in task.columns.items() if isinstance(spec, Number)]
    if len(numbers) > 1:
        found["rank correlations"] = rank_error([train[name] for name in numbers], [fake[name] for name in numbers])
    return found


def of_tables(
    name: str, tables: Sequence[tuple[int, ...]], codes: list[np.ndarray], made: list[np.ndarray], sizes: list[int]
) -> dict[str, float]:
    """Return the mean total variation of some tables; of pairs also the worst, and that of the rarest tenth."""
    shares = [differences([codes[c] for c in t], [made[c] for c in t], [sizes[c] for c in t]) for t in tables]
    errors = [float(np.abs(real - fake).sum() / 2) for real, fake in shares]
    found = {name: float(np.mean(errors))}
    if len(tables[0]) == 2:
        found[f"{name}, worst"] = max(errors)
        found[f"{name}, rarest tenth"] = float(np.mean([of_rarest(real, fake) for real, fake in shares]))
    return found


def coded(task: Task, train: Columns, rows: Columns) -> tuple[list[np.ndarray], list[int]]:
    """Return codes of the measure: public bins, or deciles of the training rows."""
    codes, sizes = [], []
    for name, spec in task.columns.items():
        if task.deciles and isinstance(spec, Number):
            cuts = np.unique(np.quantile(train[name], np.linspace(0.1, 0.9, 9)))
            codes.append(np.searchsorted(cuts, rows[name], side="right"))
            sizes.append(len(cuts) + 1)
        else:
            codes.append(spec.codes(rows[name]))
            sizes.append(spec.size)
    return codes, sizes


def coarse(codes: list[np.ndarray], sizes: list[int]) -> tuple[list[np.ndarray], list[int]]:
    """Join the 40 bins of a number two by two, so that a table of two columns has cells that hold records."""
    joined = [2 if size == 2 * MOST_PAIRS_AT else 1 for size in sizes]
    return [one // by for one, by in zip(codes, joined, strict=True)], [
        size // by for size, by in zip(sizes, joined, strict=True)
    ]


def differences(
    real: Sequence[np.ndarray], fake: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of all cells, or of those that either table fills where they are many."""
    keys = [np.ravel_multi_index(tuple(one), tuple(sizes)) for one in (real, fake)]
    cells = math.prod(sizes)
    if cells > DENSE:
        _, both = np.unique(np.concatenate(keys), return_inverse=True)
        keys, cells = [both[: len(keys[0])], both[len(keys[0]) :]], int(both.max()) + 1
    first, second = (np.bincount(one, minlength=cells) / len(one) for one in keys)
    return first, second


def variation(real: Sequence[np.ndarray], fake: Sequence[np.ndarray], sizes: Sequence[int]) -> float:
    first, second = differences(real, fake, sizes)
    return float(np.abs(first - second).sum() / 2)


def of_rarest(real: np.ndarray, fake: np.ndarray) -> float:
    """Half the differences in the rarest cells that hold a tenth of the records, empty ones too, as a share of it."""
    order = np.argsort(real, kind="stable")
    rarest = order[np.cumsum(real[order]) <= RAREST]
    return float(np.abs(real[rarest] - fake[rarest]).sum() / 2 / RAREST)


def rank_error(real: Sequence[np.ndarray], fake: Sequence[np.ndarray]) -> float:
    """Mean difference of rank correlations; a constant column correlates with nothing."""
    found = []
    for columns in (real, fake):
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(np.nan_to_num(np.corrcoef(np.stack([rankdata(one) for one in columns]))))
    return float(np.abs(found[0] - found[1])[np.triu_indices(len(real), 1)].mean())


def of_trees(task: Task, train: Columns, test: Columns, fake: Columns) -> dict[str, float]:
    """Return how well trees learnt from synthetic rows do on fresh real rows, and trees learnt from real ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - slow to load, and few tasks use it
    from sklearn.metrics import accuracy_score, roc_auc_score  # noqa: PLC0415

    assert task.target is not None
    others = [name for name in task.columns if name != task.target]
    scores = []
    for rows in (fake, train):
        learnt = np.stack([rows[name] for name in others], axis=1)
        if len(np.unique(rows[task.target])) < 2:
            scores.append((0.5, 0.5))
            continue
        model = HistGradientBoostingClassifier(random_state=0).fit(learnt, rows[task.target])
        held = np.stack([test[name] for name in others], axis=1)
        chances = model.predict_proba(held)[:, 1]
        truth = test[task.target]
        scores.append((float(roc_auc_score(truth, chances)), float(accuracy_score(truth, chances > 0.5))))
    return {
        "AUC": scores[0][0],
        "AUC of real": scores[1][0],
        "accuracy": scores[0][1],
        "accuracy of real": scores[1][1],
    }
