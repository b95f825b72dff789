"""Divergences between distributions, and bounds based on them."""
