"""Closed forms of the linear model, and what different statisticians make of it."""
