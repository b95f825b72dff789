"""Losses of generalised Bayesian updates."""
