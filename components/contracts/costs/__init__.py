"""Counted costs of training and of attacks."""
