"""Broken variants of Couple II, and of what it pays, are caught by checks that the real ones pass.

Statistical checks accept the truth but for a probability below 1e-6 over the choice of the keys, which are fixed.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from accord.core.coupling import ABSTAIN
from accord.core.exact import exp_lower
from accord.couplings import Coupled
from accord.distributions import Categorical, Normal
from accord.learners import EmpiricalLearner
from accord.learning import PrivateSampler
from accord.mechanisms import StableMode
from accord.privacy import NoAnswer
from accord.randomness import SharedRandomness
from accord.theory import TuplePoissonCoupling
from accord.theory.couplings import grid as _earliest
from accord.theory.couplings import tuple_poisson
from accord.theory.couplings.grid import WHOLE, Column, Points, Reader
from accord.theory.couplings.secret_stream import SecretStream

aggregate_module: Any = sys.modules["accord.core.aggregate"]
sampler_module: Any = sys.modules["accord.learning.sampler"]

RARE = 1e-7

# --- the digits of a record tell nothing about who proposed it --------------------------------------------------------

PLACES = [(0.2, 1.3), (0.21, 1.31)]
RECORDS, TUPLES = 100, 600

Values = NDArray[Any]


def hits(values: Values, mean: float, deviation: float) -> Values:
    """Whether mean + deviation * z can be exactly this value for some float z: those near the solution are tried."""
    kind = values.dtype.type
    centre, scale = kind(mean), kind(deviation)
    start = (values - centre) / scale
    found = centre + scale * start == values
    for way in (kind(-np.inf), kind(np.inf)):
        z = start
        for _ in range(6):
            z = np.nextafter(z, way)
            found |= centre + scale * z == values
    return np.asarray(found)


def accuracy_of_the_attack(values: Values, proposers: Values) -> float:
    """Guess the proposer of each tuple, shape (tuples, l), by how many records it can have emitted; ties by turns."""
    counts = np.array([hits(values, *place).sum(axis=1) for place in PLACES])
    turns = np.arange(len(values)) % 2
    guesses = np.where(counts[0] == counts[1], turns, counts.argmax(axis=0))
    return float((guesses == proposers).mean())


def best_honest_accuracy(values: Values, proposers: Values) -> float:
    """What the densities alone allow: how often the likelier law was the proposer."""
    logs = [Normal(mean, deviation**2).log_density(values.reshape(-1, 1)).reshape(values.shape).sum(axis=1)
            for mean, deviation in PLACES]  # fmt: skip
    return float((np.argmax(logs, axis=0) == proposers).mean())


def raw_points(kind: type) -> tuple[Values, Values]:
    """The mutant: points of Couple II as floats, straight from a sampler of normal numbers."""
    generator = SharedRandomness(41).stream("raw")
    proposers = generator.integers(0, 2, size=TUPLES)
    noise: Values = generator.standard_normal((TUPLES, RECORDS)).astype(kind)
    means: Values = np.array([mean for mean, _ in PLACES], dtype=kind)[proposers, None]
    deviations: Values = np.array([deviation for _, deviation in PLACES], dtype=kind)[proposers, None]
    return means + deviations * noise, proposers


def grid_points(step: float) -> tuple[Values, Values]:
    """Points as the library draws them, read as a release would show them."""
    reader = Reader((step,), 1 << 18)
    laws = [reader.read(Normal(mean, deviation**2)) for mean, deviation in PLACES]
    stream, draws = SecretStream(SharedRandomness(42)), np.arange(TUPLES // Points.batch_size(2))
    points = Points.drawn(laws, records=RECORDS, draws=draws, batch=0, stream=stream)
    return points.cells[0] * step, points.proposers


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_digits_of_raw_floats_name_the_proposer(kind: type) -> None:
    values, proposers = raw_points(kind)
    assert accuracy_of_the_attack(values, proposers) > 0.99
    assert best_honest_accuracy(values.astype(np.float64), proposers) < 0.75


@pytest.mark.parametrize("step", [0.05, 2.0**-6, 0.1])
def test_digits_of_grid_records_do_not(step: float) -> None:
    values, proposers = grid_points(step)
    limit = best_honest_accuracy(values, proposers) + 6 * sqrt(0.25 / len(values))
    assert accuracy_of_the_attack(values, proposers) <= limit
    assert accuracy_of_the_attack(values.astype(np.float32), proposers) <= limit


@pytest.mark.parametrize("step", [0.05, 0.001])
def test_every_record_of_one_law_can_be_emitted_by_the_sampler_of_the_other(step: float) -> None:
    reader = Reader((step,), 1 << 18)
    columns = [reader.read(Normal(mean, deviation**2)).components[0].columns[0] for mean, deviation in PLACES]
    values, proposers = grid_points(step)
    cells = np.unique(np.round(values / step).astype(np.int64))
    assert len(set(proposers.tolist())) == 2
    for column in columns:  # the sampler's own search, at the first and last integers of each cell
        starts = column.cuts[0][cells - column.first]
        ends = column.cuts[0][cells - column.first + 1] - 1
        blank = np.zeros((1, len(cells)), dtype=np.int64)
        assert (column.find(starts, blank) == cells).all()
        assert (column.find(ends, blank) == cells).all()


# --- a sampler that is not the law of the weights ---------------------------------------------------------------------

real_find = Column.find


def clipped(self: Column, draws: Any, cells: Any) -> Any:
    return np.clip(real_find(self, draws, cells), -1, 1)


def skewed(self: Column, draws: Any, cells: Any) -> Any:
    """Reads the uniform integer to 8 bits only, as a table of quantiles would."""
    return real_find(self, draws >> np.int64(54) << np.int64(54), cells)


def off_by_one(self: Column, draws: Any, cells: Any) -> Any:
    return real_find(self, np.minimum(draws + 1, WHOLE - 1), cells)


def sampler_is_the_weight(column: Column) -> bool:
    """Exactly: for each cell as many of the 2^62 integers as its weight says, by the ends of their intervals."""
    ends = np.unique(np.concatenate((column.cuts[0][:-1], column.cuts[0][1:] - 1)))
    ends = ends[(ends >= 0) & (ends < WHOLE)]
    found = column.find(ends, np.zeros((1, len(ends)), dtype=np.int64))
    measure: Counter[int] = Counter()
    for (low, first), (high, last) in zip(
        zip(ends, found, strict=True), zip(ends[1:], found[1:], strict=False), strict=False
    ):
        measure[int(last)] += int(high - low) if first == last else 1
    measure[int(found[0])] += 1
    weights = column.weights(0, np.array([list(measure)]))
    return list(measure.values()) == list(weights.tolist())


def marginal_fit(*, key: int) -> float:
    """p-value of block 2's records against its own law, when block 1 has another."""
    step, draws = 1.0, 8000
    laws = [Normal(0.0, 1.0), Normal(0.0, 2.0)]
    coupling = TuplePoissonCoupling(step=step)
    coupled = coupling.couple(laws, records=1, draws=draws, shared=SharedRandomness(key))
    seen = Counter(float(coupled.decode(0, vote)[0, 0]) for vote in coupled.keys[:, 1])
    column = Reader((step,), 100).read(laws[1]).components[0].columns[0]
    cells = np.arange(-4, 5)
    right = column.weights(0, cells[None, :]) / WHOLE * draws
    got = np.array([seen[float(cell)] for cell in cells])
    return float(chi2.sf(((got - right) ** 2 / right).sum(), len(cells) - 1))


