"""Numerical totals against exact ones: closed curves, convolutions in 60 digits, normal tails, float libraries."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer

from accord.accounting import (
    CurveLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    ExponentialLoss,
    GaussianLoss,
    GuaranteeLoss,
    LaplaceLoss,
    PrivacyAccountant,
    PrivacyLoss,
    gaussian_composition,
    imported_loss,
    numerical,
)
from accord.accounting.accountant import ORDERS, log_share
from accord.accounting.composition import upper
from accord.accounting.gaussian import gaussian_delta, tail_bounds
from accord.accounting.losses import GridLaw
from accord.accounting.numerical import compose, numerical_epsilon, tilt
from accord.errors import InvalidParameter
from accord.noise.discrete_gaussian import zcdp_delta
from accord.privacy import Neighbouring, PureDP, optimal_composition

Atoms = dict[Any, Any]


def exact(value: Any) -> mp.mpf:
    fraction = Fraction(value)
    return mp.mpf(fraction.numerator) / fraction.denominator


def laplace(e: Any, t: Any) -> Any:
    return 1 - mp.exp((t - e) / 2) if -e <= t <= e else max(mp.mpf(0), 1 - mp.exp(t))


def exponential(e: Any, t: Any) -> Any:
    return (1 - mp.exp((t - e) / 2)) ** 2 / (1 - mp.exp(-e)) if -e <= t <= e else max(mp.mpf(0), 1 - mp.exp(t))


def response(e: Any, t: Any) -> Any:
    return atoms_delta({e: 1 / (1 + mp.exp(-e)), -e: 1 / (1 + mp.exp(e))}, t)


def gaussian(m: Any, t: Any) -> Any:
    return mp.ncdf(m / 2 - t / m) - mp.exp(t) * mp.ncdf(-m / 2 - t / m)


def atoms_delta(atoms: Atoms, t: Any) -> Any:
    return mp.fsum(mass * max(mp.mpf(0), 1 - mp.exp(t - loss)) for loss, mass in atoms.items())


def steps_of(epsilon: Fraction, steps: int) -> Atoms:
    """Loss index (steps - 2 x) to mass, for discrete Laplace noise."""
    q = mp.exp(-exact(epsilon) / steps)
    masses = {steps - 2 * x: (1 - q) * q**x for x in range(1, steps)}
    return {i: mass / (1 + q) for i, mass in {steps: mp.mpf(1), **masses, -steps: q**steps}.items()}


def discrete_laplace(e: Any, steps: int, t: Any) -> Any:
    return atoms_delta({i * exact(e) / steps: mass for i, mass in steps_of(Fraction(e), steps).items()}, t)


def discrete_gaussian(sigma: int, shift: int, t: Any) -> Any:
    weights = {x: mp.exp(-mp.mpf(x * x) / (2 * sigma**2)) for x in range(-40 * sigma, 40 * sigma + 1)}
    total = mp.fsum(weights.values())
    return atoms_delta(
        {mp.mpf(shift * shift - 2 * shift * x) / (2 * sigma**2): w / total for x, w in weights.items()}, t
    )


ONE = [
    (GuaranteeLoss(PureDP("0.7")), lambda t: response(exact("0.7"), t)),
    (LaplaceLoss("0.7"), lambda t: laplace(exact("0.7"), t)),
    (LaplaceLoss(9), lambda t: laplace(mp.mpf(9), t)),
    (ExponentialLoss("0.7"), lambda t: exponential(exact("0.7"), t)),
    (DiscreteLaplaceLoss("0.7", 1), lambda t: discrete_laplace("0.7", 1, t)),
    (DiscreteLaplaceLoss("0.7", 5), lambda t: discrete_laplace("0.7", 5, t)),
    (DiscreteGaussianLoss(sigma=3, shift=2), lambda t: discrete_gaussian(3, 2, t)),
    (GaussianLoss(sigma=2), lambda t: gaussian(mp.mpf(1) / 2, t)),
    (GaussianLoss(sigma="0.2"), lambda t: gaussian(mp.mpf(5), t)),
]


@pytest.mark.parametrize(("loss", "curve"), ONE, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("left", [0.2, 1e-3, 1e-9, 1e-30, 1e-100])
def test_C4_one_release_is_above_its_curve_and_close(loss: Any, curve: Callable[[Any], Any], left: float) -> None:
    accountant = PrivacyAccountant()
    accountant.charge(loss)
    guess, order = accountant._counted.by_moments(left)
    with mp.workdps(150):
        found = numerical_epsilon({loss: 1}, left=left, order=order, guess=guess)
        assert curve(exact(found)) <= exact(left)
        assert curve(exact(guess)) <= exact(left)
        if found > 0:
            assert curve(exact(found) * (1 - mp.mpf("2e-3")) - mp.mpf("2e-5")) > exact(left)


@pytest.mark.parametrize(("loss", "curve"), ONE, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("order", [1e-3, 1.0, 30.0, 1e4, 1e6])
def test_every_tilt_gives_a_valid_bound(loss: Any, curve: Callable[[Any], Any], order: float) -> None:
    with mp.workdps(60):
        for left in (0.1, 1e-6):
            found = numerical_epsilon({loss: 1}, left=left, order=order, guess=1.0)
            assert math.isinf(found) or curve(exact(found)) <= exact(left)


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12", "1e-15", "1e-30", "1e-100"])
@pytest.mark.parametrize(("epsilon", "rounds"), [("0.1", 1000), ("1", 30), ("0.013", 5000)])
def test_C4_randomised_responses_against_the_optimum(epsilon: str, rounds: int, delta: str) -> None:
    best = optimal_composition(PureDP(epsilon), rounds=rounds, delta=delta).epsilon
    accountant = PrivacyAccountant()
    accountant.charge(PureDP(epsilon), times=rounds)
    bounds = {bound.rule: bound.total.epsilon for bound in accountant.table(delta=delta).bounds}
    assert best * (1 - Fraction(1, 2**51)) <= bounds["privacy loss"] <= best * (1 + Fraction(1, 10**6))
    assert bounds["moments"] >= best


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-20])
def test_C4_discrete_laplace_against_a_60_digit_convolution(steps: int, delta: float) -> None:
    epsilon, rounds = Fraction(3, 10), 40
    with mp.workdps(60):
        one = steps_of(epsilon, steps)
        total: Atoms = {0: mp.mpf(1)}
        for _ in range(rounds):
            later: Atoms = {}
            for i, mass in total.items():
                for j, other in one.items():
                    later[i + j] = later.get(i + j, mp.mpf(0)) + mass * other
            total = later
        losses = {i * exact(epsilon) / steps: mass for i, mass in total.items()}
        loss = DiscreteLaplaceLoss(epsilon, steps)
        accountant = PrivacyAccountant()
        accountant.charge(loss, times=rounds)
        guess, order = accountant._counted.by_moments(delta)
        found = numerical_epsilon({loss: rounds}, left=delta, order=order, guess=guess)
        assert atoms_delta(losses, exact(found)) <= exact(delta)
        assert found >= 12 or atoms_delta(losses, exact(found * (1 - 1e-5))) > exact(delta)
        assert accountant.total(delta=delta).epsilon <= 12  # where the sum is the least, it is taken
        assert atoms_delta(losses, exact(guess)) <= exact(delta)


def smooth_part(density: Callable[[Any], Any], e: Any, epsilon: Any, s: Any) -> Any:
    return density(s) * laplace(e, epsilon - s)


def test_C4_laplace_twice_against_quadrature() -> None:
    """Two Laplace losses: atoms at +-e and density between, convolved by hand."""
    e = mp.mpf(1)
    loss = LaplaceLoss(1)
    with mp.workdps(30):

        def density(t: Any) -> Any:
            return mp.exp((t - e) / 2) / 4

        found = numerical_epsilon({loss: 2}, left=0.05, order=3.0, guess=1.5)
        for epsilon, larger in ((exact(found), False), (exact(found) * (1 - mp.mpf(10) ** -4), True)):
            ends = {e: mp.mpf(1) / 2, -e: mp.exp(-e) / 2}
            spent = mp.fsum(mass * laplace(e, epsilon - end) for end, mass in ends.items())
            kinks = sorted({-e, e, min(e, max(-e, epsilon - e)), min(e, max(-e, epsilon + e))})
            spent += mp.quad(partial(smooth_part, density, e, epsilon), kinks)
            assert bool(spent > mp.mpf("0.05")) == larger


def test_C4_check_value_of_a_thousand_laplace_releases() -> None:
    accountant = PrivacyAccountant()
    accountant.charge(LaplaceLoss("0.05"), times=1000)
    total = float(accountant.total(delta="1e-6").epsilon)
    assert 8.20443 < total < 8.20445  # dp-accounting: 8.2044404 pessimistic at 1e-5


# --- Gaussian ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "rounds"), [(50, 1000), (1, 1), ("0.1", 3), (1000, 10)])
@pytest.mark.parametrize("delta", ["0.1", "1e-6", "1e-12", "1e-30", "1e-200"])
def test_C4_gaussian_is_above_its_closed_form_by_a_few_roundings(sigma: Any, rounds: int, delta: str) -> None:
    total = gaussian_composition([GaussianLoss(sigma=sigma)] * rounds, delta=delta)
    with mp.workdps(500):
        m = mp.sqrt(rounds) / exact(sigma)

        def spent(t: Any) -> Any:
            return mp.erfc((t / m - m / 2) / mp.sqrt(2)) / 2 - mp.exp(t) * mp.erfc((t / m + m / 2) / mp.sqrt(2)) / 2

        assert spent(exact(total.epsilon)) <= exact(Fraction(delta))
        if total.epsilon:
            assert spent(exact(total.epsilon) * (1 - mp.mpf(2) ** -40)) > exact(Fraction(delta))


def test_C4_check_value_of_a_thousand_gaussians() -> None:
    total = gaussian_composition([GaussianLoss(sigma=50)] * 1000, delta="1e-6")
    assert float(total.epsilon) == pytest.approx(2.92160059, abs=5e-9)
    mixed = PrivacyAccountant()
    mixed.charge(GaussianLoss(sigma=50), times=1000)
    mixed.charge(LaplaceLoss("1e-9"))
    assert float(total.epsilon) <= float(mixed.total(delta="1e-6").epsilon) < 2.921601  # by the other route


@pytest.mark.parametrize("x", ["0", "0.1", "-0.1", "1", "5", "-5", "12.5", "39", "-39", "60"])
def test_normal_tails_enclose_the_truth(x: str) -> None:
    low, high = tail_bounds(upper(Fraction(x)))
    with mp.workdps(900):
        true = mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2
        assert mp.mpf(str(low)) <= true <= mp.mpf(str(high))
        assert mp.mpf(str(high)) / mp.mpf(str(low)) - 1 < mp.mpf(10) ** -38


# --- moments ----------------------------------------------------------------------------------------------------------


def moment(atoms: Atoms, order: Any) -> Any:
    return mp.log(mp.fsum(mass * mp.exp(order * loss) for loss, mass in atoms.items()))


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "0.7", "9", "300"])
def test_moments_are_above_the_truth(epsilon: str) -> None:
    orders = ORDERS[::23]
    kinds: dict[str, PrivacyLoss] = {
        "response": GuaranteeLoss(PureDP(epsilon)),
        "laplace": LaplaceLoss(epsilon),
        "exponential": ExponentialLoss(epsilon),
        "steps": DiscreteLaplaceLoss(epsilon, 3),
    }
    found = {kind: [float(x) for x in loss.moments(orders)] for kind, loss in kinds.items()}

    with mp.workdps(80):
        e = exact(epsilon)
        for i, order in enumerate(exact(float(o)) for o in orders):
            one = {e: 1 / (1 + mp.exp(-e)), -e: 1 / (1 + mp.exp(e))}
            assert exact(found["response"][i]) * (1 + mp.mpf(2) ** -46) >= moment(one, order)
            steps = {k * e / 3: mass for k, mass in steps_of(Fraction(epsilon), 3).items()}
            assert exact(found["steps"][i]) * (1 + mp.mpf(2) ** -46) >= moment(steps, order)
            smooth = mp.log(((order + 1) * mp.exp(order * e) + order * mp.exp(-(order + 1) * e)) / (2 * order + 1))
            assert exact(found["laplace"][i]) * (1 + mp.mpf(2) ** -46) >= smooth
            # any mechanism of bounded range: two outcomes with losses s and s - e, for every s
            for part in (0.05, 0.3, 0.5, 0.7, 0.95):
                s = e * part
                p = (mp.exp(e) - mp.exp(s)) / mp.expm1(e)
                worst = moment({s: p, s - e: 1 - p}, order)
                assert exact(found["exponential"][i]) * (1 + mp.mpf(2) ** -46) >= worst


def test_the_share_of_an_order_is_the_largest_value() -> None:
    for order in (0.001, 0.5, 1.0, 7.0, 1e4):
        y = np.linspace(1e-6, 40, 400_001) / max(order, 0.05)
        assert float(log_share(np.array([order]))[0]) >= float((np.log(-np.expm1(-y)) - order * y).max()) - 1e-12


# --- the exponential mechanism's worst case ---------------------------------------------------------------------------


def test_the_exponential_profile_is_the_maximum_over_all_levels() -> None:
    with mp.workdps(40):
        e = exact("0.7")
        for t in (exact(x) for x in ("-0.6", "0", "0.2", "0.69")):
            best = mp.mpf(0)
            for k in range(2001):
                s = e * k / 2000
                p = (mp.exp(e) - mp.exp(s)) / mp.expm1(e)
                best = max(best, atoms_delta({s: p, s - e: 1 - p}, t))
            assert best <= exponential(e, t) + mp.mpf(10) ** -35
            assert best >= exponential(e, t) - mp.mpf(10) ** -6


# --- what is assumed of floats ----------------------------------------------------------------------------------------


def test_the_transform_keeps_its_error_bound() -> None:
    """Against an exact convolution in whole numbers."""
    generator = np.random.default_rng(7)
    parts = []
    for size, count in ((5, 3), (64, 2), (2, 40)):
        masses = generator.integers(1, 1000, size).astype(np.float64)
        law = GridLaw(first=-size // 2, masses=masses / masses.sum(), error=4, shift=0)
        parts.append(tilt(law, count=count, step=0.1, order=1.5))
    composed = compose(parts, step=0.1, order=1.5, lowest=0.0)
    whole = [1 << 0]
    scale = 0
    for part in parts:
        numbers = [Fraction(float(mass)) for mass in part.masses]
        shift = max(number.denominator.bit_length() for number in numbers)
        ints = [int(number * (1 << shift)) for number in numbers]
        for _ in range(part.count):
            whole = list(np.convolve(np.array(whole, dtype=object), np.array(ints, dtype=object)))
            scale += shift
    least = sum(part.count * part.law.first for part in parts)
    log_moment = math.fsum(part.count * part.log_moment for part in parts)
    at = {round(float(loss) / 0.1): float(mass) for loss, mass in zip(composed.losses, composed.masses, strict=True)}
    for i, number in enumerate(whole):
        index = least + i
        if index in at:
            true = float(Fraction(number, 1 << scale)) * math.exp(log_moment - 0.15 * index)
            assert true <= at[index] * composed.excess
    outside = sum(
        float(Fraction(number, 1 << scale)) * math.exp(log_moment - 0.15 * (least + i))
        for i, number in enumerate(whole)
        if (least + i) * 0.1 > composed.losses[-1] + 0.01
    )
    assert outside <= composed.added


def test_float_functions_are_as_good_as_the_proof_assumes() -> None:
    x = np.concatenate([-np.geomspace(1e-12, 700, 400), np.geomspace(1e-12, 700, 400)])
    with mp.workdps(40):
        for function, true, at in [
            (np.exp, mp.exp, x),
            (np.expm1, mp.expm1, x),
            (np.log, mp.log, np.geomspace(1e-300, 1e300, 400)),
            (np.log1p, mp.log1p, np.geomspace(1e-12, 1e6, 400)),
            (np.sinh, mp.sinh, np.geomspace(1e-12, 100, 400)),
        ]:
            for value, given in zip(at, function(at), strict=True):
                assert abs(mp.mpf(float(given)) / true(mp.mpf(float(value))) - 1) <= 4 * mp.mpf(2) ** -53


# --- a curve of points ------------------------------------------------------------------------------------------------


def test_C4_a_curve_of_points_dominates_the_mechanism_it_came_from() -> None:
    epsilons = [k / 100 for k in range(-100, 101)]
    with mp.workdps(40):
        e = mp.mpf(1)
        deltas = [
            min(Fraction(1), Fraction(str(mp.nstr(laplace(e, mp.mpf(t)), 25))) + Fraction(1, 10**20)) for t in epsilons
        ]
        loss = CurveLoss(epsilons, deltas)
        assert sum(loss.masses) == pytest.approx(1, abs=1e-12)
        for count in (1, 2, 50):
            accountant, true = PrivacyAccountant(), PrivacyAccountant()
            accountant.charge(loss, times=count)
            true.charge(LaplaceLoss(1), times=count)
            pair = float(accountant.total(delta="1e-6").epsilon), float(true.total(delta="1e-6").epsilon)
            assert pair[1] - 1e-4 * pair[1] <= pair[0] <= pair[1] * 1.01


# --- mutants ----------------------------------------------------------------------------------------------------------


def test_without_the_bound_of_its_rounding_the_transform_understates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Untilted, at a delta of 1e-15: what dp-accounting 0.6 does."""
    from accord.accounting import numerical as _tilted

    loss, best = (
        GuaranteeLoss(PureDP("0.1")),
        float(optimal_composition(PureDP("0.1"), rounds=1000, delta="1e-15").epsilon),
    )
    kept = numerical_epsilon({loss: 1000}, left=1e-15, order=1e-3, guess=30.0)
    assert kept >= best
    monkeypatch.setattr(_tilted, "ROUNDING", 0.0)
    assert numerical_epsilon({loss: 1000}, left=1e-15, order=1e-3, guess=30.0) < kept


