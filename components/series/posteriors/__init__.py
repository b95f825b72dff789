"""Posteriors of hidden states."""
