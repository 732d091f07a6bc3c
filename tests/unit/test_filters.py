"""A budget for parameters chosen on the way: never above the cap, never dead, valid at every time."""

import copy
import math
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.accounting.filters import Clock, Spending
from accord.errors import BudgetExceeded, InvalidParameter
from accord.privacy import ApproxDP, Neighbouring, NoGuarantee, PrivacyFilter, PureDP

CAP = ApproxDP(1, "1e-6")


def admitted(budget: PrivacyFilter, each: PureDP | ApproxDP, *, most: int = 100_000) -> int:
    for count in range(most):
        try:
            budget.admit(each)
        except BudgetExceeded:
            return count
    return most


@pytest.mark.parametrize(("cap", "each", "rounds"), [
    (PureDP(1), PureDP("0.1"), 10),
    (CAP, ApproxDP("0.1", "1e-7"), 10),
    (CAP, ApproxDP("0.5", "5e-7"), 2),
    (CAP, ApproxDP("0.01", "1e-7"), 10),
    (ApproxDP(1, "0.5"), ApproxDP(1, "0.5"), 1),
])  # fmt: skip
def test_few_large_rounds_spend_the_whole_cap_by_the_sum(
    cap: PureDP | ApproxDP, each: PureDP | ApproxDP, rounds: int
) -> None:
    budget = PrivacyFilter(cap)
    assert admitted(budget, each) == rounds
    assert budget.spent.epsilon == rounds * each.epsilon
    assert budget.spent.delta == rounds * each.delta


@pytest.mark.parametrize(("epsilon", "slack"), [("0.001", None), ("0.0005", "1e-6"), ("0.002", "1e-7")])
def test_C4_many_small_rounds_reach_the_rate_of_whitehouse(epsilon: str, slack: str | None) -> None:
    """At least as many as ``sqrt(2 log(1 / delta') V) + V / 2 <= epsilon`` admits, far more than the sum."""
    budget = PrivacyFilter(CAP, slack=slack)
    reserve = 5e-7 if slack is None else float(slack)
    log = math.log(1 / reserve)
    squares = (math.sqrt(2 * log + 2) - math.sqrt(2 * log)) ** 2
    count = admitted(budget, PureDP(epsilon), most=200_000)
    assert count >= math.floor(squares / float(epsilon) ** 2 * (1 - 1e-9))
    assert count > 2 * 1 / float(epsilon)
    assert budget.spent.epsilon <= 1
    assert budget.spent.delta <= CAP.delta


def test_a_refused_request_changes_nothing_and_the_filter_lives() -> None:
    budget = PrivacyFilter(PureDP(2))
    budget.admit(PureDP(1))
    for _ in range(3):
        with pytest.raises(BudgetExceeded, match="at most epsilon 1 and delta 0") as caught:
            budget.admit(PureDP(10))
        assert caught.value.requested == PureDP(10)
        assert caught.value.spent == PureDP(1)
        assert caught.value.cap == PureDP(2)
        with pytest.raises(BudgetExceeded):
            budget.admit(ApproxDP("0.1", "1e-30"))
    budget.check(PureDP(1))
    assert budget.spent == PureDP(1)
    budget.admit(PureDP(1))
    assert budget.spent == PureDP(2)
    assert budget.remaining == PureDP(0)


def test_requests_that_are_no_guarantee_are_refused() -> None:
    budget = PrivacyFilter(CAP)
    with pytest.raises(InvalidParameter, match="must be a PureDP or an ApproxDP"):
        budget.admit(0.1)  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded, match="no finite epsilon: too many rounds"):
        budget.admit(NoGuarantee(delta=Fraction(0), reason="too many rounds"))
    with pytest.raises(InvalidParameter, match="replacing a record is removing one"):
        budget.admit(PureDP("0.1", Neighbouring.ADD_OR_REMOVE_ONE))
    with pytest.raises(InvalidParameter, match="different units"):
        budget.admit(PureDP("0.1", unit="person"))
    with pytest.raises(InvalidParameter, match="cap must be"):
        PrivacyFilter(1)  # type: ignore[arg-type]
    for slack in ("2e-6", -1, math.nan, "x"):
        with pytest.raises(InvalidParameter, match="slack"):
            PrivacyFilter(CAP, slack=slack)
    assert budget.spent == PureDP(0)


def test_a_filter_is_not_copied() -> None:
    budget = PrivacyFilter(CAP)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="second budget"):
            attempt(budget)
    assert repr(budget).startswith("PrivacyFilter(cap=ApproxDP(")


