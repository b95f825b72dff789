"""Divergences between distributions, and bounds that hold them."""
