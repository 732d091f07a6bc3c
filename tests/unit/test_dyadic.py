"""The dyadic coupling: isolation by replay, odd laws, odd arguments, canonical votes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accord.core.coupling import ABSTAIN
from accord.couplings import DyadicCoupling, SharedRandomness
from accord.couplings.dyadic import leaf_values, node_ends
from accord.distributions import Atoms, Categorical, Measure, Normal, PointMass, Uniform
from accord.errors import InvalidParameter

Floats = NDArray[np.float64]


@dataclass
class Odd:
    """A law on a line that is a standard normal law but for one fault."""

    fault: str
    dimension: int = 1
    measure: Measure = Measure.LEBESGUE

    def sample(self, size: int, generator: Any) -> Any:
        raise NotImplementedError

    def log_density(self, x: Any) -> Any:
        raise NotImplementedError

    def cdf(self, x: Any) -> Floats:
        values = Normal(0.0, 1.0).cdf(x)
        match self.fault:
            case "cdf falls":
                return np.asarray(np.where(np.asarray(x) > 3, values - 0.01, values))
            case "cdf stays below 1":
                return 0.9 * values
            case "cdf is short":
                return values[:-1]
        return values

    def interval(self, low: Any, high: Any) -> Floats:
        values = Normal(0.0, 1.0).interval(low, high)
        if len(np.atleast_1d(low)) == 1:  # the probe of `on_a_line`
            return values
        if self.fault == "exception":
            raise ZeroDivisionError
        broken = {
            "NaN": np.where(np.asarray(low) > 1, math.nan, values),
            "negative": values - 1e-6,
            "mass is missing": values * 0.999,
            "deep mass is missing": np.where(np.asarray(high) - np.asarray(low) < 0.01, values * 0.99, values),
            "wrong shape": values[:-1],
            "cdf stays below 1": 0.9 * values,
        }
        return np.asarray(broken.get(self.fault, values))


FAULTS = (
    "NaN",
    "negative",
    "mass is missing",
    "deep mass is missing",
    "exception",
    "wrong shape",
    "cdf falls",
    "cdf stays below 1",
    "cdf is short",
)


def votes(*laws: Any, draws: int = 25, key: int = 4, **options: Any) -> NDArray[np.object_]:
    return DyadicCoupling(**options).couple(laws, records=1, draws=draws, shared=SharedRandomness(key)).keys


@pytest.mark.parametrize("fault", FAULTS)
def test_a_law_with_a_fault_abstains_alone(fault: str) -> None:
    keys = votes(Odd("none"), Odd(fault), Normal(0.0, 1.0))
    assert all(key is ABSTAIN for key in keys[:, 1])
    assert not any(key is ABSTAIN for key in keys[:, 0])
    assert (keys[:, 0] == keys[:, 2]).all()


@pytest.mark.parametrize(
    "foreign", [ABSTAIN, None, "law", Categorical(["a"], [1.0]), PointMass("a"), Normal([0, 0], np.eye(2)), Normal]
)
def test_foreign_laws_abstain_alone(foreign: Any) -> None:
    keys = votes(Normal(0.0, 1.0), foreign)
    assert [key is ABSTAIN for key in keys[0]] == [False, True]


@pytest.mark.parametrize("options", [{}, {"node_bits": 5}, {"resolution": 10}])
def test_L3_other_laws_their_order_and_number_move_nothing(options: dict[str, int]) -> None:
    laws = [Normal(0.0, 1.0), Normal(1e5, 3.0), Atoms([0.0], [0.4], rest=Uniform(-1.0, 2.0)), PointMass(-7.5)]
    whole = votes(*laws, **options)
    for changed in (ABSTAIN, Normal(0.001, 1.0), Odd("exception"), Odd("NaN")):
        replayed = votes(laws[0], changed, *laws[2:], **options)
        assert (replayed[:, [0, 2, 3]] == whole[:, [0, 2, 3]]).all()
    order = [2, 0, 3, 1]
    assert (votes(*(laws[place] for place in order), **options) == whole[:, order]).all()
    assert (votes(*laws, Normal(3.0, 1.0), draws=40, **options)[:25, :4] == whole).all()


def test_draws_do_not_depend_on_how_many_are_dealt_with_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = votes(Normal(1.0, 2.0), draws=60)
    monkeypatch.setattr("accord.couplings.dyadic._AT_ONCE", 7 << 8)
    assert (votes(Normal(1.0, 2.0), draws=60) == whole).all()


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 0.1, math.pi * 1e300, 1.7976931348623157e308])
def test_a_point_mass_is_voted_as_it_is(value: float) -> None:
    for sign in (1.0, -1.0):
        for bits in (1, 3, 8, 12):
            keys = votes(PointMass(sign * value), draws=2, node_bits=bits)
            assert keys[0, 0] == np.array(sign * value + 0.0).astype("<f8").tobytes()


def test_what_lies_beyond_the_doubles_is_the_largest_double() -> None:
    @dataclass
    class Huge(Odd):
        """Half of the mass beyond the largest double on each side."""

        def cdf(self, x: Any) -> Floats:
            return np.where(np.asarray(x) == math.inf, 1.0, np.where(np.asarray(x) == -math.inf, 0.0, 0.5))

        def interval(self, low: Any, high: Any) -> Floats:
            return self.cdf(high) - self.cdf(low)

    largest = np.finfo(np.float64).max
    found = {float(np.frombuffer(key, "<f8")[0]) for key in votes(Huge("none"), draws=60)[:, 0]}
    assert found == {largest, -largest}


def test_the_tree_cuts_all_doubles_in_order_and_without_gaps() -> None:
    generator = np.random.default_rng(1)
    for depth, bits in ((0, 8), (0, 1), (8, 8), (16, 12), (52, 12), (60, 4), (63, 1)):
        values = generator.standard_normal(200) * 10.0 ** generator.integers(-300, 300, 200)
        places = values.view(np.int64)
        words = np.where(places < 0, ~places.view(np.uint64), places.view(np.uint64) | np.uint64(1 << 63))
        words = np.where(places < 0, words + np.uint64(1), words)  # 0.0 and -0.0 are one place
        nodes = words >> np.uint64(64 - depth) if depth else np.zeros(200, dtype=np.uint64)
        child = (words >> np.uint64(64 - depth - bits)) & np.uint64((1 << bits) - 1)
        ends = node_ends(nodes, depth=depth, bits=bits)
        assert (np.diff(ends, axis=1)[np.isfinite(ends).all(axis=1)] >= 0).all()
        row = np.arange(200)
        assert (ends[row, child.astype(int)] < values).all()
        assert (values <= ends[row, child.astype(int) + 1]).all()
        leaf = leaf_values(words >> np.uint64(64 - depth - bits), depth=depth + bits)
        assert (leaf <= values).all()
        if depth + bits == 64:
            assert (leaf == values).all()
    root = node_ends(np.zeros(1, dtype=np.uint64), depth=0, bits=6)[0]
    assert root[0] == -math.inf
    assert root[-1] == math.inf


def test_resolution_rounds_down_to_so_many_bits() -> None:
    full = np.array([np.frombuffer(key, "<f8")[0] for key in votes(Uniform(3.0, 700.0), draws=200)[:, 0]])
    coarse = votes(Uniform(3.0, 700.0), draws=200, resolution=4)[:, 0]
    found = np.array([np.frombuffer(key, "<f8")[0] for key in coarse])
    mantissa, exponent = np.frexp(full)
    assert (found == np.ldexp(np.floor(mantissa * 32) / 32, exponent)).all()
    assert len(set(found.tolist())) < len(set(full.tolist()))


def test_records_one_by_one_only_where_it_is_asked_for() -> None:
    law = Normal(0.0, 1.0)
    with pytest.raises(InvalidParameter, match="record_by_record"):
        DyadicCoupling().couple([law], records=2, draws=1, shared=SharedRandomness(1))
    coupled = DyadicCoupling(record_by_record=True).couple([law, law], records=6, draws=4, shared=SharedRandomness(1))
    assert coupled.values.shape == (4, 2, 6, 1)
    assert len(np.unique(coupled.values[:, 0])) == 24
    assert (coupled.values[:, 0] == coupled.values[:, 1]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"resolution": 53},
        {"resolution": -1},
        {"resolution": 1.5},
        {"node_bits": 0},
        {"node_bits": 13},
        {"record_by_record": 1},
    ],
)
def test_silly_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        DyadicCoupling(**options)
