"""Attackers of time series: contaminated, missing, shifted and spoofed observations."""
