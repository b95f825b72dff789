"""Functions that are known, and noisy labels of them."""