def test_an_answer_from_below_the_window_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = math.log1p(0) + 1 + 2 * math.log1p(-math.sqrt(1e-6 * -math.expm1(-1)))
    loss = ExponentialLoss(1)
    assert numerical_epsilon({loss: 1}, left=1e-6, order=1e4, guess=4.0) >= true

    def claims_to_know_all(*parts: Any, **numbers: Any) -> Any:
        law = compose(*parts, **numbers)
        losses, masses = np.concatenate([[-1.0], law.losses]), np.concatenate([[0.0], law.masses])
        return replace(law, losses=losses, masses=masses)

    monkeypatch.setattr(numerical, "compose", claims_to_know_all)
    assert numerical_epsilon({loss: 1}, left=1e-6, order=1e4, guess=4.0) < true


def test_rounding_losses_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from accord.accounting import losses
    from accord.accounting import losses as _grid

    def down(values: Any, masses: Any, *, step: float, error: float) -> Any:
        return _grid._finished(np.floor(values / step).astype(np.int64), masses, error=error, shift=0)

    best = float(optimal_composition(PureDP("0.1"), rounds=1000, delta="1e-6").epsilon)
    loss = GuaranteeLoss(PureDP("0.1"))
    assert numerical_epsilon({loss: 1000, LaplaceLoss("1e-5"): 1}, left=1e-6, order=1.4, guess=20.0) >= best
    monkeypatch.setattr(losses, "share_out", down)
    monkeypatch.setattr(numerical, "_step", lambda parts, *, guess: 0.00101)
    assert numerical_epsilon({loss: 1000}, left=1e-6, order=1.4, guess=20.0) < best


