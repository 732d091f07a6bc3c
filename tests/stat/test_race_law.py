"""The laws of the race by simulation.

Every test accepts the truth at a p-value above 1e-6 and rejects what is 10 % wrong below it, so a correct library fails
one with probability below 1e-6 over the choice of the shared key. Keys are fixed; an assertion shows the one it used.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chi2, multinomial

from accord.couplings import race
from accord.couplings.race import RaceCoupling, agreement
from accord.distributions import Categorical
from accord.randomness import SharedRandomness

RARE = 1e-6
WAYS = [pytest.param(200_000, id="one race"), pytest.param(1, id="binary tree"), pytest.param(16, id="wider tree")]
KEYS = [11, 12]

Counts = NDArray[np.int64]


# --- what is measured, and what it ought to be ------------------------------------------------------------------------


def counts_of(laws: Sequence[Sequence[float]], *, records: int, draws: int, key: int, most: int) -> Counts:
    """Coupled counts, shape (draws, k, d)."""
    labels = range(len(laws[0]))
    coupling = RaceCoupling(labels, most_vectors=most)
    given = [Categorical(labels, law) for law in laws]
    keys = coupling.couple(given, records=records, draws=draws, shared=SharedRandomness(key)).keys
    return np.array([[np.frombuffer(key, dtype="<i8") for key in row] for row in keys])


def vectors(records: int, *, groups: int) -> list[tuple[int, ...]]:
    return [v for v in product(range(records + 1), repeat=groups) if sum(v) == records]


def count_law(law: Sequence[float], *, records: int) -> list[float]:
    """Probabilities of all count vectors, by scipy."""
    weights = np.array(law) / sum(law)
    return [float(multinomial.pmf(v, records, weights)) for v in vectors(records, groups=len(law))]


def tree_agreement(laws: Sequence[Sequence[float]], *, records: int, most: int) -> float:
    """Probability that all laws take the same counts, by enumeration of all paths down the tree."""
    nodes = {(cuts[0], cuts[-1]): cuts for cuts in race._tree(len(laws[0]), records=records, most=most)}

    def below(low: int, high: int, total: int) -> float:
        if total == 0 or high - low == 1:
            return 1.0
        parts = list(pairwise(nodes[low, high]))
        masses = [[sum(law[a:b]) for a, b in parts] for law in laws]
        ways = vectors(total, groups=len(parts))
        rows = [dict(zip(ways, count_law(mass, records=total), strict=True)) for mass in masses]
        result = 0.0
        for y in ways:
            all_take_y = 1 / sum(max(row[x] / row[y] for row in rows) for x in ways)
            result += all_take_y * float(np.prod([below(a, b, n) for (a, b), n in zip(parts, y, strict=True)]))
        return result

    return below(0, len(laws[0]), records)


def fit_of_counts(counts: Counts, law: Sequence[float]) -> float:
    """p-value of the chi-square of counts (draws, d) against the multinomial law, rare cells pooled."""
    records = int(counts[0].sum())
    seen = Counter(map(tuple, counts.tolist()))
    expected = np.array(count_law(law, records=records)) * len(counts)
    observed = np.array([seen[v] for v in vectors(records, groups=len(law))], dtype=float)
    large = expected >= 10
    observed = np.append(observed[large], observed[~large].sum())
    expected = np.append(expected[large], expected[~large].sum())
    if expected[-1] < 10:
        observed[-2:], expected[-2:] = observed[-2:].sum() / 2, expected[-2:].sum() / 2
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def fit_of_rate(hits: int, trials: int, rate: float) -> float:
    """Two-sided p-value of a binomial count."""
    return float(min(1.0, 2 * min(binom.cdf(hits, trials, rate), binom.sf(hits - 1, trials, rate))))


def tilted(law: Sequence[float], *, by: float) -> list[float]:
    """The law with its heaviest label's probability multiplied, the others making room."""
    weights = np.array(law) / sum(law)
    top = int(weights.argmax())
    heavier = by * weights[top]
    weights *= (1 - heavier) / (1 - weights[top])
    weights[top] = heavier
    return [float(w) for w in weights]


P, Q, R = [0.2, 0.3, 0.5], [0.35, 0.3, 0.35], [0.3, 0.5, 0.2]
P5, Q5, R5 = [0.1, 0.2, 0.3, 0.15, 0.25], [0.12, 0.2, 0.26, 0.17, 0.25], [0.1, 0.25, 0.25, 0.15, 0.25]


