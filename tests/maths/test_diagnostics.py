"""Diagnostics against an independent computation and against chains of known autocorrelation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata

from components.metrics.diagnostics import bulk_ess, split_rhat


def autoregression(rho: float, chains: int, draws: int, dims: int, seed: int = 0) -> torch.Tensor:
    """Stationary Gaussian AR(1) chains of unit variance, [C, N, P]."""
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(draws, chains, dims, generator=g, dtype=torch.float64)
    x, out = noise[0], []
    for z in noise:
        x = rho * x + (1 - rho**2) ** 0.5 * z
        out.append(x)
    return torch.stack(out, 1)


def literal_rhat(x: np.ndarray) -> float:
    """max of rank-normalised split-R̂ of x and of |x − median|: Vehtari et al. (2021), eqs. (3), (4), (14); x [C, N]."""

    def ranked(v: np.ndarray) -> np.ndarray:
        return norm.ppf((rankdata(v).reshape(v.shape) - 3 / 8) / (v.size + 1 / 4))

    def rhat(v: np.ndarray) -> float:
        n = v.shape[1]
        between = n * v.mean(1).var(ddof=1)
        within = v.var(axis=1, ddof=1).mean()
        return float(np.sqrt(((n - 1) / n * within + between / n) / within))

    half = x.shape[1] // 2
    split = np.concatenate([x[:, :half], x[:, -half:]])
    return max(rhat(ranked(split)), rhat(ranked(np.abs(split - np.median(split)))))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, -0.5])
def test_ess_of_an_autoregression(rho):
    x = autoregression(rho, chains=4, draws=4000, dims=20)
    exact = 16_000 * (1 - rho) / (1 + rho)
    # Averaged over 20 independent coordinates; negative correlations are truncated late by Geyer's rule.
    assert float(bulk_ess(x).mean()) == pytest.approx(exact, rel=0.07)


@pytest.mark.parametrize("draws", [50, 51])
def test_rhat_is_the_published_formula(draws):
    x = autoregression(0.6, chains=5, draws=draws, dims=4, seed=3)
    x[0] += torch.tensor([0.0, 1.0, 3.0, 0.0])  # a shifted chain
    x[1, :, 3] *= 4  # a chain of another scale, which only the folded R̂ sees
    got = split_rhat(x)
    assert got.tolist() == pytest.approx([literal_rhat(x[:, :, j].numpy()) for j in range(4)], rel=1e-10)


def test_chains_in_agreement_and_in_disagreement():
    x = autoregression(0.0, chains=4, draws=1000, dims=1)
    assert abs(float(split_rhat(x)) - 1) < 0.01
    apart = x + torch.arange(4).view(4, 1, 1) * 5.0
    assert float(split_rhat(apart)) > 2
    assert float(bulk_ess(apart)) < 10
