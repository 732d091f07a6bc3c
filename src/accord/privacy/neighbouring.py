"""Which pairs of datasets must look alike."""

from enum import Enum

__all__ = ["Neighbouring"]


class Neighbouring(Enum):
    """The relation under which a guarantee holds (theory 1).

    A dataset is a sequence of records, each of which belongs to a unit of privacy: itself, or a person who may have
    several. Units are numbered by their first appearance.
    """

    REPLACE_ONE = "replace one"
    """Both datasets have n units and differ in one: the unit that replaces it may have another number of records, which
    may stand anywhere among those of the others. The others keep their relative order. The number n is public.
    """

    REPLACE_ONE_IN_PLACE = "replace one in place"
    """The same, and both units have the same number: the order in which the units first appear is left as it was. A
    weaker promise, which `REPLACE_ONE` implies: it says nothing where a replaced record stands elsewhere in the file.
    """

    ADD_OR_REMOVE_ONE = "add or remove one"
    """One dataset is the other without one unit. The number of units is secret."""

    def implies(self, other: "Neighbouring") -> bool:
        """Return whether a guarantee under this relation is one under the other, with the same numbers.

        Examples
        --------
        >>> Neighbouring.REPLACE_ONE.implies(Neighbouring.REPLACE_ONE_IN_PLACE)
        True
        >>> Neighbouring.REPLACE_ONE_IN_PLACE.implies(Neighbouring.REPLACE_ONE)
        False

        """
        replacing = (Neighbouring.REPLACE_ONE, Neighbouring.REPLACE_ONE_IN_PLACE)
        return self is other or (self, other) == replacing

    def __repr__(self) -> str:
        return f"Neighbouring.{self.name}"
