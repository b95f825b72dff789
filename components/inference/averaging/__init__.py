"""Averages along an optimisation path: of weights or of the iterates' predictions."""
