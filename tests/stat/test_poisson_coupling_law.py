"""The laws of Couple I and of the race on labels by simulation.

Every test accepts the truth at a p-value above 1e-7 and rejects what is 10 % wrong below it, so a correct library fails
this file with probability below 1e-6 over the choice of the shared keys. Keys are fixed and printed.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import binomtest, chisquare, kstest, norm

from accord.couplings import AtomRace, Coupled, agreement
from accord.couplings.atom_race import label_bytes
from accord.distributions import Atoms, Categorical, Mixture, Normal, OnALine, Uniform
from accord.randomness import SharedRandomness
from accord.theory import PoissonCoupling

RARE = 1e-7
RULES = ["race", "earliest"]


def coupled(coupling: Any, laws: list[Any], *, draws: int, key: str, records: int = 1) -> Any:
    print(f"shared key {key!r}, {draws} draws")  # noqa: T201 - shown by pytest when a test fails
    return coupling.couple(laws, records=records, draws=draws, shared=SharedRandomness(key))


def equal_keys(keys: NDArray[Any]) -> int:
    return int((keys[:, 1:] == keys[:, :1]).all(axis=1).sum())


def accepts_and_rejects(count: int, draws: int, probability: float) -> None:
    """The probability is accepted, those 10 % beside it are not."""
    assert binomtest(count, draws, probability).pvalue > RARE, count / draws / probability
    for wrong in (0.9, 1.1):
        assert binomtest(count, draws, probability * wrong).pvalue < RARE, count / draws / probability


# --- close normal laws ------------------------------------------------------------------------------------------------

# Disagreement over TV of N(0, 1) and N(s, 1): race, earliest point.
PRINTED = {0.05: (1.40, 1.96), 0.5: (1.30, 1.67), 1.0: (1.21, 1.45), 2.0: (1.09, 1.19)}


def total_variation(shift: float) -> float:
    return float(2 * norm.cdf(shift / 2) - 1)


def race_disagreement(shift: float) -> float:
    """S1 for N(0, 1) and N(s, 1) by quadrature; the inner integral is normal probabilities on both sides of y."""

    def inner(y: float) -> float:
        # p(x)/p(y) is above q(x)/q(y) where x < y.
        return float(norm.cdf(y) / norm.pdf(y) + norm.sf(y - shift) / norm.pdf(y - shift))

    value, _ = quad(lambda y: 1 / inner(y), -12, 12 + shift, epsabs=1e-12, limit=400)
    return 1 - float(value)


def expected(rule: str, shift: float) -> float:
    total = total_variation(shift)
    return race_disagreement(shift) if rule == "race" else 2 * total / (1 + total)


@pytest.mark.parametrize("shift", PRINTED)
def test_S1_disagreement_over_total_variation_of_normal_laws_is_as_printed(shift: float) -> None:
    for rule, printed in zip(RULES, PRINTED[shift], strict=True):
        assert expected(rule, shift) / total_variation(shift) == pytest.approx(printed, abs=0.006)


CASES = [("race", 0.5, 44_000), ("race", 1.0, 18_000), ("race", 2.0, 9_000), ("earliest", 2.0, 3_000)]
LONG = [("earliest", 1.0, 13_000), ("race", 0.05, 460_000), ("earliest", 0.05, 330_000), ("earliest", 0.5, 40_000)]


@pytest.mark.parametrize(
    ("rule", "shift", "draws"), [*CASES, *(pytest.param(*case, marks=pytest.mark.nightly) for case in LONG)]
)
def test_S1_normal_laws_disagree_as_often_as_they_should(rule: Any, shift: float, draws: int) -> None:
    coupling = PoissonCoupling(Normal(shift / 2, 1.5 + shift**2 / 2), rule=rule)
    keys = coupled(coupling, [Normal(0, 1), Normal(shift, 1)], draws=draws, key=f"{rule} {shift}").keys
    accepts_and_rejects(draws - equal_keys(keys), draws, expected(rule, shift))


def test_S1_agreement_does_not_depend_on_the_reference() -> None:
    laws, draws = [Normal(0, 1), Normal(1, 1)], 14_000
    for reference in (Normal(2, 4), Uniform(-6, 7)):
        keys = coupled(PoissonCoupling(reference), laws, draws=draws, key="reference").keys
        accepts_and_rejects(draws - equal_keys(keys), draws, expected("race", 1.0))


def test_S1_tuples_agree_as_their_joint_law_says_and_not_record_by_record() -> None:
    """Four records of N(m, 1): the mean is sufficient, so the pair is that of N(0, 1) and N(2 m, 1)."""
    draws = 19_000
    coupling = PoissonCoupling(Normal(0.2, 1.3))
    keys = coupled(coupling, [Normal(0, 1), Normal(0.4, 1)], draws=draws, key="tuples", records=4).keys
    right, wrong = race_disagreement(0.8), 1 - (1 - race_disagreement(0.4)) ** 4
    accepts_and_rejects(draws - equal_keys(keys), draws, right)
    assert binomtest(draws - equal_keys(keys), draws, wrong).pvalue < RARE


# --- finite spaces ----------------------------------------------------------------------------------------------------

P, Q, R = [0.41, 0.2, 0.17, 0.22], [0.05, 0.34, 0.26, 0.35], [0.15, 0.18, 0.05, 0.62]
LABELS = ["a", "b", "c", "d"]
DECODED = 10_000


def picks(result: Any) -> NDArray[np.int64]:
    """Which label each law took, shape (draws, k), in the first draws."""
    few = Coupled(keys=result.keys[:DECODED], decode=result.decode)
    numbers: NDArray[np.int64] = np.vectorize(LABELS.index)(few.values[:, :, 0, 0])
    return numbers


def earliest_agreement(p: list[float], q: list[float]) -> float:
    pairs = list(zip(p, q, strict=True))
    total = sum(abs(a - b) for a, b in pairs) / 2
    return (1 - total + sum(abs(a - b) * min(a, b) for a, b in pairs)) / (1 + total)


@pytest.mark.parametrize(("rule", "draws"), [("race", 30_000), ("earliest", DECODED)])
def test_S1_finite_spaces_by_the_formula_of_each_rule(rule: Any, draws: int) -> None:
    weights = (P, Q, R) if rule == "race" else (P, Q)
    laws = [Categorical(LABELS, law) for law in weights]
    result = coupled(PoissonCoupling.counting(LABELS, rule=rule), laws, draws=draws, key=f"finite {rule}")
    values = picks(result)
    for column, law in enumerate(weights):
        seen = np.bincount(values[:, column], minlength=4)
        assert chisquare(seen, np.array(law) * DECODED).pvalue > RARE
        assert chisquare(seen, np.roll(law, 1) * DECODED).pvalue < RARE
    together = int((values[:, 0] == values[:, 1]).sum())
    right = {"race": float(agreement(P, Q)), "earliest": earliest_agreement(P, Q)}
    accepts_and_rejects(together, DECODED, right[rule])
    assert binomtest(together, DECODED, right["earliest" if rule == "race" else "race"]).pvalue < RARE
    if rule == "race":  # there equal tuples are equal points
        same = result.keys[:DECODED, 0] == result.keys[:DECODED, 1]
        assert (same == (values[:, 0] == values[:, 1])).all()
        accepts_and_rejects(equal_keys(result.keys), draws, float(agreement(P, Q, R)))
    else:  # the points themselves agree as on a space without atoms
        total = float(np.abs(np.subtract(P, Q)).sum() / 2)
        accepts_and_rejects(equal_keys(result.keys[:, :2]), draws, (1 - total) / (1 + total))


def test_S1_labels_that_nobody_lists_agree_as_on_the_union_of_their_lists() -> None:
    draws = 40_000
    lists = [["a", "b", 1, 2], [2, "z", "a", True], ["b", "a", 2]]
    weights = [[0.4, 0.1, 0.2, 0.3], [0.4, 0.1, 0.35, 0.15], [0.2, 0.5, 0.3]]
    laws = [Categorical(labels, law) for labels, law in zip(lists, weights, strict=True)]
    keys = coupled(AtomRace(), laws, draws=draws, key="labels").keys
    tables: list[dict[bytes, float]] = [
        {label_bytes(label): weight for label, weight in zip(labels, law, strict=True)}
        for labels, law in zip(lists, weights, strict=True)
    ]
    union = sorted(set().union(*tables))
    rows = [[table.get(name, 0.0) for name in union] for table in tables]
    for column, row in enumerate(rows):
        seen = np.array([int((keys[:, column] == len(n).to_bytes(8, "little") + n).sum()) for n in union])
        here = np.array(row) > 0
        assert seen[~here].sum() == 0
        assert chisquare(seen[here], np.array(row)[here] * draws).pvalue > RARE
        assert chisquare(seen[here], np.roll(np.array(row)[here], 1) * draws).pvalue < RARE
    accepts_and_rejects(equal_keys(keys[:, :2]), draws, float(agreement(rows[0], rows[1])))
    accepts_and_rejects(equal_keys(keys), draws, float(agreement(*rows)))


def test_S1_records_one_by_one_agree_with_the_power_of_one() -> None:
    draws, laws = 20_000, [Categorical(LABELS, law) for law in (P, R)]
    keys = coupled(AtomRace(record_by_record=True), laws, draws=draws, key="power", records=2).keys
    accepts_and_rejects(equal_keys(keys), draws, float(agreement(P, R)) ** 2)


# --- marginals --------------------------------------------------------------------------------------------------------

MIXED = Atoms([0.0], [0.4], rest=Normal(1, 1))


@pytest.mark.parametrize("rule", RULES)
def test_G1_marginals_of_continuous_laws(rule: Any) -> None:
    draws = 3_000
    laws: list[OnALine] = [Normal(0.5, 0.8), Mixture([Normal(-1, 0.5), Normal(2, 0.7)], [1, 2]), Uniform(-1, 2)]
    result = coupled(PoissonCoupling(Normal(0, 4), rule=rule), laws, draws=draws, key=f"marginals {rule}").values
    for column, law in enumerate(laws):
        values = result[:, column, 0, 0].astype(float)
        law_cdf: Any = law.cdf
        assert kstest(values, law_cdf).pvalue > RARE
        assert kstest(values * 1.25, law_cdf).pvalue < RARE


@pytest.mark.parametrize("rule", ["race", pytest.param("earliest", marks=pytest.mark.nightly)])
def test_G1_marginals_of_a_law_with_an_atom_and_a_density(rule: Any) -> None:
    draws = 16_000
    reference = Atoms([0.0], [0.4], rest=Normal(1, 1.2))
    values = coupled(PoissonCoupling(reference, rule=rule), [MIXED], draws=draws, key=f"mixed {rule}").values[
        :, 0, 0, 0
    ]
    accepts_and_rejects(int((values == 0).sum()), draws, 0.4)
    assert kstest(values[values != 0].astype(float), norm(1, 1).cdf).pvalue > RARE


def test_L1_what_the_reference_lacks_is_never_taken_and_the_rest_keeps_its_shape() -> None:
    values = coupled(PoissonCoupling(Uniform(0, 1)), [Normal(0, 1)], draws=5_000, key="cut").values[:, 0, 0, 0]
    scale = norm.cdf(1) - norm.cdf(0)
    assert ((values >= 0) & (values <= 1)).all()
    assert kstest(values.astype(float), lambda x: (norm.cdf(x) - 0.5) / scale).pvalue > RARE
    assert kstest(values.astype(float), lambda x: x).pvalue < RARE


def test_S2_without_a_bound_the_race_is_close_to_the_law_where_weights_are_tame() -> None:
    wide = Normal(0, 1.5)  # its ratio to N(0, 1) is unbounded, with E f^2 = 2.25
    coupling = PoissonCoupling(Normal(0, 1), most_points=600)
    values = coupled(coupling, [wide], draws=3_000, key="no bound").values[:, 0, 0, 0].astype(float)
    assert kstest(values, norm(0, 1.5**0.5).cdf).pvalue > RARE
    assert kstest(values, norm(0, 1).cdf).pvalue < RARE


def test_draws_are_independent_of_each_other() -> None:
    values = coupled(PoissonCoupling(Normal(0, 4)), [Normal(0, 1)], draws=20_000, key="draws").values[:, 0, 0, 0]
    numbers = values.astype(float)
    for lag in (1, 2, 16):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 5.4 / 20_000**0.5


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "ratio", [1.0, 5.0, 20.0, *(pytest.param(x, marks=pytest.mark.nightly) for x in (100.0, 1000.0))]
)
def test_S2_a_law_reads_as_many_points_on_average_as_its_density_is_high(rule: Any, ratio: float) -> None:
    """M = ratio for N(0, 1) in N(0, ratio^2).

    The number of points read has a standard deviation near M, so the mean of n has a relative error of n^(-1/2), and
    0.75 M and 1.25 M are rejected.
    """
    draws = 2_000
    coupling = PoissonCoupling(Normal(0, ratio**2), rule=rule, most_points=1 << 16)
    shared = SharedRandomness(f"cost {rule}")
    read = coupling.points_read([Normal(0, 1)], records=1, draws=draws, shared=shared)
    print(f"M = {ratio}: {read.mean() / ratio:.3f} M points read")  # noqa: T201
    assert abs(read.mean() / ratio - 1) < 5.4 / draws**0.5
