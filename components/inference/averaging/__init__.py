"""Averages of weights or predictions along an optimisation path."""
