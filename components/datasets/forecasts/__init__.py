"""Series with the last observations to be forecast."""