def test_a_filter_refuses_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = PrivacyFilter(PureDP(1))
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    for ask in (budget.admit, budget.check):
        with pytest.raises(InvalidParameter, match="made in another process: here it would be a second budget"):
            ask(PureDP(1))
    monkeypatch.undo()
    budget.admit(PureDP(1))
    assert budget.spent == PureDP(1)


FORKED = """
import os
from accord.errors import BudgetExceeded, InvalidParameter
from accord.privacy import PrivacyFilter, PureDP
budget = PrivacyFilter(PureDP(1))
child = os.fork()
try:
    budget.admit(PureDP(1))
    code = 0
except InvalidParameter:
    code = 3
if child == 0:
    os._exit(code)
print(code, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_forked_child_have_one_cap_together() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0", "3"]


def test_threads_together_never_overspend() -> None:
    budget = PrivacyFilter(PureDP(1))
    counts: list[int] = []

    def work() -> None:
        counts.append(admitted(budget, PureDP("0.01")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 100
    assert budget.spent == PureDP(1)


requests = st.builds(
    lambda e, d: ApproxDP(e, d) if d else PureDP(e),
    st.integers(0, 400).map(lambda n: Fraction(n * n, 10**5)),
    st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 10**9), Fraction(1, 10**7), Fraction(3, 10**7)]),
)
caps = st.sampled_from([PureDP(1), CAP, ApproxDP("0.3", "1e-5"), ApproxDP(5, "0.1")])


@given(caps, st.lists(requests, max_size=40), st.sampled_from([None, 0]))
@settings(max_examples=80)
def test_spent_grows_within_the_cap_and_what_remains_is_admitted(
    cap: PureDP | ApproxDP, sequence: list[Any], slack: int | None
) -> None:
    budget = PrivacyFilter(cap, slack=slack)
    total = PureDP(0)
    for request in sequence:
        before = budget.spent
        try:
            budget.admit(request)
        except BudgetExceeded:
            assert budget.spent == before
            assert request.epsilon > budget.remaining.epsilon or request.delta > budget.remaining.delta
            continue
        total = ApproxDP(total.epsilon + request.epsilon, total.delta + request.delta)  # type: ignore[assignment]
        assert before.epsilon <= budget.spent.epsilon <= min(cap.epsilon, total.epsilon)
        assert total.delta <= cap.delta
        assert budget.spent.delta <= cap.delta
        assert 0 <= budget.remaining.delta <= cap.delta - total.delta
    budget.admit(budget.remaining)
    assert budget.spent.epsilon <= cap.epsilon
    assert budget.spent.delta <= cap.delta


# --- the strongest adversary, by exact recursion ----------------------------------------------------------------------


def worst_delta(start: Spending, options: list[PureDP | ApproxDP], *, unit: Fraction, depth: int) -> float:
    """The largest delta at the cap's epsilon that an adaptive choice of randomised responses reaches, stopping at will.

    A round gives its input away with chance delta, otherwise it moves the loss by +-epsilon.
    """

    @cache
    def value(state: Spending, loss: int, left: int) -> float:
        best = max(0.0, -math.expm1(float(state.cap.epsilon - loss * unit)))
        if left == 0:
            return best
        for option in options:
            later = state.after(option)
            if later is None:
                continue
            step, up = int(option.epsilon / unit), 1 / (1 + math.exp(-float(option.epsilon)))
            moved = up * value(later, loss + step, left - 1) + (1 - up) * value(later, loss - step, left - 1)
            best = max(best, float(option.delta) + (1 - float(option.delta)) * moved)
        return best

    return value(start, 0, depth)


@pytest.mark.parametrize("reserve", [None, "0", "0.15", "0.3"])
@pytest.mark.parametrize("cap", ["0.5", "1"])
def test_no_adaptive_choice_goes_beyond_the_cap(cap: str, reserve: str | None) -> None:
    start = Spending(cap=ApproxDP(cap, "0.3"))
    if reserve == "0":
        start = Spending(cap=start.cap, undecided=False)
    elif reserve is not None:
        start = start.starting_clock(Fraction(reserve))
    unit = Fraction(1, 8)
    options: list[PureDP | ApproxDP] = [
        PureDP(unit), PureDP(2 * unit), PureDP(4 * unit), ApproxDP(unit, "0.1"), ApproxDP(0, "0.15")
    ]  # fmt: skip
    assert worst_delta(start, options, unit=unit, depth=9) <= 0.3 + 1e-12


def test_the_recursion_sees_a_filter_without_its_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Clock.start.__func__  # type: ignore[attr-defined]

    def mutant(cls: type[Clock], /, **numbers: Any) -> Clock:
        clock: Clock = real(cls, **numbers)
        return Clock(before=clock.before, reserve=clock.reserve, order=Fraction(1, 10), offset=Fraction(0))

    monkeypatch.setattr(Clock, "start", classmethod(mutant))
    unit = Fraction(1, 8)
    start = Spending(cap=ApproxDP("0.25", "0.01")).starting_clock(Fraction("0.01"))
    assert worst_delta(start, [PureDP(unit)], unit=unit, depth=12) > 0.01


# --- the odometer, at all times at once -------------------------------------------------------------------------------


def chance_of_ever_crossing(line: list[float], epsilon: float) -> float:
    """P[the summed loss of randomised responses is above ``line[n - 1]`` after n rounds, for some n], exactly."""
    rounds, up = len(line), 1 / (1 + math.exp(-epsilon))
    mass, crossed = np.zeros(2 * rounds + 3), 0.0
    mass[rounds + 1] = 1.0
    heights = (np.arange(mass.size) - rounds - 1) * epsilon
    for limit in line:
        mass = up * np.roll(mass, 1) + (1 - up) * np.roll(mass, -1)
        above = heights > limit + 1e-9
        crossed += float(mass[above].sum())
        mass[above] = 0
    return crossed


def test_spent_is_valid_at_all_times_at_once() -> None:
    epsilon, slack, rounds = 0.05, 0.1, 4000
    budget = PrivacyFilter(ApproxDP(12, "0.1"), slack="0.1")
    line = []
    for _ in range(rounds):
        budget.admit(PureDP(epsilon))
        line.append(float(budget.spent.epsilon))
    assert line == sorted(line)
    assert chance_of_ever_crossing(line, epsilon) <= slack
    # What is right for one n fixed in advance is wrong as an odometer: one waits for a lucky n.
    at_one_time = [
        n * epsilon * math.tanh(epsilon / 2) + epsilon * math.sqrt(2 * n * math.log(1 / slack))
        for n in range(1, rounds + 1)
    ]
    assert chance_of_ever_crossing(at_one_time, epsilon) > slack


def test_a_clock_that_starts_late_counts_what_was_before() -> None:
    budget = PrivacyFilter(CAP)
    budget.admit(ApproxDP("0.5", "2e-7"))
    count = admitted(budget, PureDP("0.0005"), most=50_000)
    log = math.log(1 / 4e-7)
    squares = (math.sqrt(2 * log + 1) - math.sqrt(2 * log)) ** 2
    assert count == pytest.approx(squares / 0.0005**2, rel=1e-3)
    assert budget.spent.delta == Fraction("6e-7")
    assert budget.remaining.delta == Fraction("4e-7")


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=10**4),
    st.sampled_from(["0.5", "1e-3", "1e-9", "1e-30"]),
)
@settings(max_examples=50)
def test_the_cost_bounds_the_log_moment_of_randomised_response(epsilon: Fraction, reserve: str) -> None:
    import mpmath as mp

    clock = Clock.start(before=Fraction(0), budget=Fraction(1), reserve=Fraction(reserve))
    with mp.workdps(80):
        e, order = (mp.mpf(x.numerator) / x.denominator for x in (epsilon, clock.order))
        moment = mp.log((mp.exp((order + 1) * e) + mp.exp(-order * e)) / (1 + mp.exp(e))) / order
        cost = clock.cost(epsilon)
        assert moment <= mp.mpf(cost.numerator) / cost.denominator
        offset = mp.mpf(clock.offset.numerator) / clock.offset.denominator
        assert offset >= -mp.log(mp.mpf(reserve)) / order


# E32 for preprocessing that takes a share of the budget belongs to planning and the jobs. Here: the filter's own share.
def test_E32_a_share_that_is_too_large_is_refused_and_one_that_is_not_used_costs_nothing() -> None:
    for slack in ("2e-6", "1.0", "-1e-9"):
        with pytest.raises(InvalidParameter, match="slack must be from 0 to the cap's delta"):
            PrivacyFilter(CAP, slack=slack)
    whole = PrivacyFilter(CAP, slack="1e-6")
    assert whole.spent == PureDP(0)
    whole.admit(PureDP(1))
    assert whole.spent == PureDP(1)
    with pytest.raises(BudgetExceeded, match="one more round may have at most"):
        whole.admit(ApproxDP(0, "1e-9"))
