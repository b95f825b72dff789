"""A posterior as a function: ten tosses, eight heads, a uniform prior; and a scale."""

import torch


def log_density(theta: torch.Tensor, heads: int = 8, tails: int = 2) -> torch.Tensor:
    p, scale = theta[:, 0], theta[:, 1]
    return heads * p.log() + tails * (1 - p).log() - scale
