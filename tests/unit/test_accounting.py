"""The accountant: one by one equals all at once, mixtures, refusals, speed."""

import copy
import math
import pickle
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.accounting import (
    ConcentratedLoss,
    CurveLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    ExponentialLoss,
    GaussianLoss,
    GuaranteeLoss,
    LaplaceLoss,
    PrivacyAccountant,
    gaussian_composition,
    imported_loss,
    loss_of,
)
from accord.errors import InvalidParameter
from accord.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, Laplace, StableMode
from accord.privacy import ApproxDP, Neighbouring, NoGuarantee, PureDP, Sensitivity

ADD = Neighbouring.ADD_OR_REMOVE_ONE
KINDS: list[Any] = [
    PureDP("0.1"),
    ApproxDP("0.1", "1e-9"),
    LaplaceLoss("0.1"),
    ExponentialLoss("0.1"),
    DiscreteLaplaceLoss("0.1", 4),
    DiscreteLaplaceLoss("0.1", 10**6),
    GaussianLoss(sigma=20),
    DiscreteGaussianLoss(sigma=20),
    ConcentratedLoss("0.00125"),
    CurveLoss([-1, -0.1, 0, 0.1, 1], ["0.64", "0.11", "0.03", "0.001", "1e-9"]),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_n_times_one_is_n_copies_for_every_kind(kind: Any) -> None:
    one_by_one, at_once = PrivacyAccountant(), PrivacyAccountant()
    for _ in range(37):
        one_by_one.charge(kind)
    at_once.charge(kind, times=37)
    assert one_by_one.losses == at_once.losses
    table, other = one_by_one.table(delta="1e-6"), at_once.table(delta="1e-6")
    for bound, twin in zip(table.bounds, other.bounds, strict=True):
        assert bound.rule == twin.rule
        assert bound.total == twin.total
    assert one_by_one.bound(delta="1e-6") == at_once.bound(delta="1e-6")
    assert table.best.total.epsilon < 37 * 0.2


@given(st.permutations(KINDS[:7]), st.lists(st.integers(1, 9), min_size=7, max_size=7))
@settings(max_examples=8)
def test_order_does_not_matter(kinds: list[Any], counts: list[int]) -> None:
    order = {repr(kind): count for kind, count in zip(KINDS[:7], counts, strict=True)}
    first, second = PrivacyAccountant(), PrivacyAccountant()
    for kind in KINDS[:7]:
        first.charge(kind, times=order[repr(kind)])
    for kind in kinds:
        for _ in range(order[repr(kind)]):
            second.charge(kind)
    assert first.table(delta="1e-5") == second.table(delta="1e-5")
    assert first.bound(delta="1e-5") == second.bound(delta="1e-5")


@given(st.sampled_from(KINDS), st.integers(1, 40), st.sampled_from(KINDS))
@settings(max_examples=25)
def test_more_releases_cost_more_and_more_delta_costs_less(kind: Any, count: int, another: Any) -> None:
    accountant = PrivacyAccountant()
    accountant.charge(kind, times=count)
    few = accountant.total(delta="1e-5").epsilon
    assert accountant.total(delta="1e-4").epsilon <= few * (1 + 1e-9)
    assert few <= accountant.bound(delta="1e-5").epsilon
    accountant.charge(another)
    assert accountant.total(delta="1e-5").epsilon >= few * (1 - 1e-5)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=8, unique=True))
@settings(max_examples=15)
def test_E29_more_noise_is_cheaper(scales: list[int]) -> None:
    costs = []
    for scale in sorted(scales):
        accountant = PrivacyAccountant()
        accountant.charge(Laplace(sensitivity=1, epsilon=Fraction(1, scale)), times=20)
        costs.append(accountant.total(delta="1e-6").epsilon)
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)


def test_E26_entries_in_different_forms_have_one_total() -> None:
    accountant = PrivacyAccountant()
    accountant.charge(PureDP(1))
    accountant.charge(ApproxDP("0.5", "1e-6"))
    for total in (accountant.total(delta="1e-9"), accountant.bound(delta="1e-9")):
        assert isinstance(total, NoGuarantee)
        assert "1e-06, more than the 1e-09" in total.reason
    assert accountant.total(delta="1e-5").epsilon < Fraction(3, 2)
    accountant.charge(GaussianLoss(sigma=10), times=3)
    assert 0 < accountant.total(delta="1e-5").epsilon < 3
    assert isinstance(accountant.total(delta="1e-9"), NoGuarantee)


