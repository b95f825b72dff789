"""Data sets from users' own files."""
