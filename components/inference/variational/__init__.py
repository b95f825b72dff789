"""Variational inference: optimisation of a bound."""
