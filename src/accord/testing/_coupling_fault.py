"""What the suite for couplings raises."""

__all__ = ["CouplingFault"]


class CouplingFault(AssertionError):
    """A coupling failed its suite; the text says which check."""
