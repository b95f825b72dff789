"""Outputs of commands that pages show (``python -m scripts.outputs``)."""
