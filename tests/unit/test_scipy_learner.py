"""Families of scipy as learners: parameters that are real, records in any unit, refusals."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from accord.distributions import ScipyLaw
from accord.errors import FitFailed, InvalidParameter
from accord.learners import Learner, ScipyLearner
from accord.learning import Isolation
from accord.randomness import SharedRandomness

FAMILIES: list[tuple[str, tuple[float, ...]]] = [
    ("norm", ()),
    ("lognorm", (0.7,)),
    ("gamma", (2.5,)),
    ("weibull_min", (1.7,)),
    ("weibull_max", (2.0,)),
    ("expon", ()),
    ("t", (5.0,)),
    ("logistic", ()),
    ("laplace", ()),
    ("gumbel_r", ()),
    ("cauchy", ()),
    ("invgauss", (0.8,)),
    ("pareto", (3.0,)),
    ("uniform", ()),
    ("skewnorm", (3.0,)),
    ("genextreme", (0.1,)),
    ("fisk", (3.0,)),
    ("invgamma", (4.0,)),
    ("johnsonsu", (0.5, 1.5)),
    ("exponnorm", (1.5,)),
    ("beta", (2.0, 5.0)),
    ("powerlaw", (2.0,)),
]
UNITS = [(0.0, 1.0), (1e6, 1e-3), (-3e4, 1e9), (0.0, 1e-40), (0.0, 1e100)]


def drawn(law: ScipyLaw, count: int = 400, label: int = 0) -> Any:
    return law.sample(count, SharedRandomness("scipy families").stream(law.family, label))


def fit(family: Any, records: Any, **options: Any) -> ScipyLaw:
    return ScipyLearner(family, **options).fit(records, seed=0)


# --- the fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "unit"), UNITS)
@pytest.mark.parametrize(("family", "shapes"), FAMILIES)
def test_likelihood_is_at_least_the_truths_in_every_unit(
    family: str, shapes: tuple[float, ...], place: float, unit: float
) -> None:
    fixed = dict(ScipyLearner(family).fixed)
    truth = ScipyLaw(family, *shapes, loc=fixed.get("loc", place), scale=fixed.get("scale", unit))
    rows = drawn(truth)
    law = fit(family, rows)
    assert law.log_density(rows).sum() >= truth.log_density(rows).sum() - 1e-6 * len(rows)
    assert dict(fixed) == {name: value for name, value in (("loc", law.loc), ("scale", law.scale)) if name in fixed}


def test_closed_forms() -> None:
    rows = drawn(ScipyLaw("norm"))
    law = fit(stats.norm, rows)
    assert (law.loc, law.scale) == pytest.approx((rows.mean(), rows.std()), rel=1e-12)
    logs = np.log(positive := np.exp(rows))
    law = fit(stats.lognorm, positive)
    assert (law.shapes[0], law.scale) == pytest.approx((logs.std(), np.exp(logs.mean())), rel=1e-6)
    law = fit(stats.laplace, rows)
    assert (law.loc, law.scale) == pytest.approx((np.median(rows), np.abs(rows - np.median(rows)).mean()), rel=1e-9)


def test_gamma_agrees_with_another_search() -> None:
    rows = drawn(ScipyLaw("gamma", 2.5, scale=3.0))
    gap = np.log(rows.mean()) - np.log(rows).mean()
    shape = optimize.brentq(lambda a: np.log(a) - stats.gamma(a).expect(np.log) - gap, 0.5, 10)
    assert fit("gamma", rows).shapes[0] == pytest.approx(shape, rel=1e-5)


def test_estimates_close_in_on_the_truth() -> None:
    """Failure below 1e-6: 6 deviations of the maximum likelihood estimate of a lognormal's shape, s / sqrt(2 n)."""
    errors = []
    for label in range(5):
        law = fit("lognorm", drawn(ScipyLaw("lognorm", 0.7, scale=20.0), 20_000, label))
        errors.append((law.shapes[0] / 0.7 - 1) * np.sqrt(2 * 20_000))
    print("seeds 'scipy families', 'lognorm', 0..4; standardised errors", errors)  # noqa: T201
    assert max(map(abs, errors)) < 6
    assert 0.1 * np.sqrt(2 * 20_000) > 12  # a shape 10 % off is far outside


def test_a_uniform_law_covers_its_own_records() -> None:
    generator = SharedRandomness("ends").stream()
    for _ in range(300):
        low, wide = 10.0 ** generator.uniform(-8, 8), 10.0 ** generator.uniform(-8, 8)
        rows = low + wide * generator.random(5)
        if len(set(rows)) > 1:
            law = fit("uniform", rows)
            assert np.isfinite(law.log_density(rows)).all()
            assert law.scale == pytest.approx(rows.max() - rows.min(), rel=1e-12)


# --- what is fixed ----------------------------------------------------------------------------------------------------


def test_natural_places_are_fixed_unless_said_otherwise() -> None:
    assert ScipyLearner("lognorm").fixed == ScipyLearner("weibull_max").fixed == (("loc", 0.0),)
    assert ScipyLearner("beta").fixed == (("loc", 0.0), ("scale", 1.0))
    assert ScipyLearner("norm").fixed == ScipyLearner("uniform").fixed == ScipyLearner("lognorm", fixed={}).fixed == ()
    rows = 100 + drawn(ScipyLaw("lognorm", 0.7))
    free, at_zero = fit("lognorm", rows, fixed={}), fit("lognorm", rows)
    assert at_zero.loc == 0
    assert 99 < free.loc < rows.min()
    assert fit("lognorm", rows, fixed={"loc": 100}).loc == 100


def test_every_parameter_can_be_fixed() -> None:
    rows = 7 + 2 * drawn(ScipyLaw("gamma", 2.5))
    law = fit("gamma", rows, fixed={"a": 2.5, "loc": 7})
    assert (law.shapes, law.loc) == ((2.5,), 7)
    assert law.scale == pytest.approx((rows - 7).mean() / 2.5, rel=1e-4)
    law = fit("gamma", rows, fixed={"a": 2.5, "scale": 2})
    assert (law.shapes, law.scale) == ((2.5,), 2)
    assert law.loc == pytest.approx(7, abs=0.5)
    assert fit("norm", 1e6 + drawn(ScipyLaw("norm")), fixed={"scale": 1}).loc == pytest.approx(1e6, abs=1)


def test_a_free_place_makes_blocks_disagree() -> None:
    """Why the place is fixed: the shape of free fits scatters several times as much."""
    truth = ScipyLaw("lognorm", 0.7)
    samples = [drawn(truth, 200, label) for label in range(30)]
    places: tuple[dict[str, float] | None, ...] = (None, {})
    spread = [np.std([fit("lognorm", rows, fixed=fixed).shapes[0] for rows in samples]) for fixed in places]
    print("seeds 'scipy families', 'lognorm', 0..29; deviations of the shape", spread)  # noqa: T201
    assert spread[1] > 2 * spread[0]


# --- purity -----------------------------------------------------------------------------------------------------------


def test_value_and_purity() -> None:
    learner = ScipyLearner(stats.lognorm)
    assert isinstance(learner, Learner)
    assert learner == ScipyLearner("lognorm", fixed={"loc": 0}) == copy.deepcopy(learner)
    assert learner == pickle.loads(pickle.dumps(learner))  # noqa: S301
    assert len({learner, ScipyLearner("lognorm"), ScipyLearner("gamma")}) == 2
    rows = drawn(ScipyLaw("lognorm", 0.7))
    before, law = rows.copy(), learner.fit(rows, seed=1)
    learner.fit(rows[:50] * 3, seed=2)
    assert learner.fit(rows, seed=3) == law == pickle.loads(pickle.dumps(law))  # noqa: S301
    np.testing.assert_array_equal(rows, before)
    for kind in ("copy", "process"):
        assert Isolation(kind=kind).fit(learner, rows.copy(), seed=4) == law


def test_records_in_other_clothes() -> None:
    rows = drawn(ScipyLaw("gamma", 2.5)).astype(np.float32)
    law = fit("gamma", rows.astype(np.float64))
    assert law == fit("gamma", rows) == fit("gamma", rows[:, 0]) == fit("gamma", rows.astype(object))
    assert law == fit("gamma", np.vstack((rows, [[np.nan], [np.inf], [-np.inf]])))


# --- bad records ------------------------------------------------------------------------------------------------------


