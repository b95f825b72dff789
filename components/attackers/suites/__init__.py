"""Named suites of several attacks."""
