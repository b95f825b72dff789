"""Structural time series: a series as the sum of parts that change in time, with unknown
variances."""
