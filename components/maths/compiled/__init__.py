"""What has a compiled loop: weights, resampling, quantiles, normal numbers, the elevation map; where numba is installed, sooner."""