def test_charges_from_many_threads_are_all_counted() -> None:
    accountant, interval = PrivacyAccountant(), sys.getswitchinterval()
    accountant.charge(PureDP("0.001"))
    torn: list[Fraction] = []

    def charge() -> None:
        for _ in range(400):
            accountant.charge(PureDP("0.001"))

    def read() -> None:
        for _ in range(20):
            low = sum(accountant.losses.values())
            basic, moments = (Fraction(accountant.table(delta=0).bounds[i].total.epsilon) for i in (0, -2))
            high = sum(accountant.losses.values())
            torn.extend(found for found in (basic, moments) if not low <= found * 1000 <= high)

    threads = [threading.Thread(target=charge) for _ in range(8)] + [threading.Thread(target=read)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    at_once = PrivacyAccountant()
    at_once.charge(PureDP("0.001"), times=3201)
    assert torn == []
    assert accountant.losses == at_once.losses
    assert accountant.bound(delta="1e-6") == at_once.bound(delta="1e-6")
    assert accountant.total(delta=0).epsilon == Fraction("3.201")


class Interrupted:
    """A loss that is interrupted while its moments are computed."""

    neighbouring, unit, guarantee = Neighbouring.REPLACE_ONE, "record", PureDP(1)

    def moments(self, orders: Any) -> Any:
        raise KeyboardInterrupt

    def on_grid(self, step: float) -> Any:
        return LaplaceLoss(1).on_grid(step)


def test_a_charge_that_is_interrupted_leaves_no_trace() -> None:
    accountant = PrivacyAccountant()
    with pytest.raises(KeyboardInterrupt):
        accountant.charge(Interrupted())
    with pytest.raises(InvalidParameter, match="nothing has been charged"):
        accountant.bound(delta="1e-6")
    accountant.charge(LaplaceLoss(1, ADD))  # no relation was left behind either
    before = accountant.losses, accountant.table(delta="1e-6")
    with pytest.raises(KeyboardInterrupt):
        accountant.charge(Interrupted())
    assert (accountant.losses, accountant.table(delta="1e-6")) == before


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])  # noqa: S301
def test_a_copy_counts_for_itself(twin: Callable[[Any], Any]) -> None:
    accountant = PrivacyAccountant()
    accountant.charge(LaplaceLoss(1))
    other = twin(accountant)
    other.charge(LaplaceLoss(1))
    assert accountant.losses == {LaplaceLoss(1): 1}
    assert other.losses == {LaplaceLoss(1): 2}


def test_epsilons_above_1000_add_up() -> None:
    accountant = PrivacyAccountant()
    accountant.charge(PureDP(1001), times=2)
    accountant.charge(ApproxDP(10**9, "1e-9"))
    table = accountant.table(delta="1e-6")
    assert table.best.total.epsilon == 10**9 + 2002
    assert "above 1000" in table.bounds[-1].total.reason  # type: ignore[union-attr]
    accountant = PrivacyAccountant()
    accountant.charge(PureDP(1001), times=2)
    accountant.charge(LaplaceLoss(1))
    assert accountant.total(delta=0) == PureDP(2003)
    assert accountant.total(delta="1e-6").epsilon <= 2003


def test_a_million_rounds_are_counted_not_listed(work: Callable[[Callable[[], object]], int]) -> None:
    accountant = PrivacyAccountant()
    accountant.charge(PureDP("0.001"), times=10**6)
    accountant.charge(ApproxDP("0.001", "1e-15"), times=10**6)
    assert work(lambda: accountant.table(delta="1e-6")) < 30_000
    table = accountant.table(delta="1e-6")
    assert table.bounds[0].total == ApproxDP(2000, "1e-9")
    assert table.best.total.epsilon < 10


def test_a_gaussian_without_slack_has_no_total() -> None:
    accountant = PrivacyAccountant()
    accountant.charge(GaussianLoss(sigma=10))
    total = accountant.total(delta=0)
    assert isinstance(total, NoGuarantee)
    assert "without slack" in accountant.bound(delta=0).reason  # type: ignore[union-attr]


def test_E28_the_table_names_its_rules() -> None:
    accountant = PrivacyAccountant()
    accountant.charge(Laplace(sensitivity=1, epsilon="0.05"), times=1000)
    table = accountant.table(delta="1e-6")
    assert [bound.rule for bound in table.bounds] == [
        "basic", "advanced", "advanced, tight mean", "optimal", "moments", "privacy loss"
    ]  # fmt: skip
    assert table.best.rule == "privacy loss"


def test_E30_mixtures_are_refused() -> None:
    accountant = PrivacyAccountant()
    with pytest.raises(InvalidParameter, match="nothing has been charged"):
        accountant.total(delta="1e-6")
    accountant.charge(LaplaceLoss(1))
    before = accountant.losses
    for other in (LaplaceLoss(1, ADD), PureDP(1, ADD), GaussianLoss(sigma=1, neighbouring=ADD)):
        with pytest.raises(InvalidParameter, match="replacing a record is removing one"):
            accountant.charge(other)
    with pytest.raises(InvalidParameter, match="different units"):
        accountant.charge(StableMode(epsilon=1, delta="1e-6"))
    for times in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="times"):
            accountant.charge(LaplaceLoss(1), times=times)  # type: ignore[arg-type]
    for nothing in (1.0, None, "Laplace", object()):
        with pytest.raises(InvalidParameter, match="mechanism with a guarantee"):
            accountant.charge(nothing)
    assert accountant.losses == before


