"""Kalman filters: exact, linearised, unscented, robust."""
