"""Reports: comparison of results with published numbers."""