def test_mechanisms_have_their_losses() -> None:
    sensitivity = Sensitivity(2, ADD)
    laplace: Any = loss_of(Laplace(sensitivity=sensitivity, epsilon="0.5"))
    assert isinstance(laplace, LaplaceLoss)
    assert 0 < laplace.epsilon - Fraction(1, 2) < Fraction(1, 2**80)
    assert laplace.neighbouring is ADD
    assert loss_of(Laplace(sensitivity=0, epsilon="0.5")) == LaplaceLoss(0)
    assert loss_of(DiscreteLaplace(sensitivity=2, scale=8)) == DiscreteLaplaceLoss("0.25", 2)
    assert loss_of(DiscreteLaplace(sensitivity="1.5", scale=8)) == DiscreteLaplaceLoss("0.125", 1)
    assert loss_of(DiscreteLaplace(sensitivity="0.5", scale=8)) == LaplaceLoss(0)
    gaussian = DiscreteGaussian(sensitivity=1, sigma=5)
    assert loss_of(gaussian, dimension=1) == DiscreteGaussianLoss(sigma=5)
    assert loss_of(gaussian) == loss_of(gaussian, dimension=2) == ConcentratedLoss("0.02")
    assert loss_of(DiscreteGaussian(sensitivity="0.9", sigma=5)) == ConcentratedLoss(0)
    with pytest.raises(InvalidParameter, match="dimension"):
        loss_of(gaussian, dimension=0)
    assert loss_of(Exponential(sensitivity=1, epsilon=1)) == ExponentialLoss(1)
    assert loss_of(StableMode(epsilon=1, delta="1e-6")) == GuaranteeLoss(ApproxDP(1, "1e-6", unit="voter"))
    assert loss_of(PureDP(3)) == GuaranteeLoss(PureDP(3))


def test_a_laplace_loss_covers_what_its_mechanism_does_on_the_grid() -> None:
    """The mechanism's own law is discrete Laplace noise with at least 2^40 steps a sensitivity."""
    mechanism = Laplace(sensitivity=1, epsilon="0.7")
    steps = mechanism._steps_apart(3)
    assert steps >= 2**40
    own: Any = DiscreteLaplaceLoss("0.7", steps)._continuous
    claimed: Any = loss_of(mechanism)
    assert own.epsilon <= claimed.epsilon


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceLoss(-1),
        lambda: LaplaceLoss(1001),
        lambda: LaplaceLoss(math.nan),
        lambda: LaplaceLoss(1, "replace one"),  # type: ignore[arg-type]
        lambda: LaplaceLoss(1, unit=""),
        lambda: ExponentialLoss(-1),
        lambda: DiscreteLaplaceLoss(1, 0),
        lambda: GaussianLoss(sigma=0),
        lambda: GaussianLoss(sigma=1, sensitivity=-1),
        lambda: GaussianLoss(sigma="1e9"),
        lambda: DiscreteGaussianLoss(sigma=0),
        lambda: DiscreteGaussianLoss(sigma=1, shift=101),
        lambda: DiscreteGaussianLoss(sigma=10**6),
        lambda: GuaranteeLoss(PureDP(10**9 + 1)),
        lambda: GuaranteeLoss(PureDP(1001)).on_grid(0.1),
        lambda: GuaranteeLoss(1.0),  # type: ignore[arg-type]
        lambda: CurveLoss([0, 1], ["0.1"]),
        lambda: CurveLoss([1, 0], ["0.1", "0.2"]),
        lambda: CurveLoss([0, 1], ["0.1", "1.2"]),
        lambda: CurveLoss([0, 1], [1, 1]),
        lambda: CurveLoss([-1, 0], ["0.1", "0.1"]),
        lambda: gaussian_composition([], delta="1e-6"),
        lambda: gaussian_composition([GaussianLoss(sigma=1)], delta=0),
        lambda: gaussian_composition([GaussianLoss(sigma="0.01")] * 2, delta="1e-6"),
        lambda: imported_loss(object(), neighbouring=ADD),
    ],
)
def test_numbers_out_of_range_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_no_loss_costs_nothing() -> None:
    accountant = PrivacyAccountant()
    for nothing in (LaplaceLoss(0), ExponentialLoss(0), PureDP(0), GaussianLoss(sigma=1, sensitivity=0)):
        accountant.charge(nothing)
    assert float(accountant.total(delta="1e-6").epsilon) < 1e-9
    assert gaussian_composition([GaussianLoss(sigma=1, sensitivity=0)], delta="1e-6") == PureDP(0)