# --- known mistakes of other accountants ------------------------------------------------------------------------------


def root(curve: Callable[[Any], Any], delta: Any, *, most: int) -> Any:
    """Return where a falling curve meets delta, by halving: it shares nothing with the library's own search."""
    low, high = mp.mpf(0), mp.mpf(most)
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return high


def responses(epsilon: Any, rounds: int, t: Any) -> Any:
    chance = 1 / (1 + mp.exp(-epsilon))
    return mp.fsum(
        mp.binomial(rounds, k)
        * chance**k
        * (1 - chance) ** (rounds - k)
        * max(mp.mpf(0), 1 - mp.exp(t - (2 * k - rounds) * epsilon))
        for k in range(rounds + 1)
    )


@pytest.mark.parametrize(
    ("loss", "rounds", "curve"),
    [
        (GaussianLoss(sigma=50), 1000, lambda t: gaussian(mp.sqrt(1000) / 50, t)),
        (GaussianLoss(sigma="0.5"), 1, lambda t: gaussian(mp.mpf(2), t)),
        (GuaranteeLoss(PureDP("0.1")), 100, lambda t: responses(mp.mpf("0.1"), 100, t)),
    ],
)
def test_E23_totals_agree_with_a_second_formula_and_are_never_below(
    loss: PrivacyLoss, rounds: int, curve: Callable[[Any], Any]
) -> None:
    accountant = PrivacyAccountant()
    accountant.charge(loss, times=rounds)
    with mp.workdps(50):
        truth = root(curve, mp.mpf("1e-6"), most=50)
        found = exact(accountant.total(delta="1e-6").epsilon)
        assert truth <= found <= truth * (1 + mp.mpf("1e-9"))
        assert truth <= exact(accountant.bound(delta="1e-6").epsilon)


