"""PrivateDensity: the scikit-learn estimator."""

import importlib
import numbers
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import TaskID
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from accord import __version__
from accord.accounting.account import account
from accord.core import check as _check
from accord.core.blocks import FarRecords, Progress
from accord.core.budget import Budget
from accord.core.coupling import Distribution
from accord.core.errors import InvalidParameter, NothingReleased
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP
from accord.core.isolation import Isolation, Workers
from accord.core.records import Records
from accord.core.release import NoAnswer, Release
from accord.core.shared import Generator, SharedRandomness
from accord.core.spending import SPENT, spending
from accord.core.verdict import Verdict, judge, tell
from accord.density.columns_in import column_names, read_records, refuse_declared_text
from accord.density.estimators import family_of_estimator, fitted_estimator
from accord.density.plan import density_plan
from accord.density.refine.mixture_fit import LEAST_PART
from accord.density.release import PrivateModel, rehearse, release_density
from accord.learning.on_workers import far_records
from accord.ledger import Ledger
from accord.marginals.verdicts import verdicts_of
from accord.workers import is_dask_frame

__all__ = [
    "FRAMES",
    "PrivateDensity",
    "as_frame",
    "progress_bar",
    "tell_of_earlier_fits",
]


@contextmanager
def progress_bar(*, verbose: int) -> Iterator[Progress | None]:
    """Give a function to report progress to, or None unless ``verbose`` is above 0. Writes to standard error.

    Examples
    --------
    >>> with progress_bar(verbose=0) as progress:
    ...     progress is None
    True

    """
    if not verbose > 0:
        yield None
        return
    with Bars(console=Console(stderr=True), transient=verbose == 1) as bars:
        known: dict[str, TaskID] = {}

        def progress(done: int, total: int, what: str) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done, total=total)

        yield progress


FRAMES = ("default", "pandas", "polars")
"""What `as_frame` can make: a numpy array, or a data frame of these."""


