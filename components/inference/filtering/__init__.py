"""Particle filters: one observation a step, weighted particles of the hidden state after each."""
