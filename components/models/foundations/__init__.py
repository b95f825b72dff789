"""Conjugate models for experiments on statistical statements."""
