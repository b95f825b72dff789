"""Stretches of times at which something is wrong with a sensor: what is lost, or stuck."""

from __future__ import annotations

import torch
from torch import Tensor


def min_mean_run_length(probability: float) -> float:
    """The shortest mean length of runs in which a share of the times can lie: between two runs lies
    a time at least."""
    return 1.0 if probability <= 0.5 or probability == 1 else probability / (1 - probability)


def check_run_length(probability: float, run_length: float | None) -> None:
    """Refuses runs so short that they cannot hold their share of the times.

    Raises:
        ValueError: naming the key and the shortest length.
    """
    least = min_mean_run_length(probability)
    if run_length is not None and run_length < least:
        raise ValueError(
            f"run_length={run_length:g}: runs of a mean length below {least:g} cannot hold {probability:g} of the times"
        )


def bursts(u: Tensor, probability: float, run_length: float | None) -> Tensor:
    """Indicators [R, T] bool of the times in a burst, from uniforms u [R, T].

    Each time lies in a burst with the given probability p:
    b_1 ~ Bernoulli(p), P(b_t = 0 | b_{t−1} = 1) = 1/ℓ,
    P(b_t = 1 | b_{t−1} = 0) = p/(ℓ(1 − p)).  This is a stationary chain with runs of mean
    length ℓ.  ``run_length`` None: independent times, with runs of mean length 1/(1 − p).
    """
    if run_length is None or probability in (0, 1):
        return u < probability
    stay = 1 - 1 / run_length
    enter = probability / (run_length * (1 - probability))
    hit = torch.empty_like(u, dtype=torch.bool)
    now = u[:, 0] < probability
    hit[:, 0] = now
    for t in range(1, u.shape[1]):
        now = u[:, t] < torch.where(now, stay, enter)
        hit[:, t] = now
    return hit
