"""Figures of advertising: budgets, effects and spends."""
