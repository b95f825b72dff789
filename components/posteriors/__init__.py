"""What inference hands back, and what can be asked of it."""
