"""Comparison of the user's method with all others on the problems of a suite."""
