"""Figures of series, their states and their forecasts."""
