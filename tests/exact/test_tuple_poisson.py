"""Couple II by enumeration, in whole numbers and rationals: nothing here depends on luck."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from accord.core.coupling import ABSTAIN
from accord.couplings import joint_law
from accord.couplings.atom_race import label_bytes, label_of
from accord.distributions import Atoms, Categorical, Mixture, Normal, Piecewise, PointMass, Product, Uniform
from accord.errors import InvalidParameter
from accord.laws import FiniteLaw, total_variation
from accord.randomness import SharedRandomness
from accord.theory import TuplePoissonCoupling
from accord.theory.couplings import grid as _earliest
from accord.theory.couplings.grid import WHOLE, Column, GridLaw, Points, Reader, first_accepted, margin, shares
from accord.theory.couplings.secret_stream import SecretStream

# --- the joint law ----------------------------------------------------------------------------------------------------

weights = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)
Tuple = tuple[Any, ...]


def finite(values: Sequence[int]) -> FiniteLaw:
    return FiniteLaw(dict(zip("abc", values, strict=True)))


def marginal(law: FiniteLaw, *places: int) -> FiniteLaw:
    result: dict[Tuple, Fraction] = {}
    for outcome in law:
        assert isinstance(outcome, tuple)
        name = tuple(outcome[place] for place in places)
        result[name] = result.get(name, Fraction(0)) + law[outcome]
    return FiniteLaw(result)


def literal_joint_law(laws: Sequence[FiniteLaw]) -> FiniteLaw:
    """Couple II as stated: a uniform law, a point from it, a height; idle points are a geometric sum."""
    k = len(laws)
    points: list[tuple[str, frozenset[int], Fraction]] = []  # value, who accepts, probability of one such point
    for y in "abc":
        total = sum((law[y] for law in laws), Fraction(0))
        if total == 0:
            continue
        ratios = [law[y] / total for law in laws]
        cuts = sorted({Fraction(0), Fraction(1), *ratios})
        for low, high in pairwise(cuts):
            takers = frozenset(i for i, ratio in enumerate(ratios) if high <= ratio)
            points.append((y, takers, total / k * (high - low)))
    assert sum(mass for _, _, mass in points) == 1

    def go(waiting: frozenset[int]) -> dict[Tuple, Fraction]:
        if not waiting:
            return {(None,) * k: Fraction(1)}
        idle = sum((mass for _, takers, mass in points if not takers & waiting), Fraction(0))
        result: dict[Tuple, Fraction] = {}
        for y, takers, mass in points:
            now = takers & waiting
            if not now:
                continue
            for values, chance in go(waiting - now).items():
                filled = tuple(y if i in now else value for i, value in enumerate(values))
                result[filled] = result.get(filled, Fraction(0)) + chance * mass / (1 - idle)
        return result

    return FiniteLaw(go(frozenset(range(k))))


@given(st.lists(weights, min_size=1, max_size=4))
@settings(max_examples=40)
def test_L2_joint_law_is_the_literal_rule(values: list[list[int]]) -> None:
    laws = [finite(value) for value in values]
    assert joint_law(laws) == literal_joint_law(laws)


@given(st.lists(weights, min_size=2, max_size=4))
@settings(max_examples=40)
def test_L2_marginals_agreement_and_consistency(values: list[list[int]]) -> None:
    laws = [finite(value) for value in values]
    whole = joint_law(laws)
    for place, law in enumerate(laws):
        assert marginal(whole, place) == FiniteLaw.of([(y,) for y in law], weights=law.probabilities)
    for kept in combinations(range(len(laws)), len(laws) - 1):
        assert marginal(whole, *kept) == joint_law([laws[place] for place in kept])
    for order in permutations(range(len(laws))):
        assert marginal(whole, *order) == joint_law([laws[place] for place in order])
    for i, j in combinations(range(len(laws)), 2):
        agree = sum((whole[z] for z in whole if z[i] == z[j]), Fraction(0))  # type: ignore[index]
        tv = Fraction(total_variation(laws[i], laws[j]))
        assert 1 - agree <= 2 * tv / (1 + tv)
        rest = sum((abs(laws[i][y] - laws[j][y]) * min(laws[i][y], laws[j][y]) for y in "abc"), Fraction(0))
        assert agree == (1 - tv + rest) / (1 + tv)  # theory S1


def test_joint_law_refuses_what_is_too_large_and_what_is_no_law() -> None:
    big = FiniteLaw(dict.fromkeys(range(60), 1))
    with pytest.raises(InvalidParameter, match="too large"):
        joint_law([big] * 5)
    for wrong in ([], [{"a": 1}]):
        with pytest.raises(InvalidParameter, match="at least one"):
            joint_law(wrong)  # type: ignore[arg-type]


# --- laws in whole numbers --------------------------------------------------------------------------------------------

LAWS: dict[str, Any] = {
    "normal": Normal(0.3, 2.0),
    "normal in the plane": Normal([1.0, -2.0], [[1.0, 0.7], [0.7, 2.0]]),
    "normal in space": Normal([0.0, 1.0, 50.0], [[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 0.5]]),
    "uniform": Uniform(-1.0, 3.3),
    "histogram": Piecewise([0.0, 1.0, 2.5], [0.25, 0.75]),
    "atoms and density": Atoms([0.0, 2.0], [0.25, 0.25], rest=Normal(0, 1)),
    "mixture on a line": Mixture([Normal(-2, 1), Normal(3, 0.1)], [1, 3]),
    "mixture in the plane": Mixture([Normal([0.0, 0.0], np.eye(2)), Normal([4.0, 1.0], 2 * np.eye(2))], [1, 3]),
    "point": PointMass([1.0, 2.0]),
    "labels": Categorical(["a", True, 1, 2.5], [1, 2, 3, 4]),
    "finite": FiniteLaw({("x", 1): "1/3", "y": "2/3"}),
    "mixed columns": Product(
        [Normal(0, 1), Categorical(["a", "b"], [1, 2]), Normal([0.0, 1.0], [[1.0, 0.9], [0.9, 1.0]])]
    ),
}


def read(law: Any, *, step: float = 0.25, most: int = 1 << 18) -> GridLaw:
    return Reader((step,), most).read(law)


def columns_of(law: GridLaw) -> list[tuple[int, Column]]:
    return [(place, column) for part in law.components for place, column in enumerate(part.columns)]


def sampler_is_the_weight(column: Column, place: int, earlier: Sequence[int]) -> bool:
    """Whether each cell is found for exactly as many u below 2^62 as its weight says, given the earlier columns."""
    move = column._move(np.array([*earlier, 0])[:, None])
    table = int(np.ravel(move[1])[0])
    cuts = column.cuts[table]
    ends = np.unique(np.concatenate((cuts[:-1], cuts[1:] - 1)))
    ends = ends[(ends >= 0) & (ends < WHOLE)]
    cells = np.zeros((place + 1, len(ends)), dtype=np.int64)
    cells[:place] = np.array(earlier, dtype=np.int64)[:, None]
    cells[place] = column.find(ends, cells)
    first = np.concatenate(([True], cells[place, 1:] != cells[place, :-1]))
    last = np.concatenate((first[1:], [True]))
    if len(np.unique(cells[place])) != first.sum():  # a cell's u are an interval: the search is monotone
        return False
    lengths = ends[last] - ends[first] + 1
    weigh = column.weights(place, cells[:, first])
    logs = column.log_weights(place, cells[:, first])
    return bool(lengths.sum() == WHOLE and (lengths == weigh).all() and np.allclose(logs, np.log(weigh), rtol=1e-14))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("earlier", [(0, 0, 0), (4, 1, 7), (-13, 0, 5), (10**9, 3, -(10**12))])
def test_sampler_and_weight_are_one_law(name: str, earlier: tuple[int, ...]) -> None:
    law = read(LAWS[name])
    assert sum(part.weight for part in law.components) == WHOLE
    for place, column in columns_of(law):
        assert sampler_is_the_weight(column, place, earlier[:place])


def test_cuts_are_the_rounded_probabilities_of_the_cells() -> None:
    column = read(Normal(0.3, 4.0), step=0.25).components[0].columns[0]
    cells = np.arange(-40, 45)
    got = column.weights(0, cells[None, :]) / WHOLE
    right = norm.cdf(((cells + 0.5) * 0.25 - 0.3) / 2) - norm.cdf(((cells - 0.5) * 0.25 - 0.3) / 2)
    assert np.abs(got - right).max() < 1e-15
    assert column.weights(0, np.array([[10**12, -(10**12), 2**62, -(2**62)]])).tolist() == [0] * 4


def test_atoms_and_points_are_in_the_cell_that_holds_them() -> None:
    atoms = read(LAWS["atoms and density"], step=0.5).components[0].columns[0]
    density = read(Normal(0, 1), step=0.5).components[0].columns[0]
    cells = np.arange(-10, 11)[None, :]
    extra = atoms.weights(0, cells) / WHOLE - 0.5 * density.weights(0, cells) / WHOLE
    assert np.allclose(extra[[10, 14]], 0.25, atol=1e-15)
    assert np.abs(np.delete(extra, [10, 14])).max() < 1e-15
    for value, cell in ((0.25, 0), (0.26, 1), (-0.25, -1), (-0.24, 0), (1e6, 2_000_000)):  # ends belong to the left
        point = read(PointMass(value), step=0.5).components[0].columns[0]
        assert point.weights(0, np.array([[cell]])).tolist() == [WHOLE]
        jump = read(Atoms([value], [1.0]), step=0.5).components[0].columns[0]
        assert jump.weights(0, np.array([[cell]])).tolist() == [WHOLE]


def test_normal_in_the_plane_has_its_probabilities_up_to_the_grid() -> None:
    law = LAWS["normal in the plane"]
    step = 0.02
    grid = read(law, step=step)
    points = np.array([[1.0, -2.0], [1.5, -1.0], [0.0, -3.5], [2.5, 0.3]])
    cells = np.round(points / step).astype(np.int64).T
    got = grid.log_weights(cells) - 2 * np.log(float(WHOLE)) - 2 * np.log(step)
    assert np.abs(got - law.log_density(cells.T * step)).max() < 2e-2  # a 32nd of a cell, at two deviations
    exact = [Fraction(grid.tuple_weight(cells[:, [i]]), WHOLE**3) for i in range(4)]
    assert np.allclose(
        np.log([float(x) for x in exact]), grid.log_weights(cells) - 2 * np.log(float(WHOLE)), rtol=1e-13
    )


def test_tails_that_do_not_fit_are_moved_inward_and_wider_laws_refused() -> None:
    law = Normal(0.0, 1.0)
    wide = Mixture([law, Normal(0.0, 1e4)], [1.0, 1e-12])
    full = read(wide, step=0.1, most=1 << 18).components[0].columns[0]
    cut = read(wide, step=0.1, most=400).components[0].columns[0]
    assert full.cuts.shape[1] > 2000
    assert cut.cuts.shape[1] <= 401
    cells = np.arange(-2000, 2001)[None, :]
    assert 0 < np.abs(full.weights(0, cells) - cut.weights(0, cells)).sum() / WHOLE < 2**-28
    with pytest.raises(ArithmeticError, match="wide"):
        read(law, step=1e-3, most=1000)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=6).filter(any))
def test_shares_sum_to_the_whole_and_are_within_one_unit(values: list[float]) -> None:
    got = shares(values)
    total = sum(map(Fraction, values))
    assert sum(got) == WHOLE
    assert all(abs(share - Fraction(value) * WHOLE / total) < 1 for share, value in zip(got, values, strict=True))


def test_weights_do_not_depend_on_the_numbers_of_labels() -> None:
    law = Categorical(["a", "b", "c"], [0.1, 0.2, 0.7])
    alone, late = Reader((), 10), Reader((), 10)
    late.read(Categorical(["c", "x", "a", "y"], [1, 1, 1, 1]))

    def table(reader: Reader) -> dict[bytes, int]:
        column = reader.read(law).components[0].columns[0]
        numbers = np.array([list(reader.names.values())])
        return {
            name: weight
            for name, weight in zip(reader.names, column.weights(0, numbers).tolist(), strict=True)
            if weight
        }

    assert table(alone) == table(late)


LABELS: list[Any] = ["a", "", "1", b"1", 1, True, False, 0, -5, 10**30, 2.5, float("inf"), (), ("a", 1), (("a",), 1)]


def test_label_bytes_are_one_to_one_and_can_be_read_back() -> None:
    names = [label_bytes(label) for label in LABELS]
    assert len(set(names)) == len(LABELS)
    for label, name in zip(LABELS, names, strict=True):
        assert label_of(name) == label
        assert type(label_of(name)) is type(label)
    assert label_bytes(1.0) == label_bytes(np.int64(1)) == label_bytes(1) == label_bytes(np.float64(1))
    assert label_bytes(-0.0) == label_bytes(0)
    for wrong in (None, float("nan"), Fraction(1, 2), frozenset("a"), (None,)):
        with pytest.raises(TypeError, match="label"):
            label_bytes(wrong)


# --- who accepts a point ----------------------------------------------------------------------------------------------


class Forced(SecretStream):  # type: ignore[misc]
    """Further bits of a height as the test wants them."""

    def __init__(self, further: Sequence[int]) -> None:
        super().__init__(SharedRandomness(1))
        self.further = list(further)

    def words(self, count: int, *labels: int) -> Any:
        return np.array([self.further[labels[-1]]], dtype=np.uint64)


def points_at(laws: Sequence[GridLaw], cells: Any, *, height: int, further: Sequence[int] = ()) -> Points:
    size = Points.batch_size(len(laws))
    return Points(
        laws=laws,
        draws=np.array([0]),
        batch=0,
        stream=Forced(further),
        proposers=np.zeros(size, dtype=np.int64),
        heights=np.full(size, height, dtype=np.uint64),
        cells=np.repeat(np.asarray(cells)[:, None, :], size, axis=1),
    )


@pytest.mark.parametrize(
    "names", [["normal", "atoms and density", "mixture on a line"], ["labels", "labels", "finite"]]
)
@pytest.mark.parametrize("records", [1, 3, 40])
def test_heights_just_below_and_above_the_share_are_told_apart(names: list[str], records: int) -> None:
    reader = Reader((0.25,), 1 << 18)
    laws = [reader.read(LAWS[name]) for name in names]
    cells = (np.arange(records) % 3)[None, :]
    weights = [law.tuple_weight(cells) for law in laws]
    total = sum(weights)
    for block, weight in enumerate(weights):
        if weight == total:
            assert (
                first_accepted(laws, points_at(laws, cells, height=2**64 - 1), pending=np.ones((3, 1), bool))[block]
                == 0
            )
            continue
        if weight == 0:
            taken = first_accepted(laws, points_at(laws, cells, height=0), pending=np.ones((3, 1), dtype=bool))
            assert taken[block, 0] == -1
            continue
        count = (total.bit_length() - weight.bit_length()) // 64 + 3
        share = (weight << (64 * count)) // total
        for offset, accepted in ((-1, True), (1, False)):  # differs in the last of 192 bits or more
            words = [(share + offset) >> (64 * place) & (2**64 - 1) for place in reversed(range(count))]
            points = points_at(laws, cells, height=words[0], further=words[1:])
            taken = first_accepted(laws, points, pending=np.ones((3, 1), dtype=bool))
            assert bool(taken[block, 0] == 0) is accepted, (block, offset)


@pytest.mark.parametrize("name", LAWS)
def test_every_comparison_in_whole_numbers_gives_the_same_votes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"n": Normal(0.1, 1.0), "l": Categorical(["a", "y"], [1, 1])}
    laws = [LAWS[name], LAWS[name], other[read(LAWS[name]).kinds[0]], ABSTAIN]
    coupling = TuplePoissonCoupling(step=0.25)
    args: dict[str, Any] = {"records": 3, "draws": 40, "shared": SharedRandomness("replay")}
    fast = coupling.couple(laws, **args).keys
    monkeypatch.setattr(_earliest, "margin", lambda laws, records: float("inf"))
    assert (coupling.couple(laws, **args).keys == fast).all()
    assert (fast[:, 0] == fast[:, 1]).all()  # equal laws take equal points
    assert (fast[:, 3] == ABSTAIN).all()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("records", [1, 30, 300])
def test_errors_of_the_logs_are_far_below_the_margin(name: str, records: int) -> None:
    reader = Reader((0.25,), 1 << 18)
    laws = [reader.read(LAWS[name]), reader.read(LAWS[name])]
    draws = np.array([0])
    points = Points.drawn(laws, records=records, draws=draws, batch=0, stream=SecretStream(SharedRandomness(5)))
    logs = points.log_weights()
    doubt = margin(laws, records=records)
    for point in range(0, len(points), 3):
        right = math.log(points.weights(point)[0]) - 62 * math.log(2.0) * records
        assert abs(logs[0, point] - right) < doubt / 4


# --- all points of a small case, through the code itself --------------------------------------------------------------


def test_L2_acceptance_of_the_code_is_the_share_of_every_point() -> None:
    """The chance that a point is at y and block i accepts it, read off the code by bisection, is P_i(y) / k."""
    names = ["a", "b", "c"]
    probabilities = [[0.25, 0.5, 0.25], [0.5, 0.0, 0.5], [0.0, 0.125, 0.875]]
    reader = Reader((), 10)
    laws = [reader.read(Categorical(names, row)) for row in probabilities]
    for place, y in enumerate(names):
        cells = np.array([[reader.names[label_bytes(y)]]])
        for block in range(3):

            def accepts(height: int, block: int = block, cells: Any = cells) -> bool:
                points = points_at(laws, cells, height=height, further=[0, 0, 0])
                return bool(first_accepted(laws, points, pending=np.ones((3, 1), dtype=bool))[block, 0] == 0)

            least_rejected = bisect(accepts)
            share = Fraction(probabilities[block][place]) / sum(Fraction(row[place]) for row in probabilities)
            assert 0 <= least_rejected - share * 2**64 < 1


def bisect(accepts: Callable[[int], bool]) -> int:
    low, high = -1, 2**64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return high


def test_slack_is_nothing_for_all_sizes() -> None:
    for laws, records, draws in product((1, 100), (1, 1000), (1, 32)):
        slack = TuplePoissonCoupling().slack(laws=laws, records=records, draws=draws)
        assert type(slack) is Fraction
        assert slack == 0
    with pytest.raises(InvalidParameter, match="laws"):
        TuplePoissonCoupling().slack(laws=0, records=1, draws=1)
