"""What a suite raises."""

__all__ = ["MechanismFault"]


class MechanismFault(AssertionError):
    """A mechanism failed its suite; the text says which check."""
