"""Mails and messages as sets of words."""
