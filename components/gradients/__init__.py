"""Estimators of the gradient of an expectation, used inside inference methods."""
