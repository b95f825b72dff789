"""Budgets of advertising: laws of sales and optimal plans."""
