"""Blocks of structural time series: each adds states, or columns, to a sum."""
