"""Method D against second routes: enumeration of one label, simulated shifts, whole releases, and too few records."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from accord.randomness import SharedRandomness
from accord.theory.black_box import RootModel, Roots
from accord.theory.planning.roots import FLOOR, STEP, RoundedRoots, _chances, _losses, plan_roots
from accord.theory.planning.verify import _one_label, far_cells, shifts_that_do, too_many

SETTING: dict[str, Any] = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "delta": 1e-6}


def _found(labels: int) -> RoundedRoots:
    found = plan_roots(labels=labels, **SETTING)
    assert found is not None
    return found


def _numbers(found: RoundedRoots) -> dict[str, Any]:
    return asdict(found) | {"floor": FLOOR}


def _hit(mean: float, offsets: np.ndarray, width: float) -> np.ndarray:
    """Return the exact chance that a cell with this offset from the root of the mean holds the root of the count."""
    counts = np.arange(math.ceil(mean + 30 * math.sqrt(mean) + 60))
    roots = np.sqrt(counts + 0.25)
    inside = np.abs(roots - math.sqrt(mean) - offsets[:, None]) <= width / 2
    return np.asarray(inside @ poisson.pmf(counts, mean))


def test_S9_bounds_on_one_label_hold_for_every_mean_and_are_not_loose() -> None:
    steps = 104
    width = steps * STEP
    chances = _chances(steps, largest=16.0)
    checked, hit = _one_label(width, 16.0**2 - FLOOR, FLOOR)
    assert chances.missed == pytest.approx(checked, abs=1e-9)
    place = np.arange(-steps // 2, steps // 2)
    near = np.zeros(steps)
    wide = np.zeros(4 * steps)
    for mean in np.concatenate([np.linspace(FLOOR, 20, 400), np.linspace(20, 255, 200)]):
        near = np.maximum(near, 1 - _hit(mean, (place + 0.37) * STEP, width))
        wide = np.maximum(wide, _hit(mean, (np.arange(-2 * steps, 2 * steps) + 0.37) * STEP, width))
    assert (near <= chances.missed).all()
    assert (wide <= hit).all()
    assert (chances.missed <= near + 0.08).all()
    assert (hit <= wide + 0.08).all()


def test_S9_shifts_that_do_by_simulation() -> None:
    """Draw shifts and multiply the chances: at least the stated share of draws is as good as stated."""
    found = _found(3)
    least = shifts_that_do(_numbers(found))
    chances = _chances(round(found.width / STEP), largest=32.0)
    shifts = SharedRandomness("planning: shifts that do").stream("u").uniform(size=(400_000, 3))
    missed = chances.missed[np.floor(shifts * len(chances.missed)).astype(int)]
    share = float(((1 - missed).prod(axis=1) >= found.agreement).mean())
    # Five standard errors are 0.0013 here, chance below 1e-6; ten per cent are 0.0028.
    assert least - 0.0013 <= share <= 1.1 * least
    losses = _losses(round(found.width / STEP), 3, largest=32.0)
    assert losses[math.floor(-math.log(found.agreement) / 3.0 * 4096)] == pytest.approx(least, rel=1e-6)


def test_S9_parts_of_the_bound() -> None:
    found = _found(16)
    numbers = _numbers(found)
    assert found.records <= 400_000
    assert too_many(numbers) == pytest.approx(poisson.sf(found.block_size, found.mean_size), abs=1e-9)
    likely, rest = far_cells(numbers, 0.1, 1.0)
    assert 0.02 < likely < 0.03
    assert 0 < rest < 0.004
    assert far_cells(numbers, 0.09, 1.0)[0] > 0.1
    assert far_cells(numbers | {"good_votes": found.good_votes - 5}, 0.1, 1.0)[0] > 0.1


@pytest.mark.parametrize("labels", [3, 16])
def test_S9_the_model_is_as_near_as_the_centre(labels: int) -> None:
    """TV <= |centre - roots of the means| b' / sqrt(b' (b' + d c0)) (1 + d c0 / b'), whatever the centre."""
    source = SharedRandomness(f"planning: centres {labels}").stream("centres")
    size, wide = 400.0, 400.0 + labels * FLOOR
    model = RootModel(tuple(range(labels)), size, FLOOR)
    closest = 0.0
    for _ in range(400):
        truth = source.dirichlet(np.full(labels, source.choice([0.05, 0.5, 5.0])))
        roots = np.sqrt(size * truth + FLOOR)
        centre = roots + source.uniform(0, 3) * source.standard_normal(labels)
        law = np.array(model.fit(centre[None, :], seed=0).probabilities)
        assert law.min() >= 0
        assert law.sum() == pytest.approx(1)
        distance = 0.5 * float(np.abs(law - truth).sum())
        bound = float(np.linalg.norm(centre - roots)) * math.sqrt(wide) / size
        assert distance <= bound + 1e-12
        closest = max(closest, distance / bound)
    assert closest > 0.5


def _release(found: RoundedRoots, truth: np.ndarray, key: SharedRandomness) -> float:
    """Return one release's total variation, 1 for no answer: real learner and model, counts drawn for the blocks."""
    source = key.stream("data and noise")
    learner = Roots(tuple(range(found.labels)), found.mean_size, FLOOR)
    rows = []
    for block in range(found.blocks):
        records = source.choice(found.labels, size=found.block_size, p=truth)
        rows.append(learner.fit(records, seed=key.seed("learner", block)).vector)
    votes = np.array(rows)
    cells: list[tuple[float, np.ndarray]] = []
    for _ in range(found.draws):
        shift = source.uniform(size=found.labels)
        kinds, counts = np.unique(np.floor(votes / found.width + shift), axis=0, return_counts=True)
        cells += [(count, (kind + 0.5 - shift) * found.width) for kind, count in zip(kinds, counts, strict=True)]
    sizes = np.array([count for count, _ in cells])
    weights = np.exp(0.5 * (sizes - 1)) * 1e-6 / found.draws
    ticket = source.uniform() * (1 + weights.sum())
    if ticket >= weights.sum():
        return 1.0
    centre = cells[int(np.searchsorted(np.cumsum(weights), ticket, side="right"))][1]
    model = RootModel(tuple(range(found.labels)), found.mean_size, FLOOR).fit(centre[None, :], seed=0)
    return 0.5 * float(np.abs(np.array(model.probabilities) - truth).sum())