# --- marginals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("most", WAYS)
def test_G1_counts_of_each_block_are_multinomial(most: int, key: int) -> None:
    counts = counts_of([P5, Q5, [1, 0, 3, 0, 2]], records=4, draws=20_000, key=key, most=most)
    for block, law in enumerate((P5, Q5)):
        assert fit_of_counts(counts[:, block], law) > RARE, (key, block)
        for by in (0.9, 1.1):
            assert fit_of_counts(counts[:, block], tilted(law, by=by)) < RARE, (key, block, by)
    assert (counts[:, 2, [1, 3]] == 0).all()
    assert fit_of_counts(counts[:, 2][:, [0, 2, 4]], [1, 3, 2]) > RARE, key


@pytest.mark.parametrize("most", [200_000, 1, 2000])
def test_G1_counts_of_longer_tuples(most: int) -> None:
    # 5 counts, mean and variance: 10 z-values, |z| < 5.5 each fails for 4e-8 of keys.
    records, draws, law = 40, 4000, np.array([0.1, 0.2, 0.3, 0.4])
    counts = counts_of([law.tolist(), [1, 1, 1, 1]], records=records, draws=draws, key=13, most=most)[:, 0]
    variance = records * law * (1 - law)
    z_mean = (counts.mean(axis=0) - records * law) / np.sqrt(variance / draws)
    squares = (counts - records * law) ** 2
    z_variance = (squares.mean(axis=0) - variance) / (squares.std(axis=0) / np.sqrt(draws))
    assert np.abs(z_mean).max() < 5.5
    assert np.abs(z_variance).max() < 5.5
    wrong = (counts.mean(axis=0) - 1.1 * records * law) / np.sqrt(variance / draws)
    assert np.abs(wrong).min() > 5.5


# --- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("records", [1, 3, 9])
def test_S1_pairs_and_triples_agree_as_often_as_the_formula_says(records: int, key: int) -> None:
    draws = 20_000
    counts = counts_of([P, Q, R], records=records, draws=draws, key=key, most=200_000)
    equal = [(counts[:, i] == counts[:, j]).all(axis=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    laws = [count_law(law, records=records) for law in (P, Q, R)]
    cases = [(equal[0], laws[:2]), (equal[1], laws[::2]), (equal[2], laws[1:]), (equal[0] & equal[1], laws)]
    for hits, those in cases:
        rate = float(agreement(*those))
        assert fit_of_rate(int(hits.sum()), draws, rate) > RARE, (key, rate)
        assert fit_of_rate(int(hits.sum()), draws, 0.9 * rate) < RARE, (key, rate)
        assert fit_of_rate(int(hits.sum()), draws, 1.1 * rate) < RARE, (key, rate)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("records", "most"), [(3, 1), (5, 1), (3, 16), (4, 16)])
def test_tree_agrees_as_often_as_the_product_over_its_nodes(records: int, most: int, key: int) -> None:
    draws, laws = 20_000, [P5, Q5, R5]
    assert len(list(race._tree(5, records=records, most=most))) > 1
    counts = counts_of(laws, records=records, draws=draws, key=key, most=most)
    for chosen in ([0, 1], [0, 2], [0, 1, 2]):
        hits = int((counts[:, chosen] == counts[:, chosen[:1]]).all(axis=(1, 2)).sum())
        rate = tree_agreement([laws[i] for i in chosen], records=records, most=most)
        assert fit_of_rate(hits, draws, rate) > RARE, (key, rate)
        assert fit_of_rate(hits, draws, 0.9 * rate) < RARE, (key, rate)
        assert fit_of_rate(hits, draws, 1.1 * rate) < RARE, (key, rate)


def test_tree_product_of_one_node_is_the_agreement_of_one_race() -> None:
    laws = [count_law(law, records=4) for law in (P5, Q5)]
    joint = tree_agreement([P5, Q5], records=4, most=200_000)
    assert joint == pytest.approx(float(agreement(*laws)))
    assert joint > tree_agreement([P5, Q5], records=4, most=16) > tree_agreement([P5, Q5], records=4, most=1)


def test_agreement_of_a_long_tuple() -> None:
    p, q = [0.31, 0.33, 0.36], [0.33, 0.33, 0.34]
    counts = counts_of([p, q], records=60, draws=8000, key=14, most=200_000)
    rate = float(agreement(count_law(p, records=60), count_law(q, records=60)))
    assert len(count_law(p, records=60)) == comb(62, 2)
    hits = int((counts[:, 0] == counts[:, 1]).all(axis=1).sum())
    assert fit_of_rate(hits, 8000, rate) > RARE, rate
    assert fit_of_rate(hits, 8000, 0.9 * rate) < RARE, rate


@pytest.mark.parametrize("key", KEYS)
def test_coupling_record_by_record_is_caught_by_agreement_not_by_marginals(key: int) -> None:
    records, draws = 6, 6000
    single = counts_of([P, Q], records=1, draws=records * draws, key=key, most=200_000)
    counts = single.reshape(draws, records, 2, 3).sum(axis=1)
    same = (single[:, 0] == single[:, 1]).all(axis=1).reshape(draws, records).all(axis=1)
    rate = float(agreement(count_law(P, records=records), count_law(Q, records=records)))
    assert fit_of_counts(counts[:, 0], P) > RARE
    assert fit_of_counts(counts[:, 1], Q) > RARE
    assert fit_of_rate(int(same.sum()), draws, rate) < RARE
    assert fit_of_rate(int(same.sum()), draws, float(agreement(P, Q)) ** records) > RARE


# --- draws and arrangements -------------------------------------------------------------------------------------------


def dependence(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """p-value of the chi-square of independence of two columns of small codes."""
    first, second = (np.unique(column, return_inverse=True)[1] for column in (first, second))
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), freedom))


