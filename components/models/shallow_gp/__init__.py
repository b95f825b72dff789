"""Single-layer Gaussian processes."""
