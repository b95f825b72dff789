"""Scores of a posterior on a problem."""
