"""Estimators for layers of binary latent variables, layer by layer."""
