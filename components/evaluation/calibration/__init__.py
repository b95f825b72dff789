"""Simulation-based calibration: data simulated from a model, and quantities that are ranked."""
