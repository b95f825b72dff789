"""Attackers who corrupt the observations of a sequence, once, before any inference."""
