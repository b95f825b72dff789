"""Attacks on continuous inputs within a norm ball."""
