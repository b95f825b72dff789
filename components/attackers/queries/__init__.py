"""Attacks that ask for predictions only, and follow no gradient."""
