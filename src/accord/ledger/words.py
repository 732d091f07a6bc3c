"""What people write into a ledger: one printable line each."""

from fractions import Fraction
from typing import Final

from accord.accounting.figures import short_text
from accord.core import check as _check
from accord.core.errors import InvalidParameter
from accord.core.exact import Number
from accord.core.guarantee import ApproxDP, Neighbouring, PureDP

__all__ = ["budget", "line", "required_line", "same_terms", "shown"]

_LONGEST: Final = 1000
_LARGEST_EPSILON: Final = 10**6
_MOST_BITS: Final = 1100  # every float has fewer, and 1e-300 as well


def line(name: str, text: str | None) -> str | None:
    """Return one line of text as it stands, or None; refuse anything else by name."""
    if text is None:
        return None
    if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST:
        raise InvalidParameter(f"{name} must be one line of printable text, at most {_LONGEST} characters.")
    return text or None


def required_line(name: str, text: str | None) -> str:
    """Return one line of text that is not empty."""
    written = line(name, text)
    if written is None or not written.strip():
        raise InvalidParameter(f"{name} is needed: a ledger without it helps nobody later.")
    return written


def budget(epsilon: Number, delta: Number, *, name: str) -> tuple[Fraction, Fraction]:
    """Return an exact pair of at least 0 with delta below 1; refuse numbers of absurd length."""
    pair = _check.exact(f"{name} epsilon", epsilon), _check.exact(f"{name} delta", delta)
    if pair[0] < 0 or not 0 <= pair[1] < 1:
        raise InvalidParameter(f"{name} must have an epsilon of at least 0, and a delta of at least 0 and below 1.")
    if pair[0] > _LARGEST_EPSILON:
        raise InvalidParameter(f"{name} has an epsilon above a million: that is no privacy, and no budget.")
    if any(part.denominator.bit_length() > _MOST_BITS for part in pair):
        raise InvalidParameter(f"{name} is a fraction with over 330 digits: round it first, a charge up.")
    return pair


def same_terms(guarantee: PureDP | ApproxDP, *, neighbouring: Neighbouring, unit: str) -> None:
    """Refuse a guarantee under another relation or for another unit than the ledger's."""
    if not isinstance(guarantee, (PureDP, ApproxDP)):
        raise InvalidParameter("guarantee must be a PureDP or an ApproxDP.")
    if not guarantee.neighbouring.implies(neighbouring):
        if neighbouring.implies(guarantee.neighbouring):
            raise InvalidParameter(
                f"this ledger counts under '{neighbouring.value}' and the request holds under "
                f"'{guarantee.neighbouring.value}' only: it says nothing of records that stand elsewhere in the file. "
                f"Release without a public key of the blocks, or use a ledger of that relation, which takes both."
            )
        raise InvalidParameter(
            f"this ledger counts under '{neighbouring.value}' and the request holds under "
            f"'{guarantee.neighbouring.value}': epsilons under two relations cannot be added. Restate the guarantee "
            f"under the ledger's relation, or use a ledger of that relation."
        )
    if guarantee.unit != unit:
        raise InvalidParameter(
            f"this ledger protects each {unit} and the request protects each {guarantee.unit}: epsilons for two units "
            f"cannot be added. Release with the ledger's unit, or use a ledger of that unit."
        )


def shown(pair: tuple[Fraction, Fraction], *, up: bool) -> str:
    """Return ``(epsilon, delta)`` for a sentence, to 12 digits."""
    return f"({short_text(pair[0], up=up)}, {short_text(pair[1], up=up)})"
