"""Figures of models with latent variables."""
