"""What leaves a fitted PrivateDensity, what a second fit says, and what is left of a refused one."""

import copy
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from accord import PrivateDensity
from accord.core import VerdictWarning
from accord.density import estimator as fits
from accord.errors import BudgetExceeded, InvalidParameter, NotEnoughRecords
from accord.ledger import Ledger
from accord.randomness import SharedRandomness

DATA = SharedRandomness(1).stream("records").normal(size=(6000, 1))


def density() -> PrivateDensity:
    return PrivateDensity(GaussianMixture(1), epsilon=1, delta="1e-6")


@pytest.fixture(scope="module")
def fitted() -> PrivateDensity:
    return density().fit(DATA)


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has fitted nothing yet."""
    monkeypatch.setattr(fits, "_FITS", fits._Fits())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def joblib_bytes(model: Any) -> bytes:
    file = BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


def leaks(content: bytes, model: PrivateDensity) -> bool:
    """Whether a pickle holds the agreement of the blocks, under its name or as a float's bytes."""
    (agreement,) = model.curator_report_["agreement of blocks, by group of columns"]
    packed = pickle.dumps(agreement)[-10:-1]
    return b"curator_report_" in content or b"agreement of blocks" in content or packed in content


def test_A12_no_copy_holds_what_is_for_the_curator(fitted: PrivateDensity) -> None:
    for content in (*(pickle.dumps(fitted, protocol=one) for one in range(6)), joblib_bytes(fitted)):
        assert not leaks(content, fitted)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):  # noqa: S301 - our own
        assert not hasattr(other, "curator_report_")
        assert str(other.report_) == str(fitted.report_)
        assert other.sample(3).shape == (3, 1)
        with pytest.raises(AttributeError, match="stays with the object that was fitted"):
            _ = other.curator_report_
    assert not hasattr(clone(fitted), "curator_report_")
    with pytest.raises(AttributeError, match="has no attribute 'curator_report_'"):
        _ = density().curator_report_
    assert "curator_report_" in vars(fitted)


def test_A12_mutant_the_state_as_scikit_learn_keeps_it_is_caught(
    fitted: PrivateDensity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.density.estimator._CURATORS", frozenset())
    assert leaks(pickle.dumps(fitted), fitted)


@pytest.mark.usefixtures("first")
def test_B8_a_second_fit_in_a_process_is_told_once() -> None:
    model = density().fit(DATA)
    with pytest.warns(VerdictWarning, match="fitted-again") as told:
        clone(model).fit(DATA)
    assert len(told) == 1
    assert told[0].filename == __file__
    model.fit(DATA)


@pytest.mark.usefixtures("first")
def test_B8_a_search_over_a_grid_is_told() -> None:
    search = GridSearchCV(density(), {"estimator": [GaussianMixture(1)]}, cv=2)
    with pytest.warns(VerdictWarning, match="fitted-again"):
        search.fit(np.tile(DATA, (2, 1)))


@pytest.mark.usefixtures("first")
def test_B8_a_ledger_counts_and_nobody_is_told(tmp_path: Any) -> None:
    with Ledger.create(tmp_path / "ledger.db", epsilon=3, delta="1e-3") as ledger:
        for _ in range(2):
            density().fit(DATA, ledger=ledger)


def test_a_refused_fit_leaves_the_old_state_whole(tmp_path: Any) -> None:
    model = density().fit(DATA)
    before = dict(vars(model))
    with pytest.raises(NotEnoughRecords):
        model.fit(np.zeros((9, 3)))
    with (
        Ledger.create(tmp_path / "ledger.db", epsilon="0.5", delta="1e-3") as ledger,
        pytest.raises(BudgetExceeded),
    ):
        model.fit(DATA, ledger=ledger)
    assert vars(model) == before
    model.set_params(delta=2)
    with pytest.raises(InvalidParameter):
        model.fit(DATA)
    assert model.model_ is before["model_"]


def test_J12_a_notebook_shows_an_estimator_without_warnings(fitted: PrivateDensity) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "PrivateDensity" in fitted._repr_html_()


@pytest.mark.parametrize("where", ["accord", "accord.learning"])
def test_J12_without_the_extra_the_error_says_what_to_install(where: str) -> None:
    program = f"import sys; sys.modules['sklearn'] = None\ntry:\n    from {where} import PrivateDensity\n"
    program += "except ImportError as error:\n    print(error)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'pip install "accord[sklearn]"' in ended.stdout


def test_J12_sample_says_that_it_returns_one_array() -> None:
    assert "unpacks two records" in str(PrivateDensity.sample.__doc__)
