"""Figures of the statistical foundations."""
