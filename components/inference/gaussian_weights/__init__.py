"""Gaussians around the end of a network's training: what its curvature, or the path of the descent,
says of its weights."""
