"""Datasets, grouped by the type of problem."""