@pytest.mark.parametrize("order", [0, 137, 200, 260])
def test_E23_E24_moments_are_renyi_integrals_of_the_order_plus_one(order: int) -> None:
    """By quadrature over the noise: an index off by one, or a lost logarithm, would show."""
    with mp.workdps(40):
        s = exact(ORDERS[order])
        integral = mp.quad(lambda x: mp.exp(-abs(x) + s * (abs(x - 1) - abs(x))) / 2, [-mp.inf, 0, 1, mp.inf])
        normal = mp.quad(lambda x: mp.npdf(x) * mp.exp(s * (mp.mpf(1) / 2 - x)), [-mp.inf, -s, 0, mp.inf])
        for loss, moment_ in ((LaplaceLoss(1), mp.log(integral)), (GaussianLoss(sigma=1), mp.log(normal))):
            found = exact(float(loss.moments(ORDERS)[order]))
            assert moment_ * (1 - mp.mpf(64) / 2**53) <= found <= moment_ * (1 + mp.mpf("1e-9"))


def test_E24_no_order_is_1_and_a_subsampled_gaussian_is_0_only_where_it_should_be() -> None:
    """Orders here are those of Renyi less 1. Total variation is 4.02e-4: at delta 1e-3 the answer 0 is right."""
    assert np.all(ORDERS > 0)
    assert np.all(np.isfinite(log_share(ORDERS)))
    rate, relation = 0.00105, Neighbouring.ADD_OR_REMOVE_ONE
    accountant = PrivacyAccountant()
    distribution = peer.from_gaussian_mechanism(1.0, sampling_prob=rate)
    accountant.charge(imported_loss(distribution, neighbouring=relation))
    assert accountant.total(delta="1e-3").epsilon < Fraction(1, 10**9)
    for found in (accountant.total(delta="1e-4").epsilon, accountant.bound(delta="1e-4").epsilon):
        with mp.workdps(30):
            t, q = exact(found), mp.mpf(rate)
            start = mp.mpf(1) / 2 + mp.log((mp.exp(t) - 1 + q) / q)
            spent = (1 - q - mp.exp(t)) * mp.ncdf(-start) + q * mp.ncdf(1 - start)
            assert t > 0
            assert spent <= mp.mpf("1e-4")


