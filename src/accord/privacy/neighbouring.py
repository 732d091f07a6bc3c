"""Which pairs of datasets must look alike."""

from enum import Enum

__all__ = ["Neighbouring"]


class Neighbouring(Enum):
    """The relation under which a guarantee holds (theory 1).

    A dataset is a sequence of units of privacy: records, or groups of records that belong to one person.
    """

    REPLACE_ONE = "replace one"
    """Both datasets have n units and differ in the unit at one position. The number n is public."""

    ADD_OR_REMOVE_ONE = "add or remove one"
    """One dataset is the other without one unit. The number of units is secret."""

    def __repr__(self) -> str:
        return f"Neighbouring.{self.name}"