def test_E25_numbers_that_could_be_swapped_have_names() -> None:
    accountant: Any = PrivacyAccountant()
    accountant.charge(GaussianLoss(sigma=10))
    swapped: list[Callable[[], Any]] = [
        lambda: accountant.total("1e-6"),
        lambda: accountant.bound("1e-6"),
        lambda: accountant.table("1e-6"),
        lambda: accountant.charge(PureDP(1), 3),
        lambda: GaussianLoss(1, 10),  # type: ignore[call-arg]
        lambda: DiscreteGaussianLoss(20, 1),  # type: ignore[call-arg]
        lambda: gaussian_composition([GaussianLoss(sigma=1)], "1e-6"),  # type: ignore[call-arg]
    ]
    for call in swapped:
        with pytest.raises(TypeError, match="positional argument"):
            call()
    with pytest.raises(InvalidParameter, match="delta must be below 1"):
        ApproxDP("1e-6", 1)


# --- from dp-accounting -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distribution", "own"),
    [
        (peer.from_laplace_mechanism(20.0), LaplaceLoss("0.05")),
        (peer.from_gaussian_mechanism(50.0), GaussianLoss(sigma=50)),
        (peer.from_randomized_response(2 / (1 + math.exp(0.1)), 2), PureDP("0.1")),
    ],
)
def test_imported_losses_cost_a_little_more_than_our_own(distribution: Any, own: Any) -> None:
    first, second = PrivacyAccountant(), PrivacyAccountant()
    first.charge(imported_loss(distribution, neighbouring=Neighbouring.REPLACE_ONE), times=100)
    second.charge(own, times=100)
    pair = float(first.total(delta="1e-6").epsilon), float(second.total(delta="1e-6").epsilon)
    assert pair[1] * (1 - 1e-6) <= pair[0] <= pair[1] * 1.005


@pytest.mark.parametrize("odd", [math.nan, math.inf, -0.5, 1.5])
@pytest.mark.parametrize("everywhere", [True, False])
def test_B4_an_imported_delta_that_is_no_probability_is_refused(
    odd: float, *, everywhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = peer.from_laplace_mechanism(20.0)
    honest = distribution.get_delta_for_epsilon

    def reported(epsilons: Any) -> Any:
        deltas = np.array(honest(epsilons), dtype=float)
        return np.where((np.asarray(epsilons) > 0) & (np.asarray(epsilons) < 0.01) | everywhere, odd, deltas)

    monkeypatch.setattr(distribution, "get_delta_for_epsilon", reported)
    with pytest.raises(InvalidParameter, match="not from 0 to 1"):
        imported_loss(distribution, neighbouring=Neighbouring.REPLACE_ONE)


def test_an_imported_error_is_spent_at_every_release() -> None:
    loss = imported_loss(peer.from_laplace_mechanism(20.0), neighbouring=Neighbouring.REPLACE_ONE, claimed_error="1e-8")
    assert loss.guarantee.delta >= Fraction("1e-8")
    accountant = PrivacyAccountant()
    accountant.charge(loss, times=200)
    assert isinstance(accountant.total(delta="1e-6"), NoGuarantee)
    assert accountant.total(delta="1e-5").epsilon > 0


def test_we_agree_with_dp_accounting_where_it_can_be_trusted() -> None:
    ours = PrivacyAccountant()
    ours.charge(LaplaceLoss("0.1"), times=50)
    ours.charge(GaussianLoss(sigma=20), times=50)
    theirs = (
        peer.from_laplace_mechanism(10.0).self_compose(50).compose(peer.from_gaussian_mechanism(20.0).self_compose(50))
    )
    assert float(ours.total(delta="1e-6").epsilon) == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-5)


# --- how much work ----------------------------------------------------------------------------------------------------


def test_a_thousand_different_charges_with_a_question_after_each(work: Callable[[Callable[[], object]], int]) -> None:
    """Measured: 897 calls a charge, after 50 as after 1000; to begin anew each time would be hundreds of times that."""
    accountant = PrivacyAccountant()
    bounds = []

    def charge_and_ask() -> None:
        for i in range(1000):
            accountant.charge(LaplaceLoss(Fraction(1, 20 + i)))
            bounds.append(float(accountant.bound(delta="1e-6").epsilon))

    assert work(charge_and_ask) < 2_000_000
    assert bounds == sorted(bounds)
    total = float(accountant.total(delta="1e-6").epsilon)
    assert total <= bounds[-1] <= 1.1 * total
    assert np.all(np.diff(bounds) >= 0)
