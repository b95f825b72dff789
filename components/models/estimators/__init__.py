"""Estimators fitted in a single step."""
