"""Exact samplers: their draws converge to the target itself, not to a discretisation of it."""
