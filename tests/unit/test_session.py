"""Sessions: adaptivity, order of charge and look, failures, and never the data in an object."""

import contextlib
import copy
import gc
import io
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from accord.accounting.filters import PrivacyFilter
from accord.core import VerdictWarning
from accord.errors import AccordError, BudgetExceeded, InvalidParameter, LedgerError
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Laplace, StableMode
from accord.privacy import AdaptiveSession, ApproxDP, BudgetLedger, NoAnswer, PureDP, Release, best_composition

CANARY = "CANARY7301"
HALF = PureDP("0.5")
COUNT = DiscreteLaplace(sensitivity=1, scale=4)  # epsilon 1/4


@dataclass
class Steps:
    """A ledger and mechanism that write down what happened, in order."""

    log: list[str] = field(default_factory=list)
    refuse: bool = False
    deaf: bool = False

    def charge(self, guarantee: PureDP | ApproxDP, *, what: str) -> int:
        if self.refuse:
            raise BudgetExceeded("the ledger's cap", requested=guarantee, spent=None, cap=None)
        self.log.append(f"charge {what} {float(guarantee.epsilon)}")
        return len(self.log)

    def confirm(self, charge: int, /) -> None:
        if self.deaf:
            raise LedgerError("disk full")
        self.log.append(f"confirm {charge}")


@dataclass(frozen=True)
class Talkative:
    """Says when it runs; may raise, or release under another guarantee."""

    steps: Steps
    guarantee: PureDP | ApproxDP = HALF
    fails: bool = False
    really: PureDP | ApproxDP | None = None

    def release(self, value: Any) -> Any:
        self.steps.log.append("release")
        if self.fails:
            raise ZeroDivisionError("inside")
        return Release(value, self.really) if self.really else value


def looking(steps: Steps) -> Callable[[Any], int]:
    def query(data: Any) -> int:
        steps.log.append("look")
        return len(data)

    return query


def test_a_round_may_depend_on_what_came_out_before() -> None:
    session = AdaptiveSession(list(range(100)), cap=PureDP(1))
    first: Any = session.release(COUNT, lambda data: sum(x < 50 for x in data)).value
    edge = 50 + first % 7
    second = session.release(Laplace(sensitivity=1, epsilon="0.75"), lambda data: sum(x < edge for x in data))
    assert isinstance(second.value, float)
    assert session.spent == PureDP(1)
    assert [round_.number for round_ in session.transcript] == [1, 2]
    assert [round_.what for round_ in session.transcript] == ["DiscreteLaplace", "Laplace"]
    assert session.transcript[0].release == Release(first, PureDP("0.25"))
    assert session.remaining == PureDP(0)


def test_the_charge_is_made_before_the_look_and_confirmed_after() -> None:
    steps = Steps()
    session = AdaptiveSession([1, 2], cap=PureDP(1), ledger=steps)
    assert session.release(Talkative(steps), looking(steps), what="rows") == Release(2, PureDP("0.5"))
    assert steps.log == ["charge rows 0.5", "look", "release", "confirm 1"]


def test_a_refused_request_changes_nothing_and_the_session_lives() -> None:
    steps = Steps()
    session = AdaptiveSession([1, 2], cap=PureDP(1), ledger=steps)
    session.release(Talkative(steps), looking(steps))
    before = list(steps.log)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            session.release(Talkative(steps, guarantee=PureDP(10)), looking(steps))
    assert steps.log == before
    assert session.spent == PureDP("0.5")
    assert len(session.transcript) == 1
    session.release(Talkative(steps), looking(steps))
    assert session.spent == PureDP(1)


def test_a_refusal_of_the_ledger_changes_nothing() -> None:
    steps = Steps(refuse=True)
    session = AdaptiveSession([1], cap=PureDP(1), ledger=steps)
    with pytest.raises(BudgetExceeded, match="the ledger's cap"):
        session.release(Talkative(steps), looking(steps))
    assert steps.log == []
    assert session.spent == PureDP(0)
    assert session.transcript == ()


@pytest.mark.parametrize("where", ["query", "mechanism"])
def test_E33_what_raises_keeps_its_charge(where: str) -> None:
    steps = Steps()
    session = AdaptiveSession([1, 2], cap=PureDP(1), ledger=steps)

    def bad(data: Any) -> int:
        raise KeyError(CANARY)

    with pytest.raises((KeyError, ZeroDivisionError)):
        session.release(
            Talkative(steps, fails=where == "mechanism"), bad if where == "query" else looking(steps), what="try"
        )
    assert session.spent == PureDP("0.5")
    assert "confirm 1" not in steps.log
    (failed,) = session.transcript
    assert failed.release is None
    assert CANARY not in repr(session.transcript)
    session.release(Talkative(steps), looking(steps), what="try")  # the second try is charged again
    assert session.spent == PureDP(1)
    assert [line for line in steps.log if line.startswith("charge")] == ["charge try 0.5"] * 2


