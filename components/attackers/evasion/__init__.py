"""Attacks on continuous inputs, inside a ball of some norm."""
