"""accord: differentially private distribution learning.

Bring any density estimator, get a private model and synthetic data, with a proof you can read.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
