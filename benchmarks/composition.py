"""Totals: what they are and how long they take, with dp-accounting measured in the same run if it is installed.

Run it in an environment that has accord and, for the ratios, dp-accounting::

    pip install dp-accounting
    python benchmarks/composition.py [--peer-online 1000]

Times are CPU times, the median of several runs. ``exact`` is the optimum at 60 digits, or the closed form.
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from typing import Any

from accord.accounting import GaussianLoss, LaplaceLoss, PrivacyAccountant, gaussian_composition
from accord.privacy import ApproxDP, PrivacyFilter, PureDP, heterogeneous_composition, optimal_composition

Run = Callable[[], Any]


def seconds(run: Run, *, repeats: int = 5) -> tuple[float, Any]:
    result, times = run(), []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return median(times), result


def total(what: Any, *, times: int, delta: str) -> float:
    accountant = PrivacyAccountant()
    accountant.charge(what, times=times)
    return float(accountant.total(delta=delta).epsilon)


def ours() -> dict[str, Run]:
    return {
        "1000 x (0.1, 1e-10) at 1e-6": lambda: float(
            optimal_composition(ApproxDP("0.1", "1e-10"), rounds=1000, delta="1e-6").epsilon
        ),
        "1000 x (0.1, 0) at 1e-6": lambda: float(optimal_composition(PureDP("0.1"), rounds=1000, delta="1e-6").epsilon),
        "1000 x (0.1, 0) at 1e-12": lambda: float(
            optimal_composition(PureDP("0.1"), rounds=1000, delta="1e-12").epsilon
        ),
        "1000 x (0.1, 0) at 1e-30": lambda: float(
            optimal_composition(PureDP("0.1"), rounds=1000, delta="1e-30").epsilon
        ),
        "1000 x Laplace(20) at 1e-6": lambda: total(LaplaceLoss("0.05"), times=1000, delta="1e-6"),
        "1000 x Laplace(20) at 1e-30": lambda: total(LaplaceLoss("0.05"), times=1000, delta="1e-30"),
        "1000 x Gaussian(50) at 1e-6": lambda: float(
            gaussian_composition([GaussianLoss(sigma=50)] * 1000, delta="1e-6").epsilon
        ),
        "1000 x Gaussian(50) at 1e-12": lambda: float(
            gaussian_composition([GaussianLoss(sigma=50)] * 1000, delta="1e-12").epsilon
        ),
    }


def peers() -> dict[str, Run]:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415
    except ImportError:
        return {}
    make: Any = privacy_loss_distribution

    def response(delta: float, at: float) -> Run:
        parameters = common.DifferentialPrivacyParameters(0.1, delta)
        return lambda: make.from_privacy_parameters(parameters).self_compose(1000).get_epsilon_for_delta(at)

    return {
        "1000 x (0.1, 1e-10) at 1e-6": response(1e-10, 1e-6),
        "1000 x (0.1, 0) at 1e-6": response(0, 1e-6),
        "1000 x (0.1, 0) at 1e-12": response(0, 1e-12),
        "1000 x (0.1, 0) at 1e-30": response(0, 1e-30),
        "1000 x Laplace(20) at 1e-6": lambda: (
            make.from_laplace_mechanism(20.0).self_compose(1000).get_epsilon_for_delta(1e-6)
        ),
        "1000 x Laplace(20) at 1e-30": lambda: (
            make.from_laplace_mechanism(20.0).self_compose(1000).get_epsilon_for_delta(1e-30)
        ),
        "1000 x Gaussian(50) at 1e-6": lambda: (
            make.from_gaussian_mechanism(50.0).self_compose(1000).get_epsilon_for_delta(1e-6)
        ),
        "1000 x Gaussian(50) at 1e-12": lambda: (
            make.from_gaussian_mechanism(50.0).self_compose(1000).get_epsilon_for_delta(1e-12)
        ),
    }


def table() -> None:
    theirs = peers()
    print(f"{'what':30} {'accord':>14} {'ms':>8} {'dp-accounting':>14} {'ms':>8} {'ratio':>7}  theirs - ours")
    for what, run in ours().items():
        spent, value = seconds(run)
        line = f"{what:30} {value:14.8f} {1000 * spent:8.2f}"
        if what in theirs:
            other, peer = seconds(theirs[what], repeats=3)
            line += f" {peer:14.8f} {1000 * other:8.1f} {other / spent:7.1f}  {peer - value:+.1e}"
        print(line)


def online(peer_charges: int) -> None:
    def run() -> tuple[float, float]:
        accountant = PrivacyAccountant()
        for i in range(1000):
            accountant.charge(LaplaceLoss(1 / (20 + Fraction(i, 10**5))))
            bound = accountant.bound(delta="1e-6")
        return float(bound.epsilon), float(accountant.total(delta="1e-6").epsilon)

    spent, (bound, exact) = seconds(run, repeats=3)
    print(f"\n1000 different Laplace charges, a bound after each, one total: {spent:.3f} s; {bound:.6f}, {exact:.6f}")
    try:
        from dp_accounting import dp_event, pld  # noqa: PLC0415
    except ImportError:
        return
    accountant: Any = pld.PLDAccountant()
    start = time.process_time()
    for i in range(peer_charges):
        accountant.compose(dp_event.LaplaceDpEvent(20.0 + i * 1e-5))
    spent = time.process_time() - start
    print(
        f"dp-accounting: {peer_charges} such charges, one question: {spent:.2f} s; {accountant.get_epsilon(1e-6):.6f}"
    )


def others() -> None:
    rounds = [PureDP(Fraction(1, 10 + i)) for i in range(1000)]
    spent, result = seconds(lambda: heterogeneous_composition(rounds, delta="1e-6"), repeats=3)
    print(f"\n1000 different epsilons, heterogeneous: {1000 * spent:.0f} ms; {float(result.epsilon):.6f}")

    def admit() -> int:
        budget = PrivacyFilter(ApproxDP(1, "1e-6"))
        for _ in range(10_000):
            budget.admit(PureDP("0.001"))
        return 10_000

    spent, count = seconds(admit, repeats=3)
    print(f"filter: {count / spent:,.0f} admissions a second")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer-online", type=int, default=200, help="charges that dp-accounting is timed on")
    table()
    online(parser.parse_args().peer_online)
    others()


if __name__ == "__main__":
    main()
