"""Densities of columns of numbers without bounds: locate, open, refine; and the scikit-learn estimator."""
