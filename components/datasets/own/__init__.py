"""Data sets that are files of the user's own."""
