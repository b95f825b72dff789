"""Scores of structural series: sales forecasts, effects of an intervention, selected columns."""
