"""Figures of how variational methods come along."""
