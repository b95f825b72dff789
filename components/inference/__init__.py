"""Inference methods by family; what samplers of every family share lies here."""
