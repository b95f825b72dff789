"""Opponents in a game."""
