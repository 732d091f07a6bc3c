"""The sample sizes of the published theorems, as whole numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number

__all__ = [
    "AGNOSTIC_FACTOR_OF_MINIMUM_DISTANCE",
    "TheoremSizes",
    "agnostic_sizes",
    "boosted_sizes",
    "checked_complexity",
    "complexity_of",
    "orders",
    "sampler_sizes",
    "theorem_sizes",
    "yatracos_sizes",
]

"""``m(alpha, beta)``: records from which on a learner is within alpha but for probability beta."""

AGNOSTIC_FACTOR_OF_MINIMUM_DISTANCE = 3

_ROUND_UP = 1.0 + 1e-12
_RISES = "the learner's sample_complexity must not rise where alpha or beta rise."
_LARGEST_LOSS = 1
_EASIER = (0.0, 0.25, 0.5, 0.75)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremSizes:
    """The sizes of theory L8 to L11: l, b, k, T, the slack delta0 that the selection gets, and n = b k T.

    ``theorem`` names the published statement. ``calls`` lists what was asked of m: (alpha, beta, answer).
    """

    records: int
    block_size: int
    blocks: int
    delta: Fraction
    parts: int = 1
    theorem: str = "5.1"
    calls: tuple[tuple[float, float, int], ...] = ()

    @property
    def required_records(self) -> int:
        """Number of records n = b k T."""
        return self.block_size * self.blocks * self.parts


@final
class _Asked:
    """A sample complexity that is checked at each call, and against all earlier answers."""

    def __init__(self, source: object) -> None:
        self._function = complexity_of(source)
        self.calls: list[tuple[float, float, int]] = []

    def __call__(self, alpha: float, beta: float) -> int:
        try:
            answer = self.answer(alpha, beta)
        except InvalidParameter as error:
            raise InvalidParameter(
                f"these settings ask the learner for total variation {alpha:.3g} with failure {beta:.3g}, and it has "
                f"no number of records for that: {error}"
            ) from None
        for other_alpha, other_beta, other in self.calls:
            easier = alpha >= other_alpha and beta >= other_beta and answer > other
            harder = alpha <= other_alpha and beta <= other_beta and answer < other
            if easier or harder:
                raise InvalidParameter(_RISES)
        self.calls.append((alpha, beta, answer))
        return answer

    def probe(self, alpha: float, beta: float) -> None:
        """Ask at half of the given numbers as well, so that a function that rises is found out."""
        own = self.answer(alpha, beta)
        if self.answer(alpha / 2, beta) < own or self.answer(alpha, beta / 2) < own:
            raise InvalidParameter(_RISES)

    def answer(self, alpha: float, beta: float) -> int:
        """Return one answer, checked alone."""
        answer = self._function(alpha, beta)
        return _check.integer(
            "the learner's sample_complexity", None if isinstance(answer, (str, bytes)) else answer, least=1
        )


def complexity_of(source: object) -> Callable[[float, float], Any]:
    """Return m from a learner that offers ``sample_complexity``, or from a function of (alpha, beta)."""
    offered = getattr(source, "sample_complexity", None)
    if callable(offered):
        found: Callable[[float, float], Any] = offered
        return found
    if callable(source) and not isinstance(source, type):
        return source
    if callable(getattr(source, "get_params", None)) and not callable(getattr(source, "score_samples", None)):
        message = (
            f"{type(source).__name__} has no sample_complexity(alpha, beta) and no score_samples(X), so that it is no "
            f"density estimator: take one that has both, such as a Gaussian mixture, or a learner of accord.learners."
        )
        raise InvalidParameter(message)
    message = (
        f"{type(source).__name__} has no sample_complexity(alpha, beta): give blocks= and records= instead of "
        f"alpha and beta, or a learner that states its sample complexity."
    )
    raise InvalidParameter(message)


def checked_complexity(source: object, *, alpha: float, beta: float) -> Callable[[float, float], int]:
    """Return m with each answer checked to be a number of records; refuse one that rises with alpha or beta.

    It is asked at easier accuracies than the given ones, where every learner has an answer.
    """
    asked = _Asked(source)
    for share in _EASIER:
        asked(alpha + share * (1 - alpha), beta)
        asked(alpha, beta + share * (1 - beta))
    return asked.answer


def theorem_sizes(learner: object, *, alpha: Number, beta: Number, epsilon: Number, delta: Number) -> TheoremSizes:
    """Return the sizes for which theory L9 promises total variation below alpha with probability 1 - beta.

    Parameters
    ----------
    learner
        Offers ``sample_complexity(alpha, beta)``, the number of records after which its law is within total variation
        alpha with probability 1 - beta, whatever the law of its class; or that function itself.
    alpha, beta
        Strictly between 0 and 1.
    epsilon, delta
        Of the release; epsilon above 0 and at most 1, delta below 1.

    Raises
    ------
    InvalidParameter
        If there is no sample complexity, or one that is not a positive integer or that rises with alpha or beta.

    Source
    ------
    theory L9; theorem 5.1 of the paper; proof page ``docs/proofs/planning.md``.

    Examples
    --------
    >>> sizes = theorem_sizes(lambda a, b: math.ceil(1 / a**2), alpha=0.1, beta=0.1, epsilon=1, delta="1e-6")
    >>> sizes.records, sizes.blocks
    (100, 473)

    """
    accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
    loss, slack = _loss(epsilon), _check.delta(delta)
    asked = _Asked(learner)
    asked.probe(float(accuracy), float(failure))
    records = asked(float(accuracy), float(failure / 4))
    block_size = asked(float(failure / (64 * records)), 1 / 16)
    blocks = _ceiling(
        lambda: max(8 / loss * math.log(4 / (failure * slack)), 128 * math.log(4 / failure)),
    )
    return TheoremSizes(
        records=records,
        block_size=block_size,
        blocks=blocks,
        delta=min(slack, failure / 4),
        calls=tuple(asked.calls),
    )


def boosted_sizes(learner: object, *, alpha: Number, beta: Number, epsilon: Number, delta: Number) -> TheoremSizes:
    """Return the sizes of theory L10: T learners of L9 on disjoint parts, each at alpha / 3 and 1 / 8.

    Source
    ------
    theory L10; theorems 1.3 and 6.1 of the paper.

    """
    accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
    slack = min(_check.delta(delta), Fraction(1, 32))
    part = theorem_sizes(learner, alpha=accuracy / 3, beta=Fraction(1, 8), epsilon=epsilon, delta=slack)
    parts = _ceiling(lambda: 128 * math.log(1 / failure))
    return TheoremSizes(
        records=part.records,
        block_size=part.block_size,
        blocks=part.blocks,
        delta=part.delta,
        parts=parts,
        theorem="6.1",
        calls=part.calls,
    )


def agnostic_sizes(
    learner: object, *, alpha: Number, beta: Number, epsilon: Number, delta: Number, agnostic_factor: Number
) -> TheoremSizes:
    """Return the sizes of theory L11, for a learner with total variation ``C OPT + alpha``.

    Parameters
    ----------
    learner, alpha, beta, epsilon, delta
        As in `theorem_sizes`.
    agnostic_factor
        C, at least 1.

    Source
    ------
    theory L11; theorems 1.6 and C.2 of the paper: total variation at most ``(8 C^2 + 9 C) OPT + alpha``.

    """
    accuracy, failure = _check.probability("alpha", alpha), _check.probability("beta", beta)
    loss, slack = _loss(epsilon), _check.delta(delta)
    factor = _check.exact("agnostic_factor", agnostic_factor)
    if factor < 1:
        raise InvalidParameter("agnostic_factor must be at least 1: no learner is closer than the best of its class.")
    share = accuracy / (factor + 3)
    asked = _Asked(learner)
    asked.probe(float(accuracy), float(failure))
    parts = asked(float(2 * share), float(failure))
    block_size = asked(float(share / 16), 1 / 16)
    slack = min(slack, share / 4)
    blocks = _ceiling(lambda: max(16 / loss * math.log(1 / slack), 128 * math.log(4 / share)))
    return TheoremSizes(
        records=1,
        block_size=block_size,
        blocks=blocks,
        delta=slack,
        parts=parts,
        theorem="C.2",
        calls=tuple(asked.calls),
    )


def sampler_sizes(learner: object, *, records: int, gamma: Number, epsilon: Number, delta: Number) -> TheoremSizes:
    """Return the sizes of an (l, gamma)-sampler: theory L8 with beta = 4 gamma / 3.

    Parameters
    ----------
    learner
        As in `theorem_sizes`.
    records
        l, the number of synthetic records, at least 1.
    gamma
        Total variation of their law from l records of the truth, above 0 and below 3/4.
    epsilon, delta
        Of the release.

    Source
    ------
    theory L8; theorems 1.5 and 4.3 of the paper.

    """
    failure = _check.probability("gamma", gamma) * Fraction(4, 3)
    if failure >= 1:
        raise InvalidParameter("gamma must be below 3/4.")
    loss, slack = _loss(epsilon), _check.delta(delta)
    size = _check.integer("records", records, least=1)
    asked = _Asked(learner)
    asked.probe(float(failure / (64 * size)), 1 / 16)
    block_size = asked(float(failure / (64 * size)), 1 / 16)
    slack = min(slack, failure / 4)
    blocks = _ceiling(lambda: max(8 / loss * math.log(4 / (failure * slack)), 128 * math.log(4 / failure)))
    return TheoremSizes(
        records=size,
        block_size=block_size,
        blocks=blocks,
        delta=slack,
        theorem="4.3",
        calls=tuple(asked.calls),
    )


def yatracos_sizes(
    *, vc: int, constant: Number, alpha: Number, beta: Number, epsilon: Number, delta: Number
) -> TheoremSizes:
    """Return the sizes for a class whose Yatracos sets have finite VC dimension, by the minimum-distance estimator.

    Parameters
    ----------
    vc
        d, the VC dimension of the Yatracos class, at least 0.
    constant
        C0 of ``m(t, r) = ceil(C0 (d + log(2 / r)) / t^2)``; the paper leaves it open.
    alpha, beta, epsilon, delta
        As in `agnostic_sizes`.

    Source
    ------
    theory L12; theorem C.4 and corollary C.5 of the paper: ``99 OPT + alpha``.

    """
    dimension = _check.integer("vc", vc, least=0)
    scale = float(_check.exact("constant", constant))
    if not scale > 0:
        raise InvalidParameter("constant must be above 0.")

    def complexity(accuracy: float, failure: float) -> int:
        return max(1, math.ceil(scale * (dimension + math.log(2 / failure)) / accuracy**2 * _ROUND_UP))

    sizes = agnostic_sizes(
        complexity,
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        delta=delta,
        agnostic_factor=AGNOSTIC_FACTOR_OF_MINIMUM_DISTANCE,
    )
    return TheoremSizes(
        records=sizes.records,
        block_size=sizes.block_size,
        blocks=sizes.blocks,
        delta=sizes.delta,
        parts=sizes.parts,
        theorem="C.5",
        calls=sizes.calls,
    )


def orders(
    theorem: Literal["1.3", "C.5"],
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    learner: object = None,
    vc: int = 0,
) -> float:
    """Return the expression inside the O(..) of a published sample size, without its constant.

    For tables of how sizes grow; `boosted_sizes` and `yatracos_sizes` give numbers that are enough.

    Parameters
    ----------
    theorem
        "1.3": ``m(1 / (512 m(alpha / 3, 1 / 32)), 1 / 16) log(4 / delta) log(4 / beta) / epsilon``; "C.5":
        ``(d + 1) (d + log(2 / beta)) log(2 / (alpha delta)) / (epsilon alpha^4)``.
    alpha, beta, epsilon, delta
        As in `theorem_sizes`.
    learner
        For "1.3".
    vc
        d, for "C.5".

    """
    accuracy, failure = float(_check.probability("alpha", alpha)), float(_check.probability("beta", beta))
    loss, slack = _loss(epsilon), float(_check.delta(delta))
    if theorem == "C.5":
        dimension = _check.integer("vc", vc, least=0)
        size = (dimension + 1) * (dimension + math.log(2 / failure)) / (loss * accuracy**4)
        return size * math.log(2 / (accuracy * slack))
    if theorem != "1.3":
        raise InvalidParameter("theorem must be '1.3' or 'C.5'.")
    asked = _Asked(learner)
    asked.probe(accuracy / 3, 1 / 32)
    inner = asked(accuracy / 3, 1 / 32)
    return asked(1 / (512 * inner), 1 / 16) / loss * math.log(4 / slack) * math.log(4 / failure)


def _loss(epsilon: Number) -> float:
    """Return epsilon, which the published theorems take from (0, 1); 1 is allowed (theory 6)."""
    loss = _check.epsilon(epsilon)
    if loss > _LARGEST_LOSS:
        raise InvalidParameter(f"epsilon must be at most {_LARGEST_LOSS} for theorem sizes.")
    return float(loss)


def _ceiling(value: Callable[[], float]) -> int:
    """Round up, with a margin for the rounding of logarithms."""
    try:
        return math.ceil(value() * _ROUND_UP)
    except (OverflowError, ZeroDivisionError, ValueError):
        raise InvalidParameter("epsilon, delta or beta is too small for the theorem's sizes.") from None
