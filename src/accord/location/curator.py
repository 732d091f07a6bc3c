"""What its curator alone may look at: it stays where it was made."""

from typing import Any, Generic, TypeVar, final

from accord.core.errors import InvalidParameter

__all__ = ["CuratorOnly"]

T = TypeVar("T")


@final
class CuratorOnly(Generic[T]):
    """A value that depends on the data outside any guarantee, beside what was released.

    Formal guarantees
    -----------------
    - Pickles, deep copies and texts of it hold nothing, nor do those of any object that it is a part of. A shallow copy
      of such an object shares it, and its pickle holds nothing again.
    - Not promised: secrecy from code that runs in this process.

    Parameters
    ----------
    value
        Any.

    Examples
    --------
    >>> import copy
    >>> agreement = CuratorOnly(0.97)
    >>> agreement, agreement.value
    (CuratorOnly(...), 0.97)
    >>> copy.copy(agreement).value
    Traceback (most recent call last):
    accord.errors.InvalidParameter: this is for the curator alone and stays with the object that was made first: ...

    """

    __slots__ = ("_held",)

    def __init__(self, value: T) -> None:
        self._held: tuple[T, ...] = (value,)

    @property
    def value(self) -> T:
        """What is held.

        Raises
        ------
        InvalidParameter
            If this came out of a pickle or is a copy.

        """
        if not self._held:
            raise InvalidParameter(
                "this is for the curator alone and stays with the object that was made first: pickles and copies leave "
                "it out."
            )
        return self._held[0]

    def __repr__(self) -> str:
        return "CuratorOnly(...)"

    def __getstate__(self) -> None:
        """Say nothing."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the value out."""
        return _left_out, ()


def _left_out() -> CuratorOnly[Any]:
    empty: CuratorOnly[Any] = CuratorOnly(None)
    empty._held = ()  # noqa: SLF001 - its own maker
    return empty
