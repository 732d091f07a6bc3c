"""The vote that nobody can win."""

from enum import Enum
from typing import Final

__all__ = ["ABSTAIN", "Abstain"]


class Abstain(Enum):
    """Type of `ABSTAIN`, what a block votes when its fit failed. A singleton; it survives copying and pickling."""

    ABSTAIN = "ABSTAIN"

    def __repr__(self) -> str:
        return "ABSTAIN"


ABSTAIN: Final = Abstain.ABSTAIN
