"""Networks of the user's own: weights from a file, classes of a plug-in."""
