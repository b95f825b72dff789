"""Loops over particles compiled by numba, where it is installed: the same numbers as torch and numpy give, sooner."""
