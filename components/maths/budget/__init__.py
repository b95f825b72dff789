"""How to spread a budget over channels and weeks: expected sales against their risk, as a convex
programme."""