def test_E35_zero_concentrated_privacy_converts_to_at_most_the_textbook_and_never_below_the_truth() -> None:
    rho, textbook = Fraction(1, 10), Fraction("2.450788")
    assert zcdp_delta(textbook, rho=rho) <= Fraction("1e-6")
    accountant = PrivacyAccountant()
    accountant.charge(GaussianLoss(sigma=1).with_square(2 * rho))
    with mp.workdps(40):
        m = mp.sqrt(mp.mpf(1) / 5)
        for found in (accountant.total(delta="1e-6").epsilon, accountant.bound(delta="1e-6").epsilon):
            assert found <= textbook
            assert gaussian(m, exact(found)) <= mp.mpf("1e-6")
        for tenth in range(1, 40):
            t = mp.mpf(tenth) / 10
            assert gaussian(m, t) <= exact(zcdp_delta(Fraction(tenth, 10), rho=rho))


def test_E35_epsilon_to_delta_and_back_a_hundred_times() -> None:
    with mp.workdps(60):
        for i in range(100):
            epsilon, sigma = Fraction(1 + 7 * i, 100), Fraction(1 + i % 10, 2)
            delta = Fraction(gaussian_delta(epsilon, squared=1 / sigma**2))
            assert gaussian(1 / exact(sigma), exact(epsilon)) <= exact(delta)
            if delta < Fraction(1, 10**300):
                continue
            back = exact(gaussian_composition([GaussianLoss(sigma=sigma)], delta=delta).epsilon)
            assert gaussian(1 / exact(sigma), back) <= exact(delta)
            assert abs(back - exact(epsilon)) <= mp.mpf("1e-11") * exact(epsilon)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "5", "50"])
def test_E36_the_gaussian_is_counted_by_its_curve_at_every_epsilon(epsilon: str) -> None:
    """At the textbook sigma, ``sqrt(2 log(1.25 / delta)) / epsilon``, which is proved for epsilon up to 1 only."""
    sigma = Fraction(math.sqrt(2 * math.log(1.25e6)) / float(epsilon))
    accountant = PrivacyAccountant()
    accountant.charge(GaussianLoss(sigma=sigma))
    found = accountant.total(delta="1e-6").epsilon
    with mp.workdps(60):
        m, delta = 1 / exact(sigma), mp.mpf("1e-6")
        assert gaussian(m, exact(found)) <= delta < gaussian(m, exact(found) * (1 - mp.mpf("1e-9")))
    assert (found <= Fraction(epsilon)) == (epsilon != "50")


def test_E36_beyond_its_range_the_gaussian_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="from 1e-6 to 100"):
        GaussianLoss(sigma="0.009")
    accountant = PrivacyAccountant()
    accountant.charge(GaussianLoss(sigma="0.01"), times=2)
    assert "at most 100" in accountant.table(delta="1e-6").bounds[-1].total.reason  # type: ignore[union-attr]
