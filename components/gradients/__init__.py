"""Estimators of the gradient of an expectation, which live inside inference methods."""
