"""Figures: each draws one thing from a problem and a posterior."""
