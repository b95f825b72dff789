"""What has a compiled loop: weights, resampling, quantiles, normal numbers, a map; sooner where numba is installed."""
