"""One place where public arguments are checked: NaN-safe, naming parameter, rule and a next step."""

from collections.abc import Callable, Sized
from fractions import Fraction
from typing import Any

from accord.core.errors import InvalidParameter
from accord.core.exact import Number, to_binary_fraction, to_fraction

__all__ = ["at_least_one", "delta", "epsilon", "exact", "exact_data", "integer", "probability", "store"]


def exact(name: str, value: Number) -> Fraction:
    """Return a parameter as an exact fraction, a float by its shortest decimal, or refuse it by name."""
    return _read(name, value, to_fraction)


def exact_data(name: str, value: Number) -> Fraction:
    """Return a number that is data, a float at its binary value as in arrays of floats, or refuse it by name."""
    return _read(name, value, to_binary_fraction)


def _read(name: str, value: Number, reader: Callable[[Number], Fraction]) -> Fraction:
    try:
        return reader(value)
    except (TypeError, ValueError) as error:
        message = f"{name} {error}: give a finite number such as 1, 0.5 or '1e-6'."
        raise InvalidParameter(message) from None


def epsilon(value: Number, *, name: str = "epsilon") -> Fraction:
    """Return a valid privacy loss: positive and at most 1000."""
    result = exact(name, value)
    if not 0 < result <= 1000:
        message = (
            f"{name} must be above 0 and at most 1000 (0 does not mean 'off': no useful release has no privacy loss; "
            f"above 1000 there is no protection)."
        )
        raise InvalidParameter(message)
    return result


def delta(value: Number, *, name: str = "delta") -> Fraction:
    """Return a valid slack: strictly between 0 and 1, not below 2^-100."""
    result = exact(name, value)
    if not Fraction(1, 2**100) <= result < 1:
        message = (
            f"{name} must be below 1 and at least 2^-100 (0 does not mean 'off': releasing an agreed value "
            f"needs a positive delta; choose one well below 1 / number of records, such as 1e-6)."
        )
        raise InvalidParameter(message)
    return result


def probability(name: str, value: Number) -> Fraction:
    """Return a number strictly between 0 and 1."""
    result = exact(name, value)
    if not 0 < result < 1:
        message = f"{name} must be strictly between 0 and 1."
        raise InvalidParameter(message)
    return result


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:  # noqa: ANN401
    """Return ``value`` as an int in ``[least, most]``; booleans and fractions are refused."""
    limit = f"at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = to_fraction(value)
    except (TypeError, ValueError):
        number = Fraction(1, 2)
    if number.denominator != 1 or number < least or (most is not None and number > most):
        message = f"{name} must be a whole number, {limit}."
        raise InvalidParameter(message)
    return int(number)


def at_least_one(name: str, value: Sized) -> None:
    """Refuse an empty collection by name."""
    if len(value) == 0:
        message = f"{name} must not be empty."
        raise InvalidParameter(message)


def store(instance: object, /, **fields: object) -> None:
    """Set the fields of a frozen instance, in its constructor: what was checked and converted there.

    Constructors are written by hand where a field is not what was passed: docs/decisions/0009-constructors.md.
    """
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
