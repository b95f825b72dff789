"""Minimisation along lines: what limited-memory BFGS is made of."""
