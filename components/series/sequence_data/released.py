"""The sequences of the simulators released with Boustati's thesis: NumPy's legacy streams, which
are frozen.

Source: the code released with Boustati (2021), chapter 6."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from components.series.sequence import LinearGaussianSystem

WIENER_TIMES = 1000
TAN_TIMES = 2001  # length of the released sequence
WIENER_SEED = 1400
TAN_SEED = 1992
OUTLIER_SD = 100.0  # of the Wiener model


@dataclass(frozen=True)
class ReleasedSequences:
    """States, and the first sequence of observations, which is corrupted."""

    states: Tensor  # [T, dx] float64
    first: Tensor  # Y⁽⁰⁾ [T, dy]
    corrupted: Tensor  # [T] bool


def wiener_velocity(system: LinearGaussianSystem, rate: float) -> ReleasedSequences:
    """x at 1,000 times; the first one is x_0 + N(0, I) with a clean observation. N(0, 100² I) is added
    to the others at a rate.

    The states depend on the rate, because each outlier consumes random numbers."""
    random = np.random.RandomState(WIENER_SEED)
    A, H, factor = (m.numpy() for m in (system.A, system.H, torch.linalg.cholesky(system.Q)))
    x = system.m0.numpy()[:, None] + random.randn(4, 1)
    y = H @ x + random.randn(2, 1)
    states = [x]
    first = [y]
    corrupted = [False]
    for _ in range(WIENER_TIMES - 1):
        x = A @ x + factor @ random.randn(4, 1)
        y = H @ x + random.randn(2, 1)
        hit = bool(random.rand() < rate)
        if hit:
            y = y + OUTLIER_SD * random.randn(2, 1)
        states.append(x)
        first.append(y)
        corrupted.append(hit)
    path, observations = (torch.from_numpy(np.stack(series)[..., 0]) for series in (states, first))
    return ReleasedSequences(path, observations, torch.tensor(corrupted))


def tan(
    A: Tensor,
    motion_sd: Tensor,
    m0: Tensor,
    noise_sd: float,
    observe: Callable[[Tensor], Tensor],
    rate: float,
) -> ReleasedSequences:
    """x at 2,001 times, with x_0 itself first; with a positive rate, the noise of both
    dimensions is one draw of t_1.

    States are the same at every rate."""
    random = np.random.RandomState(TAN_SEED)
    x = m0.numpy()[:, None]
    sd = motion_sd.numpy()[:, None]
    states = [x]
    for _ in range(TAN_TIMES - 1):
        x = A.numpy() @ x + sd * random.randn(6, 1)
        states.append(x)
    path = torch.from_numpy(np.stack(states)[..., 0])
    u = random.rand(TAN_TIMES)
    noise = np.empty((TAN_TIMES, 2))
    clean = u > rate
    noise[clean] = random.randn(int(clean.sum()), 2)
    noise[~clean] = random.standard_t(df=1, size=(int((~clean).sum()), 1))
    return ReleasedSequences(
        path, observe(path) + noise_sd * torch.from_numpy(noise), torch.from_numpy(~clean)
    )
