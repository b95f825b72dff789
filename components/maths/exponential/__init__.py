"""Conjugate exponential families: their moments, divergences and draws."""
