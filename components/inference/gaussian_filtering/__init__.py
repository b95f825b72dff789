"""Filters of Gaussians: a mean and a covariance for each replicate, exact or by linearisation."""
