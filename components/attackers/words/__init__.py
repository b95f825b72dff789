"""Attacks on binary inputs: words added to or removed from an email."""
