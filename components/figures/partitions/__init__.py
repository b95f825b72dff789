"""Figures of partitions."""
