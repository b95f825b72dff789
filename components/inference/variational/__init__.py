"""Optimisation of a variational bound."""
