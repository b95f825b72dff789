"""Conjugate models on which statements about statistics are tried out."""
