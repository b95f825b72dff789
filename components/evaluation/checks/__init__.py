"""Checks of what a run's posterior predicts."""
