"""Posteriors over networks fitted by divergences other than Kullback–Leibler, and full-covariance
Gaussians."""
