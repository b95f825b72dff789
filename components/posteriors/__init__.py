"""Results of inference and their queries."""
