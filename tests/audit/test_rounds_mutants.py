"""Tables of many columns, whose tables are chosen in rounds: mutants that let records decide, caught by neighbours.

What mechanisms gave is frozen. Then neighbours must give the same model, and mechanisms must be asked for the same
tables in the same order; a mutant of each step between the mechanisms is noticed.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from accord.accounting import of_stages
from accord.marginals import Column, Domain, Grid, MarginalLearner, MarginalModel
from accord.marginals import looks as _looks
from accord.marginals import run as _run
from accord.marginals.engine import CountingEngine, coded
from accord.marginals.placing import even_levels
from accord.randomness import SharedRandomness
from accord.testing import ReplayRandomness

Patch = pytest.MonkeyPatch
GRID = Grid(bounds=(0, 500), decimals=0)
DOMAIN = Domain(
    [
        *(Column(f"label {place}", 2 + place % 3) for place in range(20)),
        *(Column(f"level {place}", 5, kind="ordered") for place in range(4)),
        Column.of_grid("number", GRID),
    ]
)
COUNT = 1500


@pytest.fixture(autouse=True)
def no_totals_of_other_variants() -> Iterator[None]:
    of_stages.composed_epsilon.cache_clear()
    yield
    of_stages.composed_epsilon.cache_clear()


def table() -> np.ndarray:
    """Codes of columns that depend on each other in groups of five."""
    generator = np.random.default_rng(3)
    level = generator.random((COUNT, 5))
    columns = [
        np.minimum(level[:, place // 5] * column.size + (generator.random(COUNT) < 0.2), column.size - 1).astype(int)
        for place, column in enumerate(DOMAIN.columns)
    ]
    columns[-1] = GRID.encode(np.round(500 * level[:, 4])).astype(int)
    return np.stack(columns, axis=1)


def owners() -> np.ndarray:
    return np.sort(np.random.default_rng(4).zipf(1.6, COUNT) % 400)


def neighbour(codes: np.ndarray, units: np.ndarray | None) -> np.ndarray:
    """The same records but those of one unit, which hold the last code of each column."""
    changed = codes.copy()
    hers = [17] if units is None else np.flatnonzero(units == np.bincount(units).argmax())
    changed[hers] = np.array(DOMAIN.codes) - 1
    return changed


class OtherwiseAskedError(Exception):
    """A neighbour asks mechanisms for something else."""


@dataclass(frozen=True)
class Trace:
    """What a release asks of mechanisms, the scores that choices are made by, and the model."""

    asked: list[Any]
    scores: list[tuple[Any, list[int]]]
    public: list[Any]

    def differs(self, other: "Trace") -> str:
        """Say what a neighbour shows that it must not, or nothing."""
        if self.asked != other.asked:
            return "mechanisms"
        for (moved, ours), (_, theirs) in zip(self.scores, other.scores, strict=True):
            if max(abs(one - two) for one, two in zip(ours, theirs, strict=True)) > moved:
                return "scores"
        return "" if self.public == other.public else "model"


def traces(patch: Patch, *, units: bool) -> tuple[Trace, Trace]:
    """Return the traces of a table and of its neighbour."""
    outputs: list[Any] = []
    replay: list[Any] = []
    asked: list[Any] = []
    scores: list[Any] = []

    def frozen(name: str) -> None:
        original = getattr(_looks.Look, name)

        def run(self: Any, step: Any, *rest: Any) -> Any:
            asked.append((name, step.what, step.number, len(rest[0]) if name == "choice" else rest[0]))
            if name == "choice":
                scores.append((step.moved, list(rest[0])))
            if replay:
                was, output = replay.pop(0)
                if was != asked[-1]:
                    raise OtherwiseAskedError
                return output
            outputs.append((asked[-1], original(self, step, *rest)))
            return outputs[-1][1]

        patch.setattr(_looks.Look, name, run)

    for name in ("laplace", "gaussian", "product", "choice"):
        frozen(name)
    codes, whose = table(), owners() if units else None
    learner = MarginalLearner(DOMAIN, epsilon=3, delta="1e-5", rounds=24)
    found = []
    for rows in (codes, neighbour(codes, whose)):
        asked.clear()
        scores.clear()
        replay.extend(outputs)
        public: list[Any] = []
        with suppress(OtherwiseAskedError):
            model = learner.release(rows, units=whose, randomness=ReplayRandomness("rounds")).value
            assert isinstance(model, MarginalModel)
            tables = [model.marginal([one, other]).tobytes() for one, other in ((0, 1), (3, 24), (7, 20))]
            public = [tables, model.edges, repr(model.errors)]
        found.append(Trace(list(asked), list(scores), public))
    return found[0], found[1]


@pytest.mark.parametrize("units", [False, True])
def test_neighbours_are_the_same_in_rounds(monkeypatch: Patch, *, units: bool) -> None:
    one, other = traces(monkeypatch, units=units)
    assert one.differs(other) == ""
    assert one.public
    assert len(one.scores) > 40
    shares = [
        max(abs(mine - hers) for mine, hers in zip(ours, theirs, strict=True)) / moved
        for (moved, ours), (_, theirs) in zip(one.scores, other.scores, strict=True)
    ]
    assert max(shares) > 0.5


# --- mutants ----------------------------------------------------------------------------------------------------------


def watched(patch: Patch) -> list[CountingEngine]:
    """Return where the engine of the records will be found once columns are grouped."""
    seen: list[CountingEngine] = []
    ones = _run.Run._ones

    def watch(self: Any, look: Any) -> Any:
        found = ones(self, look)
        seen[:] = [found.counting]
        return found

    patch.setattr(_run.Run, "_ones", watch)
    return seen


def a_sample_whose_seed_is_a_count(patch: Patch) -> None:
    seen = watched(patch)

    def seeded(self: Any, _most: int) -> CountingEngine:
        generator = SharedRandomness(int(seen[0].table((0, 1, 2)) @ np.arange(24) ** 2)).stream("scores")
        groups = self._engine.sample(self._fitted.potentials, 20_000, even_levels, generator)
        return CountingEngine.of(coded(groups, self._shape), self._shape, total=20_000)

    patch.setattr(_run.Run, "_sample", seeded)


def tables_in_the_order_of_their_counts(patch: Patch) -> None:
    """Only the order of the candidates is a function of the records."""
    seen, true = watched(patch), _run.Run._candidates

    def ordered(self: Any, *given: Any) -> Any:
        tables = true(self, *given)
        spread = {
            one: float(np.var(counts))
            for one, counts in zip(tables, seen[0].count([table for _, table in tables]), strict=True)
        }
        return tuple(sorted(tables, key=spread.__getitem__))

    patch.setattr(_run.Run, "_candidates", ordered)


def noise_that_is_looked_at(patch: Patch) -> None:
    """A table is weighted by how far its noise truly went."""
    take = _run.Run._take

    def aware(self: Any, look: Any, step: Any, chosen: Any, level: Any = None) -> None:
        take(self, look, step, chosen, level)
        last = self._noisy[-1]
        off = np.abs(last.counts - look.counting.table(chosen)).mean()
        self._noisy[-1] = replace(last, strength=last.strength * (1 + 1e-3 * off))

    patch.setattr(_run.Run, "_take", aware)


MUTANTS: dict[Callable[[Patch], None], set[str]] = {
    a_sample_whose_seed_is_a_count: {"scores"},
    tables_in_the_order_of_their_counts: {"mechanisms"},
    noise_that_is_looked_at: {"scores", "model"},
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_differs_on_neighbours(monkeypatch: Patch, mutant: Callable[[Patch], None]) -> None:
    mutant(monkeypatch)
    one, other = traces(monkeypatch, units=False)
    assert one.differs(other) in MUTANTS[mutant]
