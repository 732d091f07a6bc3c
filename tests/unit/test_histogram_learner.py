"""HistogramLearner: which bin a record is in, what is left out, and what is refused."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from accord.distributions import Piecewise
from accord.errors import FitFailed, InvalidParameter
from accord.laws import total_variation
from accord.learners import EmpiricalLearner, HistogramLearner, Learner

SEED = 20261130


def test_S6_a_quarter_is_added_to_each_bin() -> None:
    learner = HistogramLearner([0, 1, 2, 4])
    law = learner.fit(np.array([0.2, 0.4, 1.5]), seed=0)
    assert law == Piecewise([0, 1, 2, 4], [2.25, 1.25, 0.25])
    assert isinstance(learner, Learner)
    assert learner.bins == 3


def test_a_bin_holds_its_lower_edge_and_the_last_one_both() -> None:
    learner = HistogramLearner([-1.0, 0.0, 0.1, 1.0])
    for value, place in ((-1.0, 0), (-0.0, 1), (0.0, 1), (0.1, 2), (1.0, 2), (math.nextafter(0.1, 0), 1)):
        masses = learner.fit(np.array([value]), seed=0).masses
        assert int(np.argmax(masses)) == place, value
        # The law gives the record's own bin the same density: the two rules agree.
        law = Piecewise(learner.edges, np.eye(3)[place])
        assert law.log_density([value])[0] > -math.inf


def test_records_outside_the_bins_are_left_out_not_moved() -> None:
    learner = HistogramLearner([0, 1, 2])
    inside = np.array([0.5, 1.5, 1.5])
    outside = np.array([-1e-300, 2.0000001, np.nan, np.inf, -np.inf, 1e300])
    assert learner.fit(np.concatenate((outside, inside)), seed=1) == learner.fit(inside[:, None], seed=2)
    mixed = np.array([0.5, None, 1.5, 1.5], dtype=object)
    assert learner.fit(mixed, seed=0) == learner.fit(inside, seed=0)


@pytest.mark.parametrize(
    "records",
    [
        np.array([]),
        np.array([5.0, -1.0]),
        np.array([np.nan]),
        np.zeros((3, 2)),
        np.zeros((3, 0)),
        np.zeros((2, 2, 2)),
        np.array(["secret"]),
        np.array([0.5, "secret"], dtype=object),
        np.array([1j]),
    ],
)
def test_histogram_fails_without_a_word_of_data(records: Any) -> None:
    with pytest.raises(FitFailed) as caught:
        HistogramLearner([0, 1, 2]).fit(records, seed=0)
    assert "secret" not in str(caught.value)
    assert not any(character.isdigit() for character in str(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "edges",
    [[], [1.0], 3.0, "abc", [1, 1], [2, 1], [0, 1, 1], [0, math.nan], [0, math.inf], [[0, 1]], [[0], [0, 1]]],
)
def test_histogram_refuses_edges(edges: Any) -> None:
    with pytest.raises(InvalidParameter, match="edges"):
        HistogramLearner(edges)


def test_histogram_learner_is_an_immutable_value() -> None:
    learner = HistogramLearner(np.array([0, 1, 2]))
    assert learner == HistogramLearner((0.0, 1.0, 2.0))
    assert hash(learner) == hash(HistogramLearner([0, 1, 2]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        learner.edges = ()  # type: ignore[misc]


def test_L9_histograms_keep_the_promise_exactly_for_two_bins() -> None:
    alpha, beta = 0.15, 0.1
    learner = HistogramLearner([0, 1, 10])
    records = learner.sample_complexity(alpha, beta)
    for share in (0.5, 0.2, 0.01):
        truth = Piecewise(learner.edges, [share, 1 - share])
        counts = np.arange(records + 1)
        chances = binom.pmf(counts, records, share)
        fits = [learner.fit(np.repeat([0.5, 5.0], [count, records - count]), seed=0) for count in counts]
        apart = np.array([abs(fit.masses[0] - share) for fit in fits])
        assert chances[apart >= alpha].sum() <= beta
        assert apart[3] == pytest.approx(total_variation(fits[3], truth), rel=1e-6)
    few = records // 8
    chances = binom.pmf(np.arange(few + 1), few, 0.5)
    apart = np.abs((np.arange(few + 1) + 0.25) / (few + 0.5) - 0.5)
    assert chances[apart >= alpha].sum() > beta


def test_histogram_accuracy_is_that_of_as_many_labels() -> None:
    bins, labels = HistogramLearner(np.linspace(0, 1, 17)), EmpiricalLearner(range(16))
    for alpha, beta in ((0.1, 0.1), (0.01, 1 / 16), (0.9, 0.9)):
        assert bins.sample_complexity(alpha, beta) == labels.sample_complexity(alpha, beta)
    assert bins.tuple_total_variation(5, 1000) == labels.tuple_total_variation(5, 1000) < 1
    for bad in (0, 1, math.nan):
        with pytest.raises(InvalidParameter):
            bins.sample_complexity(bad, 0.1)
    with pytest.raises(InvalidParameter, match="records"):
        bins.tuple_total_variation(0, 5)


def test_histogram_of_a_smooth_law_is_within_its_binned_distance() -> None:
    edges = np.linspace(0, 1, 11)
    truth = np.diff(edges**2)  # density 2 x, binned
    learner = HistogramLearner(edges)
    alpha, beta, runs = 0.1, 0.1, 400
    records = learner.sample_complexity(alpha, beta)
    generator = np.random.default_rng(SEED)
    failures = 0
    for _ in range(runs):
        masses = learner.fit(np.sqrt(generator.random(records)), seed=0).masses
        failures += 0.5 * np.abs(np.array(masses) - truth).sum() >= alpha
    assert failures <= beta * runs, f"seed {SEED}"
