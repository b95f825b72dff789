"""Files of a run: packed states, blocks of draws, figures and tables."""
