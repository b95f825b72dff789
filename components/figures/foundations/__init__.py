"""Figures of what the foundations say of statistics."""
