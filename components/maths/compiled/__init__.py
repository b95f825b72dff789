"""What has a compiled loop: weights, resampling, quantiles, normal numbers, an elevation map; sooner where numba is installed."""
