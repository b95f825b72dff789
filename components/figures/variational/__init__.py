"""Figures of variational methods."""
