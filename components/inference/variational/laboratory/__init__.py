"""Measurement of estimators of gradients on a module that stands still."""
