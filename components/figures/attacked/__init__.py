"""Figures of classifiers under attack."""
