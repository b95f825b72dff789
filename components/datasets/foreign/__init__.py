"""Densities that another package evaluates: Stan, NumPyro and PyMC."""
