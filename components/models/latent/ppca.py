"""Probabilistic principal component analysis in closed form."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import PositiveInt

from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.latent.amortised import gaussian_guide
from components.models.latent.generative import GaussianModel
from components.models.latent.perceptron import Perceptron
from components.models.latent.principal_axes import principal_axes
from components.models.latent.vae import VAE, AutoEncoder
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("model", "ppca")
class PPCA(Model[Unlabelled, AutoEncoder]):
    """Probabilistic principal component analysis at its maximum likelihood, with the exact p(z|x)
    as guide.

        x ~ N(W z + μ, σ² I), z ~ N(0, I):   μ = x̄,   σ² = (I − Q)⁻¹ Σ_{j>Q} λ_j,
        W = U_Q (Λ_Q − σ² I)^½,   p(z|x) = N(Λ_Q⁻¹ Wᵀ (x − μ), σ² Λ_Q⁻¹)

    λ_j, u_j are eigenvalues and eigenvectors of the covariance of the training rows.  −ELBO of a
    row is −log p(x) itself: inference=fixed scores it without training.  It is the vae without
    hidden layers: other inference methods start at the maximum.  x [N, …].

    Raises ConfigMismatchError where a row has no more values than ``latent_dim``.

    Source: Tipping and Bishop (1999), eqs. (6) to (8); Boustati (2021), section 2.1.1.1."""

    requires = Requirements(kinds=frozenset({"unlabelled"}), values=frozenset({"real"}))
    offers: ClassVar[frozenset[str]] = VAE.offers

    latent_dim: PositiveInt

    def build(self, problem: Unlabelled, rng: Rng) -> AutoEncoder:
        assert isinstance(problem.train, Rows)
        x = problem.train.x
        rows = x.flatten(1)
        Q = self.latent_dim
        axes = principal_axes(rows, Q, self.name)
        noise = axes.variances[Q:].mean()  # eq. (8)
        largest = axes.variances[:Q]
        W = axes.directions * (largest - noise).clamp_min(0).sqrt()  # eq. (7)  [I, Q]
        values = rows.shape[1]
        up = Perceptron([Q, values], "identity", rng)
        guide = gaussian_guide(values, [], Q, "identity", False, "exp", rng)
        generative = GaussianModel(up, rows.cpu(), "learned")
        module = AutoEncoder(generative, guide, Q, x)
        total = (W.square().sum(0) + noise).unsqueeze(1)  # M = WᵀW + σ² I, diagonal  [Q, 1]
        backward = W.T / total
        down = guide.network.layers[-1]
        with torch.no_grad():
            up.layers[-1].weight.copy_(W)
            up.layers[-1].bias.copy_(axes.center)
            generative.log_noise.fill_(float(noise.log()))
            down.weight.copy_(torch.cat([backward, torch.zeros_like(backward)]))
            scale = 0.5 * (noise / total[:, 0]).log()
            down.bias.copy_(torch.cat([-backward @ axes.center, scale]))
        return module
