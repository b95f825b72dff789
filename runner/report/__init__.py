"""Comparison of our results with the published numbers."""
