"""Estimators that differentiate a bound through explicit noise."""
