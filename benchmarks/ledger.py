"""Durable charges a second: beside the bare disk in the same run, in memory, and from eight processes at once.

A charge is not done before its entry is on the disk, so one caller cannot be faster than one write-through
(``fdatasync``) after the other, which is measured here as well. The aim is 300 a second on one core.

    python benchmarks/ledger.py [--folder DIR] [--charges 1000] [--postgres URL]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from accord.ledger import Ledger, verify_ledger
from accord.privacy import ApproxDP

AIM = 300
COST = ApproxDP("0.01", "1e-12")
WORKER = """
import sys
from accord.errors import BudgetExceeded
from accord.ledger import Ledger
from accord.privacy import ApproxDP

done = 0
with Ledger(sys.argv[1]) as ledger:
    while True:
        try:
            ledger.charge(ApproxDP("0.01", "1e-12"), what="benchmark")
        except BudgetExceeded:
            break
        done += 1
print(done)
"""


def rate(action: Callable[[], Any], *, times: int) -> float:
    """Calls a second: the median of five runs."""
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(times // 5):
            action()
        rates.append(times // 5 / (time.perf_counter() - start))
    return median(rates)


def bare_disk(folder: Path, *, times: int) -> float:
    """Write-throughs of one page a second, over a file that has its size already."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        page = bytes(4096)
        file.write(page * 200)
        file.flush()
        os.fsync(file.fileno())
        count = iter(range(10**9))

        def write() -> None:
            os.pwrite(file.fileno(), page, 4096 * (next(count) % 200))
            (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(file.fileno())

        return rate(write, times=times)


@contextmanager
def fresh(folder: Path, *, epsilon: Any = 1000) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside) / "x.ledger"
        Ledger.create(path, epsilon=epsilon, delta="1e-6").close()
        yield path


def one_process(where: str | Path, *, charges: int) -> dict[str, float]:
    with Ledger(where) as ledger:
        alone = rate(lambda: ledger.charge(COST, what="benchmark"), times=charges)
        cycles = rate(lambda: ledger.confirm(ledger.charge(COST, what="benchmark")), times=charges // 2)
        reads = rate(lambda: ledger.spent, times=charges)
    start = time.perf_counter()
    found = verify_ledger(where)
    assert found.holds
    return {
        "charges a second": alone,
        "charge + confirm a second": cycles,
        "totals read a second": reads,
        "entries verified a second": found.entries / (time.perf_counter() - start),
    }


def many_processes(folder: Path, *, processes: int, charges: int) -> float:
    with fresh(folder, epsilon=COST.epsilon * charges) as path:
        start = time.perf_counter()
        crew = [
            subprocess.Popen([sys.executable, "-c", WORKER, str(path)], stdout=subprocess.PIPE, text=True)  # noqa: S603
            for _ in range(processes)
        ]
        done = sum(int(worker.communicate()[0]) for worker in crew)
        elapsed = time.perf_counter() - start
        assert done == charges
        with Ledger(path) as ledger:
            assert ledger.spent.epsilon == ledger.cap.epsilon
            assert ledger.verify().holds
        return done / elapsed


def print_figures(title: str, figures: dict[str, float]) -> None:
    print(title)
    for name, value in figures.items():
        print(f"  {name:<28}{value:>12,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to measure")
    parser.add_argument("--charges", type=int, default=1000)
    parser.add_argument("--postgres", help="URL of a database without a ledger; it is left with one")
    options = parser.parse_args()

    before = bare_disk(options.folder, times=options.charges)
    with fresh(options.folder) as path:
        figures = one_process(path, charges=options.charges)
    disk = median([before, bare_disk(options.folder, times=options.charges)])
    print_figures(f"one process, {options.folder}", {"bare fdatasync a second": disk, **figures})
    ratio = figures["charges a second"] / disk
    verdict = "reached" if figures["charges a second"] >= AIM else "missed"
    print(f"  ratio of charges to bare writes {ratio:.2f}; aim of {AIM} a second: {verdict}")

    memory = Path("/dev/shm")  # noqa: S108 - the point is a file system without a disk
    if memory.is_dir():
        with fresh(memory) as path:
            print_figures("one process, in memory (the cost of the code alone)", one_process(path, charges=2000))

    print_figures(
        f"eight processes, {options.folder}, until the cap and not over it (starting them included)",
        {"charges a second": many_processes(options.folder, processes=8, charges=options.charges)},
    )
    if options.postgres:
        Ledger.create(options.postgres, epsilon=1000, delta="1e-6").close()
        print_figures("one process, PostgreSQL", one_process(options.postgres, charges=options.charges))


if __name__ == "__main__":
    main()
