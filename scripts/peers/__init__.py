"""Peers of benchmarks: checks for their installation, and peers with a separate environment."""
