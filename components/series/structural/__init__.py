"""Structural time series: models, Gibbs sampler, maximum likelihood, posterior."""