def test_S9_rounded_roots_keep_their_promise_and_fewer_blocks_do_not() -> None:
    found = _found(3)
    assert found.draws == 128
    for name, truth in {"flat": [1 / 3, 1 / 3, 1 / 3], "steep": [0.9, 0.1, 0.0]}.items():
        key = SharedRandomness(f"planning: three labels {name}")
        hits = sum(_release(found, np.array(truth), key.child(run)) < 0.1 for run in range(30))
        # At success 0.9 fewer than 16 hits of 30 have chance below 1e-6.
        assert hits >= 16, (name, hits)
    fewer = RoundedRoots(**(asdict(found) | {"blocks": found.blocks // 2}))
    key = SharedRandomness("planning: three labels, power")
    assert sum(_release(fewer, np.full(3, 1 / 3), key.child(run)) < 0.1 for run in range(30)) < 16


def test_roots_of_counts_are_independent_poisson() -> None:
    """The variance of a label's counts is its mean (a multinomial's is 40 % less here), and labels do not correlate."""
    learner = Roots(("a", "b"), 400.0, FLOOR)
    source = SharedRandomness("planning: roots").stream("records")
    rows = []
    for seed in range(2000):
        records = source.choice(["a", "b"], size=500, p=[0.4, 0.6])
        rows.append(learner.fit(records, seed=seed).vector)
    counts = np.array(rows) ** 2 - 0.25
    means, spread = counts.mean(axis=0), counts.var(axis=0)
    first, second = counts.T
    product = float(((first - first.mean()) * (second - second.mean())).mean())
    # Five standard errors: sqrt(mean / 2000) and sqrt(2 / 2000) of the variance; 1 / sqrt(2000) for the correlation.
    assert np.abs(means - [166.0, 246.0]) == pytest.approx(0, abs=5 * math.sqrt(246 / 2000))
    assert spread / means == pytest.approx(1, abs=5 * math.sqrt(2 / 2000))
    assert abs(product) / math.sqrt(float(spread.prod())) < 5 / math.sqrt(2000)
