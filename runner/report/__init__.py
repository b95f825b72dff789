"""Ours beside the published numbers."""
