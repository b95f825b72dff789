"""Averages along the way of a descent: of its weights, or of what its iterates predict."""
