"""Export of a fitted model to a single file, which predicts without its data."""
