"""The grand couplings of the theorem on Poisson processes, I and II."""
