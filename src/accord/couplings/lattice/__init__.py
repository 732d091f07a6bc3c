"""Couple tuples through cells of a lattice: normal laws, and laws with a density known up to sampling."""
