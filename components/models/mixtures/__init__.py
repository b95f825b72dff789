"""Conjugate models of rows without labels: one normal, and mixtures of them."""
