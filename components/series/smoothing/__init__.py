"""Gaussian and particle smoothers of hidden states."""
