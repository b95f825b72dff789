"""Cost estimates of a study from records and probes, and selection of rows within a budget."""
