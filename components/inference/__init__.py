"""Inference methods by family, and shared code of all samplers."""
