"""Generative models with latent variables of each row, and the guides that infer them."""
