"""Attacks on binary inputs: words added to a mail, or taken away."""
