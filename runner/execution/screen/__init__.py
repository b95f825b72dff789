"""Terminal output of a run: its choice, its steps, its results."""
