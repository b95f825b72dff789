"""Gaussian processes of one layer."""
