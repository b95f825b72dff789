"""Measurement of gradient estimators on a frozen module."""
