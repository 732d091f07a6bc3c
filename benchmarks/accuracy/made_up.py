"""Made-up tables that break private synthesisers, with figures that good synthetic rows come near to.

Each maker takes a seed and returns columns; `accuracy.tasks` has the schema that a careful user would write unseen.
"""

from collections.abc import Sequence

import numpy as np

Columns = dict[str, np.ndarray]

TOWNS = np.array([[41.31, -7.74], [43.02, 1.95], [38.66, 16.30], [45.47, 9.02]])
SPREADS = np.array([0.02, 0.04, 0.015, 0.05])
SHARES = (0.5, 0.3, 0.15, 0.05)


def parity(seed: int, *, n: int = 20_000, features: int = 3, noise: int = 3, numbers: bool = False) -> Columns:
    """Columns of which no table of fewer than all features shows anything: y is their parity."""
    generator = np.random.default_rng([seed, 1])
    x = generator.random((n, features + noise))
    y = (x[:, :features] > 0.5).sum(axis=1) % 2
    cells = x.round(3) if numbers else (x > 0.5).astype(int)
    return {**{f"x{c}": cells[:, c] for c in range(features + noise)}, "y": y}


def amounts(seed: int, *, n: int = 20_000, zeros: float = 0.6) -> Columns:
    """Money: many exact zeros, a log-normal rest, a group that decides the level; the public bound is far away."""
    generator = np.random.default_rng([seed, 2])
    group = generator.integers(0, 3, n)
    paid = np.where(generator.random(n) < zeros, 0.0, np.exp(generator.normal(7.0 + 0.7 * group, 1.3))).round(2)
    return {"group": group, "paid": paid}


def places(seed: int, *, n: int = 20_000) -> Columns:
    """Coordinates in four towns; the public bounds are the globe's, a continent's, or none."""
    generator = np.random.default_rng([seed, 3])
    town = generator.choice(len(TOWNS), n, p=SHARES)
    at = TOWNS[town] + generator.normal(size=(n, 2)) * SPREADS[town, None]
    return {"lat": at[:, 0].round(5), "lon": at[:, 1].round(5)}


def wide(seed: int, *, n: int = 50_000, columns: int = 60) -> Columns:
    """Labels (positions), numbers and whole numbers that hang together through five hidden factors."""
    generator = np.random.default_rng([seed, 4])
    factors = generator.normal(size=(n, 5))
    found: Columns = {}
    for place in range(columns):
        weights = generator.normal(size=5) * (generator.random(5) < 0.4)
        score = factors @ weights + generator.normal(size=n)
        if place % 3 == 0:
            size = labels_of_wide(place)
            found[f"c{place}"] = np.digitize(score, np.quantile(score, np.linspace(0, 1, size + 1)[1:-1]))
        elif place % 3 == 1:
            found[f"c{place}"] = np.round(50 + 10 * score, 1)
        else:
            found[f"c{place}"] = np.exp(score * 0.5 + 3).astype(int)
    return found


def labels_of_wide(place: int) -> int:
    """How many labels a column of `wide` has: public, so not drawn."""
    return 2 + place // 3 % 10


def far_off(fake: Columns, real: Columns) -> dict[str, float]:
    """How far the synthetic amounts are off, figure by figure."""
    paid, made = real["paid"], fake["paid"]
    groups = [
        abs(made[fake["group"] == one].mean() / paid[real["group"] == one].mean() - 1) if (fake["group"] == one).any()
        else 1.0
        for one in range(3)
    ]  # fmt: skip
    top = made.max() / paid.max()
    return {
        "mean off by": abs(made.mean() / paid.mean() - 1),
        "worst group mean off by": float(max(groups)),
        ".99 quantile off by": abs(np.quantile(made, 0.99) / np.quantile(paid, 0.99) - 1),
        "zeros off by": abs((made == 0).mean() - (paid == 0).mean()),
        "largest, factor": float(max(top, 1 / top)) if top > 0 else float("inf"),
        "least": float(made.min()),
    }


def near_towns(fake: Columns, real: Columns) -> dict[str, float]:
    """How many synthetic places are near a town, and whether each town is there with its spread."""
    made, truth = (np.stack([rows["lat"], rows["lon"]], axis=1) for rows in (fake, real))
    far = [np.abs(at[:, None, :] - TOWNS).max(axis=2) / SPREADS for at in (made, truth)]
    shares = [(one < 5).mean(axis=0) for one in far]
    ratios = [1.0]
    for town in range(len(TOWNS)):
        here = made[far[0][:, town] < 5]
        if len(here) > 1:
            spread = here.std(axis=0) / SPREADS[town]
            ratios += [*spread, *(1 / np.maximum(spread, 1e-9))]
    return {
        "near a town": float((far[0].min(axis=1) < 5).mean()),
        "spreads, worst factor": float(max(ratios)),
        "share of the least town, of real": float(shares[0][-1] / shares[1][-1]),
    }


def schema_text(entries: Sequence[Sequence[str]]) -> str:
    """Return a schema of these columns."""
    return "version = 3\n" + "".join("\n[[columns]]\n" + "\n".join(lines) + "\n" for lines in entries)
