"""Scores of filters, forecasts and sales."""
