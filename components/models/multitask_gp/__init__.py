"""Gaussian processes of several tasks beyond one coregionalised kernel."""
