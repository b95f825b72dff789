"""Attackers who shift the observations that a filter sees, within a budget (false data
injection)."""
