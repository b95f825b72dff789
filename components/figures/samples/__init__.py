"""Figures of draws of parameters."""
