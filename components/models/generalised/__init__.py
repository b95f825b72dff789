"""Generalised Bayesian updates of other models."""
