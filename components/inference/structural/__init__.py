"""Samplers and estimators of structural time series."""
