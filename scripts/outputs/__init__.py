"""Outputs of commands in pages (``python -m scripts.outputs``)."""
