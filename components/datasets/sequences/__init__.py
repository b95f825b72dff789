"""Observations in time."""
