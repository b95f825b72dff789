"""Foundations of statistics: stopping rules, and rates at which posteriors contract."""
