"""Prose of docs/results with every number filled in from kept scores."""
