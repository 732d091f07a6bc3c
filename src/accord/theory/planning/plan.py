"""How many records a private learner needs, and how to divide them."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, Literal, final

from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.learners.traits import traits_of
from accord.theory.planning.certificate import Certificate
from accord.theory.planning.certified import TupleVariation, plan_rounded, plan_single
from accord.theory.planning.pivots import certify_normal, stored_pivot
from accord.theory.planning.roots import FLOOR, plan_roots
from accord.theory.planning.theorems import (
    TheoremSizes,
    agnostic_sizes,
    boosted_sizes,
    checked_complexity,
    theorem_sizes,
)
from accord.theory.planning.verify import THEOREMS, Proof

__all__ = ["LearnerKind", "Method", "Plan", "all_plans", "plan"]

Method = Literal["theorem", "certified"]
LearnerKind = Literal["black-box", "boosted", "agnostic"]

_LARGEST = {"theorem": 1, "certified": 10}
_KINDS = ("black-box", "boosted", "agnostic")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Sizes of a private learner, with the reason why they are enough.

    Parameters
    ----------
    records
        n, all records that are needed.
    blocks, block_size, synthetic_records, parts, draws
        k, b, l, T, R: ``n = k b T``.
    certificate
        The inequalities behind it.
    method
        "theorem" or "certified".

    """

    records: int
    blocks: int
    block_size: int
    synthetic_records: int
    parts: int
    draws: int
    certificate: Certificate
    method: Method

    @classmethod
    def of(cls, certificate: Certificate) -> "Plan":
        """Return the plan whose certificate this is."""
        numbers = certificate.numbers
        return cls(
            records=certificate.records,
            blocks=int(numbers["blocks"]),
            block_size=int(numbers["block_size"]),
            synthetic_records=int(numbers["records"]),
            parts=int(numbers.get("parts", 1)),
            draws=int(numbers["draws"]),
            certificate=certificate,
            method="theorem" if certificate.method in THEOREMS else "certified",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    alpha: Fraction
    beta: Fraction
    epsilon: Fraction
    delta: Fraction

    @property
    def floats(self) -> dict[str, float]:
        return {name: float(value) for name, value in asdict(self).items()}

    @property
    def texts(self) -> dict[str, Any]:
        return {name: str(value) for name, value in asdict(self).items()}


def plan(
    sample_complexity: object,
    *,
    alpha: Number,
    beta: Number,
    epsilon: Number,
    delta: Number,
    method: Method = "theorem",
    learner: LearnerKind = "black-box",
    agnostic_factor: Number = 3,
    recompute: bool = False,
) -> Plan:
    """Return sizes for which a private learner is within total variation alpha with probability 1 - beta.

    Formal guarantees
    -----------------
    - The certificate of the plan verifies: `Certificate.verify`.
    - "theorem": exactly the sizes of theory L9, L10 or L11.
    - "certified": method B or D for laws on labels, C for normal laws where a simulation is stored, else A (any class).
    - Not promised: that no smaller n is enough.

    Parameters
    ----------
    sample_complexity
        A function (alpha, beta) -> int, or a learner that offers one. A learner may also offer
        ``tuple_total_variation(l, b)``; `EmpiricalLearner` opens methods B and D,
        ``GaussianLearner(dimension=d)`` method C.
    alpha, beta
        Strictly between 0 and 1.
    epsilon
        Above 0; at most 1 for the theorem, at most 10 for certified sizes.
    delta
        Strictly between 0 and 1, at least 2^-100.
    method
        "theorem" or "certified".
    learner
        "black-box" (L9), "boosted" (L10) or "agnostic" (L11). Certified sizes serve the first two: best of draws takes
        the place of boosting.
    agnostic_factor
        C of the agnostic learner.
    recompute
        Certify normal laws by a new simulation where no stored one is as strict as what is asked.

    Raises
    ------
    InvalidParameter
        Outside these ranges; if the sample complexity is no whole number or rises; if no certified method applies.

    Source
    ------
    theory 5, 6, S6 to S11; proof page ``docs/proofs/planning.md``.

    Examples
    --------
    >>> from accord.learners import GaussianLearner
    >>> found = plan(GaussianLearner(dimension=1), alpha=0.1, beta=0.1, epsilon=1, delta="1e-6", method="certified")
    >>> found.records < 1500, found.certificate.verify()
    (True, True)

    """
    if method not in _LARGEST:
        raise InvalidParameter("method must be 'theorem' or 'certified'.")
    if learner not in _KINDS:
        raise InvalidParameter("learner must be 'black-box', 'boosted' or 'agnostic'.")
    request = _request(alpha, beta, epsilon, delta, method)
    if method == "theorem":
        return _by_theorem(sample_complexity, request, learner, agnostic_factor)
    if learner == "agnostic":
        raise InvalidParameter("learner='agnostic' has no certified sizes: use method='theorem'.")
    found = _certified(sample_complexity, request, recompute=recompute, everything=False)
    if not found:
        raise InvalidParameter(
            "method='certified' found no sizes: allow a larger epsilon, delta or beta, or, for normal laws, "
            "recompute=True."
        )
    return min(found, key=lambda one: one.records)


def all_plans(
    sample_complexity: object,
    *,
    alpha: Number,
    beta: Number,
    epsilon: Number,
    delta: Number,
    recompute: bool = False,
) -> dict[str, Plan]:
    """Return the plan of every method that applies by the its `Proof`: L9, L10, A, B, D, C.

    Raises
    ------
    InvalidParameter
        If a number is out of range for all of them, or the sample complexity is not one.

    """
    request = _request(alpha, beta, epsilon, delta, "certified")
    found: list[Plan] = []
    if request.epsilon <= _LARGEST["theorem"]:
        for kind in ("black-box", "boosted"):
            try:
                found.append(_by_theorem(sample_complexity, request, kind, 3))
            except InvalidParameter:
                known = traits_of(sample_complexity)
                if known.labels is None and not known.pivotal:
                    raise  # else its own m ends there, and the other methods go on
    found += _certified(sample_complexity, request, recompute=recompute, everything=True)
    return {one.certificate.method: one for one in found}


def _request(alpha: Number, beta: Number, epsilon: Number, delta: Number, method: Method) -> _Request:
    loss = _check.epsilon(epsilon)
    if loss > _LARGEST[method]:
        raise InvalidParameter(f"epsilon must be at most {_LARGEST[method]} for {method} sizes.")
    return _Request(
        alpha=_check.probability("alpha", alpha),
        beta=_check.probability("beta", beta),
        epsilon=loss,
        delta=_check.delta(delta),
    )


# --- the theorems -----------------------------------------------------------------------------------------------------


def _by_theorem(source: object, request: _Request, kind: str, factor: Number) -> Plan:
    asked: dict[str, Fraction] = asdict(request)
    extra: dict[str, Any] = {}
    if kind == "black-box":
        name, sizes = Proof.BLACK_BOX, theorem_sizes(source, **asked)
    elif kind == "boosted":
        name, sizes = Proof.BOOSTED, boosted_sizes(source, **asked)
    else:
        name, sizes = Proof.AGNOSTIC, agnostic_sizes(source, **asked, agnostic_factor=factor)
        extra = {"agnostic_factor": str(_check.exact("agnostic_factor", factor))}
    numbers = request.texts | extra | _theorem_numbers(sizes)
    certificate = Certificate.of(name, numbers)
    return Plan.of(certificate)


def _theorem_numbers(sizes: TheoremSizes) -> dict[str, Any]:
    return {
        "records": sizes.records,
        "block_size": sizes.block_size,
        "blocks": sizes.blocks,
        "parts": sizes.parts,
        "draws": 1,
        "delta_used": str(sizes.delta),
        "calls": [list(call) for call in sizes.calls],
        "records_needed": sizes.required_records,
    }


# --- certified --------------------------------------------------------------------------------------------------------


def _certified(source: object, request: _Request, *, recompute: bool, everything: bool) -> list[Plan]:
    """Return the plans of B and C where they apply; of A where neither does, or if all are wanted."""
    found: list[Certificate | None] = []
    if float(request.delta) <= math.expm1(float(request.epsilon) / 2):
        known = traits_of(source)
        if known.labels is not None and len(known.labels) > 1:
            found.append(_rounded_atoms(len(known.labels), request))
            found.append(_rounded_roots(len(known.labels), request))
        if known.pivotal and known.columns is not None:
            found.append(_pivotal(known.columns, request, recompute=recompute))
    if everything or not any(found):
        found.insert(0, _one_draw(source, request))
    certificates = [one for one in found if one is not None and one.verify()]
    return [Plan.of(one) for one in certificates]


def _one_draw(source: object, request: _Request) -> Certificate | None:
    checked = checked_complexity(source, alpha=float(request.alpha), beta=float(request.beta))
    offered = getattr(source, "tuple_total_variation", None)
    variation = _checked_variation(offered) if callable(offered) else _plain_variation(checked)
    single = plan_single(
        checked,
        variation,
        alpha=float(request.alpha),
        beta=float(request.beta),
        epsilon=request.epsilon,
        delta=request.delta,
    )
    if single is None:
        return None
    numbers = request.texts | asdict(single)
    numbers |= {
        "draws": 1,
        "curve": list(single.curve),
        "calls": [[float(request.alpha), single.relearning, single.records]],
    }
    numbers |= {"records_needed": single.blocks * single.block_size}
    return Certificate.of(Proof.ONE_DRAW, numbers)


def _checked_variation(offered: Callable[[int, int], Any]) -> TupleVariation:
    """Return what a learner says of tuples, at most 1; refuse what is no bound."""

    def variation(records: int, block_size: int) -> float:
        value = offered(records, block_size)
        bound = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        if not bound >= 0:
            raise InvalidParameter("the learner's tuple_total_variation must be a number, at least 0.")
        return min(1.0, bound)

    return variation


def _plain_variation(complexity: Callable[[float, float], int]) -> TupleVariation:
    """Return ``l E TV`` of a black box: TV <= h but for probability h at ``b = m(h, h)``, h as small as b allows."""

    def variation(records: int, block_size: int) -> float:
        low, high = 0.0, 1.0
        while high - low > 1e-3 * high and high > 1e-12:
            middle = (low + high) / 2
            try:
                enough = complexity(middle, middle) <= block_size
            except InvalidParameter:
                enough = False
            low, high = (low, middle) if enough else (middle, high)
        return min(1.0, 2 * high * records)

    return variation


def _rounded_atoms(labels: int, request: _Request) -> Certificate | None:
    found = plan_rounded(labels=labels, **request.floats)
    if found is None:
        return None
    numbers = request.texts | asdict(found) | {"records": 1, "records_needed": found.records}
    return Certificate.of(Proof.FREQUENCIES, numbers)


def _rounded_roots(labels: int, request: _Request) -> Certificate | None:
    found = None if labels == 2 else plan_roots(labels=labels, **request.floats)
    if found is None:
        return None
    return Certificate.of(
        Proof.ROOTS, request.texts | asdict(found) | {"floor": FLOOR, "records": 1, "records_needed": found.records}
    )


def _pivotal(dimension: int, request: _Request, *, recompute: bool) -> Certificate | None:
    row = stored_pivot(dimension, **asdict(request))
    if row is None and recompute:
        row = certify_normal(dimension=dimension, **asdict(request))
    if row is None:
        return None
    return Certificate.of(Proof.PIVOTAL, request.texts | row)
