"""Conditionals drawn by Gibbs samplers: variances, bounded scalars, included coefficients."""
