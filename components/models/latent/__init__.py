"""Generative models with latent variables per row, and their guides."""
