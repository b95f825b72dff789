"""Estimators that fit themselves in one go."""
