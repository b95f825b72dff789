"""A network of one's own: an ordinary module, which knows nothing of the runner."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, hidden: int = 32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, hidden), nn.BatchNorm1d(hidden), nn.GELU(), nn.Dropout(0.1))
        self.scale = nn.Parameter(torch.ones(hidden))
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.scale * self.body(2 * x - 1))
