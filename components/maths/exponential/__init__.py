"""Conjugate exponential families: moments, divergences and draws."""
