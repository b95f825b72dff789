"""Results of inference, with their queries."""
