"""Conformance checks of components, on a few steps with small partners."""
