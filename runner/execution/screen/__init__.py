"""Terminal output of a run: composition, steps, results."""
