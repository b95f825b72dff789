"""Scores of one posterior on one problem."""
