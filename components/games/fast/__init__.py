"""Compiled loops that play episodes."""
