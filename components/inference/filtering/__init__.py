"""Filters: one observation a step, the distribution of the hidden state after each."""
