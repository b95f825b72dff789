"""Choosing the β of a robust filter, by how well it predicts."""
