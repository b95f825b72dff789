"""Rows of numbers without labels."""
