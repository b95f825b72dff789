"""Checks of the predictions of a run's posterior."""
