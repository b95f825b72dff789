"""Exact conditional draws of Gibbs samplers."""
