"""Matrix games solved exactly, many at once."""
