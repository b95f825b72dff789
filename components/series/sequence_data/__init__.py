"""Observed and simulated sequences."""
