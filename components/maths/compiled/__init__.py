"""What has a compiled loop: the elevation map, a search in order; where numba is installed, the same numbers sooner."""
