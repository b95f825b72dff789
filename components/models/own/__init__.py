"""Users' own networks: weights from a file, classes of a plug-in."""
