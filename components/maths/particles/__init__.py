"""Particle proposals, resampling and summaries."""