def as_frame(records: NDArray[np.float64], *, kind: str, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - theirs
    """Return records as an array ("default") or as a data frame with these column names.

    Raises
    ------
    InvalidParameter
        For another kind, or if the package is not installed.

    Examples
    --------
    >>> as_frame(np.zeros((2, 1)), kind="default", names=("a",)).shape
    (2, 1)

    """
    if kind not in FRAMES:
        raise InvalidParameter("transform must be 'default', 'pandas' or 'polars'.")
    if kind == "default":
        return records
    try:
        package = importlib.import_module(kind)
    except ImportError:
        raise InvalidParameter(f"transform={kind!r} needs {kind}: install it, or use 'default'.") from None
    return package.DataFrame({name: records[:, place] for place, name in enumerate(names)})


class _Fits:
    """How many fits without a ledger this process has seen; it holds nothing of what they were fits of."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = 0


_FITS = _Fits()
_AGAIN = Verdict(
    "fitted-again",
    "a PrivateDensity was fitted before in this process without a ledger: every fit spends its epsilon and delta "
    "again, also those of clones, so a search over a grid or a cross-validation on the same records spends (folds x "
    "candidates) times what guarantee_ says; pass fit(..., ledger=...), which adds up and can refuse.",
)


def tell_of_earlier_fits() -> tuple[Verdict, ...]:
    """Count a fit without a ledger; warn at the second one of a process, and not again.

    Returned is what the account of this fit says: of the second one and of all later ones.
    """
    with _FITS.lock:
        _FITS.seen += 1
        seen = _FITS.seen
    if seen == 2:
        tell(_AGAIN, stacklevel=4)
    return (_AGAIN,) if seen >= 2 else ()


_NOT_FOR_RELEASE = "NOT FOR RELEASE: this part depends on the data beyond what the guarantee covers."


_CURATORS = frozenset({"curator_report_"})
"""Attributes that depend on the data beyond the guarantee."""


class PrivateDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Fit any density estimator privately, without bounds on the data (theory 7: couple, then refine).

    Columns are located by votes of blocks; an opening model is released; rounds of private looks at the data make it
    better. Every stage is private by itself and later ones see what earlier ones released, never their data.

    Parameters
    ----------
    estimator
        What to fit: scikit-learn's ``GaussianMixture``, or a learner of `accord.learners`. It is never changed.
    epsilon
        Above 0, at most 1000.
    delta
        Above 0, below 1; well below 1 / number of units.
    unit
        The guarantee's word for what ``groups`` names, "person" say.
    n_jobs
        Workers, as joblib counts them. The result does not depend on it.
    workers
        Where the fits of blocks run, such as `accord.workers.DaskWorkers`; by default here. Trusted: they see records.
    verbose
        1 shows progress while fitting, 2 leaves it standing.
    random_state
        None, an int, or a generator of numpy: of the shared parts only.

    Attributes
    ----------
    model_
        The released law, a `Distribution` of whole records.
    estimator_
        An estimator of the user's class fitted to it; None where there is none for such a law.
    guarantee_
        What was spent.
    report_
        Stages, budgets, parameters and what was released: may be shown to anyone.
    curator_report_
        Agreement of the blocks: not for release. It stays with the fitted object: pickles and copies leave it out.

    Notes
    -----
    Formal guarantees:

    - Privacy: one `fit` is ``(epsilon, delta)`` under replacing one unit, `guarantee_`; a second `fit` spends as much
      again, also on the same data, so a search over a grid or cross-validation spends (folds x candidates) times as
      much: hand every fit a ledger. Everything public of a fitted object follows from what was released:
      `curator_report_` alone does not, and says so.
    - A record that is missing, infinite or no number never stops a fit: within its block it is left out, in later
      rounds it counts for nothing.
    - The unit may have another number of records, which may stand anywhere in the table.
    - ``random_state`` fixes what blocks share and what `sample` draws, never the blocks or the noise of a release: two
      fits differ.
    - Not promised: an answer (then `NothingReleased`, and the budget is spent), or accuracy with few records. What
      happens before `fit`, in earlier steps of a pipeline say, is not private.

    Source: theory 7, S5, S9, C2; proof page ``docs/proofs/private-density.md``.

    Examples
    --------
    >>> from sklearn.mixture import GaussianMixture
    >>> data = SharedRandomness(0).stream("example").normal(100.0, 2.0, size=(20_000, 1))
    >>> density = PrivateDensity(GaussianMixture(1), epsilon=1, delta="1e-6").fit(data)
    >>> density.sample(5).shape, density.guarantee_.epsilon
    ((5, 1), Fraction(1, 1))

    """

    def __init__(
        self,
        estimator: Any,  # noqa: ANN401 - any estimator
        *,
        epsilon: Number,
        delta: Number,
        unit: str | None = None,
        n_jobs: int | None = None,
        workers: Workers | None = None,
        verbose: int = 0,
        random_state: Any = None,  # noqa: ANN401 - as in scikit-learn
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.n_jobs = n_jobs
        self.workers = workers
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: ANN401 - scikit-learn's name
        y: object = None,  # noqa: ARG002 - as above
        *,
        groups: ArrayLike | None = None,
        ledger: Ledger | None = None,
    ) -> Self:
        """Release a model of the records.

        Parameters
        ----------
        X
            Shape (n, d): an array or a data frame of numbers, or a list of rows. Gaps are NaN. A list's number of
            columns is public: `Records.of(X, columns=d)` declares it, and else three quarters of the rows must have it.
            Or a data frame of dask, whose records stay on ``workers``: blocks are fitted and counts added up there.
        y
            Not read.
        groups
            The unit of each record, shape (n,): one person's records may be any number. By default each is one. For a
            frame of dask a column of it.
        ledger
            Charged before the first look at the records' cells, with all of (epsilon, delta).

        Raises
        ------
        NotEnoughRecords
            If there are too few units; nothing has been spent.
        NothingReleased
            If a column, named, had no answer. All has been spent.

        """
        before = dict(vars(self))
        try:
            return self._fit(X, groups=groups, ledger=ledger)
        except BaseException as error:
            if SPENT not in getattr(error, "__notes__", ()) and not isinstance(error, NothingReleased):
                self.__dict__.clear()
                self.__dict__.update(before)
            raise

    def _fit(self, X: Any, *, groups: ArrayLike | None, ledger: Ledger | None) -> Self:  # noqa: ANN401
        budget = Budget.asked(self.epsilon, self.delta)
        family = family_of_estimator(self.estimator)
        self._check_rest(named=groups is not None or isinstance(X, Records))
        isolation = Isolation() if self.workers is None else Isolation(kind="process", workers=self.workers)
        shared = self._shared()
        refuse_declared_text(X)
        with self._given(X, groups) as (records, given):
            plan = density_plan(units=given.units, columns=given.dimension, budget=budget)
            guarantee = ApproxDP(budget.epsilon, budget.delta, unit=given.word)
            rehearse(family, columns=given.dimension)
            again = tell_of_earlier_fits() if ledger is None else ()
            verdicts = verdicts_of(guarantee, units=given.units, weighted=given.several_records)
            judge(verdicts, stacklevel=3)
            what = f"private density: {family.words}, {given.dimension} columns"
            with spending(ledger, guarantee, what=what), progress_bar(verbose=self.verbose) as progress:
                self._forget()
                released = release_density(
                    records,
                    plan,
                    family,
                    numbers=given.owners if isinstance(given, Records) and given.owners is not None else given.units,
                    word=given.word,
                    shared=shared,
                    progress=progress,
                    n_jobs=self.n_jobs,
                    isolation=isolation,
                )
        self.guarantee_ = guarantee
        self.report_ = self._report(released, units=given.units, family=family.words, warnings=(*again, *verdicts))
        self.curator_report_ = {
            "warning": _NOT_FOR_RELEASE,
            **self.report_,
            "agreement of blocks, by group of columns": released.located.agreement.value,
        }
        if released.law is None:
            raise self._refusal(released, family=family.words)
        self.model_: Distribution = released.law
        self.estimator_ = fitted_estimator(self.estimator, family, released, columns=given.dimension)
        if self.estimator_ is not None and hasattr(self, "feature_names_in_"):
            self.estimator_.feature_names_in_ = self.feature_names_in_.copy()
        return self

    @contextmanager
    def _given(
        self,
        X: Any,  # noqa: ANN401 - any container
        groups: Any,  # noqa: ANN401 - any container
    ) -> Iterator[tuple[NDArray[np.float64] | FarRecords, Records | FarRecords]]:
        """Give the numbers, and what is public of them; those of a data frame of dask stay on its workers."""
        if not is_dask_frame(X):
            records = self._read(X, reset=True)
            yield records, Records.of(X if isinstance(X, Records) else records, units=groups, unit=self.unit)
            return
        self._read(X._meta.reindex(range(2)), reset=True)  # noqa: SLF001 - names and types of columns, no record
        with far_records(X, units=groups, unit=self.unit, cells="numbers", columns=None, workers=self.workers) as far:
            yield far, far

    def sample(self, n_samples: int = 1) -> Any:  # noqa: ANN401 - an array, or a frame
        """Draw records from the released model: free of charge, as often as you like.

        One array, not a pair of records and labels as from ``GaussianMixture.sample``: a component's number would be
        of no use. ``X = density.sample(2)`` is right; ``X, y = density.sample(2)`` unpacks two records.

        Parameters
        ----------
        n_samples
            At least 1.

        Returns
        -------
        array of shape (n_samples, d)
            Or a data frame, see `set_output`. With an int as ``random_state`` the same each time.

        """
        check_is_fitted(self, "model_")
        count = _check.integer("n_samples", n_samples, least=1)
        records = self.model_.sample(count, self._shared().stream("sample"))
        return as_frame(records, kind=self._frame_kind(), names=self._names())

    def score_samples(self, X: Any) -> NDArray[np.float64]:  # noqa: ANN401 - scikit-learn's name
        """Return the log density of the released model at each record, shape (n,).

        In a constant column it is relative to counting: the log density is -inf off the constant.

        Parameters
        ----------
        X
            Shape (n, d).

        """
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.log_density(self._read(X, reset=False)), dtype=np.float64)

    def score(self, X: Any, y: object = None) -> float:  # noqa: ANN401, ARG002 - as in scikit-learn
        """Return the mean log density of these records. On the private data themselves it is not private.

        Parameters
        ----------
        X
            Shape (n, d).
        y
            Not read.

        """
        return float(np.mean(self.score_samples(X)))

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `sample` returns: "default" (an array), "pandas" or "polars"; None changes nothing."""
        if transform is not None:
            if transform not in FRAMES:
                raise InvalidParameter("transform must be 'default', 'pandas' or 'polars'.")
            self._sklearn_output_config = {"transform": transform}
        return self

    def _check_rest(self, *, named: bool) -> None:
        """Refuse, before anything is spent, what would stop a fit later."""
        if not named and not (self.unit is None or self.unit == "record"):
            raise InvalidParameter(f"unit={self.unit!r} needs fit(..., groups=...), which says whose each record is.")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, numbers.Integral) or self.n_jobs == 0):
            raise InvalidParameter("n_jobs must be None, or a whole number other than 0.")
        if self.workers is not None and not isinstance(self.workers, Workers):
            raise InvalidParameter("workers must be None, or such as accord.workers.DaskWorkers.")
        if not isinstance(self.verbose, numbers.Integral):
            raise InvalidParameter("verbose must be a whole number.")

    def _read(self, table: Any, *, reset: bool) -> NDArray[np.float64]:  # noqa: ANN401 - an array or a frame
        return read_records(self, table, reset=reset)

    def _forget(self) -> None:
        """Let nothing of an earlier fit stand beside what this one says."""
        for name in ("model_", "estimator_", "guarantee_", "report_", "curator_report_"):
            if hasattr(self, name):
                delattr(self, name)

    def _frame_kind(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("transform", "default"))

    def _names(self) -> tuple[str, ...]:
        return column_names(getattr(self, "feature_names_in_", None), columns=self.n_features_in_)

    def _shared(self) -> SharedRandomness:
        """Return the key of the shared parts: fresh unless ``random_state`` says otherwise."""
        if self.random_state is None:
            return SharedRandomness.fresh()
        if isinstance(self.random_state, Generator):
            return SharedRandomness(self.random_state.bytes(32))
        return SharedRandomness(check_random_state(self.random_state).bytes(32))

    def _report(
        self, released: PrivateModel, *, units: int, family: str, warnings: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        made: Release[Any] = Release(NoAnswer, self.guarantee_, released.stages)
        found = account(made, units=units, learner=f"a density: {family}", warnings=warnings)
        return {
            **found,
            "accord": __version__,
            "family": family,
            "epsilon": found["guarantee"]["epsilon"],
            "delta": found["guarantee"]["delta"],
            "columns": self._names(),
            "released": released.public,
            "shared parts seeded": self.random_state is not None,
            "answer": released.law is not None,
        }

    def _refusal(self, released: PrivateModel, *, family: str) -> NothingReleased:
        """Name the columns that had no answer."""
        names = self._names()
        wanting = tuple(names[column] for column in released.located.without_answer)
        if wanting:
            message = (
                f"nothing was released for {', '.join(map(repr, wanting))}: the blocks did not agree on where these "
                f"columns lie (they were located together), or found no numbers there. All of the budget is spent. "
                f"Leave such columns out, or bring more records or a larger epsilon."
            )
        elif released.public[-1].get("complete", 1.0) <= LEAST_PART:
            message = (
                "hardly a record has a number in every column, and a record with a gap counts for nothing. All of the "
                "budget is spent. Leave out columns with many gaps, or fill them by a rule that does not look at other "
                "records."
            )
        else:
            message = (
                f"the estimator ({family}) could not be fitted to what was released. All of the budget is spent. If "
                f"its laws live on a part of the line only, make sure that the records do."
            )
        return NothingReleased(message, guarantee=self.guarantee_, columns=wanting)

    def __getstate__(self) -> dict[str, Any]:
        """Return what may leave the process: all but what is for the curator alone."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in _CURATORS}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - an attribute that is not there
        """Say why a copy has nothing for the curator."""
        if name in _CURATORS and "guarantee_" in vars(self):
            message = f"{name} stays with the object that was fitted: pickles and copies leave it out."
            raise AttributeError(message)
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags
