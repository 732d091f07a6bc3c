"""Laplace, DiscreteLaplace, DiscreteGaussian: refusals, shapes, grids, sizes, numbers."""

import decimal
import math
import os
import random
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.errors import InvalidParameter, WrongRandomness
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Laplace
from accord.noise import discrete_gaussian as curve
from accord.noise.numbers import from_steps, read_reals, to_steps
from accord.privacy import ApproxDP, Neighbouring, PureDP, Sensitivity
from accord.randomness import PrivateRandomness, SharedRandomness
from accord.testing import ReplayRandomness
from accord.testing.mechanism_checks import CountingRandomness

MECHANISMS: dict[str, Any] = {
    "Laplace": lambda sensitivity: Laplace(sensitivity=sensitivity, epsilon=1),
    "DiscreteLaplace": lambda sensitivity: DiscreteLaplace(sensitivity=sensitivity, scale=1),
    "DiscreteGaussian": lambda sensitivity: DiscreteGaussian(sensitivity=sensitivity, sigma=2),
}


def run(name: str, value: Any, randomness: Any = None, sensitivity: Any = 1) -> Any:
    mechanism: Any = MECHANISMS[name](sensitivity)
    extra = {"delta": "1e-6"} if name == "DiscreteGaussian" else {}
    return mechanism.release(value, randomness=randomness, **extra)


class Untouched(PrivateRandomness):
    """A source from which nothing may be drawn."""

    def bytes(self, count: int) -> bytes:
        raise AssertionError("noise was drawn")


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    "sensitivity", [-1, float("nan"), math.inf, -math.inf, None, True, "much", [1.0], Fraction(-1, 9), 1e200 * 1e200]
)
def test_E05_E11_E20_bad_sensitivity_is_refused_by_name(name: str, sensitivity: Any) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity"):
        MECHANISMS[name](sensitivity)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), math.inf, None, True, "x"])
def test_bad_epsilon_scale_and_sigma_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        Laplace(sensitivity=1, epsilon=bad)
    with pytest.raises(InvalidParameter, match="scale"):
        DiscreteLaplace(sensitivity=1, scale=bad)
    with pytest.raises(InvalidParameter, match="sigma"):
        DiscreteGaussian(sensitivity=1, sigma=bad)


def test_E05_a_product_of_factors_does_not_overflow_when_it_is_exact() -> None:
    product = Fraction(10) ** 200 * Fraction(10) ** 200
    assert DiscreteLaplace(sensitivity=product, scale=product).guarantee == PureDP(1)
    assert Sensitivity(2**32 * 2**32).bound == 2**64
    with pytest.raises(InvalidParameter, match="sensitivity / epsilon"):
        Laplace(sensitivity=product, epsilon=1)
    with pytest.raises(InvalidParameter, match="sensitivity / epsilon"):
        Laplace(sensitivity=1 / product, epsilon=1)


@pytest.mark.parametrize("product", [1e200 * 1e200, -1e200 * 1e200, np.float64("inf"), np.iinfo(np.int64).min])
def test_E05_an_overflowing_product_of_factors_is_refused_by_name_before_noise(
    product: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(count: int) -> bytes:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(os, "urandom", drawn)
    for mechanism in MECHANISMS.values():
        with pytest.raises(InvalidParameter, match="sensitivity"):
            mechanism(product).release(0)
    with pytest.raises(InvalidParameter, match="bound"):
        Sensitivity(product)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**30 + 1), "1e-10", "1e-1000"])
@pytest.mark.parametrize("sensitivity", [1, 0, "1e-1000"])
def test_an_absurdly_small_epsilon_is_refused_at_once(epsilon: Any, sensitivity: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon must be at least 2\^-30"):
        Laplace(sensitivity=sensitivity, epsilon=epsilon)
    assert Laplace(sensitivity=1, epsilon=Fraction(1, 2**30)).release(0.0).guarantee == PureDP(Fraction(1, 2**30))


@pytest.mark.parametrize("sensitivity", ["1e300", "1e-300", "1e9999", "1e-9999"])
def test_an_absurd_sensitivity_is_refused_at_once(sensitivity: str) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity / epsilon"):
        Laplace(sensitivity=sensitivity, epsilon=1)


def test_decimals_are_taken_exactly_in_the_range_that_is_stated() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    assert mechanism.release(decimal.Decimal("-9e10000")).value == -sys.float_info.max
    small: Any = mechanism.release(decimal.Decimal("1e-10000")).value
    assert abs(small) < 1000
    assert mechanism.release(10**20000).value == sys.float_info.max


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(20), Fraction(1000), Fraction(2**41)])
@pytest.mark.parametrize("size", [1, 100, 3000])
def test_E18_a_batch_takes_a_number_of_bytes_that_does_not_depend_on_the_noise(scale: Fraction, size: int) -> None:
    taken, noise = set(), set()
    for key in range(200 if size <= 100 else 10):
        source = CountingRandomness(ReplayRandomness(key))
        values = DiscreteLaplace(sensitivity=1, scale=scale).release(np.zeros(size, dtype=np.int64), randomness=source)
        taken.add(source.taken)
        noise.add(int(np.abs(np.asarray(values.value)).max()))
    assert len(taken) == 1, "a refinement has a chance below 2^-32 an entry"
    assert taken.pop() % (8 * size) == 0
    assert len(noise) > 1


BAD_REALS = [
    float("nan"),
    math.inf,
    [1.0, math.nan],
    np.array([1.0, -math.inf]),
    None,
    "1.0",
    ["1.0"],
    True,
    [True, 1.0],
    1j,
    np.array([1 + 0j]),
    np.array([True]),
    [[1.0], [2.0, 3.0]],
    np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    [np.ma.masked_array([1.0, 2.0], mask=[False, True])],
    [[1.0, 2.0], ([3.0], np.ma.masked_array([1.0], mask=[True]))],
    [1.0, np.ma.masked],
    np.array([1.0, np.ma.masked], dtype=object),
    decimal.Decimal("1e20000"),
    decimal.Decimal("1e-20000"),
    np.array([1.0], dtype=np.longdouble),
    {"a": 1.0},
    decimal.Decimal("NaN"),
    [10**400, math.nan],
]


@pytest.mark.parametrize("value", BAD_REALS)
@pytest.mark.parametrize("sensitivity", [1, 0])
def test_E04_a_value_that_is_no_finite_real_is_refused_before_any_noise(value: Any, sensitivity: int) -> None:
    with pytest.raises(InvalidParameter, match="value"):
        run("Laplace", value, Untouched(), sensitivity)


@pytest.mark.parametrize("name", ["DiscreteLaplace", "DiscreteGaussian"])
@pytest.mark.parametrize(
    "value",
    [
        *(1.0, [1, 2.0], np.array([1.0]), None, "1", True, [True], np.array([True]), [[1], 2]),
        np.ma.masked_array([1, 2], mask=[False, True]),
        [np.ma.masked_array([1, 2], mask=[False, True])],
        [[1, 2], ([3], np.ma.masked_array([1], mask=[True]))],
        [1, np.ma.masked],
    ],
)
def test_a_value_that_is_no_integer_is_refused_before_any_noise(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match="value"):
        run(name, value, Untouched())


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("randomness", [0, 42, np.random.default_rng(1), SharedRandomness("key"), "seed"])
def test_E17_a_seed_is_no_source_of_noise(name: str, randomness: Any) -> None:
    with pytest.raises(WrongRandomness):
        run(name, 1, randomness)


@pytest.mark.parametrize("name", MECHANISMS)
def test_arguments_of_numbers_are_checked(name: str) -> None:
    mechanism: Any = MECHANISMS[name](1)
    for confidence in (0, 1, -1, math.nan, None):
        with pytest.raises(InvalidParameter, match="confidence"):
            mechanism.interval(confidence)
    for dimension in (0, 1.5, -1):
        with pytest.raises(InvalidParameter, match="dimension"):
            mechanism.tail(1, dimension=dimension)
    with pytest.raises(InvalidParameter, match="t "):
        mechanism.tail(math.nan)


# --- promises are derived from fields ---------------------------------------------------------------------------------


def test_guarantees_follow_from_the_fields() -> None:
    one_off = Sensitivity("0.5", Neighbouring.ADD_OR_REMOVE_ONE)
    assert Laplace(sensitivity=3, epsilon="0.1").guarantee == PureDP("0.1")
    assert Laplace(sensitivity=one_off, epsilon=1).guarantee == PureDP(1, Neighbouring.ADD_OR_REMOVE_ONE)
    assert DiscreteLaplace(sensitivity=2, scale=8).guarantee == PureDP("0.25")
    assert DiscreteLaplace(sensitivity=one_off, scale=2).guarantee == PureDP("0.25", Neighbouring.ADD_OR_REMOVE_ONE)
    assert DiscreteGaussian(sensitivity=one_off, sigma=5).guarantee_at("1e-6").neighbouring is one_off.neighbouring
    released = run("Laplace", [1.0, 2.0])
    assert released.guarantee == PureDP(1)
    assert isinstance(run("DiscreteGaussian", [1, 2]).guarantee, ApproxDP)


def test_a_bare_number_is_a_sensitivity_under_replace_one() -> None:
    assert Laplace(sensitivity="0.1", epsilon=1) == Laplace(sensitivity=Sensitivity(Fraction(1, 10)), epsilon=1)
    assert Laplace(sensitivity=0.1, epsilon=1).sensitivity.bound == Fraction(1, 10)
    assert hash(DiscreteLaplace(sensitivity=1, scale=2)) == hash(DiscreteLaplace(sensitivity=Sensitivity(1), scale="2"))


# --- shapes and sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0,), (3, 0), (2, 1, 2)])
def test_an_array_keeps_its_shape(name: str, shape: tuple[int, ...]) -> None:
    for dtype in (np.int8, np.uint16, np.int64, np.uint64):
        before = np.full(shape, 7, dtype=dtype)
        released = run(name, before).value
        assert isinstance(released, np.ndarray)
        assert released.shape == shape
        assert released.dtype == (np.float64 if name == "Laplace" else np.int64)
        assert (before == 7).all()


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("value", [3, np.int32(3), 2**70])
def test_a_number_gives_a_number(name: str, value: Any) -> None:
    assert type(run(name, value).value) is (float if name == "Laplace" else int)


def test_lists_are_taken_as_they_are() -> None:
    assert run("Laplace", [[1.0, 2], [Fraction(1, 3), decimal.Decimal("0.1")]]).value.shape == (2, 2)
    assert run("DiscreteLaplace", [[1, 2], [3, 2**80]]).value.shape == (2, 2)
    assert type(run("Laplace", np.float32(1.5)).value) is float


@pytest.mark.parametrize("name", ["DiscreteLaplace", "DiscreteGaussian"])
@pytest.mark.parametrize("top", [2**63 - 1, -(2**63), 2**64 - 1, 10**30])
def test_E06_sums_do_not_wrap_around(name: str, top: int) -> None:
    key = f"E06 {name}"
    noise = run(name, [0] * 64, ReplayRandomness(key)).value
    assert run(name, [top] * 64, ReplayRandomness(key)).value.tolist() == [top + z for z in noise.tolist()]
    if abs(top) < 2**64:
        array = np.full(64, top, dtype=np.uint64 if top > 2**63 else np.int64)
        assert run(name, array, ReplayRandomness(key)).value.tolist() == [top + z for z in noise.tolist()]


def test_E06_the_type_of_a_sum_depends_on_the_sum_alone() -> None:
    assert run("DiscreteLaplace", [10**30]).value.dtype == object
    assert run("DiscreteLaplace", np.array([2**40], dtype=object)).value.dtype == np.int64
    mechanism: Any = DiscreteLaplace(sensitivity=1, scale=2**80)
    wide = mechanism.release(np.zeros(50, dtype=np.int64)).value
    assert wide.dtype == object
    assert all(type(entry) is int for entry in wide)
    assert max(abs(entry) for entry in wide) > 2**70


# --- zero sensitivity -------------------------------------------------------------------------------------------------


def test_M2_zero_sensitivity_releases_exactly() -> None:
    values = [0.1, -1e300, 5e-324, 0.0]
    released = run("Laplace", values, Untouched(), sensitivity=0)
    assert released.value.tolist() == values
    assert released.guarantee.epsilon <= 1
    assert run("Laplace", Fraction(1, 3), sensitivity=0).value == 1 / 3
    for name in ("DiscreteLaplace", "DiscreteGaussian"):
        assert run(name, [2**90, 1], Untouched(), sensitivity=0).value.tolist() == [2**90, 1]
        assert run(name, 5, Untouched(), sensitivity=0).value == 5
    assert DiscreteLaplace(sensitivity=0, scale=1).guarantee == PureDP(0)


def test_M2_zero_sensitivity_has_plain_numbers() -> None:
    mechanism: Any = Laplace(sensitivity=0, epsilon=1)
    assert (mechanism.scale, mechanism.step, mechanism.noise_scale(3)) == (0, 0, 0)
    assert (mechanism.tail(0), mechanism.tail("1e-9"), mechanism.interval("0.9")) == (1.0, 0.0, (0.0, 0.0))
    assert DiscreteLaplace(sensitivity=0, scale=1).interval("0.9") == (0, 0)
    assert DiscreteGaussian(sensitivity=0, sigma=1).tail(1) == 0.0
    for ask in (mechanism.density, mechanism.cdf):
        with pytest.raises(InvalidParameter, match="point mass"):
            ask(0.0)


# --- the grid ---------------------------------------------------------------------------------------------------------


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9), st.fractions(min_value=Fraction(1, 1000), max_value=10)
)
def test_the_step_is_a_power_of_two_that_depends_on_the_scale_alone(sensitivity: Fraction, epsilon: Fraction) -> None:
    mechanism: Any = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    assert 2**40 * mechanism.step <= mechanism.scale < 2**41 * mechanism.step
    assert 1 in {mechanism.step.numerator, mechanism.step.denominator}
    assert (mechanism.step.numerator * mechanism.step.denominator).bit_count() == 1
    assert Laplace(sensitivity=2 * sensitivity, epsilon=2 * epsilon).step == mechanism.step
    for dimension in (1, 2, 1000):
        noise_scale = mechanism.noise_scale(dimension)
        assert mechanism.scale <= noise_scale <= mechanism.scale * (1 + Fraction(dimension, 2**40) / epsilon)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1 / 3, 1e9 + 0.7, 5e-324, 2.0**70, -1e300])
def test_E01_all_outputs_lie_on_the_same_public_grid(value: float) -> None:
    mechanism: Any = Laplace(sensitivity=1, epsilon=1)
    for output in mechanism.release(np.full(300, value)).value.tolist():
        assert (Fraction(output) / mechanism.step).denominator == 1
        assert math.copysign(1, output) > 0 or output != 0


def test_E01_the_grid_has_no_holes_that_depend_on_the_value() -> None:
    """With the noise held, two inputs that are whole steps apart give outputs that are the same steps apart."""
    mechanism: Any = Laplace(sensitivity=1, epsilon=1)
    first, second = (
        mechanism.release(np.full(10_000, value), randomness=ReplayRandomness("E01")).value for value in (0.0, 1.0)
    )
    assert (second - first == 1.0).all()


def test_E02_the_lowest_bit_tells_nothing() -> None:
    """Close to 0 the grid is as fine for one input as for the other: the parity of the steps is a fair coin."""
    mechanism: Any = Laplace(sensitivity=1, epsilon=1)
    for value in (0.0, 1.0, 0.1):
        output = mechanism.release(np.full(400_000, value)).value
        near = output[np.abs(output) < 2.0**-8]
        assert len(near) > 300
        odd = np.mod(np.ldexp(near, 40), 2) == 1
        # Hoeffding: 6 deviations of 1/(2 sqrt n) are passed with a chance below 2 exp(-18) = 3e-8.
        assert abs(odd.mean() - 0.5) < 3 / math.sqrt(len(near))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(min_value=-940, max_value=860))
def test_to_steps_is_the_exact_rounding(value: float, exponent: int) -> None:
    exact = math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))
    assert int(to_steps(np.array([value]), exponent=exponent)[0]) == exact


@pytest.mark.parametrize(
    "value", [-0.5, 0.5, 0.49999999999999994, -0.49999999999999994, 1.5, -1.5, -5e-324, 2.0**52 + 1]
)
def test_to_steps_at_the_edges(value: float) -> None:
    assert int(to_steps(np.array([value]), exponent=0)[0]) == math.floor(Fraction(value) + Fraction(1, 2))


@given(st.integers(min_value=-(2**80), max_value=2**80), st.integers(min_value=-940, max_value=860))
def test_from_steps_rounds_once(steps: int, exponent: int) -> None:
    dtype = np.int64 if abs(steps) < 2**62 else object
    found = from_steps(np.array([steps], dtype=dtype), exponent=exponent)[0]
    assert found == float(Fraction(steps) * Fraction(2) ** exponent)
    assert (Fraction(float(found)) / Fraction(2) ** exponent).denominator == 1


def test_a_sum_beyond_the_floats_is_the_largest_float() -> None:
    top = np.finfo(np.float64).max
    mechanism: Any = Laplace(sensitivity=2.0**899, epsilon=1)
    assert mechanism.release([top, -top]).value.tolist() == [top, -top]
    assert mechanism.release(10**400).value == top
    assert run("Laplace", [-(10**400)], sensitivity=0).value.tolist() == [-top]


@pytest.mark.parametrize("make", [list, np.array, lambda x: np.array(x, dtype=object)])
def test_large_ints_are_not_rounded_before_the_noise(make: Any) -> None:
    """As floats, both entries would be 2^60."""
    steps = to_steps(read_reals(make([2**60 + 1, 2**60])), exponent=-10)
    assert int(steps[0]) - int(steps[1]) == 2**10


# --- replay on neighbours ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_replay_on_neighbours_moves_the_output_by_the_query_alone(name: str) -> None:
    here, there = np.array([3, 10, -5, 2**40]), np.array([4, 10, -7, 2**40 + 1])
    outputs = [run(name, value, ReplayRandomness(f"replay {name}")).value for value in (here, there)]
    assert (outputs[1] - outputs[0]).tolist() == (there - here).tolist()


@pytest.mark.parametrize("name", MECHANISMS)
def test_E16_noise_differs_across_calls_whatever_is_seeded(name: str) -> None:
    outputs = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the global generator is what the test is about
        outputs.append(run(name, np.zeros(200, dtype=np.int64)).value.tolist())
    assert outputs[0] != outputs[1]
    source = PrivateRandomness()
    assert run(name, np.zeros(200, dtype=np.int64), source).value.tolist() != outputs[0]
    assert len(set(run(name, np.zeros(200, dtype=np.int64), source).value.tolist())) > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("name", MECHANISMS)
