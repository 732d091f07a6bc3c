"""What the learners by accuracy share: parts of the data, records that are left out, what is not enough."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from accord.accounting.parallel import parallel_composition
from accord.core.blocks import Progress, order_of_units, partition, relation_of
from accord.core.errors import AccordError, InvalidParameter, NotEnoughRecords
from accord.core.guarantee import ApproxDP
from accord.core.records import Records
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.theory.planning.certificate import Certificate
from accord.theory.planning.plan import Plan
from accord.theory.planning.verify import Proof

__all__ = [
    "RecordsUse",
    "block_size_for",
    "cut_into_parts",
    "leave_out",
    "not_enough",
    "of_one_part",
    "together",
]


def cut_into_parts(
    given: Records, *, parts: int, in_place_key: SharedRandomness | None, randomness: PrivateRandomness
) -> Iterator[Records]:
    """Yield the parts: ``floor(units / parts)`` units each, whole units only, as `partition` cuts blocks.

    Formal guarantees
    -----------------
    - Every unit is in at most one part, with all its records (`partition`); so replacing one unit changes one part.
    """
    for rows in partition(given, blocks=parts, in_place_key=in_place_key, randomness=randomness):
        yield given.of_rows(rows)


def together(
    guarantee: ApproxDP, *, parts: int, word: str | None = None, in_place_key: SharedRandomness | None = None
) -> ApproxDP:
    """Return the guarantee of one mechanism on each of the disjoint parts of `cut_into_parts` (theory C1).

    ``word`` is what it calls a unit, if not what each part's does; a key under which the parts are cut makes it one in
    place.
    """
    found = parallel_composition([guarantee] * parts, claimed_disjoint=True)
    whole = found if isinstance(found, ApproxDP) else guarantee
    return ApproxDP(whole.epsilon, whole.delta, relation_of(in_place_key), word or whole.unit)


def of_one_part(progress: Progress | None, *, part: int, parts: int) -> Progress | None:
    """Return the progress that one part reports, as a share of all parts."""
    if progress is None:
        return None

    def report(done: int, total: int, what: str) -> None:
        progress(part * total + done, parts * total, what)

    return report


_SECONDS = 3.0
_STEPS = 4
_FIRST = 1.15
_EASIEST = Fraction(99, 100)


def not_enough(
    *, needed: int, present: int, alpha: Fraction | None = None, plan_at: Callable[[Fraction], Plan] | None = None
) -> NotEnoughRecords:
    """Return the refusal: n needed, n present and the alpha that the n present can reach with the same promise.

    The search begins where n that falls with the square of alpha would be enough, doubles alpha until the records are,
    then halves the gap; it begins no plan after three seconds.

    Parameters
    ----------
    needed, present
        Units of privacy.
    alpha
        The alpha that was asked for; without it only the numbers are told.
    plan_at
        The plan at another alpha, everything else as it was asked for.

    """
    text = (
        f"too few records or units of privacy: there are {present}, and {needed} are needed for these settings. "
        f"Nothing was spent."
    )
    if alpha is not None and plan_at is not None:
        found = _reachable(alpha, needed=needed, present=present, plan_at=plan_at)
        known = "no alpha below 1 was found that they can reach" if found is None else f"they can reach alpha = {found}"
        text = f"{text} With the other settings as they are, {known}."
    return NotEnoughRecords(text, needed=needed, present=present)


def _reachable(alpha: Fraction, *, needed: int, present: int, plan_at: Callable[[Fraction], Plan]) -> str | None:
    end = time.monotonic() + _SECONDS
    best: Fraction | None = None
    low, tried = alpha, alpha
    likely = Fraction(_FIRST * float(alpha) * math.sqrt(needed / max(present, 1))).limit_denominator(10_000)
    while best is None and tried < _EASIEST and time.monotonic() < end:
        tried = min(max(likely, 2 * tried) if tried == alpha else 2 * tried, _EASIEST)
        if _enough(plan_at, tried, present):
            best = tried
        else:
            low = tried
    for _ in range(_STEPS):
        if best is None or time.monotonic() >= end:
            break
        middle = Fraction(math.sqrt(low * best)).limit_denominator(10_000)
        if _enough(plan_at, middle, present):
            best = middle
        else:
            low = middle
    return None if best is None else f"{math.ceil(float(best) * 1000) / 1000:g}"


def _enough(plan_at: Callable[[Fraction], Plan], alpha: Fraction, present: int) -> bool:
    try:
        return plan_at(alpha).records <= present
    except AccordError:
        return False


_MOST_OF_TWO = 5000
"""For two labels the checker adds up binomial tails, at a cost that grows with the block."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsUse:
    """How many records, or units of privacy, a release reads; a function of their number alone.

    Parameters
    ----------
    block_size
        Units in each block.
    used
        Units in all blocks.
    left_out
        Units that no block holds; which ones is decided by chance, in secret.

    """

    block_size: int
    used: int
    left_out: int


def block_size_for(plan: Plan | None, *, units: int, blocks: int) -> int:
    """Return the size of a block: the largest possible, unless the plan's promise is for its own size only.

    The theorems' (and method A's) learners are as accurate from b records on, so their blocks grow. Method B's
    certificate is worked out again at the larger size, and verified. A simulation (C) speaks of its own b alone.
    """
    largest = units // blocks
    if (
        plan is None
        or plan.method == "theorem"
        or plan.certificate.method == Proof.ONE_DRAW
        or largest <= plan.block_size
    ):
        return largest
    if plan.certificate.method == Proof.FREQUENCIES:
        two = int(plan.certificate.numbers["labels"]) == 2
        tried = min(largest, max(plan.block_size, _MOST_OF_TWO)) if two else largest
        if _verifies(plan.certificate.to_json(), tried):
            return tried
    return plan.block_size


@lru_cache(maxsize=256)
def _verifies(certificate: str, block_size: int) -> bool:
    """Whether a certificate holds with larger blocks."""
    known = Certificate.from_json(certificate)
    numbers = dict(known.numbers) | {
        "block_size": block_size,
        "records_needed": int(known.numbers["blocks"]) * block_size,
    }
    try:
        return Certificate.of(known.method, numbers).verify()
    except (InvalidParameter, ValueError, ArithmeticError):
        return False


def leave_out(
    given: Records, *, keep: int, in_place_key: SharedRandomness | None, randomness: PrivateRandomness
) -> Records:
    """Return ``keep`` of the units, chosen as `partition` does: replacing one unit replaces at most one kept."""
    if keep == given.units:
        return given
    kept = np.zeros(given.units, dtype=np.bool_)
    kept[order_of_units(given.units, in_place_key=in_place_key, randomness=randomness)[:keep]] = True
    return given.of_units(kept)
