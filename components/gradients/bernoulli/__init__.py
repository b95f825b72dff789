"""Estimators for binary latent variables in layers, one layer after the other."""
