"""Action values."""
