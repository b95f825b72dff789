"""Gaussian posteriors of network weights, from the curvature at the end of training or from the
optimisation path."""
