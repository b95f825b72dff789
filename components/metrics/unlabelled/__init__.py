"""Scores of models of rows without labels, and of named parameters."""
