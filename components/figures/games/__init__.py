"""Figures of play."""
