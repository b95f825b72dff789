"""Conjugate models of rows without labels: a normal, and mixtures of normals."""
