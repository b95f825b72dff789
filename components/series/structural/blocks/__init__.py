"""Blocks that add up to a structural time series."""
