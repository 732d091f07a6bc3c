"""Couple tuples through sufficient statistics: sums, gamma laws, point masses, products."""
