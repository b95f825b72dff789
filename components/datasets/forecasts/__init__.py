"""Series of which the last observations are to be forecast."""