def test_tame_data_on_which_plain_fits_break() -> None:  # E51
    rows = np.array([0.66, 0.62, 0.43, 0.17, 0.05, 0.10, 0.66, 0.02, 0.56, 0.13])
    law = fit("beta", rows)
    assert all(0 < shape < 10 for shape in law.shapes)
    assert np.isfinite(law.log_density(rows)).all()
    for family in ("lognorm", "norm", "gamma", "beta", "expon"):
        with pytest.raises(FitFailed, match="all records are equal"):
            fit(family, np.full(4, 0.5))


SECRET = "123.456789"  # noqa: S105


@pytest.mark.parametrize(
    ("family", "records"),
    [
        ("lognorm", np.array([123.456789, -1.0, 2.0, 3.0])),
        ("lognorm", np.array([123.456789, 0.0, 2.0, 3.0])),
        ("beta", np.array([0.1, 0.2, 123.456789])),
        ("beta", np.array([0.1, 0.2, 1.0])),
        ("norm", np.array([123.456789])),
        ("norm", np.array([123.456789, 2.0])),
        ("norm", np.zeros((0, 1))),
        ("norm", np.full((9, 1), np.nan)),
        ("norm", np.ones((9, 2)) * 123.456789),
        ("norm", np.array(["123.456789", "b", "c"])),
        ("norm", np.array([123.456789, "b", None], dtype=object)),
        ("norm", np.array([[[123.456789]]])),
        ("norm", np.array([1e300, 2e300, 3e300])),
        ("norm", np.array([1e-300, 2e-300, 3e-300])),
        ("pareto", np.array([-1.0, -2.0, -123.456789])),
    ],
)
def test_records_without_a_fit_fail_by_name_and_say_nothing_of_them(family: str, records: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FitFailed, match="no law of this family can be fitted") as failed:
            fit(family, records)
    assert SECRET not in str(failed.value)
    assert failed.value.__context__ is None
    assert Isolation().fit(ScipyLearner(family), records, seed=0) is not None


def test_a_search_that_ends_nowhere_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = drawn(ScipyLaw("gamma", 2.5))
    for ends in [(np.nan, 0, 1), (2.0, 0, 0), (2.0, 0, -1), (-2.0, 0, 1), (2.0, np.inf, 1), (2.0, 50.0, 1), (2.0,)]:
        monkeypatch.setattr(stats.gamma, "fit", lambda *_, ends=ends, **__: ends)
        with pytest.raises(FitFailed):
            fit("gamma", rows)


# --- bad parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["nothing", "poisson_disk", 3, None, object(), stats, [], np.array([1])])
def test_what_is_no_family_is_refused(family: Any) -> None:
    with pytest.raises(InvalidParameter, match="continuous family"):
        ScipyLearner(family)


def test_near_misses_are_told_what_to_do() -> None:
    with pytest.raises(InvalidParameter, match=r"ScipyLearner\('lognorm'\).*fixed="):
        ScipyLearner(stats.lognorm(0.5))
    with pytest.raises(InvalidParameter, match="EmpiricalLearner"):
        ScipyLearner(stats.poisson)
    with pytest.raises(InvalidParameter, match="EmpiricalLearner"):
        ScipyLearner("binom")
    with pytest.raises(InvalidParameter, match="vonmises_line"):
        ScipyLearner("vonmises")


@pytest.mark.parametrize(
    ("fixed", "says"),
    [
        ({"mean": 1}, "a, loc, scale"),
        ({"a": 1, "loc": 0, "scale": 1}, "not all"),
        ({"scale": 0}, "positive"),
        ({"scale": -1}, "positive"),
        ({"loc": np.nan}, "finite"),
        ({"loc": np.inf}, "finite"),
        ({"loc": "0"}, "finite"),
        ({"loc": True}, "finite"),
        ({"loc": None}, "finite"),
        ({"loc": 10**400}, "finite"),
        ([("loc", 0)], "mapping"),
        (0, "mapping"),
    ],
)
def test_bad_fixed_values_are_refused(fixed: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=f"fixed.*{says}"):
        ScipyLearner("gamma", fixed=fixed)


def test_least_records() -> None:
    assert ScipyLearner("norm").least_records(1) == 3
    assert ScipyLearner("lognorm").least_records(1) == 3
    assert ScipyLearner("lognorm", fixed={}).least_records(1) == 4
    with pytest.raises(InvalidParameter, match="dimension"):
        ScipyLearner("norm").least_records(2)
