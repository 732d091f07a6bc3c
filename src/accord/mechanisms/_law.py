"""Laws for audits: outcome to exact probability, the rest is no answer."""

from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any

from accord.privacy import NoAnswer

__all__ = ["law_of"]


def law_of(outcomes: Iterable[tuple[Any, Any, Fraction]]) -> dict[Any, Fraction]:
    """Return the law of (value, stand-in if the value cannot be a key, probability); `NoAnswer` gets the rest."""
    law: dict[Any, Fraction] = {}
    for value, stand_in, probability in outcomes:
        if probability > 0:
            key = value if _can_be_key(value) else stand_in
            law[key] = law.get(key, Fraction(0)) + probability
    law[NoAnswer] = 1 - sum(law.values(), Fraction(0))
    return law


def _can_be_key(value: Hashable) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
