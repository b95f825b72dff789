"""Estimators that differentiate the log density of the draws, not the draws."""
