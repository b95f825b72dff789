"""Costs of the training of a run, counted where they occur."""
