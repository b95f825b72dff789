"""Densities evaluated by other packages: Stan, NumPyro and PyMC."""
