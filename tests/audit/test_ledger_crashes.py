"""kill -9 at random moments: never a release without its charge, never over the cap, and the chain verifies."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accord.couplings import NormalLattice
from accord.distributions import Distribution
from accord.errors import BudgetExceeded
from accord.learners import GaussianLearner
from accord.learning import PrivateSampler
from accord.ledger import Ledger, spending, verify_ledger
from accord.privacy import ApproxDP, PureDP

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # of Python 3.12, beside threads
]

COST = PureDP("0.01")
Work = Callable[[Ledger, "Releases", int], None]


class Releases:
    """What left the building: one line a release, whatever becomes of the process that wrote it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def write(self, cycle: int) -> None:
        os.write(self.file, f"{os.getpid()}/{cycle}\n".encode())

    def read(self) -> set[str]:
        return set(self.path.read_text(encoding="ascii").split())


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[Releases]:
    made = Releases(tmp_path / "releases")
    yield made
    os.close(made.file)


def proper(ledger: Ledger, releases: Releases, cycle: int) -> None:
    with spending(ledger, COST, what=f"{os.getpid()}/{cycle}"):
        releases.write(cycle)


def release_first(ledger: Ledger, releases: Releases, cycle: int) -> None:
    """Broken on purpose: the value is out before its charge is durable."""
    releases.write(cycle)
    ledger.confirm(ledger.charge(COST, what=f"{os.getpid()}/{cycle}"))


def worker(path: Path, releases: Releases, work: Work) -> int:
    """Start a process that charges and releases until it is killed or the budget is gone."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with Ledger(path) as ledger:
            for cycle in range(10**9):
                work(ledger, releases, cycle)
    except BudgetExceeded:
        status = 0
    finally:
        os._exit(status)


def storm(path: Path, releases: Releases, *, kills: int, work: Work, processes: int = 4) -> None:
    """Keep several workers going and kill one of them again and again, at random moments."""
    moments = np.random.default_rng()
    crew = [worker(path, releases, work) for _ in range(processes)]
    for _ in range(kills):
        time.sleep(moments.exponential(0.02))
        victim = crew.pop(int(moments.integers(len(crew))))
        os.kill(victim, signal.SIGKILL)
        ended = os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1])
        assert ended in {0, -signal.SIGKILL}
        crew.append(worker(path, releases, work))
    for left in crew:
        os.kill(left, signal.SIGKILL)
        os.waitpid(left, 0)


def uncharged(path: Path, releases: Releases) -> set[str]:
    """Releases without a charge; the ledger must verify, be within its cap and be usable."""
    assert verify_ledger(path).holds
    with Ledger(path) as ledger:
        charges = Counter(entry.what for entry in ledger.entries() if entry.kind == "charge")
        assert ledger.spent.epsilon == charges.total() * COST.epsilon <= ledger.cap.epsilon
        assert max(charges.values(), default=0) <= 1
        return releases.read() - charges.keys()


@pytest.mark.parametrize(
    ("kills", "cap"),
    [
        (20, 10_000),
        (20, Fraction(3, 2)),
        pytest.param(200, 10_000, marks=pytest.mark.nightly),
        pytest.param(200, 15, marks=pytest.mark.nightly),
    ],
)
def test_no_release_without_its_charge(tmp_path: Path, releases: Releases, kills: int, cap: Any) -> None:
    path = tmp_path / "x"
    Ledger.create(path, epsilon=cap, delta=0).close()
    storm(path, releases, kills=kills, work=proper)
    assert len(releases.read()) >= kills
    assert uncharged(path, releases) == set()
    with Ledger(path) as ledger:  # the survivors leave a ledger that works, up to exactly its cap
        if ledger.remaining.epsilon < 100:
            ledger.charge(PureDP(ledger.remaining.epsilon), what="the rest")
            with pytest.raises(BudgetExceeded):
                ledger.charge(COST, what="one more")


def test_a_release_before_its_charge_would_be_caught(tmp_path: Path, releases: Releases) -> None:
    path = tmp_path / "x"
    Ledger.create(path, epsilon=10_000, delta=0).close()
    storm(path, releases, kills=40, work=release_first)
    assert uncharged(path, releases) != set()


def test_the_file_alone_keeps_what_was_released_before_a_kill(tmp_path: Path, releases: Releases) -> None:
    path = tmp_path / "x"
    Ledger.create(path, epsilon=10_000, delta=0).close()
    child = worker(path, releases, proper)
    while len(releases.read()) < 20:
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    path.rename(tmp_path / "moved")  # without its log
    assert uncharged(tmp_path / "moved", releases) == set()


class Witness:
    """A learner that leaves a line when its first fit to these data begins, and none for tables that are made up."""

    def __init__(self, releases: Releases, cycle: int, data: Any) -> None:
        self.releases, self.cycle, self.data = releases, cycle, data

    def fit(self, records: Any, *, seed: int) -> Distribution:
        if np.isin(records, self.data).any():
            self.releases.write(self.cycle)
        return GaussianLearner().fit(records, seed=seed)

    def __deepcopy__(self, memo: dict) -> "Witness":
        return self


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.nightly)])
def test_no_fit_of_a_private_sampler_without_its_charge(tmp_path: Path, releases: Releases, kills: int) -> None:
    path = tmp_path / "x"
    Ledger.create(path, epsilon=10_000, delta="0.1").close()
    data = np.random.default_rng(1).normal(size=(1000, 1))

    def release(_: Ledger, releases: Releases, cycle: int) -> None:
        learner = Witness(releases, cycle, data)
        sampler = PrivateSampler(
            learner, epsilon=1, delta="1e-6", blocks=50, records=12, draws=1, coupling=NormalLattice(dimension=1)
        )
        with Ledger(path, who=f"{os.getpid()}") as own:
            sampler.release(data, ledger=own)

    storm(path, releases, kills=kills, work=release, processes=2)
    begun = Counter(line.split("/")[0] for line in releases.read())
    assert begun
    assert verify_ledger(path).holds
    with Ledger(path) as ledger:
        charges = Counter(entry.who for entry in ledger.entries() if entry.kind == "charge")
        assert ledger.spent == ApproxDP(charges.total(), Fraction(charges.total(), 10**6))
    assert all(number <= charges[who] for who, number in begun.items())
