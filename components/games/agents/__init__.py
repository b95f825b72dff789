"""Agents that learn by playing."""
