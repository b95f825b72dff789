"""Conformance of components: checks on a few steps with the smallest partners."""
