"""Figures of advertising: budgets, effects and what was spent."""
