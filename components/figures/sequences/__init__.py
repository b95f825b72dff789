"""Figures of filtered and smoothed states."""
