"""Block fits on a cluster: the same laws and failures as here, whatever becomes of the workers."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray

from accord import PrivateDensity
from accord.core import ABSTAIN, Isolation, SharedRandomness, fit_blocks
from accord.distributions import Normal
from accord.errors import InvalidParameter, WorkersLost
from accord.learners import GaussianLearner
from accord.learning import PrivateSampler
from accord.ledger import Ledger
from accord.testing import ReplayRandomness
from accord.workers import DaskWorkers

distributed = pytest.importorskip("distributed", reason="dask is not installed (the extra 'dask')")

pytestmark = pytest.mark.filterwarnings("ignore")  # of dask, tornado and forks among threads
BLOCKS = tuple(np.arange(start, start + 10) for start in range(0, 60, 10))
TABLE = np.random.default_rng(1).normal(size=(60, 2))


@pytest.fixture(scope="module", autouse=True)
def travelling_classes() -> Iterator[None]:
    """Workers cannot import this file, wherever it is run from: its classes travel with what uses them."""
    cloudpickle = pytest.importorskip("cloudpickle")
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
    yield
    cloudpickle.unregister_pickle_by_value(here)


@pytest.fixture(scope="module")
def workers() -> Iterator[DaskWorkers]:
    with DaskWorkers.local(2) as found:
        yield found


def fits(learner: Any, isolation: Isolation, table: NDArray[Any] = TABLE) -> list[Any]:
    return list(fit_blocks(learner, table, blocks=BLOCKS, shared=SharedRandomness(1), isolation=isolation))


class Bad:
    """Fits, unless a record is large; a class of a test file, which no worker can import."""

    def __init__(self, how: str) -> None:
        self.how = how

    def fit(self, records: NDArray[Any], *, seed: int) -> Normal:
        del seed
        if records.max() > 100:
            match self.how:
                case "exit":
                    os._exit(3)
                case "sleep":
                    time.sleep(60)
                case "memory":
                    np.ones(1 << 28)
                case "raise":
                    raise SystemExit
        return Normal(float(records.mean()) + np.random.random(), 1.0)  # noqa: NPY002 - what others do


def test_laws_are_those_of_fits_here(workers: DaskWorkers) -> None:
    far = Isolation(kind="process", workers=workers)
    assert fits(GaussianLearner(), far) == fits(GaussianLearner(), Isolation())
    assert fits(Bad("raise"), far) == fits(Bad("raise"), Isolation(kind="process"))


@pytest.mark.parametrize("how", ["exit", "sleep", "memory", "raise"])
def test_a_fit_that_dies_by_its_own_data_is_its_blocks_abstention(workers: DaskWorkers, how: str) -> None:
    spoilt = TABLE.copy()
    spoilt[12] = 1e6
    far = Isolation(kind="process", workers=workers, seconds=2.0 if how == "sleep" else 60.0, memory=1 << 29)
    clean = fits(Bad(how), far)
    assert ABSTAIN not in clean
    assert fits(Bad(how), far, spoilt) == [clean[0], ABSTAIN, *clean[2:]]


def test_the_progress_counts_every_block(workers: DaskWorkers) -> None:
    told: list[tuple[int, int, str]] = []
    fit_blocks(
        GaussianLearner(),
        TABLE,
        blocks=BLOCKS,
        shared=SharedRandomness(1),
        isolation=Isolation(kind="process", workers=workers),
        progress=lambda *said: told.append(said),
    )
    assert told == [(done, 6, "fitting blocks") for done in range(1, 7)]


@final
class KillsItsWorker:
    """Ends the worker that fits it, the first time; then fits."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def fit(self, records: NDArray[Any], *, seed: int) -> Normal:
        if not self.note.exists():
            self.note.touch()
            os.kill(os.getppid(), 9)
            time.sleep(5)
        return GaussianLearner().fit(records, seed=seed)


def sampler(learner: Any, isolation: Isolation) -> PrivateSampler:
    return PrivateSampler(
        learner,
        epsilon=2,
        delta="1e-3",
        blocks=20,
        records=20,
        draws=8,
        isolation=isolation,
        coupling=None if isinstance(learner, GaussianLearner) else KEPT,
    )


KEPT = PrivateSampler(GaussianLearner(), epsilon=2, delta="1e-3", blocks=20, records=20, draws=8)._coupling_for(1)[0]


@pytest.mark.parametrize("killed", [False, True])
def test_a_release_does_not_depend_on_workers_nor_on_one_that_is_killed(tmp_path: Path, *, killed: bool) -> None:
    table = np.tile(np.random.default_rng(0).normal(size=50), 20)
    learner = KillsItsWorker(tmp_path / "note") if killed else GaussianLearner()
    (tmp_path / "note").touch()
    here = sampler(learner, Isolation()).release(
        table, shared=SharedRandomness(3), randomness=ReplayRandomness("workers")
    )
    with (
        DaskWorkers.local(2) as own,
        Ledger.create(tmp_path / "ledger.db", epsilon=10, delta="1e-2", who="a test") as ledger,
    ):
        far = sampler(learner, Isolation(kind="process", workers=own))
        far.rehearse(1000, columns=1)
        (tmp_path / "note").unlink()
        there = far.release(table, shared=SharedRandomness(3), randomness=ReplayRandomness("workers"), ledger=ledger)
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert np.array_equal(np.asarray(here.value), np.asarray(there.value))
    assert len(charges) == 1


@pytest.mark.nightly
def test_a_density_is_the_same_with_workers(workers: DaskWorkers) -> None:
    mixture = pytest.importorskip("sklearn.mixture").GaussianMixture(1)
    data = np.random.default_rng(2).normal(100.0, 2.0, size=(20_000, 1))
    density = PrivateDensity(mixture, epsilon=1, delta="1e-6", workers=workers, random_state=1).fit(data)
    assert abs(density.sample(1000).mean() - 100) < 1


def test_what_cannot_be_sent_or_reached_is_refused_before_anything_is_spent(workers: DaskWorkers) -> None:
    far = Isolation(kind="process", workers=workers)

    class Locked(Bad):
        def __init__(self) -> None:
            super().__init__("raise")
            self.lock = threading.Lock()

    with pytest.raises(InvalidParameter, match="cannot be sent"):
        PrivateSampler(Locked(), epsilon=1, delta="1e-3", blocks=50, records=2, coupling=KEPT, isolation=far).release(
            np.zeros(100)
        )
    with pytest.raises(InvalidParameter, match="cannot be read"):
        far.check(Unreadable())
    for kind, options in (("copy", {"workers": workers}), ("copy", {"memory": 1 << 30}), ("process", {"memory": 1})):
        with pytest.raises(InvalidParameter):
            Isolation(kind=kind, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="address"):
        DaskWorkers(scheduler=" ")
    address: Any = "tcp://here"
    with pytest.raises(InvalidParameter, match="workers must be"):
        PrivateDensity(None, epsilon=1, delta="1e-6", workers=address)._check_rest(named=False)


class Unreadable(Bad):
    def __init__(self) -> None:
        super().__init__("raise")

    def __reduce__(self) -> Any:
        return int, ("no number",)


@pytest.mark.nightly
def test_workers_that_are_lost_again_and_again_are_an_error() -> None:
    def ends_its_worker(given: bytes) -> bytes:  # inside, so that it travels: workers cannot import this file
        os._exit(len(given))

    with DaskWorkers.local(1) as own, pytest.raises(WorkersLost):
        list(own.answers(ends_its_worker, [b"x"]))
