"""What becomes of more records than a plan asks for: larger blocks where its promise allows that. Trusted core."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from accord.core.blocks import order_of_units
from accord.core.errors import InvalidParameter
from accord.core.records import Records
from accord.core.secret import PrivateRandomness
from accord.core.shared import SharedRandomness
from accord.planning import Certificate, Plan

__all__ = ["RecordsUse", "block_size_for", "leave_out"]

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
    if plan is None or plan.method == "theorem" or plan.certificate.method == "A" or largest <= plan.block_size:
        return largest
    if plan.certificate.method == "B":
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
