"""Mails, messages and reviews as words."""
