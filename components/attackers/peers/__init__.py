"""Attacks of other packages, through adapters."""
