"""What PrivateDensity takes and refuses: no cell stops a fit or shows, and nothing fails once the budget is spent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from accord.core import Records
from accord.density import columns_in
from accord.errors import FitFailed, InvalidParameter, NothingReleased, SchemaMismatch
from accord.learners import GaussianLearner, ScipyLearner
from accord.learning import PrivateDensity
from accord.ledger import Ledger

SECRET = 61803.398


def column(records: int = 6000) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(5).normal(5.0, 2.0, size=(records, 1))


def density(estimator: Any = None, **others: Any) -> PrivateDensity:
    chosen = {"epsilon": 4, "delta": "1e-6", "random_state": 0, **others}
    return PrivateDensity(GaussianMixture(1) if estimator is None else estimator, **chosen)


@pytest.mark.parametrize("cell", ["text", b"bytes", 1j, [1.0], None, 10**400, np.datetime64("2020-01-01")])
def test_one_odd_cell_among_rows_of_lists_stops_nothing(cell: object) -> None:
    fitted = density().fit([[cell], *column().tolist()])
    assert abs(fitted.sample(2000).mean() - 5.0) < 0.5


ODD_ROWS: list[Any] = [None, [], [1.0, 2.0, 3.0], "text", 3.0, {}, (None,), np.zeros((2, 2)), np.ma.masked]


def odd_row_decides(row: Any, place: int) -> bool:
    """Whether one odd row of a list stops the reading, or changes what is read of the others."""
    plain = normal_rows()
    seen = []
    for data in (plain, [*plain[:place], row, *plain[place + 1 :]]):
        model = density()
        try:
            read = columns_in.read_records(model, data, reset=True)
        except ValueError:
            return True
        if (read.shape, str(read.dtype), model.n_features_in_) != ((6000, 2), "float64", 2):
            return True
        seen.append(np.delete(read, place, axis=0))
    return not np.array_equal(seen[0], seen[1])


@pytest.mark.parametrize("row", ODD_ROWS, ids=repr)
@pytest.mark.parametrize("place", [0, 17])
def test_A15_one_odd_row_of_a_list_stops_no_fit_and_moves_no_other(row: Any, place: int) -> None:
    assert not odd_row_decides(row, place)


@pytest.mark.parametrize("broken", [np.array, lambda rows: np.array([row[: len(rows[0])] for row in rows])])
def test_A15_mutant_rows_that_are_read_together(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_in, "holds_columns", lambda table: isinstance(table, list))
    monkeypatch.setattr(columns_in, "table_of_numbers", lambda table: np.asarray(broken(table), dtype=float))
    assert all(odd_row_decides(row, 0) for row in ([1.0], [1.0, 2.0, 3.0]))


def normal_rows() -> list[Any]:
    return list(np.random.default_rng(5).normal(5.0, 2.0, size=(6000, 2)).tolist())


def test_A15_a_fit_takes_a_list_with_odd_rows_a_list_of_numbers_and_records() -> None:
    rows: list[Any] = column().tolist()
    rows[3], rows[44] = None, [1.0, 2.0]
    models = [density().fit(data) for data in (rows, column().ravel().tolist(), Records.of(rows, columns=1))]
    assert all(abs(model.sample(2000).mean() - 5.0) < 0.5 for model in models)
    named = Records.of(rows, columns=1, units=range(6000), unit="person")
    assert density().fit(named).guarantee_.unit == "person"
    assert density(unit="person").fit(named).guarantee_.unit == "person"
    with pytest.raises(InvalidParameter, match="have their units already"):
        density().fit(named, groups=range(6000))


@pytest.mark.parametrize(
    "records",
    [
        np.full(6000, SECRET),
        np.full((6000, 1), SECRET * 1j),
        [[SECRET]] * 3000 + [[SECRET, 1.0]] * 3000,
        [{"a": SECRET}] * 6000,
        np.full((6000, 1), str(SECRET)),
    ],
)
def test_refusals_show_no_cell(records: Any) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        density().fit(records)
    assert "61803" not in str(caught.value)
    fitted = density().fit(column())
    with pytest.raises(ValueError, match=r"\S") as caught:
        fitted.score_samples(records)
    assert "61803" not in str(caught.value)


def test_masked_cells_are_not_read_as_numbers() -> None:
    records = np.ma.MaskedArray(column(), mask=np.arange(6000)[:, None] % 3 == 0)
    with pytest.raises(InvalidParameter, match="masked"):
        density().fit(records)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"n_jobs": "many"}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"verbose": "loud"}, "verbose"),
        ({"unit": "person"}, "groups"),
        ({"estimator": GaussianMixture(1, reg_covar=-1.0)}, "reg_covar"),
        ({"estimator": GaussianMixture(1, reg_covar="little")}, "reg_covar"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(
    arguments: dict[str, Any], told: str, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "budget", epsilon=10, delta="1e-5")
    with pytest.raises(InvalidParameter, match=told):
        density(**arguments).fit(column(), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_constant_column_needs_no_floor_of_the_estimator() -> None:
    records = np.hstack([column(), np.full((6000, 1), 7.0)])
    fitted = density(GaussianMixture(2, reg_covar=0.0)).fit(records)
    assert np.isfinite(fitted.estimator_.score_samples(records)).all()


@pytest.mark.parametrize("cell", [np.inf, -np.inf, np.nan])
def test_cells_that_are_not_finite_do_not_move_a_sketch(cell: float) -> None:
    records = column()
    records[::3] = cell
    drawn = density("norm").fit(records).sample(20_000)
    assert abs(drawn.mean() - 5.0) < 0.3
    assert abs(drawn.std() - 2.0) < 0.3


@pytest.mark.parametrize("estimator", [GaussianMixture(1), BayesianGaussianMixture(n_components=1)])
def test_gaps_in_every_record_are_told_instead_of_a_model_of_nothing(estimator: Any) -> None:
    records = np.hstack([column(12_000), column(12_000)])  # that no location is found has a chance below 1e-8
    records[::2, 0], records[1::2, 1] = np.nan, np.nan
    fitted = density(estimator)
    with pytest.raises(NothingReleased, match="number in every column"):
        fitted.fit(records)
    assert fitted.report_["released"][-1]["complete"] <= 0.02


def test_a_second_fit_without_an_answer_leaves_no_model_of_the_first() -> None:
    fitted = density().fit(column())
    with pytest.raises(NothingReleased):
        fitted.fit(np.full((6000, 1), np.nan))
    assert not hasattr(fitted, "model_")
    assert not hasattr(fitted, "estimator_")
    assert fitted.report_["answer"] is False


def test_a_generator_fixes_the_shared_parts() -> None:
    first, second = (density(random_state=np.random.default_rng(3))._shared() for _ in range(2))
    assert first.seed("a") == second.seed("a")


class _Schema(dict[str, str]):
    def names(self) -> list[str]:
        return list(self)


class _Polars:
    """Declares its columns as polars does: `schema.names` is a method."""

    def __init__(self, kind: str) -> None:
        self.schema = _Schema(a="Float64", b=kind)
        self.columns = ["a", "b"]
        self.dtypes = ["Float64", kind]
        self.shape = (6000, 2)

    def __array__(self) -> np.ndarray[Any, Any]:
        raise AssertionError("refused before a cell is read")


@pytest.mark.parametrize("kind", ["String", "Date", "List(Float64)", "Categorical"])
def test_columns_that_polars_declares_without_numbers_are_named(kind: str) -> None:
    with pytest.raises(SchemaMismatch, match="'b'"):
        density().fit(_Polars(kind))


class Sulky:
    """A learner that never fits."""

    def fit(self, records: Any, *, seed: int) -> Any:
        raise FitFailed("no")


class Unread(GaussianMixture):  # type: ignore[misc]
    """An estimator that cannot be drawn from."""

    def sample(self, n_samples: int = 1) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("estimator", "columns"), [(Sulky(), 1), (Unread(), 2), ("lognorm", 2), (ScipyLearner("gamma"), 3)]
)
def test_an_estimator_that_works_on_no_table_is_refused_before_anything_is_spent(
    estimator: Any, columns: int, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "budget", epsilon=10, delta="1e-5")
    with pytest.raises(InvalidParameter, match=f"any table of {columns} column"):
        density(estimator).fit(np.repeat(column(), columns, axis=1), ledger=ledger)
    assert ledger.spent.epsilon == 0


class Stranded:
    """A learner that cannot travel to another process."""

    def fit(self, records: np.ndarray[Any, Any], *, seed: int) -> Any:
        return GaussianLearner().fit(records, seed=seed)

    def __reduce__(self) -> Any:
        raise TypeError("stays here")

    def __deepcopy__(self, memo: Any) -> "Stranded":
        return self


def test_a_learner_that_does_not_travel_is_fitted_here() -> None:
    fitted = density(Stranded(), n_jobs=2).fit(column())
    assert abs(float(fitted.sample(2000).mean()) - 5.0) < 0.5
