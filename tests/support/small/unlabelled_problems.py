"""Unlabelled problems with known likelihood: probabilistic PCA in closed form."""

from __future__ import annotations

import math
from typing import Any

import torch
from support.runs.configured import component, generator, normal
from torch import Tensor
from torch.distributions import MultivariateNormal

from components.contracts.problems import Rows
from components.models.latent.vae import AutoEncoder
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

D = 2
VALUES = 4
NOISE = 0.3


def real_rows(
    n: int = 60, values: int = VALUES, batch_size: int | None = None, seed: int = 0
) -> Unlabelled:
    """Rows of normal values, correlated by two factors."""
    g = generator(seed)
    mix = torch.cat([torch.randn(D, values, generator=g), 0.4 * torch.eye(values)]).double()
    train, test = (0.5 + normal(g, n, D + values) @ mix for _ in range(2))
    return Unlabelled("normal", "real", Rows(train, 1.0), Rows(test, 1.0), batch_size)


def ppca(problem: Unlabelled, exact_guide: bool) -> AutoEncoder:
    """p(x|z) = N(W z + b, σ² I) with orthogonal columns of W; the guide is the exact posterior, or
    far from it.

    M = Wᵀ W + σ² I is diagonal, p(z|x) = N(M⁻¹ Wᵀ (x − b), σ² M⁻¹): Tipping and Bishop (1999), eq.
    (6)."""
    module = component("model", "vae", latent_dim=D, widths=[], noise=NOISE).build(
        problem, Streams(0)
    )
    g = generator(0)
    values = problem.train.x.shape[1]
    W = torch.linalg.qr(normal(g, values, D))[0] * torch.tensor([1.5, 0.7])
    b = normal(g, values)
    M = (W.T @ W).diagonal() + NOISE  # [D]
    (up,) = module.generative.network.layers
    (down,) = module.guide.network.layers
    with torch.no_grad():
        up.weight.copy_(W)
        up.bias.copy_(b)
        down.weight.copy_(torch.cat([W.T / M[:, None], torch.zeros(D, values)]))
        down.bias.copy_(torch.cat([-(W.T @ b) / M, 0.5 * (NOISE / M).log()]))
        if not exact_guide:
            down.weight.add_(0.03 * normal(g, down.weight.shape))
            down.bias.add_(0.3)
    return module


def log_evidence(module: AutoEncoder, x: Tensor) -> Tensor:
    """log N(x | b, W Wᵀ + σ² I) [B]."""
    (up,) = module.generative.network.layers
    W = up.weight.detach()
    b = up.bias.detach()
    covariance = W @ W.T + module.generative.log_noise.detach().exp() * torch.eye(
        len(b), dtype=W.dtype
    )
    return MultivariateNormal(b, covariance).log_prob(x)


def gaussian_elbo(generative: Any, x: Tensor, m: Tensor, C: Tensor) -> Tensor:
    """Σ_b E_q[log p(x_b|z)] − KL(q ‖ N(0, I)) of q = N(m_b, C) or N(m_b, C_b) and an affine
    generative model, in closed form, differentiable in all parameters."""
    (up,) = generative.network.layers
    W = up.weight
    log_noise = generative.log_noise
    square = (x - m @ W.T - up.bias).square().sum(1) + ((W @ C) * W).sum((-2, -1))
    fit = -0.5 * (square / log_noise.exp() + x.shape[1] * (log_noise + math.log(2 * math.pi)))
    trace = C.diagonal(dim1=-2, dim2=-1).sum(-1)
    divergence = 0.5 * (trace + m.square().sum(1) - m.shape[1] - torch.logdet(C))
    return (fit - divergence).sum()


def exact_elbo(module: AutoEncoder, x: Tensor) -> Tensor:
    """``gaussian_elbo`` of an auto-encoder."""
    m, s = module.guide(x)
    return gaussian_elbo(module.generative, x, m, s.square().diag_embed())


def target_rows(module, rows: Rows):
    """log p(x, z) of some rows as a function of z."""
    return lambda z: module.log_joint(rows, z)


def evidence_z(log_w: torch.Tensor, exact: torch.Tensor) -> float:
    """Standard errors by which the mean of exp(log w)/p(x) over draws and rows differs from 1."""
    ratio = (log_w - exact).exp().mean(1)  # rows are independent: one number per draw
    return float((ratio.mean() - 1) / (ratio.std() / len(ratio) ** 0.5))


def best_likelihood(x: Tensor, noise: float = 0.3) -> float:
    """Mean log-likelihood of the best probabilistic PCA with two factors and a noise variance of at
    least its start, ``noise``."""
    values = torch.linalg.eigvalsh(torch.cov(x.T, correction=0))
    spectrum = torch.cat([values.new_full((2,), noise), values[2:].clamp_min(noise)])
    D = x.shape[1]
    return -0.5 * float((spectrum.log() + values / spectrum).sum() + D * math.log(2 * math.pi))
