"""Evaluation of a posterior on a problem: scores, scores under attack, and sanity checks."""
