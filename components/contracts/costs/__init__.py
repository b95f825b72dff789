"""What the training of a run costs, counted where it occurs."""
