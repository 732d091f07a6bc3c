"""Every public mechanism passes the suite, and broken ones of each kind do not."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import accord.mechanisms
from accord.core.coupling import ABSTAIN
from accord.errors import InvalidParameter
from accord.mechanisms import (
    AboveThreshold,
    BestOfDraws,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Laplace,
    LevelSelection,
    PermuteAndFlip,
    StableMode,
    ThresholdedCounts,
    TopK,
)
from accord.privacy import ApproxDP, Neighbouring, PureDP, Release, Sensitivity
from accord.randomness import PrivateRandomness, bernoulli, require_private
from accord.testing import MechanismCase, MechanismFault, check_mechanism
from accord.testing.mechanism_checks import _sample, check_independence

VOTES = [
    (["a"] * 5 + ["b"], ["a"] * 4 + ["b", "b"]),
    (["a"] * 6, ["a"] * 5 + [ABSTAIN]),
    (["a"] * 6, ["a"] * 5 + ["c"]),
]
SCORES = [([0.0, 1.0, 2.0], [1.0, 0.0, 1.0]), ([0.0, 0.0, -np.inf], [1.0, -1.0, -np.inf])]
LEVELS = [(["a"] * 8 + ["b"] * 3, ["a"] * 8 + ["b"] * 2 + ["c"]), (["a"] * 4, ["a"] * 3 + ["b"])]
NOT_SCORES: list[Any] = [[], [np.nan, 0.0], [np.inf, 0.0], "abc"]


def case(own: Any, promised: Any, *, run: Any, **fields: Any) -> MechanismCase:
    """A mechanism under its own guarantee, which its releases must carry, or under another promise: plain outcomes."""
    if promised is None:
        return MechanismCase(guarantee=own, run=run, **fields)
    return MechanismCase(guarantee=promised, run=lambda query, source: run(query, source).value, **fields)


def stable(rule: Any, *, epsilon: Any = 1, promised: Any = None) -> MechanismCase:
    mode = StableMode(epsilon=epsilon, delta="0.05", rule=rule)
    return case(
        mode.guarantee,
        promised and ApproxDP(promised, "0.05"),
        run=lambda votes, randomness: mode.release(votes, randomness=randomness),
        neighbours=VOTES,
        law=mode.law,
        refused=[[], "aaa", [object()]],
        same_bits=True,
    )


def best(*, epsilon: Any = 1, promised: Any = None) -> MechanismCase:
    mode = BestOfDraws(epsilon=epsilon, delta="0.05", draws=2)
    return case(
        mode.guarantee,
        promised and ApproxDP(promised, "0.05"),
        run=lambda votes, randomness: mode.release(votes, randomness=randomness),
        neighbours=[([before, before], [after, after]) for before, after in VOTES],
        law=mode.law,
        refused=[[["a"]], [["a", "b"], ["a"]], [[], []]],
    )


def selection(mechanism: Any, *, promised: Any = None, scores: Any = SCORES, same_bits: bool = True) -> MechanismCase:
    return case(
        mechanism.guarantee,
        promised and PureDP(promised),
        run=lambda query, randomness: mechanism.select(query, randomness=randomness),
        neighbours=scores,
        law=mechanism.law,
        refused=NOT_SCORES,
        same_bits=same_bits,
    )


def top(*, promised: Any = None, epsilon: Any = 1) -> MechanismCase:
    mechanism = TopK(sensitivity=1, epsilon=epsilon, count=2)
    return case(
        mechanism.guarantee,
        promised and PureDP(promised),
        run=lambda query, randomness: mechanism.select(query, randomness=randomness),
        neighbours=SCORES[:1],
        law=mechanism.law,
        refused=[*NOT_SCORES, [1.0]],
        same_bits=True,
    )


def number(
    mechanism: Any, *, width: float, pairs: Any, promised: Any = None, guarantee: Any = None, **options: Any
) -> MechanismCase:
    return case(
        guarantee or mechanism.guarantee,
        promised and PureDP(promised),
        run=lambda query, randomness: mechanism.release(query, randomness=randomness, **options).map(
            lambda value: round(float(np.clip(np.sum(value), -6, 6)) / width)
        ),
        neighbours=pairs,
        refused=[float("nan"), None, "many"],
        same_bits=True,
    )


def above(*, promised: Any = None, epsilon: Any = 1, sensitivity: Any = 1) -> MechanismCase:
    mechanism = AboveThreshold(sensitivity=sensitivity, epsilon=epsilon, threshold=2)
    return case(
        mechanism.guarantee,
        promised and PureDP(promised),
        run=lambda queries, randomness: mechanism.release(queries, randomness=randomness),
        neighbours=[([0, 0, 4, 0], [1, 1, 3, 1]), ([2, 2, 2], [3, 3, 1])],
        refused=[[float("nan")], [Fraction(1, 2)]],
    )


def counts(*, promised: Any = None, inclusive: bool = True, threshold: int = 6) -> MechanismCase:
    mechanism = ThresholdedCounts(epsilon=1, threshold=threshold, inclusive=inclusive)
    return case(
        mechanism.guarantee,
        promised,
        run=lambda values, randomness: mechanism.release(values, randomness=randomness).map(
            lambda pairs: tuple((level, min(count, 12)) for level, count in reversed(pairs))  # a half-line: has a "b"
        ),
        neighbours=LEVELS,
        refused=["abc", [object()]],
    )


def levels(*, promised: Any = None, epsilon: Any = 1) -> MechanismCase:
    mechanism = LevelSelection(epsilon=epsilon, delta="0.05")
    return case(
        mechanism.guarantee,
        promised and ApproxDP(promised, "0.05"),
        run=lambda values, randomness: mechanism.release(values, randomness=randomness),
        neighbours=LEVELS,
        law=mechanism.law,
        refused=["abc", [object()]],
    )


STEP = [(0, 1), (-3, -2)]
VECTOR = [([0.0, 0.0], [0.5, 0.5]), ([1.0, -1.0], [1.0, 0.0])]
GAUSSIAN = DiscreteGaussian(sensitivity=1, sigma=2)

TRUE: dict[str, Callable[[], MechanismCase]] = {
    "StableMode, exclusive": lambda: stable("exclusive"),
    "StableMode, distance": lambda: stable("distance"),
    "StableMode, proportional": lambda: stable("proportional"),
    "BestOfDraws": best,
    "Exponential": lambda: selection(Exponential(sensitivity=1, epsilon=1)),
    "Exponential, monotone": lambda: selection(
        Exponential(sensitivity=1, epsilon=1, monotone=True), scores=[([0.0, 1.0, 2.0], [1.0, 1.0, 3.0])]
    ),
    "PermuteAndFlip": lambda: selection(PermuteAndFlip(sensitivity=1, epsilon=1)),
    "TopK": top,
    "Laplace": lambda: number(Laplace(sensitivity=1, epsilon=1), width=0.5, pairs=[(0.0, 1.0), (-3.5, -2.5)]),
    "Laplace, vector": lambda: number(Laplace(sensitivity=1, epsilon=1), width=0.5, pairs=VECTOR),
    "DiscreteLaplace": lambda: number(DiscreteLaplace(sensitivity=1, scale=1), width=1, pairs=STEP),
    "DiscreteGaussian": lambda: number(
        GAUSSIAN, width=1, pairs=STEP, guarantee=GAUSSIAN.guarantee_at("0.01", dimension=1), delta="0.01"
    ),
    "AboveThreshold": above,
    "ThresholdedCounts": counts,
    "ThresholdedCounts, strict": lambda: counts(inclusive=False, threshold=5),
    "LevelSelection": levels,
}

BROKEN: dict[str, Callable[[], MechanismCase]] = {
    "StableMode, exclusive: half the epsilon promised": lambda: stable("exclusive", promised="0.5"),
    "StableMode, proportional: half the epsilon promised": lambda: stable("proportional", epsilon=2, promised="0.5"),
    "StableMode, distance: half the epsilon promised": lambda: stable("distance", epsilon=2, promised="0.5"),
    "BestOfDraws: a third of the epsilon promised": lambda: best(epsilon=3, promised=1),
    "Exponential: the factor 2 dropped": lambda: selection(
        Exponential(sensitivity=1, epsilon=1, monotone=True), promised=1
    ),
    "Exponential: sensitivity halved": lambda: selection(Exponential(sensitivity="0.5", epsilon=1)),
    "PermuteAndFlip: sensitivity halved": lambda: selection(PermuteAndFlip(sensitivity="0.5", epsilon=1)),
    "TopK: a quarter of the epsilon promised": lambda: top(epsilon=4, promised=1),
    "Laplace: scale halved": lambda: number(
        Laplace(sensitivity=1, epsilon=2), width=0.5, pairs=[(0.0, 1.0)], promised=1
    ),
    "Laplace: sensitivity of replace-one halved": lambda: number(
        Laplace(sensitivity="0.5", epsilon=1), width=0.5, pairs=[(0.0, 1.0)]
    ),
    "DiscreteLaplace: scale halved": lambda: number(
        DiscreteLaplace(sensitivity=1, scale="0.5"), width=1, pairs=STEP, promised=1
    ),
    "AboveThreshold: a twelfth of the epsilon promised": lambda: above(epsilon=12, promised=1),
    "ThresholdedCounts: threshold off by one": lambda: counts(
        threshold=3, promised=ThresholdedCounts(epsilon=1, threshold=6).guarantee
    ),
    "LevelSelection: half the epsilon promised": lambda: levels(promised="0.4"),
}


@pytest.mark.parametrize("name", TRUE)
def test_the_suite_accepts(name: str) -> None:
    check_mechanism(TRUE[name](), runs=1_500)


@pytest.mark.parametrize("name", BROKEN)
def test_the_suite_catches(name: str) -> None:
    with pytest.raises(MechanismFault, match=r"differ by delta|likelier"):
        check_mechanism(BROKEN[name](), runs=4_000)


def test_every_public_mechanism_is_in_the_suite() -> None:
    covered = {name.split(",")[0] for name in TRUE}
    public = {name for name in accord.mechanisms.__all__ if hasattr(getattr(accord.mechanisms, name), "guarantee")}
    assert public <= covered | {"AboveThresholdRun"}


def reused(randomness: Any, store: list[Any] = []) -> Any:  # noqa: B006 - the fault: one draw for ever
    store.append(DiscreteLaplace(sensitivity=1, scale=1).release(0, randomness=randomness).value)
    return store[0]


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (lambda query, randomness: query + reused(randomness), "no noise|another source"),
        (lambda query, randomness: query, "taken from"),
        (lambda query, randomness: Laplace(sensitivity=1, epsilon=1).release(query).value, "taken from"),
    ],
)
def test_reused_missing_and_foreign_noise_is_caught(run: Any, what: str) -> None:
    with pytest.raises(MechanismFault, match=what):
        check_mechanism(MechanismCase(guarantee=PureDP(1), run=run, neighbours=[(0, 1)]), runs=500)


def test_what_must_be_refused_must_be_refused_before_noise() -> None:
    def late(query: Any, randomness: Any) -> Any:
        return DiscreteLaplace(sensitivity=1, scale=1).release(0, randomness=randomness).value + query

    with pytest.raises(MechanismFault, match="before the input was refused"):
        check_mechanism(MechanismCase(guarantee=PureDP(1), run=late, neighbours=[(0, 1)], refused=["x"]), runs=100)


def test_guarantees_carry_the_relation_of_the_sensitivity() -> None:
    sensitivity = Sensitivity(1, Neighbouring.ADD_OR_REMOVE_ONE)
    for mechanism in (
        Laplace(sensitivity=sensitivity, epsilon=1),
        DiscreteLaplace(sensitivity=sensitivity, scale=1),
        Exponential(sensitivity=sensitivity, epsilon=1),
    ):
        assert mechanism.guarantee == PureDP(1, Neighbouring.ADD_OR_REMOVE_ONE)


# --- what the suite itself could overlook -----------------------------------------------------------------------------

GEOMETRIC = DiscreteLaplace(sensitivity=1, scale=1)


def noise(randomness: Any, scale: Any = 1) -> int:
    drawn: Any = DiscreteLaplace(sensitivity=1, scale=scale).release(0, randomness=randomness).value
    return int(drawn)


def noisy(query: int, randomness: Any) -> int:
    return query + noise(randomness)


def small(run: Any, **fields: Any) -> MechanismCase:
    return MechanismCase(**{"guarantee": PureDP(1), "run": run, "neighbours": [(0, 1)], **fields})


def caught(case: MechanismCase, words: str, *, runs: int = 1_000) -> None:
    with pytest.raises(MechanismFault, match=words):
        check_mechanism(case, runs=runs)


def test_long_arrays_that_print_alike_are_two_queries() -> None:
    zeros, one = np.zeros(5_000, dtype=np.int64), np.zeros(5_000, dtype=np.int64)
    one[2_500] = 1
    assert repr(zeros) == repr(one)
    caught(small(lambda query, source: int(query.sum()) + noise(source, "0.2"), neighbours=[(zeros, one)]), "likelier")


def test_neighbours_from_an_iterator_are_looked_at_each_time() -> None:
    case = small(lambda query, source: query + noise(source, "0.2"), neighbours=iter([(0, 1)]))
    for _ in range(2):
        caught(case, "likelier")
    caught(small(noisy, neighbours=iter([])), "neighbours must be given")
    caught(small(noisy, neighbours=[(iter([0]), iter([1]))]), "iterator")


class Twice:
    """Noise that serves for two releases, whether or not the second one draws, or once more with its sign turned."""

    def __init__(self, *, draws: bool, sign: int = 1) -> None:
        self.draws, self.sign = draws, sign
        self.kept: list[int] = []

    def __call__(self, query: int, source: Any) -> int:
        if self.kept:
            if self.draws:
                noise(source)
            return query + self.sign * self.kept.pop()
        require_private(source)
        self.kept.append(noise(source))
        return query + self.kept[0]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (Twice(draws=False), "drew nothing|another source"),
        (Twice(draws=True), "depend on each other"),
        (Twice(draws=True, sign=-1), "depend on each other"),
    ],
)
def test_noise_that_serves_for_two_releases_is_caught(run: Twice, words: str) -> None:
    caught(small(run), words, runs=4_000)


def test_noise_of_an_earlier_run_is_caught_without_a_replay() -> None:
    with pytest.raises(MechanismFault, match="drew nothing"):
        _sample(small(Twice(draws=False)), 0, 100)


@pytest.mark.parametrize("chances", [[1, 0], ["1/2", "1/2"]])
def test_ties_and_point_masses_pass_the_check_of_independence(chances: list[Any]) -> None:
    generator = np.random.default_rng(5)
    for _ in range(50):
        check_independence(generator.choice(2, p=[float(Fraction(chance)) for chance in chances], size=500).tolist())


HALF = Fraction(1, 2)


@pytest.mark.parametrize("law", [{0: HALF}, {0: HALF, 1: HALF, 2: HALF}, {0: 3 * HALF, 1: -HALF}, {0: 0.5, 1: 0.5}, {}])
def test_a_law_that_is_none_is_a_fault(law: Any) -> None:
    caught(
        small(lambda query, source: bernoulli(HALF, randomness=require_private(source)), law=lambda query: law), "law"
    )


@pytest.mark.parametrize("query", ["secret", ["a", "secret"], {"name": ("secret",)}, np.array(["secret"]), 12.75])
def test_a_refusal_that_repeats_the_query_is_a_fault(query: Any) -> None:
    def talks(query: Any, source: Any) -> int:
        if not isinstance(query, int):
            raise InvalidParameter(f"value must be an int, not {query}.")
        return noisy(query, source)

    caught(small(talks, refused=[query]), "repeats what is in it")


def test_a_release_must_carry_the_guarantee_of_the_case() -> None:
    def release(query: int, source: Any) -> Release[Any]:
        return GEOMETRIC.release(query, randomness=source)

    check_mechanism(small(release), runs=500)
    caught(small(release, guarantee=PureDP(2)), "another guarantee")
    caught(small(release, guarantee=PureDP(1, Neighbouring.ADD_OR_REMOVE_ONE)), "another guarantee")
    caught(small(release, guarantee=PureDP(1, unit="person")), "another guarantee")


def test_bytes_drawn_on_neighbours_are_compared_if_asked() -> None:
    def more(query: int, source: Any) -> int:
        outcome = noisy(query, source)
        source.bytes(query)
        return outcome

    check_mechanism(small(more), runs=500)
    check_mechanism(small(noisy, same_bits=True), runs=500)
    caught(small(more, same_bits=True), "numbers of bytes")


def test_a_second_source_that_is_seldom_read_is_caught() -> None:
    def seldom(query: int, source: Any) -> int:
        outcome = noisy(query, source)
        return PrivateRandomness().bits(64) if source.bits(3) == 0 else outcome

    caught(small(seldom), "another source")


def test_outcomes_of_several_types_have_half_lines() -> None:
    def by_type(query: int, source: Any) -> Any:
        draw = require_private(source).bits(12)
        return str(draw) if query else draw

    caught(small(by_type), "likelier")


@pytest.mark.parametrize("runs", [0, 99, -1, 1.5, None])
def test_too_few_runs_are_refused(runs: Any) -> None:
    with pytest.raises(InvalidParameter, match="runs"):
        check_mechanism(small(noisy), runs=runs)


def test_an_epsilon_beyond_the_floats_is_compared_exactly() -> None:
    check_mechanism(small(noisy, guarantee=PureDP(1000)), runs=100)


def test_outcomes_without_a_hash_and_refused_neighbours_are_faults() -> None:
    caught(small(lambda query, source: [noisy(query, source)]), "cannot be hashed")
    refusing = small(lambda query, source: GEOMETRIC.release(query, randomness=source).value, neighbours=[(0, 1.5)])
    caught(refusing, "neighbours was refused")
    mode = StableMode(epsilon=1, delta="0.1")
    caught(small(noisy, law=lambda query: mode.law([])), "neighbours was refused")


def test_the_suite_is_quiet_about_its_own_sources() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_mechanism(small(noisy, refused=[]), runs=100)
        caught(small(noisy, refused=[1]), "drawn before")