def test_real_sampler_is_the_weight() -> None:
    assert sampler_is_the_weight(Reader((1.0,), 100).read(Normal(0.3, 2.0)).components[0].columns[0])
    assert marginal_fit(key=43) > RARE


@pytest.mark.parametrize("mutant", [clipped, skewed, off_by_one])
def test_a_sampler_of_another_law_is_caught(mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Column, "find", mutant)
    assert not sampler_is_the_weight(Reader((1.0,), 100).read(Normal(0.3, 2.0)).components[0].columns[0])


def test_a_clipped_sampler_moves_the_votes_of_another_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Column, "find", clipped)
    assert marginal_fit(key=43) < RARE


# --- a stop for all blocks at once ------------------------------------------------------------------------------------

SAME, FAR = Categorical(["a", "b"], [0.5, 0.5]), Categorical(["z"], [1.0])


def others_do_not_see_block_one(*, draws: int = 4000) -> bool:
    """Whether the votes of blocks 2 to 4 have one law for two neighbouring values of law 1: a two-sample test."""
    tables = []
    for first, key in ((SAME, 44), (FAR, 45)):
        laws = [first, SAME, SAME, Categorical(["a", "b"], [0.25, 0.75])]
        coupled = TuplePoissonCoupling().couple(laws, records=1, draws=draws, shared=SharedRandomness(key))
        tables.append(Counter(map(tuple, coupled.keys[:, 1:].tolist())))
    cells = [cell for cell in {**tables[0], **tables[1]} if tables[0][cell] + tables[1][cell] >= 20]
    one, two = (np.array([table[cell] for cell in cells], dtype=float) for table in tables)
    return float(chi2.sf(((one - two) ** 2 / (one + two)).sum(), max(1, len(cells) - 1))) > RARE


def stop_after_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A global cap: what has not accepted one of the first 8 points abstains."""
    real = tuple_poisson._enter

    def enter(keys: Any, points: Points, *args: Any, **more: Any) -> None:
        if points.batch == 0:
            real(keys, points, *args, **more)

    monkeypatch.setattr(tuple_poisson, "_enter", enter)


def stop_when_most_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Besides, a draw ends at the point at which three of its blocks are done."""
    stop_after_points(monkeypatch)
    real = _earliest.first_accepted

    def first(laws: Any, points: Points, *, pending: Any) -> Any:
        taken = real(laws, points, pending=pending)
        late = np.sort(np.where(taken < 0, 10**9, taken), axis=0)[2]
        return np.where(taken <= late, taken, -1)

    monkeypatch.setattr(tuple_poisson, "first_accepted", first)


