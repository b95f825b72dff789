"""Attacks that use only predictions, without gradients."""
