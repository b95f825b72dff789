"""Tosses of a coin."""