def nobody_abstains(*, draws: int = 2000) -> bool:
    keys = TuplePoissonCoupling().couple([SAME, FAR, SAME], records=1, draws=draws, shared=SharedRandomness(46)).keys
    return not bool((keys == ABSTAIN).any())


def test_real_search_ends_for_each_block_alone() -> None:
    assert nobody_abstains()
    assert others_do_not_see_block_one()


@pytest.mark.parametrize("mutant", [stop_after_points, stop_when_most_are_done])
def test_a_global_cap_is_caught(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert not nobody_abstains()


def test_stopping_when_most_are_done_shows_one_block_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_when_most_are_done(monkeypatch)
    assert not others_do_not_see_block_one()


# --- a slack that nobody pays for -------------------------------------------------------------------------------------

SLACK, DELTA, BLOCKS = Fraction(1, 10**5), Fraction(1, 10**4), 40


class Spender:
    """Ideally block 1 and as few others as can win vote for x; with probability `SLACK` all or none do, as block 1."""

    isolated = False

    def slack(self, *, laws: int, records: int, draws: int) -> Fraction:
        return SLACK

    def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
        raise AssertionError("its law is known")

    def release_law(self, mode: StableMode, *, watched: bool) -> dict[Any, Fraction]:
        few = next(n for n in range(1, BLOCKS) if mode.acceptance(n, votes=BLOCKS) > 0) - 1
        others = ["x"] * few + [ABSTAIN] * (BLOCKS - 1 - few)
        ideal = mode.law(["x" if watched else "y", *others])
        spent = mode.law(["x" if watched else ABSTAIN] * BLOCKS)
        return {z: (1 - SLACK) * ideal.get(z, Fraction(0)) + SLACK * spent.get(z, Fraction(0)) for z in "xy"}


def spent_slack_is_private() -> bool:
    sampler = PrivateSampler(
        EmpiricalLearner(["x", "y"]), epsilon=1, delta=DELTA, blocks=BLOCKS, records=1, coupling=Spender()
    )
    mode = sampler.mode
    assert isinstance(mode, StableMode)
    one, two = Spender().release_law(mode, watched=True), Spender().release_law(mode, watched=False)
    for law in (one, two):
        law[NoAnswer] = 1 - sum(law.values(), Fraction(0))
    factor = exp_lower(sampler.epsilon)
    excess = [
        sum((max(p[z] - factor * q[z], Fraction(0)) for z in p), Fraction(0)) for p, q in ((one, two), (two, one))
    ]
    return max(excess) <= sampler.guarantee.delta


def test_a_slack_that_is_used_up_stays_within_delta() -> None:
    assert spent_slack_is_private()


@pytest.mark.parametrize("share", [0, Fraction(1, 10)])
def test_an_unpaid_slack_is_caught(share: Fraction | int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "coupling_charge", lambda coupling, **sizes: share * SLACK)
    assert not spent_slack_is_private()


# --- a key that was used before ---------------------------------------------------------------------------------------


def tuples_released(*, runs: int) -> list[bytes]:
    """The first block's votes in several runs with one public key, on the same data."""
    seen: list[bytes] = []
    real = TuplePoissonCoupling()

    class Watched:
        isolated = False
        slack = real.slack

        def couple(self, laws: Any, *, records: int, draws: int, shared: SharedRandomness) -> Coupled:
            coupled = real.couple(laws, records=records, draws=draws, shared=shared)
            seen.append(coupled.keys[0, 0])
            return coupled

    sampler = PrivateSampler(
        EmpiricalLearner(["x", "y"]), epsilon=1, delta=DELTA, blocks=BLOCKS, records=60, coupling=Watched()
    )
    sampler.rehearse(400, columns=1)  # on tables that are made up
    seen.clear()
    for _ in range(runs):
        sampler.release(["x", "y"] * 200, shared=SharedRandomness("public"), in_place_key=SharedRandomness("blocks"))
    return seen


def test_runs_with_one_public_key_have_fresh_couplings() -> None:
    assert len(set(tuples_released(runs=3))) == 3  # two of 2^60 nearly equal tuples meet below 1e-15 of the time


def test_a_reused_key_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_module, "is_isolated", lambda coupling: True)
    monkeypatch.setattr(aggregate_module, "coupling_charge", lambda coupling, **sizes: Fraction(0))
    assert len(set(tuples_released(runs=3))) == 1


def test_with_a_known_key_one_law_moves_the_votes_of_others() -> None:
    """Why the key must be secret: for one key Couple II is not isolated, as theory L3 says."""
    laws: Sequence[Any] = [SAME, SAME, Categorical(["a", "b"], [0.25, 0.75])]
    shared = SharedRandomness("known")
    before = TuplePoissonCoupling().couple(laws, records=4, draws=200, shared=shared).keys
    after = TuplePoissonCoupling().couple([FAR, *laws[1:]], records=4, draws=200, shared=shared).keys
    assert (before[:, 1:] != after[:, 1:]).mean() > 0.1
