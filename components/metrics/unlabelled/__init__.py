"""Scores of models of rows without labels, and of the parameters that they are known by."""
