"""Protocols that ask modules for parameters or buffers, on every version of Python."""

from __future__ import annotations

import torch
from torch import nn

from components.contracts.capabilities import GaussianNoise, missing


class Noisy(nn.Module):
    """A module with an observation noise as a buffer, or with none."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.register_buffer(name, torch.eye(2))

    def observation_mean(self, x: torch.Tensor, t: int) -> torch.Tensor:
        return x

    init = transition = log_observation = sample_observation = observation_mean


def test_a_buffer_is_a_member():
    needs = frozenset({"gaussian_noise"})
    assert isinstance(Noisy("Sigma"), GaussianNoise)
    assert missing(Noisy("Sigma"), needs) == []
    assert not isinstance(Noisy(), GaussianNoise)
    assert missing(Noisy("Q"), needs) == ["gaussian_noise"]
    assert not isinstance(nn.Linear(1, 1), GaussianNoise)