def test_a_value_that_cannot_be_confirmed_stands_with_a_warning() -> None:
    steps = Steps(deaf=True)
    session = AdaptiveSession([1], cap=PureDP(1), ledger=steps)
    with pytest.warns(VerdictWarning, match="charge 1 is spent but could not be confirmed: disk full"):
        assert session.release(Talkative(steps), looking(steps)).value == 1


def test_an_output_under_less_than_was_stated_is_withheld() -> None:
    steps = Steps()
    session = AdaptiveSession([1], cap=ApproxDP(2, "0.1"))
    for really in (PureDP(1), ApproxDP("0.5", "0.1"), PureDP("0.5", unit="person")):
        with pytest.raises(InvalidParameter, match="withheld, its charge is kept"):
            session.release(Talkative(steps, really=really), looking(steps))
    assert session.spent.epsilon == Fraction(3, 2)
    assert session.release(Talkative(steps, really=PureDP("0.1")), looking(steps)).guarantee == PureDP("0.5")


def test_mechanisms_of_other_shapes() -> None:
    @dataclass(frozen=True)
    class Chooser:
        guarantee: PureDP = HALF

        def select(self, scores: Any) -> Release[int]:
            return Release(max(range(len(scores)), key=scores.__getitem__), self.guarantee)

    session = AdaptiveSession([3, 9, 4], cap=ApproxDP(10, "1e-3"))
    assert session.release(Chooser(), lambda data: data).value == 1
    noisy = session.release(DiscreteGaussian(sensitivity=1, sigma=5), len, delta="1e-6")
    assert isinstance(noisy.value, int)
    assert noisy.guarantee.delta == Fraction("1e-6")
    several = session.release(DiscreteGaussian(sensitivity=1, sigma=5), list, delta="1e-6")
    assert several.value.shape == (3,)  # type: ignore[union-attr]
    session.release(DiscreteGaussian(sensitivity=1, sigma=5), len, delta="1e-6", dimension=1)
    with pytest.raises(InvalidParameter, match="weaker guarantee"):  # the curve of one integer, for three
        session.release(DiscreteGaussian(sensitivity=1, sigma=5), list, delta="1e-6", dimension=1)
    with pytest.raises(InvalidParameter, match="dimension is for"):
        session.release(COUNT, len, dimension=1)
    with pytest.raises(InvalidParameter, match="give delta="):
        session.release(DiscreteGaussian(sensitivity=1, sigma=5), len)
    with pytest.raises(InvalidParameter, match="leave delta out"):
        session.release(COUNT, len, delta="1e-6")
    for wrong in (object(), 7, None):
        with pytest.raises(InvalidParameter, match="mechanism has no guarantee"):
            session.release(wrong, len)
    with pytest.raises(InvalidParameter, match="query must be a function"):
        session.release(COUNT, 7)  # type: ignore[arg-type]


def test_a_vote_counts_for_a_unit_only_if_the_caller_claims_it() -> None:
    session = AdaptiveSession(["a"] * 60, cap=ApproxDP(2, "1e-5"))
    mode = StableMode(epsilon=1, delta="1e-6")
    with pytest.raises(InvalidParameter, match="different units of privacy \\(record, voter\\)"):
        session.release(mode, lambda data: data)
    with pytest.raises(InvalidParameter, match="unit is 'voter', not 'person'"):
        session.release(mode, lambda data: data, claimed_unit="person")
    released = session.release(mode, lambda data: data, claimed_unit="voter")
    assert released.value == "a"
    assert released.guarantee == ApproxDP(1, "1e-6")
    assert session.spent == ApproxDP(1, "1e-6")
    nothing = session.release(mode, lambda data: range(len(data)), claimed_unit="voter")
    assert nothing.value is NoAnswer
    assert session.spent == ApproxDP(2, "2e-6")  # no answer is spent all the same


# --- rounds fixed in advance ------------------------------------------------------------------------------------------


def test_C3_a_plan_costs_its_composition_at_once() -> None:
    steps = Steps()
    plan = [PureDP("0.1")] * 100
    session = AdaptiveSession([1], cap=ApproxDP(5, "1e-6"), planned=plan, ledger=steps)
    assert session.spent == best_composition(plan, delta="1e-6")
    for number in range(100):
        session.release(Talkative(steps, guarantee=PureDP("0.1" if number % 2 else "0.05")), looking(steps))
    assert session.spent == best_composition(plan, delta="1e-6")
    assert [line for line in steps.log if "c" in line.split()[0]] == [
        f"charge a plan of 100 rounds {float(session.spent.epsilon)}",
        "confirm 1",
    ]
    with pytest.raises(BudgetExceeded):
        session.release(Talkative(steps, guarantee=PureDP("0.5")), looking(steps))
    session.release(Talkative(steps, guarantee=PureDP("0.1")), looking(steps))  # beyond the plan: by the filter
    assert len(session.transcript) == 101


