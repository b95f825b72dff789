"""Standings of the rows of a suite: problems solved, and ranks of scores."""
