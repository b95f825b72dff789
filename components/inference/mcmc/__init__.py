"""Exact samplers, whose draws converge to the target itself and not to a discretised target."""
