"""Figures of reports: each drawn for paper and, where it can be, as the values that a browser draws
it from."""
