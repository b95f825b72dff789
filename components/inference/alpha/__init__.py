"""Posteriors over networks fitted by other divergences than Kullback and Leibler's, and by
Gaussians with all covariances."""
