"""Stochastic volatility of daily returns, with unknown level, persistence and noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from components.datasets.named_target import NamedTarget, Variable, joint_target
from components.maths.bijectors import POSITIVE, Interval

# (φ + 1)/2 ~ Beta
ALPHA = 20.0
BETA = 1.5
# widths of the Cauchy priors of μ and of σ
LEVEL = 5.0
NOISE = 2.0


def _autoregress(phi: Tensor, noise: Tensor) -> Tensor:
    """h_1 = ε_1/√(1 − φ²), h_t = φ h_{t−1} + ε_t, by products of spectra [K, T]."""
    T = noise.shape[1]
    first = noise[:, :1] / (1 - phi.square()).sqrt()
    inputs = torch.cat([first, noise[:, 1:]], 1)
    powers = phi ** torch.arange(T, device=phi.device, dtype=phi.dtype)  # [K, T]
    spectrum = torch.fft.rfft(inputs, 2 * T) * torch.fft.rfft(powers, 2 * T)
    return torch.fft.irfft(spectrum, 2 * T)[:, :T]


def volatility(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """x_1 ~ N(μ, σ²/(1 − φ²)), x_t ~ N(μ + φ (x_{t−1} − μ), σ²), y_t ~ N(0, exp x_t);
    (φ + 1)/2 ~ Beta(20, 1.5), μ ~ Cauchy(0, 5), σ ~ half-Cauchy(0, 2).

    Samplers use the standardised noise z = ε/σ instead of x."""
    y = like.new_tensor(data["centered_returns"])
    log_square = y.square().clamp_min(1e-12).log()

    def log_volatility(z: Tensor, mu: Tensor, phi: Tensor, sigma: Tensor) -> Tensor:
        return mu + _autoregress(phi, sigma * z)

    def log_joint(z: Tensor, mu: Tensor, phi: Tensor, sigma: Tensor) -> Tensor:
        x = log_volatility(z, mu, phi, sigma)
        log_likelihood = -0.5 * (x + y.square() * (-x).exp()).sum(1)
        log_prior = (ALPHA - 1) * torch.log1p(phi) + (BETA - 1) * torch.log1p(-phi)
        log_prior = log_prior - torch.log1p((mu / LEVEL).square())
        log_prior = log_prior - softplus(2 * (sigma / NOISE).log())
        return log_likelihood + log_prior.squeeze(1) - 0.5 * z.square().sum(1)

    variables = (
        Variable("log_volatility", len(y)),
        Variable("mean_log_volatility", centre=float(log_square.mean())),
        Variable("persistence_of_volatility", bijector=Interval(-1.0, 1.0), centre=3.0, spread=0.5),
        Variable("white_noise_shock_scale", bijector=POSITIVE, centre=-1.0, spread=0.5),
    )

    def report(
        z: Tensor, mu: Tensor, phi: Tensor, sigma: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return log_volatility(z, mu, phi, sigma), mu, phi, sigma

    return joint_target(variables, log_joint, like, report)
