"""Simulation-based calibration: data simulated from a model, and ranked quantities."""
