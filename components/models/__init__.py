"""Models by family."""