def test_a_planned_round_may_have_less_but_not_more() -> None:
    steps = Steps()
    session = AdaptiveSession([1], cap=PureDP(1), planned=[PureDP("0.5"), PureDP("0.25")])
    assert session.spent == PureDP("0.75")
    with pytest.raises(InvalidParameter, match=r"planned with epsilon 0\.5 and delta 0: it may have less"):
        session.release(Talkative(steps, guarantee=PureDP("0.6")), looking(steps))
    assert steps.log == []
    session.release(Talkative(steps, guarantee=PureDP("0.3")), looking(steps))
    assert session.spent == PureDP("0.75")
    with pytest.raises(BudgetExceeded):
        AdaptiveSession([1], cap=PureDP(1), planned=[PureDP("0.5")] * 3)
    with pytest.raises(BudgetExceeded, match="no finite epsilon"):
        AdaptiveSession([1], cap=ApproxDP(1, "1e-6"), planned=[ApproxDP("0.1", "1e-6")] * 2)


# --- never the data ---------------------------------------------------------------------------------------------------


def test_the_data_are_in_no_repr_and_no_pickle() -> None:
    session = AdaptiveSession([CANARY] * 3, cap=PureDP(1))
    session.release(COUNT, len)
    for text in (repr(session), str(session), f"{session}", repr(session.transcript)):
        assert CANARY not in text
    for attempt in (
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda it: pickle.Pickler(io.BytesIO(), 0).dump(it),
        lambda it: pickle.dumps({"deep": [it]}),
        lambda it: it.__getstate__(),
    ):
        with pytest.raises(TypeError, match="cannot be copied or pickled") as caught:
            attempt(session)
        assert CANARY not in str(caught.value)
    assert not hasattr(session, "__dict__")
    assert CANARY.encode() not in pickle.dumps(session.transcript)


def test_errors_of_a_session_hold_no_data() -> None:
    session = AdaptiveSession([CANARY], cap=PureDP("0.1"))
    with pytest.raises(BudgetExceeded) as caught:
        session.release(COUNT, len)
    assert CANARY not in str(caught.value)
    assert session not in gc.get_referents(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_session_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AdaptiveSession([1], cap=PureDP(1))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidParameter, match="would be spent twice"):
        session.release(COUNT, len)
    monkeypatch.undo()
    assert session.release(COUNT, len).guarantee == PureDP("0.25")


def test_a_query_may_ask_the_session_itself() -> None:
    session = AdaptiveSession([1, 2, 3], cap=PureDP(1))

    def query(data: list[int]) -> int:
        inner: Any = session.release(COUNT, len).value
        return len(data) + int(inner % 2)

    outer = session.release(COUNT, query)
    assert isinstance(outer.value, int)
    assert session.spent == PureDP("0.5")
    assert [round_.number for round_ in session.transcript] == [1, 2]
    assert all(round_.release for round_ in session.transcript)


def test_the_protocol_is_met_by_the_ledger_of_these_tests() -> None:
    ledger: BudgetLedger = Steps()
    assert ledger.charge(PureDP(1), what="x") == 1


# --- mutants ----------------------------------------------------------------------------------------------------------


def keeps_its_order() -> bool:
    """Whether refused requests look at nothing and failures stay charged."""
    steps = Steps()
    session = AdaptiveSession([1], cap=PureDP(1))
    with contextlib.suppress(AccordError):
        session.release(Talkative(steps, guarantee=PureDP(2)), looking(steps))
    looked = "look" in steps.log
    with contextlib.suppress(ZeroDivisionError):
        session.release(Talkative(steps, fails=True), looking(steps))
    return not looked and session.spent == PureDP("0.5")


def test_a_filter_that_charges_after_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keeps_its_order()
    spend = AdaptiveSession._spend
    monkeypatch.setattr(AdaptiveSession, "_admit", lambda self, stated, label: (self, stated, label))
    monkeypatch.setattr(AdaptiveSession, "_confirm", lambda self, late: spend(late[0], late[1], what=late[2]))
    assert not keeps_its_order()


def test_a_filter_that_only_checks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivacyFilter, "admit", PrivacyFilter.check)
    assert not keeps_its_order()
