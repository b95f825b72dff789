"""Standard errors, paired tests, comparison with published numbers."""
