"""What a study will take before it runs, from records and probes, and what fits into a budget."""
