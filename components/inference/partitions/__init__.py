"""Samplers of partitions."""
