"""Attacks composed of others, by the names that they are reported under."""
