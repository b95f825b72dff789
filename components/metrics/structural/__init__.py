"""Scores of structural series: sales forecast, effects of an intervention, columns selected."""
