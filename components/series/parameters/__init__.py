"""Inference of unknown parameters of state-space models."""
