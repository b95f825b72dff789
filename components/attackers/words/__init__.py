"""Attacks on binary inputs: words added to or removed from a mail."""
