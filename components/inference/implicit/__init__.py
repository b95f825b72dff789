"""Implicit posteriors over network weights: easy to draw from, without a density."""
