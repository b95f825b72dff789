"""Smoothers of hidden states, by Gaussians and by particles."""
