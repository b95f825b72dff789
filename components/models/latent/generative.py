"""Generative models x | z of a latent variable z ~ N(0, I), with means given by a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.roles import LearnableScale
from components.maths.cholesky import LOG_2PI
from components.models.latent.perceptron import Perceptron

# smallest distance of an initial mean from 0 and 1, and of an initial variance from 0
FEWEST = 1e-3


def log_normal(x: Tensor, mean: Tensor | float, sd: Tensor) -> Tensor:
    """Σ_d log N(x_d | mean_d, sd_d²) over the last dimension of x."""
    d = torch.broadcast_to(sd.log(), x.shape).sum(-1)
    return -0.5 * (((x - mean) / sd).square().sum(-1) + LOG_2PI * x.shape[-1]) - d


def log_bernoulli(x: Tensor, logits: Tensor) -> Tensor:
    """Σ_d x_d α_d − log(1 + e^α_d) over the last dimension: log Bernoulli(x | sigmoid(α)), extended
    to relaxed x."""
    return torch.linalg.vecdot(x, logits) - F.softplus(logits).sum(-1)


class BernoulliModel(nn.Module):
    """p(x|z) = Π_i Bernoulli(x_i | sigmoid(f_i(z))); f is initialised near the log odds of the mean
    training row.

    Source: Kingma and Welling (2014), appendix C.1; Burda, Grosse and Salakhutdinov (2016), section
    5 (initial values)."""

    def __init__(self, network: Perceptron, x: Tensor):
        super().__init__()
        self.network = network
        mean = x.mean(0).clamp(FEWEST, 1 - FEWEST)
        network.layers[-1].bias.data.copy_(mean.logit())

    def mean(self, z: Tensor) -> Tensor:
        return self.network(z).sigmoid()  # [..., I]

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x|z), x [B, I], z [S, B, D] -> [S, B]."""
        return log_bernoulli(x, self.network(z))


class GaussianModel(nn.Module):
    """p(x|z) = N(x | f(z), σ² I), σ² a learned or fixed number; f is initialised near the mean
    training row.

    Source: Tipping and Bishop (1999), eq. (2), for affine f; Kingma and Welling (2014),
    appendix C.2."""

    log_noise: Tensor

    def __init__(self, network: Perceptron, x: Tensor, noise: LearnableScale):
        super().__init__()
        self.network = network
        network.layers[-1].bias.data.copy_(x.mean(0))
        if noise == "learned":
            # Variance of values around their means: initially all is noise; 0 for a single row.
            variance = x.var(0, correction=min(1, len(x) - 1)).mean().clamp_min(FEWEST)
            self.log_noise = nn.Parameter(variance.log().cpu())  # log σ² []
        else:
            self.register_buffer("log_noise", torch.tensor(noise, dtype=x.dtype).log())

    def mean(self, z: Tensor) -> Tensor:
        return self.network(z)  # [..., I]

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x|z), x [B, I], z [S, B, D] -> [S, B]."""
        square = (x - self.network(z)).square().sum(-1)  # [S, B]
        return -0.5 * (square * (-self.log_noise).exp() + x.shape[-1] * (self.log_noise + LOG_2PI))
