"""Emails, messages and reviews as words."""
