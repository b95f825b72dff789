"""Figures of the predictions of a supervised posterior, and of its learned quantities."""