def test_E17_parent_and_child_draw_different_noise(name: str) -> None:
    source = PrivateRandomness()
    zeros = np.zeros(64, dtype=np.int64)
    run(name, zeros, source)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child
        os.write(writer, np.asarray(run(name, zeros, source).value).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    mine = np.asarray(run(name, zeros, source).value).tobytes()
    assert len(theirs) == len(mine)
    assert theirs != mine


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_M1_density_and_cdf() -> None:
    mechanism: Any = Laplace(sensitivity=1, epsilon="0.5")
    z = np.linspace(-40, 40, 400_001)
    assert mechanism.density(0.0) == 0.25
    assert mechanism.density(z).sum() * (z[1] - z[0]) == pytest.approx(1, abs=1e-6)
    assert mechanism.cdf([0.0, 2.0, -2.0]) == pytest.approx([0.5, 1 - math.exp(-1) / 2, math.exp(-1) / 2])


@pytest.mark.parametrize("scale", ["0.3", 1, 20, 1000, "1e-8"])
def test_discrete_laplace_pmf_cdf_and_tail_agree(scale: Any) -> None:
    mechanism: Any = DiscreteLaplace(sensitivity=1, scale=scale)
    reach = int(50 * mechanism.scale) + 5
    z = np.arange(-reach, reach + 1)
    pmf = mechanism.pmf(z)
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert mechanism.cdf(z) == pytest.approx(np.cumsum(pmf), abs=1e-12)
    for t in (0, 1, 2, reach // 10 + 1):
        exact = pmf[np.abs(z) >= t].sum()
        assert exact * (1 - 1e-9) - 1e-15 <= mechanism.tail(t) <= exact * (1 + 1e-9) + 1e-15
        assert mechanism.tail(t, dimension=7) == pytest.approx(min(1, 7 * mechanism.tail(t)), rel=1e-12)
    assert mechanism.pmf(0.5) == 0
    assert mechanism.tail("0.5") == mechanism.tail(1)
    assert mechanism.tail(10**30) < 1e-300


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("dimension", [1, 10])
@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_are_the_least_ones(name: str, confidence: str, dimension: int) -> None:
    mechanism: Any = MECHANISMS[name](1)
    low, high = mechanism.interval(confidence, dimension=dimension)
    assert low == -high
    missed = 1 - Fraction(confidence)
    step = 2 * mechanism.step if name == "Laplace" else 1
    assert mechanism.tail(Fraction(high) + step, dimension=dimension) <= missed
    assert mechanism.tail(Fraction(high) - step, dimension=dimension) > missed


def test_laplace_tail_bounds_the_continuous_one_closely() -> None:
    mechanism: Any = Laplace(sensitivity=1, epsilon=1)
    for t in ("0.1", 1, 5, 30):
        assert 1 <= mechanism.tail(t) / math.exp(-float(t)) < 1 + 1e-10
    assert (mechanism.tail(0), mechanism.tail(-3)) == (1.0, 1.0)


# --- the Gaussian curve -----------------------------------------------------------------------------------------------


def brute_delta(epsilon: float, sigma: int, shift: int) -> decimal.Decimal:
    with decimal.localcontext(prec=80):
        reach = 40 * sigma + shift
        weight = {
            z: (decimal.Decimal(-z * z) / (2 * sigma * sigma)).exp() for z in range(-reach - shift, reach + shift + 1)
        }
        total, a = sum(weight.values()), decimal.Decimal(epsilon).exp()
        gaps = (weight[z] - a * weight[z - shift] for z in range(-reach, reach + 1))
        return sum((gap for gap in gaps if gap > 0), decimal.Decimal(0)) / total


@pytest.mark.parametrize("sigma", [1, 3, 20])
@pytest.mark.parametrize("shift", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 1.0, 4.0])
def test_the_gaussian_curve_is_the_smallest_delta(sigma: int, shift: int, epsilon: float) -> None:
    found = Fraction(DiscreteGaussian(sensitivity=shift, sigma=sigma).delta(epsilon, dimension=1))
    truth = Fraction(brute_delta(epsilon, sigma, shift))
    assert truth * (1 - Fraction(1, 10**50)) <= found
    assert found <= truth * (1 + Fraction(1, 10**12)) + Fraction(1, 10**40)


def test_the_gaussian_curve_grows_with_the_shift_and_floors_the_sensitivity() -> None:
    deltas = [DiscreteGaussian(sensitivity=s, sigma=5).delta(1, dimension=1) for s in range(1, 12)]
    assert deltas == sorted(deltas)
    assert DiscreteGaussian(sensitivity="2.9", sigma=5).delta(1, dimension=1) == deltas[1]
    assert DiscreteGaussian(sensitivity="0.9", sigma=5).delta(0) == 0


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_zcdp_is_never_below_the_exact_curve(sensitivity: int, epsilon: Any) -> None:
    mechanism: Any = DiscreteGaussian(sensitivity=sensitivity, sigma=4)
    assert mechanism.zcdp == Fraction(sensitivity**2, 32)
    assert mechanism.delta(epsilon, dimension=1) <= mechanism.delta(epsilon, dimension=2) == mechanism.delta(epsilon)


def test_zcdp_conversion_meets_the_published_number() -> None:
    """rho = 0.2 at delta = 1e-6 is epsilon = 3.1311 (opendp, autodp and dp-accounting agree on these digits)."""
    rho, delta = Fraction(1, 5), Fraction(1, 10**6)
    assert curve.zcdp_delta(Fraction("3.1312"), rho=rho) <= delta < curve.zcdp_delta(Fraction("3.1310"), rho=rho)
    assert curve.zcdp_delta(Fraction(1), rho=Fraction(10**9)) == 1
    assert curve.zcdp_delta(Fraction(10**30), rho=rho) < Fraction(1, 10**300)


def test_guarantee_at_is_the_least_epsilon() -> None:
    for mechanism in (DiscreteGaussian(sensitivity=1, sigma=20), DiscreteGaussian(sensitivity=3, sigma=5000)):
        for dimension in (None, 1, 2):
            guarantee = mechanism.guarantee_at("1e-6", dimension=dimension)
            assert mechanism.delta(guarantee.epsilon, dimension=dimension) <= 1e-6
            assert mechanism.delta(guarantee.epsilon * Fraction(999_999, 10**6), dimension=dimension) > 1e-6
    assert DiscreteGaussian(sensitivity=1, sigma=10**9).guarantee_at("0.5").epsilon == 0
    with pytest.raises(InvalidParameter, match="sigma is too small"):
        DiscreteGaussian(sensitivity=100, sigma="0.1").guarantee_at("1e-6")
    with pytest.raises(InvalidParameter, match="epsilon"):
        DiscreteGaussian(sensitivity=1, sigma=1).delta(-1)


@pytest.mark.parametrize("sigma", ["0.01", "0.4", 1, 7, 300, 5000])
def test_gaussian_pmf_and_tail_agree(sigma: Any) -> None:
    mechanism: Any = DiscreteGaussian(sensitivity=1, sigma=sigma)
    reach = int(12 * mechanism.sigma) + 5
    z = np.arange(-reach, reach + 1)
    pmf = mechanism.pmf(z)
    assert pmf.sum() == pytest.approx(1, abs=1e-11)
    for t in (1, 2, reach // 6):
        exact = pmf[np.abs(z) >= t].sum()
        assert mechanism.tail(t) >= exact * (1 - 1e-9)
        if mechanism.sigma <= 1024:
            assert mechanism.tail(t) == pytest.approx(exact, rel=1e-9, abs=1e-12)
