"""For tests, accord's own and yours. Nothing in here is private."""

from accord.testing.replay import ReplayRandomness

__all__ = ["ReplayRandomness"]
