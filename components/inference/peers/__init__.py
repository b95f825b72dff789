"""Samplers of other packages, through adapters; ``pip install 'bayes-runner[peers]'``."""
