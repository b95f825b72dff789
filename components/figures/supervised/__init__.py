"""Figures of what a supervised posterior predicts, and of what it has learnt."""
