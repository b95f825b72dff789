"""Compiled loops for weights, resampling, quantiles, normal numbers and a map.

They are faster if numba is installed.
"""
