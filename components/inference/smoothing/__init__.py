"""Smoothers: the whole series a step, the distribution of the hidden states given all of it."""