@pytest.mark.parametrize("most", [200_000, 1])
def test_draws_are_independent(most: int) -> None:
    counts = counts_of([P, Q], records=2, draws=20_000, key=15, most=most)
    codes = counts[:, :, 0] * 3 + counts[:, :, 1]  # below 9
    agree = (codes[:, 0] == codes[:, 1]).astype(np.int64)
    assert codes.max() <= 6
    for lag in (1, 2, 7):
        assert dependence(codes[:-lag, 0], codes[lag:, 0]) > RARE, lag
        assert dependence(codes[:-lag, 0], codes[lag:, 1]) > RARE, lag
        assert dependence(agree[:-lag], agree[lag:]) > RARE, lag
    assert dependence(codes[:, 0], codes[:, 1]) < RARE  # within a draw, blocks are meant to depend
    tenth = np.where(np.arange(len(codes)) % 10 == 9, np.roll(codes[:, 0], 1), codes[:, 0])
    assert dependence(tenth[:-1], tenth[1:]) < RARE  # a draw in ten repeated is caught


def test_arrangement_is_uniform() -> None:
    labels = ["a", "b"]
    coupling = RaceCoupling(labels)
    shared = SharedRandomness(16)
    key = np.array([2, 2], dtype="<i8").tobytes()
    coupled = coupling.couple([Categorical(labels, [1, 1])], records=4, draws=1, shared=shared)
    orders = Counter("".join(coupled.decode(draw, key)[:, 0]) for draw in range(12_000))
    assert len(orders) == 6
    assert chi2.sf(sum((count - 2000) ** 2 / 2000 for count in orders.values()), 5) > RARE
    wrong = [1800, 1800, 1800, 2200, 2200, 2200]
    assert chi2.sf(sum((count - 2000) ** 2 / 2000 for count in wrong), 5) < RARE


@pytest.mark.parametrize("most", [200_000, 1])
def test_S3_records_within_a_tuple_are_independent(most: int) -> None:
    law = Categorical(range(3), P)
    coupling = RaceCoupling(range(3), most_vectors=most)
    coupled = coupling.couple([law], records=3, draws=6000, shared=SharedRandomness(17))
    records = np.array([coupled.decode(draw, coupled.keys[draw, 0])[:, 0] for draw in range(6000)])
    cells = Counter(map(tuple, records.tolist()))
    expected = {v: 6000 * float(np.prod([P[i] for i in v])) for v in product(range(3), repeat=3)}
    assert chi2.sf(sum((cells[v] - e) ** 2 / e for v, e in expected.items()), 26) > RARE
    other = {v: 6000 * float(np.prod([tilted(P, by=1.1)[i] for i in v])) for v in expected}
    assert chi2.sf(sum((cells[v] - e) ** 2 / e for v, e in other.items()), 26) < RARE
